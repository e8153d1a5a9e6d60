/* SPDX-License-Identifier: MIT */
/**
 * What an adaptive pool of mode SEGMENTS has learned of its requests, and what it makes of that.
 *
 * - A new segment is at most a quarter of what the pool holds, unless the request is larger: a
 *   small pool stays small. A size for which the pool grew before gets segments of a whole number
 *   of such requests, so that no rest is left that suits nothing.
 * - A segment without blocks that is clearly longer than what a request would have got is *spared*:
 *   the request gets a segment of its own, and the large one stays whole for the next request of
 *   its size. But not if the request's kind (size, tag, stream) goes clearly sooner than such a
 *   segment is asked for again: that is learned for each size, as the period of its use. Where
 *   nothing else is left, spared segments are used like others.
 * - Before the pool grows, segments without blocks go back to the device (alloti_trim_idle()).
 */
#ifndef ALLOTI_HEAP_HABITS_H
#define ALLOTI_HEAP_HABITS_H

#include "heap/heap.h"
#include "space/lifetimes.h"

struct heap_habits {
    alloti_lifetimes lifetimes; /**< Of its blocks; its spaces go by them. */
    /** By size and stream: requests from when a segment ran empty to the next one of its size. */
    lifetime waits[LIFETIME_KINDS];
    uint32_t emptied_at[LIFETIME_KINDS]; /**< By the clock of lifetimes. */
    bool is_empty[LIFETIME_KINDS];       /**< Since then nobody has asked. */
    bool has_grown[LIFETIME_KINDS];      /**< By size and stream: for a request of such a size. */
};

/** Whether a pool learns: the others have no habits. */
bool alloti_habits_are_learned(const allot_heap *heap, allot_space_strategy strategy);

/** By what a request's kind is learned, in a pool that learns: its tag, and its stream. */
uint32_t alloti_habits_tag(const allot_heap *heap, uint32_t arena, uint32_t tag);

/** Bytes of a new segment for a request of an arena. */
uint64_t alloti_habits_segment_size(const allot_heap *heap, uint32_t arena, uint64_t size);

/** Whether a segment is spared by a request; `tag` from alloti_habits_tag(). */
bool alloti_habits_spare(const allot_heap *heap, uint32_t index, uint64_t size, uint32_t tag);

/** An arena got a new segment for a request. */
void alloti_habits_note_growth(allot_heap *heap, uint32_t arena, uint64_t size);

/** A block was handed out; its place is free again. What lies in between counts as its life, also
 * if it moved, or was in a front cache in between. */
void alloti_habits_begin(allot_heap *heap, heap_block *block);
void alloti_habits_end(allot_heap *heap, const heap_block *block);

/** A segment has no blocks any more. */
void alloti_habits_note_empty(allot_heap *heap, uint32_t index);

#endif /* ALLOTI_HEAP_HABITS_H */
