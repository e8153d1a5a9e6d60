/* SPDX-License-Identifier: MIT */
/** Giving free memory back to the device. */
#ifndef ALLOTI_HEAP_TRIM_H
#define ALLOTI_HEAP_TRIM_H

#include "heap/place.h"

/**
 * Give back as little as lets the heap grow by a request under its limits: of plain segments the
 * smallest one that suffices, else the largest ones. *released is added to.
 */
ALLOT_NODISCARD allot_status alloti_trim_for(allot_heap *heap, const heap_ask *ask,
                                             uint64_t *released);

/**
 * Before a pool that learns (habits.h) grows by a request to more than it ever held: where at least
 * 1/32 of what it holds is free, segments without blocks go back, up to the size of the new one;
 * the smallest one that suffices, else several. Only those whose stream is done with them: the heap
 * waits for no stream, though the device may, as cudaFree() does. Nothing happens where a limit
 * stands in the way of growing, and a failure only ends this. What goes back is gone if another
 * process takes it before the pool can.
 */
void alloti_trim_idle(allot_heap *heap, const heap_ask *ask, heap_bound bound);

/** Give back all that is free. */
ALLOT_NODISCARD allot_status alloti_trim_all(allot_heap *heap, uint64_t *released);

/** Bytes of a limit given as a part of the memory; ALLOT_STATUS_INVALID if it is none. */
ALLOT_NODISCARD allot_status alloti_limit_of_fraction(const allot_device_info *info,
                                                      double fraction, uint64_t *out);

#endif /* ALLOTI_HEAP_TRIM_H */
