/* SPDX-License-Identifier: MIT */
#include "heap/pool.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/options.h"
#include "heap/arena.h"
#include "heap/front.h"
#include "heap/habits.h"
#include "heap/pending.h"
#include "heap/segment.h"

allot_heap_pool alloti_pool_handle(const allot_heap *heap, uint32_t index)
{
    return (allot_heap_pool){index == 0 ? 0
                                        : (uint64_t)heap->pools[index]->generation << 32 | index};
}

static bool is_in_use(const heap_pool *pool)
{
    return pool->generation % 2 == 1;
}

allot_status alloti_pool_find(const allot_heap *heap, allot_heap_pool pool, uint32_t *out)
{
    const uint32_t index = (uint32_t)pool.value;
    if (index >= heap->pool_count || !is_in_use(heap->pools[index]) ||
        alloti_pool_handle(heap, index).value != pool.value) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "pool %#" PRIx64 ": none of this heap, or it was destroyed", pool.value);
    }
    *out = index;
    return ALLOT_STATUS_OK;
}

/** A place that is not in use; made if there is none. */
static allot_status take_place(allot_heap *heap, uint32_t *out)
{
    for (uint32_t i = 1; i < heap->pool_count; i++) {
        if (!is_in_use(heap->pools[i]) && heap->pools[i]->generation < UINT32_MAX - 1) {
            *out = i;
            return ALLOT_STATUS_OK;
        }
    }
    if (heap->pool_count == POOLS_MAX) {
        return alloti_fail(ALLOT_STATUS_HOST_MEMORY, "a heap has at most %d pools", POOLS_MAX);
    }
    heap_pool *const pool = calloc(1, sizeof *pool);
    if (pool == NULL) {
        return alloti_fail_memory(sizeof *pool);
    }
    *out = heap->pool_count;
    heap->pools[heap->pool_count++] = pool;
    return ALLOT_STATUS_OK;
}

allot_status alloti_pool_add(allot_heap *heap, const allot_heap_pool_options *options,
                             uint32_t *out)
{
    if ((unsigned)options->strategy > ALLOT_SPACE_STRATEGY_ADAPTIVE) {
        return alloti_fail(ALLOT_STATUS_INVALID, "no strategy has the number %d",
                           (int)options->strategy);
    }
    uint32_t index = 0;
    const allot_status status = take_place(heap, &index);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap_habits *habits = NULL;
    if (alloti_habits_are_learned(heap, options->strategy)) {
        habits = calloc(1, sizeof *habits);
        if (habits == NULL) {
            return alloti_fail_memory(sizeof *habits);
        }
    }
    heap_pool *const pool = heap->pools[index];
    *pool = (heap_pool){.generation = pool->generation + 1,
                        .strategy = options->strategy,
                        .limit = options->limit,
                        .habits = habits,
                        .is_shared_on_oom = options->is_shared_on_oom};
    *out = index;
    return ALLOT_STATUS_OK;
}

void alloti_pools_fini(allot_heap *heap)
{
    for (uint32_t i = 0; i < heap->pool_count; i++) {
        free(heap->pools[i]->habits);
        free(heap->pools[i]);
    }
}

allot_status allot_heap_pool_create(allot_heap *heap, const allot_heap_pool_options *options,
                                    allot_heap_pool *out)
{
    allot_heap_pool_options taken;
    allot_status status = alloti_options_take(options, sizeof taken, &taken);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_heap_enter(heap);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint32_t index = 0;
    status = alloti_pool_add(heap, &taken, &index);
    if (status == ALLOT_STATUS_OK) {
        *out = alloti_pool_handle(heap, index);
    }
    return heap_leave(heap, status);
}

/** Blocks that were handed out of a pool's arenas. */
static uint64_t live_count(allot_heap *heap, uint32_t pool)
{
    front_sums sums = {0};
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        if (heap->arenas[i]->pool == pool) {
            alloti_front_add_up(heap, i, &sums, NULL);
        }
    }
    return heap->pools[pool]->meters.allocation.current - sums.count;
}

/** Blocks of any pool in a pool's segments; what is in its fronts goes back first. */
static uint64_t placed_count(allot_heap *heap, uint32_t pool)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        const heap_arena *const arena = heap->arenas[i];
        if (arena->pool == pool) {
            (void)alloti_front_flush(heap, i);
        }
        for (uint32_t j = 0; arena->pool == pool && j < arena->count; j++) {
            count += heap->segments[arena->segments[j]].active_count;
        }
    }
    return count;
}

/** All memory of a pool goes back to the device, if nothing is in it. */
static allot_status release_all(allot_heap *heap, uint32_t pool)
{
    /* Blocks that were just taken out of fronts, and requests of the default pool placed here. */
    const uint64_t left = placed_count(heap, pool);
    allot_status status =
        left == 0 ? ALLOT_STATUS_OK
                  : alloti_fail(ALLOT_STATUS_BUSY, "the pool holds %" PRIu64 " blocks", left);
    for (uint32_t i = 0; i < heap->arena_count && status == ALLOT_STATUS_OK; i++) {
        heap_arena *const arena = heap->arenas[i];
        if (arena->pool == pool && !arena->is_dead) {
            status = alloti_arena_release(heap, i);
        }
    }
    return status;
}

/** Call `change` for every arena of a pool. */
static void each_arena(allot_heap *heap, uint32_t pool,
                       void (*change)(allot_heap *heap, uint32_t arena))
{
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        if (heap->arenas[i]->pool == pool) {
            change(heap, i);
        }
    }
}

static allot_status destroy_pool(allot_heap *heap, allot_heap_pool pool)
{
    uint32_t index = 0;
    allot_status status = alloti_pool_find(heap, pool, &index);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (index == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "the default pool lasts as long as its heap");
    }
    if (live_count(heap, index) != 0) {
        return alloti_fail(ALLOT_STATUS_BUSY, "the pool has %" PRIu64 " blocks",
                           live_count(heap, index));
    }
    status = alloti_pending_wait(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    /* From here on nothing comes out of its fronts, which need no lock of the heap. */
    each_arena(heap, index, alloti_arena_hide);
    status = release_all(heap, index);
    if (status != ALLOT_STATUS_OK) {
        each_arena(heap, index, alloti_arena_show);
        return status;
    }
    each_arena(heap, index, alloti_arena_bury);
    free(heap->pools[index]->habits);
    heap->pools[index]->habits = NULL;
    heap->pools[index]->generation++;
    return ALLOT_STATUS_OK;
}

allot_status allot_heap_pool_destroy(allot_heap *heap, allot_heap_pool pool)
{
    const allot_status status = alloti_heap_enter(heap);
    return status == ALLOT_STATUS_OK ? heap_leave(heap, destroy_pool(heap, pool)) : status;
}
