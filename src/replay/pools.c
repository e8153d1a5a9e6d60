/* SPDX-License-Identifier: MIT */
/** Private pools: what the events tell about each, as no file says how a pool was made. */
#include "core/array.h"
#include "core/map64.h"
#include "core/status.h"
#include "replay/requests.h"

#include <stdlib.h>
#include <string.h>

uint32_t alloti_requests_pool(const allot_requests *requests, uint32_t id)
{
    return id == ALLOT_NONE ? ALLOT_NONE : requests->pool_numbers[id];
}

/** Number of a private pool, given if it is new; ALLOT_NONE for the default pool. */
static uint32_t add_pool(allot_requests *requests, uint32_t id)
{
    const uint32_t known = alloti_requests_pool(requests, id);
    if (known != ALLOT_NONE || id == ALLOT_NONE) {
        return known;
    }
    const allot_pool_id pool = allot_trace_pool(requests->trace, id);
    if (pool.first != 0 || pool.second != 0) {
        /* The first number is of a graph's own pool, the second of one that the program made. */
        requests->pools[requests->pool_count] = (alloti_request_pool){
            .options = {.struct_size = sizeof(allot_torch_pool_options),
                        .is_graph = pool.first != 0,
                        .number = pool.first != 0 ? pool.first : pool.second}};
        requests->pool_numbers[id] = requests->pool_count++;
    }
    return requests->pool_numbers[id];
}

static allot_status make_arrays(allot_requests *requests)
{
    const uint64_t count = requests->events.count;
    const uint64_t ids = allot_trace_pool_count(requests->trace);
    requests->event_pools = alloti_alloc_array(count, sizeof(*requests->event_pools));
    requests->pool_numbers = alloti_alloc_array(ids + 1, sizeof(*requests->pool_numbers));
    requests->pools = alloti_calloc_array(ids + 1, sizeof(*requests->pools));
    if (requests->event_pools == NULL || requests->pool_numbers == NULL ||
        requests->pools == NULL) {
        return alloti_fail_memory(count * sizeof(*requests->event_pools));
    }
    memset(requests->pool_numbers, 0xff, ((size_t)ids + 1) * sizeof(*requests->pool_numbers));
    return ALLOT_STATUS_OK;
}

/** What is known of a pool's splits while the events are read. */
typedef struct split_evidence {
    /** By stream and list: the largest rest, in units of 512 bytes, that could have been split off
     * a block at the start of a segment. */
    alloti_map64 rests;
    bool splits;
    bool passes_over; /**< A request took a new segment where the rest of another had room. */
} split_evidence;

/** Bytes that a split of the segment taken right before an allocation would leave; 0 for none. */
static uint64_t rest_of(const allot_requests *requests, uint64_t at, uint64_t rounded)
{
    const uint64_t taken = requests->events.size[at - 1];
    const bool is_paged = requests->events.kind[at - 1] == ALLOT_EVENT_SEGMENT_MAP;
    const uint64_t least =
        rounded <= SIM_SMALL_MAX || is_paged ? SIM_MIN_BLOCK : SIM_SMALL_MAX + SIM_MIN_BLOCK;
    return taken >= rounded + least ? taken - rounded : 0;
}

static bool takes_segment(const allot_events *events, uint64_t at)
{
    return at > 0 &&
           (events->kind[at - 1] == ALLOT_EVENT_SEGMENT_ALLOC ||
            events->kind[at - 1] == ALLOT_EVENT_SEGMENT_MAP) &&
           events->addr[at - 1] == events->addr[at];
}

/** Where the rests that a request may use are kept. */
static uint64_t key_of(const allot_events *events, uint64_t at, uint64_t rounded)
{
    return (uint64_t)events->stream[at] << 1 | (rounded <= SIM_SMALL_MAX);
}

static uint64_t largest_rest(const split_evidence *evidence, uint64_t key)
{
    const uint32_t known = alloti_map64_get(&evidence->rests, key);
    return known == ALLOT_NONE ? 0 : (uint64_t)known * SIM_MIN_BLOCK;
}

/** A request that fails where a rest has room; its size is rounded. */
static void read_failure(const allot_requests *requests, uint64_t at, split_evidence *evidence)
{
    const uint64_t rounded = requests->events.size[at];
    const uint64_t key = key_of(&requests->events, at, rounded);
    evidence->passes_over = evidence->passes_over || largest_rest(evidence, key) >= rounded;
}

static allot_status read_alloc(const allot_requests *requests, uint64_t at,
                               split_evidence *evidence)
{
    const allot_events *events = &requests->events;
    const uint64_t rounded = alloti_sim_round_size(requests->rules, events->size[at]);
    const bool is_small = rounded <= SIM_SMALL_MAX;
    const uint64_t key = key_of(events, at, rounded);
    const uint64_t largest = largest_rest(evidence, key);
    uint64_t rest = 0;
    if (takes_segment(events, at)) {
        evidence->passes_over = evidence->passes_over || largest >= rounded;
        rest = rest_of(requests, at, rounded);
    } else if (is_small) {
        rest = SIM_SMALL_SEGMENT - rounded; /* at the start of a page, or it is a split */
    }
    const uint64_t units = rest / SIM_MIN_BLOCK;
    if (rest <= largest || units >= ALLOT_NONE) {
        return ALLOT_STATUS_OK;
    }
    return alloti_map64_set(&evidence->rests, key, (uint32_t)units);
}

/** Read one event of a pool. */
static allot_status read_event(allot_requests *requests, uint64_t at, split_evidence *evidence)
{
    switch ((allot_event_kind)requests->events.kind[at]) {
    case ALLOT_EVENT_ALLOC:
        requests->pools[requests->event_pools[at]].last_request = at;
        return read_alloc(requests, at, evidence);
    case ALLOT_EVENT_OOM:
        requests->pools[requests->event_pools[at]].last_request = at;
        read_failure(requests, at, evidence);
        return ALLOT_STATUS_OK;
    case ALLOT_EVENT_SEGMENT_FREE:
    case ALLOT_EVENT_SEGMENT_UNMAP:
        alloti_map64_fini(&evidence->rests);
        evidence->rests = (alloti_map64){.count = 0};
        return ALLOT_STATUS_OK;
    default:
        return ALLOT_STATUS_OK;
    }
}

/** In a pool that never splits every block begins where a segment or page does. */
static bool begins_inside(const allot_events *events, uint64_t at)
{
    return events->kind[at] == ALLOT_EVENT_ALLOC && events->addr[at] % SIM_SMALL_SEGMENT != 0;
}

/** How each pool was made, as far as the events tell. */
static allot_status read_pools(allot_requests *requests)
{
    const allot_events *events = &requests->events;
    split_evidence *evidence = alloti_calloc_array(requests->pool_count, sizeof(*evidence));
    if (evidence == NULL) {
        return alloti_fail_memory(requests->pool_count * sizeof(*evidence));
    }
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 0; i < events->count && status == ALLOT_STATUS_OK; i++) {
        const uint32_t pool = requests->event_pools[i];
        if (pool != ALLOT_NONE) {
            evidence[pool].splits = evidence[pool].splits || begins_inside(events, i);
            status = read_event(requests, i, &evidence[pool]);
        }
    }
    for (uint32_t pool = 0; pool < requests->pool_count; pool++) {
        requests->pools[pool].options.no_split =
            evidence[pool].passes_over && !evidence[pool].splits;
        alloti_map64_fini(&evidence[pool].rests);
    }
    free(evidence);
    return status;
}

allot_status alloti_requests_make_pools(allot_requests *requests)
{
    allot_status status = make_arrays(requests);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    for (uint64_t i = 0; i < requests->events.count; i++) {
        requests->event_pools[i] = add_pool(requests, requests->events.pool[i]);
    }
    uint32_t segment_count = 0;
    const allot_segment *segments = allot_trace_segments(requests->trace, &segment_count);
    for (uint32_t i = 0; i < segment_count; i++) {
        if (segments[i].device == requests->info.device) {
            (void)add_pool(requests, segments[i].pool);
        }
    }
    return requests->pool_count == 0 ? ALLOT_STATUS_OK : read_pools(requests);
}
