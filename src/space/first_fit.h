/* SPDX-License-Identifier: MIT */
/** Free ranges by address: what first fit, tiered and adaptive share. One index per zone. */
#ifndef ALLOTI_SPACE_FIRST_FIT_H
#define ALLOTI_SPACE_FIRST_FIT_H

#include "space/range_index.h"
#include "space/space.h"

/** The lowest range of an index where an aligned request fits, and where it then begins. */
static inline uint32_t first_fit_lowest(const range_index *index, uint64_t size, uint64_t align,
                                        uint64_t *offset)
{
    range_entry found;
    uint64_t from = 0;
    while (range_index_lowest(index, from, size, &found)) {
        const space_range range = {.offset = found.first, .size = found.second};
        if (space_fits(&range, size, align, offset)) {
            return found.id;
        }
        from = found.first + 1;
    }
    return ALLOT_NONE;
}

/** The highest one, and the highest place in it. */
static inline uint32_t first_fit_highest(const range_index *index, uint64_t size, uint64_t align,
                                         uint64_t *offset)
{
    range_entry found;
    uint64_t below = UINT64_MAX;
    while (range_index_highest(index, below, size, &found)) {
        const uint64_t begin = (found.first + found.second - size) & ~(align - 1);
        if (begin >= found.first) {
            *offset = begin;
            return found.id;
        }
        below = found.first;
    }
    return ALLOT_NONE;
}

static inline range_entry first_fit_entry(const allot_space *space, uint32_t id)
{
    return (range_entry){
        .first = space->ranges[id].offset, .second = space->ranges[id].size, .id = id};
}

#endif /* ALLOTI_SPACE_FIRST_FIT_H */
