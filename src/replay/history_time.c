/* SPDX-License-Identifier: MIT */
/*
 * Timelines: each row of a table adds its bytes at the event where it begins and takes them away at
 * the event where it ends; running sums of these changes are the values after each event. Changes
 * are differences modulo 2^64, so that they need no sign.
 */
#include <stdlib.h>

#include "core/array.h"
#include "replay/history.h"

static void add_span(allot_history *history, allot_measure measure, uint64_t size, uint32_t begin,
                     uint32_t end)
{
    if (begin == ALLOT_NONE) {
        history->initial[measure] += size;
    } else {
        history->timeline[measure][begin] += size;
    }
    if (end != ALLOT_NONE) {
        history->timeline[measure][end] -= size;
    }
}

/* When the owner let go: at free_requested, which may have been before the trace or left out. */
static uint32_t allocated_end(const allot_history *history, uint32_t row)
{
    const uint32_t requested = history->free_requested_event[row];
    return requested != ALLOT_NONE ? requested : history->free_completed_event[row];
}

static void add_changes(allot_history *history)
{
    for (uint32_t row = 0; row < history->count; row++) {
        const uint32_t begin = history->alloc_event[row];
        const uint32_t end = history->free_completed_event[row];
        add_span(history, ALLOT_MEASURE_ALLOCATED, history->size[row], begin,
                 allocated_end(history, row));
        add_span(history, ALLOT_MEASURE_ACTIVE, history->size[row], begin, end);
        add_span(history, ALLOT_MEASURE_REQUESTED, history->requested[row], begin, end);
    }
    for (uint64_t h = 0; h < history->held_count; h++) {
        const allot_held *const held = &history->held[h];
        add_span(history, ALLOT_MEASURE_RESERVED, held->size, held->begin_event, held->end_event);
    }
}

static void sum_up(allot_history *history, allot_measure measure)
{
    uint64_t *const values = history->timeline[measure];
    uint64_t now = history->initial[measure];
    allot_peak peak = {.size = now, .event = ALLOT_NONE};
    for (uint32_t i = 0; i < history->events.count; i++) {
        now += values[i];
        values[i] = now;
        if (now > peak.size) {
            peak = (allot_peak){.size = now, .event = i};
        }
    }
    history->peak[measure] = peak;
}

/* Use totals that the trace carries instead of sums; an unknown one repeats the last. */
static void take_totals(allot_history *history, allot_measure measure, const uint64_t *totals)
{
    uint64_t *const values = history->timeline[measure];
    uint64_t last = 0;
    allot_peak peak = {.event = ALLOT_NONE};
    for (uint32_t i = 0; i < history->events.count; i++) {
        last = totals[i] == UINT64_MAX ? last : totals[i];
        values[i] = last;
        if (last > peak.size) {
            peak = (allot_peak){.size = last, .event = i};
        }
    }
    history->initial[measure] = 0;
    history->peak[measure] = peak;
}

allot_status alloti_history_build_timelines(allot_history *history)
{
    const uint64_t count = history->events.count;
    for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        history->timeline[m] = alloti_calloc_array(count + 1, sizeof *history->timeline[m]);
        if (history->timeline[m] == NULL) {
            return alloti_fail_memory(count * sizeof *history->timeline[m]);
        }
    }
    add_changes(history);
    for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        sum_up(history, (allot_measure)m);
    }
    if (history->events.total_allocated != NULL) {
        take_totals(history, ALLOT_MEASURE_ALLOCATED, history->events.total_allocated);
    }
    if (history->events.total_reserved != NULL && history->held_count == 0) {
        take_totals(history, ALLOT_MEASURE_RESERVED, history->events.total_reserved);
    }
    return ALLOT_STATUS_OK;
}
