/* SPDX-License-Identifier: MIT */
/**
 * A copy of what compaction has to know of a heap: its segments ("areas") and what lies in them.
 * Plans are made of the copy, so that the heap is locked only while it is read.
 */
#ifndef ALLOTI_COMPACT_STATE_H
#define ALLOTI_COMPACT_STATE_H

#include "heap/heap.h"

/** Alignments above this are not planned with: blocks that have one stay. */
#define COMPACT_ALIGN_MAX (UINT64_C(1) << 30)

/** A segment. */
typedef struct compact_area {
    uint32_t segment;
    uint32_t arena;
    uint64_t address;
    uint64_t capacity; /**< Of its space. */
    uint64_t held;     /**< Bytes from the device. */
    uint64_t size_movable;
    uint64_t size_fixed; /**< Of blocks that cannot be moved. */
    uint64_t size_wall;  /**< Without memory. */
    uint32_t first;      /**< Of its blocks, which follow one another by offset. */
    uint32_t count;
} compact_area;

/** A used range of an area, or a part of it without memory. */
typedef struct compact_block {
    uint32_t area;
    uint64_t offset;
    uint64_t size;
    uint64_t align;
    allot_handle handle; /**< 0: a part without memory. */
    uint64_t requested;  /**< Bytes that a move copies. */
    bool is_movable;
    bool is_wall;
} compact_block;

typedef struct compact_state {
    allot_device_info info;
    /** Layouts keep addresses modulo this: the largest alignment of blocks, at least 2 MiB. */
    uint64_t phase;
    bool waits; /**< Blocks that other streams use can be moved. */
    bool is_virtual;
    uint64_t granule;    /**< Of blocks. */
    compact_area *areas; /**< Those of an arena follow one another by address. [area_count] */
    uint64_t areas_capacity;
    uint32_t area_count;
    compact_block *blocks; /**< [block_count] */
    uint64_t blocks_capacity;
    uint32_t block_count;
} compact_state;

/** Read a heap, under its lock; ALLOT_STATUS_HOST_MEMORY. O(ranges + granules). */
ALLOT_NODISCARD allot_status alloti_compact_state_read(allot_heap *heap, bool waits,
                                                       compact_state *out);
void alloti_compact_state_fini(compact_state *state);

#endif /* ALLOTI_COMPACT_STATE_H */
