/* SPDX-License-Identifier: MIT */
#include "core/progress.h"

#include "core/status.h"

allot_status alloti_progress_tell(const alloti_progress *progress, uint64_t done, uint64_t total)
{
    if (progress == NULL || progress->report == NULL ||
        progress->report(progress->context, progress->stage, done, total)) {
        return ALLOT_STATUS_OK;
    }
    return alloti_fail(ALLOT_STATUS_CANCELLED, "%s was cancelled", progress->stage);
}
