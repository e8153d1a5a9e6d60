/* SPDX-License-Identifier: MIT */
/**
 * The ladder before a request is refused: a table of rungs, climbed one after the other until the
 * request has a range. Each rung is a step under the heap's lock; between rungs others may go on,
 * and what the request names (its pool, its stream) may be gone.
 */
#ifndef ALLOTI_HEAP_LADDER_H
#define ALLOTI_HEAP_LADDER_H

#include "heap/place.h"

/**
 * Find a range for a request. The heap's lock is held; on success only it still is.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_FRAGMENTED, ALLOT_STATUS_BUDGET, ALLOT_STATUS_DEVICE_MEMORY
 *         after the whole ladder; ALLOT_STATUS_INVALID if the pool was destroyed meanwhile; what
 * failed otherwise, and the heap is as it was.
 */
ALLOT_NODISCARD allot_status alloti_ladder_climb(allot_heap *heap, heap_ask *ask);

#endif /* ALLOTI_HEAP_LADDER_H */
