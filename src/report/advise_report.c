/* SPDX-License-Identifier: MIT */
/* Advice as a table with sentences, and as JSON ("allot.advise/1"). */
#include <inttypes.h>
#include <stdio.h>

#include <allot/advise.h>

#include "core/options.h"
#include "report/advise_words.h"
#include "report/json.h"
#include "report/parts.h"
#include "report/table.h"

static void write_head(alloti_text *text, const allot_advice *advice, const char *name)
{
    allot_advice_summary s = {0};
    allot_advice_get_summary(advice, &s);
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "%s, %s %u\n", name == NULL ? "trace" : name,
                      alloti_memory_name(s.memory), s.device_number);
    if (s.verdict == ALLOT_ADVICE_VERDICT_CANNOT_SAY) {
        return;
    }
    char span[48] = "";
    if (s.span_ns > 0) {
        snprintf(span, sizeof span, " in %.1f s", (double)s.span_ns / 1e9);
    }
    alloti_text_wrap(text, "               ",
                     "  recorded     %" PRIu64 " events%s, setting %s, peak reserved %s",
                     s.event_count, span, alloti_setting_text(s.present),
                     alloti_size(s.recorded_reserved_peak).text);
    if (s.limit == 0) {
        alloti_text_printf(text, "  limit        none\n");
    } else {
        alloti_text_printf(text, "  limit        %s (%s)", alloti_size(s.limit).text,
                           allot_limit_source_name(s.limit_source));
        if (s.fraction > 0.0) {
            alloti_text_printf(text, ", fraction %g", s.fraction);
        }
        alloti_text_printf(text, "\n");
    }
    alloti_text_printf(text,
                       "  model        %" PRIu64 " of %" PRIu64 " recorded placements equal\n"
                       "  tried        %" PRIu64 " %s in %" PRIu64 " replays\n\n",
                       s.placements_equal, s.placements, s.setting_count,
                       s.setting_count == 1 ? "setting" : "settings", s.replay_count);
}

static alloti_style style_of(const allot_advice_summary *s)
{
    const bool is_good =
        s->verdict == ALLOT_ADVICE_VERDICT_CHANGE || s->verdict == ALLOT_ADVICE_VERDICT_KEEP;
    return is_good && !s->is_tight ? ALLOTI_STYLE_GOOD : ALLOTI_STYLE_BAD;
}

static void write_verdict(alloti_text *text, const allot_advice *advice)
{
    allot_advice_summary s = {0};
    allot_advice_get_summary(advice, &s);
    alloti_text_style(text, style_of(&s), "%s\n", allot_advice_headline(advice));
    if (s.recommended != NULL) {
        char line[ALLOTI_ASSIGNMENT_MAX];
        alloti_text_style(text, style_of(&s), "%s%s\n", s.recommended[0] == '\0' ? "" : "Set: ",
                          alloti_setting_assign(s.recommended, line));
    }
    alloti_text_wrap(text, "", "%s", allot_advice_reason(advice));
    alloti_text_printf(text, "\n");
}

/** Less than the present setting is a gain without a sign. */
static alloti_size_text saving_of(const allot_advice_row *row)
{
    alloti_size_text out = {.text = "-"};
    if (row->has_saving) {
        const uint64_t size = row->saving < 0 ? -(uint64_t)row->saving : (uint64_t)row->saving;
        out = row->saving < 0 ? alloti_size_change(size, 0) : alloti_size(size);
    }
    return out;
}

/** Calls and time; of a recording that begins in the middle only the present setting's count. */
static void cell_cost(alloti_table *table, const allot_advice_row *row, bool is_comparable)
{
    alloti_table_cell(table, is_comparable ? "%" PRIu64 : "-", row->driver_calls);
    alloti_table_cell(table, "%" PRIu64, row->retries);
    alloti_table_cell(table, is_comparable ? "%.0f ms" : "-", row->cost_ns / 1e6);
}

static void row_write(alloti_table *table, const allot_advice *advice, uint32_t index)
{
    allot_advice_summary s = {0};
    allot_advice_row row = {0};
    allot_advice_get_summary(advice, &s);
    allot_advice_get_row(advice, index, &row);
    if (index == 0) {
        alloti_table_cell(table, "now");
    } else {
        alloti_table_cell(table, "%u%s%s", index, row.is_tried ? " try" : "",
                          index == s.recommended_row ? " <-" : "");
    }
    alloti_table_cell(table, "%s", alloti_advice_outcome(&row).text);
    alloti_table_cell(table, "%s", alloti_size(row.peak_reserved).text);
    alloti_table_cell(table, "%s", index == 0 ? "" : saving_of(&row).text);
    alloti_table_cell(table, "%s", row.limit_min == 0 ? "-" : alloti_size(row.limit_min).text);
    cell_cost(table, &row, s.is_complete || index == 0);
    alloti_table_cell(table, "%s", alloti_setting_text(row.setting));
}

static void write_rows(alloti_text *text, const allot_advice *advice, uint32_t top)
{
    static const alloti_column columns[] = {
        {"", ALLOTI_COLUMN_LEFT},          {"outcome", ALLOTI_COLUMN_LEFT},
        {"reserved", ALLOTI_COLUMN_RIGHT}, {"saving", ALLOTI_COLUMN_RIGHT},
        {"needs", ALLOTI_COLUMN_RIGHT},    {"calls", ALLOTI_COLUMN_RIGHT},
        {"retries", ALLOTI_COLUMN_RIGHT},  {"time", ALLOTI_COLUMN_RIGHT},
        {"setting", ALLOTI_COLUMN_BELOW},
    };
    const uint32_t all = allot_advice_row_count(advice);
    allot_advice_summary s = {0};
    allot_advice_get_summary(advice, &s);
    uint32_t hidden = 0;
    alloti_table table;
    alloti_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < all; i++) {
        if (alloti_advice_shows(advice, i, top)) {
            row_write(&table, advice, i);
        } else {
            hidden++;
        }
    }
    alloti_table_write(&table, text);
    if (hidden > 0) {
        alloti_text_printf(text, "  %u more: --top %u\n", hidden, all - 1);
    }
    alloti_text_wrap(text, "  ", "  %s", alloti_advice_columns(&s).text);
    alloti_text_wrap(text, "  ", "  %s", alloti_advice_order(&s).text);
    alloti_text_wrap(text, "  ",
                     "  left out: what is no better than now, or does as a row above does");
    alloti_text_printf(text, "\n");
}

/** allot's own strategies: for comparison with the settings above, apart from them. */
static void write_strategies(alloti_text *text, const allot_advice *advice)
{
    static const alloti_column columns[] = {
        {"outcome", ALLOTI_COLUMN_LEFT}, {"reserved", ALLOTI_COLUMN_RIGHT},
        {"saving", ALLOTI_COLUMN_RIGHT}, {"needs", ALLOTI_COLUMN_RIGHT},
        {"calls", ALLOTI_COLUMN_RIGHT},  {"retries", ALLOTI_COLUMN_RIGHT},
        {"model", ALLOTI_COLUMN_BELOW},
    };
    if (allot_advice_strategy_count(advice) == 0) {
        return;
    }
    allot_advice_summary s = {0};
    allot_advice_get_summary(advice, &s);
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "%s\n", ALLOTI_STRATEGIES_TITLE);
    alloti_table table;
    alloti_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < allot_advice_strategy_count(advice); i++) {
        allot_advice_row row = {0};
        allot_advice_get_strategy(advice, i, &row);
        alloti_table_cell(&table, "%s", alloti_advice_outcome(&row).text);
        alloti_table_cell(&table, "%s", alloti_size(row.peak_reserved).text);
        alloti_table_cell(&table, "%s", saving_of(&row).text);
        alloti_table_cell(&table, "%s", row.limit_min == 0 ? "-" : alloti_size(row.limit_min).text);
        alloti_table_cell(&table, s.is_complete ? "%" PRIu64 : "-", row.driver_calls);
        alloti_table_cell(&table, "%" PRIu64, row.retries);
        alloti_table_cell(&table, "%s", row.setting);
    }
    alloti_table_write(&table, text);
    alloti_text_wrap(text, "  ", "  %s", ALLOTI_STRATEGIES_REMARK);
    alloti_text_printf(text, "\n");
}

static void write_lines(alloti_text *text, const allot_advice *advice, uint32_t top)
{
    static const alloti_column columns[] = {
        {"live", ALLOTI_COLUMN_RIGHT},
        {"blocks", ALLOTI_COLUMN_RIGHT},
        {"allocated at", ALLOTI_COLUMN_FLEX},
    };
    const uint32_t all = allot_advice_line_count(advice);
    if (all == 0) {
        return;
    }
    allot_advice_summary s = {0};
    allot_advice_get_summary(advice, &s);
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "Lines that hold the memory at %s\n",
                      s.has_oom ? "the out-of-memory" : "the peak");
    alloti_table table;
    alloti_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < all && i < top; i++) {
        allot_advice_line line = {0};
        allot_advice_get_line(advice, i, &line);
        alloti_table_cell(&table, "%s", alloti_size(line.bytes).text);
        alloti_table_cell(&table, "%" PRIu64, line.count);
        alloti_table_cell(&table, "%s", line.text);
    }
    alloti_table_write(&table, text);
    alloti_text_printf(text, "\n");
}

static allot_status write_text(const allot_advice *advice, const allot_report_options *options,
                               const allot_sink *sink)
{
    enum { LINES_SHOWN = 5 };
    alloti_text text = alloti_text_begin(sink, options);
    const uint32_t top = alloti_report_top(options);
    write_head(&text, advice, options->name);
    write_verdict(&text, advice);
    if (allot_advice_row_count(advice) > 0) {
        write_rows(&text, advice, top);
        write_strategies(&text, advice);
        write_lines(&text, advice, top < LINES_SHOWN ? top : LINES_SHOWN);
    }
    for (uint32_t i = 0; i < allot_advice_note_count(advice); i++) {
        alloti_text_wrap(&text, "  ", "- %s", allot_advice_note(advice, i));
    }
    return text.status;
}

/** A number that only has a meaning under a condition. */
static void put_if(alloti_json *json, const char *key, bool has, uint64_t value)
{
    if (has) {
        alloti_json_put_u64(json, key, value);
    } else {
        alloti_json_put_null(json, key);
    }
}

static void put_summary(alloti_json *json, const allot_advice_summary *s)
{
    const bool says = s->verdict != ALLOT_ADVICE_VERDICT_CANNOT_SAY;
    alloti_json_put_string(json, "verdict", allot_advice_verdict_name(s->verdict));
    alloti_json_object_begin(json, "device");
    alloti_json_put_string(json, "memory", alloti_memory_name(s->memory));
    alloti_json_put_u64(json, "index", s->device_number);
    alloti_json_object_end(json);
    alloti_json_put_string(json, "present", says ? s->present : NULL);
    alloti_json_put_string(json, "recommended", s->recommended);
    alloti_json_put_index(json, "recommended_row", s->recommended_row);
    put_if(json, "spare", s->limit != 0 && s->spare != 0, s->spare);
    alloti_json_put_bool(json, "is_tight", s->is_tight);
    alloti_json_put_string(json, "saving_of", s->is_by_need ? "limit_min" : "peak_reserved");
    alloti_json_object_begin(json, "limit");
    put_if(json, "size", s->limit != 0, s->limit);
    alloti_json_put_string(json, "source", allot_limit_source_name(s->limit_source));
    alloti_json_put_double(json, "fraction", s->fraction > 0.0 ? s->fraction : 1.0);
    alloti_json_object_end(json);
    alloti_json_object_begin(json, "recording");
    alloti_json_put_u64(json, "event_count", s->event_count);
    alloti_json_put_i64(json, "span_ns", s->span_ns);
    alloti_json_put_u64(json, "reserved_peak", s->recorded_reserved_peak);
    alloti_json_put_u64(json, "live_peak", s->live_peak);
    put_if(json, "live_event", says && s->live_event != ALLOT_NONE, s->live_event);
    put_if(json, "oom_event", s->has_oom, s->oom_event);
    put_if(json, "oom_size", s->has_oom, s->oom_size);
    alloti_json_put_bool(json, "is_complete", s->is_complete);
    alloti_json_object_end(json);
    alloti_json_object_begin(json, "fidelity");
    put_if(json, "placements", s->is_checked, s->placements);
    put_if(json, "placements_equal", s->is_checked, s->placements_equal);
    alloti_json_object_end(json);
    alloti_json_put_u64(json, "setting_count", s->setting_count);
    alloti_json_put_u64(json, "replay_count", s->replay_count);
}

/** What is known of settings and strategies alike. */
static void put_figures(alloti_json *json, const allot_advice_row *row)
{
    alloti_json_put_bool(json, "finishes", row->finishes);
    put_if(json, "stop_event", !row->finishes, row->stop_event);
    alloti_json_put_u64(json, "peak_reserved", row->peak_reserved);
    alloti_json_put_u64(json, "peak_allocated", row->peak_allocated);
    alloti_json_put_u64(json, "driver_calls", row->driver_calls);
    alloti_json_put_u64(json, "retries", row->retries);
    alloti_json_put_double(json, "cost_ns", row->cost_ns);
    alloti_json_put_u64(json, "roomy_reserved", row->roomy_reserved);
    put_if(json, "limit_min", row->limit_min != 0, row->limit_min);
    alloti_json_put_double(json, "limit_min_cost_ns", row->limit_min_cost_ns);
    if (row->has_saving) {
        alloti_json_put_i64(json, "saving", row->saving);
    } else {
        alloti_json_put_null(json, "saving");
    }
}

static void put_rows(alloti_json *json, const allot_advice *advice)
{
    alloti_json_array_begin(json, "rows");
    for (uint32_t i = 0; i < allot_advice_row_count(advice); i++) {
        allot_advice_row row = {0};
        allot_advice_get_row(advice, i, &row);
        alloti_json_object_begin(json, NULL);
        alloti_json_put_string(json, "setting", row.setting);
        alloti_json_put_string(json, "change", row.change);
        alloti_json_put_bool(json, "is_tried", row.is_tried);
        put_figures(json, &row);
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
    alloti_json_array_begin(json, "strategies");
    for (uint32_t i = 0; i < allot_advice_strategy_count(advice); i++) {
        allot_advice_row row = {0};
        allot_advice_get_strategy(advice, i, &row);
        alloti_json_object_begin(json, NULL);
        alloti_json_put_string(json, "model", row.setting);
        put_figures(json, &row);
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
}

static allot_status write_json(const allot_advice *advice, const allot_report_options *options,
                               const allot_sink *sink)
{
    alloti_json json;
    alloti_json_begin(&json, sink, "allot.advise/1");
    allot_advice_summary s = {0};
    allot_advice_get_summary(advice, &s);
    alloti_json_put_string(&json, "file", options->name);
    put_summary(&json, &s);
    alloti_json_put_string(&json, "headline", allot_advice_headline(advice));
    alloti_json_put_string(&json, "reason", allot_advice_reason(advice));
    alloti_json_put_string(&json, "where", allot_advice_where(advice));
    put_rows(&json, advice);
    alloti_json_array_begin(&json, "lines");
    for (uint32_t i = 0; i < allot_advice_line_count(advice); i++) {
        allot_advice_line line = {0};
        allot_advice_get_line(advice, i, &line);
        alloti_json_object_begin(&json, NULL);
        alloti_json_put_string(&json, "line", line.text);
        alloti_json_put_u64(&json, "size", line.bytes);
        alloti_json_put_u64(&json, "count", line.count);
        alloti_json_object_end(&json);
    }
    alloti_json_array_end(&json);
    alloti_json_array_begin(&json, "notes");
    for (uint32_t i = 0; i < allot_advice_note_count(advice); i++) {
        alloti_json_put_string(&json, NULL, allot_advice_note(advice, i));
    }
    alloti_json_array_end(&json);
    return alloti_json_end(&json);
}

allot_status allot_report_advice(const allot_advice *advice, const allot_report_options *given,
                                 const allot_sink *sink)
{
    allot_report_options options;
    const allot_status status = alloti_options_take(given, sizeof options, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return options.format == ALLOT_REPORT_JSON ? write_json(advice, &options, sink)
                                               : write_text(advice, &options, sink);
}
