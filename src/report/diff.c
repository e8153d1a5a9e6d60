/* SPDX-License-Identifier: MIT */
/* What differs between two traces. */
#include <inttypes.h>

#include "core/options.h"
#include "report/parts.h"
#include "report/table.h"

static void write_measures(alloti_text *text, const allot_diff *diff)
{
    static const alloti_column COLUMNS[] = {{"", ALLOTI_COLUMN_LEFT},
                                            {"A", ALLOTI_COLUMN_RIGHT},
                                            {"B", ALLOTI_COLUMN_RIGHT},
                                            {"change", ALLOTI_COLUMN_RIGHT}};
    alloti_table table;
    alloti_table_init(&table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        const uint64_t a = diff->a.peak[m].size;
        const uint64_t b = diff->b.peak[m].size;
        alloti_table_cell(&table, "peak %s", allot_measure_name((allot_measure)m));
        alloti_table_cell(&table, "%s", alloti_size(a).text);
        alloti_table_cell(&table, "%s", alloti_size(b).text);
        alloti_table_cell(&table, "%s", alloti_size_change(a, b).text);
    }
    alloti_table_cell(&table, "free at peak allocated");
    alloti_table_cell(&table, "%s", alloti_size(diff->a.totals.free_size).text);
    alloti_table_cell(&table, "%s", alloti_size(diff->b.totals.free_size).text);
    alloti_table_cell(&table, "%s",
                      alloti_size_change(diff->a.totals.free_size, diff->b.totals.free_size).text);
    alloti_table_cell(&table, "segments at the end");
    alloti_table_cell(&table, "%" PRIu32, diff->a.segment_count);
    alloti_table_cell(&table, "%" PRIu32, diff->b.segment_count);
    alloti_table_cell(&table, "%+" PRId64,
                      (int64_t)diff->b.segment_count - (int64_t)diff->a.segment_count);
    alloti_table_cell(&table, "out-of-memory errors");
    alloti_table_cell(&table, "%" PRIu64, diff->a.oom_count);
    alloti_table_cell(&table, "%" PRIu64, diff->b.oom_count);
    alloti_table_cell(&table, "%+" PRId64, (int64_t)diff->b.oom_count - (int64_t)diff->a.oom_count);
    alloti_table_write(&table, text);
}

/* Rows that differ, largest difference first. */
static void write_rows(alloti_text *text, const char *heading, const allot_diff_rows *rows,
                       uint32_t top)
{
    static const alloti_column COLUMNS[] = {{"change", ALLOTI_COLUMN_RIGHT},
                                            {"A", ALLOTI_COLUMN_RIGHT},
                                            {"B", ALLOTI_COLUMN_RIGHT},
                                            {"blocks", ALLOTI_COLUMN_RIGHT},
                                            {"", ALLOTI_COLUMN_FLEX}};
    alloti_table table;
    alloti_table_init(&table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < rows->count && shown < top; i++) {
        const allot_diff_row *const row = &rows->items[i];
        if (row->size_a == row->size_b && row->count_a == row->count_b) {
            continue;
        }
        shown++;
        alloti_table_cell(&table, "%s", alloti_size_change(row->size_a, row->size_b).text);
        alloti_table_cell(&table, "%s", alloti_size(row->size_a).text);
        alloti_table_cell(&table, "%s", alloti_size(row->size_b).text);
        alloti_table_cell(&table, "%" PRIu32 " -> %" PRIu32, row->count_a, row->count_b);
        alloti_table_cell(&table, "%s", row->label);
    }
    alloti_text_printf(text, "\n");
    alloti_text_style(text, ALLOTI_STYLE_HEADING, "%s%s\n", heading,
                      shown == 0 ? ": no difference" : "");
    if (shown != 0) {
        alloti_table_write(&table, text);
    } else {
        alloti_table_fini(&table);
    }
}

static void write_settings(alloti_text *text, const allot_diff *diff)
{
    for (uint32_t i = 0; i < diff->setting_count; i++) {
        const allot_diff_setting *const setting = &diff->settings[i];
        alloti_text_printf(text, "%s  %s: %s -> %s\n", i == 0 ? "\nsettings\n" : "", setting->key,
                           setting->value_a == NULL ? "not recorded" : setting->value_a,
                           setting->value_b == NULL ? "not recorded" : setting->value_b);
    }
}

static const char *verdict_of(const allot_diff *diff)
{
    if (diff->a.is_unfinished && !diff->b.is_unfinished) {
        return "A ran out of memory and B did not: which needs more cannot be told";
    }
    if (diff->b.is_unfinished && !diff->a.is_unfinished) {
        return "B ran out of memory and A did not";
    }
    return diff->is_worse ? "B needs more memory than A" : "B does not need more memory than A";
}

static void write_text(alloti_text *text, const allot_diff *diff, uint32_t top)
{
    alloti_text_style(text, ALLOTI_STYLE_HEADING,
                      "A: %s, %" PRIu64 " events\nB: %s, %" PRIu64 " events\n\n", diff->a.name,
                      diff->a.event_count, diff->b.name, diff->b.event_count);
    write_measures(text, diff);
    write_rows(text, "by line, each at its own peak", &diff->lines, top);
    write_rows(text,
               diff->categories_inferred ? "by category (inferred), each at its own peak"
                                         : "by category, each at its own peak",
               &diff->categories, ALLOT_CATEGORY_COUNT);
    write_rows(text, "segments at the end", &diff->segments, top);
    write_settings(text, diff);
    alloti_text_printf(text, "\n");
    alloti_text_style(text, diff->is_worse ? ALLOTI_STYLE_BAD : ALLOTI_STYLE_GOOD, "%s\n",
                      verdict_of(diff));
    if (diff->a.is_unfinished || diff->b.is_unfinished) {
        alloti_text_wrap(text, "",
                         "%s at an out-of-memory: its peaks, lines and categories are those of an "
                         "unfinished run.",
                         diff->a.is_unfinished && diff->b.is_unfinished ? "Each stopped"
                         : diff->a.is_unfinished                        ? "A stopped"
                                                                        : "B stopped");
    }
}

static void json_side(alloti_json *json, const char *key, const allot_diff_side *side)
{
    alloti_json_object_begin(json, key);
    alloti_json_put_string(json, "file", side->name);
    alloti_json_put_u64(json, "event_count", side->event_count);
    alloti_json_put_u64(json, "oom_count", side->oom_count);
    alloti_json_put_bool(json, "is_unfinished", side->is_unfinished);
    alloti_json_put_u64(json, "segment_count", side->segment_count);
    for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        alloti_json_object_begin(json, allot_measure_name((allot_measure)m));
        alloti_json_put_u64(json, "peak", side->peak[m].size);
        alloti_json_put_index(json, "peak_event", side->peak[m].event);
        alloti_json_put_u64(json, "end", side->end[m]);
        alloti_json_object_end(json);
    }
    alloti_json_totals(json, "at_peak", &side->totals);
    alloti_json_object_end(json);
}

static void json_rows(alloti_json *json, const char *key, const allot_diff_rows *rows)
{
    alloti_json_array_begin(json, key);
    for (uint32_t i = 0; i < rows->count; i++) {
        const allot_diff_row *const row = &rows->items[i];
        alloti_json_object_begin(json, NULL);
        alloti_json_put_string(json, "label", row->label);
        alloti_json_put_u64(json, "size_a", row->size_a);
        alloti_json_put_u64(json, "size_b", row->size_b);
        alloti_json_put_u64(json, "count_a", row->count_a);
        alloti_json_put_u64(json, "count_b", row->count_b);
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
}

static allot_status write_json(const allot_sink *sink, const allot_diff *diff)
{
    alloti_json json;
    alloti_json_begin(&json, sink, "allot.diff/1");
    json_side(&json, "a", &diff->a);
    json_side(&json, "b", &diff->b);
    json_rows(&json, "lines", &diff->lines);
    alloti_json_put_bool(&json, "categories_inferred", diff->categories_inferred);
    json_rows(&json, "categories", &diff->categories);
    json_rows(&json, "segments", &diff->segments);
    alloti_json_array_begin(&json, "settings");
    for (uint32_t i = 0; i < diff->setting_count; i++) {
        alloti_json_object_begin(&json, NULL);
        alloti_json_put_string(&json, "key", diff->settings[i].key);
        alloti_json_put_string(&json, "a", diff->settings[i].value_a);
        alloti_json_put_string(&json, "b", diff->settings[i].value_b);
        alloti_json_object_end(&json);
    }
    alloti_json_array_end(&json);
    alloti_json_put_bool(&json, "is_worse", diff->is_worse);
    return alloti_json_end(&json);
}

allot_status allot_report_diff(const allot_diff *diff, const allot_report_options *given,
                               const allot_sink *sink)
{
    allot_report_options options;
    const allot_status status = alloti_options_take(given, sizeof options, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (options.format == ALLOT_REPORT_JSON) {
        return write_json(sink, diff);
    }
    alloti_text text = alloti_text_begin(sink, &options);
    write_text(&text, diff, alloti_report_top(&options));
    return text.status;
}
