/* SPDX-License-Identifier: MIT */
#include "standin/pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/size_math.h"
#include "standin/state.h"

enum { PIECE_UNIT = 512 };

static void free_pool(standin_pool *pool)
{
    for (uint64_t i = 0; i < pool->range_count; i++) {
        pool_range_fini(&pool->ranges[i]);
    }
    free(pool->ranges);
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
    alloti_slots_fini(&pools->table);
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

static void count_used(standin_pool *pool, uint64_t size)
{
    pool->used += size;
    pool->used_peak = pool->used > pool->used_peak ? pool->used : pool->used_peak;
}

/** Grow by a range that holds `size` bytes. */
static cuda_status add_range(standin *state, standin_pool *pool, uint64_t size, pool_place *out)
{
    pool_range range = {0};
    if (!memory_extent(size, &range.extent)) {
        return CUDA_INVALID_VALUE;
    }
    if (alloti_array_reserve(&pool->ranges, &pool->range_capacity, pool->range_count + 1,
                             sizeof *pool->ranges) != ALLOT_STATUS_OK ||
        alloti_array_reserve(&range.pieces, &range.piece_capacity, 1, sizeof *range.pieces) !=
            ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    const cuda_status status =
        memory_allocate(state, pool->device, range.extent, MEMORY_POOL_RANGE, &range.address);
    if (status != CUDA_OK) {
        free(range.pieces);
        return status;
    }
    state->memory.blocks[address_owner(&state->space, range.address)].owner =
        index_of(&state->pools, pool);
    range.pieces[range.piece_count++] =
        (pool_piece){.address = range.address, .size = range.extent, .block = ALLOT_NONE};
    pool->reserved += range.extent;
    pool->reserved_peak =
        pool->reserved > pool->reserved_peak ? pool->reserved : pool->reserved_peak;
    *out = (pool_place){pool->range_count, 0};
    pool->ranges[pool->range_count++] = range;
    return CUDA_OK;
}

/**
 * Find or make a piece. When the device is full, one that another stream has not finished freeing
 * will do, if the pool allows that: the request then waits for it in stream order.
 */
static cuda_status get_piece(standin *state, standin_pool *pool, uint64_t size,
                             standin_stream *stream, pool_place *out)
{
    pool_request asked = {
        .state = state, .pool = pool, .stream = stream, .size = size, .may_depend = false};
    if (pool_piece_find(&asked, out)) {
        return CUDA_OK;
    }
    cuda_status status = add_range(state, pool, size, out);
    asked.may_depend = true;
    if (status != CUDA_OUT_OF_MEMORY || pool->reuse[CUDA_POOL_REUSE_INTERNAL - 1] == 0 ||
        !pool_piece_find(&asked, out)) {
        return status;
    }
    const pool_piece *const piece = &pool->ranges[out->range].pieces[out->piece];
    return point_merge(&stream->now, &piece->freed) ? stream_work(state, stream)
                                                    : CUDA_OUT_OF_MEMORY;
}

cuda_status pool_allocate(standin *state, standin_pool *pool, uint64_t size, standin_stream *stream,
                          uint64_t *address)
{
    uint64_t rounded = 0;
    if (size == 0 || !alloti_align_up(size, PIECE_UNIT, &rounded)) {
        return CUDA_INVALID_VALUE;
    }
    cuda_status status = stream_work(state, stream); /* first, since it cannot be undone */
    pool_place at = {0};
    if (status == CUDA_OK) {
        status = get_piece(state, pool, rounded, stream, &at);
    }
    if (status == CUDA_OK) {
        status = pool_piece_divide(&pool->ranges[at.range], at.piece, rounded);
    }
    if (status != CUDA_OK) {
        return status;
    }
    pool_piece *const piece = &pool->ranges[at.range].pieces[at.piece];
    const memory_block block = {.address = piece->address,
                                .size = size,
                                .extent = rounded,
                                .device = pool->device,
                                .owner = index_of(&state->pools, pool),
                                .kind = MEMORY_POOLED,
                                .is_part = true,
                                .readers = UINT64_MAX,
                                .writers = UINT64_MAX};
    uint32_t index = 0;
    status = memory_enter(state, &block, &index);
    if (status != CUDA_OK) {
        return status;
    }
    point_fini(&piece->freed);
    piece->block = index;
    count_used(pool, rounded);
    *address = block.address;
    return use_set_birth(state, index, stream);
}

uint32_t pool_find(const standin *state, uint32_t index, uint64_t address)
{
    const pool_piece *const piece = pool_piece_at(state->pools.pools[index], address);
    if (piece == NULL || piece->block == ALLOT_NONE) {
        return ALLOT_NONE;
    }
    return piece->block;
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
    cuda_status status = stream_work(state, stream); /* the free has its place in the order now */
    if (status == CUDA_OK && state->config.has_bytes && stream->capture == NULL) {
        status = check_order(state, index, stream);
    }
    pool_piece *const piece = pool_piece_at(pool, address);
    if (status == CUDA_OK) {
        status = point_copy(&piece->freed, &stream->now);
    }
    if (status == CUDA_OK) {
        piece->block = ALLOT_NONE;
        piece->freed_by = stream->id;
        pool->used -= piece->size;
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
    while (i < pool->range_count && pool->reserved > keep) {
        pool_range *const range = &pool->ranges[i];
        if (!pool_range_is_idle(state, range)) {
            i++;
            continue;
        }
        pool->reserved -= range->extent;
        (void)memory_release(state, range->address, MEMORY_POOL_RANGE);
        pool_range_fini(range);
        *range = pool->ranges[--pool->range_count];
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
        } else if (pool != NULL && pool->device == device && pool->range_count != 0) {
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

void pool_count(const standin *state, uint64_t *used)
{
    for (uint64_t i = 0; i < state->pools.count; i++) {
        if (state->pools.pools[i] != NULL) {
            used[state->pools.pools[i]->device] += state->pools.pools[i]->reserved;
        }
    }
}
