/* SPDX-License-Identifier: MIT */
/**
 * The ladder before a request is refused: a table of rungs, climbed one after the other until the
 * request has a range. Each rung is a step under the heap's lock; between rungs others may go on.
 */
#ifndef ALLOTI_HEAP_LADDER_H
#define ALLOTI_HEAP_LADDER_H

#include "heap/place.h"

/**
 * Find a range for a request. The heap's lock is not held; on success it is.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_FRAGMENTED, ALLOT_STATUS_BUDGET, ALLOT_STATUS_DEVICE_MEMORY
 *         after the whole ladder; what failed otherwise, and the heap is as it was.
 */
ALLOT_NODISCARD allot_status alloti_ladder_climb(allot_heap *heap, heap_ask *ask);

#endif /* ALLOTI_HEAP_LADDER_H */
