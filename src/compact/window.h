/* SPDX-License-Identifier: MIT */
/**
 * Where room for a request can be made with the fewest bytes moved: windows of a segment in which
 * every block can be moved away. Planning only; nothing is changed.
 */
#ifndef ALLOTI_COMPACT_WINDOW_H
#define ALLOTI_COMPACT_WINDOW_H

#include "heap/heap.h"

/** A range of a segment's space that the request would get. */
typedef struct compact_window {
    uint32_t segment;
    uint64_t begin;
    uint64_t end;
    uint64_t cost; /**< Bytes of the blocks in it. */
} compact_window;

/** A block of a window. */
typedef struct compact_block {
    uint64_t offset;
    uint64_t size;
    uint32_t block;
} compact_block;

/** The ranges of a segment, by offset. */
typedef struct compact_map {
    compact_block *items; /**< `block` is ALLOT_NONE where it is free; neighbours that cannot be
                             moved are left out. */
    uint64_t count;
    uint64_t capacity;
} compact_map;

/** The free ranges and movable blocks of a segment. ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_compact_read(const allot_heap *heap, uint32_t segment,
                                                 const uint32_t *owners, compact_map *out);

/**
 * The cheapest window of `size` bytes in a segment; *best is replaced if it is cheaper than that.
 * O(ranges).
 */
void alloti_compact_find(const compact_map *map, uint32_t segment, uint64_t size, uint64_t align,
                         compact_window *best);

#endif /* ALLOTI_COMPACT_WINDOW_H */
