/* SPDX-License-Identifier: MIT */
#include "heap/trim.h"

#include <inttypes.h>

#include "heap/arena.h"
#include "heap/checkpoint.h"
#include "heap/front.h"
#include "heap/granules.h"
#include "heap/habits.h"
#include "heap/pending.h"

/** Of what a pool holds so much must be free before segments are given back for others. */
enum { IDLE_PART = 32 };

/** Whether a segment may be given back for one of a pool: its own pool's limit may ask for it. */
static bool is_of_pool(const allot_heap *heap, uint32_t segment, uint32_t pool)
{
    return pool == ALLOT_NONE || heap->arenas[heap->segments[segment].arena]->pool == pool;
}

/**
 * The segment to trim next for `size` bytes: the one with the least to give that suffices, else the
 * one with the most. ALLOT_NONE if none has anything.
 */
static uint32_t pick(const allot_heap *heap, uint32_t pool, uint64_t size, uint64_t *gives)
{
    uint32_t best = ALLOT_NONE;
    *gives = 0;
    for (uint32_t i = 0; i < heap->segment_count; i++) {
        if (heap->segments[i].address == 0 || !is_of_pool(heap, i, pool)) {
            continue;
        }
        const uint64_t here = alloti_segment_trimmable(heap, i);
        const bool suffices = here >= size;
        const bool best_suffices = best != ALLOT_NONE && *gives >= size;
        if (here != 0 && (best == ALLOT_NONE || (suffices && (!best_suffices || here < *gives)) ||
                          (!suffices && !best_suffices && here > *gives))) {
            best = i;
            *gives = here;
        }
    }
    return best;
}

/** Give back at least `size` bytes if that much is free. */
static allot_status trim(allot_heap *heap, uint32_t pool, uint64_t size, uint64_t *released)
{
    uint64_t done = 0;
    allot_status status = alloti_granules_release_spares(heap);
    while (done < size && status == ALLOT_STATUS_OK) {
        uint64_t gives = 0;
        const uint32_t index = pick(heap, pool, size - done, &gives);
        if (index == ALLOT_NONE) {
            break;
        }
        /* Work that was queued before the last frees may still use what goes back. */
        status = alloti_stream_synchronize(heap, heap->arenas[heap->segments[index].arena]->stream);
        if (status == ALLOT_STATUS_OK) {
            status = alloti_segment_trim(heap, index, size - done, &done);
        }
    }
    *released += done;
    return status;
}

allot_status alloti_trim_all(allot_heap *heap, uint64_t *released)
{
    return trim(heap, ALLOT_NONE, UINT64_MAX, released);
}

/** Bytes that must go so that `size` more stay within a limit. */
static uint64_t excess(uint64_t limit, uint64_t held, uint64_t size)
{
    if (limit == 0 || size > limit || held <= limit - size) {
        return 0;
    }
    return held - (limit - size);
}

allot_status alloti_trim_for(allot_heap *heap, const heap_ask *ask, uint64_t *released)
{
    const uint32_t pool = heap->arenas[ask->arena]->pool;
    /* Where the device itself has no more, as much as is asked for. */
    const uint64_t of_heap = excess(heap->options.limit, heap->held, ask->size);
    const uint64_t of_pool = excess(heap->pools[pool]->limit, heap->pools[pool]->held, ask->size);
    allot_status status = ALLOT_STATUS_OK;
    if (of_pool != 0) {
        status = trim(heap, pool, of_pool, released);
    }
    if (status == ALLOT_STATUS_OK && *released < of_heap) {
        status = trim(heap, ALLOT_NONE, of_heap - *released, released);
    }
    if (status == ALLOT_STATUS_OK && of_heap == 0 && of_pool == 0) {
        status = trim(heap, ALLOT_NONE, ask->size, released);
    }
    return status;
}

/* ---- trading in ---- */

/** Whether to give back first: growing is allowed and would be a new peak, and enough is free. */
static bool is_worth_it(const allot_heap *heap, uint32_t index, uint64_t size, heap_bound bound)
{
    const heap_pool *const pool = heap->pools[index];
    return pool->habits != NULL && pool->held - pool->active >= pool->held / IDLE_PART &&
           pool->held + size > pool->meters.reserved_bytes.peak &&
           alloti_segment_may_hold(heap, index, size, bound) == ALLOT_STATUS_OK;
}

/** See how far the streams of a pool have come. */
static allot_status look_at_streams(allot_heap *heap, uint32_t pool)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < heap->arena_count && status == ALLOT_STATUS_OK; i++) {
        const heap_arena *const arena = heap->arenas[i];
        if (arena->pool == pool && arena->count != 0) {
            status = alloti_checkpoint_look(heap, arena->stream);
        }
    }
    return status;
}

/** Whether a segment of a pool has no blocks, and no work of its stream can use it any more. */
static bool is_idle(const allot_heap *heap, uint32_t segment, uint32_t pool)
{
    const heap_segment *const s = &heap->segments[segment];
    return s->address != 0 && s->active_count == 0 && is_of_pool(heap, segment, pool) &&
           s->emptied_at < heap->streams[heap->arenas[s->arena]->stream]->reached;
}

/** The smallest idle segment of at least so many bytes; ALLOT_NONE: there is none. */
static uint32_t find_idle(const allot_heap *heap, uint32_t pool, uint64_t size)
{
    uint32_t best = ALLOT_NONE;
    for (uint32_t i = 0; i < heap->segment_count; i++) {
        if (is_idle(heap, i, pool) && heap->segments[i].held >= size &&
            (best == ALLOT_NONE || heap->segments[i].held < heap->segments[best].held)) {
            best = i;
        }
    }
    return best;
}

void alloti_trim_idle(allot_heap *heap, const heap_ask *ask, heap_bound bound)
{
    const uint32_t pool = heap->arenas[ask->arena]->pool;
    const uint64_t size = alloti_habits_segment_size(heap, ask->arena, ask->size) +
                          alloti_segment_slack(heap, ask->align);
    if (!is_worth_it(heap, pool, size, bound) || look_at_streams(heap, pool) != ALLOT_STATUS_OK) {
        return;
    }
    const uint32_t one = find_idle(heap, pool, size);
    uint64_t done = 0;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = one == ALLOT_NONE ? 0 : one;
         i < heap->segment_count && done < size && status == ALLOT_STATUS_OK; i++) {
        if (is_idle(heap, i, pool)) {
            status = alloti_segment_trim(heap, i, size - done, &done);
        }
    }
}

/* ---- calls ---- */

/** Give back what is free above `target`. */
static allot_status trim_to(allot_heap *heap, uint64_t target, uint64_t *released)
{
    (void)alloti_front_flush_all(heap);
    allot_status status = alloti_pending_collect(heap);
    if (status == ALLOT_STATUS_OK && heap->held > target) {
        status = trim(heap, ALLOT_NONE, heap->held - target, released);
    }
    if (status == ALLOT_STATUS_OK && heap->held > target) {
        /* What else is free still waits for its streams. */
        status = alloti_pending_wait(heap);
        if (status == ALLOT_STATUS_OK && heap->held > target) {
            status = trim(heap, ALLOT_NONE, heap->held - target, released);
        }
    }
    return status;
}

allot_status allot_heap_trim(allot_heap *heap, uint64_t target, uint64_t *released)
{
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t done = 0;
    status = trim_to(heap, target, &done);
    if (released != NULL) {
        *released = done;
    }
    return heap_leave(heap, status);
}

static allot_status set_limit(allot_heap *heap, uint64_t limit)
{
    if (limit != 0 && heap->held > limit) {
        uint64_t released = 0;
        const allot_status status = trim_to(heap, limit, &released);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    heap->options.limit = limit;
    if (limit == 0 || heap->held <= limit) {
        return ALLOT_STATUS_OK;
    }
    return alloti_fail(ALLOT_STATUS_BUDGET,
                       "%" PRIu64 " bytes are held, of which blocks keep more than the limit of "
                       "%" PRIu64,
                       heap->held, limit);
}

allot_status allot_heap_set_limit(allot_heap *heap, uint64_t limit)
{
    const allot_status status = alloti_heap_enter(heap);
    return status == ALLOT_STATUS_OK ? heap_leave(heap, set_limit(heap, limit)) : status;
}

allot_status alloti_limit_of_fraction(const allot_device_info *info, double fraction, uint64_t *out)
{
    if (!(fraction > 0 && fraction <= 1)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a limit of %g of the memory: above 0, at most 1",
                           fraction);
    }
    const double bytes = (double)info->memory_total * fraction;
    *out = fraction == 1 ? info->memory_total : (uint64_t)bytes;
    return ALLOT_STATUS_OK;
}

allot_status allot_heap_set_limit_fraction(allot_heap *heap, double fraction)
{
    uint64_t limit = 0;
    const allot_status status = alloti_limit_of_fraction(&heap->info, fraction, &limit);
    return status == ALLOT_STATUS_OK ? allot_heap_set_limit(heap, limit) : status;
}

allot_status allot_heap_set_limit_soft(allot_heap *heap, uint64_t limit)
{
    const allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap->options.limit_soft = limit;
    return heap_leave(heap, status);
}
