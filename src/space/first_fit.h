/* SPDX-License-Identifier: MIT */
/** Placing by address: what first fit, tiered and adaptive share. */
#ifndef ALLOTI_SPACE_FIRST_FIT_H
#define ALLOTI_SPACE_FIRST_FIT_H

#include "space/range_index.h"

/** The lowest range of an index where an aligned request fits, and where it then begins. */
static inline uint32_t first_fit_lowest(const range_index *index, const allot_space *space,
                                        uint64_t size, uint64_t align, uint64_t *offset)
{
    uint32_t id = alloti_range_index_lowest(index, 0, size);
    while (id != ALLOT_NONE && !space_fits(&space->ranges[id], size, align, offset)) {
        id = alloti_range_index_lowest(index, space->ranges[id].offset + 1, size);
    }
    return id;
}

/** The highest one, and the highest place in it. */
static inline uint32_t first_fit_highest(const range_index *index, const allot_space *space,
                                         uint64_t size, uint64_t align, uint64_t *offset)
{
    uint32_t id = alloti_range_index_highest(index, UINT64_MAX, size);
    while (id != ALLOT_NONE) {
        const space_range *const range = &space->ranges[id];
        *offset = alloti_align_down(range->offset + range->size - size, align);
        if (*offset >= range->offset) {
            break;
        }
        id = alloti_range_index_highest(index, range->offset, size);
    }
    return id;
}

#endif /* ALLOTI_SPACE_FIRST_FIT_H */
