/* SPDX-License-Identifier: MIT */
/*
 * Model of RMM's arena_memory_resource. A model, not exact.
 *
 * One range is taken from the driver when the resource is made, half of the limit unless a size is
 * given, and never again. It is cut into superblocks of 1 MiB or more; each belongs to the global
 * arena or to the arena of a stream.
 *
 *     | superblock of stream 7 | global, empty          | global, in use | superblock of stream 0 |
 *     | live | free |  live    |                        |     live       | live |     free        |
 *
 * Up to 1 MiB is served from the stream's own superblocks, at the lowest address that fits. If none
 * fits the stream takes over the first superblock of the global arena with room, cut to 1 MiB if it
 * is empty and large enough. More than 1 MiB is served from the global arena: the lowest superblock
 * with room, cut to the request if it is empty and at least 1 MiB would be left. In the global
 * arena an empty superblock merges with empty neighbours; in a stream's arena superblocks stay. If
 * nothing fits, all superblocks go to the global arena and the request is made once more.
 *
 * What the model reports as reserved is the one range, whatever is used of it.
 *
 * Left out: arenas of threads, size classes (a build option of the original). Private pools are
 * ignored.
 *
 * Source: the behaviour of cpp/include/rmm/mr/detail/arena.hpp and
 * cpp/src/mr/detail/arena_memory_resource_impl.cpp in rapidsai/rmm, read in 2026.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/parameters.h"
#include "core/size_math.h"
#include "replay/comparison.h"
#include "replay/model_rmm.h"
#include "replay/rmm_pool.h"

static const uint64_t SUPERBLOCK_MIN = UINT64_C(1) << 20;

/** A list of stream_lists is an arena; the global one is list 0, keyed by a stream none has. */
static const uint64_t GLOBAL = UINT64_MAX;

typedef struct rmm_arena {
    alloti_comparison base;
    alloti_stream_lists arenas; /* free blocks; segment = superblock */
    alloti_span_set superblocks;
    uint32_t *owners; /* [superblock_count] list in `arenas` */
    uint64_t owner_capacity;
    uint32_t superblock_count; /* ever made */
    uint64_t size;
} rmm_arena;

static alloti_span_set *arena_at(rmm_arena *self, uint32_t arena)
{
    return &self->arenas.lists[arena].spans;
}

/** Make a superblock of the global arena, all free. */
static allot_status superblock_add(rmm_arena *self, uint64_t address, uint64_t size)
{
    allot_status status =
        alloti_array_reserve(&self->owners, &self->owner_capacity,
                             (uint64_t)self->superblock_count + 1, sizeof *self->owners);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const alloti_span all = {.address = address, .size = size, .segment = self->superblock_count};
    self->owners[self->superblock_count++] = 0;
    status = alloti_span_set_add(&self->superblocks, all);
    return status == ALLOT_STATUS_OK ? alloti_span_set_add(arena_at(self, 0), all) : status;
}

/** Whether a free block is a whole superblock. */
static bool is_empty(const rmm_arena *self, const alloti_span *block)
{
    const alloti_span *const superblock =
        block == NULL ? NULL : alloti_span_set_floor(&self->superblocks, block->address);
    return superblock != NULL && superblock->address == block->address &&
           superblock->size == block->size;
}

/** Take an empty superblock of the global arena out of all tables. */
static void superblock_remove(rmm_arena *self, uint64_t address)
{
    alloti_span_set_remove(arena_at(self, 0), address);
    alloti_span_set_remove(&self->superblocks, address);
}

/** If the superblock that starts with this free global block is empty, merge it with neighbours. */
static allot_status superblock_merge(rmm_arena *self, alloti_span all)
{
    const alloti_span_set *const global = arena_at(self, 0);
    const alloti_span *const next = alloti_span_set_ceiling(global, all.address + 1);
    const bool merges_next =
        next != NULL && next->address == all.address + all.size && is_empty(self, next);
    const alloti_span *const previous =
        all.address == 0 ? NULL : alloti_span_set_floor(global, all.address - 1);
    const bool merges_previous = previous != NULL &&
                                 previous->address + previous->size == all.address &&
                                 is_empty(self, previous);
    if (!merges_next && !merges_previous) {
        return ALLOT_STATUS_OK;
    }
    alloti_span merged = all;
    if (merges_next) {
        merged.size += next->size;
    }
    if (merges_previous) {
        merged.address = previous->address;
        merged.size += previous->size;
    }
    for (uint64_t at = merged.address; at < merged.address + merged.size;) {
        const uint64_t size = alloti_span_set_floor(&self->superblocks, at)->size;
        superblock_remove(self, at);
        at += size;
    }
    return superblock_add(self, merged.address, merged.size);
}

/** Cut an empty superblock of the global arena in two. */
static allot_status superblock_split(rmm_arena *self, alloti_span all, uint64_t size)
{
    superblock_remove(self, all.address);
    const allot_status status = superblock_add(self, all.address, size);
    return status == ALLOT_STATUS_OK ? superblock_add(self, all.address + size, all.size - size)
                                     : status;
}

/** Move all free blocks of a superblock from one arena to another. */
static allot_status superblock_move(rmm_arena *self, alloti_span superblock, uint32_t to)
{
    alloti_span_set *const from = arena_at(self, self->owners[superblock.segment]);
    self->owners[superblock.segment] = to;
    const uint64_t end = superblock.address + superblock.size;
    const alloti_span *found = alloti_span_set_ceiling(from, superblock.address);
    while (found != NULL && found->address < end) {
        const alloti_span block = *found;
        alloti_span_set_remove(from, block.address);
        const allot_status status = alloti_span_set_add(arena_at(self, to), block);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        found = alloti_span_set_ceiling(from, block.address);
    }
    return ALLOT_STATUS_OK;
}

/**
 * Make the first superblock of the global arena with room fit: cut it if it is empty and large.
 * *found is its first free block with room, which lies in the superblock; valid if *ok.
 */
static allot_status global_first_fit(rmm_arena *self, uint64_t size, bool *ok, alloti_span *found)
{
    const alloti_span *fit = alloti_span_set_first_fit(arena_at(self, 0), size);
    *ok = fit != NULL;
    if (fit == NULL) {
        return ALLOT_STATUS_OK;
    }
    *found = *fit;
    const uint64_t head = size > SUPERBLOCK_MIN ? size : SUPERBLOCK_MIN;
    if (is_empty(self, fit) && found->size >= head + SUPERBLOCK_MIN) {
        const allot_status status = superblock_split(self, *found, head);
        fit = alloti_span_set_first_fit(arena_at(self, 0), size);
        *found = *fit;
        return status;
    }
    return ALLOT_STATUS_OK;
}

/** Serve a request once; ALLOT_STATUS_DEVICE_MEMORY if no superblock has room. */
static allot_status serve(rmm_arena *self, uint64_t size, uint32_t arena, alloti_span *out)
{
    const bool is_large = size > SUPERBLOCK_MIN;
    alloti_span_set *const own = arena_at(self, is_large ? 0 : arena);
    const alloti_span *fit = is_large ? NULL : alloti_span_set_first_fit(own, size);
    alloti_span block = {0};
    if (fit == NULL) {
        bool ok = false;
        allot_status status = global_first_fit(self, size, &ok, &block);
        if (status == ALLOT_STATUS_OK && !ok) {
            status = ALLOT_STATUS_DEVICE_MEMORY;
        }
        if (status == ALLOT_STATUS_OK && !is_large) {
            const alloti_span superblock =
                *alloti_span_set_floor(&self->superblocks, block.address);
            status = superblock_move(self, superblock, arena);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        fit = &block;
    }
    return alloti_span_set_carve(own, fit, size, out);
}

/** All superblocks go to the global arena; empty ones merge. */
static allot_status collect(rmm_arena *self)
{
    self->base.model.stats.retry_count++;
    self->base.model.stats.sync_count++;
    uint64_t at = 0;
    const alloti_span *found = NULL;
    while ((found = alloti_span_set_ceiling(&self->superblocks, at)) != NULL) {
        const alloti_span superblock = *found;
        at = superblock.address + superblock.size;
        if (self->owners[superblock.segment] == 0) {
            continue;
        }
        allot_status status = superblock_move(self, superblock, 0);
        const alloti_span *const block =
            alloti_span_set_floor(arena_at(self, 0), superblock.address);
        if (status == ALLOT_STATUS_OK && is_empty(self, block) &&
            block->address == superblock.address) {
            status = superblock_merge(self, *block);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

/** List of a stream's arena; the global one is never asked for. */
static allot_status arena_of(rmm_arena *self, uint64_t stream, uint32_t *out)
{
    alloti_span_set *set = NULL;
    const allot_status status = alloti_stream_lists_get(&self->arenas, stream, &set);
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < self->arenas.count; i++) {
        if (arena_at(self, i) == set) {
            *out = i;
        }
    }
    return status;
}

static allot_status arena_take(alloti_comparison *base, uint64_t bytes, uint64_t stream,
                               alloti_span *out)
{
    rmm_arena *const self = (rmm_arena *)base;
    uint64_t size = 0;
    if (!alloti_round_up(bytes, ALLOTI_RMM_ROUND, &size)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    uint32_t arena = 0;
    allot_status status = arena_of(self, stream == GLOBAL ? 0 : stream, &arena);
    if (status == ALLOT_STATUS_OK) {
        status = serve(self, size, arena, out);
    }
    if (status == ALLOT_STATUS_DEVICE_MEMORY) {
        status = collect(self);
        status = status == ALLOT_STATUS_OK ? serve(self, size, arena, out) : status;
    }
    return status;
}

static allot_status arena_give(alloti_comparison *base, alloti_span piece, uint64_t stream)
{
    (void)stream;
    rmm_arena *const self = (rmm_arena *)base;
    const uint32_t owner = self->owners[piece.segment];
    alloti_span_set *const set = arena_at(self, owner);
    const allot_status status = alloti_span_set_merge(set, piece);
    const alloti_span *const block = alloti_span_set_floor(set, piece.address);
    if (status == ALLOT_STATUS_OK && owner == 0 && is_empty(self, block)) {
        return superblock_merge(self, *block);
    }
    return status;
}

static void arena_survey(const alloti_comparison *base, alloti_model_survey *out)
{
    const rmm_arena *const self = (const rmm_arena *)base;
    alloti_stream_lists_free(&self->arenas, &out->free_bytes, &out->free_largest);
}

static const alloti_placement ARENA_PLACEMENT = {
    .take = arena_take, .give = arena_give, .survey = arena_survey};

static void arena_destroy(alloti_model *model)
{
    rmm_arena *const self = (rmm_arena *)model;
    alloti_stream_lists_fini(&self->arenas);
    alloti_span_set_fini(&self->superblocks);
    alloti_comparison_fini(&self->base);
    free(self->owners);
    free(self);
}

/** Take the one range from the driver. */
static allot_status arena_prime(rmm_arena *self)
{
    alloti_upstream *const up = &self->base.upstream;
    if (self->size == 0 && up->limit == UINT64_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "needs a limit or size=SIZE");
    }
    self->size = alloti_align_down(self->size == 0 ? up->limit / 2 : self->size, ALLOTI_RMM_ROUND);
    uint64_t address = 0;
    if (self->size < SUPERBLOCK_MIN || !alloti_upstream_take(up, self->size, &address)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "want a size of 1 MiB up to the limit");
    }
    up->limit = up->reserved; /* it never asks again */
    alloti_span_set *global = NULL;
    const allot_status status = alloti_stream_lists_get(&self->arenas, GLOBAL, &global);
    return status == ALLOT_STATUS_OK ? superblock_add(self, address, self->size) : status;
}

static allot_status arena_create(const alloti_model_params *params, alloti_model **out)
{
    rmm_arena *const self = calloc(1, sizeof *self);
    if (self == NULL) {
        return alloti_fail_memory(sizeof *self);
    }
    alloti_comparison_init(&self->base, &alloti_model_rmm_arena, &ARENA_PLACEMENT, params);
    self->superblocks = ALLOTI_SPAN_SET_EMPTY;
    const alloti_parameter known[] = {{"size", ALLOTI_PARAMETER_SIZE, &self->size, NULL}};
    allot_status status = alloti_parameters_parse(params->argument, known, 1);
    if (status == ALLOT_STATUS_OK) {
        status = arena_prime(self);
    }
    if (status != ALLOT_STATUS_OK) {
        arena_destroy(&self->base.model);
        return status;
    }
    alloti_comparison_note(&self->base);
    *out = &self->base.model;
    return ALLOT_STATUS_OK;
}

static void arena_describe(const alloti_model *model, char *buffer, size_t size)
{
    const rmm_arena *const self = (const rmm_arena *)model;
    snprintf(buffer, size, "size=%llu", (unsigned long long)self->size);
}

const alloti_model_ops alloti_model_rmm_arena = {
    .ops_size = sizeof(alloti_model_ops),
    .info = {.name = "rmm:arena",
             .argument = "size=SIZE",
             .summary = "RMM's arenas per stream in front of one range"},
    .create = arena_create,
    .destroy = arena_destroy,
    .describe = arena_describe,
    .alloc = alloti_comparison_alloc,
    .free = alloti_comparison_free,
    .complete = alloti_comparison_complete,
    .survey = alloti_comparison_survey,
};
