/* SPDX-License-Identifier: MIT */
/** Finding a range for a request among the segments that there are. */
#ifndef ALLOTI_HEAP_PLACE_H
#define ALLOTI_HEAP_PLACE_H

#include "heap/segment.h"

/** A request on its way, and the range it got. */
typedef struct heap_ask {
    allot_request request;
    uint64_t size;  /**< Of the range: red zones included, rounded. */
    uint64_t align; /**< At least the heap's granule. */
    uint64_t lead;  /**< Bytes of the range before the caller's. */
    uint32_t arena;
    uint32_t segment;  /**< Of the range. */
    uint32_t fresh;    /**< That segment if it was made for this request, else ALLOT_NONE. */
    bool takes_spared; /**< It may go into a segment that is spared (habits.h). */
    bool saw_spared;   /**< It would have fitted into one. */
    allot_range range;
} heap_ask;

/** Whether a failure only means that there is no room: of ranges, of limits, or of the device. */
static inline bool heap_is_no_room(allot_status status)
{
    return status == ALLOT_STATUS_FRAGMENTED || status == ALLOT_STATUS_DEVICE_MEMORY ||
           status == ALLOT_STATUS_BUDGET;
}

/**
 * Place a request in an arena: its segment of the lowest address in which it fits.
 *
 * @return ALLOT_STATUS_OK, and ask->segment and range are set; ALLOT_STATUS_FRAGMENTED if it fits
 *         nowhere; what mapping memory returned, and nothing but the room of tables has changed.
 */
ALLOT_NODISCARD allot_status alloti_place_in(allot_heap *heap, uint32_t arena, heap_ask *ask,
                                             heap_bound bound);

/** The same, and if it fits nowhere after the arena got a new segment or a longer one. */
ALLOT_NODISCARD allot_status alloti_place_growing(allot_heap *heap, heap_ask *ask,
                                                  heap_bound bound);

/** Place a request in one segment, whose address is aligned as the request asks. */
ALLOT_NODISCARD allot_status alloti_place_in_segment(allot_heap *heap, uint32_t segment,
                                                     heap_ask *ask, heap_bound bound);

/**
 * End of what placing a request began: memory that the device gave for it stays, or, after the
 * range went back, goes.
 */
void alloti_place_end(allot_heap *heap, const heap_ask *ask, bool stays);

/**
 * Order a stream after all that another one was given by now.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_BUSY if that one is not done and `waits` is false.
 */
ALLOT_NODISCARD allot_status alloti_place_order(allot_heap *heap, allot_stream stream,
                                                uint32_t after, bool waits);

/**
 * Place a request in another arena of a pool, once the work of that arena's stream is done: either
 * it is, or, if `waits`, the request's stream is made to wait for it.
 */
ALLOT_NODISCARD allot_status alloti_place_elsewhere(allot_heap *heap, uint32_t pool, heap_ask *ask,
                                                    bool waits);

#endif /* ALLOTI_HEAP_PLACE_H */
