/* SPDX-License-Identifier: MIT */
/**
 * The pieces that a pool's ranges are cut into: which of them a stream may use, joining and
 * dividing them. Described in pool.h.
 *
 * Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_POOL_PIECE_H
#define ALLOTI_STANDIN_POOL_PIECE_H

#include <allot/base.h>

#include "standin/abi.h"
#include "standin/stream.h"

struct standin;
struct standin_pool;

typedef struct pool_piece {
    uint64_t address;
    uint64_t size;
    uint32_t block;     /**< Index of the block; ALLOT_NONE: free. */
    stream_point freed; /**< While free: when. */
    uint64_t freed_by;  /**< While free: id of the stream; 0: of several. */
} pool_piece;

typedef struct pool_range {
    uint64_t address;
    uint64_t extent;
    pool_piece *pieces; /**< Sorted, without gaps. */
    uint64_t piece_count;
    uint64_t piece_capacity;
} pool_range;

/** What a stream asks of a pool. */
typedef struct pool_request {
    const struct standin *state;
    const struct standin_pool *pool;
    const standin_stream *stream;
    uint64_t size;   /**< In whole units. */
    bool may_depend; /**< Pieces that are not free yet count too. */
} pool_request;

/** A piece: its range and its place there. */
typedef struct pool_place {
    uint64_t range;
    uint64_t piece;
} pool_place;

/** The smallest usable piece that is large enough; joins what touches. False if there is none. */
bool pool_piece_find(const pool_request *asked, pool_place *out);

/** Cut what is not asked for off a piece; it stays free since the same moment. */
cuda_status pool_piece_divide(pool_range *range, uint64_t at, uint64_t size);

/** The piece that holds an address of a pool; NULL for none. */
pool_piece *pool_piece_at(const struct standin_pool *pool, uint64_t address);

/** Whether nothing of a range is in use, or will be before a stream gets there. */
bool pool_range_is_idle(const struct standin *state, const pool_range *range);

void pool_range_fini(pool_range *range);

#endif /* ALLOTI_STANDIN_POOL_PIECE_H */
