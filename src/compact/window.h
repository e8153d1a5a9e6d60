/* SPDX-License-Identifier: MIT */
/**
 * Where room for a request can be made with the fewest bytes moved: windows of a segment in which
 * every block can be moved away. Planning only; nothing is changed.
 */
#ifndef ALLOTI_COMPACT_WINDOW_H
#define ALLOTI_COMPACT_WINDOW_H

#include "heap/heap.h"

/** A part of a segment's space that a request would get. */
typedef struct compact_window {
    uint32_t segment;
    uint64_t begin;
    uint64_t end;
    uint64_t cost; /**< Bytes of the blocks in it; UINT64_MAX: no window was found. */
} compact_window;

/** A range of a segment. */
typedef struct compact_item {
    uint64_t offset;
    uint64_t size;
    uint32_t block; /**< ALLOT_NONE: it is free. */
    bool is_fixed;  /**< A block that cannot be moved now, or no memory is mapped there. */
} compact_item;

/** The ranges of a segment, by offset. Zero-initialise. [count] */
typedef struct compact_map {
    compact_item *items;
    uint64_t count;
    uint64_t capacity;
} compact_map;

/** Whether a block can be moved now: a handle that is not pinned, used by its own stream only,
 * whose order is that of the segment. */
bool alloti_compact_can_move(const heap_block *block);

/** Whether alloti_block_carry() failed because the block was pinned, freed or dropped meanwhile. */
bool alloti_compact_is_changed(allot_status status);

/** Read the ranges of a segment; ALLOT_STATUS_HOST_MEMORY. O(ranges + granules). */
ALLOT_NODISCARD allot_status alloti_compact_read(const allot_heap *heap, uint32_t segment,
                                                 compact_map *out);
void alloti_compact_map_fini(compact_map *map);

/**
 * The cheapest window of `size` bytes, whose begin is a multiple of `align`, of those that cost
 * nothing or more than `floor`; *best is replaced if there is one that is cheaper. O(ranges).
 */
void alloti_compact_find(const compact_map *map, uint32_t segment, uint64_t size, uint64_t align,
                         uint64_t floor, compact_window *best);

#endif /* ALLOTI_COMPACT_WINDOW_H */
