/* SPDX-License-Identifier: MIT */
/*
 * Model of the driver's stream-ordered pool (cudaMallocAsync). A model, not exact: the driver's
 * source is closed; this follows what NVIDIA documents and what users measure.
 *
 * Requests are rounded up to 512 bytes and cut from ranges that the pool holds; the pool grows by
 * multiples of a granule, 32 MiB by default, which is what users see reserved. A free range is
 * reused
 *   1. on the stream that freed it, at once;
 *   2. on another stream, since the driver may wait for the free itself (all three reuse attributes
 *      are on by default). Ranges of all streams then merge where they touch.
 * When the device has no more memory, granules that are entirely free are unmapped from where they
 * are and the request is served at a new place: the driver's remapping of unused memory.
 *
 *     range:  | live |free| live |      free, granule by granule may move      | live |
 *
 * After a free, if the pool holds more than the release threshold, entirely free granules are given
 * back. The driver does that at the next synchronisation, which a trace does not hold, so the model
 * is quicker. PyTorch's own use of this pool sets no threshold (nothing is given back): the default
 * here.
 *
 * Left out: how the driver really places (best fit here), different granules for different sizes,
 * export to other processes, graph memory nodes, private pools (they share this one).
 *
 * Source: CUDA programming guide, "Stream Ordered Memory Allocator", and cudaMemPoolAttr in the
 * runtime reference; NVIDIA's articles on the allocator of 2021 (remapping); reserved sizes as
 * reported at Comfy-Org/ComfyUI#11154, rapidsai/rmm#1245 and pytorch/pytorch#110194.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/parameters.h"
#include "core/size_math.h"
#include "replay/comparison.h"
#include "replay/stream_lists.h"

enum { ROUND = 512 };
static const uint64_t GRANULE_DEFAULT = UINT64_C(32) << 20;
static const uint64_t GRANULE_MAX = UINT64_C(1) << 40;

typedef struct async {
    alloti_comparison base;
    alloti_stream_lists lists;
    uint64_t granule; /* a power of two, 2 MiB at least */
    uint64_t release; /* threshold in bytes; UINT64_MAX: never give back */
    uint32_t range_count;
} async;

/** Give back the granules that lie in one free span, until at most `target` bytes are held. */
static allot_status granules_release(async *self, alloti_span_set *set, uint64_t target)
{
    uint64_t at = 0;
    const alloti_span *found = NULL;
    while (self->base.upstream.reserved > target &&
           (found = alloti_span_set_ceiling(set, at)) != NULL) {
        const alloti_span span = *found;
        at = span.address + span.size;
        uint64_t first = 0;
        const bool counts = alloti_round_up(span.address, self->granule, &first);
        const uint64_t end = at - at % self->granule;
        if (!counts || first >= end) {
            continue;
        }
        alloti_span_set_remove(set, span.address);
        alloti_upstream_give(&self->base.upstream, end - first);
        alloti_span rest = {
            .address = span.address, .size = first - span.address, .segment = span.segment};
        allot_status status = ALLOT_STATUS_OK;
        if (rest.size > 0) {
            status = alloti_span_set_add(set, rest);
        }
        rest = (alloti_span){.address = end, .size = at - end, .segment = span.segment};
        if (status == ALLOT_STATUS_OK && rest.size > 0) {
            status = alloti_span_set_add(set, rest);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

/** Add a range of whole granules that holds `size` bytes. */
static allot_status pool_grow(async *self, alloti_span_set *set, uint64_t size)
{
    uint64_t bytes = 0;
    uint64_t address = 0;
    if (!alloti_round_up(size, self->granule, &bytes)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    if (!alloti_upstream_take(&self->base.upstream, bytes, &address)) {
        /* Every free granule can be mapped anew; those in use stay. */
        self->base.model.stats.retry_count++;
        const allot_status status = granules_release(self, set, 0);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        if (!alloti_upstream_take(&self->base.upstream, bytes, &address)) {
            return ALLOT_STATUS_DEVICE_MEMORY;
        }
    }
    const alloti_span range = {.address = address, .size = bytes, .segment = self->range_count++};
    return alloti_span_set_add(set, range);
}

/** Bring the free ranges of all streams into `set`, which is the list of `stream`. */
static allot_status lists_join(async *self, alloti_span_set *set)
{
    for (uint32_t i = 0; i < self->lists.count; i++) {
        alloti_span_set *const other = &self->lists.lists[i].spans;
        const allot_status status =
            other == set ? ALLOT_STATUS_OK : alloti_span_set_drain(other, set);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

static allot_status async_take(alloti_comparison *base, uint64_t bytes, uint64_t stream,
                               alloti_span *out)
{
    async *const self = (async *)base;
    uint64_t size = 0;
    if (!alloti_round_up(bytes, ROUND, &size)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    alloti_span_set *set = NULL;
    allot_status status = alloti_stream_lists_get(&self->lists, stream, &set);
    if (status == ALLOT_STATUS_OK && alloti_span_set_best_fit(set, size) == NULL) {
        status = lists_join(self, set);
    }
    if (status == ALLOT_STATUS_OK && alloti_span_set_best_fit(set, size) == NULL) {
        status = pool_grow(self, set, size);
    }
    return status == ALLOT_STATUS_OK
               ? alloti_span_set_carve(set, alloti_span_set_best_fit(set, size), size, out)
               : status;
}

static allot_status async_give(alloti_comparison *base, alloti_span piece, uint64_t stream)
{
    async *const self = (async *)base;
    alloti_span_set *set = NULL;
    allot_status status = alloti_stream_lists_get(&self->lists, stream, &set);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_span_set_merge(set, piece);
    }
    if (status == ALLOT_STATUS_OK && base->upstream.reserved > self->release) {
        status = granules_release(self, set, self->release);
    }
    return status;
}

static void async_survey(const alloti_comparison *base, alloti_model_survey *out)
{
    const async *const self = (const async *)base;
    alloti_stream_lists_free(&self->lists, &out->free_bytes, &out->free_largest);
}

static const alloti_placement ASYNC_PLACEMENT = {
    .take = async_take, .give = async_give, .survey = async_survey};

static allot_status async_empty_cache(alloti_model *model)
{
    async *const self = (async *)model;
    for (uint32_t i = 0; i < self->lists.count; i++) {
        const allot_status status = granules_release(self, &self->lists.lists[i].spans, 0);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    alloti_comparison_note(&self->base);
    return ALLOT_STATUS_OK;
}

static void async_destroy(alloti_model *model)
{
    async *const self = (async *)model;
    alloti_stream_lists_fini(&self->lists);
    alloti_comparison_fini(&self->base);
    free(self);
}

static allot_status async_create(const alloti_model_params *params, alloti_model **out)
{
    async *const self = calloc(1, sizeof *self);
    if (self == NULL) {
        return alloti_fail_memory(sizeof *self);
    }
    alloti_comparison_init(&self->base, &alloti_model_async, &ASYNC_PLACEMENT, params);
    self->granule = GRANULE_DEFAULT;
    self->release = UINT64_MAX;
    const alloti_parameter known[] = {
        {"granule", ALLOTI_PARAMETER_SIZE, &self->granule, NULL},
        {"release", ALLOTI_PARAMETER_SIZE, &self->release, NULL},
    };
    allot_status status = alloti_parameters_parse(params->argument, known, 2);
    if (status == ALLOT_STATUS_OK &&
        (!alloti_is_pow2(self->granule) || self->granule < ALLOTI_UPSTREAM_ALIGN ||
         self->granule > GRANULE_MAX)) {
        status =
            alloti_fail(ALLOT_STATUS_INVALID, "granule: want a power of two from 2 MiB to 1 TiB");
    }
    if (status != ALLOT_STATUS_OK) {
        async_destroy(&self->base.model);
        return status;
    }
    self->base.page_size = self->granule;
    *out = &self->base.model;
    return ALLOT_STATUS_OK;
}

static void async_describe(const alloti_model *model, char *buffer, size_t size)
{
    const async *const self = (const async *)model;
    const int used =
        snprintf(buffer, size, "granule=%lluMiB", (unsigned long long)(self->granule >> 20));
    if (self->release != UINT64_MAX && used > 0 && (size_t)used < size) {
        snprintf(buffer + used, size - (size_t)used, ",release=%llu",
                 (unsigned long long)self->release);
    }
}

const alloti_model_ops alloti_model_async = {
    .ops_size = sizeof(alloti_model_ops),
    .info = {.name = "async",
             .argument = "granule=SIZE,release=SIZE",
             .summary = "a stream-ordered pool like cudaMallocAsync"},
    .create = async_create,
    .destroy = async_destroy,
    .describe = async_describe,
    .alloc = alloti_comparison_alloc,
    .free = alloti_comparison_free,
    .complete = alloti_comparison_complete,
    .empty_cache = async_empty_cache,
    .survey = alloti_comparison_survey,
};
