/* SPDX-License-Identifier: MIT */
/** From events to slots: which events speak of the same use of an address. */
#include "replay/requests.h"

#include "core/array.h"
#include "core/map64.h"
#include "core/status.h"
#include "replay/ranges.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *allot_replay_unusable_code(allot_replay_unusable reason)
{
    switch (reason) {
#define CODE_CASE(name, value, code, text)                                                         \
    case ALLOT_REPLAY_UNUSABLE_##name:                                                             \
        return code;
        ALLOT_REPLAY_UNUSABLE_LIST(CODE_CASE)
#undef CODE_CASE
    }
    return "unknown";
}

const char *allot_replay_unusable_text(allot_replay_unusable reason)
{
    switch (reason) {
#define TEXT_CASE(name, value, code, text)                                                         \
    case ALLOT_REPLAY_UNUSABLE_##name:                                                             \
        return text;
        ALLOT_REPLAY_UNUSABLE_LIST(TEXT_CASE)
#undef TEXT_CASE
    }
    return "unknown";
}

allot_status alloti_requests_fail(const allot_requests *requests, uint64_t event, const char *what)
{
    const allot_event_kind kind = (allot_event_kind)requests->events.kind[event];
    return alloti_fail(ALLOT_STATUS_FORMAT, "event %llu (%s at %#llx, %llu bytes): %s",
                       (unsigned long long)event, allot_event_kind_name(kind),
                       (unsigned long long)requests->events.addr[event],
                       (unsigned long long)requests->events.size[event], what);
}

bool alloti_requests_is_immediate(const allot_requests *requests, uint64_t event)
{
    const allot_events *events = &requests->events;
    if (!alloti_requests_has(requests, ALLOT_EVENT_FREE_COMPLETED)) {
        return true;
    }
    return event + 1 < events->count && events->kind[event + 1] == ALLOT_EVENT_FREE_COMPLETED &&
           events->addr[event + 1] == events->addr[event];
}

/** Where a slot stands while the events are read. */
typedef enum slot_state { SLOT_LIVE, SLOT_FREED, SLOT_DONE } slot_state;

typedef struct pairing {
    alloti_map64 at; /**< Address to the slot that used it last. */
    uint8_t *state;  /**< [slots] slot_state. */
    uint64_t capacity;
    uint32_t count;
} pairing;

static allot_status add_slot(pairing *pairs, uint64_t address, slot_state state, uint32_t *out)
{
    allot_status status =
        alloti_array_reserve(&pairs->state, &pairs->capacity, (uint64_t)pairs->count + 1, 1);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_map64_set(&pairs->at, address, pairs->count);
    }
    if (status == ALLOT_STATUS_OK) {
        pairs->state[pairs->count] = (uint8_t)state;
        *out = pairs->count++;
    }
    return status;
}

static allot_status pair_alloc(const allot_requests *requests, pairing *pairs, uint64_t event,
                               uint32_t *out)
{
    const uint64_t address = requests->events.addr[event];
    const uint32_t before = alloti_map64_get(&pairs->at, address);
    assert(before == ALLOT_NONE || (pairs->state != NULL && before < pairs->count));
    if (before != ALLOT_NONE && pairs->state[before] != SLOT_DONE) {
        return alloti_requests_fail(requests, event, "the address is still in use");
    }
    return add_slot(pairs, address, SLOT_LIVE, out);
}

/** Slot of a free: the one in use at the address, or a new one from before the first event. */
static allot_status pair_free(const allot_requests *requests, pairing *pairs, uint64_t event,
                              uint32_t *out)
{
    const bool is_completed = requests->events.kind[event] == ALLOT_EVENT_FREE_COMPLETED;
    const bool ends = is_completed || !alloti_requests_has(requests, ALLOT_EVENT_FREE_COMPLETED);
    const slot_state next = ends ? SLOT_DONE : SLOT_FREED;
    const uint64_t address = requests->events.addr[event];
    const uint32_t before = alloti_map64_get(&pairs->at, address);
    if (before == ALLOT_NONE) {
        return add_slot(pairs, address, next, out);
    }
    assert(pairs->state != NULL && before < pairs->count);
    if (pairs->state[before] == SLOT_DONE || (!is_completed && pairs->state[before] != SLOT_LIVE)) {
        return alloti_requests_fail(requests, event, "nothing is in use at the address");
    }
    pairs->state[before] = (uint8_t)next;
    *out = before;
    return ALLOT_STATUS_OK;
}

static allot_status pair_events(allot_requests *requests, pairing *pairs)
{
    const allot_events *events = &requests->events;
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < events->count; i++) {
        requests->slots[i] = ALLOT_NONE;
        switch ((allot_event_kind)events->kind[i]) {
        case ALLOT_EVENT_ALLOC:
            requests->info.alloc_count++;
            status = pair_alloc(requests, pairs, i, &requests->slots[i]);
            break;
        case ALLOT_EVENT_FREE_REQUESTED:
        case ALLOT_EVENT_FREE_COMPLETED:
            status = pair_free(requests, pairs, i, &requests->slots[i]);
            break;
        case ALLOT_EVENT_OOM:
            requests->info.oom_count++;
            break;
        default:
            break;
        }
    }
    requests->slot_count = pairs->count;
    return status;
}

static allot_status make_slots(allot_requests *requests)
{
    requests->slots = alloti_alloc_array(requests->events.count, sizeof(*requests->slots));
    if (requests->slots == NULL) {
        return alloti_fail_memory(requests->events.count * sizeof(*requests->slots));
    }
    pairing pairs = {.count = 0};
    const allot_status status = pair_events(requests, &pairs);
    alloti_map64_fini(&pairs.at);
    free(pairs.state);
    return status;
}

/** What a replay cannot do without. */
static allot_replay_unusable missing_parts(const allot_requests *requests)
{
    const allot_events *events = &requests->events;
    if (events->count == 0) {
        return ALLOT_REPLAY_UNUSABLE_NO_EVENTS;
    }
    if (!allot_trace_has(requests->trace, ALLOT_TRACE_HAS_ADDRESSES)) {
        return ALLOT_REPLAY_UNUSABLE_NO_ADDRESSES;
    }
    const bool has_frees = alloti_requests_has(requests, ALLOT_EVENT_FREE_REQUESTED) ||
                           alloti_requests_has(requests, ALLOT_EVENT_FREE_COMPLETED);
    if (!alloti_requests_has(requests, ALLOT_EVENT_ALLOC)) {
        return has_frees && events->count > 1 ? ALLOT_REPLAY_UNUSABLE_SKIPPED_ACTIONS
                                              : ALLOT_REPLAY_UNUSABLE_NO_EVENTS;
    }
    for (uint64_t i = 0; i < events->count; i++) {
        if (events->kind[i] == ALLOT_EVENT_ALLOC && events->size[i] == 0) {
            return ALLOT_REPLAY_UNUSABLE_NO_SIZES;
        }
    }
    return ALLOT_REPLAY_UNUSABLE_NONE;
}

static allot_status fail_unusable(allot_replay_unusable reason, allot_replay_unusable *why)
{
    if (why != NULL) {
        *why = reason;
    }
    return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "the history cannot be replayed: %s",
                       allot_replay_unusable_text(reason));
}

static allot_status make_rules(allot_requests *requests)
{
    allot_requests_info *info = &requests->info;
    allot_status status = allot_torch_conf_from_trace(requests->trace, &info->conf, NULL);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    info->version = allot_torch_version_of(requests->trace);
    allot_torch_conf conf = info->conf;
    conf.backend = ALLOT_TORCH_BACKEND_NATIVE;
    conf.per_process_memory_fraction = 1;
    const allot_torchsim_options options = {.struct_size = sizeof(options), .conf = &conf};
    return allot_torchsim_create(&options, &requests->rules);
}

static allot_status build(allot_requests *requests)
{
    allot_status status = make_rules(requests);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_requests_make_pools(requests);
    }
    if (status == ALLOT_STATUS_OK) {
        status = make_slots(requests);
    }
    alloti_places places = {.count = 0};
    if (status == ALLOT_STATUS_OK) {
        status = alloti_places_find(requests, &places);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_requests_undo(requests, &places);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_places_survey(requests, &places);
    }
    alloti_places_fini(&places);
    return status == ALLOT_STATUS_OK ? alloti_requests_make_steps(requests) : status;
}

static allot_status init(allot_requests *requests, const allot_trace *trace, uint32_t device)
{
    if (device == ALLOT_NONE) {
        device = allot_trace_main_device(trace);
    }
    requests->trace = trace;
    requests->info.struct_size = sizeof(requests->info);
    requests->info.device = device;
    if (device == ALLOT_NONE) {
        return ALLOT_STATUS_OK; /* No device, no events. */
    }
    if (device >= allot_trace_device_count(trace)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "the trace has no device %u", (unsigned)device);
    }
    allot_trace_get_events(trace, device, &requests->events);
    requests->info.event_count = requests->events.count;
    for (uint64_t i = 0; i < requests->events.count; i++) {
        requests->kinds |= 1u << requests->events.kind[i];
    }
    return ALLOT_STATUS_OK;
}

allot_status allot_requests_create(const allot_trace *trace, uint32_t device, allot_requests **out,
                                   allot_replay_unusable *why)
{
    allot_requests *requests = calloc(1, sizeof(*requests));
    if (requests == NULL) {
        return alloti_fail_memory(sizeof(*requests));
    }
    allot_status status = init(requests, trace, device);
    if (status == ALLOT_STATUS_OK) {
        const allot_replay_unusable reason = missing_parts(requests);
        if (reason != ALLOT_REPLAY_UNUSABLE_NONE) {
            status = fail_unusable(reason, why);
        } else {
            status = build(requests);
        }
    }
    if (status == ALLOT_STATUS_FORMAT) {
        status = alloti_fail_prefix(ALLOT_STATUS_UNSUPPORTED, "the history cannot be replayed: ");
        if (why != NULL) {
            *why = ALLOT_REPLAY_UNUSABLE_INCONSISTENT;
        }
    }
    if (status != ALLOT_STATUS_OK) {
        allot_requests_destroy(requests);
        return status;
    }
    *out = requests;
    return ALLOT_STATUS_OK;
}

void allot_requests_destroy(allot_requests *requests)
{
    if (requests == NULL) {
        return;
    }
    allot_torchsim_destroy(requests->rules);
    free(requests->slots);
    free(requests->event_pools);
    free(requests->pool_numbers);
    free(requests->pools);
    free(requests->initial);
    free(requests->initial_blocks);
    free(requests->initial_slots);
    free(requests->steps);
    free(requests);
}

void allot_requests_get_info(const allot_requests *requests, allot_requests_info *out)
{
    *out = requests->info;
}
