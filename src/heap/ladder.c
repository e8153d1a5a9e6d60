/* SPDX-License-Identifier: MIT */
#include "heap/ladder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heap/arena.h"
#include "heap/drop.h"
#include "heap/front.h"
#include "heap/pending.h"
#include "heap/pool.h"
#include "heap/record.h"
#include "heap/trim.h"

/** How often a pressure callback is asked for one request. */
enum { PRESSURE_MAX = 64 };

/** Room for what a device says. */
enum { DEVICE_TEXT_MAX = 256 };

const char *allot_rung_name(allot_rung rung)
{
    switch (rung) {
#define RUNG_NAME(name, spelling, text)                                                            \
    case ALLOT_RUNG_##name:                                                                        \
        return spelling;
        ALLOT_RUNG_LIST(RUNG_NAME)
#undef RUNG_NAME
    case ALLOT_RUNG_COUNT:
        break;
    }
    return "unknown";
}

const char *allot_rung_text(allot_rung rung)
{
    switch (rung) {
#define RUNG_TEXT(name, spelling, text)                                                            \
    case ALLOT_RUNG_##name:                                                                        \
        return text;
        ALLOT_RUNG_LIST(RUNG_TEXT)
#undef RUNG_TEXT
    case ALLOT_RUNG_COUNT:
        break;
    }
    return "unknown";
}

/** What the ladder did for one request so far. */
typedef struct climb {
    uint64_t tried[ALLOT_RUNG_COUNT];
    uint64_t gained[ALLOT_RUNG_COUNT];
    bool is_budget;               /**< A limit of the caller stood in the way of growing. */
    char device[DEVICE_TEXT_MAX]; /**< What the device said last; empty: it had no part in it. */
} climb;

static uint64_t bytes_free(const allot_heap *heap)
{
    return heap->held - heap->meters.active_bytes.current;
}

/** Whether the next rung may still help. */
static bool goes_on(allot_status status)
{
    return heap_is_no_room(status) || status == ALLOT_STATUS_BUSY;
}

static allot_status search(allot_heap *heap, heap_ask *ask)
{
    return alloti_place_in(heap, ask->arena, ask, HEAP_BOUND_NONE);
}

/* ---- rungs ---- */

static allot_status rung_search(allot_heap *heap, heap_ask *ask, climb *state)
{
    (void)state;
    return search(heap, ask);
}

static allot_status rung_collect(allot_heap *heap, heap_ask *ask, climb *state)
{
    (void)state;
    /* The front of the request's own stream: those of others serve their threads. */
    const uint64_t flushed = alloti_front_flush(heap, ask->arena);
    const uint64_t before = bytes_free(heap);
    const allot_status status = alloti_pending_collect(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return flushed != 0 || bytes_free(heap) != before ? search(heap, ask) : ALLOT_STATUS_FRAGMENTED;
}

static allot_status rung_share(allot_heap *heap, heap_ask *ask, climb *state)
{
    (void)state;
    return alloti_place_elsewhere(heap, heap->arenas[ask->arena]->pool, ask, false);
}

/** Search the request's own stream's memory, then that of streams that are idle. */
static allot_status search_all(allot_heap *heap, heap_ask *ask)
{
    const allot_status status = search(heap, ask);
    return goes_on(status)
               ? alloti_place_elsewhere(heap, heap->arenas[ask->arena]->pool, ask, false)
               : status;
}

/** After growing failed: what was spared is of use from now on. `status` if it does not help. */
static allot_status take_spared(allot_heap *heap, heap_ask *ask, allot_status status)
{
    const bool is_first = !ask->takes_spared;
    ask->takes_spared = true;
    if (!is_first || !ask->saw_spared) {
        return status;
    }
    const allot_status found = search_all(heap, ask);
    return goes_on(found) ? status : found;
}

static allot_status grow(allot_heap *heap, heap_ask *ask, climb *state, heap_bound bound)
{
    const allot_status status = alloti_place_growing(heap, ask, bound);
    state->is_budget = status == ALLOT_STATUS_BUDGET;
    if (status == ALLOT_STATUS_DEVICE_MEMORY) {
        (void)snprintf(state->device, sizeof state->device, "; the device: %s",
                       allot_error_detail());
    }
    return status == ALLOT_STATUS_OK ? status : take_spared(heap, ask, status);
}

static allot_status rung_grow_soft(allot_heap *heap, heap_ask *ask, climb *state)
{
    return grow(heap, ask, state, HEAP_BOUND_SOFT);
}

/** Drop blocks of a kind one by one, searching after each. */
static allot_status drop_until_it_fits(allot_heap *heap, heap_ask *ask, uint32_t flag)
{
    for (;;) {
        uint64_t size = 0;
        allot_status status = alloti_drop_one(heap, flag, &size);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        status = size == 0 ? ALLOT_STATUS_FRAGMENTED : search_all(heap, ask);
        if (size == 0 || !goes_on(status)) {
            return status;
        }
    }
}

static allot_status rung_drop_temporary(allot_heap *heap, heap_ask *ask, climb *state)
{
    (void)state;
    /* Before anything is lost, all fronts are emptied. */
    if (alloti_front_flush_all(heap) != 0) {
        const allot_status status = search_all(heap, ask);
        if (!goes_on(status)) {
            return status;
        }
    }
    return drop_until_it_fits(heap, ask, ALLOT_BLOCK_TEMPORARY);
}

static allot_status rung_drop_cached(allot_heap *heap, heap_ask *ask, climb *state)
{
    (void)state;
    return drop_until_it_fits(heap, ask, ALLOT_BLOCK_CACHED);
}

/** Let another part make room, where one is attached. */
static allot_status make_room_by(heap_make_room make_room, allot_heap *heap, heap_ask *ask)
{
    if (make_room == NULL) {
        return ALLOT_STATUS_FRAGMENTED;
    }
    const allot_status status = make_room(heap, ask->arena, ask->size, ask->align);
    return status == ALLOT_STATUS_OK ? search_all(heap, ask) : status;
}

/** Pages are brought together before bytes are. */
static allot_status rung_compact(allot_heap *heap, heap_ask *ask, climb *state)
{
    (void)state;
    if (heap->compact != NULL && heap->is_virtual) {
        const allot_status status = alloti_place_growing(heap, ask, HEAP_BOUND_LENT);
        if (!goes_on(status)) {
            return status;
        }
    }
    return make_room_by(heap->compact, heap, ask);
}

static allot_status rung_spill(allot_heap *heap, heap_ask *ask, climb *state)
{
    (void)state;
    return make_room_by(heap->spill, heap, ask);
}

static allot_status rung_grow(allot_heap *heap, heap_ask *ask, climb *state)
{
    return grow(heap, ask, state, HEAP_BOUND_HARD);
}

/** Free segments or granules go back, as few bytes as the request needs; then all of them. */
static allot_status rung_trim(allot_heap *heap, heap_ask *ask, climb *state)
{
    for (int all = 0; all < 2; all++) {
        uint64_t released = 0;
        allot_status status =
            all ? alloti_trim_all(heap, &released) : alloti_trim_for(heap, ask, &released);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        if (released != 0) {
            status = grow(heap, ask, state, HEAP_BOUND_HARD);
            if (!goes_on(status)) {
                return status;
            }
        }
    }
    return ALLOT_STATUS_FRAGMENTED;
}

static allot_status rung_wait(allot_heap *heap, heap_ask *ask, climb *state)
{
    const uint64_t before = bytes_free(heap);
    allot_status status = alloti_pending_wait(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (bytes_free(heap) != before) {
        status = search(heap, ask);
        if (!goes_on(status)) {
            return status;
        }
    }
    status = alloti_place_elsewhere(heap, heap->arenas[ask->arena]->pool, ask, true);
    if (!goes_on(status) || bytes_free(heap) == before) {
        return status;
    }
    return rung_trim(heap, ask, state);
}

static allot_status rung_pools(allot_heap *heap, heap_ask *ask, climb *state)
{
    (void)state;
    if (heap->arenas[ask->arena]->pool != 0) {
        return ALLOT_STATUS_FRAGMENTED;
    }
    for (uint32_t i = 1; i < heap->pool_count; i++) {
        if (heap->pools[i]->generation % 2 == 1 && heap->pools[i]->is_shared_on_oom) {
            const allot_status status = alloti_place_elsewhere(heap, i, ask, true);
            if (!goes_on(status)) {
                return status;
            }
        }
    }
    return ALLOT_STATUS_FRAGMENTED;
}

/** In the order of ALLOT_RUNG_LIST; PRESSURE is climbed without the lock. */
static allot_status (*const RUNGS[])(allot_heap *heap, heap_ask *ask, climb *state) = {
    [ALLOT_RUNG_SEARCH] = rung_search,
    [ALLOT_RUNG_COLLECT] = rung_collect,
    [ALLOT_RUNG_SHARE] = rung_share,
    [ALLOT_RUNG_GROW_SOFT] = rung_grow_soft,
    [ALLOT_RUNG_DROP_TEMPORARY] = rung_drop_temporary,
    [ALLOT_RUNG_DROP_CACHED] = rung_drop_cached,
    [ALLOT_RUNG_COMPACT] = rung_compact,
    [ALLOT_RUNG_SPILL] = rung_spill,
    [ALLOT_RUNG_GROW] = rung_grow,
    [ALLOT_RUNG_TRIM] = rung_trim,
    [ALLOT_RUNG_WAIT] = rung_wait,
    [ALLOT_RUNG_POOLS] = rung_pools,
};

/* ---- climbing ---- */

static allot_status climb_one(allot_heap *heap, heap_ask *ask, climb *state, size_t rung)
{
    const uint64_t before = bytes_free(heap);
    state->tried[rung]++;
    const allot_status status = RUNGS[rung](heap, ask, state);
    const uint64_t after = bytes_free(heap);
    state->gained[rung] += after > before ? after - before : 0;
    return status;
}

/** Lock the heap. While it was unlocked the request's pool may have been destroyed, or its stream
 * have ended. */
static allot_status enter(allot_heap *heap, heap_ask *ask)
{
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint32_t pool = 0;
    status = alloti_pool_find(heap, ask->request.pool, &pool);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_arena_get(heap, pool, ask->request.stream, &ask->arena);
    }
    return status == ALLOT_STATUS_OK ? status : heap_leave(heap, status);
}

/** Whether a rung is of use: nothing is taken from others for what no limit allows. */
static bool is_of_use(const allot_heap *heap, const heap_ask *ask, climb *state, size_t rung)
{
    if (rung < ALLOT_RUNG_GROW_SOFT ||
        !alloti_segment_is_too_large(heap, heap->arenas[ask->arena]->pool, ask->size)) {
        return true;
    }
    state->is_budget = true;
    return false;
}

/** All rungs but PRESSURE. The lock is held, and on success still is. */
static allot_status climb_all(allot_heap *heap, heap_ask *ask, climb *state)
{
    for (size_t rung = 0;; rung++) {
        if (!is_of_use(heap, ask, state, rung)) {
            const allot_status status = take_spared(heap, ask, ALLOT_STATUS_BUDGET);
            return status == ALLOT_STATUS_OK ? status : heap_leave(heap, status);
        }
        const allot_status status = climb_one(heap, ask, state, rung);
        if (status == ALLOT_STATUS_OK) {
            heap->retries += rung > ALLOT_RUNG_GROW;
            return status;
        }
        pthread_mutex_unlock(&heap->mutex);
        if (!goes_on(status) || rung + 1 == sizeof RUNGS / sizeof RUNGS[0]) {
            return status;
        }
        const allot_status entered = enter(heap, ask);
        if (entered != ALLOT_STATUS_OK) {
            return entered;
        }
    }
}

/* ---- refusing ---- */

/** Free bytes of a pool, and its largest free range. */
static void measure_pool(const allot_heap *heap, uint32_t pool, uint64_t *size_free,
                         uint64_t *largest)
{
    *size_free = *largest = 0;
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        const heap_arena *const arena = heap->arenas[i];
        for (uint32_t j = 0; arena->pool == pool && j < arena->count; j++) {
            const heap_segment *const segment = &heap->segments[arena->segments[j]];
            *size_free += segment->held - segment->active;
            *largest = arena->largest[j] > *largest ? arena->largest[j] : *largest;
        }
    }
    if (*largest > *size_free) {
        *largest = *size_free; /* addresses that are not mapped are not free bytes */
    }
}

static allot_status fill_failure(allot_heap *heap, const heap_ask *ask, const climb *state)
{
    const uint32_t pool = heap->arenas[ask->arena]->pool;
    uint64_t device_free = 0;
    uint64_t total = 0;
    if (allot_device_memory_info(heap->device, &device_free, &total) != ALLOT_STATUS_OK) {
        device_free = 0;
    }
    allot_heap_failure *const failure = &heap->failure;
    *failure = (allot_heap_failure){
        .struct_size = sizeof *failure,
        .request = ask->request,
        .size_reserved = heap->held,
        .size_allocated = heap->meters.allocated_bytes.current,
        .size_free = bytes_free(heap),
        .size_pending = heap->meters.active_bytes.current - heap->meters.allocated_bytes.current,
        .limit = heap->options.limit,
        .limit_pool = heap->pools[pool]->limit,
        .device_free = device_free,
    };
    memcpy(failure->tried, state->tried, sizeof failure->tried);
    memcpy(failure->gained, state->gained, sizeof failure->gained);
    uint64_t of_pool = 0;
    measure_pool(heap, pool, &of_pool, &failure->size_free_largest);
    failure->size_free_elsewhere = failure->size_free > of_pool ? failure->size_free - of_pool : 0;
    if (of_pool >= ask->size) {
        failure->status = ALLOT_STATUS_FRAGMENTED;
    } else {
        failure->status = state->is_budget ? ALLOT_STATUS_BUDGET : ALLOT_STATUS_DEVICE_MEMORY;
    }
    alloti_record_refusal(heap, pool, &ask->request, device_free);
    return failure->status;
}

/** What the rungs gained, as text: ", collect 2.0 MiB, ...". */
static void write_gains(const allot_heap_failure *failure, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ALLOT_RUNG_COUNT && length < size; i++) {
        char gained[ALLOT_SIZE_TEXT_MAX];
        if (failure->gained[i] != 0) {
            length += (size_t)snprintf(text + length, size - length, "; %s made %s free",
                                       allot_rung_name((allot_rung)i),
                                       allot_size_format(failure->gained[i], gained));
        }
    }
}

/** The limits that are set, as text: "; limit 2.0 GiB". */
static void write_limits(const allot_heap_failure *failure, char *text, size_t size)
{
    char heap[ALLOT_SIZE_TEXT_MAX];
    char pool[ALLOT_SIZE_TEXT_MAX];
    (void)allot_size_format(failure->limit, heap);
    (void)allot_size_format(failure->limit_pool, pool);
    (void)snprintf(text, size, "%s%s%s%s", failure->limit == 0 ? "" : "; limit ",
                   failure->limit == 0 ? "" : heap,
                   failure->limit_pool == 0 ? "" : "; limit of the pool ",
                   failure->limit_pool == 0 ? "" : pool);
}

static allot_status refuse(allot_heap *heap, const heap_ask *ask, const climb *state)
{
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap->ooms++;
    status = fill_failure(heap, ask, state);
    const allot_heap_failure failure = heap->failure;
    pthread_mutex_unlock(&heap->mutex);
    char gains[512];
    char limits[96];
    char sizes[7][ALLOT_SIZE_TEXT_MAX];
    write_gains(&failure, gains, sizeof gains);
    write_limits(&failure, limits, sizeof limits);
    return alloti_fail(
        status,
        "asked %s aligned to %" PRIu64 ": %s are reserved, %s allocated, %s wait for streams, "
        "%s are free, %s of it in other pools, the rest in ranges of at most %s%s%s%s",
        allot_size_format(failure.request.size, sizes[0]), ask->align,
        allot_size_format(failure.size_reserved, sizes[1]),
        allot_size_format(failure.size_allocated, sizes[2]),
        allot_size_format(failure.size_pending, sizes[3]),
        allot_size_format(failure.size_free, sizes[4]),
        allot_size_format(failure.size_free_elsewhere, sizes[5]),
        allot_size_format(failure.size_free_largest, sizes[6]), limits, gains,
        status == ALLOT_STATUS_DEVICE_MEMORY ? state->device : "");
}

allot_status alloti_ladder_climb(allot_heap *heap, heap_ask *ask)
{
    const allot_heap_options *const options = &heap->options;
    climb state = {0};
    for (int asked = 0;; asked++) {
        const allot_status status = climb_all(heap, ask, &state);
        if (!goes_on(status)) {
            return status;
        }
        state.tried[ALLOT_RUNG_PRESSURE]++;
        if (options->pressure == NULL ||
            !options->pressure(options->pressure_context, heap, ask->request.size) ||
            asked + 1 == PRESSURE_MAX) {
            return refuse(heap, ask, &state);
        }
        const allot_status entered = enter(heap, ask);
        if (entered != ALLOT_STATUS_OK) {
            return entered;
        }
    }
}
