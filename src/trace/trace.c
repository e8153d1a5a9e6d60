/* SPDX-License-Identifier: MIT */
/* Reading what a finished trace holds, and releasing it. */
#include "trace/trace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "trace/columns.h"

const char *allot_trace_format_name(allot_trace_format format)
{
    switch (format) {
#define FORMAT_NAME(name, value, spelling, text)                                                   \
    case ALLOT_TRACE_FORMAT_##name:                                                                \
        return spelling;
        ALLOT_TRACE_FORMAT_LIST(FORMAT_NAME)
#undef FORMAT_NAME
    }
    return "unknown";
}

allot_status allot_trace_format_parse(const char *name, allot_trace_format *out)
{
#define FORMAT_PARSE(format, value, spelling, text)                                                \
    if (strcmp(name, spelling) == 0) {                                                             \
        *out = ALLOT_TRACE_FORMAT_##format;                                                        \
        return ALLOT_STATUS_OK;                                                                    \
    }
    ALLOT_TRACE_FORMAT_LIST(FORMAT_PARSE)
#undef FORMAT_PARSE
#define FORMAT_SPELLING(format, value, spelling, text) " " spelling
    return alloti_fail(ALLOT_STATUS_INVALID,
                       "unknown format \"%s\"; known:" ALLOT_TRACE_FORMAT_LIST(FORMAT_SPELLING),
                       name);
#undef FORMAT_SPELLING
}

const char *allot_event_kind_name(allot_event_kind kind)
{
    switch (kind) {
#define EVENT_NAME(name, value, spelling)                                                          \
    case ALLOT_EVENT_##name:                                                                       \
        return spelling;
        ALLOT_EVENT_LIST(EVENT_NAME)
#undef EVENT_NAME
    }
    return "unknown";
}

const char *allot_category_name(allot_category category)
{
    switch (category) {
#define CATEGORY_NAME(name, value, spelling)                                                       \
    case ALLOT_CATEGORY_##name:                                                                    \
        return spelling;
        ALLOT_CATEGORY_LIST(CATEGORY_NAME)
#undef CATEGORY_NAME
    }
    return "unknown";
}

bool allot_trace_has(const allot_trace *trace, allot_trace_trait trait)
{
    return (trace->traits >> (unsigned)trait & 1u) != 0;
}

allot_status alloti_trace_check_room(uint64_t count, const char *what)
{
    if (count >= ALLOT_NONE - 1) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "more than %" PRIu32 " %s", ALLOT_NONE - 1, what);
    }
    return ALLOT_STATUS_OK;
}

void allot_trace_destroy(allot_trace *trace)
{
    if (trace == NULL) {
        return;
    }
    for (uint64_t i = 0; i < trace->device_count; i++) {
        alloti_columns_fini(&trace->columns[i]);
    }
    free(trace->devices);
    free(trace->columns);
    free(trace->text);
    free(trace->string_start);
    free(trace->frames);
    free(trace->fx);
    free(trace->stack_frames);
    free(trace->stack_start);
    free(trace->streams);
    free(trace->pools);
    free(trace->segments);
    free(trace->blocks);
    free(trace->annotations);
    free(trace->settings);
    free(trace);
}

allot_trace_format allot_trace_get_format(const allot_trace *trace)
{
    return trace->format;
}

uint32_t allot_trace_device_count(const allot_trace *trace)
{
    return (uint32_t)trace->device_count;
}

const allot_trace_device *allot_trace_get_device(const allot_trace *trace, uint32_t device)
{
    assert(device < trace->device_count);
    return &trace->devices[device];
}

static uint64_t device_reserved(const allot_trace *trace, uint32_t device)
{
    const allot_trace_device *const info = &trace->devices[device];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < info->segment_count; i++) {
        sum += trace->segments[info->segment_first + i].total_size;
    }
    return sum;
}

/* Whether device `a` is asked about rather than device `b`. */
static bool is_before(const allot_trace *trace, uint32_t a, uint32_t b)
{
    const uint64_t events_a = trace->columns[a].count;
    const uint64_t events_b = trace->columns[b].count;
    const bool is_used_a = events_a != 0 || trace->devices[a].segment_count != 0;
    const bool is_used_b = events_b != 0 || trace->devices[b].segment_count != 0;
    const bool is_gpu_a = trace->devices[a].memory == ALLOT_MEMORY_DEVICE;
    const bool is_gpu_b = trace->devices[b].memory == ALLOT_MEMORY_DEVICE;
    if (is_used_a != is_used_b) {
        return is_used_a;
    }
    if (is_gpu_a != is_gpu_b) {
        return is_gpu_a;
    }
    return events_a != events_b ? events_a > events_b
                                : device_reserved(trace, a) > device_reserved(trace, b);
}

uint32_t allot_trace_main_device(const allot_trace *trace)
{
    uint32_t best = ALLOT_NONE;
    for (uint32_t i = 0; i < trace->device_count; i++) {
        if (best == ALLOT_NONE || is_before(trace, i, best)) {
            best = i;
        }
    }
    return best;
}

void allot_trace_get_events(const allot_trace *trace, uint32_t device, allot_events *out)
{
    assert(device < trace->device_count);
    const alloti_columns *const columns = &trace->columns[device];
    *out = (allot_events){
        .count = columns->count,
        .kind = columns->kind,
        .category = columns->category,
        .addr = columns->addr,
        .size = columns->size,
        .time_ns = columns->time_ns,
        .stream = columns->stream,
        .pool = columns->pool,
        .stack = columns->stack,
        .context = columns->context,
        .metadata = columns->metadata,
        .total_allocated = columns->total_allocated,
        .total_reserved = columns->total_reserved,
    };
}

const allot_segment *allot_trace_segments(const allot_trace *trace, uint32_t *count)
{
    *count = (uint32_t)trace->segment_count;
    return trace->segments;
}

const allot_block *allot_trace_blocks(const allot_trace *trace, uint32_t *count)
{
    *count = (uint32_t)trace->block_count;
    return trace->blocks;
}

const char *allot_trace_string(const allot_trace *trace, uint32_t id, size_t *length)
{
    size_t size = 0;
    const char *text = "";
    if (id != ALLOT_NONE) {
        assert(id < trace->string_count);
        text = trace->text + trace->string_start[id];
        size = (size_t)(trace->string_start[id + 1] - trace->string_start[id] - 1);
    }
    if (length != NULL) {
        *length = size;
    }
    return text;
}

uint32_t allot_trace_string_count(const allot_trace *trace)
{
    return (uint32_t)trace->string_count;
}

uint32_t allot_trace_frame_count(const allot_trace *trace)
{
    return (uint32_t)trace->frame_count;
}

const allot_frame *allot_trace_frame(const allot_trace *trace, uint32_t id)
{
    assert(id < trace->frame_count);
    return &trace->frames[id];
}

const allot_frame_fx *allot_trace_fx(const allot_trace *trace, uint32_t id)
{
    assert(id < trace->fx_count);
    return &trace->fx[id];
}

const uint32_t *allot_trace_stack(const allot_trace *trace, uint32_t id, uint32_t *count)
{
    if (id == ALLOT_NONE) {
        *count = 0;
        return NULL;
    }
    assert(id < trace->stack_count);
    *count = (uint32_t)(trace->stack_start[id + 1] - trace->stack_start[id]);
    return *count == 0 ? NULL : trace->stack_frames + trace->stack_start[id];
}

uint32_t allot_trace_stack_count(const allot_trace *trace)
{
    return (uint32_t)trace->stack_count;
}

uint64_t allot_trace_stream(const allot_trace *trace, uint32_t id)
{
    assert(id < trace->stream_count);
    return trace->streams[id];
}

uint32_t allot_trace_stream_count(const allot_trace *trace)
{
    return (uint32_t)trace->stream_count;
}

allot_pool_id allot_trace_pool(const allot_trace *trace, uint32_t id)
{
    assert(id < trace->pool_count);
    return trace->pools[id];
}

uint32_t allot_trace_pool_count(const allot_trace *trace)
{
    return (uint32_t)trace->pool_count;
}

const allot_annotation *allot_trace_annotations(const allot_trace *trace, uint32_t *count)
{
    *count = (uint32_t)trace->annotation_count;
    return trace->annotations;
}

const allot_setting *allot_trace_settings(const allot_trace *trace, uint32_t *count)
{
    *count = (uint32_t)trace->setting_count;
    return trace->settings;
}

const allot_setting *allot_trace_find_setting(const allot_trace *trace, const char *key)
{
    for (uint64_t i = 0; i < trace->setting_count; i++) {
        if (strcmp(allot_trace_string(trace, trace->settings[i].key, NULL), key) == 0) {
            return &trace->settings[i];
        }
    }
    return NULL;
}
