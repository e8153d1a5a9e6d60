/* SPDX-License-Identifier: MIT */
/** A check's driver, which answers from the recording, and the comparison of events. */
#include "core/status.h"
#include "replay/check.h"

#include <stdio.h>

void alloti_check_skip(checker *check)
{
    while (check->cursor < check->events->count) {
        const uint8_t kind = check->events->kind[check->cursor];
        const bool is_mark = kind == ALLOT_EVENT_SNAPSHOT || kind == ALLOT_EVENT_USER_DEFINED ||
                             kind == ALLOT_EVENT_WORKSPACE_SNAPSHOT;
        if (!is_mark && !check->matched[check->cursor]) {
            return;
        }
        check->result->event_equal += is_mark;
        check->cursor++;
    }
}

/** Kind of the event at the cursor; ALLOT_EVENT_KIND_COUNT at the end. */
static unsigned kind_at_cursor(checker *check)
{
    alloti_check_skip(check);
    return check->cursor < check->events->count ? check->events->kind[check->cursor]
                                                : ALLOT_EVENT_KIND_COUNT;
}

static const char *describe_event(const allot_torch_event *event, char *buffer, size_t size)
{
    char text[ALLOT_SIZE_TEXT_MAX];
    (void)snprintf(buffer, size, "%s of %s at %#llx", allot_event_kind_name(event->kind),
                   allot_size_format(event->size, text), (unsigned long long)event->address);
    return buffer;
}

void alloti_check_fail(checker *check, const allot_torch_event *expected, const char *what)
{
    if (check->has_failed) {
        return;
    }
    allot_replay_check_result *result = check->result;
    check->has_failed = true;
    result->difference_event = check->cursor;
    result->has_expected = expected != NULL;
    char model[128] = "nothing";
    if (expected != NULL) {
        result->expected = *expected;
        describe_event(expected, model, sizeof(model));
    }
    char recorded[128] = "the end of the recording";
    if (check->cursor < check->events->count) {
        const allot_torch_event event = {.kind =
                                             (allot_event_kind)check->events->kind[check->cursor],
                                         .address = check->events->addr[check->cursor],
                                         .size = check->events->size[check->cursor]};
        describe_event(&event, recorded, sizeof(recorded));
    }
    (void)snprintf(result->reason, sizeof(result->reason), "event %llu: %s: recorded %s, model %s",
                   (unsigned long long)check->cursor, what, recorded, model);
}

static bool pools_equal(const checker *check, uint64_t at, uint32_t pool)
{
    return check->requests->event_pools[at] == pool;
}

/** What differs between the model's event and a recorded one, NULL if nothing does. */
static const char *difference(const checker *check, uint64_t at, const allot_torch_event *event)
{
    const allot_events *events = check->events;
    if (events->kind[at] != (uint8_t)event->kind) {
        return "another event";
    }
    if (event->kind != ALLOT_EVENT_OOM && events->addr[at] != event->address) {
        return "another address";
    }
    if (events->size[at] != event->size) {
        return "another size";
    }
    if (allot_trace_stream(check->requests->trace, events->stream[at]) != event->stream) {
        return "another stream";
    }
    return pools_equal(check, at, event->pool) ? NULL : "another pool";
}

/** Frees complete in whatever order the streams have it: find this one in the row at the cursor. */
static uint64_t find_completed(const checker *check, const allot_torch_event *event)
{
    const allot_events *events = check->events;
    for (uint64_t at = check->cursor;
         at < events->count && events->kind[at] == ALLOT_EVENT_FREE_COMPLETED; at++) {
        if (!check->matched[at] && events->addr[at] == event->address) {
            return at;
        }
    }
    return check->cursor;
}

static bool is_giving(const checker *check, uint64_t at)
{
    const uint8_t kind = check->events->kind[at];
    return kind == ALLOT_EVENT_SEGMENT_FREE || kind == ALLOT_EVENT_SEGMENT_UNMAP;
}

/** Private pools are released in whatever order a hash table has: find this event of one in the
 * row at the cursor. */
static uint64_t find_given(const checker *check, const allot_torch_event *event)
{
    const allot_events *events = check->events;
    for (uint64_t at = check->cursor; at < events->count && is_giving(check, at); at++) {
        if (!check->matched[at] && events->kind[at] == (uint8_t)event->kind &&
            events->addr[at] == event->address) {
            return at;
        }
    }
    return check->cursor;
}

/** Where in the recording the model's event is to be looked for. */
static uint64_t find_event(const checker *check, const allot_torch_event *event)
{
    switch (event->kind) {
    case ALLOT_EVENT_FREE_COMPLETED:
        return find_completed(check, event);
    case ALLOT_EVENT_SEGMENT_FREE:
    case ALLOT_EVENT_SEGMENT_UNMAP:
        return event->pool == ALLOT_NONE ? check->cursor : find_given(check, event);
    default:
        return check->cursor;
    }
}

static void count_equal(checker *check, allot_event_kind kind)
{
    allot_replay_check_result *result = check->result;
    result->event_equal++;
    switch (kind) {
    case ALLOT_EVENT_ALLOC:
        result->placement_equal++;
        break;
    case ALLOT_EVENT_SEGMENT_ALLOC:
        result->segment_alloc_equal++;
        break;
    case ALLOT_EVENT_SEGMENT_FREE:
        result->segment_free_equal++;
        break;
    case ALLOT_EVENT_SEGMENT_MAP:
        result->segment_map_equal++;
        break;
    case ALLOT_EVENT_SEGMENT_UNMAP:
        result->segment_unmap_equal++;
        break;
    case ALLOT_EVENT_FREE_COMPLETED:
        result->free_completed_equal++;
        break;
    case ALLOT_EVENT_OOM:
        result->oom_equal++;
        break;
    default:
        break;
    }
}

void alloti_check_event(void *context, const allot_torch_event *event)
{
    checker *check = context;
    if (check->has_failed || !alloti_requests_has(check->requests, event->kind)) {
        const bool left_out =
            event->kind == ALLOT_EVENT_FREE_REQUESTED || event->kind == ALLOT_EVENT_FREE_COMPLETED;
        if (check->has_failed || left_out) {
            return;
        }
    }
    if (kind_at_cursor(check) == ALLOT_EVENT_KIND_COUNT) {
        alloti_check_fail(check, event, "the recording ends");
        return;
    }
    const uint64_t at = find_event(check, event);
    const char *what = difference(check, at, event);
    if (what != NULL) {
        alloti_check_fail(check, event, what);
        return;
    }
    check->matched[at] = 1;
    count_equal(check, event->kind);
    alloti_check_skip(check);
}

/** Whether the limit, where one is known, leaves room. */
static bool has_room(const checker *check, uint64_t size)
{
    return check->limit == UINT64_MAX || size <= check->limit - check->held;
}

/**
 * The driver's answer to a wish for memory that would be recorded as `kind`: yes if that is what
 * the recording shows next. Where it shows a release or an out-of-memory instead, the driver had
 * refused; where it shows something else, the model has gone wrong.
 */
static allot_status answer(checker *check, allot_event_kind kind, uint64_t address, uint64_t size)
{
    if (!has_room(check, size)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    const unsigned recorded = kind_at_cursor(check);
    if (recorded == (unsigned)kind) {
        check->held += size;
        return ALLOT_STATUS_OK;
    }
    const bool was_refused = recorded == ALLOT_EVENT_SEGMENT_FREE ||
                             recorded == ALLOT_EVENT_SEGMENT_UNMAP ||
                             recorded == ALLOT_EVENT_FREE_COMPLETED || recorded == ALLOT_EVENT_OOM;
    if (!was_refused || check->limit != UINT64_MAX) {
        const allot_torch_event wish = {.kind = kind,
                                        .pool = ALLOT_NONE,
                                        .address = address,
                                        .size = size,
                                        .block = ALLOT_NONE};
        alloti_check_fail(check, &wish, "the model needs memory from the driver");
    }
    return ALLOT_STATUS_DEVICE_MEMORY;
}

static allot_status segment_alloc(void *context, uint64_t size, uint64_t stream, uint64_t *address)
{
    (void)stream;
    checker *check = context;
    const allot_status status = answer(check, ALLOT_EVENT_SEGMENT_ALLOC, 0, size);
    if (status == ALLOT_STATUS_OK) {
        *address = check->events->addr[check->cursor];
    }
    return status;
}

static void give_back(void *context, uint64_t address, uint64_t size)
{
    (void)address;
    ((checker *)context)->held -= size;
}

/** Whether an address belongs to a range, as far as the device's size tells how large they are. */
static bool is_in_range(const checker *check, uint64_t address)
{
    for (uint64_t i = 0; check->limit != UINT64_MAX && i < check->sim->range_count; i++) {
        if (address - check->sim->ranges[i].address < check->sim->ranges[i].size) {
            return true;
        }
    }
    return false;
}

/**
 * A range begins where the first pages outside of the known ranges are mapped afterwards, on the
 * way to the same request. If there are none the range was reserved in vain; refusing it has the
 * same effect.
 */
static allot_status reserve(void *context, uint64_t size, uint64_t stream, uint64_t *address)
{
    (void)size, (void)stream;
    const checker *check = context;
    const allot_events *events = check->events;
    for (uint64_t at = check->cursor;
         at < events->count && !alloti_requests_is_boundary(check->requests, at); at++) {
        if (events->kind[at] == ALLOT_EVENT_SEGMENT_MAP && !is_in_range(check, events->addr[at])) {
            *address = events->addr[at];
            return ALLOT_STATUS_OK;
        }
    }
    return ALLOT_STATUS_DEVICE_MEMORY;
}

static void unreserve(void *context, uint64_t address, uint64_t size)
{
    (void)context, (void)address, (void)size;
}

static allot_status map(void *context, uint64_t address, uint64_t size)
{
    return answer(context, ALLOT_EVENT_SEGMENT_MAP, address, size);
}

static uint64_t free_bytes(void *context)
{
    const checker *check = context;
    if (check->limit != UINT64_MAX) {
        return check->limit - check->held;
    }
    const bool is_oom = check->cursor < check->events->count &&
                        check->events->kind[check->cursor] == ALLOT_EVENT_OOM;
    return is_oom ? check->events->addr[check->cursor] : 0;
}

allot_torch_driver alloti_check_driver(checker *check)
{
    return (allot_torch_driver){.struct_size = sizeof(allot_torch_driver),
                                .context = check,
                                .segment_alloc = segment_alloc,
                                .segment_free = give_back,
                                .reserve = reserve,
                                .unreserve = unreserve,
                                .map = map,
                                .unmap = give_back,
                                .free_bytes = free_bytes};
}
