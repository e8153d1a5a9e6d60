/* SPDX-License-Identifier: MIT */
/** What the recording needs whatever the settings, and how it ended. */
#ifndef ALLOTI_ADVISE_NEED_H
#define ALLOTI_ADVISE_NEED_H

#include <allot/advise.h>
#include <allot/explain.h>
#include <allot/history.h>

typedef struct alloti_need {
    uint64_t live_peak;  /**< Most bytes live at once, each block rounded up to 512. */
    uint32_t live_event; /**< Where; ALLOT_NONE: before the first event. */
    bool live_is_oom;    /**< The peak is a request that failed. */
    uint64_t reserved_peak;

    uint32_t oom_count;
    uint32_t oom_event; /**< First out-of-memory; valid if there is one. */
    uint32_t oom_last;
    uint64_t oom_size;
    uint64_t oom_reserved;    /**< Held from the driver then. */
    uint64_t oom_active;      /**< In use then. */
    uint64_t oom_device_free; /**< What the driver had left. */
    uint64_t oom_total;       /**< Largest held + left over all of them. */
    allot_oom_verdict oom_verdict;

    uint64_t event_count;
    int64_t span_ns; /**< From the first event with a time to the last. */
} alloti_need;

/** Measure a history. ALLOT_STATUS_HOST_MEMORY. O(events + allocations). */
ALLOT_NODISCARD allot_status alloti_need_measure(const allot_history *history,
                                                 const allot_lines *lines, alloti_need *out);

#endif /* ALLOTI_ADVISE_NEED_H */
