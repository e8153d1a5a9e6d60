/* SPDX-License-Identifier: MIT */
/**
 * From events to what the program did.
 *
 * The allocator gives memory back either because the program asked (empty_cache) or under pressure,
 * on the way to a new segment. Both look alike: segment_free, segment_free, ..., segment_alloc.
 * Pressure it can only have been if the segment that follows would have lifted the bytes held above
 * everything that the device is known to have given. In an expandable range whole pages are taken,
 * and only those that are missing, but a memory fraction counts a segment for the whole request:
 * what it is known to have allowed is kept beside (counted_peak).
 */
#include "core/array.h"
#include "core/size_math.h"
#include "core/status.h"
#include "replay/requests.h"

#include <stdlib.h>

static bool is_giving(const allot_requests *requests, uint64_t event)
{
    const uint8_t kind = requests->events.kind[event];
    return kind == ALLOT_EVENT_SEGMENT_FREE || kind == ALLOT_EVENT_SEGMENT_UNMAP;
}

static bool is_taking(const allot_requests *requests, uint64_t event)
{
    const uint8_t kind = requests->events.kind[event];
    return kind == ALLOT_EVENT_SEGMENT_ALLOC || kind == ALLOT_EVENT_SEGMENT_MAP;
}

/** A failure under `held` bytes tells about the limit; enough at the driver means that not its size
 * but a share of it was the limit. */
static void see_oom(allot_requests *requests, uint64_t event, uint64_t held)
{
    const uint64_t left = requests->events.addr[event];
    const bool was_short = left < requests->events.size[event];
    uint64_t limit = 0;
    if (alloti_add(held, was_short ? left : 0, &limit) && limit > requests->info.oom_limit) {
        requests->info.oom_limit = limit;
    }
}

/** Bytes of a segment for the whole request at an event. */
static uint64_t counted_size(const allot_requests *requests, uint64_t event)
{
    const allot_torchsim *rules = requests->rules;
    return alloti_sim_segment_size(rules,
                                   alloti_sim_round_size(rules, requests->events.size[event]));
}

/** What a memory fraction allowed: the bytes held before pages were mapped and the request's. */
static void see_counted(allot_requests *requests, const uint64_t *reserved)
{
    uint64_t peak = 0;
    uint64_t before = 0; /* the first pages of the request */
    bool takes = false;
    for (uint64_t i = 0; i < requests->events.count; i++) {
        if (is_taking(requests, i)) {
            before = takes ? before : reserved[i] - requests->events.size[i];
            takes = true;
        } else if (requests->events.kind[i] == ALLOT_EVENT_ALLOC && takes) {
            const uint64_t counted = before + counted_size(requests, i);
            peak = counted > peak ? counted : peak;
        }
        takes = takes && !is_giving(requests, i) && !alloti_requests_is_boundary(requests, i);
    }
    requests->counted_peak = requests->info.conf.expandable_segments ? peak : UINT64_MAX;
}

/** Bytes held from the driver after each event, their peak, and the limit that failures show. */
static uint64_t *trace_reserved(allot_requests *requests)
{
    const uint64_t count = requests->events.count;
    uint64_t *reserved = alloti_alloc_array(count, sizeof(*reserved));
    if (reserved == NULL) {
        return NULL;
    }
    uint64_t now = requests->info.initial_reserved;
    uint64_t peak = now;
    for (uint64_t i = 0; i < count; i++) {
        if (is_taking(requests, i)) {
            now += requests->events.size[i];
        } else if (is_giving(requests, i)) {
            now -= requests->events.size[i];
        } else if (requests->events.kind[i] == ALLOT_EVENT_OOM) {
            see_oom(requests, i, now);
        }
        peak = now > peak ? now : peak;
        reserved[i] = now;
    }
    requests->info.reserved_peak = peak;
    return reserved;
}

bool alloti_requests_is_boundary(const allot_requests *requests, uint64_t event)
{
    switch ((allot_event_kind)requests->events.kind[event]) {
    case ALLOT_EVENT_ALLOC:
    case ALLOT_EVENT_OOM:
    case ALLOT_EVENT_FREE_REQUESTED:
        return true;
    case ALLOT_EVENT_FREE_COMPLETED:
        return !alloti_requests_has(requests, ALLOT_EVENT_FREE_REQUESTED);
    default:
        return false;
    }
}

/** What a row of segment events from `first` on was for. */
typedef struct burst {
    uint64_t end;       /**< The event that ended it, or the number of events. */
    uint64_t taken;     /**< Bytes taken in it. */
    uint64_t counted;   /**< Bytes that a fraction counts for its request in expandable mode. */
    bool ends_in_alloc; /**< An allocation, or one that failed. */
    bool ends_in_oom;
} burst;

static burst look_ahead(const allot_requests *requests, uint64_t first)
{
    burst found = {.end = first};
    while (found.end < requests->events.count &&
           !alloti_requests_is_boundary(requests, found.end)) {
        if (is_taking(requests, found.end)) {
            found.taken += requests->events.size[found.end];
        }
        found.end++;
    }
    if (found.end < requests->events.count) {
        found.ends_in_oom = requests->events.kind[found.end] == ALLOT_EVENT_OOM;
        found.ends_in_alloc =
            found.ends_in_oom || requests->events.kind[found.end] == ALLOT_EVENT_ALLOC;
    }
    if (found.ends_in_alloc && found.taken > 0 && requests->info.conf.expandable_segments) {
        found.counted = counted_size(requests, found.end);
    }
    return found;
}

static bool is_pressure(const allot_requests *requests, const burst *found, uint64_t held_before)
{
    if (found->ends_in_oom) {
        return true;
    }
    return found->ends_in_alloc && found->taken > 0 &&
           (held_before + found->taken > requests->info.reserved_peak ||
            held_before + found->counted > requests->counted_peak);
}

static allot_status add_step(allot_requests *requests, const alloti_step *step)
{
    const allot_status status =
        alloti_array_reserve(&requests->steps, &requests->step_capacity, requests->step_count + 1,
                             sizeof(*requests->steps));
    if (status == ALLOT_STATUS_OK) {
        requests->steps[requests->step_count++] = *step;
    }
    return status;
}

static allot_status add_request(allot_requests *requests, uint64_t event, step_kind kind)
{
    const allot_events *events = &requests->events;
    const alloti_step step = {.size = events->size[event],
                              .stream = allot_trace_stream(requests->trace, events->stream[event]),
                              .slot = requests->slots[event],
                              .event = (uint32_t)event,
                              .pool = requests->event_pools[event],
                              .kind = (uint8_t)kind};
    return add_step(requests, &step);
}

static allot_status add_end(allot_requests *requests, uint64_t event, step_kind kind)
{
    const alloti_step step = {.slot = requests->slots[event],
                              .event = (uint32_t)event,
                              .pool = ALLOT_NONE,
                              .kind = (uint8_t)kind};
    return add_step(requests, &step);
}

/** A free_completed right after its free_requested says nothing new. */
static bool is_echo(const allot_requests *requests, uint64_t event)
{
    return event > 0 && requests->events.kind[event - 1] == ALLOT_EVENT_FREE_REQUESTED &&
           requests->slots[event - 1] == requests->slots[event];
}

static allot_status add_free(allot_requests *requests, uint64_t event)
{
    if (requests->events.kind[event] == ALLOT_EVENT_FREE_REQUESTED) {
        const bool immediate = alloti_requests_is_immediate(requests, event);
        return add_end(requests, event, immediate ? STEP_FREE : STEP_FREE_SHARED);
    }
    if (!alloti_requests_has(requests, ALLOT_EVENT_FREE_REQUESTED)) {
        return add_end(requests, event, STEP_FREE);
    }
    return is_echo(requests, event) ? ALLOT_STATUS_OK : add_end(requests, event, STEP_COMPLETE);
}

/** The first segment_free of a row: a step if the program asked for it. */
static allot_status add_release(allot_requests *requests, uint64_t event, const uint64_t *reserved)
{
    const burst found = look_ahead(requests, event);
    const uint64_t held = reserved[event] + requests->events.size[event];
    if (is_pressure(requests, &found, held)) {
        requests->info.pressure_count++;
        return ALLOT_STATUS_OK;
    }
    requests->info.empty_cache_count++;
    const alloti_step step = {
        .slot = ALLOT_NONE, .event = (uint32_t)event, .pool = ALLOT_NONE, .kind = STEP_EMPTY_CACHE};
    return add_step(requests, &step);
}

static allot_status add_steps(allot_requests *requests, const uint64_t *reserved)
{
    allot_status status = ALLOT_STATUS_OK;
    bool in_release = false;
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < requests->events.count; i++) {
        switch ((allot_event_kind)requests->events.kind[i]) {
        case ALLOT_EVENT_ALLOC:
            status = add_request(requests, i, STEP_ALLOC);
            break;
        case ALLOT_EVENT_OOM:
            status = requests->events.size[i] > 0 ? add_request(requests, i, STEP_ALLOC_FAILED)
                                                  : ALLOT_STATUS_OK;
            break;
        case ALLOT_EVENT_FREE_REQUESTED:
        case ALLOT_EVENT_FREE_COMPLETED:
            status = add_free(requests, i);
            break;
        case ALLOT_EVENT_SEGMENT_FREE:
        case ALLOT_EVENT_SEGMENT_UNMAP:
            if (!in_release) {
                status = add_release(requests, i, reserved);
            }
            in_release = true;
            break;
        default:
            break;
        }
        in_release = in_release && !alloti_requests_is_boundary(requests, i);
    }
    return status;
}

/** Peak of the bytes handed out, requests rounded; unsplit rests of recorded blocks are unknown. */
static allot_status find_allocated_peak(allot_requests *requests)
{
    uint64_t *sizes = alloti_calloc_array((uint64_t)requests->slot_count + 1, sizeof(*sizes));
    if (sizes == NULL) {
        return alloti_fail_memory(requests->slot_count * sizeof(*sizes));
    }
    uint64_t now = 0;
    for (uint32_t i = 0; i < requests->initial_block_count; i++) {
        if (requests->initial_slots[i] != ALLOT_NONE) {
            sizes[requests->initial_slots[i]] = requests->initial_blocks[i].size;
            now += requests->initial_blocks[i].size;
        }
    }
    uint64_t peak = now;
    for (uint64_t i = 0; i < requests->step_count; i++) {
        const alloti_step *step = &requests->steps[i];
        if (step->kind == STEP_ALLOC) {
            sizes[step->slot] = alloti_sim_round_size(requests->rules, step->size);
            now += sizes[step->slot];
            peak = now > peak ? now : peak;
        } else if (step->kind == STEP_FREE || step->kind == STEP_FREE_SHARED) {
            now -= sizes[step->slot];
        }
    }
    requests->info.allocated_peak = peak;
    free(sizes);
    return ALLOT_STATUS_OK;
}

allot_status alloti_requests_make_steps(allot_requests *requests)
{
    uint64_t *reserved = trace_reserved(requests);
    if (reserved == NULL) {
        return alloti_fail_memory(requests->events.count * sizeof(*reserved));
    }
    see_counted(requests, reserved);
    const allot_status status = add_steps(requests, reserved);
    free(reserved);
    return status == ALLOT_STATUS_OK ? find_allocated_peak(requests) : status;
}
