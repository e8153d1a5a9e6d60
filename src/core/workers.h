/* SPDX-License-Identifier: MIT */
/**
 * Many independent jobs on a few threads. The jobs of one call are numbered; each writes its result
 * to a place of its own, so that results never depend on the number of threads. Progress is told,
 * and cancellation asked for, on the caller's thread.
 */
#ifndef ALLOTI_CORE_WORKERS_H
#define ALLOTI_CORE_WORKERS_H

#include <stdatomic.h>

#include "core/progress.h"

typedef struct alloti_workers {
    uint32_t thread_count; /**< 0: one per processor. */
    alloti_progress progress;
    uint64_t done;        /**< Jobs finished by earlier calls; for progress over several calls. */
    uint64_t total;       /**< Jobs expected in all; 0 if that is not known. */
    atomic_bool is_ended; /**< No job of this call is wanted any more: jobs look at it and stop
                             early. Relaxed: it guards no other data. */
} alloti_workers;

/** One job; `is_ended` becomes true when its result is not wanted any more. */
typedef allot_status (*alloti_job_fn)(void *context, uint64_t job, const atomic_bool *is_ended);

/**
 * Run jobs 0 to count - 1; returns when all have ended. After a failure the next call begins anew.
 *
 * @return ALLOT_STATUS_OK; the failure of the lowest-numbered job that failed before the others
 *         were stopped, with its detail text; ALLOT_STATUS_CANCELLED; ALLOT_STATUS_HOST_MEMORY if
 *         no thread can be made.
 */
ALLOT_NODISCARD allot_status alloti_workers_run(alloti_workers *workers, uint64_t count,
                                                alloti_job_fn job, void *context);

#endif /* ALLOTI_CORE_WORKERS_H */
