/* SPDX-License-Identifier: MIT */
/** Checks and replays for people and for programs. Schemas: allot.check/1, allot.replay/1. */
#include "core/options.h"
#include "report/json.h"
#include "report/table.h"
#include "report/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CONTEXT_BEFORE = 4, CONTEXT_AFTER = 2 };

/** Room for a size as text. */
typedef char size_text[ALLOT_SIZE_TEXT_MAX];

static const char *name_of(const allot_report_options *options)
{
    return options->name != NULL ? options->name : "trace";
}

/** "torch" or "torch:settings". */
static const char *model_text(const allot_torch_conf *conf, char *buffer, size_t size)
{
    char settings[ALLOT_TORCH_CONF_TEXT_MAX];
    allot_torch_conf_format(conf, settings);
    (void)snprintf(buffer, size, "torch%s%s", settings[0] == '\0' ? "" : ":", settings);
    return buffer;
}

static const char *ratio_text(uint64_t equal, uint64_t all, char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "%" PRIu64 " of %" PRIu64, equal, all);
    return buffer;
}

/* ---- check ---- */

static void put_event(alloti_json *json, const allot_trace *trace, const allot_events *events,
                      uint64_t at)
{
    const allot_event_kind kind = (allot_event_kind)events->kind[at];
    alloti_json_object_begin(json, NULL);
    alloti_json_put_u64(json, "event", at);
    alloti_json_put_string(json, "action", allot_event_kind_name(kind));
    alloti_json_put_u64(json, "address", events->addr[at]);
    alloti_json_put_u64(json, "size", events->size[at]);
    alloti_json_put_u64(json, "stream", allot_trace_stream(trace, events->stream[at]));
    alloti_json_object_end(json);
}

/** Events from some before the difference to a few after it. */
static uint64_t context_first(uint64_t at)
{
    return at > CONTEXT_BEFORE ? at - CONTEXT_BEFORE : 0;
}

static uint64_t context_end(uint64_t at, uint64_t count)
{
    return count - at > CONTEXT_AFTER ? at + CONTEXT_AFTER + 1 : count;
}

static void put_difference(alloti_json *json, const allot_trace *trace, const allot_events *events,
                           const allot_replay_check_result *result)
{
    alloti_json_object_begin(json, "difference");
    alloti_json_put_u64(json, "event", result->difference_event);
    alloti_json_put_string(json, "reason", result->reason);
    if (result->has_expected) {
        const allot_torch_event *event = &result->expected;
        alloti_json_object_begin(json, "model");
        alloti_json_put_string(json, "action", allot_event_kind_name(event->kind));
        alloti_json_put_u64(json, "address", event->address);
        alloti_json_put_u64(json, "size", event->size);
        alloti_json_put_u64(json, "stream", event->stream);
        alloti_json_object_end(json);
    } else {
        alloti_json_put_null(json, "model");
    }
    alloti_json_array_begin(json, "recorded");
    const uint64_t end = context_end(result->difference_event, events->count);
    for (uint64_t at = context_first(result->difference_event); at < end; at++) {
        put_event(json, trace, events, at);
    }
    alloti_json_array_end(json);
    alloti_json_object_end(json);
}

static allot_status check_json(const allot_trace *trace, const allot_events *events,
                               const allot_replay_check_result *result,
                               const allot_report_options *options, const allot_sink *sink)
{
    char model[ALLOT_TORCH_CONF_TEXT_MAX + 8];
    alloti_json json;
    alloti_json_begin(&json, sink, "allot.check/1");
    alloti_json_put_string(&json, "file", name_of(options));
    alloti_json_put_string(&json, "model", model_text(&result->conf, model, sizeof(model)));
    alloti_json_put_u64(&json, "torch_version", result->version);
    alloti_json_put_bool(&json, "equal", result->is_equal);
    alloti_json_put_u64(&json, "placements", result->placement_count);
    alloti_json_put_u64(&json, "placements_equal", result->placement_equal);
    alloti_json_put_u64(&json, "events", result->event_count);
    alloti_json_put_u64(&json, "events_equal", result->event_equal);
    alloti_json_put_u64(&json, "segment_alloc_equal", result->segment_alloc_equal);
    alloti_json_put_u64(&json, "segment_free_equal", result->segment_free_equal);
    alloti_json_put_u64(&json, "segment_map_equal", result->segment_map_equal);
    alloti_json_put_u64(&json, "segment_unmap_equal", result->segment_unmap_equal);
    alloti_json_put_u64(&json, "free_completed_equal", result->free_completed_equal);
    alloti_json_put_u64(&json, "oom_equal", result->oom_equal);
    alloti_json_put_u64(&json, "reserved_peak", result->stats.reserved.peak);
    alloti_json_put_u64(&json, "allocated_peak", result->stats.allocated.peak);
    if (result->is_equal) {
        alloti_json_put_null(&json, "difference");
    } else {
        put_difference(&json, trace, events, result);
    }
    return alloti_json_end(&json);
}

static void write_context(alloti_text *text, const allot_trace *trace, const allot_events *events,
                          const allot_replay_check_result *result)
{
    static const alloti_column COLUMNS[] = {
        {"", ALLOTI_COLUMN_LEFT},        {"event", ALLOTI_COLUMN_RIGHT},
        {"action", ALLOTI_COLUMN_LEFT},  {"size", ALLOTI_COLUMN_RIGHT},
        {"address", ALLOTI_COLUMN_LEFT}, {"stream", ALLOTI_COLUMN_LEFT}};
    alloti_table table;
    alloti_table_init(&table, COLUMNS, sizeof(COLUMNS) / sizeof(COLUMNS[0]));
    size_text size;
    const uint64_t end = context_end(result->difference_event, events->count);
    for (uint64_t at = context_first(result->difference_event); at < end; at++) {
        const bool is_it = at == result->difference_event;
        alloti_table_cell(&table, "%s", is_it ? ">" : "");
        alloti_table_cell(&table, "%" PRIu64, at);
        alloti_table_cell(&table, "%s", allot_event_kind_name((allot_event_kind)events->kind[at]));
        alloti_table_cell(&table, "%s", allot_size_format(events->size[at], size));
        alloti_table_cell(&table, "%#" PRIx64, events->addr[at]);
        alloti_table_cell(&table, "%#" PRIx64, allot_trace_stream(trace, events->stream[at]));
        if (is_it && result->has_expected) {
            const allot_torch_event *event = &result->expected;
            alloti_table_cell(&table, "%s", "");
            alloti_table_cell(&table, "%s", "model");
            alloti_table_cell(&table, "%s", allot_event_kind_name(event->kind));
            alloti_table_cell(&table, "%s", allot_size_format(event->size, size));
            alloti_table_cell(&table, "%#" PRIx64, event->address);
            alloti_table_cell(&table, "%#" PRIx64, event->stream);
        }
    }
    alloti_table_write(&table, text);
}

/** What a difference may come from that is not in the file. */
static const char *hint_for(const allot_requests_info *info,
                            const allot_replay_check_result *result)
{
    if (info->unsure_count > 0) {
        return "The trace begins in the middle: some blocks that were live before it may have been "
               "up to 1 MiB larger than its events show.";
    }
    if (result->conf.garbage_collection_threshold > 0) {
        return "Garbage collection depends on the device's size and the memory fraction, which no "
               "trace records: give --limit and --fraction.";
    }
    if (result->conf.expandable_segments) {
        return "How far an expandable segment may grow depends on the device's size, which no "
               "trace records: give --limit.";
    }
    return NULL;
}

static allot_status check_text(const allot_trace *trace, const allot_requests_info *info,
                               const allot_events *events, const allot_replay_check_result *result,
                               const allot_report_options *options, const allot_sink *sink)
{
    alloti_text text = alloti_text_begin(sink, options);
    char model[ALLOT_TORCH_CONF_TEXT_MAX + 8];
    alloti_text_style(&text, ALLOTI_STYLE_HEADING, "%s", name_of(options));
    alloti_text_printf(&text, ": %" PRIu64 " events, model %s, rules of PyTorch %u.%u\n\n",
                       result->event_count, model_text(&result->conf, model, sizeof(model)),
                       (unsigned)result->version / 100, (unsigned)result->version % 100);
    char ratio[64];
    alloti_text_style(
        &text, result->is_equal ? ALLOTI_STYLE_GOOD : ALLOTI_STYLE_BAD, "%s placements equal",
        ratio_text(result->placement_equal, result->placement_count, ratio, sizeof(ratio)));
    alloti_text_printf(&text,
                       "; %s events equal: segments %" PRIu64 " taken, %" PRIu64 " freed, %" PRIu64
                       " mapped, %" PRIu64 " unmapped; %" PRIu64 " out of memory\n",
                       ratio_text(result->event_equal, result->event_count, ratio, sizeof(ratio)),
                       result->segment_alloc_equal, result->segment_free_equal,
                       result->segment_map_equal, result->segment_unmap_equal, result->oom_equal);
    if (!result->is_equal) {
        alloti_text_printf(&text, "\n");
        alloti_text_style(&text, ALLOTI_STYLE_BAD, "%s", result->reason);
        alloti_text_printf(&text, "\n\n");
        write_context(&text, trace, events, result);
        if (hint_for(info, result) != NULL) {
            alloti_text_printf(&text, "\n");
            alloti_text_wrap(&text, "", "%s", hint_for(info, result));
        }
    }
    return text.status;
}

allot_status allot_report_check(const allot_trace *trace, const allot_requests *requests,
                                const allot_replay_check_result *result,
                                const allot_report_options *given, const allot_sink *sink)
{
    allot_report_options options;
    const allot_status status = alloti_options_take(given, sizeof options, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_requests_info info;
    allot_requests_get_info(requests, &info);
    allot_events events;
    allot_trace_get_events(trace, info.device, &events);
    return options.format == ALLOT_REPORT_JSON
               ? check_json(trace, &events, result, &options, sink)
               : check_text(trace, &info, &events, result, &options, sink);
}

/* ---- replays ---- */

static void put_samples(alloti_json *json, const allot_replay_result *result)
{
    alloti_json_array_begin(json, "timeline");
    for (uint32_t i = 0; i < result->sample_count; i++) {
        const allot_replay_sample *sample = &result->samples[i];
        alloti_json_object_begin(json, NULL);
        alloti_json_put_u64(json, "event", sample->event);
        alloti_json_put_u64(json, "reserved", sample->reserved);
        alloti_json_put_u64(json, "allocated", sample->allocated);
        alloti_json_put_u64(json, "active", sample->active);
        alloti_json_put_u64(json, "free_largest", sample->free_largest);
        alloti_json_put_double(json, "fragmentation", sample->fragmentation);
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
}

static void put_oom(alloti_json *json, const allot_replay_result *result)
{
    if (result->oom_count == 0) {
        alloti_json_put_null(json, "oom");
        return;
    }
    alloti_json_object_begin(json, "oom");
    alloti_json_put_u64(json, "event", result->oom_event);
    alloti_json_put_u64(json, "size", result->oom_size);
    alloti_json_put_u64(json, "reserved", result->oom_reserved);
    alloti_json_put_u64(json, "allocated", result->oom_allocated);
    alloti_json_put_bool(json, "fragmented", result->oom_is_fragmentation);
    alloti_json_object_end(json);
}

/** Peak reserved as a multiple of `bytes`; 0 if that is unknown. */
static double times(const allot_replay_result *result, uint64_t bytes)
{
    return bytes == 0 ? 0 : (double)result->reserved_peak / (double)bytes;
}

static void put_times(alloti_json *json, const char *key, double value)
{
    if (value > 0) {
        alloti_json_put_double(json, key, value);
    } else {
        alloti_json_put_null(json, key);
    }
}

static void put_result(alloti_json *json, const allot_replay_result *result,
                       const allot_requests_info *info)
{
    alloti_json_object_begin(json, NULL);
    alloti_json_put_string(json, "model", result->model);
    alloti_json_put_bool(json, "exact", result->is_exact);
    alloti_json_put_bool(json, "finished", result->has_finished);
    alloti_json_put_u64(json, "reserved_peak", result->reserved_peak);
    alloti_json_put_u64(json, "allocated_peak", result->allocated_peak);
    alloti_json_put_u64(json, "active_peak", result->active_peak);
    alloti_json_put_u64(json, "requested_peak", result->requested_peak);
    put_times(json, "times_live", times(result, result->requested_peak));
    put_times(json, "times_recorded", times(result, info->reserved_peak));
    alloti_json_put_u64(json, "reserved_end", result->reserved_end);
    alloti_json_put_u64(json, "allocated_end", result->allocated_end);
    alloti_json_put_double(json, "fragmentation_end", result->fragmentation_end);
    alloti_json_put_u64(json, "allocations", result->alloc_count);
    alloti_json_put_u64(json, "driver_allocs", result->driver_alloc_count);
    alloti_json_put_u64(json, "driver_frees", result->driver_free_count);
    alloti_json_put_u64(json, "retries", result->retry_count);
    alloti_json_put_u64(json, "oom_count", result->oom_count);
    put_oom(json, result);
    alloti_json_put_u64(json, "cost_ns", result->cost_ns);
    alloti_json_put_u64(json, "compactions", result->compaction_count);
    alloti_json_put_u64(json, "copied_bytes", result->copy_bytes);
    alloti_json_put_u64(json, "copied_ns", result->copy_ns);
    put_samples(json, result);
    alloti_json_object_end(json);
}

static allot_status replays_json(const allot_requests_info *info,
                                 const allot_replay_options *conditions,
                                 const allot_replay_result *const *results, uint32_t count,
                                 const allot_report_options *options, const allot_sink *sink)
{
    alloti_json json;
    alloti_json_begin(&json, sink, "allot.replay/1");
    alloti_json_put_string(&json, "file", name_of(options));
    if (conditions->limit == 0) {
        alloti_json_put_null(&json, "limit");
    } else {
        alloti_json_put_u64(&json, "limit", conditions->limit);
    }
    if (conditions->fraction > 0) {
        alloti_json_put_double(&json, "fraction", conditions->fraction);
    } else {
        alloti_json_put_null(&json, "fraction");
    }
    alloti_json_object_begin(&json, "recorded");
    alloti_json_put_u64(&json, "events", info->event_count);
    alloti_json_put_u64(&json, "allocations", info->alloc_count);
    alloti_json_put_u64(&json, "ooms", info->oom_count);
    if (info->oom_limit != 0) {
        alloti_json_put_u64(&json, "oom_limit", info->oom_limit);
    } else {
        alloti_json_put_null(&json, "oom_limit");
    }
    alloti_json_put_u64(&json, "reserved_peak", info->reserved_peak);
    alloti_json_put_u64(&json, "initial_blocks", info->initial_count);
    alloti_json_object_end(&json);
    alloti_json_array_begin(&json, "replays");
    for (uint32_t i = 0; i < count; i++) {
        put_result(&json, results[i], info);
    }
    alloti_json_array_end(&json);
    return alloti_json_end(&json);
}

/** "1.2 ms", "3.4 s". */
static const char *time_text(uint64_t nanoseconds, char *buffer, size_t size)
{
    const double seconds = (double)nanoseconds / 1e9;
    if (seconds >= 1) {
        (void)snprintf(buffer, size, "%.1f s", seconds);
    } else {
        (void)snprintf(buffer, size, "%.1f ms", seconds * 1e3);
    }
    return buffer;
}

/** How a replay ended, in a few words. */
static const char *outcome_text(const allot_replay_result *result, char *buffer, size_t size)
{
    if (result->oom_count == 0) {
        (void)snprintf(buffer, size, "finishes");
    } else if (result->oom_count == 1) {
        (void)snprintf(buffer, size, "OOM %" PRIu64, result->oom_event);
    } else {
        (void)snprintf(buffer, size, "%" PRIu64 " OOMs", result->oom_count);
    }
    return buffer;
}

/** Without a limit nothing fails: a run that died is then not what is replayed. */
static void write_lack_of_limit(alloti_text *text, const allot_requests_info *info)
{
    alloti_text_style(text, ALLOTI_STYLE_BAD,
                      "  No limit is given, so nothing can fail. The recorded run ran out of "
                      "memory; its limit was\n  about %s: --limit %" PRIu64 "MiB\n",
                      alloti_size(info->oom_limit).text, info->oom_limit >> 20);
}

static void write_conditions(alloti_text *text, const allot_requests_info *info,
                             const allot_replay_options *conditions,
                             const allot_report_options *options)
{
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "%s\n", name_of(options));
    alloti_text_printf(text, "  recorded         %" PRIu64 " allocations, peak reserved %s\n",
                       info->alloc_count, alloti_size(info->reserved_peak).text);
    alloti_text_printf(text, "  limit            %s",
                       conditions->limit == 0 ? "none" : alloti_size(conditions->limit).text);
    if (conditions->fraction > 0) {
        alloti_text_printf(text, ", fraction %g", conditions->fraction);
    }
    alloti_text_printf(text, "\n");
    if (info->initial_count > 0) {
        alloti_text_style(text, ALLOTI_STYLE_DIM,
                          "  The trace begins in the middle: %" PRIu64
                          " blocks were live before its first event.\n",
                          info->initial_count);
    }
    if (conditions->limit == 0 && info->oom_limit != 0) {
        write_lack_of_limit(text, info);
    }
    alloti_text_printf(text, "\n");
}

static void write_line(alloti_text *text, const char *label, const char *value)
{
    alloti_text_printf(text, "  %-16s %s\n", label, value);
}

static void write_size_line(alloti_text *text, const char *label, uint64_t bytes)
{
    size_text size;
    write_line(text, label, allot_size_format(bytes, size));
}

static void write_count_line(alloti_text *text, const char *label, uint64_t count)
{
    char buffer[32];
    (void)snprintf(buffer, sizeof(buffer), "%" PRIu64, count);
    write_line(text, label, buffer);
}

static void write_oom(alloti_text *text, const allot_replay_result *result)
{
    size_text asked, reserved, allocated;
    alloti_text_wrap(text, "  ",
                     "  The request of %s at event %" PRIu64
                     " fails with %s reserved and %s of it allocated: %s.",
                     allot_size_format(result->oom_size, asked), result->oom_event,
                     allot_size_format(result->oom_reserved, reserved),
                     allot_size_format(result->oom_allocated, allocated),
                     result->oom_is_fragmentation
                         ? "enough bytes are free, but no single range is large enough"
                         : "not enough bytes are left");
}

/** "1.04x", "-" if it is unknown. */
static const char *times_text(double value, char *buffer, size_t size)
{
    (void)snprintf(buffer, size, value > 0 ? "%.2fx" : "-", value);
    return buffer;
}

/** Strategies of allot's own: no allocator elsewhere that they would stand for. */
static bool is_own(const allot_replay_result *result)
{
    return strncmp(result->model, "space:", strlen("space:")) == 0 ||
           strncmp(result->model, "heap:", strlen("heap:")) == 0;
}

static const char *remark_of(const allot_replay_result *result)
{
    if (is_own(result)) {
        return " (allot's own strategy)";
    }
    return result->is_exact ? "" : " (a model, not exact)";
}

static const char *mark_of(const allot_replay_result *result)
{
    if (is_own(result)) {
        return " +";
    }
    return result->is_exact ? "" : " *";
}

static void write_compactions(alloti_text *text, const allot_replay_result *result)
{
    char time[64];
    char buffer[192];
    (void)snprintf(buffer, sizeof(buffer), "%" PRIu32 ", %s copied in %s", result->compaction_count,
                   alloti_size(result->copy_bytes).text,
                   time_text(result->copy_ns, time, sizeof(time)));
    write_line(text, "compactions", buffer);
}

static void write_single(alloti_text *text, const allot_replay_result *result,
                         const allot_requests_info *info)
{
    char buffer[128];
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "%s", result->model);
    alloti_text_printf(text, "%s: ", remark_of(result));
    alloti_text_style(text, result->has_finished ? ALLOTI_STYLE_GOOD : ALLOTI_STYLE_BAD, "%s",
                      outcome_text(result, buffer, sizeof(buffer)));
    alloti_text_printf(text, "\n");
    if (result->oom_count > 0) {
        write_oom(text, result);
    }
    write_size_line(text, "peak reserved", result->reserved_peak);
    char live[32], recorded[32];
    (void)snprintf(buffer, sizeof(buffer),
                   "%s what is live at once, %s what was reserved when recorded",
                   times_text(times(result, result->requested_peak), live, sizeof(live)),
                   times_text(times(result, info->reserved_peak), recorded, sizeof(recorded)));
    write_line(text, "", buffer);
    write_size_line(text, "peak allocated", result->allocated_peak);
    write_size_line(text, "peak active", result->active_peak);
    write_size_line(text, "peak requested", result->requested_peak);
    (void)snprintf(buffer, sizeof(buffer), "%" PRIu64 " (%" PRIu64 " to take, %" PRIu64 " to give)",
                   result->driver_alloc_count + result->driver_free_count,
                   result->driver_alloc_count, result->driver_free_count);
    write_line(text, "driver calls", buffer);
    write_count_line(text, "retries", result->retry_count);
    write_line(text, "driver time", time_text(result->cost_ns, buffer, sizeof(buffer)));
    (void)snprintf(buffer, sizeof(buffer), "%.0f %% at the end", 100 * result->fragmentation_end);
    write_line(text, "fragmentation", buffer);
    if (result->compaction_count > 0) {
        write_compactions(text, result);
    }
}

static void write_table(alloti_text *text, const allot_replay_result *const *results,
                        uint32_t count, const allot_requests_info *info)
{
    static const alloti_column COLUMNS[] = {
        {"outcome", ALLOTI_COLUMN_LEFT},    {"reserved", ALLOTI_COLUMN_RIGHT},
        {"allocated", ALLOTI_COLUMN_RIGHT}, {"/live", ALLOTI_COLUMN_RIGHT},
        {"/rec", ALLOTI_COLUMN_RIGHT},      {"frag", ALLOTI_COLUMN_RIGHT},
        {"calls", ALLOTI_COLUMN_RIGHT},     {"retries", ALLOTI_COLUMN_RIGHT},
        {"time", ALLOTI_COLUMN_RIGHT},      {"model", ALLOTI_COLUMN_BELOW}};
    alloti_table table;
    alloti_table_init(&table, COLUMNS, sizeof(COLUMNS) / sizeof(COLUMNS[0]));
    for (uint32_t i = 0; i < count; i++) {
        const allot_replay_result *result = results[i];
        size_text size;
        char buffer[64];
        alloti_table_cell(&table, "%s", outcome_text(result, buffer, sizeof(buffer)));
        alloti_table_cell(&table, "%s", allot_size_format(result->reserved_peak, size));
        alloti_table_cell(&table, "%s", allot_size_format(result->allocated_peak, size));
        alloti_table_cell(
            &table, "%s",
            times_text(times(result, result->requested_peak), buffer, sizeof(buffer)));
        alloti_table_cell(&table, "%s",
                          times_text(times(result, info->reserved_peak), buffer, sizeof(buffer)));
        alloti_table_cell(&table, "%.0f %%", 100 * result->fragmentation_end);
        alloti_table_cell(&table, "%" PRIu64,
                          result->driver_alloc_count + result->driver_free_count);
        alloti_table_cell(&table, "%" PRIu64, result->retry_count);
        alloti_table_cell(&table, "%s", time_text(result->cost_ns, buffer, sizeof(buffer)));
        alloti_table_cell(&table, "%s%s", result->model, mark_of(result));
    }
    alloti_table_write(&table, text);
    alloti_text_wrap(
        text, "  ",
        "  reserved, allocated: at the peak; /live, /rec: reserved divided by what is live at "
        "once, and by what was reserved when recorded; frag: 1 - largest / all free bytes at the "
        "end; "
        "calls: to the driver; retries: cached memory was given back to make a request fit; time: "
        "what calls and retries cost, by a model");
}

/** What the marks in a table mean, as far as they occur. */
static void write_marks(alloti_text *text, const allot_replay_result *const *results,
                        uint32_t count)
{
    bool any_model = false;
    bool any_own = false;
    for (uint32_t i = 0; i < count; i++) {
        any_own = any_own || is_own(results[i]);
        any_model = any_model || (!is_own(results[i]) && !results[i]->is_exact);
    }
    if (any_model) {
        alloti_text_style(text, ALLOTI_STYLE_DIM, "  * a model for comparison, not exact\n");
    }
    if (any_own) {
        alloti_text_style(text, ALLOTI_STYLE_DIM,
                          "  + a strategy of allot's own, no setting of PyTorch\n");
    }
}

allot_status allot_report_replays(const allot_requests *requests,
                                  const allot_replay_options *conditions,
                                  const allot_replay_result *const *results, uint32_t count,
                                  const allot_report_options *given, const allot_sink *sink)
{
    allot_report_options options;
    const allot_status status = alloti_options_take(given, sizeof options, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_requests_info info;
    allot_requests_get_info(requests, &info);
    if (options.format == ALLOT_REPORT_JSON) {
        return replays_json(&info, conditions, results, count, &options, sink);
    }
    alloti_text text = alloti_text_begin(sink, &options);
    write_conditions(&text, &info, conditions, &options);
    if (count == 1) {
        write_single(&text, results[0], &info);
    } else {
        write_table(&text, results, count, &info);
        write_marks(&text, results, count);
    }
    return text.status;
}
