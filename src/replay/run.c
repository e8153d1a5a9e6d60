/* SPDX-License-Identifier: MIT */
/** A replay under other conditions: the same requests, another model, limit or setting. */
#include "core/array.h"
#include "core/options.h"
#include "core/progress.h"
#include "core/status.h"
#include "replay/model.h"
#include "replay/requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_BLOCK UINT64_MAX

typedef struct runner {
    const allot_requests *requests;
    const allot_replay_options *options;
    alloti_model *model;
    uint64_t *blocks; /**< [slots] The model's names, NO_BLOCK where there is none. */
    allot_replay_result *result;
    uint64_t stride;            /**< Steps between two samples. */
    uint32_t compactions_dated; /**< Of the model, those whose event is set. */
    uint64_t sample_max;
    bool has_begun; /**< What was live before the first event is there. */
    bool has_stopped;
} runner;

static bool is_out_of_memory(allot_status status)
{
    return status == ALLOT_STATUS_DEVICE_MEMORY || status == ALLOT_STATUS_FRAGMENTED;
}

static double fragmentation(const alloti_model_survey *survey)
{
    return survey->free_bytes == 0 ? 0
                                   : 1 - (double)survey->free_largest / (double)survey->free_bytes;
}

static void take_sample(runner *run, uint64_t event)
{
    allot_replay_result *result = run->result;
    if (result->samples == NULL || result->sample_count >= run->sample_max) {
        return;
    }
    const alloti_model_stats *stats = &run->model->stats;
    alloti_model_survey survey;
    run->model->ops->survey(run->model, &survey);
    result->samples[result->sample_count++] =
        (allot_replay_sample){.event = event,
                              .reserved = stats->reserved,
                              .allocated = stats->allocated,
                              .active = stats->active,
                              .free_largest = survey.free_largest,
                              .fragmentation = fragmentation(&survey)};
}

static void note_failure(runner *run, uint64_t event, uint64_t size, allot_status status)
{
    allot_replay_result *result = run->result;
    if (result->oom_count++ == 0) {
        result->oom_event = event;
        result->oom_size = size;
        result->oom_reserved = run->model->stats.reserved;
        result->oom_allocated = run->model->stats.allocated;
        result->oom_is_fragmentation = status == ALLOT_STATUS_FRAGMENTED;
    }
    run->has_stopped = !run->options->continue_after_oom;
}

/** Where a request comes from, as a number above 0; 0 if that is unknown. */
static uint32_t site_of(const runner *run, const alloti_step *step)
{
    const uint32_t stack = run->has_begun ? run->requests->events.stack[step->event] : ALLOT_NONE;
    return stack != ALLOT_NONE ? stack + 1 : 0;
}

/** Ask the model; an out-of-memory is noted and leaves NO_BLOCK. */
static allot_status request(runner *run, const alloti_step *step, uint64_t *block)
{
    *block = NO_BLOCK;
    run->model->site = site_of(run, step);
    const allot_status status =
        run->model->ops->alloc(run->model, step->size, step->stream, step->pool, block);
    if (is_out_of_memory(status)) {
        *block = NO_BLOCK;
        note_failure(run, step->event, step->size, status);
        return ALLOT_STATUS_OK;
    }
    run->result->alloc_count += status == ALLOT_STATUS_OK;
    return status;
}

static allot_status release(runner *run, uint64_t block, bool is_shared)
{
    return block == NO_BLOCK ? ALLOT_STATUS_OK
                             : run->model->ops->free(run->model, block, is_shared);
}

static allot_status make_step(runner *run, const alloti_step *step)
{
    const alloti_model_ops *ops = run->model->ops;
    uint64_t block = NO_BLOCK;
    allot_status status = ALLOT_STATUS_OK;
    switch ((step_kind)step->kind) {
    case STEP_ALLOC:
        return request(run, step, &run->blocks[step->slot]);
    case STEP_ALLOC_FAILED:
        status = request(run, step, &block);
        return status == ALLOT_STATUS_OK ? release(run, block, false) : status;
    case STEP_FREE:
        status = release(run, run->blocks[step->slot], false);
        run->blocks[step->slot] = NO_BLOCK;
        return status;
    case STEP_FREE_SHARED:
        return release(run, run->blocks[step->slot], true);
    case STEP_COMPLETE:
        if (run->blocks[step->slot] != NO_BLOCK && ops->complete != NULL) {
            status = ops->complete(run->model, run->blocks[step->slot]);
        }
        run->blocks[step->slot] = NO_BLOCK;
        return status;
    case STEP_EMPTY_CACHE:
        return ops->empty_cache != NULL ? ops->empty_cache(run->model) : ALLOT_STATUS_OK;
    }
    return ALLOT_STATUS_OK;
}

/** Set the event of the compactions that a step made, and let the caller look at the heap. */
static allot_status follow_heap(runner *run, uint64_t event)
{
    alloti_model *const model = run->model;
    while (run->compactions_dated < model->compaction_count) {
        model->compactions[run->compactions_dated++].event = event;
    }
    const allot_replay_options *const options = run->options;
    if (options->on_heap == NULL || model->heap == NULL ||
        options->on_heap(options->on_heap_context, model->heap, event)) {
        return ALLOT_STATUS_OK;
    }
    return alloti_fail(ALLOT_STATUS_CANCELLED, "replay: ended by the caller");
}

static allot_status make_steps(runner *run, const alloti_progress *progress)
{
    const allot_requests *requests = run->requests;
    allot_status status = ALLOT_STATUS_OK;
    run->has_begun = true;
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && !run->has_stopped && i < requests->step_count;
         i++) {
        status = make_step(run, &requests->steps[i]);
        if (status == ALLOT_STATUS_OK) {
            status = follow_heap(run, requests->steps[i].event);
        }
        const bool is_last = i + 1 == requests->step_count || run->has_stopped;
        if (run->stride > 0 && (i % run->stride == 0 || is_last)) {
            take_sample(run, requests->steps[i].event);
        }
        if (status == ALLOT_STATUS_OK && i % 16384 == 16383) {
            status = alloti_progress_tell(progress, i, requests->step_count);
        }
    }
    return status;
}

/** Begin with the recorded layout. */
static allot_status load_initial(runner *run)
{
    const allot_requests *requests = run->requests;
    const uint64_t count = requests->initial_block_count;
    uint64_t *names = alloti_alloc_array(count + 1, sizeof(*names));
    if (names == NULL) {
        return alloti_fail_memory(count * sizeof(*names));
    }
    const allot_status status = run->model->ops->load(run->model, requests->initial,
                                                      requests->initial_segment_count, names);
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        if (requests->initial_slots[i] != ALLOT_NONE) {
            run->blocks[requests->initial_slots[i]] = names[i];
        }
    }
    free(names);
    return status;
}

/** Request what was live, by address; blocks that waited for a stream do so here. */
static allot_status request_initial(runner *run)
{
    const allot_requests *requests = run->requests;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t s = 0; s < requests->initial_segment_count; s++) {
        const alloti_torchsim_segment *segment = &requests->initial[s];
        for (uint32_t i = 0;
             status == ALLOT_STATUS_OK && !run->has_stopped && i < segment->block_count; i++) {
            const alloti_torchsim_block *block = &segment->blocks[i];
            const uint32_t slot = requests->initial_slots[segment->block_first + i];
            if (slot == ALLOT_NONE) {
                continue;
            }
            const bool is_sane = block->requested > 0 && block->requested <= block->size;
            const alloti_step step = {.size = is_sane ? block->requested : block->size,
                                      .stream = segment->stream,
                                      .slot = slot,
                                      .pool = segment->pool};
            status = request(run, &step, &run->blocks[slot]);
            if (status == ALLOT_STATUS_OK && block->state == ALLOT_BLOCK_PENDING_FREE) {
                status = release(run, run->blocks[slot], true);
            }
        }
    }
    return status;
}

static bool is_recorded(const allot_replay_options *options)
{
    return options->conf == NULL &&
           (options->model == NULL || strcmp(options->model, "recorded") == 0);
}

/** Whether the model is what was recorded, so that the recorded layout is one of its states. */
static bool can_load(const runner *run)
{
    const allot_requests *requests = run->requests;
    if (run->model->ops->load == NULL || requests->initial_segment_count == 0) {
        return false;
    }
    if (is_recorded(run->options)) {
        return true;
    }
    char recorded[ALLOT_TORCH_CONF_TEXT_MAX];
    char used[ALLOT_TORCH_CONF_TEXT_MAX];
    allot_torch_conf_format(&requests->info.conf, recorded);
    run->model->ops->describe(run->model, used, sizeof(used));
    return strcmp(recorded, used) == 0;
}

static allot_status begin(runner *run)
{
    if (!can_load(run)) {
        return request_initial(run);
    }
    const allot_status status = load_initial(run);
    if (is_out_of_memory(status)) {
        note_failure(run, 0, run->requests->info.initial_reserved, status);
        run->has_stopped = true;
        return ALLOT_STATUS_OK;
    }
    return status;
}

static allot_status make_model(runner *run)
{
    const allot_requests *requests = run->requests;
    const allot_replay_options *options = run->options;
    const bool recorded = is_recorded(options);
    const alloti_model_params params = {.conf = recorded ? &requests->info.conf : options->conf,
                                        .limit = options->limit == 0 ? UINT64_MAX : options->limit,
                                        .fraction = options->fraction,
                                        .version = options->version != 0 ? options->version
                                                                         : requests->info.version,
                                        .pool_count = requests->pool_count,
                                        .pools = requests->pools};
    return alloti_model_create(params.conf != NULL ? NULL : options->model, &params, &run->model);
}

/** The model as "name:argument" without a colon where there is no argument. */
static void name_model(const runner *run)
{
    allot_replay_result *result = run->result;
    char argument[ALLOT_TORCH_CONF_TEXT_MAX] = "";
    run->model->ops->describe(run->model, argument, sizeof(argument));
    (void)snprintf(result->model, sizeof(result->model), "%s%s%s", run->model->ops->info.name,
                   argument[0] == '\0' ? "" : ":", argument);
    result->is_exact = run->model->ops->info.is_exact;
}

static void summarise(const runner *run)
{
    const alloti_model_stats *stats = &run->model->stats;
    allot_replay_result *result = run->result;
    alloti_model_survey survey;
    run->model->ops->survey(run->model, &survey);
    result->has_finished = result->oom_count == 0;
    result->reserved_peak = stats->reserved_peak;
    result->allocated_peak = stats->allocated_peak;
    result->active_peak = stats->active_peak;
    result->requested_peak = stats->requested_peak;
    result->reserved_end = stats->reserved;
    result->allocated_end = stats->allocated;
    result->fragmentation_end = fragmentation(&survey);
    result->driver_alloc_count = stats->segment_alloc_count + stats->range_map_count;
    result->driver_free_count =
        stats->segment_free_count + (stats->range_count - stats->range_map_count);
    result->retry_count = stats->retry_count;
    allot_cost_model cost;
    allot_cost_model_init(&cost);
    if (run->options->cost != NULL) {
        cost = *run->options->cost;
    }
    result->cost_ns = alloti_cost_of(&cost, stats, result->alloc_count);
}

/** The result takes the model's list of compactions. */
static void take_compactions(runner *run)
{
    allot_replay_result *const result = run->result;
    alloti_model *const model = run->model;
    result->copy_bytes = model->stats.copy_bytes;
    result->copy_ns = model->stats.copy_ns;
    result->compactions = model->compactions;
    result->compaction_count = model->compaction_count;
    model->compactions = NULL;
}

static allot_status init(runner *run)
{
    const allot_replay_options *options = run->options;
    const uint64_t slots = (uint64_t)run->requests->slot_count + 1;
    run->blocks = alloti_alloc_array(slots, sizeof(*run->blocks));
    if (run->blocks == NULL) {
        return alloti_fail_memory(slots * sizeof(*run->blocks));
    }
    memset(run->blocks, 0xff, (size_t)slots * sizeof(*run->blocks));
    if (options->sample_count > 0) {
        const uint64_t wanted = options->sample_count > 1 ? options->sample_count - 1 : 1;
        run->stride = run->requests->step_count / wanted + 1;
        const uint64_t steps = run->requests->step_count / run->stride + 2;
        run->sample_max = steps < options->sample_count ? steps : options->sample_count;
        run->result->samples = alloti_alloc_array(run->sample_max, sizeof(*run->result->samples));
        if (run->result->samples == NULL) {
            return alloti_fail_memory(run->sample_max * sizeof(*run->result->samples));
        }
    }
    return make_model(run);
}

static allot_status run_all(runner *run)
{
    const alloti_progress progress = {run->options->progress, run->options->progress_context,
                                      "replaying"};
    allot_status status = init(run);
    if (status == ALLOT_STATUS_OK) {
        status = begin(run);
    }
    if (status == ALLOT_STATUS_OK) {
        status = make_steps(run, &progress);
    }
    if (status == ALLOT_STATUS_OK) {
        name_model(run);
        summarise(run);
        take_compactions(run);
    }
    alloti_model_destroy(run->model);
    free(run->blocks);
    return status;
}

allot_status allot_replay_run(const allot_requests *requests, const allot_replay_options *options,
                              allot_replay_result **out)
{
    allot_replay_options o;
    allot_status status = alloti_options_take(options, sizeof(o), &o);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_replay_result *result = calloc(1, sizeof(*result));
    if (result == NULL) {
        return alloti_fail_memory(sizeof(*result));
    }
    result->struct_size = sizeof(*result);
    runner run = {.requests = requests, .options = &o, .result = result};
    status = run_all(&run);
    if (status != ALLOT_STATUS_OK) {
        allot_replay_result_destroy(result);
        return status;
    }
    *out = result;
    return ALLOT_STATUS_OK;
}

void allot_replay_result_destroy(allot_replay_result *result)
{
    if (result != NULL) {
        free(result->samples);
        free(result->compactions);
        free(result);
    }
}
