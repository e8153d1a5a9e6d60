/* SPDX-License-Identifier: MIT */
/*
 * Folded stacks, the input of flame graph tools: one line per stack, "outermost;...;innermost N",
 * where N is the bytes that were allocated by it and in use at the moment when the device's
 * allocated memory was highest. The lines of a device add up to its peak.
 *
 * With more than one device in use, the device is the outermost frame. What has no stack stands
 * under its category where the file gives one, else under "(before the trace)" or "(no stack)".
 */
#include <allot/history.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/status.h"
#include "report/export.h"

/** Where allocations without a stack are counted, after the stacks. */
enum {
    GROUP_NO_STACK,
    GROUP_BEFORE,
    GROUP_CATEGORY,
    GROUP_COUNT = GROUP_CATEGORY + ALLOT_CATEGORY_COUNT
};

static bool is_live(const allot_allocations *a, uint32_t i, uint32_t event)
{
    const uint32_t end = a->free_requested_event[i] < a->free_completed_event[i]
                             ? a->free_requested_event[i]
                             : a->free_completed_event[i];
    if (event == ALLOT_NONE) { /* the peak was there before the first event */
        return a->alloc_event[i] == ALLOT_NONE;
    }
    return (a->alloc_event[i] == ALLOT_NONE || a->alloc_event[i] <= event) && end > event;
}

static uint64_t group_of(const allot_trace *trace, const allot_allocations *a, uint32_t i)
{
    if (a->stack[i] != ALLOT_NONE) {
        return a->stack[i];
    }
    const uint64_t base = allot_trace_stack_count(trace);
    if (allot_trace_has(trace, ALLOT_TRACE_HAS_CATEGORIES)) {
        return base + GROUP_CATEGORY + a->category[i];
    }
    return base + (a->alloc_event[i] == ALLOT_NONE ? GROUP_BEFORE : GROUP_NO_STACK);
}

/* A frame's text: semicolons and line ends have a meaning of their own. */
static void put_text(alloti_output *output, const char *text)
{
    for (; *text != '\0'; text++) {
        const char c = *text == ';' ? ',' : *text == '\n' || *text == '\r' ? ' ' : *text;
        alloti_output_put(output, &c, 1);
    }
}

static void put_frame(alloti_output *output, const allot_trace *trace, uint32_t id)
{
    const allot_frame *const frame = allot_trace_frame(trace, id);
    put_text(output, allot_trace_string(trace, frame->name, NULL));
    alloti_output_text(output, " (");
    put_text(output, allot_trace_string(trace, frame->filename, NULL));
    alloti_output_printf(output, ":%" PRIu32 ")", frame->line);
}

static void put_group(alloti_output *output, const allot_trace *trace, uint64_t group)
{
    const uint64_t stack_count = allot_trace_stack_count(trace);
    if (group >= stack_count + GROUP_CATEGORY) {
        alloti_output_text(
            output, allot_category_name((allot_category)(group - stack_count - GROUP_CATEGORY)));
        return;
    }
    if (group >= stack_count) {
        alloti_output_text(output, group == stack_count + GROUP_BEFORE ? "(before the trace)"
                                                                       : "(no stack)");
        return;
    }
    uint32_t count = 0;
    const uint32_t *const frames = allot_trace_stack(trace, (uint32_t)group, &count);
    for (uint32_t i = count; i > 0; i--) {
        put_frame(output, trace, frames[i - 1]);
        alloti_output_text(output, i > 1 ? ";" : "");
    }
    alloti_output_text(output, count == 0 ? "(no stack)" : "");
}

static void put_device(alloti_output *output, const allot_trace_device *device)
{
    static const char *const NAMES[] = {"GPU", "pinned", "CPU"};
    alloti_output_printf(output, "%s %" PRIu32 ";", NAMES[device->memory], device->index);
}

static allot_status write_device(const allot_history *history, bool with_device,
                                 alloti_output *output)
{
    const allot_trace *const trace = allot_history_trace(history);
    const uint64_t group_count = (uint64_t)allot_trace_stack_count(trace) + GROUP_COUNT;
    const uint32_t peak = allot_history_peak(history, ALLOT_MEASURE_ALLOCATED).event;
    uint64_t *const sums = alloti_calloc_array(group_count, sizeof *sums);
    if (sums == NULL) {
        return alloti_fail_memory(group_count * sizeof *sums);
    }
    allot_allocations a;
    allot_history_get_allocations(history, &a);
    for (uint32_t i = 0; i < a.count; i++) {
        if (is_live(&a, i, peak)) {
            sums[group_of(trace, &a, i)] += a.size[i];
        }
    }
    for (uint64_t i = 0; i < group_count; i++) {
        if (sums[i] != 0) {
            if (with_device) {
                put_device(output, allot_trace_get_device(trace, allot_history_device(history)));
            }
            put_group(output, trace, i);
            alloti_output_printf(output, " %" PRIu64 "\n", sums[i]);
        }
        alloti_output_progress(output, i, group_count);
    }
    free(sums);
    return output->status;
}

static bool has_content(const allot_trace *trace, uint32_t device)
{
    allot_events events;
    allot_trace_get_events(trace, device, &events);
    return events.count != 0 || allot_trace_get_device(trace, device)->segment_count != 0;
}

static allot_status write_folded(const allot_trace *trace, alloti_output *output)
{
    uint32_t used_count = 0;
    for (uint32_t i = 0; i < allot_trace_device_count(trace); i++) {
        used_count += has_content(trace, i);
    }
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < allot_trace_device_count(trace) && status == ALLOT_STATUS_OK; i++) {
        if (!has_content(trace, i)) {
            continue;
        }
        allot_history *history = NULL;
        status = allot_history_create(trace, i, NULL, &history);
        if (status == ALLOT_STATUS_OK) {
            status = write_device(history, used_count > 1, output);
        }
        allot_history_destroy(history);
    }
    return status;
}

const alloti_writer alloti_writer_folded = {.format = ALLOT_TRACE_FORMAT_FOLDED,
                                            .write = write_folded};
