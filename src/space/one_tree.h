/* SPDX-License-Identifier: MIT */
/** What strategies whose whole index is one tree (range_index.h) have in common. */
#ifndef ALLOTI_SPACE_ONE_TREE_H
#define ALLOTI_SPACE_ONE_TREE_H

#include <stdlib.h>

#include "space/range_index.h"

ALLOT_NODISCARD static inline allot_status one_tree_init(allot_space *space, bool is_by_size)
{
    range_index *const index = malloc(sizeof *index);
    if (index == NULL) {
        return alloti_fail_memory(sizeof *index);
    }
    alloti_range_index_init(index, is_by_size);
    space->index = index;
    return ALLOT_STATUS_OK;
}

static inline void one_tree_fini(allot_space *space)
{
    alloti_range_index_fini(space->index);
    free(space->index);
}

static inline void one_tree_add(allot_space *space, uint32_t id)
{
    alloti_range_index_insert(space->index, space, id);
}

static inline void one_tree_remove(allot_space *space, uint32_t id)
{
    alloti_range_index_remove(space->index, space, id);
}

static inline uint64_t one_tree_largest(const allot_space *space)
{
    return alloti_range_index_largest(space->index);
}

static inline const char *one_tree_check(const allot_space *space)
{
    return alloti_range_index_check(space->index, space, space->free_count) ? NULL
                                                                            : "the tree is wrong";
}

#endif /* ALLOTI_SPACE_ONE_TREE_H */
