/* SPDX-License-Identifier: MIT */
/**
 * Free ranges by size, those of one size by offset: a B+ tree (Bayer, McCreight, 1972) for each
 * power of two of sizes, and a bit for each that is not empty.
 *
 * A key is one number of 64 bits. In the tree of 2^k granules that takes
 *
 *     [size - 2^k: k bits][offset / 2^k: 63 - k bits]
 *
 * Two ranges of at least 2^k granules never begin within 2^k of each other, so what the division
 * drops is not needed to tell them apart, nor for their order.
 *
 * Inner nodes say from which key on a child is responsible, which removing and inserting do not
 * change: they touch leaves only, but where those become full or empty. Ranges remember their leaf
 * (`homes`), so that removing begins there.
 *
 * A node is freed when it is empty and not merged with a neighbour before that (Johnson, Shasha,
 * 1989: under mixed inserts and deletes that wastes little and writes less). Nodes lie in one table
 * and are named by index.
 *
 * Not thread-safe: belongs to its space.
 */
#ifndef ALLOTI_SPACE_SIZE_INDEX_H
#define ALLOTI_SPACE_SIZE_INDEX_H

#include "space/space.h"

enum { SIZE_NODE_MAX = 20, SIZE_POWERS = 64 };

/** Four cache lines. */
typedef struct size_node {
    uint32_t count;
    uint32_t level;              /**< 0: leaf. */
    uint32_t parent;             /**< ALLOT_NONE at a root. Of a free node: the next one. */
    uint32_t ref[SIZE_NODE_MAX]; /**< Leaf: ids; else nodes. */
    uint64_t key[SIZE_NODE_MAX]; /**< UINT64_MAX beyond `count`. */
} size_node;

typedef struct size_index {
    uint64_t powers;             /**< Bit: this tree is not empty. */
    uint32_t roots[SIZE_POWERS]; /**< Of trees that are not empty. */
    size_node *nodes;
    uint64_t capacity;
    uint64_t used;       /**< Nodes that were ever used. */
    uint32_t free_node;  /**< ALLOT_NONE: none. */
    uint32_t free_count; /**< In that list. */
    uint32_t height;     /**< The highest level that there ever was. */
} size_index;

void alloti_size_index_init(size_index *index);
void alloti_size_index_fini(size_index *index);

/** Make sure that the next `count` inserts cannot fail. ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_size_index_reserve(size_index *index, uint32_t count);

/** Add a range of the space; room for it was reserved. */
void alloti_size_index_insert(size_index *index, allot_space *space, uint32_t id);

/** Take a range out that is in the index with this size. */
void alloti_size_index_remove(size_index *index, allot_space *space, uint32_t id, uint64_t size);

/** The smallest range of at least `size`, of these the lowest; ALLOT_NONE for none. */
uint32_t alloti_size_index_smallest(const size_index *index, const allot_space *space,
                                    uint64_t size);

/** The next one after a range in that order; ALLOT_NONE after the last. */
uint32_t alloti_size_index_next(const size_index *index, const allot_space *space, uint32_t id);

/** Size of the largest range, 0 if there is none. */
uint64_t alloti_size_index_largest(const size_index *index, const allot_space *space);

/** Order, counts, levels and links are right, and there are `count` ranges. */
bool alloti_size_index_check(const size_index *index, const allot_space *space, uint64_t count);

#endif /* ALLOTI_SPACE_SIZE_INDEX_H */
