/* SPDX-License-Identifier: MIT */
/** RMM's pool as a part of other models: binning stands in front of one. See model_rmm_pool.c. */
#ifndef ALLOTI_REPLAY_RMM_POOL_H
#define ALLOTI_REPLAY_RMM_POOL_H

#include "replay/stream_lists.h"
#include "replay/upstream.h"

/** All sizes of RMM's resources are multiples of this. */
#define ALLOTI_RMM_ROUND 256

typedef struct alloti_rmm_pool {
    alloti_upstream *upstream; /**< Borrowed. */
    alloti_stream_lists lists;
    alloti_span_set ranges; /**< What the driver gave, each as it was given. */
    uint64_t held;          /**< Sum of the ranges. */
    uint64_t maximum;       /**< Most it may hold; 0: no maximum. */
    uint32_t range_count;   /**< Ranges ever taken. */
} alloti_rmm_pool;

void alloti_rmm_pool_init(alloti_rmm_pool *pool, alloti_upstream *upstream);
void alloti_rmm_pool_fini(alloti_rmm_pool *pool);

/** Take the first range. ALLOT_STATUS_DEVICE_MEMORY if the driver refuses it. */
ALLOT_NODISCARD allot_status alloti_rmm_pool_prime(alloti_rmm_pool *pool, uint64_t initial);

/** Take a piece of `size` bytes, a multiple of ALLOTI_RMM_ROUND. ALLOT_STATUS_DEVICE_MEMORY. */
ALLOT_NODISCARD allot_status alloti_rmm_pool_take(alloti_rmm_pool *pool, uint64_t size,
                                                  uint64_t stream, alloti_span *out);

/** Give a piece back, last used on `stream`. */
ALLOT_NODISCARD allot_status alloti_rmm_pool_give(alloti_rmm_pool *pool, alloti_span piece,
                                                  uint64_t stream);

#endif /* ALLOTI_REPLAY_RMM_POOL_H */
