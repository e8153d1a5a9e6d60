/* SPDX-License-Identifier: MIT */
#include "replay/ranges.h"

#include "core/array.h"
#include "core/size_math.h"
#include "core/status.h"

#include <stdlib.h>

/** More places or ranges than this no program has; what comes after them is not looked at, so that
 * the work stays bounded for files that are made up. */
enum { PLACES_MAX = 1024 };

/** Stretches that are no further apart belong to one place; ranges are much larger. */
static const uint64_t GAP_MAX = 64ull << 20;

static bool is_near(const alloti_place *a, const alloti_place *b)
{
    const uint64_t gap = a->first > b->end   ? a->first - b->end
                         : b->first > a->end ? b->first - a->end
                                             : 0;
    return a->stream == b->stream && a->pool == b->pool && a->is_large == b->is_large &&
           gap <= GAP_MAX;
}

static allot_status note_stretch(alloti_places *all, const alloti_place *stretch)
{
    for (uint64_t i = all->count; i > 0; i--) {
        alloti_place *known = &all->items[i - 1];
        if (is_near(known, stretch)) {
            known->first = stretch->first < known->first ? stretch->first : known->first;
            known->end = stretch->end > known->end ? stretch->end : known->end;
            return ALLOT_STATUS_OK;
        }
    }
    const allot_status status =
        alloti_array_reserve(&all->items, &all->capacity, all->count + 1, sizeof(*all->items));
    if (status == ALLOT_STATUS_OK) {
        all->items[all->count++] = *stretch;
    }
    return status;
}

static allot_status note_final(const allot_requests *requests, alloti_places *all)
{
    uint32_t count = 0;
    const allot_segment *segments = allot_trace_segments(requests->trace, &count);
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        const allot_segment *segment = &segments[i];
        alloti_place stretch = {.stream = allot_trace_stream(requests->trace, segment->stream),
                                .pool = alloti_requests_pool(requests, segment->pool),
                                .is_large = segment->is_large,
                                .first = segment->address};
        if (segment->is_expandable && segment->device == requests->info.device &&
            alloti_add(segment->address, segment->total_size, &stretch.end)) {
            status = note_stretch(all, &stretch);
        }
    }
    return status;
}

/** The stretch that an event shows in use by the request at event `request`. */
static allot_status note_event(const allot_requests *requests, alloti_places *all, uint64_t event,
                               uint64_t request)
{
    const allot_events *events = &requests->events;
    alloti_place stretch = {
        .stream = allot_trace_stream(requests->trace, events->stream[event]),
        .pool = requests->event_pools[event],
        .is_large = alloti_sim_round_size(requests->rules, events->size[request]) > SIM_SMALL_MAX,
        .first = events->addr[event]};
    return alloti_add(events->addr[event], events->size[event], &stretch.end)
               ? note_stretch(all, &stretch)
               : ALLOT_STATUS_OK;
}

/** Backwards, so that the request that pages were mapped for is known. */
static allot_status note_events(const allot_requests *requests, alloti_places *all)
{
    const allot_events *events = &requests->events;
    allot_status status = ALLOT_STATUS_OK;
    uint64_t request = events->count;
    for (uint64_t i = events->count; status == ALLOT_STATUS_OK && i > 0; i--) {
        const uint64_t event = i - 1;
        if (alloti_requests_is_boundary(requests, event)) {
            request = event;
        }
        const bool maps = events->kind[event] == ALLOT_EVENT_SEGMENT_MAP;
        const bool allocates =
            events->kind[event] == ALLOT_EVENT_ALLOC && requests->info.conf.expandable_segments;
        if ((maps && request < events->count) || allocates) {
            status = note_event(requests, all, event, request);
        }
    }
    return status;
}

/** Places that a new stretch shows to be gone: addresses are given again. */
static void forget_overlapped(alloti_places *live, const alloti_place *stretch)
{
    for (uint64_t i = live->count; i > 0; i--) {
        const alloti_place *known = &live->items[i - 1];
        const bool overlaps = known->first < stretch->end && stretch->first < known->end;
        const bool is_same = known->stream == stretch->stream && known->pool == stretch->pool &&
                             known->is_large == stretch->is_large;
        if (overlaps && !is_same) {
            live->items[i - 1] = live->items[--live->count];
        }
    }
}

/** The class of pages that are unmapped, by what was mapped there last. */
static alloti_page_class class_at(const alloti_places *live, const alloti_place *stretch)
{
    for (uint64_t i = 0; i < live->count; i++) {
        const alloti_place *known = &live->items[i];
        if (known->stream == stretch->stream && known->pool == stretch->pool &&
            known->first <= stretch->first && stretch->first < known->end) {
            return known->is_large ? PAGES_LARGE : PAGES_SMALL;
        }
    }
    return PAGES_UNKNOWN;
}

/** The request that pages at an event were mapped for; the number of events for none. */
static uint64_t request_after(const allot_requests *requests, uint64_t event)
{
    while (event < requests->events.count && !alloti_requests_is_boundary(requests, event)) {
        event++;
    }
    const bool is_request =
        event < requests->events.count && (requests->events.kind[event] == ALLOT_EVENT_ALLOC ||
                                           requests->events.kind[event] == ALLOT_EVENT_OOM);
    return is_request ? event : requests->events.count;
}

/** Forwards: what is mapped at each time, for addresses that serve one class after the other. */
static allot_status note_classes(const allot_requests *requests, alloti_places *all)
{
    const allot_events *events = &requests->events;
    alloti_places live = {.count = 0};
    allot_status status = ALLOT_STATUS_OK;
    uint64_t request = 0;
    all->classes = alloti_calloc_array(events->count, sizeof(*all->classes));
    if (all->classes == NULL) {
        return alloti_fail_memory(events->count);
    }
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < events->count; i++) {
        const bool maps = events->kind[i] == ALLOT_EVENT_SEGMENT_MAP;
        alloti_place stretch = {.stream = allot_trace_stream(requests->trace, events->stream[i]),
                                .pool = requests->event_pools[i],
                                .first = events->addr[i]};
        if ((!maps && events->kind[i] != ALLOT_EVENT_SEGMENT_UNMAP) ||
            !alloti_add(events->addr[i], events->size[i], &stretch.end)) {
            continue;
        }
        request = maps && request <= i ? request_after(requests, i) : request;
        if (maps && request < events->count && live.count < PLACES_MAX) {
            stretch.is_large =
                alloti_sim_round_size(requests->rules, events->size[request]) > SIM_SMALL_MAX;
            forget_overlapped(&live, &stretch);
            status = note_stretch(&live, &stretch);
        }
        all->classes[i] = (uint8_t)class_at(&live, &stretch);
    }
    free(live.items);
    return status;
}

allot_status alloti_places_find(const allot_requests *requests, alloti_places *out)
{
    alloti_places all = {.count = 0};
    allot_status status = note_final(requests, &all);
    if (status == ALLOT_STATUS_OK && alloti_requests_has_pages(requests)) {
        status = note_events(requests, &all);
        if (status == ALLOT_STATUS_OK) {
            status = note_classes(requests, &all);
        }
    }
    if (status != ALLOT_STATUS_OK) {
        alloti_places_fini(&all);
        return status;
    }
    *out = all;
    return ALLOT_STATUS_OK;
}

void alloti_places_fini(alloti_places *places)
{
    free(places->classes);
    free(places->items);
}

bool alloti_places_is_large(const alloti_places *places, const alloti_pages *pages)
{
    if (places->classes != NULL && places->classes[pages->event] != PAGES_UNKNOWN) {
        return places->classes[pages->event] == PAGES_LARGE;
    }
    uint64_t nearest = UINT64_MAX;
    bool is_large = true;
    for (uint64_t i = 0; i < places->count; i++) {
        const alloti_place *place = &places->items[i];
        if (place->stream != pages->stream || place->pool != pages->pool) {
            continue;
        }
        uint64_t away = 0;
        if (pages->address < place->first) {
            away = place->first - pages->address;
        } else if (pages->address >= place->end) {
            away = pages->address - place->end + 1;
        }
        if (away < nearest) {
            nearest = away;
            is_large = place->is_large;
        }
    }
    return nearest <= GAP_MAX ? is_large : pages->size % pages->large_page == 0;
}

/** Pages of one stream, pool and size class that are mapped. */
typedef struct mapping {
    uint64_t stream;
    uint32_t pool;
    bool is_large;
    bool is_initial; /**< The range is one from before the first event. */
    uint64_t bytes;
    uint64_t first; /**< Lowest address mapped in the range. */
} mapping;

/** Starts of ranges, and what is mapped while the events are read. */
typedef struct survey {
    uint64_t *starts;
    uint64_t start_count;
    uint64_t start_capacity;
    mapping *mappings;
    uint64_t mapping_count;
    uint64_t mapping_capacity;
} survey;

static allot_status add_start(survey *found, uint64_t address)
{
    const allot_status status = alloti_array_reserve(
        &found->starts, &found->start_capacity, found->start_count + 1, sizeof(*found->starts));
    if (status == ALLOT_STATUS_OK) {
        found->starts[found->start_count++] = address;
    }
    return status;
}

/** The mapping of a key, added if it is new; NULL in *out where there are too many. */
static allot_status find_mapping(survey *found, const mapping *key, mapping **out)
{
    for (uint64_t i = 0; i < found->mapping_count; i++) {
        mapping *known = &found->mappings[i];
        if (known->stream == key->stream && known->pool == key->pool &&
            known->is_large == key->is_large) {
            *out = known;
            return ALLOT_STATUS_OK;
        }
    }
    *out = NULL;
    if (found->mapping_count >= PLACES_MAX) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status =
        alloti_array_reserve(&found->mappings, &found->mapping_capacity, found->mapping_count + 1,
                             sizeof(*found->mappings));
    if (status == ALLOT_STATUS_OK) {
        found->mappings[found->mapping_count] = *key;
        *out = &found->mappings[found->mapping_count++];
    }
    return status;
}

/** The range of a mapping is complete: note where it began. */
static allot_status end_range(const allot_requests *requests, survey *found, mapping *known)
{
    for (uint32_t i = 0; known->is_initial && i < requests->initial_segment_count; i++) {
        alloti_torchsim_segment *segment = &requests->initial[i];
        if (segment->is_expandable && segment->stream == known->stream &&
            segment->pool == known->pool && segment->is_large == known->is_large) {
            segment->range_first = known->first;
        }
    }
    const bool was_used = known->first != UINT64_MAX;
    known->is_initial = false;
    return was_used ? add_start(found, known->first) : ALLOT_STATUS_OK;
}

static allot_status survey_initial(const allot_requests *requests, survey *found)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < requests->initial_segment_count; i++) {
        const alloti_torchsim_segment *segment = &requests->initial[i];
        const mapping key = {.stream = segment->stream,
                             .pool = segment->pool,
                             .is_large = segment->is_large,
                             .is_initial = true,
                             .first = segment->address};
        mapping *known = NULL;
        if (!segment->is_expandable) {
            continue;
        }
        status = find_mapping(found, &key, &known);
        if (known != NULL) {
            known->bytes += segment->size;
        }
    }
    return status;
}

static allot_status survey_events(const allot_requests *requests, const alloti_places *places,
                                  survey *found)
{
    const allot_events *events = &requests->events;
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < events->count; i++) {
        const bool maps = events->kind[i] == ALLOT_EVENT_SEGMENT_MAP;
        if (!maps && events->kind[i] != ALLOT_EVENT_SEGMENT_UNMAP) {
            continue;
        }
        mapping key = {.stream = allot_trace_stream(requests->trace, events->stream[i]),
                       .pool = requests->event_pools[i],
                       .first = UINT64_MAX};
        const alloti_pages pages = {.stream = key.stream,
                                    .pool = key.pool,
                                    .address = events->addr[i],
                                    .size = events->size[i],
                                    .large_page = requests->info.conf.large_segment_size,
                                    .event = i};
        key.is_large = alloti_places_is_large(places, &pages);
        mapping *known = NULL;
        status = find_mapping(found, &key, &known);
        if (known == NULL) {
            continue;
        }
        if (known->bytes == 0) {
            /* All pages were given back, and the range with them. */
            status = end_range(requests, found, known);
            known->first = events->addr[i];
        }
        if (maps) {
            known->first = events->addr[i] < known->first ? events->addr[i] : known->first;
            known->bytes += events->size[i];
        } else {
            known->bytes -= events->size[i] < known->bytes ? events->size[i] : known->bytes;
        }
    }
    return status;
}

static int compare_starts(const void *a, const void *b)
{
    const uint64_t first = *(const uint64_t *)a;
    const uint64_t second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

static uint64_t smallest_distance(survey *found)
{
    uint64_t distance = UINT64_MAX;
    if (found->start_count > 1) {
        qsort(found->starts, found->start_count, sizeof(*found->starts), compare_starts);
    }
    for (uint64_t i = 1; i < found->start_count; i++) {
        const uint64_t step = found->starts[i] - found->starts[i - 1];
        distance = step > 0 && step < distance ? step : distance;
    }
    return distance < SIM_DEVICE_UNKNOWN ? distance : 0;
}

allot_status alloti_places_survey(allot_requests *requests, const alloti_places *places)
{
    survey found = {.start_count = 0};
    allot_status status = survey_initial(requests, &found);
    if (status == ALLOT_STATUS_OK) {
        status = survey_events(requests, places, &found);
    }
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < found.mapping_count; i++) {
        status = end_range(requests, &found, &found.mappings[i]);
    }
    if (status == ALLOT_STATUS_OK) {
        requests->range_bytes = smallest_distance(&found);
    }
    free(found.starts);
    free(found.mappings);
    return status;
}
