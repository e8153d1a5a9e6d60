/* SPDX-License-Identifier: MIT */
#include "advise/need.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/size_math.h"

enum { ROUND = 512 };

static uint64_t rounded(uint64_t size)
{
    uint64_t out = 0;
    return alloti_round_up(size == 0 ? 1 : size, ROUND, &out) ? out : size;
}

/** Bytes that come and go with each event, [event_count + 1]; the first is what was there before.
 */
static void flows_fill(const allot_history *history, uint64_t *gained, uint64_t *lost)
{
    allot_allocations all = {0};
    allot_history_get_allocations(history, &all);
    for (uint32_t i = 0; i < all.count; i++) {
        const uint64_t size = rounded(all.requested[i]);
        const uint32_t begin = all.alloc_event[i];
        const uint32_t end = all.free_completed_event[i];
        gained[begin == ALLOT_NONE ? 0 : (uint64_t)begin + 1] += size;
        if (end != ALLOT_NONE) {
            lost[(uint64_t)end + 1] += size;
        }
    }
}

static void live_peak_find(const allot_events *events, const uint64_t *gained, const uint64_t *lost,
                           alloti_need *out)
{
    uint64_t live = gained[0];
    out->live_peak = live;
    out->live_event = ALLOT_NONE;
    for (uint64_t i = 0; i < events->count; i++) {
        live += gained[i + 1];
        const bool is_oom = events->kind[i] == ALLOT_EVENT_OOM;
        const uint64_t wanted = live + (is_oom ? rounded(events->size[i]) : 0);
        if (wanted > out->live_peak) {
            out->live_peak = wanted;
            out->live_event = (uint32_t)i;
            out->live_is_oom = is_oom;
        }
        live -= lost[i + 1] < live ? lost[i + 1] : live;
    }
}

static void span_find(const allot_events *events, alloti_need *out)
{
    int64_t first = ALLOT_TIME_NONE;
    int64_t last = ALLOT_TIME_NONE;
    for (uint64_t i = 0; i < events->count; i++) {
        const int64_t time = events->time_ns[i];
        first = first == ALLOT_TIME_NONE ? time : first;
        last = time != ALLOT_TIME_NONE ? time : last;
    }
    out->span_ns = first != ALLOT_TIME_NONE && last > first ? last - first : 0;
}

static void ooms_find(const allot_history *history, const allot_events *events, alloti_need *out)
{
    for (uint64_t i = 0; i < events->count; i++) {
        if (events->kind[i] != ALLOT_EVENT_OOM) {
            continue;
        }
        const uint32_t event = (uint32_t)i;
        const uint64_t reserved = allot_history_value(history, ALLOT_MEASURE_RESERVED, event);
        if (out->oom_count++ == 0) {
            out->oom_event = event;
            out->oom_size = events->size[i];
            out->oom_reserved = reserved;
            out->oom_active = allot_history_value(history, ALLOT_MEASURE_ACTIVE, event);
            out->oom_device_free = events->addr[i];
        }
        uint64_t total = 0;
        if (alloti_add(reserved, events->addr[i], &total) && total > out->oom_total) {
            out->oom_total = total;
        }
        out->oom_last = event;
    }
}

/** Ask the explanation of an out-of-memory for its verdict. */
static allot_status oom_judge(const allot_history *history, const allot_lines *lines,
                              alloti_need *out)
{
    allot_moment *moment = NULL;
    allot_status status = allot_history_at(history, out->oom_event, &moment);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_oom oom = {0};
    status = allot_oom_init(moment, lines, &oom);
    if (status == ALLOT_STATUS_OK) {
        out->oom_verdict = oom.verdict;
        allot_oom_fini(&oom);
    }
    allot_moment_destroy(moment);
    return status;
}

allot_status alloti_need_measure(const allot_history *history, const allot_lines *lines,
                                 alloti_need *out)
{
    *out = (alloti_need){.live_event = ALLOT_NONE};
    allot_events events = {0};
    allot_trace_get_events(allot_history_trace(history), allot_history_device(history), &events);
    uint64_t *const gained = alloti_calloc_array(events.count + 1, sizeof *gained);
    uint64_t *const lost = alloti_calloc_array(events.count + 1, sizeof *lost);
    allot_status status = ALLOT_STATUS_OK;
    if (gained == NULL || lost == NULL) {
        status = alloti_fail_memory((events.count + 1) * sizeof *gained);
    } else {
        flows_fill(history, gained, lost);
        live_peak_find(&events, gained, lost, out);
        span_find(&events, out);
        ooms_find(history, &events, out);
        out->event_count = events.count;
        out->reserved_peak = allot_history_peak(history, ALLOT_MEASURE_RESERVED).size;
        status = out->oom_count > 0 ? oom_judge(history, lines, out) : ALLOT_STATUS_OK;
    }
    free(gained);
    free(lost);
    return status;
}
