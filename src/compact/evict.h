/* SPDX-License-Identifier: MIT */
/** Clearing a window of a layout: what lies in it is placed elsewhere. */
#ifndef ALLOTI_COMPACT_EVICT_H
#define ALLOTI_COMPACT_EVICT_H

#include "compact/plan.h"

/** What room is made for. */
typedef struct evict_request {
    uint64_t size;
    uint64_t align;
    uint64_t cost_max; /**< Bytes: what is moved away has less. */
    bool is_move;      /**< A block is moved there then, which has to be affordable as well. */
    uint64_t cost_ns;  /**< Of that move. */
} evict_request;

/**
 * Make a free range for a request by moving what lies there elsewhere in the layout.
 *
 * @param[in,out] steps  Ranges that may still be looked at; nothing is tried at 0.
 * @param[out]    at     Offset of the request in the layout.
 * @param[out]    fits   False: there is no window, and the plan is as it was.
 */
ALLOT_NODISCARD allot_status alloti_plan_evict(allot_compact_plan *plan, compact_layout *layout,
                                               const evict_request *request, uint64_t *steps,
                                               uint64_t *at, bool *fits);

#endif /* ALLOTI_COMPACT_EVICT_H */
