/* SPDX-License-Identifier: MIT */
/*
 * Model of RMM's pool_memory_resource. A model, not exact.
 *
 * Requests are rounded up to 256 bytes. Free ranges are kept per stream; the smallest that fits is
 * taken, the lowest address among equals, and what is left over stays free. A free range merges
 * with free neighbours of the same piece of driver memory. A request looks
 *   1. at its own stream's list;
 *   2. at each other stream's list in turn (the original then waits for that stream's event);
 *   3. at its own list while the other lists are merged into it one by one;
 *   4. to the driver: without a maximum for as much as the pool already holds, at least the
 *      request; with one for half of what is left below it. A refused size is halved until it is
 *      the request itself. Below a maximum, entirely free pieces are given back first if they are
 *      in the way; without one the pool never shrinks.
 *
 * Left out: the order of the other streams' lists (by event address in the original, by first use
 * here); events that have not finished cost time, not memory. Private pools are ignored.
 *
 * Source: the behaviour of cpp/src/mr/detail/pool_memory_resource_impl.cpp and
 * cpp/include/rmm/mr/detail/{stream_ordered_memory_resource,coalescing_free_list}.hpp in
 * rapidsai/rmm, read in 2026.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/parameters.h"
#include "core/size_math.h"
#include "replay/comparison.h"
#include "replay/model_rmm.h"
#include "replay/rmm_pool.h"

typedef struct rmm_pool {
    alloti_comparison base;
    alloti_rmm_pool pool;
    uint64_t initial;
} rmm_pool;

static allot_status pool_take(alloti_comparison *base, uint64_t bytes, uint64_t stream,
                              alloti_span *out)
{
    rmm_pool *const self = (rmm_pool *)base;
    uint64_t size = 0;
    if (!alloti_round_up(bytes, ALLOTI_RMM_ROUND, &size)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    return alloti_rmm_pool_take(&self->pool, size, stream, out);
}

static allot_status pool_give(alloti_comparison *base, alloti_span piece, uint64_t stream)
{
    return alloti_rmm_pool_give(&((rmm_pool *)base)->pool, piece, stream);
}

static void pool_survey(const alloti_comparison *base, alloti_model_survey *out)
{
    const rmm_pool *const self = (const rmm_pool *)base;
    alloti_stream_lists_free(&self->pool.lists, &out->free_bytes, &out->free_largest);
}

static const alloti_placement POOL_PLACEMENT = {
    .take = pool_take, .give = pool_give, .survey = pool_survey};

static void pool_destroy(alloti_model *model)
{
    rmm_pool *const self = (rmm_pool *)model;
    alloti_rmm_pool_fini(&self->pool);
    alloti_comparison_fini(&self->base);
    free(self);
}

static allot_status pool_create(const alloti_model_params *params, alloti_model **out)
{
    rmm_pool *const self = calloc(1, sizeof *self);
    if (self == NULL) {
        return alloti_fail_memory(sizeof *self);
    }
    alloti_comparison_init(&self->base, &alloti_model_rmm_pool, &POOL_PLACEMENT, params);
    alloti_rmm_pool_init(&self->pool, &self->base.upstream);
    const alloti_parameter known[] = {
        {"initial", ALLOTI_PARAMETER_SIZE, &self->initial, NULL},
        {"maximum", ALLOTI_PARAMETER_SIZE, &self->pool.maximum, NULL},
    };
    allot_status status = alloti_parameters_parse(params->argument, known, 2);
    if (status == ALLOT_STATUS_OK &&
        (self->initial % ALLOTI_RMM_ROUND != 0 || self->pool.maximum % ALLOTI_RMM_ROUND != 0 ||
         (self->pool.maximum != 0 && self->initial > self->pool.maximum))) {
        status =
            alloti_fail(ALLOT_STATUS_INVALID, "want multiples of 256 B and initial up to maximum");
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_rmm_pool_prime(&self->pool, self->initial);
    }
    if (status == ALLOT_STATUS_DEVICE_MEMORY) {
        status = alloti_fail(ALLOT_STATUS_INVALID, "the limit is below initial");
    }
    if (status != ALLOT_STATUS_OK) {
        pool_destroy(&self->base.model);
        return status;
    }
    alloti_comparison_note(&self->base);
    *out = &self->base.model;
    return ALLOT_STATUS_OK;
}

static void pool_describe(const alloti_model *model, char *buffer, size_t size)
{
    const rmm_pool *const self = (const rmm_pool *)model;
    const int used = snprintf(buffer, size, "initial=%llu", (unsigned long long)self->initial);
    if (self->pool.maximum != 0 && used > 0 && (size_t)used < size) {
        snprintf(buffer + used, size - (size_t)used, ",maximum=%llu",
                 (unsigned long long)self->pool.maximum);
    }
}

const alloti_model_ops alloti_model_rmm_pool = {
    .ops_size = sizeof(alloti_model_ops),
    .info = {.name = "rmm:pool",
             .argument = "initial=SIZE,maximum=SIZE",
             .summary = "RMM's coalescing pool"},
    .create = pool_create,
    .destroy = pool_destroy,
    .describe = pool_describe,
    .alloc = alloti_comparison_alloc,
    .free = alloti_comparison_free,
    .complete = alloti_comparison_complete,
    .survey = alloti_comparison_survey,
};
