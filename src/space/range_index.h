/* SPDX-License-Identifier: MIT */
/**
 * Free ranges by offset: a B+ tree (Bayer, McCreight, 1972) whose inner nodes know the largest
 * range below each child, so that the lowest and the highest range of at least some size are found
 * in one descent.
 *
 * Sizes in nodes are granules in 31 bits, so that a node's are looked at four at a time; what is
 * larger counts as the largest of these. Who searches checks what was found, and goes on behind it,
 * as with an alignment.
 *
 * Wide nodes, because a descent costs as many cache misses as the tree has levels: three or four at
 * 100,000 ranges, where a binary tree has seventeen. And no descent where it can be avoided: each
 * range knows its leaf (`homes`) and each node its parent, so removing and changing, which is what
 * most requests and releases do, begin at the leaf and go up only if its smallest key or its
 * largest size changed.
 *
 * A node is freed when it is empty and not merged with a neighbour before that (Johnson, Shasha,
 * 1989: under mixed inserts and deletes that wastes little and writes less). Nodes lie in one array
 * and are named by index.
 *
 * Not thread-safe: belongs to its space.
 */
#ifndef ALLOTI_SPACE_RANGE_INDEX_H
#define ALLOTI_SPACE_RANGE_INDEX_H

#include "space/space.h"

enum { RANGE_NODE_MAX = 20 };

/** Four cache lines, searched with loops of constant length. */
typedef struct range_node {
    uint32_t count;
    uint32_t level;               /**< 0: leaf. */
    uint32_t parent;              /**< ALLOT_NONE at the root. Of a free node: the next one. */
    int32_t largest;              /**< Of size[]. */
    int32_t size[RANGE_NODE_MAX]; /**< Leaf: granules; else the largest below. -1 beyond `count`. */
    uint32_t ref[RANGE_NODE_MAX]; /**< Leaf: ids; else nodes. */
    int32_t key[RANGE_NODE_MAX];  /**< The smallest below. INT32_MAX beyond `count`. */
} range_node;

typedef struct range_index {
    range_node *nodes;
    uint64_t capacity;
    uint64_t used;       /**< Nodes that were ever used. */
    uint32_t free_node;  /**< ALLOT_NONE: none. */
    uint32_t free_count; /**< In that list. */
    uint32_t root;       /**< ALLOT_NONE: empty. */
    unsigned shift;      /**< Bits of an offset in granules that keys lack. */
} range_index;

void alloti_range_index_init(range_index *index);
void alloti_range_index_fini(range_index *index);

/** Make sure that the next `count` inserts cannot fail. ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_range_index_reserve(range_index *index, uint32_t count);

/** Have fetched the leaf where a used range was, before it is known what becomes of it: where it is
 * or its neighbours are. */
static inline void range_index_prefetch(const range_index *index, const allot_space *space,
                                        uint32_t id)
{
    const uint32_t home = space->homes[id];
    const char *const node = (const char *)&index->nodes[home < index->used ? home : 0];
    for (unsigned line = 0; line < sizeof(range_node); line += 64) {
        __builtin_prefetch(node + line);
    }
}

/** Add a range of the space; room for it was reserved. */
void alloti_range_index_insert(range_index *index, allot_space *space, uint32_t id);

/** Take a range out that is in the index. */
void alloti_range_index_remove(range_index *index, allot_space *space, uint32_t id);

/** A range has moved or changed its size; its order among the others is the same. */
void alloti_range_index_change(range_index *index, allot_space *space, uint32_t id);

/** The lowest range at or above `offset` of at least `size`, as far as nodes tell; ALLOT_NONE for
 * none. */
uint32_t alloti_range_index_lowest(const range_index *index, const allot_space *space,
                                   uint64_t offset, uint64_t size);

/** The highest one below `offset`. */
uint32_t alloti_range_index_highest(const range_index *index, const allot_space *space,
                                    uint64_t offset, uint64_t size);

/** Size of the largest range, 0 if there is none. */
uint64_t alloti_range_index_largest(const range_index *index, const allot_space *space);

/** Order, counts, levels, links and largest sizes are right, and there are `count` ranges. */
bool alloti_range_index_check(const range_index *index, const allot_space *space, uint64_t count);

#endif /* ALLOTI_SPACE_RANGE_INDEX_H */
