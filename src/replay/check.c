/* SPDX-License-Identifier: MIT */
/**
 * Checking the exact model against a recording: what the program did is read off the events, the
 * rest must follow from the model.
 *
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

allot_status alloti_check_free(checker *check, bool is_shared)
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

allot_status alloti_check_completed(checker *check)
{
    if (!alloti_requests_has(check->requests, ALLOT_EVENT_FREE_REQUESTED)) {
        return alloti_check_free(check, false);
    }
    const uint32_t block = block_at_cursor(check);
    return check->has_failed ? ALLOT_STATUS_OK
                             : follow(check, allot_torchsim_complete(check->sim, block));
}

allot_status alloti_check_request(checker *check, uint64_t at)
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

allot_status alloti_check_release(checker *check)
{
    const uint64_t before = check->cursor;
    const allot_status status = allot_torchsim_empty_cache(check->sim);
    if (status == ALLOT_STATUS_OK && !check->has_failed && check->cursor == before) {
        alloti_check_fail(check, NULL, "the model has nothing to release");
    }
    return status;
}

static allot_status follow_event(checker *check)
{
    switch ((allot_event_kind)check->events->kind[check->cursor]) {
    case ALLOT_EVENT_FREE_REQUESTED:
        if (!alloti_requests_is_immediate(check->requests, check->cursor)) {
            return alloti_check_free(check, true);
        }
        return alloti_check_completions(check);
    case ALLOT_EVENT_FREE_COMPLETED:
        return alloti_check_completions(check);
    case ALLOT_EVENT_ALLOC:
    case ALLOT_EVENT_OOM:
        return alloti_check_request(check, check->cursor);
    default:
        return alloti_check_row(check);
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

/** The settings to check with, as the release that result->version names reads them. */
static allot_status choose_conf(const allot_requests *requests,
                                const allot_replay_check_options *options,
                                allot_replay_check_result *result)
{
    allot_torch_conf *const conf = &result->conf;
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
    const allot_status status = allot_torch_conf_parse_for(settings, result->version, conf, NULL);
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
    status = choose_conf(requests, &options, &result);
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
