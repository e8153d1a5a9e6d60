/* SPDX-License-Identifier: MIT */
#ifndef ALLOTI_HEAP_ALLOC_H
#define ALLOTI_HEAP_ALLOC_H

#include "heap/place.h"

/**
 * A place in the table of blocks and a range for ask->request, by the ladder. On success the heap's
 * lock is held; on failure it is not, and nothing is left.
 */
ALLOT_NODISCARD allot_status alloti_find_room(allot_heap *heap, heap_ask *ask, uint32_t *index);

/** ALLOT_STATUS_INVALID for a request that no heap can answer. */
ALLOT_NODISCARD allot_status alloti_request_check(const allot_request *request, bool is_fixed);

/** Size, alignment and lead of the range that ask->request needs in a pool. */
ALLOT_NODISCARD allot_status alloti_ask_measure(const allot_heap *heap, uint32_t pool,
                                                heap_ask *ask);

/** Give back a range that was found and not used; `block` was taken for it, and is put back. */
void alloti_forget_place(allot_heap *heap, const heap_ask *ask, uint32_t index);

/** Fill in a block from the request and the range that was found for it. */
void alloti_fill_block(allot_heap *heap, const heap_ask *ask, uint32_t index);

#endif /* ALLOTI_HEAP_ALLOC_H */
