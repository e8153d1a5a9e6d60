/* SPDX-License-Identifier: MIT */
/**
 * An ordered index of ranges: a B+ tree (Bayer, McCreight, 1972) whose inner nodes may know the
 * largest range below each child.
 *
 * Two orders. By offset, each inner entry holds the largest size below it, so that the lowest and
 * the highest range of at least some size are found in one descent. By size, ties by offset, it
 * holds the smallest pair below it.
 *
 * Wide nodes, because a lookup costs as many cache misses as the tree has levels: three at 100,000
 * ranges, where a binary tree has seventeen. Nodes lie in one array and are named by index. A node
 * is freed when it is empty and never merged with a neighbour before that (Johnson, Shasha, 1989:
 * under mixed inserts and deletes that wastes little and writes less).
 *
 * Not thread-safe: belongs to its space.
 */
#ifndef ALLOTI_SPACE_RANGE_INDEX_H
#define ALLOTI_SPACE_RANGE_INDEX_H

#include "core/status.h"

enum { RANGE_NODE_MAX = 32 };

/** `first` orders; see above for what `second` is. */
typedef struct range_node {
    uint64_t first[RANGE_NODE_MAX];
    uint64_t second[RANGE_NODE_MAX];
    uint32_t ref[RANGE_NODE_MAX]; /**< Leaf: the range's id; else a node. */
    uint32_t count;
    uint32_t level; /**< 0: leaf. Of a free node: the next one. */
} range_node;

typedef struct range_entry {
    uint64_t first;
    uint64_t second;
    uint32_t id;
} range_entry;

typedef struct range_index {
    range_node *nodes;
    uint64_t capacity;
    uint64_t used;       /**< Nodes that were ever used. */
    uint32_t free_node;  /**< ALLOT_NONE: none. */
    uint32_t free_count; /**< In that list. */
    uint32_t root;       /**< ALLOT_NONE: empty. */
    bool is_by_size;
} range_index;

void range_index_init(range_index *index, bool is_by_size);
void range_index_fini(range_index *index);

/** Make sure that the next `count` inserts cannot fail. ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status range_index_reserve(range_index *index, uint32_t count);

/** Add an entry; room for it was reserved. */
void range_index_insert(range_index *index, range_entry entry);

/** Take the entry with this key out; it is there. */
void range_index_remove(range_index *index, uint64_t first, uint64_t second);

/** Give an entry of an index by offset another place and size; its order among the others stays. */
void range_index_change(range_index *index, uint64_t offset, range_entry entry);

/** By offset: the lowest range at or above `offset` of at least `size`; false for none. */
bool range_index_lowest(const range_index *index, uint64_t offset, uint64_t size, range_entry *out);

/** By offset: the highest range below `offset` of at least `size`; false for none. */
bool range_index_highest(const range_index *index, uint64_t offset, uint64_t size,
                         range_entry *out);

/** By size: the smallest pair at or above (size, offset); false for none. */
bool range_index_smallest(const range_index *index, uint64_t size, uint64_t offset,
                          range_entry *out);

/** Size of the largest range, 0 if there is none. */
uint64_t range_index_largest(const range_index *index);

/** Order, counts, levels and largest sizes are right, and there are `count` entries. */
bool range_index_check(const range_index *index, uint64_t count);

#endif /* ALLOTI_SPACE_RANGE_INDEX_H */
