/* SPDX-License-Identifier: MIT */
/* Invariants of a history, for tests. */
#include <inttypes.h>

#include "core/status.h"
#include "replay/history.h"

/* A row begins before it ends, and its events are about it. */
static allot_status check_rows(const allot_history *history)
{
    for (uint32_t row = 0; row < history->count; row++) {
        const uint32_t begin = history->alloc_event[row];
        const uint32_t end = history->free_completed_event[row];
        const uint32_t asked = history->free_requested_event[row];
        if ((begin == ALLOT_NONE) != (row < history->initial_count)) {
            return alloti_fail(ALLOT_STATUS_MISMATCH, "allocation %u: not in its place", row);
        }
        if (begin != ALLOT_NONE && history->allocation_of[begin] != row) {
            return alloti_fail(ALLOT_STATUS_MISMATCH, "allocation %u: event %u is not its own", row,
                               begin);
        }
        if ((begin != ALLOT_NONE && end != ALLOT_NONE && end < begin) ||
            (asked != ALLOT_NONE && end != ALLOT_NONE && end < asked)) {
            return alloti_fail(ALLOT_STATUS_MISMATCH, "allocation %u: ends before it begins", row);
        }
        if (history->size[row] < history->requested[row]) {
            return alloti_fail(ALLOT_STATUS_MISMATCH,
                               "allocation %u: block of %" PRIu64 " for %" PRIu64 " bytes", row,
                               history->size[row], history->requested[row]);
        }
    }
    return ALLOT_STATUS_OK;
}

/* Sums over the final segments are the last values of the timelines. */
static allot_status check_end(const allot_history *history)
{
    uint32_t count = 0;
    const allot_segment *const segments = alloti_history_final_segments(history, &count);
    uint64_t want[ALLOT_MEASURE_COUNT] = {0};
    for (uint32_t s = 0; s < count; s++) {
        want[ALLOT_MEASURE_ALLOCATED] += segments[s].allocated_size;
        want[ALLOT_MEASURE_ACTIVE] += segments[s].active_size;
        want[ALLOT_MEASURE_RESERVED] += segments[s].total_size;
    }
    const uint32_t end =
        history->events.count == 0 ? ALLOT_NONE : (uint32_t)(history->events.count - 1);
    for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        const uint64_t have = allot_history_value(history, (allot_measure)m, end);
        if (m != ALLOT_MEASURE_REQUESTED && have != want[m]) {
            return alloti_fail(ALLOT_STATUS_MISMATCH,
                               "%s at the end: %" PRIu64 ", the segments say %" PRIu64,
                               allot_measure_name((allot_measure)m), have, want[m]);
        }
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_history_check(const allot_history *history)
{
    const allot_status status = check_rows(history);
    if (status != ALLOT_STATUS_OK || !allot_trace_has(history->trace, ALLOT_TRACE_HAS_SEGMENTS)) {
        return status;
    }
    return check_end(history);
}
