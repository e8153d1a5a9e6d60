/* SPDX-License-Identifier: MIT */
#include "heap/place.h"

#include "heap/arena.h"
#include "heap/granules.h"
#include "heap/habits.h"
#include "heap/pending.h"
#include "heap/trim.h"

/** Free ranges that lack granules, after which no further one is looked for. */
enum { SEARCH_MORE = 4 };

static allot_status fits_nowhere(const heap_ask *ask)
{
    return alloti_fail(ALLOT_STATUS_FRAGMENTED, "no free range has %llu bytes",
                       (unsigned long long)ask->size);
}

static uint32_t tag_of(const allot_heap *heap, const heap_ask *ask)
{
    return alloti_habits_tag(heap, ask->arena, ask->request.tag);
}

/**
 * Place a request in a segment. A free range may lack granules, while another one that the space
 * does not offer first has all of them: where nothing can be mapped, so many more are tried while
 * those before are kept taken.
 */
static allot_status place_in(allot_heap *heap, uint32_t segment, heap_ask *ask, heap_bound bound,
                             int more)
{
    allot_range range;
    allot_status status =
        alloti_segment_place(heap, segment, ask->size, ask->align, tag_of(heap, ask), &range);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (heap->is_virtual) {
        status = alloti_granules_commit(heap, segment, range.offset, range.size, bound);
    }
    if (status == ALLOT_STATUS_OK) {
        ask->segment = segment;
        ask->range = range;
        return status;
    }
    if (bound == HEAP_BOUND_NONE && more > 0 && heap_is_no_room(status)) {
        status = place_in(heap, segment, ask, bound, more - 1);
    }
    /* The space has room for this: it had the range free a moment ago. */
    const allot_status undone = alloti_segment_give_back(heap, segment, range.id, range.size);
    if (undone != ALLOT_STATUS_OK) {
        return undone;
    }
    alloti_granules_settle(heap, segment);
    return status;
}

allot_status alloti_place_in_segment(allot_heap *heap, uint32_t segment, heap_ask *ask,
                                     heap_bound bound)
{
    return place_in(heap, segment, ask, bound, SEARCH_MORE);
}

/** Whether a request may go into the i-th segment of an arena, as far as its free ranges tell. */
static bool is_candidate(const allot_heap *heap, const heap_arena *arena, uint32_t i, heap_ask *ask)
{
    const uint32_t segment = arena->segments[i];
    if (arena->largest[i] < ask->size ||
        (heap->segments[segment].address & (ask->align - 1)) != 0) {
        return false;
    }
    if (ask->takes_spared || !alloti_habits_spare(heap, segment, ask->size, tag_of(heap, ask))) {
        return true;
    }
    ask->saw_spared = true;
    return false;
}

allot_status alloti_place_in(allot_heap *heap, uint32_t index, heap_ask *ask, heap_bound bound)
{
    const heap_arena *const arena = heap->arenas[index];
    allot_status mapping = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < arena->count; i++) {
        const uint32_t segment = arena->segments[i];
        if (!is_candidate(heap, arena, i, ask)) {
            continue;
        }
        const allot_status status = alloti_place_in_segment(heap, segment, ask, bound);
        if (!heap_is_no_room(status)) {
            return status;
        }
        mapping = status == ALLOT_STATUS_FRAGMENTED ? mapping : status;
    }
    return mapping == ALLOT_STATUS_OK ? fits_nowhere(ask) : mapping;
}

allot_status alloti_place_growing(allot_heap *heap, heap_ask *ask, heap_bound bound)
{
    allot_status status = alloti_place_in(heap, ask->arena, ask, bound);
    if (!heap_is_no_room(status)) {
        return status;
    }
    uint32_t fresh = ALLOT_NONE;
    alloti_trim_idle(heap, ask, bound);
    status = alloti_segment_grow(heap, ask->arena, ask->size, ask->align, bound, &fresh);
    if (status == ALLOT_STATUS_OK) {
        status = fresh == ALLOT_NONE ? alloti_place_in(heap, ask->arena, ask, bound)
                                     : alloti_place_in_segment(heap, fresh, ask, bound);
    }
    if (status == ALLOT_STATUS_OK) {
        ask->fresh = fresh;
    } else {
        alloti_segment_undo_growth(heap, ask->arena, fresh);
    }
    return status;
}

static bool has_room(const allot_heap *heap, const heap_arena *arena, heap_ask *ask)
{
    for (uint32_t i = 0; i < arena->count; i++) {
        if (is_candidate(heap, arena, i, ask)) {
            return true;
        }
    }
    return false;
}

void alloti_place_end(allot_heap *heap, const heap_ask *ask, bool stays)
{
    if (heap->is_virtual) {
        alloti_granules_end(heap, ask->segment, ask->range.offset, ask->range.size, stays);
    }
    if (!stays) {
        alloti_segment_undo_growth(heap, heap->segments[ask->segment].arena, ask->fresh);
    }
}

allot_status alloti_place_order(allot_heap *heap, allot_stream stream, uint32_t after, bool waits)
{
    allot_event event = {0};
    allot_status status = alloti_event_take(heap, &event);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = allot_device_event_record(heap->device, event, heap->streams[after]->stream);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_event_query(heap->device, event);
    }
    if (status == ALLOT_STATUS_BUSY && waits) {
        status = allot_device_stream_wait(heap->device, stream, event);
    }
    alloti_event_put(heap, event);
    return status;
}

allot_status alloti_place_elsewhere(allot_heap *heap, uint32_t pool, heap_ask *ask, bool waits)
{
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        const heap_arena *const arena = heap->arenas[i];
        if (i == ask->arena || arena->is_dead || arena->pool != pool ||
            !has_room(heap, arena, ask)) {
            continue;
        }
        allot_status status = alloti_place_order(heap, ask->request.stream, arena->stream, waits);
        if (status == ALLOT_STATUS_BUSY) {
            continue;
        }
        if (status == ALLOT_STATUS_OK) {
            status = alloti_place_in(heap, i, ask, HEAP_BOUND_NONE);
        }
        if (!heap_is_no_room(status)) {
            return status;
        }
    }
    return fits_nowhere(ask);
}
