/* SPDX-License-Identifier: MIT */
/** PyTorch's allocator as a model to replay: the exact one. */
#include "core/array.h"
#include "core/status.h"
#include "replay/model.h"
#include "replay/requests.h"
#include "torchsim/sim.h"

#include <stdio.h>
#include <stdlib.h>

/**
 * A block is named by its index in the allocator and by how often that index was freed before, so
 * that the name of a block that is gone does not mean the next one at the index.
 */
typedef struct model_torch {
    alloti_model model; /**< First: a model is a pointer to this. */
    allot_torchsim *sim;
    uint32_t *uses; /**< [uses_capacity] Times that each index was freed. */
    uint64_t uses_capacity;
    uint64_t uses_count;
} model_torch;

static model_torch *self_of(alloti_model *model)
{
    return (model_torch *)model;
}

static const model_torch *const_self_of(const alloti_model *model)
{
    return (const model_torch *)model;
}

static void count_uses(void *context, const allot_torch_event *event)
{
    model_torch *self = context;
    if (event->kind == ALLOT_EVENT_FREE_COMPLETED) {
        self->uses[event->block]++;
    }
}

static uint64_t name_of(const model_torch *self, uint32_t block)
{
    return (uint64_t)self->uses[block] << 32 | block;
}

/** Whether a name is still the one of the block at its index. */
static bool is_current(const model_torch *self, uint64_t name)
{
    const uint32_t block = (uint32_t)name;
    return block < self->uses_count && name_of(self, block) == name;
}

static void note_stats(model_torch *self)
{
    const allot_torch_stats *from = allot_torchsim_get_stats(self->sim);
    alloti_model_stats *to = &self->model.stats;
    to->reserved = from->reserved.now;
    to->allocated = from->allocated.now;
    to->active = from->active.now;
    to->requested = from->requested.now;
    to->reserved_peak = from->reserved.peak;
    to->allocated_peak = from->allocated.peak;
    to->active_peak = from->active.peak;
    to->requested_peak = from->requested.peak;
    to->segment_alloc_count = from->driver_alloc_count - from->range_map_count;
    to->segment_free_count = from->driver_free_count - from->range_unmap_count;
    to->range_count = from->range_map_count + from->range_unmap_count;
    to->range_map_count = from->range_map_count;
    to->page_map_count = from->page_map_count;
    to->page_unmap_count = from->page_unmap_count;
    to->bytes_taken = from->bytes_taken;
    to->retry_count = from->retry_count;
    to->sync_count = from->sync_count;
}

static void destroy(alloti_model *model)
{
    model_torch *self = self_of(model);
    allot_torchsim_destroy(self->sim);
    free(self->uses);
    free(self);
}

static allot_status make_sim(model_torch *self, const alloti_model_params *params)
{
    allot_torch_conf conf;
    allot_status status = ALLOT_STATUS_OK;
    if (params->conf != NULL) {
        conf = *params->conf;
    } else {
        status = allot_torch_conf_parse_for(params->argument, params->version, &conf, NULL);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const allot_torchsim_options options = {.struct_size = sizeof(options),
                                            .conf = &conf,
                                            .limit = params->limit,
                                            .fraction = params->fraction,
                                            .version = params->version,
                                            .completion = ALLOT_TORCH_COMPLETE_ON_CALL,
                                            .on_event = count_uses,
                                            .on_event_context = self};
    status = allot_torchsim_create(&options, &self->sim);
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < params->pool_count; i++) {
        const allot_torch_pool_options *pool =
            params->pools != NULL ? &params->pools[i].options : NULL;
        status = allot_torchsim_pool_create(self->sim, pool, NULL);
    }
    return status;
}

static allot_status create(const alloti_model_params *params, alloti_model **out)
{
    model_torch *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return alloti_fail_memory(sizeof(*self));
    }
    self->model.ops = &alloti_model_torch;
    const allot_status status = make_sim(self, params);
    if (status != ALLOT_STATUS_OK) {
        destroy(&self->model);
        return status;
    }
    *out = &self->model;
    return ALLOT_STATUS_OK;
}

static void describe(const alloti_model *model, char *buffer, size_t size)
{
    char text[ALLOT_TORCH_CONF_TEXT_MAX];
    allot_torch_conf_format(&const_self_of(model)->sim->conf, text);
    (void)snprintf(buffer, size, "%s", text);
}

/** Room for the indices that the next call may use for the first time. */
static allot_status reserve_uses(model_torch *self)
{
    const uint64_t need = self->sim->block_count + 1;
    const allot_status status =
        alloti_array_reserve(&self->uses, &self->uses_capacity, need, sizeof(*self->uses));
    while (status == ALLOT_STATUS_OK && self->uses_count < need) {
        self->uses[self->uses_count++] = 0;
    }
    return status;
}

static allot_status model_alloc(alloti_model *model, uint64_t size, uint64_t stream, uint32_t pool,
                                uint64_t *block)
{
    model_torch *self = self_of(model);
    uint32_t index = ALLOT_NONE;
    allot_status status = allot_torchsim_alloc(self->sim, size, stream, pool, &index);
    note_stats(self);
    if (status == ALLOT_STATUS_OK) {
        status = reserve_uses(self);
    }
    if (status == ALLOT_STATUS_OK) {
        *block = name_of(self, index);
    }
    return status;
}

static allot_status model_free(alloti_model *model, uint64_t block, bool is_shared)
{
    model_torch *self = self_of(model);
    if (!is_current(self, block)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "the block is not allocated");
    }
    const uint32_t index = (uint32_t)block;
    allot_status status = ALLOT_STATUS_OK;
    if (is_shared) {
        const uint64_t other = ~self->sim->blocks[index].stream;
        status = allot_torchsim_record_stream(self->sim, index, other);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_torchsim_free(self->sim, index);
    }
    note_stats(self);
    return status;
}

static allot_status complete(alloti_model *model, uint64_t block)
{
    model_torch *self = self_of(model);
    if (!is_current(self, block)) {
        return ALLOT_STATUS_OK; /* A wait for all streams has completed it before. */
    }
    const allot_status status = allot_torchsim_complete(self->sim, (uint32_t)block);
    note_stats(self);
    return status;
}

static allot_status empty_cache(alloti_model *model)
{
    model_torch *self = self_of(model);
    const allot_status status = allot_torchsim_empty_cache(self->sim);
    note_stats(self);
    return status;
}

static void survey(const alloti_model *model, alloti_model_survey *out)
{
    const allot_torchsim *sim = const_self_of(model)->sim;
    out->free_bytes = sim->stats.reserved.now - sim->stats.active.now;
    out->free_largest = alloti_torchsim_largest_free(sim);
}

static uint64_t block_total(const alloti_torchsim_segment *segments, uint32_t count)
{
    return count == 0 ? 0
                      : (uint64_t)segments[count - 1].block_first + segments[count - 1].block_count;
}

static allot_status load(alloti_model *model, const alloti_torchsim_segment *segments,
                         uint32_t count, uint64_t *blocks)
{
    model_torch *self = self_of(model);
    const uint64_t total = block_total(segments, count);
    uint32_t *names = alloti_alloc_array(total + 1, sizeof(*names));
    if (names == NULL) {
        return alloti_fail_memory(total * sizeof(*names));
    }
    allot_status status = alloti_torchsim_load(self->sim, segments, count, names);
    if (status == ALLOT_STATUS_OK) {
        status = reserve_uses(self);
    }
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < total; i++) {
        blocks[i] = names[i] == ALLOT_NONE ? UINT64_MAX : name_of(self, names[i]);
    }
    free(names);
    note_stats(self);
    return status;
}

const alloti_model_ops alloti_model_torch = {
    .ops_size = sizeof(alloti_model_ops),
    .info = {.name = "torch",
             .argument = "SETTINGS",
             .summary = "PyTorch's caching allocator with these PYTORCH_CUDA_ALLOC_CONF settings",
             .is_exact = true},
    .create = create,
    .destroy = destroy,
    .describe = describe,
    .alloc = model_alloc,
    .free = model_free,
    .complete = complete,
    .empty_cache = empty_cache,
    .survey = survey,
    .load = load,
};
