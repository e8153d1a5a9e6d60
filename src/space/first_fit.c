/* SPDX-License-Identifier: MIT */
#include "space/first_fit.h"
#include "space/one_tree.h"
#include "space/ranges.h"

static allot_status init(allot_space *space, const allot_space_options *options)
{
    (void)options;
    return one_tree_init(space, false);
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

static void change(allot_space *space, uint32_t id, uint64_t old_offset, uint64_t old_size)
{
    (void)old_offset;
    (void)old_size;
    alloti_range_index_change(space->index, space, id);
}

static void release(allot_space *space, uint32_t id)
{
    (void)range_merge(&alloti_first_fit_ops, space, id);
}

static bool resize(allot_space *space, uint32_t id, uint64_t size)
{
    return range_resize(&alloti_first_fit_ops, space, id, size);
}

const space_ops alloti_first_fit_ops = {
    .has_homes = true,
    .places = 2,
    .init = init,
    .fini = one_tree_fini,
    .reserve = reserve,
    .round = range_round,
    .alloc = alloc,
    .free = release,
    .resize = resize,
    .add = one_tree_add,
    .remove = one_tree_remove,
    .change = change,
    .largest = one_tree_largest,
    .check = one_tree_check,
};
