/* SPDX-License-Identifier: MIT */
#include "standin/pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "standin/bytes.h"
#include "standin/state.h"

static void free_pool(standin_pool *pool)
{
    for (uint64_t i = 0; i < pool->cached_count; i++) {
        point_fini(&pool->cached[i].freed);
    }
    free(pool->cached);
    free(pool);
}

void pool_fini(pool_state *pools)
{
    for (uint64_t i = 0; i < pools->count; i++) {
        if (pools->pools[i] != NULL) {
            free_pool(pools->pools[i]);
        }
    }
    free(pools->pools);
    slot_fini(&pools->table);
}

cuda_status pool_create(standin *state, uint32_t device, standin_pool **out)
{
    pool_state *const pools = &state->pools;
    standin_pool *const pool = calloc(1, sizeof *pool);
    if (pool == NULL || alloti_array_reserve(&pools->pools, &pools->capacity, pools->count + 1,
                                             sizeof(void *)) != ALLOT_STATUS_OK) {
        free(pool);
        return CUDA_OUT_OF_MEMORY;
    }
    *pool = (standin_pool){
        .handle = slot_add(&pools->table, SLOT_POOL, pool), .device = device, .reuse = {1, 1, 1}};
    if (pool->handle == NULL) {
        free(pool);
        return CUDA_OUT_OF_MEMORY;
    }
    pools->pools[pools->count++] = pool;
    *out = pool;
    return CUDA_OK;
}

/** Index of a pool among all: what a block of it has as owner. */
static uint32_t index_of(const pool_state *pools, const standin_pool *pool)
{
    uint32_t i = 0;
    while (pools->pools[i] != pool) {
        i++;
    }
    return i;
}

/** A destroyed pool goes once nothing of it is in use and nothing waits for a stream. */
static void collect(standin *state, standin_pool *pool)
{
    pool_state *const pools = &state->pools;
    pool_trim(state, pool, 0);
    if (pool->reserved == 0) {
        pools->pools[index_of(pools, pool)] = NULL; /* blocks know their pool by its index */
        free_pool(pool);
    }
}

void pool_destroy(standin *state, standin_pool *pool)
{
    pool_state *const pools = &state->pools;
    slot_remove(&pools->table, pool->handle);
    if (pools->current[pool->device] == pool) {
        pools->current[pool->device] = NULL;
    }
    pool->is_dying = true;
    collect(state, pool);
}

standin_pool *pool_get(const standin *state, const void *handle)
{
    return slot_get(&state->pools.table, SLOT_POOL, handle);
}

cuda_status pool_default(standin *state, uint32_t device, standin_pool **out)
{
    standin_pool **const pool = &state->pools.defaults[device];
    if (*pool == NULL) {
        const cuda_status status = pool_create(state, device, pool);
        if (status != CUDA_OK) {
            return status;
        }
        (*pool)->is_default = true;
    }
    *out = *pool;
    return CUDA_OK;
}

cuda_status pool_current(standin *state, uint32_t device, standin_pool **out)
{
    if (state->pools.current[device] != NULL) {
        *out = state->pools.current[device];
        return CUDA_OK;
    }
    return pool_default(state, device, out);
}

/** Cached block that fits best and that the stream may use now; UINT64_MAX for none. */
static uint64_t best_cached(const standin *state, const standin_pool *pool, uint64_t extent,
                            const standin_stream *stream)
{
    uint64_t best = UINT64_MAX;
    for (uint64_t i = 0; i < pool->cached_count; i++) {
        const pool_cached *const cached = &pool->cached[i];
        if (cached->extent < extent || cached->extent / 2 > extent ||
            (best != UINT64_MAX && cached->extent >= pool->cached[best].extent)) {
            continue;
        }
        if (point_is_before(&cached->freed, stream) || point_is_finished(state, &cached->freed)) {
            best = i;
        }
    }
    return best;
}

static void count_used(standin_pool *pool, uint64_t extent)
{
    pool->used += extent;
    pool->used_peak = pool->used > pool->used_peak ? pool->used : pool->used_peak;
}

static cuda_status take_cached(standin *state, standin_pool *pool, uint64_t at, uint64_t size,
                               uint64_t *address)
{
    const pool_cached cached = pool->cached[at];
    const memory_block block = {.address = cached.address,
                                .size = size,
                                .extent = cached.extent,
                                .device = pool->device,
                                .owner = 0,
                                .kind = MEMORY_POOLED,
                                .readers = UINT64_MAX,
                                .writers = UINT64_MAX};
    const cuda_status status = memory_enter(state, &block, NULL);
    if (status != CUDA_OK) {
        return status;
    }
    point_fini(&pool->cached[at].freed);
    pool->cached[at] = pool->cached[--pool->cached_count];
    count_used(pool, cached.extent);
    *address = cached.address;
    return CUDA_OK;
}

cuda_status pool_allocate(standin *state, standin_pool *pool, uint64_t size, standin_stream *stream,
                          uint64_t *address)
{
    uint64_t extent = 0;
    if (!memory_extent(size, &extent)) {
        return CUDA_INVALID_VALUE;
    }
    cuda_status status = stream_work(state, stream); /* first, since it cannot be undone */
    if (status != CUDA_OK) {
        return status;
    }
    const uint64_t at = best_cached(state, pool, extent, stream);
    if (at != UINT64_MAX) {
        status = take_cached(state, pool, at, size, address);
    } else {
        status = memory_allocate(state, pool->device, size, MEMORY_POOLED, address);
        if (status == CUDA_OK) {
            pool->reserved += extent;
            pool->reserved_peak =
                pool->reserved > pool->reserved_peak ? pool->reserved : pool->reserved_peak;
            count_used(pool, extent);
        }
    }
    if (status == CUDA_OK) {
        memory_find(state, *address)->owner = index_of(&state->pools, pool);
        status = use_set_birth(state, memory_index(state, *address), stream);
    }
    return status;
}

/** With real bytes: whether all that uses a block comes before its free in the stream. */
static cuda_status check_order(standin *state, uint32_t index, const standin_stream *stream)
{
    uint32_t user = 0;
    const uint64_t address = state->memory.blocks[index].address;
    if (!use_is_born(state, index, stream)) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                           "stream %" PRIu64 " frees 0x%" PRIx64
                           ", which another stream allocates, without waiting for that stream",
                           stream->id, address);
    }
    if (!use_is_over(state, index, stream, &user)) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                           "stream %" PRIu64 " frees 0x%" PRIx64
                           " while stream %u may still use it",
                           stream->id, address, user + 1);
    }
    return CUDA_OK;
}

cuda_status pool_free(standin *state, uint64_t address, standin_stream *stream)
{
    const uint32_t index = memory_index(state, address);
    const memory_block *const block = memory_find(state, address);
    if (block == NULL || block->address != address || block->kind != MEMORY_POOLED) {
        return CUDA_INVALID_VALUE;
    }
    standin_pool *const pool = state->pools.pools[block->owner];
    if (alloti_array_reserve(&pool->cached, &pool->cached_capacity, pool->cached_count + 1,
                             sizeof *pool->cached) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    pool_cached *const cached = &pool->cached[pool->cached_count];
    *cached = (pool_cached){.address = address, .extent = block->extent};
    cuda_status status = stream_work(state, stream); /* the free has its place in the order now */
    if (status == CUDA_OK && state->config.has_bytes && stream->capture == NULL) {
        status = check_order(state, index, stream);
    }
    if (status == CUDA_OK) {
        status = point_copy(&cached->freed, &stream->now);
    }
    if (status == CUDA_OK) {
        pool->cached_count++;
        pool->used -= cached->extent;
        memory_forget(state, index);
    }
    return status;
}

cuda_status pool_free_now(standin *state, uint64_t address)
{
    uint32_t user = 0;
    const uint32_t index = memory_index(state, address);
    standin_stream *stream = NULL;
    if (state->config.has_bytes && !use_is_over(state, index, NULL, &user)) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                           "0x%" PRIx64 " is freed at once (cudaFree of a pool's memory) while "
                           "stream %u may still use it",
                           address, user + 1);
    }
    const cuda_status status = stream_get(state, NULL, &stream);
    return status == CUDA_OK ? pool_free(state, address, stream) : status;
}

void pool_trim(standin *state, standin_pool *pool, uint64_t keep)
{
    uint64_t i = 0;
    while (i < pool->cached_count && pool->reserved > keep) {
        pool_cached *const cached = &pool->cached[i];
        if (!point_is_finished(state, &cached->freed)) {
            i++;
            continue;
        }
        bytes_release(state, cached->address, cached->extent);
        memory_refund(state, pool->device, cached->extent);
        (void)!address_give(&state->space, cached->address, cached->extent);
        pool->reserved -= cached->extent;
        point_fini(&cached->freed);
        *cached = pool->cached[--pool->cached_count];
    }
}

void pool_trim_device(standin *state, uint32_t device)
{
    for (uint64_t i = 0; i < state->pools.count; i++) {
        if (state->pools.pools[i] != NULL && state->pools.pools[i]->device == device) {
            pool_trim(state, state->pools.pools[i], 0);
        }
    }
}

void pool_trim_after_wait(standin *state, uint32_t device)
{
    for (uint64_t i = 0; i < state->pools.count; i++) {
        standin_pool *const pool = state->pools.pools[i];
        if (pool != NULL && pool->device == device && pool->is_dying) {
            collect(state, pool);
        } else if (pool != NULL && pool->device == device && pool->cached_count != 0) {
            pool_trim(state, pool, pool->threshold);
        }
    }
}

cuda_status pool_get_attribute(const standin_pool *pool, int attribute, void *out)
{
    uint64_t value = 0;
    switch (attribute) {
    case CUDA_POOL_REUSE_FOLLOW_EVENTS:
    case CUDA_POOL_REUSE_OPPORTUNISTIC:
    case CUDA_POOL_REUSE_INTERNAL:
        memcpy(out, &pool->reuse[attribute - 1], sizeof(int));
        return CUDA_OK;
    case CUDA_POOL_RELEASE_THRESHOLD:
        value = pool->threshold;
        break;
    case CUDA_POOL_RESERVED_CURRENT:
        value = pool->reserved;
        break;
    case CUDA_POOL_RESERVED_HIGH:
        value = pool->reserved_peak;
        break;
    case CUDA_POOL_USED_CURRENT:
        value = pool->used;
        break;
    case CUDA_POOL_USED_HIGH:
        value = pool->used_peak;
        break;
    default:
        return CUDA_INVALID_VALUE;
    }
    memcpy(out, &value, sizeof value);
    return CUDA_OK;
}

cuda_status pool_set_attribute(standin_pool *pool, int attribute, const void *value)
{
    uint64_t number = 0;
    switch (attribute) {
    case CUDA_POOL_REUSE_FOLLOW_EVENTS:
    case CUDA_POOL_REUSE_OPPORTUNISTIC:
    case CUDA_POOL_REUSE_INTERNAL:
        memcpy(&pool->reuse[attribute - 1], value, sizeof(int));
        return CUDA_OK;
    case CUDA_POOL_RELEASE_THRESHOLD:
        memcpy(&pool->threshold, value, sizeof pool->threshold);
        return CUDA_OK;
    case CUDA_POOL_RESERVED_HIGH:
    case CUDA_POOL_USED_HIGH:
        memcpy(&number, value, sizeof number);
        if (number != 0) {
            return CUDA_INVALID_VALUE;
        }
        if (attribute == CUDA_POOL_USED_HIGH) {
            pool->used_peak = pool->used;
        } else {
            pool->reserved_peak = pool->reserved;
        }
        return CUDA_OK;
    default:
        return CUDA_INVALID_VALUE;
    }
}

bool pool_holds(const standin *state, uint64_t address)
{
    for (uint64_t i = 0; i < state->pools.count; i++) {
        const standin_pool *const pool = state->pools.pools[i];
        for (uint64_t j = 0; pool != NULL && j < pool->cached_count; j++) {
            if (address - pool->cached[j].address < pool->cached[j].extent) {
                return true;
            }
        }
    }
    return false;
}

void pool_count(const standin *state, uint64_t *used)
{
    for (uint64_t i = 0; i < state->pools.count; i++) {
        if (state->pools.pools[i] != NULL) {
            used[state->pools.pools[i]->device] += state->pools.pools[i]->reserved;
        }
    }
}
