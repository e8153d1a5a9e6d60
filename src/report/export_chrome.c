/* SPDX-License-Identifier: MIT */
/*
 * Chrome's trace format, which ui.perfetto.dev and chrome://tracing open.
 *
 * A device is a process. It has two counters, "allocated" and "reserved"; one asynchronous slice
 * per allocation, from its allocation to its free, named after the user's line of code and with
 * address, sizes, stream and stack as arguments; an instant per out-of-memory. Annotations are
 * slices of a process of their own. "e" ends the slice that "b" began with the same category, id
 * and name.
 *
 * A stack is two arguments, "stack" with the Python frames and "stack_native" with those of C++,
 * the innermost first: dozens of the latter would hide the former. Unwinders are left out.
 *
 * Times are microseconds with three decimals after "baseTimeNanoseconds". Events without a time
 * stand at the time of the event before; in a trace without any times, one microsecond is one
 * event.
 */
#include <allot/explain.h>
#include <allot/history.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise/stack_facts.h"
#include "core/array.h"
#include "core/status.h"
#include "report/export.h"
#include "report/json.h"

enum { ANNOTATION_PROCESS = 1, DEVICE_PROCESS = 2, TEXT_MAX = 512, STACK_TEXT_MAX = 4096 };

typedef struct chrome_writer {
    const allot_trace *trace;
    alloti_output *output;
    alloti_json json;
    allot_lines *lines;
    uint8_t *owner;  /**< [frames] alloti_frame_owner. */
    int64_t base_ns; /**< Time that becomes 0. */
    bool has_times;
    /** Of the device that is written. */
    const allot_history *history;
    allot_events events;
    allot_allocations allocations;
    uint64_t process;
    int64_t now_ns; /**< Time of the event that is written, after base_ns. */
} chrome_writer;

/* Fields that every event has; the caller ends the object. */
static void begin_event(chrome_writer *w, const char *phase, const char *name, uint64_t process,
                        int64_t time_ns)
{
    alloti_json_object_begin(&w->json, NULL);
    alloti_json_put_string(&w->json, "ph", phase);
    alloti_json_put_string(&w->json, "name", name);
    alloti_json_put_u64(&w->json, "pid", process);
    alloti_json_put_u64(&w->json, "tid", 0);
    alloti_json_put_fixed(&w->json, "ts", time_ns, 3);
}

static void put_process_name(chrome_writer *w, uint64_t process, const char *name)
{
    begin_event(w, "M", "process_name", process, 0);
    alloti_json_object_begin(&w->json, "args");
    alloti_json_put_string(&w->json, "name", name);
    alloti_json_object_end(&w->json);
    alloti_json_object_end(&w->json);
}

static void put_counter(chrome_writer *w, const char *name, uint64_t value)
{
    begin_event(w, "C", name, w->process, w->now_ns);
    alloti_json_object_begin(&w->json, "args");
    alloti_json_put_u64(&w->json, "bytes", value);
    alloti_json_object_end(&w->json);
    alloti_json_object_end(&w->json);
}

/* Append to text of `room` bytes what fits. */
static void append(char *text, size_t room, const char *part)
{
    const size_t used = strlen(text);
    snprintf(text + used, room - used, "%s", part);
}

static void append_frame(const chrome_writer *w, char *text, size_t room, uint32_t id)
{
    const allot_frame *const frame = allot_trace_frame(w->trace, id);
    append(text, room, allot_trace_string(w->trace, frame->name, NULL));
    if (frame->line != 0) {
        char line[16];
        snprintf(line, sizeof line, ":%" PRIu32 ")", frame->line);
        append(text, room, " (");
        append(text, room, allot_trace_string(w->trace, frame->filename, NULL));
        append(text, room, line);
    }
}

/* The frames of a stack whose owners are `first` to `last`, if there are any. */
static void put_frames(chrome_writer *w, const char *key, uint32_t stack, alloti_frame_owner first,
                       alloti_frame_owner last)
{
    char text[STACK_TEXT_MAX] = "";
    uint32_t count = 0;
    const uint32_t *const frames = allot_trace_stack(w->trace, stack, &count);
    for (uint32_t i = 0; i < count && strlen(text) + 1 < sizeof text; i++) {
        const uint8_t owner = w->owner[frames[i]];
        if (owner >= first && owner <= last) {
            append(text, sizeof text, text[0] == '\0' ? "" : "\n");
            append_frame(w, text, sizeof text, frames[i]);
        }
    }
    if (text[0] != '\0') {
        alloti_json_put_string(&w->json, key, text);
    }
}

static void put_stack(chrome_writer *w, uint32_t stack)
{
    put_frames(w, "stack", stack, ALLOTI_FRAME_USER, ALLOTI_FRAME_LIBRARY);
    put_frames(w, "stack_native", stack, ALLOTI_FRAME_BACKWARD, ALLOTI_FRAME_NATIVE);
}

static void put_hex(chrome_writer *w, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, value);
    alloti_json_put_string(&w->json, key, text);
}

static void put_slice(chrome_writer *w, const char *phase, uint32_t allocation)
{
    const allot_allocations *const a = &w->allocations;
    const uint32_t line = allot_lines_of(w->lines, a->stack[allocation]);
    begin_event(w, phase, allot_lines_text(w->lines, line), w->process, w->now_ns);
    alloti_json_put_string(&w->json, "cat", "allocation");
    put_hex(w, "id", w->process << 32 | allocation);
    if (phase[0] == 'b') {
        alloti_json_object_begin(&w->json, "args");
        put_hex(w, "address", a->addr[allocation]);
        alloti_json_put_u64(&w->json, "bytes", a->size[allocation]);
        alloti_json_put_u64(&w->json, "requested", a->requested[allocation]);
        put_hex(w, "stream", allot_trace_stream(w->trace, a->stream[allocation]));
        put_stack(w, a->stack[allocation]);
        alloti_json_object_end(&w->json);
    }
    alloti_json_object_end(&w->json);
}

static void put_oom(chrome_writer *w, uint32_t event)
{
    char size[ALLOT_SIZE_TEXT_MAX];
    char name[TEXT_MAX];
    snprintf(name, sizeof name, "out of memory: asked %s",
             allot_size_format(w->events.size[event], size));
    begin_event(w, "i", name, w->process, w->now_ns);
    alloti_json_put_string(&w->json, "s", "p");
    alloti_json_object_begin(&w->json, "args");
    alloti_json_put_u64(&w->json, "bytes", w->events.size[event]);
    alloti_json_put_u64(&w->json, "device_free", w->events.addr[event]);
    put_stack(w, w->events.stack[event]);
    alloti_json_object_end(&w->json);
    alloti_json_object_end(&w->json);
}

/* From the base to a time that is not before it; what does not fit is the largest there is. */
static int64_t after_base(const chrome_writer *w, int64_t time_ns)
{
    const uint64_t distance = (uint64_t)time_ns - (uint64_t)w->base_ns;
    return distance > INT64_MAX ? INT64_MAX : (int64_t)distance;
}

static int64_t event_time(const chrome_writer *w, uint64_t event)
{
    if (!w->has_times) {
        return (int64_t)(event + 1) * 1000;
    }
    const int64_t time_ns = w->events.time_ns[event];
    return time_ns == ALLOT_TIME_NONE ? w->now_ns : after_base(w, time_ns);
}

/* Event at which an allocation's slice ends, ALLOT_NONE for none. */
static uint32_t slice_end(const allot_allocations *a, uint32_t i)
{
    return a->free_requested_event[i] < a->free_completed_event[i] ? a->free_requested_event[i]
                                                                   : a->free_completed_event[i];
}

static void put_event(chrome_writer *w, uint32_t event)
{
    const uint32_t allocation = allot_history_allocation_of(w->history, event);
    w->now_ns = event_time(w, event);
    if (w->events.kind[event] == ALLOT_EVENT_OOM) {
        put_oom(w, event);
    }
    if (allocation != ALLOT_NONE && w->allocations.alloc_event[allocation] == event) {
        put_slice(w, "b", allocation);
    }
    if (allocation != ALLOT_NONE && slice_end(&w->allocations, allocation) == event) {
        put_slice(w, "e", allocation);
    }
}

static void put_measure_change(chrome_writer *w, allot_measure measure, uint32_t event,
                               uint64_t *last)
{
    const uint64_t value = allot_history_value(w->history, measure, event);
    if (value != *last) {
        put_counter(w, allot_measure_name(measure), value);
        *last = value;
    }
}

/* Before the first event: what was there already. */
static void put_start(chrome_writer *w, uint64_t *allocated, uint64_t *reserved)
{
    *allocated = allot_history_value(w->history, ALLOT_MEASURE_ALLOCATED, ALLOT_NONE);
    *reserved = allot_history_value(w->history, ALLOT_MEASURE_RESERVED, ALLOT_NONE);
    w->now_ns = w->has_times && w->events.count != 0 ? event_time(w, 0) : 0;
    put_counter(w, "allocated", *allocated);
    put_counter(w, "reserved", *reserved);
    for (uint32_t i = 0; i < w->allocations.initial_count; i++) {
        put_slice(w, "b", i);
    }
}

/* At the end: slices of what is still live. */
static void put_end(chrome_writer *w)
{
    for (uint32_t i = 0; i < w->allocations.count; i++) {
        if (slice_end(&w->allocations, i) == ALLOT_NONE) {
            put_slice(w, "e", i);
        }
    }
}

static void put_device(chrome_writer *w)
{
    static const char *const NAMES[] = {"GPU", "pinned host memory of GPU", "host memory"};
    const allot_trace_device *const device =
        allot_trace_get_device(w->trace, allot_history_device(w->history));
    char name[TEXT_MAX];
    uint64_t allocated = 0;
    uint64_t reserved = 0;
    snprintf(name, sizeof name, "%s %" PRIu32, NAMES[device->memory], device->index);
    put_process_name(w, w->process, name);
    put_start(w, &allocated, &reserved);
    for (uint32_t i = 0; i < w->events.count && w->json.status == ALLOT_STATUS_OK; i++) {
        put_event(w, i);
        put_measure_change(w, ALLOT_MEASURE_ALLOCATED, i, &allocated);
        put_measure_change(w, ALLOT_MEASURE_RESERVED, i, &reserved);
        alloti_output_progress(w->output, i, w->events.count);
    }
    put_end(w);
}

static void put_annotations(chrome_writer *w)
{
    uint32_t count = 0;
    const allot_annotation *const annotations = allot_trace_annotations(w->trace, &count);
    if (count == 0 || !w->has_times) {
        return;
    }
    put_process_name(w, ANNOTATION_PROCESS, "annotations");
    for (uint32_t i = 0; i < count; i++) {
        if (annotations[i].time_ns == ALLOT_TIME_NONE) {
            continue;
        }
        begin_event(w, annotations[i].is_start ? "b" : "e",
                    allot_trace_string(w->trace, annotations[i].name, NULL), ANNOTATION_PROCESS,
                    after_base(w, annotations[i].time_ns));
        alloti_json_put_string(&w->json, "cat", "annotation");
        put_hex(w, "id", annotations[i].name);
        alloti_json_object_end(&w->json);
    }
}

/* The earliest time of all events and annotations. */
static void find_base(chrome_writer *w)
{
    int64_t base_ns = INT64_MAX;
    for (uint32_t d = 0; d < allot_trace_device_count(w->trace); d++) {
        allot_events events;
        allot_trace_get_events(w->trace, d, &events);
        for (uint64_t i = 0; i < events.count; i++) {
            if (events.time_ns[i] != ALLOT_TIME_NONE && events.time_ns[i] < base_ns) {
                base_ns = events.time_ns[i];
            }
        }
    }
    w->has_times = base_ns != INT64_MAX;
    uint32_t count = 0;
    const allot_annotation *const annotations = allot_trace_annotations(w->trace, &count);
    for (uint32_t i = 0; i < count && w->has_times; i++) {
        if (annotations[i].time_ns != ALLOT_TIME_NONE && annotations[i].time_ns < base_ns) {
            base_ns = annotations[i].time_ns;
        }
    }
    w->base_ns = w->has_times ? base_ns : 0;
}

static allot_status write_device(chrome_writer *w, uint32_t device)
{
    allot_history *history = NULL;
    const allot_status status = allot_history_create(w->trace, device, NULL, &history);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    w->history = history;
    w->process = DEVICE_PROCESS + (uint64_t)device;
    w->now_ns = 0;
    allot_trace_get_events(w->trace, device, &w->events);
    allot_history_get_allocations(history, &w->allocations);
    if (w->events.count != 0 || w->allocations.count != 0) {
        put_device(w);
    }
    allot_history_destroy(history);
    return w->json.status;
}

static allot_status read_stacks(chrome_writer *w)
{
    const allot_lines_options options = {.struct_size = sizeof options};
    const uint32_t count = allot_trace_frame_count(w->trace);
    w->owner = alloti_alloc_array(count + UINT64_C(1), sizeof *w->owner);
    if (w->owner == NULL) {
        return alloti_fail_memory(count);
    }
    for (uint32_t i = 0; i < count; i++) {
        w->owner[i] = (uint8_t)alloti_frame_owner_of(w->trace, i, &options);
    }
    return allot_lines_create(w->trace, &options, &w->lines);
}

static allot_status write_events(chrome_writer *w)
{
    const allot_sink sink = alloti_output_sink(w->output);
    allot_status status = ALLOT_STATUS_OK;
    alloti_json_begin(&w->json, &sink, "allot.chrome/1");
    alloti_json_put_string(&w->json, "displayTimeUnit", "ns");
    alloti_json_put_i64(&w->json, "baseTimeNanoseconds", w->base_ns);
    alloti_json_array_begin(&w->json, "traceEvents");
    alloti_json_compact(&w->json);
    for (uint32_t i = 0; i < allot_trace_device_count(w->trace) && status == ALLOT_STATUS_OK; i++) {
        status = write_device(w, i);
    }
    put_annotations(w);
    alloti_json_array_end(&w->json);
    const allot_status ended = alloti_json_end(&w->json);
    return status != ALLOT_STATUS_OK ? status : ended;
}

static allot_status write_chrome(const allot_trace *trace, alloti_output *output)
{
    chrome_writer w = {.trace = trace, .output = output};
    find_base(&w);
    allot_status status = read_stacks(&w);
    if (status == ALLOT_STATUS_OK) {
        status = write_events(&w);
    }
    allot_lines_destroy(w.lines);
    free(w.owner);
    return status;
}

const alloti_writer alloti_writer_chrome = {.format = ALLOT_TRACE_FORMAT_CHROME,
                                            .write = write_chrome};
