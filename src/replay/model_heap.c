/* SPDX-License-Identifier: MIT */
/*
 * "heap:first-fit" and its like: the requests of a trace, served by a heap (<allot/heap.h>) as a
 * program that links allot would have it: ladder, streams, pools, rounding and compaction are the
 * heap's own code, not a model of it. Below it is a simulated device, whose memory is the limit.
 *
 * What a trace does not tell is taken like this. Streams of the simulated device do no work, so
 * free memory of another stream can be had as soon as the heap looks there. A block that another
 * stream uses when it is freed is kept, pinned, until the recording says that this is over. Call
 * sites, where they were recorded, are the tags of requests. Private pools are pools of the heap.
 *
 * Without a limit the device has more memory than any has, and requests above that are refused.
 */
#include "replay/model_heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/size_math.h"
#include "replay/requests.h"
#include "replay/strategy.h"

static const uint64_t SEGMENT_DEFAULT = UINT64_C(64) << 20;
static const uint64_t SEGMENT_MAX = UINT64_C(1) << 40;
static const uint64_t MEMORY_MAX = UINT64_C(32) << 40;
/** Addresses per pool and stream at first: above the memory of any device, and a small part of the
 * addresses that there are. */
static const uint64_t RESERVE_MAX = UINT64_C(256) << 30;
static const double THRESHOLD_DEFAULT = 0.25;
static const uint64_t STEP_DEFAULT = UINT64_C(64) << 20;
static const char GPU_DEFAULT[] = "a100-80";

static void heap_destroy(alloti_model *model)
{
    alloti_heap_model *const self = (alloti_heap_model *)model;
    allot_compactor_destroy(self->compactor);
    allot_heap_destroy(self->heap);
    allot_device_destroy(self->device);
    alloti_map64_fini(&self->stream_numbers);
    free(self->streams);
    free(self->pools);
    free(self->blocks);
    free(self);
}

static bool has_threshold(const alloti_heap_model *self)
{
    return self->compacts == ALLOTI_HEAP_COMPACT_TRIM || self->compacts >= ALLOTI_HEAP_COMPACT_AUTO;
}

static void heap_describe(const alloti_model *model, char *buffer, size_t size)
{
    const alloti_heap_model *const self = (const alloti_heap_model *)model;
    static const char *const COMPACT[] = {
        "", ",compact=trim", ",compact=forced", ",compact=full", ",compact=auto", ",compact=steps"};
    char segment[64] = "";
    char threshold[64] = "";
    char step[64] = "";
    if (self->is_segmented != 0) {
        snprintf(segment, sizeof segment, "segment=%" PRIu64 "MiB,", self->segment >> 20);
    }
    if (has_threshold(self)) {
        snprintf(threshold, sizeof threshold, ",threshold=%g", self->threshold);
    }
    if (self->compacts == ALLOTI_HEAP_COMPACT_STEPS) {
        snprintf(step, sizeof step, ",step=%" PRIu64 "B", self->step);
    }
    snprintf(buffer, size, "mode=%s,%sblocks=%s%s%s%s%s%s",
             self->is_segmented != 0 ? "segments" : "virtual", segment,
             self->is_movable != 0 ? "handles" : "pointers", COMPACT[self->compacts], threshold,
             step, strcmp(self->gpu, GPU_DEFAULT) == 0 ? "" : ",gpu=",
             strcmp(self->gpu, GPU_DEFAULT) == 0 ? "" : self->gpu);
}

static allot_status heap_empty_cache(alloti_model *model)
{
    alloti_heap_model *const self = (alloti_heap_model *)model;
    const allot_status status = allot_heap_trim(self->heap, 0, NULL);
    alloti_heap_note(self);
    return status;
}

#define HEAP_MODEL_ARGUMENT                                                                        \
    "mode=virtual|segments,segment=SIZE,blocks=pointers|handles,compact=off|forced|full|auto|"     \
    "steps,"                                                                                       \
    "threshold=SHARE,step=SIZE,gpu=NAME"

static const alloti_model_ops OPS[] = {
#define HEAP_MODEL_OPS(name_, value, spelling)                                                     \
    [value] = {                                                                                    \
        .ops_size = sizeof(alloti_model_ops),                                                      \
        .info = {.name = "heap:" spelling,                                                         \
                 .argument = HEAP_MODEL_ARGUMENT,                                                  \
                 .summary = "a heap of allot/heap.h"},                                             \
        .destroy = heap_destroy,                                                                   \
        .describe = heap_describe,                                                                 \
        .alloc = alloti_heap_model_alloc,                                                          \
        .free = alloti_heap_model_free,                                                            \
        .complete = alloti_heap_model_complete,                                                    \
        .empty_cache = heap_empty_cache,                                                           \
        .survey = alloti_heap_model_survey,                                                        \
    },
    ALLOT_SPACE_STRATEGY_LIST(HEAP_MODEL_OPS)
#undef HEAP_MODEL_OPS
};

/* ---- options ---- */

static allot_status parse(alloti_heap_model *self, const char *argument)
{
    static const char *const MODES[] = {"virtual", "segments", NULL};
    static const char *const BLOCKS[] = {"pointers", "handles", NULL};
    static const char *const COMPACT[] = {"off", "trim", "forced", "full", "auto", "steps", NULL};
    const alloti_parameter known[] = {
        {"mode", ALLOTI_PARAMETER_CHOICE, &self->is_segmented, MODES},
        {"segment", ALLOTI_PARAMETER_SIZE_SET, &self->segment, NULL},
        {"blocks", ALLOTI_PARAMETER_CHOICE, &self->is_movable, BLOCKS},
        {"compact", ALLOTI_PARAMETER_CHOICE, &self->compacts, COMPACT},
        {"threshold", ALLOTI_PARAMETER_FRACTION, &self->threshold, NULL},
        {"step", ALLOTI_PARAMETER_SIZE_SET, &self->step, NULL},
        {"gpu", ALLOTI_PARAMETER_TEXT, self->gpu, NULL},
    };
    snprintf(self->gpu, sizeof self->gpu, "%s", GPU_DEFAULT);
    const allot_status status =
        alloti_parameters_parse(argument, known, sizeof known / sizeof known[0]);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (self->segment != 0 && self->is_segmented == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "segment= needs mode=segments");
    }
    if (self->segment % (UINT64_C(1) << 20) != 0 || self->segment > SEGMENT_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "segment: want a multiple of 1 MiB, up to 1 TiB");
    }
    if (self->compacts >= ALLOTI_HEAP_COMPACT_FORCED && self->is_movable == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "compact= needs blocks=handles: pointers stay where they are");
    }
    if (self->threshold > 0 && !has_threshold(self)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "threshold= needs compact=trim, auto or steps");
    }
    if (self->step > 0 && self->compacts != ALLOTI_HEAP_COMPACT_STEPS) {
        return alloti_fail(ALLOT_STATUS_INVALID, "step= needs compact=steps");
    }
    self->step = self->step > 0 ? self->step : STEP_DEFAULT;
    self->threshold = self->threshold > 0 ? self->threshold : THRESHOLD_DEFAULT;
    self->segment = self->segment == 0 ? SEGMENT_DEFAULT : self->segment;
    return ALLOT_STATUS_OK;
}

static uint64_t memory_of(const alloti_model_params *params)
{
    uint64_t memory = params->limit;
    if (params->fraction > 0.0 && memory != UINT64_MAX) {
        memory = alloti_to_u64((double)memory * params->fraction);
    }
    memory = memory < MEMORY_MAX ? memory : MEMORY_MAX;
    return memory == 0 ? 1 : memory;
}

/* ---- making ---- */

static allot_status open_device(alloti_heap_model *self)
{
    char text[ALLOTI_PARAMETER_TEXT_MAX + 64];
    snprintf(text, sizeof text, "simulated,gpu:%s,memory:%" PRIu64, self->gpu, self->memory);
    const allot_status status = allot_device_open(text, &self->device);
    if (status == ALLOT_STATUS_OK) {
        allot_device_get_info(self->device, &self->info);
        return status;
    }
    /* No such GPU is a wrong argument here. */
    return status == ALLOT_STATUS_NOT_FOUND ? alloti_fail_prefix(ALLOT_STATUS_INVALID, "gpu: ")
                                            : status;
}

static allot_status make_pools(alloti_heap_model *self, const alloti_model_params *params)
{
    self->pools = alloti_calloc_array((uint64_t)params->pool_count + 1, sizeof *self->pools);
    if (self->pools == NULL) {
        return alloti_fail_memory(params->pool_count * sizeof *self->pools);
    }
    self->pool_count = params->pool_count;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < self->pool_count && status == ALLOT_STATUS_OK; i++) {
        const allot_heap_pool_options options = {
            .struct_size = sizeof options,
            .strategy = self->strategy,
            .is_shared_on_oom = params->pools != NULL && params->pools[i].options.use_on_oom};
        status = allot_heap_pool_create(self->heap, &options, &self->pools[i]);
    }
    return status;
}

static allot_status make_heap(alloti_heap_model *self)
{
    const allot_heap_options options = {
        .struct_size = sizeof options,
        .mode = self->is_segmented != 0 ? ALLOT_HEAP_MODE_SEGMENTS : ALLOT_HEAP_MODE_VIRTUAL,
        .strategy = self->strategy,
        .segment_size = self->segment,
        .reserve_size = self->memory < RESERVE_MAX ? self->memory : RESERVE_MAX,
        .limit = self->memory};
    const allot_status status = allot_heap_create(self->device, &options, &self->heap);
    self->model.heap = self->heap;
    return status;
}

static allot_status attach_compaction(alloti_heap_model *self)
{
    allot_status status = ALLOT_STATUS_OK;
    if (self->compacts >= ALLOTI_HEAP_COMPACT_FORCED) {
        status = allot_compact_attach(self->heap, NULL);
    }
    if (status == ALLOT_STATUS_OK && self->compacts == ALLOTI_HEAP_COMPACT_STEPS) {
        status = allot_compactor_create(self->heap, NULL, &self->compactor);
    }
    return status;
}

static allot_status make(allot_space_strategy strategy, const char *argument,
                         const alloti_model_params *params, alloti_model **out)
{
    alloti_heap_model *const self = calloc(1, sizeof *self);
    if (self == NULL) {
        return alloti_fail_memory(sizeof *self);
    }
    self->model.ops = &OPS[strategy];
    self->strategy = strategy;
    self->block_spare = ALLOT_NONE;
    self->memory = memory_of(params);
    allot_status status = parse(self, argument);
    if (status == ALLOT_STATUS_OK) {
        status = open_device(self);
    }
    if (status == ALLOT_STATUS_OK) {
        status = make_heap(self);
    }
    if (status == ALLOT_STATUS_OK) {
        status = attach_compaction(self);
    }
    if (status == ALLOT_STATUS_OK) {
        status = make_pools(self, params);
    }
    if (status != ALLOT_STATUS_OK) {
        heap_destroy(&self->model);
        return status == ALLOT_STATUS_INVALID
                   ? alloti_fail_prefix(status, "%s: ", allot_space_strategy_name(strategy))
                   : status;
    }
    *out = &self->model;
    return ALLOT_STATUS_OK;
}

/** "heap" alone is first fit. The model made says by its own table which strategy it is. */
static allot_status heap_create(const alloti_model_params *params, alloti_model **out)
{
    allot_space_strategy strategy = ALLOT_SPACE_STRATEGY_FIRST_FIT;
    const char *rest = NULL;
    const allot_status status = alloti_strategy_take("heap", params->argument, &strategy, &rest);
    return status == ALLOT_STATUS_OK ? make(strategy, rest, params, out) : status;
}

const alloti_model_ops alloti_model_heap = {
    .ops_size = sizeof(alloti_model_ops),
    .info = {.name = "heap",
             .argument = "STRATEGY[:" HEAP_MODEL_ARGUMENT
                         "]; STRATEGY is first-fit, best-fit, buddy, tlsf, tiered or adaptive",
             .summary = "a heap of allot's own, on a simulated device"},
    .create = heap_create,
};
