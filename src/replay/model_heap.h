/* SPDX-License-Identifier: MIT */
/**
 * What is behind a "heap:..." model: a heap of <allot/heap.h> over a simulated device of its own.
 * Options and table: model_heap.c; requests: heap_blocks.c; streams: heap_streams.c; what is held:
 * heap_survey.c.
 */
#ifndef ALLOTI_REPLAY_MODEL_HEAP_H
#define ALLOTI_REPLAY_MODEL_HEAP_H

#include <allot/compactor.h>

#include "core/map64.h"
#include "core/parameters.h"
#include "replay/model.h"

/** When the heap compacts: the values of compact=. */
enum {
    ALLOTI_HEAP_COMPACT_OFF,
    ALLOTI_HEAP_COMPACT_TRIM,   /**< Never; free memory goes back when AUTO would compact. */
    ALLOTI_HEAP_COMPACT_FORCED, /**< Where a request would not fit otherwise: the heap's ladder. */
    ALLOTI_HEAP_COMPACT_FULL,   /**< That, and the whole heap where it still does not. */
    ALLOTI_HEAP_COMPACT_AUTO,   /**< That, and where too large a share is free, if it pays. */
    ALLOTI_HEAP_COMPACT_STEPS,  /**< As AUTO, so many bytes at each request until it is done. */
};

/** A block handed out, or a slot for one. */
typedef struct alloti_heap_block {
    uint64_t name; /**< Value of its handle, or its address; 0: the slot is empty. */
    uint64_t size; /**< After the heap's rounding. */
    uint32_t next; /**< Of the empty slots, ALLOT_NONE at the end. */
    bool is_pending;
} alloti_heap_block;

typedef struct alloti_heap_model {
    alloti_model model; /**< First: a model is a pointer to this. */
    allot_space_strategy strategy;
    uint32_t is_segmented; /**< Else mode VIRTUAL. */
    uint32_t is_movable;   /**< Blocks are handles, else pointers. */
    uint32_t compacts;     /**< ALLOTI_HEAP_COMPACT_... */
    double threshold;      /**< TRIM, AUTO, STEPS: share of what is held that may be free. */
    uint64_t free_settled; /**< Bytes that were free when it was last compacted. */
    uint64_t step;         /**< STEPS: bytes to move at a request. */
    bool is_stepping;      /**< The compactor has a task. */
    uint64_t segment;      /**< Least size of a segment. */
    char gpu[ALLOTI_PARAMETER_TEXT_MAX];
    uint64_t memory; /**< Of the device. */

    allot_device *device;
    allot_device_info info;
    allot_heap *heap;
    allot_compactor *compactor; /**< STEPS; else NULL. */
    allot_heap_pool *pools;     /**< [pool_count] */
    uint32_t pool_count;

    alloti_map64 stream_numbers; /**< Of recorded streams: index in `streams`. */
    allot_stream *streams;       /**< [stream_count] */
    uint64_t streams_capacity;
    uint32_t stream_count;

    alloti_heap_block *blocks; /**< [block_count] */
    uint64_t blocks_capacity;
    uint32_t block_count;
    uint32_t block_spare;
    uint64_t pending_size; /**< Freed by the program, and still used by another stream. */
} alloti_heap_model;

/** The device's stream for a recorded one, made on first use. */
ALLOT_NODISCARD allot_status alloti_heap_stream(alloti_heap_model *self, uint64_t recorded,
                                                allot_stream *out);

/** Bring the model's statistics up to date. */
void alloti_heap_note(alloti_heap_model *self);

/** Note what the heap copied since `before`: nothing but compaction copies here. */
ALLOT_NODISCARD allot_status alloti_heap_note_compaction(alloti_heap_model *self,
                                                         const alloti_model_stats *before);

/** TRIM, AUTO, STEPS: give back what is free if that is too much, and more than before; the last
 * two compact first if that pays. */
ALLOT_NODISCARD allot_status alloti_heap_keep_small(alloti_heap_model *self);

/** Compact the whole heap, and give back what has become free. */
ALLOT_NODISCARD allot_status alloti_heap_compact_all(alloti_heap_model *self);

/** @name Operations for an alloti_model_ops @{ */
allot_status alloti_heap_model_alloc(alloti_model *model, uint64_t size, uint64_t stream,
                                     uint32_t pool, uint64_t *block);
allot_status alloti_heap_model_free(alloti_model *model, uint64_t block, bool is_shared);
allot_status alloti_heap_model_complete(alloti_model *model, uint64_t block);
void alloti_heap_model_survey(const alloti_model *model, alloti_model_survey *out);
/** @} */

#endif /* ALLOTI_REPLAY_MODEL_HEAP_H */
