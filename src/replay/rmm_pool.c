/* SPDX-License-Identifier: MIT */
#include "replay/rmm_pool.h"

#include "core/size_math.h"

void alloti_rmm_pool_init(alloti_rmm_pool *pool, alloti_upstream *upstream)
{
    *pool = (alloti_rmm_pool){.upstream = upstream, .ranges = ALLOTI_SPAN_SET_EMPTY};
}

void alloti_rmm_pool_fini(alloti_rmm_pool *pool)
{
    alloti_stream_lists_fini(&pool->lists);
    alloti_span_set_fini(&pool->ranges);
}

/** Take a range from the driver and put it into `set`. */
static allot_status range_add(alloti_rmm_pool *pool, alloti_span_set *set, uint64_t size)
{
    uint64_t address = 0;
    if (!alloti_upstream_take(pool->upstream, size, &address)) {
        return ALLOT_STATUS_DEVICE_MEMORY;
    }
    const alloti_span range = {.address = address, .size = size, .segment = pool->range_count++};
    pool->held += size;
    const allot_status status = alloti_span_set_add(&pool->ranges, range);
    return status == ALLOT_STATUS_OK ? alloti_span_set_add(set, range) : status;
}

allot_status alloti_rmm_pool_prime(alloti_rmm_pool *pool, uint64_t initial)
{
    alloti_span_set *set = NULL;
    const allot_status status = alloti_stream_lists_get(&pool->lists, 0, &set);
    return status == ALLOT_STATUS_OK && initial > 0 ? range_add(pool, set, initial) : status;
}

/** Size to ask the driver for; 0 if the maximum leaves too little. */
static uint64_t size_to_grow(const alloti_rmm_pool *pool, uint64_t size)
{
    if (pool->maximum == 0) {
        return size > pool->held ? size : pool->held;
    }
    const uint64_t room = alloti_align_down(pool->maximum - pool->held, ALLOTI_RMM_ROUND);
    const uint64_t half = alloti_align_down(room / 2, ALLOTI_RMM_ROUND);
    return size > room ? 0 : (size > half ? size : half);
}

/** Give entirely free ranges back until `size` bytes fit below the maximum. */
static void ranges_reclaim(alloti_rmm_pool *pool, alloti_span_set *set, uint64_t size)
{
    uint64_t at = 0;
    const alloti_span *found = NULL;
    while (pool->maximum - pool->held < size &&
           (found = alloti_span_set_ceiling(set, at)) != NULL) {
        const alloti_span span = *found;
        at = span.address + 1;
        const alloti_span *const range = alloti_span_set_floor(&pool->ranges, span.address);
        if (range == NULL || range->address != span.address || range->size != span.size) {
            continue;
        }
        alloti_span_set_remove(set, span.address);
        alloti_span_set_remove(&pool->ranges, span.address);
        alloti_upstream_give(pool->upstream, span.size);
        pool->held -= span.size;
    }
}

/** Ask for the size to grow by, then for half of it, down to `size`. */
static allot_status pool_expand(alloti_rmm_pool *pool, alloti_span_set *set, uint64_t size)
{
    uint64_t bytes = size_to_grow(pool, size);
    if (bytes < size && size <= pool->maximum) {
        ranges_reclaim(pool, set, size);
        bytes = size_to_grow(pool, size);
    }
    while (bytes >= size) {
        const allot_status status = range_add(pool, set, bytes);
        if (status != ALLOT_STATUS_DEVICE_MEMORY || bytes == size) {
            return status;
        }
        bytes = alloti_align_down(bytes / 2, ALLOTI_RMM_ROUND);
        bytes = bytes < size ? size : bytes;
    }
    return ALLOT_STATUS_DEVICE_MEMORY;
}

/**
 * Look at the lists of other streams in turn. With `join` each is merged into `set` before looking.
 * *from is the list that holds a fit, NULL if none does.
 */
static allot_status other_streams(alloti_rmm_pool *pool, alloti_span_set *set, uint64_t size,
                                  bool join, alloti_span_set **from)
{
    *from = NULL;
    for (uint32_t i = 0; i < pool->lists.count; i++) {
        alloti_span_set *const other = &pool->lists.lists[i].spans;
        if (other == set) {
            continue;
        }
        if (join) {
            const allot_status status = alloti_span_set_drain(other, set);
            if (status != ALLOT_STATUS_OK) {
                return status;
            }
        }
        alloti_span_set *const place = join ? set : other;
        if (alloti_span_set_best_fit(place, size) != NULL) {
            *from = place;
            return ALLOT_STATUS_OK;
        }
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_rmm_pool_take(alloti_rmm_pool *pool, uint64_t size, uint64_t stream,
                                  alloti_span *out)
{
    alloti_span_set *set = NULL;
    allot_status status = alloti_stream_lists_get(&pool->lists, stream, &set);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_span_set *from = alloti_span_set_best_fit(set, size) != NULL ? set : NULL;
    for (int join = 0; from == NULL && join < 2; join++) {
        status = other_streams(pool, set, size, join != 0, &from);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    if (from == NULL) {
        status = pool_expand(pool, set, size);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        from = set;
    }
    return alloti_span_set_carve(from, alloti_span_set_best_fit(from, size), size, out);
}

allot_status alloti_rmm_pool_give(alloti_rmm_pool *pool, alloti_span piece, uint64_t stream)
{
    alloti_span_set *set = NULL;
    const allot_status status = alloti_stream_lists_get(&pool->lists, stream, &set);
    return status == ALLOT_STATUS_OK ? alloti_span_set_merge(set, piece) : status;
}
