/* SPDX-License-Identifier: MIT */
/*
 * What was asked for so far decides where requests go.
 *
 * Most bytes in small requests: the smallest range that fits, as sizes then come again and again,
 * and holes of just that size are there. Else the lowest range, and in a space of fixed capacity
 * from both ends: a kind of requests whose ranges go clearly sooner than those of the space as a
 * whole (lifetimes.h) is placed from the high end, so that what stays is not strewn among what
 * goes. A space that grows has no high end: there two ends would both keep their peak.
 *
 * One of two indexes is in use at a time; the other one is made when the requests have changed.
 *
 * Invariant: of a used range, origins[] has the request that made it.
 */
#include <stdlib.h>

#include "core/table.h"
#include "space/first_fit.h"
#include "space/ranges.h"
#include "space/size_index.h"

enum {
    SAMPLES_MIN = 8,  /**< Before that a kind is not judged. */
    SOONER_LOG2 = 2,  /**< Clearly sooner: in a fourth of the time. */
    SMALL = 64 << 10, /**< Bytes: up to here a request is small. */
    PERIOD = 1024,    /**< Requests after which the index is chosen anew, */
    MOSTLY = 4,       /**< by what three, or less than one, of four bytes were asked for in. */
};

/** Where a used range comes from. */
typedef struct origin {
    uint32_t request; /**< Its number. */
    uint32_t kind;
} origin;

typedef struct adaptive_index {
    bool is_by_size; /**< Which one of the two is in use. */
    range_index by_offset;
    size_index by_size;
    uint64_t bytes; /**< Asked for, each period's counting half as much as the next one's. */
    uint64_t bytes_small;
    uint64_t capacity; /**< When the first request came; 0: none has. */
    bool has_grown;
    origin *origins; /**< [range] */
    uint64_t origins_capacity;
    alloti_lifetimes *own;             /**< Learned here; NULL: nothing is. */
    const alloti_lifetimes *lifetimes; /**< What is gone by: these, or somebody else's. NULL until
                                        * there is room for ranges. */
} adaptive_index;

static allot_status init(allot_space *space, const allot_space_options *options)
{
    (void)options;
    adaptive_index *const index = calloc(1, sizeof *index);
    if (index == NULL) {
        return alloti_fail_memory(sizeof *index);
    }
    alloti_range_index_init(&index->by_offset);
    alloti_size_index_init(&index->by_size);
    space->index = index;
    return ALLOT_STATUS_OK;
}

static void fini(allot_space *space)
{
    adaptive_index *const index = space->index;
    alloti_range_index_fini(&index->by_offset);
    alloti_size_index_fini(&index->by_size);
    free(index->origins);
    free(index->own);
    free(index);
}

void alloti_adaptive_follow(allot_space *space, const alloti_lifetimes *lifetimes)
{
    adaptive_index *const index = space->index;
    index->lifetimes = lifetimes;
}

static allot_status reserve_in(adaptive_index *index, bool is_by_size, uint32_t count)
{
    return is_by_size ? alloti_size_index_reserve(&index->by_size, count)
                      : alloti_range_index_reserve(&index->by_offset, count);
}

static allot_status reserve(allot_space *space)
{
    adaptive_index *const index = space->index;
    return reserve_in(index, index->is_by_size, 2);
}

static allot_status reserve_ranges(allot_space *space, uint64_t count)
{
    adaptive_index *const index = space->index;
    if (index->lifetimes == NULL) {
        index->lifetimes = index->own = calloc(1, sizeof *index->own);
        if (index->own == NULL) {
            return alloti_fail_memory(sizeof *index->own);
        }
    }
    return alloti_table_reserve(&index->origins, &index->origins_capacity, count,
                                sizeof *index->origins);
}

static bool goes_soon(const adaptive_index *index, uint32_t kind)
{
    const lifetime *const own = &index->lifetimes->kinds[kind];
    return own->samples >= SAMPLES_MIN &&
           lifetime_is_shorter(own, &index->lifetimes->all, SOONER_LOG2);
}

/* ---- the index ---- */

static void add(allot_space *space, uint32_t id)
{
    adaptive_index *const index = space->index;
    if (index->is_by_size) {
        alloti_size_index_insert(&index->by_size, space, id);
    } else {
        alloti_range_index_insert(&index->by_offset, space, id);
    }
}

static void take(allot_space *space, uint32_t id)
{
    adaptive_index *const index = space->index;
    if (index->is_by_size) {
        alloti_size_index_remove(&index->by_size, space, id, range_size(space, id));
    } else {
        alloti_range_index_remove(&index->by_offset, space, id);
    }
}

static void change(allot_space *space, uint32_t id, uint64_t old_offset, uint64_t old_size)
{
    adaptive_index *const index = space->index;
    (void)old_offset;
    if (index->is_by_size) {
        alloti_size_index_remove(&index->by_size, space, id, old_size);
        alloti_size_index_insert(&index->by_size, space, id);
    } else {
        alloti_range_index_change(&index->by_offset, space, id);
    }
}

static uint64_t largest(const allot_space *space)
{
    const adaptive_index *const index = space->index;
    return index->is_by_size ? alloti_size_index_largest(&index->by_size, space)
                             : alloti_range_index_largest(&index->by_offset, space);
}

static const char *check(const allot_space *space)
{
    const adaptive_index *const index = space->index;
    if (index->is_by_size) {
        return alloti_size_index_check(&index->by_size, space, space->free_count)
                   ? NULL
                   : "the tree by size is wrong";
    }
    return alloti_range_index_check(&index->by_offset, space, space->free_count)
               ? NULL
               : "the tree by address is wrong";
}

/** Use the other index from now on, unless host memory is short. */
static void change_index(allot_space *space)
{
    adaptive_index *const index = space->index;
    if (reserve_in(index, !index->is_by_size, (uint32_t)space->free_count + 2) != ALLOT_STATUS_OK) {
        return;
    }
    if (index->is_by_size) {
        alloti_size_index_fini(&index->by_size);
        alloti_size_index_init(&index->by_size);
    } else {
        alloti_range_index_fini(&index->by_offset);
        alloti_range_index_init(&index->by_offset);
    }
    index->is_by_size = !index->is_by_size;
    for (uint32_t id = space->first; id != ALLOT_NONE; id = space->ranges[id].next) {
        if (space_is_free(space, id)) {
            add(space, id);
        }
    }
}

/** Look at what is asked for. */
static void learn_sizes(allot_space *space, uint64_t size)
{
    adaptive_index *const index = space->index;
    index->bytes += size;
    index->bytes_small += size <= SMALL ? size : 0;
    if (index->capacity == 0) {
        index->capacity = space->capacity;
    }
    index->has_grown |= space->capacity > index->capacity;
    if (space->alloc_count % PERIOD == PERIOD - 1) {
        const uint64_t quarter = index->bytes / MOSTLY;
        if (index->is_by_size ? index->bytes_small < quarter
                              : index->bytes_small > index->bytes - quarter) {
            change_index(space);
        }
        index->bytes /= 2;
        index->bytes_small /= 2;
    }
}

/* ---- placing ---- */

/** Use of a place that was found begins. */
static uint32_t take_at(allot_space *space, uint32_t found, uint64_t offset, uint64_t size,
                        uint32_t tag)
{
    adaptive_index *const index = space->index;
    const uint32_t id = range_carve(&alloti_adaptive_ops, space, found, offset, size);
    if (index->own != NULL) {
        index->origins[id] =
            (origin){.request = index->own->clock++, .kind = lifetime_kind(size, tag)};
    }
    return id;
}

static uint32_t find(const allot_space *space, uint64_t offset)
{
    const adaptive_index *const index = space->index;
    if (!index->is_by_size) {
        return alloti_range_index_highest(&index->by_offset, space, offset + 1, 1);
    }
    uint32_t id = space->last;
    while (id != ALLOT_NONE && (range_offset(space, id) > offset || !space_is_free(space, id))) {
        id = space->ranges[id].prev;
    }
    return id;
}

/** The smallest range that fits. */
static uint32_t find_tight(const allot_space *space, uint64_t size, uint64_t align,
                           uint64_t *offset)
{
    const adaptive_index *const index = space->index;
    uint32_t id = alloti_size_index_smallest(&index->by_size, space, size);
    while (id != ALLOT_NONE && !space_fits(space, id, size, align, offset)) {
        id = alloti_size_index_next(&index->by_size, space, id);
    }
    return id;
}

static uint32_t alloc(allot_space *space, uint64_t size, uint64_t align, uint32_t tag)
{
    adaptive_index *const index = space->index;
    uint64_t offset = 0;
    uint32_t found = ALLOT_NONE;
    learn_sizes(space, size);
    if (index->is_by_size) {
        found = find_tight(space, size, align, &offset);
    } else if (!index->has_grown && goes_soon(index, lifetime_kind(size, tag))) {
        found = first_fit_highest(&index->by_offset, space, size, align, &offset);
    } else {
        found = first_fit_lowest(&index->by_offset, space, size, align, &offset);
    }
    return found == ALLOT_NONE ? ALLOT_NONE : take_at(space, found, offset, size, tag);
}

static void release(allot_space *space, uint32_t id)
{
    const adaptive_index *const index = space->index;
    if (index->own != NULL) {
        const origin from = index->origins[id];
        lifetimes_learn(index->own, from.kind, index->own->clock - from.request);
    }
    (void)range_merge(&alloti_adaptive_ops, space, id);
}

static bool resize(allot_space *space, uint32_t id, uint64_t size)
{
    return range_resize(&alloti_adaptive_ops, space, id, size);
}

const space_ops alloti_adaptive_ops = {
    .has_homes = true,
    .places = 2,
    .init = init,
    .fini = fini,
    .reserve = reserve,
    .reserve_ranges = reserve_ranges,
    .alloc = alloc,
    .take = take_at,
    .find = find,
    .free = release,
    .resize = resize,
    .add = add,
    .remove = take,
    .change = change,
    .largest = largest,
    .check = check,
};
