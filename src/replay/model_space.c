/* SPDX-License-Identifier: MIT */
/*
 * "space:first-fit" and its like: what the strategies of <allot/space.h> would reserve for a
 * program. Not an allocator that exists elsewhere: a strategy, driven as a device heap would.
 *
 * Two modes: memory mapped in granules under one range of addresses (space_vm.c), or segments, each
 * with a space of its own (space_segments.c). In both, what was taken from the driver is kept until
 * memory is short or the program empties its cache. Sizes are rounded up to 512 bytes, by buddies
 * to a power of two.
 *
 * Streams: a block is free on its own stream at once. Another stream may have its place after
 * waiting for the event of its free, which a trace does not show: with streams=shared, the default,
 * every such wait is taken to be over, the least that can be reserved; with streams=apart it never
 * is, each stream has areas of its own, and only what is given back to the driver changes hands. A
 * block that another stream still uses when it is freed waits for its completion, as recorded.
 * Private pools are ignored.
 */
#include "replay/model_space.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/parameters.h"
#include "replay/strategy.h"

static const uint64_t SEGMENT_DEFAULT = UINT64_C(64) << 20;
static const uint64_t SEGMENT_MAX = UINT64_C(1) << 40;

static void space_destroy(alloti_model *model)
{
    alloti_space_model *const self = (alloti_space_model *)model;
    alloti_space_areas_fini(&self->areas);
    alloti_comparison_fini(&self->base);
    free(self);
}

static void space_describe(const alloti_model *model, char *buffer, size_t size)
{
    const alloti_space_model *const self = (const alloti_space_model *)model;
    const char *const streams = self->is_apart != 0 ? ",streams=apart" : "";
    if (self->is_segmented != 0) {
        snprintf(buffer, size, "mode=segments,segment=%lluMiB%s",
                 (unsigned long long)(self->segment >> 20), streams);
    } else {
        snprintf(buffer, size, "mode=vm%s", streams);
    }
}

static allot_status space_empty_cache(alloti_model *model)
{
    alloti_space_model *const self = (alloti_space_model *)model;
    const allot_status status = self->is_segmented != 0
                                    ? alloti_space_segments_release(self, UINT64_MAX)
                                    : alloti_space_vm_release(self, UINT64_MAX);
    alloti_comparison_note(&self->base);
    return status;
}

static const alloti_model_ops OPS[] = {
#define SPACE_MODEL_OPS(name_, value, spelling)                                                    \
    [value] = {                                                                                    \
        .ops_size = sizeof(alloti_model_ops),                                                      \
        .info = {.name = "space:" spelling,                                                        \
                 .argument = "mode=vm|segments,segment=SIZE,streams=shared|apart",                 \
                 .summary = "a strategy of allot/space.h"},                                        \
        .destroy = space_destroy,                                                                  \
        .describe = space_describe,                                                                \
        .alloc = alloti_comparison_alloc,                                                          \
        .free = alloti_comparison_free,                                                            \
        .complete = alloti_comparison_complete,                                                    \
        .empty_cache = space_empty_cache,                                                          \
        .survey = alloti_comparison_survey,                                                        \
    },
    ALLOT_SPACE_STRATEGY_LIST(SPACE_MODEL_OPS)
#undef SPACE_MODEL_OPS
};

static allot_status parse(alloti_space_model *self, const char *argument)
{
    static const char *const MODES[] = {"vm", "segments", NULL};
    static const char *const STREAMS[] = {"shared", "apart", NULL};
    const alloti_parameter known[] = {
        {"mode", ALLOTI_PARAMETER_CHOICE, &self->is_segmented, MODES},
        {"segment", ALLOTI_PARAMETER_SIZE_SET, &self->segment, NULL},
        {"streams", ALLOTI_PARAMETER_CHOICE, &self->is_apart, STREAMS},
    };
    const allot_status status =
        alloti_parameters_parse(argument, known, sizeof known / sizeof known[0]);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (self->segment != 0 && self->is_segmented == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "segment= needs mode=segments");
    }
    if (self->segment % ALLOTI_SPACE_GRANULE != 0 || self->segment > SEGMENT_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "segment: want a multiple of 2 MiB, up to 1 TiB");
    }
    self->segment = self->segment == 0 ? SEGMENT_DEFAULT : self->segment;
    return ALLOT_STATUS_OK;
}

static allot_status make(allot_space_strategy strategy, const char *argument,
                         const alloti_model_params *params, alloti_model **out)
{
    alloti_space_model *const self = calloc(1, sizeof *self);
    if (self == NULL) {
        return alloti_fail_memory(sizeof *self);
    }
    self->strategy = strategy;
    const allot_status status = parse(self, argument);
    alloti_comparison_init(&self->base, &OPS[strategy],
                           self->is_segmented != 0 ? &alloti_space_segments : &alloti_space_vm,
                           params);
    if (status != ALLOT_STATUS_OK) {
        space_destroy(&self->base.model);
        return status == ALLOT_STATUS_INVALID
                   ? alloti_fail_prefix(status, "%s: ", allot_space_strategy_name(strategy))
                   : status;
    }
    self->base.page_size = self->is_segmented != 0 ? 0 : ALLOTI_SPACE_GRANULE;
    *out = &self->base.model;
    return ALLOT_STATUS_OK;
}

/** "space" alone is first fit. The model made says by its own table which strategy it is. */
static allot_status space_create(const alloti_model_params *params, alloti_model **out)
{
    allot_space_strategy strategy = ALLOT_SPACE_STRATEGY_FIRST_FIT;
    const char *rest = NULL;
    const allot_status status = alloti_strategy_take("space", params->argument, &strategy, &rest);
    return status == ALLOT_STATUS_OK ? make(strategy, rest, params, out) : status;
}

const alloti_model_ops alloti_model_space = {
    .ops_size = sizeof(alloti_model_ops),
    .info = {.name = "space",
             .argument = "STRATEGY[:mode=vm|segments,segment=SIZE,streams=shared|apart]; "
                         "STRATEGY is first-fit, best-fit, buddy, tlsf, tiered or adaptive",
             .summary = "a strategy of allot's own"},
    .create = space_create,
};
