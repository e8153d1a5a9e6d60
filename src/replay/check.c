/* SPDX-License-Identifier: MIT */
/**
 * Checking the exact model against a recording: what the program did is read off the events, the
 * rest must follow from the model.
 *
 * The events do not say where one call of the allocator begins. A row of segment_free may be a
 * release that the program asked for, or pressure on the way to the next allocation. Where the
 * model cannot decide, the readings are tried on copies; a difference is one under each of them.
 */
#include "replay/check.h"

#include "core/array.h"
#include "core/options.h"
#include "core/progress.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

/** The state before the first event. */
static allot_status load_initial(checker *check)
{
    const allot_requests *requests = check->requests;
    const uint64_t count = requests->initial_block_count;
    uint32_t *names = alloti_alloc_array(count + 1, sizeof(*names));
    if (names == NULL) {
        return alloti_fail_memory(count * sizeof(*names));
    }
    allot_status status =
        alloti_torchsim_load(check->sim, requests->initial, requests->initial_segment_count, names);
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        if (requests->initial_slots[i] != ALLOT_NONE) {
            check->blocks[requests->initial_slots[i]] = names[i];
        }
    }
    free(names);
    check->held = requests->info.initial_reserved;
    return status;
}

/** Block of the slot at the cursor; a difference if the model has none. */
static uint32_t block_at_cursor(checker *check)
{
    const uint32_t block = check->blocks[check->requests->slots[check->cursor]];
    if (block == ALLOT_NONE) {
        alloti_check_fail(check, NULL, "the block was never allocated");
    }
    return block;
}

/** An invalid argument here means that the recording does what no allocator does. */
static allot_status follow(checker *check, allot_status status)
{
    if (status == ALLOT_STATUS_INVALID) {
        alloti_check_fail(check, NULL, allot_error_detail());
        return ALLOT_STATUS_OK;
    }
    return status;
}

static allot_status follow_free(checker *check, bool is_shared)
{
    const uint32_t block = block_at_cursor(check);
    if (check->has_failed) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = ALLOT_STATUS_OK;
    if (is_shared) {
        const uint64_t other = ~check->sim->blocks[block].stream;
        status = allot_torchsim_record_stream(check->sim, block, other);
    }
    return follow(check,
                  status == ALLOT_STATUS_OK ? allot_torchsim_free(check->sim, block) : status);
}

/** A completed free by itself: the streams are done with the block. */
static allot_status follow_completed(checker *check)
{
    if (!alloti_requests_has(check->requests, ALLOT_EVENT_FREE_REQUESTED)) {
        return follow_free(check, false);
    }
    const uint32_t block = block_at_cursor(check);
    return check->has_failed ? ALLOT_STATUS_OK
                             : follow(check, allot_torchsim_complete(check->sim, block));
}

/** The allocation, or the failure, recorded at event `at`. */
static allot_status follow_request(checker *check, uint64_t at)
{
    const allot_events *events = check->events;
    const bool is_oom = events->kind[at] == ALLOT_EVENT_OOM;
    const uint64_t size = events->size[at] > 0 ? events->size[at] : 1;
    uint32_t block = ALLOT_NONE;
    allot_status status = allot_torchsim_alloc(
        check->sim, size, allot_trace_stream(check->requests->trace, events->stream[at]),
        check->requests->event_pools[at], &block);
    if (status == ALLOT_STATUS_DEVICE_MEMORY || status == ALLOT_STATUS_FRAGMENTED) {
        status = ALLOT_STATUS_OK;
    } else if (status == ALLOT_STATUS_OK && !is_oom && !check->has_failed) {
        check->blocks[check->requests->slots[at]] = block;
    }
    if (status == ALLOT_STATUS_OK && !check->has_failed && !check->matched[at]) {
        alloti_check_fail(check, NULL, "the model is done before the recording is");
    }
    return follow(check, status);
}

static allot_status follow_release(checker *check)
{
    const uint64_t before = check->cursor;
    const allot_status status = allot_torchsim_empty_cache(check->sim);
    if (status == ALLOT_STATUS_OK && !check->has_failed && check->cursor == before) {
        alloti_check_fail(check, NULL, "the model has nothing to release");
    }
    return status;
}

/** A row of segment events from the cursor on, up to the request that it may belong to. */
typedef struct row {
    uint64_t end; /**< Index of the request; the number of events without one. */
    bool has_request;
    bool takes; /**< Memory is taken from the driver in it. */
} row;

static row look_at_row(const checker *check)
{
    const allot_events *events = check->events;
    row found = {.end = check->cursor};
    while (found.end < events->count && !alloti_requests_is_boundary(check->requests, found.end)) {
        const uint8_t kind = events->kind[found.end];
        found.takes =
            found.takes || kind == ALLOT_EVENT_SEGMENT_ALLOC || kind == ALLOT_EVENT_SEGMENT_MAP;
        found.end++;
    }
    if (found.end < events->count) {
        const uint8_t kind = events->kind[found.end];
        found.has_request = kind == ALLOT_EVENT_ALLOC || kind == ALLOT_EVENT_OOM;
    }
    return found;
}

/** Whether a private pool gives memory back at an event that may have lost its last use: the model
 * holds it in use, and no request names it any more. */
static bool gives_in_used_pool(const checker *check, uint64_t at)
{
    const uint8_t kind = check->events->kind[at];
    const uint32_t pool = check->requests->event_pools[at];
    return pool != ALLOT_NONE &&
           (kind == ALLOT_EVENT_SEGMENT_FREE || kind == ALLOT_EVENT_SEGMENT_UNMAP) &&
           check->sim->pools[pool + 1].use_count > 0 &&
           check->requests->pools[pool].last_request < at;
}

static bool has_used_pools(const checker *check, const row *found)
{
    for (uint64_t at = check->cursor; at < found->end; at++) {
        if (gives_in_used_pool(check, at)) {
            return true;
        }
    }
    return false;
}

/** Private pools whose segments are given back in the row have lost their last use. */
static allot_status release_pools(checker *check, const row *found)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t at = check->cursor; at < found->end; at++) {
        while (status == ALLOT_STATUS_OK && gives_in_used_pool(check, at)) {
            status = allot_torchsim_pool_release(check->sim, check->requests->event_pools[at]);
        }
    }
    return status;
}

/** Whether the event at the cursor may be of a MemPool that was dropped. */
static bool may_be_dropped(const checker *check)
{
    const uint32_t pool = check->requests->event_pools[check->cursor];
    return gives_in_used_pool(check, check->cursor) &&
           !check->requests->pools[pool].options.is_graph;
}

/** The pool at the cursor loses its last use and gives its segments back. */
static allot_status follow_drop(checker *check)
{
    const uint64_t before = check->cursor;
    const uint32_t pool = check->requests->event_pools[before];
    allot_status status = ALLOT_STATUS_OK;
    while (status == ALLOT_STATUS_OK && check->sim->pools[pool + 1].use_count > 0) {
        status = allot_torchsim_pool_release(check->sim, pool);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_torchsim_pool_empty_cache(check->sim, pool);
    }
    if (status == ALLOT_STATUS_OK && !check->has_failed && check->cursor == before) {
        alloti_check_fail(check, NULL, "the model has nothing to release");
    }
    return status;
}

/** Whether the row's first release is more likely the program's own. */
static bool seems_own(const checker *check, const row *found)
{
    if (!found->has_request) {
        return true;
    }
    const allot_events *events = check->events;
    if (events->kind[found->end] == ALLOT_EVENT_ALLOC && !found->takes) {
        return true;
    }
    const uint64_t size = events->size[found->end] > 0 ? events->size[found->end] : 1;
    const uint64_t stream = allot_trace_stream(check->requests->trace, events->stream[found->end]);
    return alloti_torchsim_would_hit(check->sim, size, stream,
                                     check->requests->event_pools[found->end]);
}

/** What has to be put back before the other reading of a row is tried. */
typedef struct saved {
    allot_torchsim *sim;
    uint8_t *matched;
    checker check;
    allot_replay_check_result result;
    uint64_t first;
    uint64_t count;
} saved;

static void drop_saved(saved *state)
{
    allot_torchsim_destroy(state->sim);
    free(state->matched);
}

static allot_status save(const checker *check, const row *found, saved *out)
{
    const uint64_t end = found->has_request ? found->end + 1 : found->end;
    *out = (saved){.check = *check,
                   .result = *check->result,
                   .first = check->cursor,
                   .count = end - check->cursor};
    out->matched = alloti_alloc_array(out->count + 1, 1);
    if (out->matched == NULL) {
        return alloti_fail_memory(out->count);
    }
    memcpy(out->matched, check->matched + out->first, (size_t)out->count);
    const allot_status status = allot_torchsim_clone(check->sim, &out->sim);
    if (status != ALLOT_STATUS_OK) {
        drop_saved(out);
    }
    return status;
}

/** Put everything back; the saved allocator moves into the check. */
static void restore(checker *check, saved *state)
{
    allot_torchsim_destroy(check->sim);
    check->sim = state->sim;
    state->sim = NULL;
    check->cursor = state->check.cursor;
    check->held = state->check.held;
    check->has_failed = false;
    memcpy(check->matched + state->first, state->matched, (size_t)state->count);
    *check->result = state->result;
}

/** One way to read a row of releases. */
typedef struct reading {
    bool is_own;     /**< The program asked; else the request that follows needed it. */
    bool ends_pools; /**< Private pools in the row have lost their last use. */
    bool is_drop;    /**< A MemPool was dropped; the rest of the row is read for itself. */
} reading;

static allot_status follow_reading(checker *check, const row *found, reading as)
{
    if (as.is_drop) {
        return follow_drop(check);
    }
    allot_status status = as.ends_pools ? release_pools(check, found) : ALLOT_STATUS_OK;
    if (status == ALLOT_STATUS_OK && as.is_own) {
        status = follow_release(check);
    }
    const bool is_left = found->has_request && !check->has_failed && check->cursor <= found->end;
    return status == ALLOT_STATUS_OK && is_left ? follow_request(check, found->end) : status;
}

/** Try the readings one after the other until one comes out equal. [count] */
static allot_status follow_any(checker *check, const row *found, const reading *readings,
                               size_t count)
{
    allot_replay_check_result first = *check->result;
    allot_status status = ALLOT_STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        saved state;
        status = save(check, found, &state);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        status = follow_reading(check, found, readings[i]);
        if (status != ALLOT_STATUS_OK || !check->has_failed) {
            drop_saved(&state);
            return status;
        }
        first = i == 0 ? *check->result : first;
        if (i + 1 < count) {
            restore(check, &state);
        }
        drop_saved(&state);
    }
    *check->result = first;
    return status;
}

/** A row that begins with memory given back. */
static allot_status follow_giving(checker *check, const row *found)
{
    reading readings[5];
    size_t count = 0;
    if (may_be_dropped(check)) {
        readings[count++] = (reading){.is_drop = true};
    }
    const bool is_own = seems_own(check, found);
    const int pool_readings = has_used_pools(check, found) ? 2 : 1;
    for (int pools = 0; pools < pool_readings; pools++) {
        readings[count++] = (reading){.is_own = is_own, .ends_pools = pools == 1};
        if (found->has_request) {
            readings[count++] = (reading){.is_own = !is_own, .ends_pools = pools == 1};
        }
    }
    return count == 1 ? follow_reading(check, found, readings[0])
                      : follow_any(check, found, readings, count);
}

static allot_status follow_row(checker *check)
{
    const row found = look_at_row(check);
    const uint8_t kind = check->events->kind[check->cursor];
    if (kind == ALLOT_EVENT_SEGMENT_ALLOC || kind == ALLOT_EVENT_SEGMENT_MAP) {
        if (!found.has_request) {
            alloti_check_fail(check, NULL, "memory is taken without a request");
            return ALLOT_STATUS_OK;
        }
        return follow_request(check, found.end);
    }
    return follow_giving(check, &found);
}

static allot_status follow_event(checker *check)
{
    switch ((allot_event_kind)check->events->kind[check->cursor]) {
    case ALLOT_EVENT_FREE_REQUESTED:
        return follow_free(check, !alloti_requests_is_immediate(check->requests, check->cursor));
    case ALLOT_EVENT_FREE_COMPLETED:
        return follow_completed(check);
    case ALLOT_EVENT_ALLOC:
    case ALLOT_EVENT_OOM:
        return follow_request(check, check->cursor);
    default:
        return follow_row(check);
    }
}

static allot_status follow_all(checker *check, const alloti_progress *progress)
{
    allot_status status = ALLOT_STATUS_OK;
    uint64_t told = 0;
    alloti_check_skip(check);
    while (status == ALLOT_STATUS_OK && !check->has_failed &&
           check->cursor < check->events->count) {
        status = follow_event(check);
        alloti_check_skip(check);
        if (status == ALLOT_STATUS_OK && check->cursor - told > 8192) {
            told = check->cursor;
            status = alloti_progress_tell(progress, told, check->events->count);
        }
    }
    return status;
}

static allot_status choose_conf(const allot_requests *requests,
                                const allot_replay_check_options *options, allot_torch_conf *conf)
{
    *conf = requests->info.conf;
    if (options->model == NULL || strcmp(options->model, "recorded") == 0) {
        return ALLOT_STATUS_OK;
    }
    const char *settings = options->model;
    if (strncmp(settings, "torch", 5) != 0 || (settings[5] != '\0' && settings[5] != ':')) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "a check needs the model \"torch:...\", not \"%.60s\"", settings);
    }
    settings += settings[5] == ':' ? 6 : 5;
    const allot_status status = allot_torch_conf_parse(settings, conf, NULL);
    return status == ALLOT_STATUS_OK ? status : alloti_fail_prefix(status, "model: ");
}

static allot_status init(checker *check, const allot_replay_check_options *options)
{
    const allot_requests *requests = check->requests;
    allot_replay_check_result *result = check->result;
    check->limit = options->limit == 0 ? UINT64_MAX : options->limit;
    check->matched = alloti_calloc_array(check->events->count + 1, 1);
    check->blocks = alloti_alloc_array((uint64_t)requests->slot_count + 1, sizeof(*check->blocks));
    if (check->matched == NULL || check->blocks == NULL) {
        return alloti_fail_memory(check->events->count);
    }
    memset(check->blocks, 0xff, ((size_t)requests->slot_count + 1) * sizeof(*check->blocks));
    const allot_torch_driver driver = alloti_check_driver(check);
    const allot_torchsim_options sim_options = {.struct_size = sizeof(sim_options),
                                                .conf = &result->conf,
                                                .driver = &driver,
                                                .limit = options->limit,
                                                .fraction = options->fraction,
                                                .version = result->version,
                                                .completion = ALLOT_TORCH_COMPLETE_ON_CALL,
                                                .on_event = alloti_check_event,
                                                .on_event_context = check};
    allot_status status = allot_torchsim_create(&sim_options, &check->sim);
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < requests->pool_count; i++) {
        status = allot_torchsim_pool_create(check->sim, &requests->pools[i].options, NULL);
    }
    if (status == ALLOT_STATUS_OK && options->limit == 0) {
        alloti_torchsim_set_range_bytes(check->sim, requests->range_bytes);
    }
    return status == ALLOT_STATUS_OK ? load_initial(check) : status;
}

static void fini(checker *check)
{
    allot_torchsim_destroy(check->sim);
    free(check->matched);
    free(check->blocks);
}

allot_status allot_replay_check(const allot_requests *requests,
                                const allot_replay_check_options *given,
                                allot_replay_check_result *out)
{
    allot_replay_check_options options;
    allot_status status = alloti_options_take(given, sizeof(options), &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_replay_check_result result = {.struct_size = sizeof(result),
                                        .placement_count = requests->info.alloc_count,
                                        .event_count = requests->events.count};
    result.version = options.version == 0 ? requests->info.version : options.version;
    checker check = {.requests = requests, .events = &requests->events, .result = &result};
    const alloti_progress progress = {options.progress, options.progress_context, "checking"};
    status = choose_conf(requests, &options, &result.conf);
    if (status == ALLOT_STATUS_OK) {
        status = init(&check, &options);
    }
    if (status == ALLOT_STATUS_OK) {
        status = follow_all(&check, &progress);
    }
    if (status == ALLOT_STATUS_OK) {
        result.is_equal = !check.has_failed;
        result.stats = *allot_torchsim_get_stats(check.sim);
        *out = result;
    }
    fini(&check);
    if (status == ALLOT_STATUS_OK && !result.is_equal) {
        return alloti_fail(ALLOT_STATUS_MISMATCH, "%s", result.reason);
    }
    return status;
}
