/* SPDX-License-Identifier: MIT */
/* Writes the events of a trace as comma-separated values (csv.h). */
#include <inttypes.h>
#include <string.h>

#include "core/status.h"
#include "trace/csv.h"
#include "trace/trace.h"
#include "trace/writer.h"

typedef struct csv_writer {
    const allot_trace *trace;
    alloti_output *output;
    bool has[ALLOTI_CSV_COLUMN_COUNT];
} csv_writer;

static void put_quoted(alloti_output *output, const char *text, size_t length)
{
    alloti_output_text(output, "\"");
    size_t begin = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') {
            alloti_output_put(output, text + begin, i + 1 - begin);
            begin = i; /* the quote is written again */
        }
    }
    alloti_output_put(output, text + begin, length - begin);
    alloti_output_text(output, "\"");
}

static void put_string(const csv_writer *w, uint32_t id)
{
    size_t length = 0;
    const char *const text = allot_trace_string(w->trace, id, &length);
    if (id != ALLOT_NONE) {
        put_quoted(w->output, text, length);
    }
}

/* A part of a frame; the quotes around the whole stack are doubled as well. */
static void put_escaped(const csv_writer *w, uint32_t id)
{
    alloti_output *const output = w->output;
    size_t length = 0;
    const char *const text = allot_trace_string(w->trace, id, &length);
    if (id == ALLOT_NONE) {
        alloti_output_text(output, "\\0");
    }
    for (size_t i = 0; i < length; i++) {
        const char c = text[i];
        if (c == '\n' || c == '\r') {
            alloti_output_text(output, c == '\n' ? "\\n" : "\\r");
            continue;
        }
        if (c == '\\' || c == '|' || c == ';' || c == '"') {
            alloti_output_put(output, c == '"' ? "\"" : "\\", 1);
        }
        alloti_output_put(output, &c, 1);
    }
}

static void put_stack(const csv_writer *w, uint32_t stack)
{
    uint32_t count = 0;
    const uint32_t *const frames = allot_trace_stack(w->trace, stack, &count);
    if (stack == ALLOT_NONE) {
        return;
    }
    alloti_output_text(w->output, "\"");
    for (uint32_t i = 0; i < count; i++) {
        const allot_frame *const frame = allot_trace_frame(w->trace, frames[i]);
        alloti_output_text(w->output, i == 0 ? "" : ";");
        put_escaped(w, frame->name);
        alloti_output_text(w->output, "|");
        put_escaped(w, frame->filename);
        alloti_output_printf(w->output, "|%" PRIu32, frame->line);
    }
    alloti_output_text(w->output, "\"");
}

static void put_pool(const csv_writer *w, uint32_t pool)
{
    if (pool != ALLOT_NONE) {
        const allot_pool_id id = allot_trace_pool(w->trace, pool);
        alloti_output_printf(w->output, "%" PRIu64 ":%" PRIu64, id.first, id.second);
    }
}

static void put_index(const csv_writer *w, const uint32_t *column, uint64_t i)
{
    if (column != NULL) {
        put_string(w, column[i]);
    }
}

static void put_total(const csv_writer *w, const uint64_t *column, uint64_t i)
{
    if (column != NULL) {
        alloti_output_printf(w->output, "%" PRIu64, column[i]);
    }
}

static void put_value(const csv_writer *w, const allot_events *e, uint64_t i,
                      alloti_csv_column column)
{
    switch (column) {
    case ALLOTI_CSV_EVENT:
        alloti_output_text(w->output, allot_event_kind_name((allot_event_kind)e->kind[i]));
        break;
    case ALLOTI_CSV_ADDRESS:
        alloti_output_printf(w->output, "%" PRIu64, e->addr[i]);
        break;
    case ALLOTI_CSV_SIZE_REQUESTED:
    case ALLOTI_CSV_SIZE_ROUNDED:
        alloti_output_printf(w->output, "%" PRIu64, e->size[i]);
        break;
    case ALLOTI_CSV_TIME:
        if (e->time_ns[i] != ALLOT_TIME_NONE) {
            alloti_output_printf(w->output, "%" PRId64, e->time_ns[i]);
        }
        break;
    case ALLOTI_CSV_STREAM:
        alloti_output_printf(w->output, "%" PRIu64, allot_trace_stream(w->trace, e->stream[i]));
        break;
    case ALLOTI_CSV_POOL:
        put_pool(w, e->pool[i]);
        break;
    case ALLOTI_CSV_CATEGORY:
        alloti_output_text(w->output, allot_category_name(e->category == NULL
                                                              ? ALLOT_CATEGORY_UNKNOWN
                                                              : (allot_category)e->category[i]));
        break;
    case ALLOTI_CSV_CONTEXT:
        put_index(w, e->context, i);
        break;
    case ALLOTI_CSV_METADATA:
        put_index(w, e->metadata, i);
        break;
    case ALLOTI_CSV_TOTAL_ALLOCATED:
        put_total(w, e->total_allocated, i);
        break;
    case ALLOTI_CSV_TOTAL_RESERVED:
        put_total(w, e->total_reserved, i);
        break;
    case ALLOTI_CSV_STACK:
        put_stack(w, e->stack[i]);
        break;
    case ALLOTI_CSV_DEVICE: /* put_row() begins with it */
    case ALLOTI_CSV_COLUMN_COUNT:
        break;
    }
}

static void put_row(const csv_writer *w, uint32_t device, const allot_events *events, uint64_t i)
{
    const allot_trace_device *const info = allot_trace_get_device(w->trace, device);
    alloti_output_printf(w->output, "%s:%" PRIu32, alloti_csv_memory(info->memory), info->index);
    for (unsigned column = ALLOTI_CSV_EVENT; column < ALLOTI_CSV_COLUMN_COUNT; column++) {
        if (w->has[column]) {
            alloti_output_text(w->output, ",");
            put_value(w, events, i, (alloti_csv_column)column);
        }
    }
    alloti_output_text(w->output, "\n");
}

static void put_header(const csv_writer *w)
{
    for (unsigned column = 0; column < ALLOTI_CSV_COLUMN_COUNT; column++) {
        if (w->has[column]) {
            alloti_output_text(w->output, column == 0 ? "" : ",");
            alloti_output_text(w->output, alloti_csv_header((alloti_csv_column)column));
        }
    }
    alloti_output_text(w->output, "\n");
}

/* Columns that at least one event has a value for. Returns the number of events. */
static uint64_t find_columns(csv_writer *w)
{
    const bool is_requested = allot_trace_has(w->trace, ALLOT_TRACE_HAS_REQUESTED);
    uint64_t count = 0;
    w->has[ALLOTI_CSV_DEVICE] = true;
    w->has[ALLOTI_CSV_EVENT] = true;
    w->has[ALLOTI_CSV_ADDRESS] = allot_trace_has(w->trace, ALLOT_TRACE_HAS_ADDRESSES);
    w->has[ALLOTI_CSV_SIZE_REQUESTED] = is_requested;
    w->has[ALLOTI_CSV_SIZE_ROUNDED] = !is_requested;
    w->has[ALLOTI_CSV_TIME] = allot_trace_has(w->trace, ALLOT_TRACE_HAS_TIMES);
    w->has[ALLOTI_CSV_STREAM] = true;
    w->has[ALLOTI_CSV_CATEGORY] = allot_trace_has(w->trace, ALLOT_TRACE_HAS_CATEGORIES);
    for (uint32_t d = 0; d < allot_trace_device_count(w->trace); d++) {
        allot_events events;
        allot_trace_get_events(w->trace, d, &events);
        count += events.count;
        w->has[ALLOTI_CSV_CONTEXT] |= events.context != NULL;
        w->has[ALLOTI_CSV_METADATA] |= events.metadata != NULL;
        w->has[ALLOTI_CSV_TOTAL_ALLOCATED] |= events.total_allocated != NULL;
        w->has[ALLOTI_CSV_TOTAL_RESERVED] |= events.total_reserved != NULL;
        for (uint64_t i = 0; i < events.count; i++) {
            w->has[ALLOTI_CSV_POOL] |= events.pool[i] != ALLOT_NONE;
            w->has[ALLOTI_CSV_STACK] |= events.stack[i] != ALLOT_NONE;
        }
    }
    return count;
}

static allot_status write_csv(const allot_trace *trace, alloti_output *output)
{
    csv_writer w = {.trace = trace, .output = output};
    if (find_columns(&w) == 0) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED,
                           "CSV holds events, and the trace has none (only what is held now)");
    }
    put_header(&w);
    for (uint32_t d = 0; d < allot_trace_device_count(trace); d++) {
        allot_events events;
        allot_trace_get_events(trace, d, &events);
        for (uint64_t i = 0; i < events.count && output->status == ALLOT_STATUS_OK; i++) {
            put_row(&w, d, &events, i);
            alloti_output_progress(output, i, events.count);
        }
    }
    return output->status;
}

const alloti_writer alloti_writer_csv = {.format = ALLOT_TRACE_FORMAT_CSV, .write = write_csv};
