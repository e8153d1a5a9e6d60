/* SPDX-License-Identifier: MIT */
#ifndef ALLOTI_HEAP_ALLOC_H
#define ALLOTI_HEAP_ALLOC_H

#include "heap/place.h"

/**
 * A place in the table of blocks and a range for ask->request, by the ladder. On success the heap's
 * lock is held; on failure it is not, and nothing is left.
 */
ALLOT_NODISCARD allot_status alloti_find_room(allot_heap *heap, heap_ask *ask, uint32_t *index);

/** Fill in a block from the request and the range that was found for it. */
void alloti_fill_block(allot_heap *heap, const heap_ask *ask, uint32_t block);

#endif /* ALLOTI_HEAP_ALLOC_H */
