/* SPDX-License-Identifier: MIT */
/**
 * Compaction without a plan, one block at a time, for heaps that take longer to plan than there is
 * time. Arena by arena: the blocks of the emptiest segment go into fuller ones, for each segment
 * that the others have room for; then those at the high end of each segment go to lower places in
 * it. What is where is looked up when a block is moved, so nothing is outdated by what happens in
 * between.
 */
#ifndef ALLOTI_COMPACT_SWEEP_H
#define ALLOTI_COMPACT_SWEEP_H

#include "heap/heap.h"

enum { SWEEP_BATCH = 256 };

/** Where a sweep is. Zero-initialise. */
typedef struct compact_sweep {
    bool is_begun;
    bool is_done;
    uint32_t arena;
    bool is_downward; /**< Within segments; else from segment to segment. */
    uint32_t left;    /**< Segments of the arena to go, in this direction. */
    /** The last segment looked at: by active bytes, then by number. */
    uint64_t last_active;
    uint32_t last_segment;
    uint32_t segment; /**< Whose blocks are moved now; ALLOT_NONE: none. */
    uint64_t address; /**< Its address, by which it is known to be the same. */
    /** Blocks to move, by falling offset; the last one stays here until the next are looked up. */
    allot_handle batch[SWEEP_BATCH];
    uint32_t count;
    uint32_t at;
    bool is_last;          /**< Below the last one there are no more. */
    uint32_t restarts;     /**< Times that the last one was gone when it was needed. */
    uint64_t size_blocked; /**< Bytes of blocks seen that could not be moved. */
} compact_sweep;

/** What a piece may cost, and what it did. */
typedef struct sweep_piece {
    uint64_t time_max_ns; /**< No move that is predicted to take longer; UINT64_MAX: no bound. */
    uint64_t bytes_max;   /**< No larger block; UINT64_MAX: no bound. */
    double weight;        /**< A segment is worth weight times the bytes moved out of it. */
    uint64_t moved;       /**< Blocks: 0 or 1. */
    uint64_t bytes;
    uint64_t skipped; /**< 0 or 1. */
    uint64_t
        refused; /**< Bytes of the next block, if it is above time_max_ns or bytes_max; or 0. */
} sweep_piece;

/** A move, or a look for blocks to move. Called with no lock held. What copying returned if that
 * failed: the block is where it was. */
ALLOT_NODISCARD allot_status alloti_sweep_piece(allot_heap *heap, compact_sweep *sweep,
                                                sweep_piece *piece);

#endif /* ALLOTI_COMPACT_SWEEP_H */
