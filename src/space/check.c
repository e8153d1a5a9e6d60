/* SPDX-License-Identifier: MIT */
/* allot_space_check(): what must hold between two calls. */
#include <inttypes.h>

#include "space/space.h"

typedef struct sums {
    uint64_t end;
    uint64_t used;
    uint64_t used_count;
    uint64_t free_count;
} sums;

static allot_status wrong(uint32_t id, const char *text)
{
    return alloti_fail(ALLOT_STATUS_MISMATCH, "range %" PRIu32 ": %s", id, text);
}

static allot_status check_range(const allot_space *space, uint32_t id, uint32_t prev, sums *s)
{
    const space_range *const range = &space->ranges[id];
    if (range->prev != prev) {
        return wrong(id, "prev is not the one before");
    }
    const uint64_t size = range_size(space, id);
    if (range_offset(space, id) != s->end) {
        return wrong(id, "does not begin where the one before ends");
    }
    if (size == 0) {
        return wrong(id, "is empty");
    }
    if (space_is_used(space, id) == space_is_free(space, id)) {
        return wrong(id, "is not either used or free");
    }
    if (!space->ops->has_own_merging && space_can_merge(space, prev, id)) {
        return wrong(id, "should be one with the one before");
    }
    s->end += size;
    s->used += space_is_used(space, id) ? size : 0;
    s->used_count += space_is_used(space, id) ? 1 : 0;
    s->free_count += space_is_free(space, id) ? 1 : 0;
    return ALLOT_STATUS_OK;
}

static bool unused_is_right(const allot_space *space, uint64_t entered)
{
    uint64_t count = 0;
    for (uint32_t id = space->unused; id != ALLOT_NONE && count <= space->count;
         id = space->ranges[id].next) {
        if (space->marks[id] != 0) {
            return false;
        }
        count++;
    }
    return count == space->unused_count && count + entered == space->count;
}

allot_status allot_space_check(const allot_space *space)
{
    sums s = {0};
    uint32_t prev = ALLOT_NONE;
    for (uint32_t id = space->first; id != ALLOT_NONE; prev = id, id = space->ranges[id].next) {
        const allot_status status = check_range(space, id, prev, &s);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    if (space->last != prev) {
        return wrong(prev, "is not the last one");
    }
    if (s.end != space->capacity || s.used != space->size_used ||
        s.used_count != space->used_count || s.free_count != space->free_count) {
        return alloti_fail(ALLOT_STATUS_MISMATCH,
                           "%" PRIu64 " bytes, %" PRIu64 " of them used, in %" PRIu64 " + %" PRIu64
                           " ranges: the sums are others",
                           s.end, s.used, s.used_count, s.free_count);
    }
    if (!unused_is_right(space, s.used_count + s.free_count)) {
        return alloti_fail(ALLOT_STATUS_MISMATCH, "the list of unused places is wrong");
    }
    const char *const text = space->ops->check(space);
    return text == NULL ? ALLOT_STATUS_OK : alloti_fail(ALLOT_STATUS_MISMATCH, "%s", text);
}
