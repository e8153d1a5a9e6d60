/* SPDX-License-Identifier: MIT */
/** Placing by address: what first fit, tiered and adaptive share. */
#ifndef ALLOTI_SPACE_FIRST_FIT_H
#define ALLOTI_SPACE_FIRST_FIT_H

#include "space/range_index.h"

/** The lowest range of an index where an aligned request fits, and where it then begins. */
static inline uint32_t first_fit_lowest(const range_index *index, const allot_space *space,
                                        uint64_t size, uint64_t align, uint64_t *offset)
{
    uint32_t id = alloti_range_index_lowest(index, space, 0, size);
    while (id != ALLOT_NONE && !space_fits(space, id, size, align, offset)) {
        id = alloti_range_index_lowest(index, space, range_offset(space, id) + 1, size);
    }
    return id;
}

/** The highest one, and the highest place in it. */
static inline uint32_t first_fit_highest(const range_index *index, const allot_space *space,
                                         uint64_t size, uint64_t align, uint64_t *offset)
{
    uint32_t id = alloti_range_index_highest(index, space, UINT64_MAX, size);
    while (id != ALLOT_NONE) {
        *offset = alloti_align_down(range_end(space, id) - size, align);
        if (range_size(space, id) >= size && *offset >= range_offset(space, id)) {
            break;
        }
        id = alloti_range_index_highest(index, space, range_offset(space, id), size);
    }
    return id;
}

#endif /* ALLOTI_SPACE_FIRST_FIT_H */
