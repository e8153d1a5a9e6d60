/* SPDX-License-Identifier: MIT */
/**
 * The areas of a "space:..." model: stretches of addresses, each with a space of its own
 * (<allot/space.h>) that places blocks in it. An area is either a segment, taken from the driver
 * and given back as a whole, or a range of addresses that is backed by memory in granules.
 *
 * Areas are kept in the order of their addresses, which is the order in which they were made. A
 * piece handed out (alloti_span) has the id of its range as its `segment`.
 */
#ifndef ALLOTI_REPLAY_SPACE_AREAS_H
#define ALLOTI_REPLAY_SPACE_AREAS_H

#include <allot/space.h>

#include "replay/span_set.h"

typedef struct alloti_space_area {
    allot_space *space;
    uint64_t address;
    uint64_t size;          /**< Bytes of addresses. */
    uint64_t used;          /**< Bytes handed out. */
    uint64_t largest;       /**< Of the free ranges of a segment; a range does not keep it. */
    uint64_t stream;        /**< Whose it is, where streams are apart. */
    alloti_span_set mapped; /**< Range: what is backed by memory, in whole granules. */
} alloti_space_area;

typedef struct alloti_space_areas {
    alloti_space_area *items;
    uint64_t capacity;
    uint32_t count;
} alloti_space_areas;

void alloti_space_areas_fini(alloti_space_areas *areas);

/**
 * Append an area; its address must be above all others.
 *
 * @param[out] out  Borrowed: valid until the next area is added or removed.
 */
ALLOT_NODISCARD allot_status alloti_space_areas_add(alloti_space_areas *areas,
                                                    allot_space_strategy strategy, uint64_t address,
                                                    uint64_t size, uint64_t stream,
                                                    alloti_space_area **out);

void alloti_space_areas_remove(alloti_space_areas *areas, uint32_t index);

/** The area that holds `address`, which is one of a piece handed out. O(log areas). */
alloti_space_area *alloti_space_areas_find(const alloti_space_areas *areas, uint64_t address);

/**
 * Place a request in an area.
 *
 * @return ALLOT_STATUS_DEVICE_MEMORY if there is no room in it, ALLOT_STATUS_HOST_MEMORY.
 */
ALLOT_NODISCARD allot_status alloti_space_area_take(alloti_space_area *area, uint64_t size,
                                                    uint64_t stream, alloti_span *out);

/** Give a piece back to the area it is from. */
ALLOT_NODISCARD allot_status alloti_space_area_give(alloti_space_area *area, alloti_span piece);

#endif /* ALLOTI_REPLAY_SPACE_AREAS_H */
