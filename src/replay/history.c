/* SPDX-License-Identifier: MIT */
/* Histories: making, releasing, and reading them. */
#include "replay/history.h"

#include <stdlib.h>

#include "core/options.h"
#include "core/status.h"

const allot_segment *alloti_history_final_segments(const allot_history *history, uint32_t *count)
{
    const allot_trace_device *const device =
        allot_trace_get_device(history->trace, history->device);
    uint32_t all = 0;
    const allot_segment *const segments = allot_trace_segments(history->trace, &all);
    *count = device->segment_count;
    return segments == NULL ? NULL : segments + device->segment_first;
}

static allot_status build(allot_history *history, const alloti_progress *progress)
{
    allot_status status = alloti_history_build_held(history);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_history_build_table(history, progress);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_history_build_pools(history);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_history_build_sizes(history);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_history_build_timelines(history);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_history_build_shares(history);
    }
    return status;
}

allot_status allot_history_create(const allot_trace *trace, uint32_t device,
                                  const allot_history_options *options, allot_history **out)
{
    allot_history_options o;
    allot_status status = alloti_options_take(options, sizeof o, &o);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (device >= allot_trace_device_count(trace)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "device %u: the trace has %u", device,
                           allot_trace_device_count(trace));
    }
    allot_history *const history = calloc(1, sizeof *history);
    if (history == NULL) {
        return alloti_fail_memory(sizeof *history);
    }
    history->trace = trace;
    history->device = device;
    allot_trace_get_events(trace, device, &history->events);
    const alloti_progress progress = {
        .report = o.progress, .context = o.progress_context, .stage = "sorting events"};
    status = build(history, &progress);
    if (status != ALLOT_STATUS_OK) {
        allot_history_destroy(history);
        return status;
    }
    *out = history;
    return ALLOT_STATUS_OK;
}

void allot_history_destroy(allot_history *history)
{
    if (history == NULL) {
        return;
    }
    void *const owned[] = {history->addr,
                           history->size,
                           history->requested,
                           history->alloc_event,
                           history->free_requested_event,
                           history->free_completed_event,
                           history->use,
                           history->stack,
                           history->stream,
                           history->pool,
                           history->metadata,
                           history->category,
                           history->is_size_known,
                           history->allocation_of,
                           history->ended,
                           history->held,
                           history->streams,
                           history->pools};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
        free(owned[i]);
    }
    for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        free(history->timeline[m]);
    }
    free(history);
}

const allot_trace *allot_history_trace(const allot_history *history)
{
    return history->trace;
}

uint32_t allot_history_device(const allot_history *history)
{
    return history->device;
}

void allot_history_get_allocations(const allot_history *history, allot_allocations *out)
{
    *out = (allot_allocations){.count = history->count,
                               .initial_count = history->initial_count,
                               .addr = history->addr,
                               .size = history->size,
                               .requested = history->requested,
                               .alloc_event = history->alloc_event,
                               .free_requested_event = history->free_requested_event,
                               .free_completed_event = history->free_completed_event,
                               .use = history->use,
                               .stack = history->stack,
                               .stream = history->stream,
                               .pool = history->pool,
                               .metadata = history->metadata,
                               .category = history->category};
}

uint32_t allot_history_allocation_of(const allot_history *history, uint32_t event)
{
    return event < history->events.count ? history->allocation_of[event] : ALLOT_NONE;
}

const allot_held *allot_history_held(const allot_history *history, uint32_t *count)
{
    *count = (uint32_t)history->held_count;
    return history->held;
}

const char *allot_measure_name(allot_measure measure)
{
    switch (measure) {
#define MEASURE_NAME(name, value, spelling)                                                        \
    case ALLOT_MEASURE_##name:                                                                     \
        return spelling;
        ALLOT_MEASURE_LIST(MEASURE_NAME)
#undef MEASURE_NAME
    }
    return "unknown";
}

const uint64_t *allot_history_timeline(const allot_history *history, allot_measure measure,
                                       uint64_t *initial, uint64_t *count)
{
    if (initial != NULL) {
        *initial = history->initial[measure];
    }
    *count = history->events.count;
    return history->timeline[measure];
}

uint64_t allot_history_value(const allot_history *history, allot_measure measure, uint32_t event)
{
    return event < history->events.count ? history->timeline[measure][event]
                                         : history->initial[measure];
}

allot_peak allot_history_peak(const allot_history *history, allot_measure measure)
{
    return history->peak[measure];
}

void allot_history_get_counts(const allot_history *history, allot_history_counts *out)
{
    *out = history->counts;
}

const allot_share *allot_history_streams(const allot_history *history, uint32_t *count)
{
    *count = history->stream_count;
    return history->streams;
}

const allot_share *allot_history_pools(const allot_history *history, uint32_t *count)
{
    *count = history->pool_count;
    return history->pools;
}
