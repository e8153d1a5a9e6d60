/* SPDX-License-Identifier: MIT */
/** Pools and their handles: generation above, place below. Place 0 is the default pool. */
#ifndef ALLOTI_HEAP_POOL_H
#define ALLOTI_HEAP_POOL_H

#include "heap/heap.h"

/** Add a pool; ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_INVALID for a wrong strategy. */
ALLOT_NODISCARD allot_status alloti_pool_add(allot_heap *heap,
                                             const allot_heap_pool_options *options, uint32_t *out);
void alloti_pools_fini(allot_heap *heap);

allot_heap_pool alloti_pool_handle(const allot_heap *heap, uint32_t index);

/** Place of the pool that a handle names; ALLOT_STATUS_INVALID if it is none or was destroyed. */
ALLOT_NODISCARD allot_status alloti_pool_find(const allot_heap *heap, allot_heap_pool pool,
                                              uint32_t *out);

#endif /* ALLOTI_HEAP_POOL_H */
