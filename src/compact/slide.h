/* SPDX-License-Identifier: MIT */
/** Sliding: blocks of a layout move down, each right behind the one below, so that the free ranges
 * between them become one. */
#ifndef ALLOTI_COMPACT_SLIDE_H
#define ALLOTI_COMPACT_SLIDE_H

#include "compact/evict.h"

/**
 * Make a free range for a request where the blocks between some free ranges have the fewest bytes:
 * they slide down, and the range is above them. As alloti_plan_evict().
 */
ALLOT_NODISCARD allot_status alloti_plan_slide(allot_compact_plan *plan, compact_layout *layout,
                                               const evict_request *request, uint64_t *steps,
                                               uint64_t *at, bool *fits);

/** Free bytes of the layout that sliding can bring together at most, in one place. O(ranges). */
uint64_t alloti_plan_slidable(const allot_compact_plan *plan, const compact_layout *layout);

#endif /* ALLOTI_COMPACT_SLIDE_H */
