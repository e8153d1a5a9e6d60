/* SPDX-License-Identifier: MIT */
/* What a trace holds. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <allot/torchsim.h>

#include "core/options.h"
#include "report/parts.h"
#include "report/table.h"
#include "trace/torch_origin.h"

static void write_shares(alloti_text *text, const allot_history *history, bool is_pool)
{
    static const alloti_column STREAMS[] = {
        {"stream", ALLOTI_COLUMN_LEFT},         {"active now", ALLOTI_COLUMN_RIGHT},
        {"active peak", ALLOTI_COLUMN_RIGHT},   {"reserved now", ALLOTI_COLUMN_RIGHT},
        {"reserved peak", ALLOTI_COLUMN_RIGHT}, {"allocations", ALLOTI_COLUMN_RIGHT}};
    static const alloti_column POOLS[] = {
        {"pool", ALLOTI_COLUMN_LEFT},           {"active now", ALLOTI_COLUMN_RIGHT},
        {"active peak", ALLOTI_COLUMN_RIGHT},   {"reserved now", ALLOTI_COLUMN_RIGHT},
        {"reserved peak", ALLOTI_COLUMN_RIGHT}, {"allocations", ALLOTI_COLUMN_RIGHT}};
    uint32_t count = 0;
    const allot_share *const shares =
        is_pool ? allot_history_pools(history, &count) : allot_history_streams(history, &count);
    if (count < 2) {
        return;
    }
    const allot_trace *const trace = allot_history_trace(history);
    alloti_table table;
    alloti_table_init(&table, is_pool ? POOLS : STREAMS, sizeof POOLS / sizeof POOLS[0]);
    for (uint32_t i = 0; i < count; i++) {
        const allot_share *const share = &shares[i];
        alloti_table_cell(&table, "%s",
                          is_pool ? alloti_pool_words(trace, share->id).text
                                  : alloti_stream_words(trace, share->id).text);
        alloti_table_cell(&table, "%s", alloti_size(share->active_end).text);
        alloti_table_cell(&table, "%s", alloti_size(share->active_peak.size).text);
        alloti_table_cell(&table, "%s", alloti_size(share->reserved_end).text);
        alloti_table_cell(&table, "%s", alloti_size(share->reserved_peak.size).text);
        alloti_table_cell(&table, "%" PRIu64, share->allocation_count);
    }
    alloti_text_printf(text, "\n");
    alloti_table_write(&table, text);
}

/** A count of oddities and what it means. */
typedef struct oddity {
    uint64_t count;
    const char *key;
    const char *meaning;
} oddity;

enum { ODDITIES = 9 };

static void list_oddities(const allot_history *history, oddity *out)
{
    allot_history_counts counts;
    allot_history_get_counts(history, &counts);
    const oddity all[ODDITIES] = {
        {counts.initial_freed, "initial_freed",
         "freed in the trace but allocated before it began (a ring buffer keeps the last events)"},
        {counts.initial_live, "initial_live", "live at the end and allocated before the trace"},
        {counts.completed_only, "completed_only", "frees without a free_requested event"},
        {counts.realloc_of_live, "realloc_of_live",
         "addresses handed out again although no free was logged"},
        {counts.alloc_lost, "alloc_lost", "allocations that end without a free event"},
        {counts.matched_by_size, "matched_by_size",
         "frees matched by size, as the trace has no addresses"},
        {counts.unmatched, "unmatched", "frees of nothing that was allocated"},
        {counts.held_unmatched, "held_unmatched", "segments whose events contradict each other"},
        {counts.oom, "oom", "out-of-memory errors (allot explain says why)"}};
    memcpy(out, all, sizeof all);
}

static void write_oddities(alloti_text *text, const allot_history *history)
{
    oddity all[ODDITIES];
    list_oddities(history, all);
    /* Other allocators have one kind of free only. */
    const bool is_torch = alloti_trace_is_torch(allot_history_trace(history));
    for (size_t i = 0; i < ODDITIES; i++) {
        if (all[i].count != 0 && (is_torch || strcmp(all[i].key, "completed_only") != 0)) {
            alloti_text_wrap(text, "    ", "  %s: %" PRIu64, all[i].meaning, all[i].count);
        }
    }
}

static void json_oddities(alloti_json *json, const allot_history *history)
{
    oddity all[ODDITIES];
    list_oddities(history, all);
    alloti_json_object_begin(json, "counts");
    for (size_t i = 0; i < ODDITIES; i++) {
        alloti_json_put_u64(json, all[i].key, all[i].count);
    }
    alloti_json_object_end(json);
}

/** Kinds of segments at the end of a trace. */
typedef struct segment_sums {
    uint64_t small_count;
    uint64_t small_size;
    uint64_t large_count;
    uint64_t large_size;
    uint64_t expandable_count;
    uint64_t empty_count;
    uint64_t empty_size;
} segment_sums;

static segment_sums sum_segments(const allot_history *history)
{
    const allot_trace *const trace = allot_history_trace(history);
    const allot_trace_device *const device =
        allot_trace_get_device(trace, allot_history_device(history));
    uint32_t count = 0;
    const allot_segment *const segments = allot_trace_segments(trace, &count);
    segment_sums sums = {0};
    for (uint32_t i = 0; i < device->segment_count; i++) {
        const allot_segment *const segment = &segments[device->segment_first + i];
        *(segment->is_large ? &sums.large_count : &sums.small_count) += 1;
        *(segment->is_large ? &sums.large_size : &sums.small_size) += segment->total_size;
        sums.expandable_count += segment->is_expandable;
        if (segment->active_size == 0) {
            sums.empty_count++;
            sums.empty_size += segment->total_size;
        }
    }
    return sums;
}

static void write_segments(alloti_text *text, const allot_history *history)
{
    const segment_sums sums = sum_segments(history);
    if (sums.small_count + sums.large_count == 0) {
        return;
    }
    alloti_text_printf(text,
                       "  segments: %" PRIu64 " for requests over 1 MiB (%s), %" PRIu64
                       " for smaller ones (%s)",
                       sums.large_count, alloti_size(sums.large_size).text, sums.small_count,
                       alloti_size(sums.small_size).text);
    if (sums.expandable_count != 0) {
        alloti_text_printf(text, ", %" PRIu64 " expandable", sums.expandable_count);
    }
    alloti_text_printf(text, "\n");
    if (sums.empty_count != 0) {
        alloti_text_printf(text,
                           "  %" PRIu64 " of them hold%s nothing: torch.cuda.empty_cache() would "
                           "return %s\n",
                           sums.empty_count, sums.empty_count == 1 ? "s" : "",
                           alloti_size(sums.empty_size).text);
    }
}

static void json_segments(alloti_json *json, const allot_history *history)
{
    const segment_sums sums = sum_segments(history);
    alloti_json_object_begin(json, "segments");
    alloti_json_put_u64(json, "large_count", sums.large_count);
    alloti_json_put_u64(json, "large_size", sums.large_size);
    alloti_json_put_u64(json, "small_count", sums.small_count);
    alloti_json_put_u64(json, "small_size", sums.small_size);
    alloti_json_put_u64(json, "expandable_count", sums.expandable_count);
    alloti_json_put_u64(json, "empty_count", sums.empty_count);
    alloti_json_put_u64(json, "empty_size", sums.empty_size);
    alloti_json_object_end(json);
}

/* State at the end, and at the peak of reserved bytes. */
static allot_status get_totals(const allot_history *history, uint32_t event,
                               allot_moment_totals *out)
{
    allot_moment *moment = NULL;
    const allot_status status = allot_history_at(history, event, &moment);
    if (status == ALLOT_STATUS_OK) {
        allot_moment_get_totals(moment, out);
        allot_moment_destroy(moment);
    }
    return status;
}

static allot_status inspect_text(alloti_text *text, const allot_history *history,
                                 const allot_report_options *options)
{
    uint64_t count = 0;
    allot_history_timeline(history, ALLOT_MEASURE_ACTIVE, NULL, &count);
    const uint32_t end = count == 0 ? ALLOT_NONE : (uint32_t)(count - 1);
    allot_moment_totals totals;
    const allot_status status = get_totals(history, end, &totals);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_event_text events;
    snprintf(events.text, sizeof events.text, ": %s", alloti_count(count, "event").text);
    alloti_text_subject(text, history, options->name, events.text);
    alloti_text_printf(text, "\n");
    alloti_text_measures(text, history);
    alloti_text_printf(text, "\n");
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "at the end\n");
    alloti_text_totals(text, &totals);
    write_segments(text, history);
    write_shares(text, history, false);
    write_shares(text, history, true);
    const uint32_t peak = allot_history_peak(history, ALLOT_MEASURE_RESERVED).event;
    if (totals.segment_count != 0 && peak != end && peak != ALLOT_NONE) {
        const allot_status peak_status = get_totals(history, peak, &totals);
        if (peak_status != ALLOT_STATUS_OK) {
            return peak_status;
        }
        alloti_text_printf(text, "\n");
        alloti_text_style(text, ALLOTI_STYLE_HEADING, "at the peak of reserved bytes\n");
        alloti_text_totals(text, &totals);
    }
    write_oddities(text, history);
    alloti_text_printf(text, "\n");
    return ALLOT_STATUS_OK;
}

static allot_status inspect_json(alloti_json *json, const allot_history *history)
{
    uint64_t count = 0;
    allot_history_timeline(history, ALLOT_MEASURE_ACTIVE, NULL, &count);
    allot_moment_totals at_end;
    allot_moment_totals at_peak;
    allot_status status =
        get_totals(history, count == 0 ? ALLOT_NONE : (uint32_t)(count - 1), &at_end);
    if (status == ALLOT_STATUS_OK) {
        status = get_totals(history, allot_history_peak(history, ALLOT_MEASURE_RESERVED).event,
                            &at_peak);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const allot_trace_device *const device =
        allot_trace_get_device(allot_history_trace(history), allot_history_device(history));
    alloti_json_object_begin(json, NULL);
    alloti_json_put_string(json, "memory", alloti_memory_name(device->memory));
    alloti_json_put_u64(json, "index", device->index);
    alloti_json_put_u64(json, "event_count", count);
    alloti_json_measures(json, "measures", history);
    alloti_json_totals(json, "at_end", &at_end);
    alloti_json_totals(json, "at_reserved_peak", &at_peak);
    json_segments(json, history);
    uint32_t shares = 0;
    const allot_share *list = allot_history_streams(history, &shares);
    alloti_json_shares(json, "streams", history, list, shares, false);
    list = allot_history_pools(history, &shares);
    alloti_json_shares(json, "pools", history, list, shares, true);
    json_oddities(json, history);
    alloti_json_object_end(json);
    return ALLOT_STATUS_OK;
}

static void review_settings(const allot_trace *trace, allot_torch_conf *conf,
                            allot_torch_notes *notes)
{
    *notes = (allot_torch_notes){0};
    if (allot_torch_conf_from_trace(trace, conf, notes) != ALLOT_STATUS_OK) {
        allot_torch_conf_init(conf);
    }
    allot_torch_conf_review(conf, false, 1, notes);
}

static void write_settings(alloti_text *text, const allot_trace *trace)
{
    uint32_t count = 0;
    allot_trace_settings(trace, &count);
    if (count == 0 || !alloti_trace_is_torch(trace)) {
        alloti_text_printf(text, "settings: the file records none of PyTorch's allocator\n");
        return;
    }
    allot_torch_conf conf;
    allot_torch_notes notes;
    review_settings(trace, &conf, &notes);
    char line[ALLOT_TORCH_CONF_TEXT_MAX];
    allot_torch_conf_format(&conf, line);
    alloti_text_printf(text, "settings: %s\n", line[0] == '\0' ? "PyTorch's defaults" : line);
    for (uint32_t i = 0; i < notes.count; i++) {
        const char *const kind = allot_torch_note_kind_name(notes.items[i].kind);
        alloti_text_style(text, ALLOTI_STYLE_BAD, "  %s: ", kind);
        alloti_text_wrap_from(text, strlen(kind) + 4, "    ", "%s", notes.items[i].text);
    }
}

static void json_setting(alloti_json *json, const allot_trace *trace, const allot_setting *setting)
{
    const char *const key = allot_trace_string(trace, setting->key, NULL);
    switch (setting->type) {
    case ALLOT_SETTING_BOOL:
        alloti_json_put_bool(json, key, setting->integer != 0);
        break;
    case ALLOT_SETTING_INT:
        alloti_json_put_i64(json, key, setting->integer);
        break;
    case ALLOT_SETTING_FLOAT:
        alloti_json_put_double(json, key, setting->number);
        break;
    case ALLOT_SETTING_STRING:
        alloti_json_put_string(json, key, allot_trace_string(trace, setting->string, NULL));
        break;
    default:
        alloti_json_put_null(json, key);
        break;
    }
}

static void json_settings(alloti_json *json, const allot_trace *trace)
{
    uint32_t count = 0;
    const allot_setting *const settings = allot_trace_settings(trace, &count);
    alloti_json_object_begin(json, "settings");
    for (uint32_t i = 0; i < count; i++) {
        json_setting(json, trace, &settings[i]);
    }
    alloti_json_object_end(json);
    allot_torch_conf conf;
    allot_torch_notes notes = {0};
    char line[ALLOT_TORCH_CONF_TEXT_MAX];
    if (alloti_trace_is_torch(trace)) {
        review_settings(trace, &conf, &notes);
        alloti_json_put_string(json, "conf", allot_torch_conf_format(&conf, line));
    } else {
        alloti_json_put_null(json, "conf");
    }
    alloti_json_array_begin(json, "warnings");
    for (uint32_t i = 0; i < notes.count; i++) {
        alloti_json_object_begin(json, NULL);
        alloti_json_put_string(json, "kind", allot_torch_note_kind_name(notes.items[i].kind));
        alloti_json_put_string(json, "text", notes.items[i].text);
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
}

/* Whether a device has anything to say. */
static bool is_used(const allot_trace *trace, uint32_t device)
{
    allot_events events;
    allot_trace_get_events(trace, device, &events);
    return events.count != 0 || allot_trace_get_device(trace, device)->segment_count != 0;
}

/* Report each device asked for through either writer. */
static allot_status each_device(const allot_trace *trace, uint32_t device,
                                const allot_report_options *options, alloti_text *text,
                                alloti_json *json)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t d = 0; status == ALLOT_STATUS_OK && d < allot_trace_device_count(trace); d++) {
        if (device != ALLOT_NONE ? d != device : !is_used(trace, d)) {
            continue;
        }
        allot_history *history = NULL;
        status = allot_history_create(trace, d, NULL, &history);
        if (status == ALLOT_STATUS_OK) {
            status =
                text != NULL ? inspect_text(text, history, options) : inspect_json(json, history);
        }
        allot_history_destroy(history);
    }
    return status;
}

static allot_status report_text(const allot_trace *trace, uint32_t device,
                                const allot_report_options *options, const allot_sink *sink)
{
    alloti_text text = alloti_text_begin(sink, options);
    const allot_status status = each_device(trace, device, options, &text, NULL);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    write_settings(&text, trace);
    return text.status;
}

static allot_status report_json(const allot_trace *trace, uint32_t device,
                                const allot_report_options *options, const allot_sink *sink)
{
    alloti_json json;
    alloti_json_begin(&json, sink, "allot.inspect/1");
    alloti_json_put_string(&json, "file", options->name);
    alloti_json_put_string(&json, "format", allot_trace_format_name(allot_trace_get_format(trace)));
    alloti_json_array_begin(&json, "devices");
    const allot_status status = each_device(trace, device, options, NULL, &json);
    alloti_json_array_end(&json);
    json_settings(&json, trace);
    const allot_status ended = alloti_json_end(&json);
    return status != ALLOT_STATUS_OK ? status : ended;
}

allot_status allot_report_inspect(const allot_trace *trace, uint32_t device,
                                  const allot_report_options *given, const allot_sink *sink)
{
    allot_report_options options;
    const allot_status status = alloti_options_take(given, sizeof options, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return options.format == ALLOT_REPORT_JSON ? report_json(trace, device, &options, sink)
                                               : report_text(trace, device, &options, sink);
}
