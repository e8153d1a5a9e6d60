/* SPDX-License-Identifier: MIT */
#include "live_set.h"

#include <stdlib.h>
#include <string.h>

/** How many ranges begin before `at`. */
static size_t rank_of(const live_set *set, uint64_t at)
{
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (set->ranges[middle].begin < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool make_room(live_set *set)
{
    if (set->count < set->capacity) {
        return true;
    }
    const size_t capacity = set->capacity == 0 ? 1024 : 2 * set->capacity;
    live_range *const ranges = realloc(set->ranges, capacity * sizeof *ranges);
    if (ranges == NULL) {
        return false;
    }
    set->ranges = ranges;
    set->capacity = capacity;
    return true;
}

bool live_set_add(live_set *set, live_range range, live_range *other)
{
    const size_t at = rank_of(set, range.begin);
    if (at > 0 && set->ranges[at - 1].end > range.begin) {
        *other = set->ranges[at - 1];
        return false;
    }
    if (at < set->count && set->ranges[at].begin < range.end) {
        *other = set->ranges[at];
        return false;
    }
    if (!make_room(set)) {
        *other = (live_range){0, 0};
        return false;
    }
    memmove(&set->ranges[at + 1], &set->ranges[at], (set->count - at) * sizeof *set->ranges);
    set->ranges[at] = range;
    set->count++;
    return true;
}

bool live_set_remove(live_set *set, uint64_t begin)
{
    const size_t at = rank_of(set, begin);
    if (at == set->count || set->ranges[at].begin != begin) {
        return false;
    }
    set->count--;
    memmove(&set->ranges[at], &set->ranges[at + 1], (set->count - at) * sizeof *set->ranges);
    return true;
}
