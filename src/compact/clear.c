/* SPDX-License-Identifier: MIT */
/* Planning room for one request: a window is cleared, or blocks slide together. */
#include <stdlib.h>

#include "compact/slide.h"
#include "core/array.h"

static allot_status clear_room(allot_compact_plan *plan, compact_layout *layout, uint64_t size,
                               uint64_t align)
{
    allot_range range;
    bool fits = false;
    uint64_t at = 0;
    uint64_t steps = UINT64_MAX;
    const allot_status status = alloti_layout_place(layout, size, align, &range, &fits);
    if (status != ALLOT_STATUS_OK || fits) {
        return status;
    }
    const evict_request request = {.size = size, .align = align, .cost_max = UINT64_MAX};
    allot_status made = alloti_plan_evict(plan, layout, &request, &steps, &at, &fits);
    if (made == ALLOT_STATUS_OK && !fits) {
        made = alloti_plan_slide(plan, layout, &request, &steps, &at, &fits);
    }
    if (made != ALLOT_STATUS_OK || fits) {
        return made;
    }
    return alloti_fail(ALLOT_STATUS_FRAGMENTED,
                       "no range can be cleared of blocks that may move within the budgets");
}

allot_status alloti_plan_make_room(allot_compact_plan *plan, uint32_t first, uint32_t count,
                                   uint64_t size, uint64_t align)
{
    compact_layout layout;
    compact_region *const regions = alloti_alloc_array((uint64_t)count + 1, sizeof *regions);
    if (regions == NULL) {
        return alloti_fail_memory(count * sizeof *regions);
    }
    uint32_t kept = 0;
    for (uint32_t i = first; i < first + count; i++) {
        /* As heaps do: they ask the space of a segment for offsets, not for addresses. */
        if ((plan->state.areas[i].address & (align - 1)) == 0) {
            regions[kept++] = (compact_region){.area = i, .end = plan->state.areas[i].capacity};
        }
    }
    allot_status status = alloti_layout_init(&plan->state, plan->places, regions, kept,
                                             ALLOT_SPACE_STRATEGY_BEST_FIT, &layout);
    if (status == ALLOT_STATUS_OK) {
        status = clear_room(plan, &layout, size, align);
        alloti_layout_fini(&layout);
    }
    free(regions);
    return status;
}
