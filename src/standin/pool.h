/* SPDX-License-Identifier: MIT */
/**
 * Stream-ordered memory pools (cudaMallocAsync). A freed block stays in its pool: the stream that
 * freed it takes it again at once, others once they are ordered after the free or the free is
 * finished. Waiting for a stream or device gives what is free back to the device, down to the
 * pool's release threshold; so does an allocation that would fail.
 *
 * A pool holds ranges of whole granules, cut into pieces:
 *
 *     | used | free since event a | used | free since event b | free |
 *
 * A request takes the smallest free run that its stream may use, rounded up to 512 bytes. How the
 * driver chooses, and by how much its pools grow, is not public: best fit and single granules are a
 * guess (users see 32 MiB reserved by some drivers).
 *
 * The attributes about reuse are followed as the CUDA programming guide describes them.
 *
 * Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_POOL_H
#define ALLOTI_STANDIN_POOL_H

#include <allot/base.h>

#include "standin/abi.h"
#include "standin/config.h"
#include "standin/pool_piece.h"
#include "standin/slot.h"
#include "standin/stream.h"

struct standin;

typedef struct standin_pool {
    void *handle;
    uint32_t device;
    bool is_default;
    bool is_dying; /**< Destroyed by the program; goes when the last block is freed. */
    uint64_t threshold;
    uint64_t reserved;
    uint64_t reserved_peak;
    uint64_t used;
    uint64_t used_peak;
    int reuse[3]; /**< The three attributes about reuse, by number - 1. */
    pool_range *ranges;
    uint64_t range_count;
    uint64_t range_capacity;
} standin_pool;

typedef struct pool_state {
    alloti_slots table;
    standin_pool **pools; /**< NULL where one was destroyed. */
    uint64_t count;
    uint64_t capacity;
    standin_pool *defaults[STANDIN_DEVICES_MAX];
    standin_pool *current[STANDIN_DEVICES_MAX];
} pool_state;

void pool_fini(pool_state *pools);

cuda_status pool_create(struct standin *state, uint32_t device, standin_pool **out);
void pool_destroy(struct standin *state, standin_pool *pool);

/** NULL unless the handle is a live pool. */
standin_pool *pool_get(const struct standin *state, const void *handle);
cuda_status pool_default(struct standin *state, uint32_t device, standin_pool **out);
cuda_status pool_current(struct standin *state, uint32_t device, standin_pool **out);

cuda_status pool_allocate(struct standin *state, standin_pool *pool, uint64_t size,
                          standin_stream *stream, uint64_t *address);
cuda_status pool_free(struct standin *state, uint64_t address, standin_stream *stream);

/**
 * cudaFree() of a pool's allocation: documented to be free at once, so that the program must have
 * waited for all that uses it.
 */
cuda_status pool_free_now(struct standin *state, uint64_t address);

/** Give ranges that are free back until at most `keep` bytes are reserved. */
void pool_trim(struct standin *state, standin_pool *pool, uint64_t keep);
void pool_trim_device(struct standin *state, uint32_t device);
void pool_trim_after_wait(struct standin *state, uint32_t device);

cuda_status pool_get_attribute(const standin_pool *pool, int attribute, void *out);
cuda_status pool_set_attribute(standin_pool *pool, int attribute, const void *value);

/** Block of pool `index` that holds an address; ALLOT_NONE for none. */
uint32_t pool_find(const struct standin *state, uint32_t index, uint64_t address);

/** Add what the pools hold to used[device]. */
void pool_count(const struct standin *state, uint64_t *used);

#endif /* ALLOTI_STANDIN_POOL_H */
