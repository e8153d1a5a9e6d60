/* SPDX-License-Identifier: MIT */
/* The page of `diff`: what differs as tables, and the two histories one above the other. */
#include <stdio.h>

#include "core/size_text.h"
#include "report/html_write.h"

static void put_row(alloti_json *json, const char *label, uint64_t a, uint64_t b)
{
    alloti_html_row_begin(json, NULL);
    alloti_json_put_string(json, NULL, label);
    alloti_json_put_u64(json, NULL, a);
    alloti_json_put_u64(json, NULL, b);
    alloti_json_put_i64(json, NULL, (int64_t)(b - a));
    alloti_html_row_end(json);
}

static void table_begin(alloti_json *json, const char *title, const char *what)
{
    const alloti_html_column columns[] = {
        {what, "text"}, {"First", "bytes"}, {"Second", "bytes"}, {"Change", "change"}};
    alloti_json_object_begin(json, NULL);
    alloti_json_put_string(json, "title", title);
    alloti_html_rows_begin(json, columns, sizeof columns / sizeof columns[0]);
}

static void table_end(alloti_json *json)
{
    alloti_json_array_end(json);
    alloti_json_object_end(json);
}

static void write_rows(alloti_json *json, const char *title, const char *what,
                       const allot_diff_rows *rows)
{
    enum { ROWS = 100 };
    table_begin(json, title, what);
    for (uint32_t i = 0; i < rows->count && i < ROWS; i++) {
        const allot_diff_row *const row = &rows->items[i];
        if (row->size_a != row->size_b) {
            put_row(json, row->label, row->size_a, row->size_b);
        }
    }
    table_end(json);
}

static void write_measures(alloti_json *json, const allot_diff *diff)
{
    table_begin(json, "Peaks", "Measure");
    for (unsigned m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        put_row(json, allot_measure_name((allot_measure)m), diff->a.peak[m].size,
                diff->b.peak[m].size);
    }
    put_row(json, "free at peak allocated", diff->a.totals.free_size, diff->b.totals.free_size);
    put_row(json, "largest free range at peak allocated", diff->a.totals.free_largest,
            diff->b.totals.free_largest);
    table_end(json);
}

static void write_settings(alloti_json *json, const allot_diff *diff)
{
    static const alloti_html_column COLUMNS[] = {
        {"Setting", "code"}, {"First", "code"}, {"Second", "code"}};
    alloti_json_object_begin(json, NULL);
    alloti_json_put_string(json, "title", "Settings that differ");
    alloti_html_rows_begin(json, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (uint32_t i = 0; i < diff->setting_count; i++) {
        const allot_diff_setting *const setting = &diff->settings[i];
        alloti_html_row_begin(json, NULL);
        alloti_json_put_string(json, NULL, setting->key);
        alloti_json_put_string(json, NULL, setting->value_a);
        alloti_json_put_string(json, NULL, setting->value_b);
        alloti_html_row_end(json);
    }
    table_end(json);
}

static const char *headline_of(const allot_diff *diff)
{
    if (diff->a.is_unfinished && !diff->b.is_unfinished) {
        return "The first ran out of memory and the second did not: which needs more cannot be "
               "told";
    }
    if (diff->b.is_unfinished && !diff->a.is_unfinished) {
        return "The second ran out of memory and the first did not";
    }
    return diff->is_worse ? "The second needs more memory than the first"
                          : "The second needs no more memory than the first";
}

static void write_verdict(alloti_json *json, const allot_diff *diff)
{
    const allot_measure measures[] = {ALLOT_MEASURE_ALLOCATED, ALLOT_MEASURE_RESERVED};
    alloti_html_verdict_begin(json, diff->is_worse ? "bad" : "info", "%s", headline_of(diff));
    for (unsigned m = 0; m < 2; m++) {
        const uint64_t a = diff->a.peak[measures[m]].size;
        const uint64_t b = diff->b.peak[measures[m]].size;
        alloti_html_sentence(json, "Peak %s: %s, then %s (%s).", allot_measure_name(measures[m]),
                             alloti_size(a).text, alloti_size(b).text,
                             alloti_size_change(a, b).text);
    }
    alloti_html_verdict_end(json);
}

static allot_status write_traces(const alloti_html_subject *subjects,
                                 const allot_html_options *options, alloti_html_page *page)
{
    const char *const names[] = {options->name, options->name_b};
    allot_status status = ALLOT_STATUS_OK;
    alloti_json_array_begin(&page->json, "traces");
    for (unsigned i = 0; i < 2 && status == ALLOT_STATUS_OK; i++) {
        const uint32_t event =
            allot_history_peak(subjects[i].history, ALLOT_MEASURE_ALLOCATED).event;
        status =
            alloti_html_subject_write(&subjects[i], names[i], options->limit, event, options, page);
    }
    alloti_json_array_end(&page->json);
    return status;
}

allot_status allot_html_diff(const allot_history *a, const allot_history *b, const allot_diff *diff,
                             const allot_html_options *given, const allot_sink *sink)
{
    allot_html_options options;
    allot_status status = alloti_html_options_take(given, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    char title[512];
    snprintf(title, sizeof title, "%.200s and %.200s", options.name, options.name_b);
    alloti_html_page page;
    alloti_html_subject subjects[2] = {{0}};
    alloti_html_page_begin(&page, "diff", title);
    status = alloti_html_subject_init(&subjects[0], a, &options);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_html_subject_init(&subjects[1], b, &options);
    }
    if (status == ALLOT_STATUS_OK) {
        write_verdict(&page.json, diff);
        alloti_json_array_begin(&page.json, "tables");
        write_measures(&page.json, diff);
        write_rows(&page.json, "By line of code, at each one's peak", "Code line", &diff->lines);
        write_rows(&page.json, "By category, at each one's peak", "Category", &diff->categories);
        write_rows(&page.json, "Segments at the end, by size", "Size", &diff->segments);
        write_settings(&page.json, diff);
        alloti_json_array_end(&page.json);
        status = write_traces(subjects, &options, &page);
    }
    alloti_html_subject_fini(&subjects[0]);
    alloti_html_subject_fini(&subjects[1]);
    return alloti_html_page_finish(&page, status, sink);
}
