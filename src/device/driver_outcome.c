/* SPDX-License-Identifier: MIT */
#include "device/driver_outcome.h"

#include <stdio.h>

#include "core/fork.h"

bool alloti_driver_begin(driver_outcome *outcome)
{
    const bool is_first = !outcome->is_begun;
    if (is_first) {
        outcome->is_begun = true;
        outcome->fork_generation = alloti_fork_generation();
    }
    return is_first;
}

void alloti_driver_end(driver_outcome *outcome, allot_status status)
{
    outcome->status = status;
    if (status != ALLOT_STATUS_OK) {
        snprintf(outcome->reason, sizeof outcome->reason, "%s", allot_error_detail());
    }
    outcome->is_ended = true;
}

allot_status alloti_driver_check(const driver_outcome *outcome, const char *name)
{
    if (outcome->is_ended && outcome->status != ALLOT_STATUS_OK) {
        return alloti_fail(outcome->status, "%s", outcome->reason);
    }
    if (!outcome->is_ended || outcome->fork_generation != alloti_fork_generation()) {
        return alloti_fail(ALLOT_STATUS_FORKED,
                           "%s was started before fork(), which it does not bear: start child "
                           "processes before the first device is opened, or by exec()",
                           name);
    }
    return ALLOT_STATUS_OK;
}
