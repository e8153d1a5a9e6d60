/* SPDX-License-Identifier: MIT */
#include "space/first_fit.h"

#include <stdlib.h>

#include "space/ranges.h"

static allot_status init(allot_space *space, const allot_space_options *options)
{
    (void)options;
    range_index *const index = malloc(sizeof *index);
    if (index == NULL) {
        return alloti_fail_memory(sizeof *index);
    }
    alloti_range_index_init(index);
    space->index = index;
    return ALLOT_STATUS_OK;
}

static void fini(allot_space *space)
{
    alloti_range_index_fini(space->index);
    free(space->index);
}

static allot_status reserve(allot_space *space)
{
    return alloti_range_index_reserve(space->index, 1);
}

static uint32_t alloc(allot_space *space, uint64_t size, uint64_t align, uint32_t tag)
{
    (void)tag;
    uint64_t offset = 0;
    const uint32_t id = first_fit_lowest(space->index, space, size, align, &offset);
    return id == ALLOT_NONE ? ALLOT_NONE
                            : range_carve(&alloti_first_fit_ops, space, id, offset, size);
}

static uint32_t take_at(allot_space *space, uint32_t id, uint64_t offset, uint64_t size,
                        uint32_t tag)
{
    (void)tag;
    return range_carve(&alloti_first_fit_ops, space, id, offset, size);
}

static uint32_t find(const allot_space *space, uint64_t offset)
{
    return alloti_range_index_highest(space->index, space, offset + 1, 1);
}

static void add(allot_space *space, uint32_t id)
{
    alloti_range_index_insert(space->index, space, id);
}

static void take(allot_space *space, uint32_t id)
{
    alloti_range_index_remove(space->index, space, id);
}

static void change(allot_space *space, uint32_t id, uint64_t old_offset, uint64_t old_size)
{
    (void)old_offset;
    (void)old_size;
    alloti_range_index_change(space->index, space, id);
}

static void release(allot_space *space, uint32_t id)
{
    range_index_prefetch(space->index, space, id);
    (void)range_merge(&alloti_first_fit_ops, space, id);
}

static bool resize(allot_space *space, uint32_t id, uint64_t size)
{
    return range_resize(&alloti_first_fit_ops, space, id, size);
}

static uint64_t largest(const allot_space *space)
{
    return alloti_range_index_largest(space->index, space);
}

static const char *check(const allot_space *space)
{
    return alloti_range_index_check(space->index, space, space->free_count) ? NULL
                                                                            : "the tree is wrong";
}

const space_ops alloti_first_fit_ops = {
    .has_homes = true,
    .places = 2,
    .init = init,
    .fini = fini,
    .reserve = reserve,
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
