/* SPDX-License-Identifier: MIT */
/** What is counted of blocks: for the heap, the pool and the stream. Under the heap's lock. */
#ifndef ALLOTI_HEAP_STATS_H
#define ALLOTI_HEAP_STATS_H

#include "heap/front.h"

/** A block is handed out: `allocation` and what belongs to it. */
void alloti_count_allocated(allot_heap *heap, const heap_block *block);
void alloti_count_freed(allot_heap *heap, const heap_block *block);

/** A block's memory is in use, or is free again: `active`. */
void alloti_count_active(allot_heap *heap, const heap_block *block);
void alloti_count_inactive(allot_heap *heap, const heap_block *block);

/** What an arena's front handed out comes into the meters; it is empty. */
void alloti_count_front(allot_heap *heap, uint32_t arena, const front_sums *sums,
                        const uint64_t *histogram);

#endif /* ALLOTI_HEAP_STATS_H */
