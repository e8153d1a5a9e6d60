/* SPDX-License-Identifier: MIT */
/**
 * How large the address ranges of expandable segments are. PyTorch reserves 9/8 of the device for
 * each, and prefers blocks by how far they may still grow, so the size matters; but no trace says
 * how large the device is. Two ranges cannot overlap, and drivers give them one after the other: the
 * smallest distance between the starts of two ranges is taken for the size.
 */
#include "core/array.h"
#include "core/status.h"
#include "replay/requests.h"

#include <stdlib.h>

/** What one range serves, and where it is known to lie. */
typedef struct place {
    uint64_t stream;
    uint32_t pool;
    bool is_large;
    uint64_t first;
    uint64_t end;
} place;

typedef struct places {
    place *items;
    uint64_t count;
    uint64_t capacity;
} places;

static allot_status note_stretch(places *all, const place *stretch)
{
    for (uint64_t i = 0; i < all->count; i++) {
        place *known = &all->items[i];
        if (known->stream == stretch->stream && known->pool == stretch->pool &&
            known->is_large == stretch->is_large) {
            known->first = stretch->first < known->first ? stretch->first : known->first;
            known->end = stretch->end > known->end ? stretch->end : known->end;
            return ALLOT_STATUS_OK;
        }
    }
    const allot_status status = alloti_array_reserve(&all->items, &all->capacity, all->count + 1,
                                                     sizeof(*all->items));
    if (status == ALLOT_STATUS_OK) {
        all->items[all->count++] = *stretch;
    }
    return status;
}

static allot_status note_initial(const allot_requests *requests, places *all)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < requests->initial_segment_count; i++) {
        const alloti_torchsim_segment *segment = &requests->initial[i];
        const place stretch = {segment->stream, segment->pool, segment->is_large, segment->address,
                               segment->address + segment->size};
        status = segment->is_expandable ? note_stretch(all, &stretch) : ALLOT_STATUS_OK;
    }
    return status;
}

/** Whether the request that pages were mapped for is a large one; event count without one. */
static uint64_t find_request(const allot_requests *requests, uint64_t event)
{
    while (event < requests->events.count && !alloti_requests_is_boundary(requests, event)) {
        event++;
    }
    return event;
}

static allot_status note_mapped(const allot_requests *requests, places *all)
{
    const allot_events *events = &requests->events;
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < events->count; i++) {
        const uint64_t request =
            events->kind[i] == ALLOT_EVENT_SEGMENT_MAP ? find_request(requests, i) : events->count;
        if (request < events->count) {
            const place stretch = {allot_trace_stream(requests->trace, events->stream[i]),
                                   requests->event_pools[i], events->size[request] > SIM_SMALL_MAX,
                                   events->addr[i], events->addr[i] + events->size[i]};
            status = note_stretch(all, &stretch);
        }
    }
    return status;
}

static int compare_places(const void *a, const void *b)
{
    const uint64_t first = ((const place *)a)->first;
    const uint64_t second = ((const place *)b)->first;
    return (first > second) - (first < second);
}

/** Smallest distance between two starts; 0 if there is none or something does not fit in it. */
static uint64_t smallest_distance(places *all)
{
    if (all->count < 2) {
        return 0;
    }
    qsort(all->items, all->count, sizeof(*all->items), compare_places);
    uint64_t distance = UINT64_MAX;
    uint64_t extent = 0;
    for (uint64_t i = 0; i < all->count; i++) {
        const uint64_t used = all->items[i].end - all->items[i].first;
        extent = used > extent ? used : extent;
        if (i > 0 && all->items[i].first - all->items[i - 1].first < distance) {
            distance = all->items[i].first - all->items[i - 1].first;
        }
    }
    return distance >= extent && distance < SIM_DEVICE_UNKNOWN ? distance : 0;
}

allot_status alloti_requests_find_ranges(allot_requests *requests)
{
    places all = {.count = 0};
    allot_status status = note_initial(requests, &all);
    if (status == ALLOT_STATUS_OK) {
        status = note_mapped(requests, &all);
    }
    if (status == ALLOT_STATUS_OK) {
        requests->range_bytes = smallest_distance(&all);
    }
    free(all.items);
    return status;
}
