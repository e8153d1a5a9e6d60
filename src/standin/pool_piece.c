/* SPDX-License-Identifier: MIT */
#include "standin/pool_piece.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "standin/state.h"

/** Whether a piece was never used, or freed by the stream itself: that needs no attribute. */
static bool is_own(const pool_piece *piece, const standin_stream *stream)
{
    return piece->freed_by == stream->id || piece->freed.clock.count == 0;
}

/** Whether a piece is free for a stream. */
static bool is_usable(const pool_request *asked, const pool_piece *piece)
{
    const int *const reuse = asked->pool->reuse;
    if (piece->block != ALLOT_NONE) {
        return false;
    }
    return asked->may_depend ||
           (reuse[CUDA_POOL_REUSE_FOLLOW_EVENTS - 1] != 0 &&
            point_is_before(&piece->freed, asked->stream)) ||
           (reuse[CUDA_POOL_REUSE_OPPORTUNISTIC - 1] != 0 &&
            point_is_finished(asked->state, &piece->freed)) ||
           is_own(piece, asked->stream);
}

static void erase_piece(pool_range *range, uint64_t at)
{
    point_fini(&range->pieces[at].freed);
    range->piece_count--;
    memmove(range->pieces + at, range->pieces + at + 1,
            (size_t)(range->piece_count - at) * sizeof *range->pieces);
}

/** Join the pieces of a range that touch and may both be used. */
static void join(const pool_request *asked, pool_range *range)
{
    for (uint64_t i = 0; i + 1 < range->piece_count;) {
        pool_piece *const left = &range->pieces[i];
        pool_piece *const right = left + 1;
        if (is_usable(asked, left) && is_usable(asked, right) &&
            point_merge(&left->freed, &right->freed)) {
            left->size += right->size;
            left->freed_by = left->freed_by == right->freed_by ? left->freed_by : 0;
            erase_piece(range, i + 1);
        } else {
            i++;
        }
    }
}

bool pool_piece_find(const pool_request *asked, pool_place *out)
{
    const standin_pool *const pool = asked->pool;
    uint64_t best = UINT64_MAX;
    for (uint64_t i = 0; i < pool->range_count; i++) {
        join(asked, &pool->ranges[i]);
        for (uint64_t j = 0; j < pool->ranges[i].piece_count; j++) {
            const pool_piece *const piece = &pool->ranges[i].pieces[j];
            if (piece->size >= asked->size && piece->size < best && is_usable(asked, piece)) {
                best = piece->size;
                *out = (pool_place){i, j};
            }
        }
    }
    return best != UINT64_MAX;
}

cuda_status pool_piece_divide(pool_range *range, uint64_t at, uint64_t size)
{
    if (range->pieces[at].size == size) {
        return CUDA_OK;
    }
    if (alloti_array_reserve(&range->pieces, &range->piece_capacity, range->piece_count + 1,
                             sizeof *range->pieces) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    pool_piece *const piece = &range->pieces[at];
    pool_piece rest = {.address = piece->address + size,
                       .size = piece->size - size,
                       .block = ALLOT_NONE,
                       .freed_by = piece->freed_by};
    const cuda_status status = point_copy(&rest.freed, &piece->freed);
    if (status != CUDA_OK) {
        return status;
    }
    piece->size = size;
    memmove(piece + 2, piece + 1, (size_t)(range->piece_count - at - 1) * sizeof *piece);
    piece[1] = rest;
    range->piece_count++;
    return CUDA_OK;
}

pool_piece *pool_piece_at(const standin_pool *pool, uint64_t address)
{
    for (uint64_t i = 0; i < pool->range_count; i++) {
        const pool_range *const range = &pool->ranges[i];
        if (address - range->address >= range->extent) {
            continue;
        }
        uint64_t low = 0;
        uint64_t high = range->piece_count;
        while (high - low > 1) {
            const uint64_t middle = low + (high - low) / 2;
            if (range->pieces[middle].address <= address) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return &range->pieces[low];
    }
    return NULL;
}

bool pool_range_is_idle(const standin *state, const pool_range *range)
{
    for (uint64_t i = 0; i < range->piece_count; i++) {
        if (range->pieces[i].block != ALLOT_NONE ||
            !point_is_finished(state, &range->pieces[i].freed)) {
            return false;
        }
    }
    return true;
}

void pool_range_fini(pool_range *range)
{
    for (uint64_t i = 0; i < range->piece_count; i++) {
        point_fini(&range->pieces[i].freed);
    }
    free(range->pieces);
}
