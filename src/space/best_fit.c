/* SPDX-License-Identifier: MIT */
#include "space/one_tree.h"
#include "space/ranges.h"

static allot_status init(allot_space *space, const allot_space_options *options)
{
    (void)options;
    return one_tree_init(space, true);
}

static allot_status reserve(allot_space *space)
{
    return alloti_range_index_reserve(space->index,
                                      2); /* a change inserts, and what is left behind too */
}

static uint32_t alloc(allot_space *space, uint64_t size, uint64_t align, uint32_t tag)
{
    (void)tag;
    uint64_t offset = 0;
    uint32_t id = alloti_range_index_smallest(space->index, size, 0);
    while (id != ALLOT_NONE && !space_fits(space, id, size, align, &offset)) {
        id = alloti_range_index_smallest(space->index, range_size(space, id),
                                         range_offset(space, id) + 1);
    }
    return id == ALLOT_NONE ? ALLOT_NONE
                            : range_carve(&alloti_best_fit_ops, space, id, offset, size);
}

static void change(allot_space *space, uint32_t id, uint64_t old_offset, uint64_t old_size)
{
    (void)old_offset;
    (void)old_size;
    one_tree_remove(space, id);
    one_tree_add(space, id);
}

static void release(allot_space *space, uint32_t id)
{
    (void)range_merge(&alloti_best_fit_ops, space, id);
}

static bool resize(allot_space *space, uint32_t id, uint64_t size)
{
    return range_resize(&alloti_best_fit_ops, space, id, size);
}

const space_ops alloti_best_fit_ops = {
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
