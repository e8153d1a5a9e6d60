/* SPDX-License-Identifier: MIT */
/*
 * Model of RMM's binning_memory_resource in front of a pool or of the driver. A model, not exact.
 *
 *     request --> smallest bin that holds it: blocks of one size (min, 2 min, ... max)
 *             --> larger than the last bin:   upstream
 *
 * A bin takes memory from upstream in chunks of a number of blocks, 128 unless said otherwise, the
 * first when it is made; a chunk is never given back. A block is handed out whole, whatever the
 * request, so a request just above a bin's size wastes nearly half. Upstream is RMM's pool (see
 * model_rmm_pool.c) or the driver, from which each large request is then taken and to which it is
 * given back at once.
 *
 * The defaults (256 KiB to 4 MiB) are those of RMM's replay benchmark.
 *
 * Left out: streams inside a bin (the original keeps a list per stream and takes from the others
 * when one is empty: only the order of blocks differs); bins given by hand. Private pools are
 * ignored.
 *
 * Source: the behaviour of cpp/src/mr/detail/{binning,fixed_size}_memory_resource_impl.cpp and
 * cpp/benchmarks/replay in rapidsai/rmm, read in 2026.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/parameters.h"
#include "core/size_math.h"
#include "replay/comparison.h"
#include "replay/model_rmm.h"
#include "replay/rmm_pool.h"

enum { BIN_MAX = 32, UPSTREAM_POOL = 0 };

static const char *const UPSTREAMS[] = {[UPSTREAM_POOL] = "pool", "cuda", NULL};

typedef struct rmm_binning {
    alloti_comparison base;
    alloti_rmm_pool pool; /* unused with the driver as upstream */
    alloti_span_set bins[BIN_MAX];
    uint32_t bin_count;
    uint64_t min; /* size of the first bin, a power of two */
    uint64_t max; /* size of the last bin, a power of two */
    uint64_t blocks;
    uint32_t upstream;
} rmm_binning;

static uint64_t bin_size(const rmm_binning *self, uint32_t bin)
{
    return self->min << bin;
}

/** Bin for a request; bin_count for upstream. */
static uint32_t bin_of(const rmm_binning *self, uint64_t size)
{
    uint32_t bin = 0;
    while (bin < self->bin_count && bin_size(self, bin) < size) {
        bin++;
    }
    return bin;
}

static allot_status upstream_take(rmm_binning *self, uint64_t size, uint64_t stream,
                                  alloti_span *out)
{
    if (self->upstream == UPSTREAM_POOL) {
        return alloti_rmm_pool_take(&self->pool, size, stream, out);
    }
    *out = (alloti_span){.size = size};
    return alloti_upstream_take(&self->base.upstream, size, &out->address)
               ? ALLOT_STATUS_OK
               : ALLOT_STATUS_DEVICE_MEMORY;
}

/** Take a chunk from upstream and cut it into blocks. */
static allot_status bin_grow(rmm_binning *self, uint32_t bin, uint64_t stream)
{
    const uint64_t size = bin_size(self, bin);
    alloti_span chunk = {0};
    allot_status status = upstream_take(self, size * self->blocks, stream, &chunk);
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < self->blocks; i++) {
        const alloti_span block = {
            .address = chunk.address + i * size, .size = size, .segment = chunk.segment};
        status = alloti_span_set_add(&self->bins[bin], block);
    }
    return status;
}

static allot_status binning_take(alloti_comparison *base, uint64_t bytes, uint64_t stream,
                                 alloti_span *out)
{
    rmm_binning *const self = (rmm_binning *)base;
    uint64_t size = 0;
    if (!alloti_round_up(bytes, ALLOTI_RMM_ROUND, &size)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    const uint32_t bin = bin_of(self, size);
    if (bin == self->bin_count) {
        return upstream_take(self, size, stream, out);
    }
    alloti_span_set *const set = &self->bins[bin];
    if (set->count == 0) {
        const allot_status status = bin_grow(self, bin, stream);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    *out = *alloti_span_set_ceiling(set, 0);
    alloti_span_set_remove(set, out->address);
    return ALLOT_STATUS_OK;
}

static allot_status binning_give(alloti_comparison *base, alloti_span piece, uint64_t stream)
{
    rmm_binning *const self = (rmm_binning *)base;
    const uint32_t bin = bin_of(self, piece.size);
    if (bin < self->bin_count) {
        return alloti_span_set_add(&self->bins[bin], piece);
    }
    if (self->upstream == UPSTREAM_POOL) {
        return alloti_rmm_pool_give(&self->pool, piece, stream);
    }
    alloti_upstream_give(&base->upstream, piece.size);
    return ALLOT_STATUS_OK;
}

static void binning_survey(const alloti_comparison *base, alloti_model_survey *out)
{
    const rmm_binning *const self = (const rmm_binning *)base;
    alloti_stream_lists_free(&self->pool.lists, &out->free_bytes, &out->free_largest);
    for (uint32_t bin = 0; bin < self->bin_count; bin++) {
        const uint64_t largest = alloti_span_set_largest(&self->bins[bin]);
        out->free_bytes += self->bins[bin].bytes;
        out->free_largest = largest > out->free_largest ? largest : out->free_largest;
    }
}

static const alloti_placement BINNING_PLACEMENT = {
    .take = binning_take, .give = binning_give, .survey = binning_survey};

static void binning_destroy(alloti_model *model)
{
    rmm_binning *const self = (rmm_binning *)model;
    for (uint32_t bin = 0; bin < BIN_MAX; bin++) {
        alloti_span_set_fini(&self->bins[bin]);
    }
    alloti_rmm_pool_fini(&self->pool);
    alloti_comparison_fini(&self->base);
    free(self);
}

static allot_status binning_parse(rmm_binning *self, const char *argument)
{
    const alloti_parameter known[] = {
        {"min", ALLOTI_PARAMETER_SIZE, &self->min, NULL},
        {"max", ALLOTI_PARAMETER_SIZE, &self->max, NULL},
        {"blocks", ALLOTI_PARAMETER_SIZE, &self->blocks, NULL},
        {"upstream", ALLOTI_PARAMETER_CHOICE, &self->upstream, UPSTREAMS},
    };
    const allot_status status = alloti_parameters_parse(argument, known, 4);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t block_max = UINT64_C(1) << 40;
    if (!alloti_is_pow2(self->min) || !alloti_is_pow2(self->max) || self->min < ALLOTI_RMM_ROUND ||
        self->max < self->min || self->max > block_max) {
        return alloti_fail(ALLOT_STATUS_INVALID, "want powers of two, 256 <= min <= max <= 1 TiB");
    }
    if (self->blocks == 0 || self->blocks > UINT16_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "blocks: want 1 to %d", UINT16_MAX);
    }
    self->bin_count = alloti_log2(self->max) - alloti_log2(self->min) + 1;
    return self->bin_count <= BIN_MAX
               ? ALLOT_STATUS_OK
               : alloti_fail(ALLOT_STATUS_INVALID, "more than %d bins", BIN_MAX);
}

static allot_status bins_fill(rmm_binning *self)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t bin = 0; status == ALLOT_STATUS_OK && bin < self->bin_count; bin++) {
        status = bin_grow(self, bin, 0);
    }
    return status == ALLOT_STATUS_DEVICE_MEMORY
               ? alloti_fail(ALLOT_STATUS_INVALID,
                             "the limit is below what the bins take at the start")
               : status;
}

static allot_status binning_create(const alloti_model_params *params, alloti_model **out)
{
    rmm_binning *const self = calloc(1, sizeof *self);
    if (self == NULL) {
        return alloti_fail_memory(sizeof *self);
    }
    alloti_comparison_init(&self->base, &alloti_model_rmm_binning, &BINNING_PLACEMENT, params);
    alloti_rmm_pool_init(&self->pool, &self->base.upstream);
    for (uint32_t bin = 0; bin < BIN_MAX; bin++) {
        self->bins[bin] = ALLOTI_SPAN_SET_EMPTY;
    }
    self->min = UINT64_C(256) << 10;
    self->max = UINT64_C(4) << 20;
    self->blocks = 128;
    allot_status status = binning_parse(self, params->argument);
    if (status == ALLOT_STATUS_OK) {
        status = bins_fill(self);
    }
    if (status != ALLOT_STATUS_OK) {
        binning_destroy(&self->base.model);
        return status;
    }
    alloti_comparison_note(&self->base);
    *out = &self->base.model;
    return ALLOT_STATUS_OK;
}

static void binning_describe(const alloti_model *model, char *buffer, size_t size)
{
    const rmm_binning *const self = (const rmm_binning *)model;
    snprintf(buffer, size, "min=%lluKiB,max=%lluKiB,blocks=%llu,upstream=%s",
             (unsigned long long)(self->min >> 10), (unsigned long long)(self->max >> 10),
             (unsigned long long)self->blocks, UPSTREAMS[self->upstream]);
}

const alloti_model_ops alloti_model_rmm_binning = {
    .ops_size = sizeof(alloti_model_ops),
    .info = {.name = "rmm:binning",
             .argument = "min=SIZE,max=SIZE,blocks=N,upstream=pool|cuda",
             .summary = "RMM's bins of fixed sizes in front of a pool or of the driver"},
    .create = binning_create,
    .destroy = binning_destroy,
    .describe = binning_describe,
    .alloc = alloti_comparison_alloc,
    .free = alloti_comparison_free,
    .complete = alloti_comparison_complete,
    .survey = alloti_comparison_survey,
};
