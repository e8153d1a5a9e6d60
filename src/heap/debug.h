/* SPDX-License-Identifier: MIT */
/** What is written over blocks: red zones and poison of debug heaps, and scrubbing. */
#ifndef ALLOTI_HEAP_DEBUG_H
#define ALLOTI_HEAP_DEBUG_H

#include "heap/heap.h"

/** A block was placed and is about to be handed out: red zones, poison, scrubbing, on its stream.
 */
ALLOT_NODISCARD allot_status alloti_debug_before_use(allot_heap *heap, const heap_block *block);

/** A block is about to have `size` bytes where it is, more than now or fewer: scrubbing of what it
 * gets, or loses. */
ALLOT_NODISCARD allot_status alloti_debug_before_growth(allot_heap *heap, const heap_block *block,
                                                        uint64_t size);
ALLOT_NODISCARD allot_status alloti_debug_before_shrinking(allot_heap *heap,
                                                           const heap_block *block, uint64_t size);

/** A block's bytes were copied down by `distance`: poison or scrubbing of the end of what it had.
 */
ALLOT_NODISCARD allot_status alloti_debug_before_sliding(allot_heap *heap, const heap_block *block,
                                                         uint64_t distance);

/** A block is about to be freed: ALLOT_STATUS_MISMATCH if its red zones were written to. Waits for
 * its stream, in debug heaps only. */
ALLOT_NODISCARD allot_status alloti_debug_check(allot_heap *heap, const heap_block *block);

/** A block that nobody uses any more is about to be free: poison or scrubbing, on the stream of its
 * segment. */
ALLOT_NODISCARD allot_status alloti_debug_before_reuse(allot_heap *heap, const heap_block *block);

#endif /* ALLOTI_HEAP_DEBUG_H */
