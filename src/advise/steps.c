/* SPDX-License-Identifier: MIT */
/*
 * Annotations say it best: torch writes one around every optimizer's step, and the profiler one
 * around every step of its own. Several optimizers take turns; the one that steps most often is
 * followed.
 *
 * Without annotations, a stack that allocates once a step does so at even distances; stacks in
 * layers do it in bursts. The stack with the smallest spread of distances gives the rhythm.
 */
#include "advise/steps.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/compare.h"
#include "core/map64.h"

/** A rhythm needs so many beats, which spread less than this share of their mean distance. */
enum { BEATS_MIN = 4 };
static const double SPREAD_MAX = 0.35;
/** Share of the trace that the beats have to span. */
static const double SPAN_MIN = 0.5;

static bool is_step_name(const char *name)
{
    return strncmp(name, "Optimizer.step#", sizeof "Optimizer.step#" - 1) == 0 ||
           strncmp(name, "ProfilerStep#", sizeof "ProfilerStep#" - 1) == 0;
}

/* Profiler steps carry their number in the name; all of them are one kind. */
static uint64_t name_key(const allot_trace *trace, uint32_t name)
{
    return allot_trace_string(trace, name, NULL)[0] == 'P' ? UINT64_MAX : name;
}

static bool is_step_end(const allot_history *history, const allot_annotation *annotation)
{
    const allot_trace *const trace = allot_history_trace(history);
    const allot_trace_device *const device =
        allot_trace_get_device(trace, allot_history_device(history));
    return !annotation->is_start && annotation->time_ns != ALLOT_TIME_NONE &&
           annotation->device == device->index &&
           is_step_name(allot_trace_string(trace, annotation->name, NULL));
}

/* Key of the steps that occur most often; an optimizer's win over the profiler's. */
static allot_status choose_name(const allot_history *history, uint64_t *out, uint32_t *count)
{
    const allot_trace *const trace = allot_history_trace(history);
    uint32_t annotation_count = 0;
    const allot_annotation *const annotations = allot_trace_annotations(trace, &annotation_count);
    alloti_map64 counts = {0};
    allot_status status = ALLOT_STATUS_OK;
    *count = 0;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < annotation_count; i++) {
        if (!is_step_end(history, &annotations[i])) {
            continue;
        }
        const uint64_t key = name_key(trace, annotations[i].name);
        const uint32_t before = alloti_map64_get(&counts, key);
        const uint32_t now = before == ALLOT_NONE ? 1 : before + 1;
        status = alloti_map64_set(&counts, key, now);
        if (now > *count) {
            *count = now;
            *out = key;
        }
    }
    alloti_map64_fini(&counts);
    return status;
}

/* Last event before a time; ALLOT_NONE if there is none. Times of events do not fall. */
static uint32_t last_event_before(const allot_events *events, int64_t time_ns)
{
    uint64_t low = 0;
    uint64_t high = events->count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (events->time_ns[middle] < time_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? ALLOT_NONE : (uint32_t)(low - 1);
}

static void sort_unique(alloti_steps *steps)
{
    qsort(steps->events, steps->count, sizeof *steps->events, alloti_compare_u32);
    uint32_t used = 0;
    for (uint32_t i = 0; i < steps->count; i++) {
        if (used == 0 || steps->events[used - 1] != steps->events[i]) {
            steps->events[used++] = steps->events[i];
        }
    }
    steps->count = used;
}

static allot_status from_annotations(const allot_history *history, alloti_steps *out)
{
    const allot_trace *const trace = allot_history_trace(history);
    uint64_t key = 0;
    uint32_t count = 0;
    const allot_status status = choose_name(history, &key, &count);
    if (status != ALLOT_STATUS_OK || count == 0) {
        return status;
    }
    out->events = alloti_alloc_array(count, sizeof *out->events);
    if (out->events == NULL) {
        return alloti_fail_memory(count * sizeof *out->events);
    }
    allot_events events;
    allot_trace_get_events(trace, allot_history_device(history), &events);
    uint32_t annotation_count = 0;
    const allot_annotation *const annotations = allot_trace_annotations(trace, &annotation_count);
    for (uint32_t i = 0; i < annotation_count; i++) {
        if (is_step_end(history, &annotations[i]) && name_key(trace, annotations[i].name) == key) {
            const uint32_t event = last_event_before(&events, annotations[i].time_ns);
            if (event != ALLOT_NONE) {
                out->events[out->count++] = event;
            }
        }
    }
    sort_unique(out);
    out->source = out->count == 0 ? ALLOT_STEPS_NONE : ALLOT_STEPS_ANNOTATIONS;
    return ALLOT_STATUS_OK;
}

/** Distances between the allocations of one stack. */
typedef struct beat {
    uint32_t count;
    uint32_t first;
    uint32_t last;
    double sum_of_squares;
} beat;

/* Squared spread over squared mean of the distances; large where the beats say nothing. */
static double spread_of(const beat *b, uint64_t event_count)
{
    if (b->count < BEATS_MIN || (double)(b->last - b->first) < SPAN_MIN * (double)event_count) {
        return 1e9;
    }
    const double distances = b->count - 1;
    const double mean = (double)(b->last - b->first) / distances;
    return b->sum_of_squares / distances / (mean * mean) - 1;
}

static allot_status from_rhythm(const allot_history *history, alloti_steps *out)
{
    allot_events events;
    allot_trace_get_events(allot_history_trace(history), allot_history_device(history), &events);
    const uint32_t stack_count = allot_trace_stack_count(allot_history_trace(history));
    beat *const beats = alloti_calloc_array(stack_count + UINT64_C(1), sizeof *beats);
    if (beats == NULL) {
        return alloti_fail_memory(stack_count * sizeof *beats);
    }
    for (uint32_t i = 0; i < events.count; i++) {
        if (events.kind[i] != ALLOT_EVENT_ALLOC || events.stack[i] >= stack_count) {
            continue;
        }
        beat *const b = &beats[events.stack[i]];
        if (b->count == 0) {
            b->first = i;
        } else {
            b->sum_of_squares += (double)(i - b->last) * (double)(i - b->last);
        }
        b->last = i;
        b->count++;
    }
    uint32_t best = ALLOT_NONE;
    double best_spread = SPREAD_MAX * SPREAD_MAX;
    for (uint32_t s = 0; s < stack_count; s++) {
        const double spread = spread_of(&beats[s], events.count);
        if (spread < best_spread) {
            best_spread = spread;
            best = s;
        }
    }
    const uint32_t count = best == ALLOT_NONE ? 0 : beats[best].count;
    free(beats);
    if (count == 0) {
        return ALLOT_STATUS_OK;
    }
    out->events = alloti_alloc_array(count, sizeof *out->events);
    if (out->events == NULL) {
        return alloti_fail_memory(count * sizeof *out->events);
    }
    for (uint32_t i = 1; i < events.count; i++) {
        if (events.kind[i] == ALLOT_EVENT_ALLOC && events.stack[i] == best) {
            out->events[out->count++] = i - 1;
        }
    }
    out->source = ALLOT_STEPS_RHYTHM;
    return ALLOT_STATUS_OK;
}

allot_status alloti_steps_init(const allot_history *history, alloti_steps *out)
{
    *out = (alloti_steps){.source = ALLOT_STEPS_NONE};
    allot_status status = from_annotations(history, out);
    if (status == ALLOT_STATUS_OK && out->count == 0) {
        alloti_steps_fini(out);
        status = from_rhythm(history, out);
    }
    if (status != ALLOT_STATUS_OK) {
        alloti_steps_fini(out);
    }
    return status;
}

allot_status alloti_steps_init_equal(const allot_history *history, uint32_t count,
                                     alloti_steps *out)
{
    allot_events events;
    allot_trace_get_events(allot_history_trace(history), allot_history_device(history), &events);
    *out = (alloti_steps){.source = ALLOT_STEPS_GIVEN};
    count = count > events.count ? (uint32_t)events.count : count;
    out->events = alloti_alloc_array(count + UINT64_C(1), sizeof *out->events);
    if (out->events == NULL) {
        return alloti_fail_memory(count * sizeof *out->events);
    }
    for (uint32_t i = 1; i <= count; i++) {
        out->events[out->count++] = (uint32_t)(events.count * i / count - 1);
    }
    return ALLOT_STATUS_OK;
}

void alloti_steps_fini(alloti_steps *steps)
{
    free(steps->events);
    *steps = (alloti_steps){.source = ALLOT_STEPS_NONE};
}

uint32_t alloti_steps_index(const alloti_steps *steps, uint32_t event)
{
    uint32_t low = 0;
    uint32_t high = steps->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (steps->events[middle] < event) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
