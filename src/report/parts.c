/* SPDX-License-Identifier: MIT */
#include "report/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/table.h"

static uint64_t event_count(const allot_history *history)
{
    uint64_t count = 0;
    allot_history_timeline(history, ALLOT_MEASURE_ACTIVE, NULL, &count);
    return count;
}

/* Seconds since the first event that has a time; negative where that cannot be said. */
static double seconds_of(const allot_history *history, uint32_t event)
{
    allot_events events;
    allot_trace_get_events(allot_history_trace(history), allot_history_device(history), &events);
    uint64_t first = 0;
    while (first < event && first < events.count && events.time_ns[first] == ALLOT_TIME_NONE) {
        first++;
    }
    /* No time is the least of all; what a file says may lie further apart than 2^63 ns. */
    return event < events.count && events.time_ns[event] != ALLOT_TIME_NONE &&
                   events.time_ns[event] >= events.time_ns[first]
               ? (double)((uint64_t)events.time_ns[event] - (uint64_t)events.time_ns[first]) / 1e9
               : -1;
}

alloti_event_text alloti_event_words(const allot_history *history, uint32_t event)
{
    alloti_event_text out;
    const uint64_t count = event_count(history);
    if (event == ALLOT_NONE) {
        snprintf(out.text, sizeof out.text, "%s", count == 0 ? "the snapshot" : "the start");
        return out;
    }
    const double seconds = seconds_of(history, event);
    char time[32] = "";
    if (seconds >= 0) {
        snprintf(time, sizeof time, ", +%.3f s", seconds);
    }
    snprintf(out.text, sizeof out.text, "%sevent %" PRIu32 "%s",
             event + UINT64_C(1) == count ? "the end, " : "", event, time);
    return out;
}

const char *alloti_memory_name(allot_memory_kind memory)
{
    static const char *const NAMES[] = {"device", "pinned", "cpu"};
    return (size_t)memory < sizeof NAMES / sizeof NAMES[0] ? NAMES[memory] : "unknown";
}

void alloti_text_subject(alloti_text *text, const allot_history *history, const char *name,
                         const char *rest)
{
    const allot_trace_device *const device =
        allot_trace_get_device(allot_history_trace(history), allot_history_device(history));
    const char *const memory = alloti_memory_name(device->memory);
    const char *const between = name == NULL ? "" : ", ";
    name = name == NULL ? "" : name;
    const size_t length = strlen(name) + strlen(between) + strlen(memory) + strlen(rest) + 4;
    const bool is_long = name[0] != '\0' && length > text->width;
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "%s%s%s %" PRIu32 "%s\n", name,
                      is_long ? ",\n  " : between, memory, device->index, rest);
}

void alloti_json_subject(alloti_json *json, const allot_history *history, const char *name)
{
    const allot_trace_device *const device =
        allot_trace_get_device(allot_history_trace(history), allot_history_device(history));
    alloti_json_put_string(json, "file", name);
    alloti_json_object_begin(json, "device");
    alloti_json_put_string(json, "memory", alloti_memory_name(device->memory));
    alloti_json_put_u64(json, "index", device->index);
    alloti_json_object_end(json);
}

static uint64_t value_at_end(const allot_history *history, allot_measure measure)
{
    const uint64_t count = event_count(history);
    return allot_history_value(history, measure, count == 0 ? ALLOT_NONE : (uint32_t)(count - 1));
}

void alloti_json_measures(alloti_json *json, const char *key, const allot_history *history)
{
    alloti_json_object_begin(json, key);
    for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        const allot_peak peak = allot_history_peak(history, (allot_measure)m);
        alloti_json_object_begin(json, allot_measure_name((allot_measure)m));
        alloti_json_put_u64(json, "end", value_at_end(history, (allot_measure)m));
        alloti_json_put_u64(json, "peak", peak.size);
        alloti_json_put_index(json, "peak_event", peak.event);
        alloti_json_object_end(json);
    }
    alloti_json_object_end(json);
}

void alloti_text_measures(alloti_text *text, const allot_history *history)
{
    static const alloti_column COLUMNS[] = {{"", ALLOTI_COLUMN_LEFT},
                                            {"at the end", ALLOTI_COLUMN_RIGHT},
                                            {"peak", ALLOTI_COLUMN_RIGHT},
                                            {"peak first at", ALLOTI_COLUMN_LEFT}};
    alloti_table table;
    alloti_table_init(&table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        const allot_peak peak = allot_history_peak(history, (allot_measure)m);
        alloti_table_cell(&table, "%s", allot_measure_name((allot_measure)m));
        alloti_table_cell(&table, "%s", alloti_size(value_at_end(history, (allot_measure)m)).text);
        alloti_table_cell(&table, "%s", alloti_size(peak.size).text);
        alloti_table_cell(&table, "%s", alloti_event_words(history, peak.event).text);
    }
    alloti_table_write(&table, text);
}

void alloti_json_totals(alloti_json *json, const char *key, const allot_moment_totals *totals)
{
    alloti_json_object_begin(json, key);
    alloti_json_put_index(json, "event", totals->event);
    alloti_json_put_u64(json, "allocated", totals->allocated);
    alloti_json_put_u64(json, "active", totals->active);
    alloti_json_put_u64(json, "requested", totals->requested);
    alloti_json_put_u64(json, "reserved", totals->reserved);
    alloti_json_put_u64(json, "free", totals->free_size);
    alloti_json_put_u64(json, "free_largest", totals->free_largest);
    alloti_json_put_u64(json, "inactive_split", totals->inactive_split_size);
    alloti_json_put_u64(json, "inactive_split_count", totals->inactive_split_count);
    alloti_json_put_u64(json, "segment_count", totals->segment_count);
    alloti_json_put_u64(json, "allocation_count", totals->allocation_count);
    alloti_json_put_u64(json, "outside_count", totals->outside_count);
    alloti_json_put_double(json, "fragmentation", totals->fragmentation);
    alloti_json_object_end(json);
}

double alloti_free_share(const allot_moment_totals *totals)
{
    return totals->reserved == 0 ? 0 : (double)totals->free_size / (double)totals->reserved;
}

bool alloti_fragmentation_matters(const allot_moment_totals *totals)
{
    static const double FREE_SHARE_MIN = 0.05;
    return alloti_free_share(totals) >= FREE_SHARE_MIN;
}

void alloti_text_totals(alloti_text *text, const allot_moment_totals *totals)
{
    alloti_text_printf(text, "  allocated %s, active %s, requested %s, in %s\n",
                       alloti_size(totals->allocated).text, alloti_size(totals->active).text,
                       alloti_size(totals->requested).text,
                       alloti_count(totals->allocation_count, "block").text);
    if (totals->allocated > totals->active) {
        alloti_text_printf(text,
                           "  %s were allocated before the trace, which says no more of them\n",
                           alloti_size(totals->allocated - totals->active).text);
    }
    if (totals->segment_count == 0) {
        alloti_text_printf(text, "  the trace does not say where segments lie\n");
        return;
    }
    alloti_text_printf(text, "  reserved %s in %s\n", alloti_size(totals->reserved).text,
                       alloti_count(totals->segment_count, "segment").text);
    alloti_text_printf(text, "  free inside %s (%.1f %% of it), largest piece %s",
                       alloti_size(totals->free_size).text, 100 * alloti_free_share(totals),
                       alloti_size(totals->free_largest).text);
    if (alloti_fragmentation_matters(totals)) {
        alloti_text_printf(text, " (external fragmentation %.0f %%)", 100 * totals->fragmentation);
    }
    alloti_text_printf(text, "\n  of it beside live blocks %s in %s\n",
                       alloti_size(totals->inactive_split_size).text,
                       alloti_count(totals->inactive_split_count, "piece").text);
}

alloti_event_text alloti_stream_words(const allot_trace *trace, uint32_t stream)
{
    alloti_event_text out;
    const uint64_t value = stream == ALLOT_NONE ? 0 : allot_trace_stream(trace, stream);
    if (stream == ALLOT_NONE) {
        snprintf(out.text, sizeof out.text, "unknown stream");
    } else if (value == 0) {
        snprintf(out.text, sizeof out.text, "default stream");
    } else {
        snprintf(out.text, sizeof out.text, "stream 0x%" PRIx64, value);
    }
    return out;
}

alloti_event_text alloti_pool_words(const allot_trace *trace, uint32_t pool)
{
    alloti_event_text out;
    const allot_pool_id none = {0, 0};
    const allot_pool_id id = pool == ALLOT_NONE ? none : allot_trace_pool(trace, pool);
    if (pool == ALLOT_NONE) {
        snprintf(out.text, sizeof out.text, "not recorded");
    } else if (id.first == 0 && id.second == 0) {
        snprintf(out.text, sizeof out.text, "default pool");
    } else {
        snprintf(out.text, sizeof out.text, "pool (%" PRIu64 ", %" PRIu64 ")", id.first, id.second);
    }
    return out;
}

void alloti_json_shares(alloti_json *json, const char *key, const allot_history *history,
                        const allot_share *shares, uint32_t count, bool is_pool)
{
    const allot_trace *const trace = allot_history_trace(history);
    alloti_json_array_begin(json, key);
    for (uint32_t i = 0; i < count; i++) {
        const allot_share *const share = &shares[i];
        alloti_json_object_begin(json, NULL);
        if (share->id == ALLOT_NONE) {
            alloti_json_put_null(json, "id");
        } else if (is_pool) {
            const allot_pool_id id = allot_trace_pool(trace, share->id);
            alloti_json_array_begin(json, "id");
            alloti_json_put_u64(json, NULL, id.first);
            alloti_json_put_u64(json, NULL, id.second);
            alloti_json_array_end(json);
        } else {
            alloti_json_put_u64(json, "id", allot_trace_stream(trace, share->id));
        }
        alloti_json_put_u64(json, "active_end", share->active_end);
        alloti_json_put_u64(json, "active_peak", share->active_peak.size);
        alloti_json_put_index(json, "active_peak_event", share->active_peak.event);
        alloti_json_put_u64(json, "reserved_end", share->reserved_end);
        alloti_json_put_u64(json, "reserved_peak", share->reserved_peak.size);
        alloti_json_put_index(json, "reserved_peak_event", share->reserved_peak.event);
        alloti_json_put_u64(json, "allocation_count", share->allocation_count);
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
}
