/* SPDX-License-Identifier: MIT */
/*
 * Model of the "best fit with coalescing" allocator of XLA and TensorFlow. A model, not exact.
 *
 * Requests are rounded up to 256 bytes. Memory comes from the driver in regions: the first of
 * 2 MiB, each next one twice the last, doubled further until the request fits; or, with
 * preallocate, one region of that share of the limit. A refused region is tried again at nine
 * tenths of the size until it would not hold the request.
 *
 *     region:  | chunk in use | free chunk | chunk in use |   free chunk        |
 *
 * The smallest free chunk that fits is taken, the lowest address among equals. It is split only if
 * it is at least twice the request or the rest is at least 128 MiB: otherwise the whole chunk is
 * handed out and the rest is lost inside. A freed chunk merges with its free neighbours in the same
 * region. When nothing fits and no region can be added, regions that are entirely free are given
 * back and a region is asked for once more.
 *
 * The original keeps chunks in 21 bins by power of two and walks them upwards; since every bin is
 * ordered by size and then address, the chunk it finds is the best fit over all, which one ordered
 * set gives at once.
 *
 * Left out: alignments above 256, timestamped frees and retries that wait for other threads, the
 * two-ended mode, merging of regions that happen to touch. Streams and pools are ignored: the
 * original serves one compute stream.
 *
 * Source: the behaviour of xla/tsl/framework/bfc_allocator.{h,cc} in openxla/xla, read in 2026.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/parameters.h"
#include "core/size_math.h"
#include "replay/comparison.h"

enum { ROUND = 256 };
static const uint64_t REGION_FIRST = UINT64_C(2) << 20;
static const uint64_t REST_MAX = UINT64_C(128) << 20; /* a larger rest is always split off */

typedef struct bfc_region {
    uint64_t address;
    uint64_t size; /* 0: given back */
} bfc_region;

typedef struct bfc {
    alloti_comparison base;
    alloti_span_set free;
    bfc_region *regions;
    uint64_t region_capacity;
    uint32_t region_count;
    uint64_t region_next; /* size of the next region */
    double preallocate;   /* share of the limit taken at once; 0: grow */
} bfc;

static allot_status region_add(bfc *self, uint64_t size)
{
    const allot_status status =
        alloti_array_reserve(&self->regions, &self->region_capacity,
                             (uint64_t)self->region_count + 1, sizeof *self->regions);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t address = 0;
    if (!alloti_upstream_take(&self->base.upstream, size, &address)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    self->regions[self->region_count] = (bfc_region){.address = address, .size = size};
    const alloti_span chunk = {.address = address, .size = size, .segment = self->region_count};
    self->region_count++;
    return alloti_span_set_add(&self->free, chunk);
}

/** Add a region that holds `size` bytes. */
static allot_status extend(bfc *self, uint64_t size)
{
    const uint64_t available =
        alloti_align_down(self->base.upstream.limit - self->base.upstream.reserved, ROUND);
    if (size > available) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    bool doubled = false;
    while (self->region_next < size && self->region_next <= UINT64_MAX / 2) {
        self->region_next *= 2;
        doubled = true;
    }
    uint64_t bytes = self->region_next < available ? self->region_next : available;
    allot_status status = region_add(self, bytes);
    while (status == ALLOT_STATUS_DEVICE_MEMORY) {
        bytes = alloti_align_down(bytes - bytes / 10, ROUND);
        if (bytes < size) {
            return status;
        }
        status = region_add(self, bytes);
    }
    if (status == ALLOT_STATUS_OK && !doubled && self->region_next <= UINT64_MAX / 2) {
        self->region_next *= 2;
    }
    return status;
}

/** Give back every region that is entirely free; whether there was one. */
static bool regions_collect(bfc *self)
{
    bool any = false;
    for (uint32_t i = 0; i < self->region_count; i++) {
        bfc_region *const region = &self->regions[i];
        const alloti_span *const chunk = alloti_span_set_floor(&self->free, region->address);
        if (region->size == 0 || chunk == NULL || chunk->address != region->address ||
            chunk->size != region->size) {
            continue;
        }
        alloti_span_set_remove(&self->free, region->address);
        alloti_upstream_give(&self->base.upstream, region->size);
        region->size = 0;
        any = true;
    }
    return any;
}

/** Find a chunk, adding a region if that is needed. */
static allot_status chunk_find(bfc *self, uint64_t size, const alloti_span **out)
{
    *out = alloti_span_set_best_fit(&self->free, size);
    if (*out != NULL) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = extend(self, size);
    if (status == ALLOT_STATUS_DEVICE_MEMORY && regions_collect(self)) {
        self->base.model.stats.retry_count++;
        status = extend(self, size);
    }
    *out = alloti_span_set_best_fit(&self->free, size);
    return status;
}

static bool should_split(uint64_t chunk, uint64_t size)
{
    return chunk - size >= size || chunk - size >= REST_MAX;
}

static allot_status bfc_take(alloti_comparison *base, uint64_t bytes, uint64_t stream,
                             alloti_span *out)
{
    (void)stream;
    bfc *const self = (bfc *)base;
    uint64_t size = 0;
    if (!alloti_round_up(bytes, ROUND, &size)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    const alloti_span *fit = NULL;
    const allot_status status = chunk_find(self, size, &fit);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t taken = should_split(fit->size, size) ? size : fit->size;
    return alloti_span_set_carve(&self->free, fit, taken, out);
}

static allot_status bfc_give(alloti_comparison *base, alloti_span piece, uint64_t stream)
{
    (void)stream;
    return alloti_span_set_merge(&((bfc *)base)->free, piece);
}

static void bfc_survey(const alloti_comparison *base, alloti_model_survey *out)
{
    const bfc *const self = (const bfc *)base;
    *out = (alloti_model_survey){.free_bytes = self->free.bytes,
                                 .free_largest = alloti_span_set_largest(&self->free)};
}

static const alloti_placement BFC_PLACEMENT = {
    .take = bfc_take, .give = bfc_give, .survey = bfc_survey};

static void bfc_destroy(alloti_model *model)
{
    bfc *const self = (bfc *)model;
    alloti_span_set_fini(&self->free);
    alloti_comparison_fini(&self->base);
    free(self->regions);
    free(self);
}

/** Take the share of the limit that is to be taken at once. */
static allot_status preallocate(bfc *self)
{
    alloti_upstream *const up = &self->base.upstream;
    if (up->limit == UINT64_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "preallocate needs a limit");
    }
    up->limit = alloti_align_down(alloti_to_u64((double)up->limit * self->preallocate), ROUND);
    return up->limit == 0 ? ALLOT_STATUS_OK : region_add(self, up->limit);
}

static allot_status bfc_create(const alloti_model_params *params, alloti_model **out)
{
    bfc *const self = calloc(1, sizeof *self);
    if (self == NULL) {
        return alloti_fail_memory(sizeof *self);
    }
    alloti_comparison_init(&self->base, &alloti_model_bfc, &BFC_PLACEMENT, params);
    self->free = ALLOTI_SPAN_SET_EMPTY;
    self->region_next = REGION_FIRST;
    const alloti_parameter known[] = {
        {"preallocate", ALLOTI_PARAMETER_FRACTION, &self->preallocate, NULL}};
    allot_status status = alloti_parameters_parse(params->argument, known, 1);
    if (status == ALLOT_STATUS_OK && self->preallocate > 0.0) {
        status = preallocate(self);
    }
    if (status != ALLOT_STATUS_OK) {
        bfc_destroy(&self->base.model);
        return status;
    }
    alloti_comparison_note(&self->base);
    *out = &self->base.model;
    return ALLOT_STATUS_OK;
}

static void bfc_describe(const alloti_model *model, char *buffer, size_t size)
{
    const bfc *const self = (const bfc *)model;
    buffer[0] = '\0';
    if (self->preallocate > 0.0) {
        snprintf(buffer, size, "preallocate=%g", self->preallocate);
    }
}

const alloti_model_ops alloti_model_bfc = {
    .ops_size = sizeof(alloti_model_ops),
    .info = {.name = "bfc",
             .argument = "preallocate=SHARE",
             .summary = "best fit with coalescing, as in XLA and TensorFlow"},
    .create = bfc_create,
    .destroy = bfc_destroy,
    .describe = bfc_describe,
    .alloc = alloti_comparison_alloc,
    .free = alloti_comparison_free,
    .complete = alloti_comparison_complete,
    .survey = alloti_comparison_survey,
};
