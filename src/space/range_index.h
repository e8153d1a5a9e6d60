/* SPDX-License-Identifier: MIT */
/**
 * An ordered index of free ranges: a B+ tree (Bayer, McCreight, 1972) whose inner nodes may know
 * the largest range below each child.
 *
 * Two orders. By offset, `second` is a range's size and in inner nodes the largest size below, so
 * that the lowest and the highest range of at least some size are found in one descent. By size,
 * ties by offset, `second` is the offset.
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

enum { RANGE_NODE_MAX = 32 };

typedef struct range_node {
    uint32_t count;
    uint32_t level;               /**< 0: leaf. */
    uint32_t parent;              /**< ALLOT_NONE at the root. Of a free node: the next one. */
    uint32_t ref[RANGE_NODE_MAX]; /**< Leaf: ids; else nodes. */
    uint64_t largest;             /**< By offset: of second[]. */
    uint64_t first[RANGE_NODE_MAX];
    uint64_t second[RANGE_NODE_MAX];
} range_node;

typedef struct range_index {
    range_node *nodes;
    uint64_t capacity;
    uint64_t used;       /**< Nodes that were ever used. */
    uint32_t free_node;  /**< ALLOT_NONE: none. */
    uint32_t free_count; /**< In that list. */
    uint32_t root;       /**< ALLOT_NONE: empty. */
    bool is_by_size;
} range_index;

void alloti_range_index_init(range_index *index, bool is_by_size);
void alloti_range_index_fini(range_index *index);

/** Make sure that the next `count` inserts cannot fail. ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_range_index_reserve(range_index *index, uint32_t count);

/** Add a range of the space; room for it was reserved. */
void alloti_range_index_insert(range_index *index, allot_space *space, uint32_t id);

/** Take a range out that is in the index. */
void alloti_range_index_remove(range_index *index, allot_space *space, uint32_t id);

/** By offset: a range has moved or changed its size; its order among the others is the same. */
void alloti_range_index_change(range_index *index, allot_space *space, uint32_t id);

/** By offset: the lowest range at or above `offset` of at least `size`; ALLOT_NONE for none. */
uint32_t alloti_range_index_lowest(const range_index *index, uint64_t offset, uint64_t size);

/** By offset: the highest range below `offset` of at least `size`; ALLOT_NONE for none. */
uint32_t alloti_range_index_highest(const range_index *index, uint64_t offset, uint64_t size);

/** By size: the first range at or above (size, offset); ALLOT_NONE for none. */
uint32_t alloti_range_index_smallest(const range_index *index, uint64_t size, uint64_t offset);

/** Size of the largest range, 0 if there is none. */
uint64_t alloti_range_index_largest(const range_index *index);

/** Order, counts, levels, links and largest sizes are right, and there are `count` ranges. */
bool alloti_range_index_check(const range_index *index, const allot_space *space, uint64_t count);

#endif /* ALLOTI_SPACE_RANGE_INDEX_H */
