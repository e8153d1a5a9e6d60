/* SPDX-License-Identifier: MIT */
/** One move of a plan. */
#ifndef ALLOTI_COMPACT_RUN_H
#define ALLOTI_COMPACT_RUN_H

#include "compact/plan.h"

/**
 * Look at a move again and make it, or skip it; `report` is added to. Called with no lock held.
 *
 * @return ALLOT_STATUS_OK, also if it was skipped; what copying returned.
 */
ALLOT_NODISCARD allot_status alloti_compact_run_move(allot_heap *heap,
                                                     const allot_compact_plan *plan, uint64_t index,
                                                     const allot_compact_run_options *options,
                                                     allot_compact_report *report);

#endif /* ALLOTI_COMPACT_RUN_H */
