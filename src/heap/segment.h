/* SPDX-License-Identifier: MIT */
/**
 * Segments: memory of the device. In mode SEGMENTS one allocation each; in mode VIRTUAL reserved
 * addresses, in which granules are mapped where blocks are (granules.h).
 *
 * Each call that asks the device several times undoes what it did when one is refused.
 */
#ifndef ALLOTI_HEAP_SEGMENT_H
#define ALLOTI_HEAP_SEGMENT_H

#include "heap/heap.h"

/** Up to where a heap may grow. */
typedef enum heap_bound {
    HEAP_BOUND_NONE, /**< What is held must do, where it is. */
    HEAP_BOUND_LENT, /**< What is held must do; free granules may be mapped elsewhere. */
    HEAP_BOUND_SOFT,
    HEAP_BOUND_HARD,
} heap_bound;

/** Bytes that a segment is longer, so that its space can begin at a multiple of `align`. */
uint64_t alloti_segment_slack(const allot_heap *heap, uint64_t align);

/** Whether `size` more bytes may be held: ALLOT_STATUS_BUDGET with the limit if not. */
ALLOT_NODISCARD allot_status alloti_segment_may_hold(const allot_heap *heap, uint32_t pool,
                                                     uint64_t size, heap_bound bound);

/** Whether a request of `size` bytes is above a limit by itself, so that nothing can be done. */
bool alloti_segment_is_too_large(const allot_heap *heap, uint32_t pool, uint64_t size);

/** Round size and alignment of a request as a pool's spaces do. */
ALLOT_NODISCARD allot_status alloti_segment_round(const allot_heap *heap, uint32_t pool,
                                                  uint64_t *size, uint64_t *align);

/**
 * Let an arena have a free range for a request: a new segment, or a longer one.
 *
 * @param[in]  size, align  From alloti_segment_round().
 * @param[out] fresh        The new segment, also if the call fails after that; else untouched.
 * @return ALLOT_STATUS_OK, and in mode VIRTUAL the range is not mapped yet; ALLOT_STATUS_BUDGET;
 *         ALLOT_STATUS_DEVICE_MEMORY; ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_BACKEND.
 */
ALLOT_NODISCARD allot_status alloti_segment_grow(allot_heap *heap, uint32_t arena, uint64_t size,
                                                 uint64_t align, heap_bound bound, uint32_t *fresh);

/** Undo that for a request that was not placed after all: `fresh` as told, or ALLOT_NONE. */
void alloti_segment_undo_growth(allot_heap *heap, uint32_t arena, uint32_t fresh);

/** A segment of `size` bytes; in mode VIRTUAL so many addresses, with a space of no capacity. */
ALLOT_NODISCARD allot_status alloti_segment_create(allot_heap *heap, uint32_t arena, uint64_t size,
                                                   uint64_t align, uint32_t *out);

/** Give a segment without blocks back. Its stream's work was waited for. */
ALLOT_NODISCARD allot_status alloti_segment_release(allot_heap *heap, uint32_t segment);

/** Give a segment's memory back, blocks or not: at the end of a heap. Its place stays. */
ALLOT_NODISCARD allot_status alloti_segment_abandon(allot_heap *heap, uint32_t segment);

/** Bytes that alloti_segment_trim() can give back. */
uint64_t alloti_segment_trimmable(const allot_heap *heap, uint32_t index);

/**
 * Give up to `size` free bytes back, rounded up to granules or the segment, which is gone then.
 * *released is added to. The stream's work was waited for.
 */
ALLOT_NODISCARD allot_status alloti_segment_trim(allot_heap *heap, uint32_t segment, uint64_t size,
                                                 uint64_t *released);

/** @name Ranges of a segment, counted
 * @{ */
ALLOT_NODISCARD allot_status alloti_segment_place(allot_heap *heap, uint32_t segment, uint64_t size,
                                                  uint64_t align, uint32_t tag, allot_range *out);
/** The same at an offset that is given: ALLOT_STATUS_FRAGMENTED if that is not free. `near`: a
 * range from which it is looked for, or ALLOT_NONE. */
ALLOT_NODISCARD allot_status alloti_segment_take(allot_heap *heap, uint32_t segment, uint32_t near,
                                                 uint64_t offset, uint64_t size, uint32_t tag,
                                                 allot_range *out);
/** alloti_space_slide(), after alloti_space_reserve_slide(). */
void alloti_segment_slide(allot_heap *heap, uint32_t index, uint32_t range, uint64_t offset);
ALLOT_NODISCARD allot_status alloti_segment_give_back(allot_heap *heap, uint32_t segment,
                                                      uint32_t range, uint64_t size);
ALLOT_NODISCARD allot_status alloti_segment_resize(allot_heap *heap, uint32_t segment,
                                                   uint32_t range, uint64_t size, allot_range *out);
/** @} */

/** A segment goes to another arena of its pool, which has room for it, and is counted there. */
void alloti_segment_move(allot_heap *heap, uint32_t index, uint32_t arena);

/** Count bytes in `pieces` that a segment got from the device, or gave back. */
void alloti_segment_hold(allot_heap *heap, uint32_t index, uint64_t size, uint64_t pieces);
void alloti_segment_let_go(allot_heap *heap, uint32_t index, uint64_t size, uint64_t pieces);

/** What is known of segments is forgotten, without asking the device. */
void alloti_segments_fini(allot_heap *heap);

#endif /* ALLOTI_HEAP_SEGMENT_H */
