/* SPDX-License-Identifier: MIT */
/** Telling the caller how far a long call has come, not more often than is useful. */
#ifndef ALLOTI_CORE_PROGRESS_H
#define ALLOTI_CORE_PROGRESS_H

#include <allot/base.h>

typedef struct alloti_progress {
    allot_progress_fn report; /**< NULL: nobody listens. */
    void *context;
    const char *stage;
} alloti_progress;

/** Report; ALLOT_STATUS_CANCELLED if the caller wants to stop. Call it every few milliseconds. */
ALLOT_NODISCARD allot_status alloti_progress_tell(const alloti_progress *progress, uint64_t done,
                                                  uint64_t total);

#endif /* ALLOTI_CORE_PROGRESS_H */
