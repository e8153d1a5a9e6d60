/* SPDX-License-Identifier: MIT */
/* The page of `advise`: the table, and a replay of the best rows for the chart beside it. */
#include <stdio.h>
#include <string.h>

#include <allot/replay.h>

#include "core/size_text.h"
#include "report/advise_words.h"
#include "report/html_write.h"

enum {
    ROWS = 20,      /* of the table */
    REPLAYS = 8,    /* rows with a line in the chart */
    SAMPLES = 4000, /* of a line */
};

/** The columns of the tables in text; here the setting leads, since it is a button too. */
static const alloti_html_column COLUMNS[] = {
    {"setting", "code"}, {"outcome", "text"}, {"reserved", "bytes"}, {"saving", "bytes"},
    {"needs", "bytes"},  {"calls", "number"}, {"retries", "number"}, {"time", "duration"},
};

static void put_row(const allot_advice_row *row, const char *mark, bool is_comparable,
                    alloti_json *json)
{
    char outcome[64];
    snprintf(outcome, sizeof outcome, "%s%s", alloti_advice_outcome(row).text, mark);
    alloti_json_put_string(json, NULL, alloti_setting_text(row->setting));
    alloti_json_put_string(json, NULL, outcome);
    alloti_json_put_u64(json, NULL, row->peak_reserved);
    if (row->has_saving) {
        alloti_json_put_i64(json, NULL, row->saving);
    } else {
        alloti_json_put_null(json, NULL);
    }
    if (row->limit_min != 0) {
        alloti_json_put_u64(json, NULL, row->limit_min);
    } else {
        alloti_json_put_null(json, NULL);
    }
    if (is_comparable) {
        alloti_json_put_u64(json, NULL, row->driver_calls);
    } else {
        alloti_json_put_null(json, NULL);
    }
    alloti_json_put_u64(json, NULL, row->retries);
    if (is_comparable) {
        alloti_json_put_double(json, NULL, row->cost_ns);
    } else {
        alloti_json_put_null(json, NULL);
    }
}

static void write_rows(const allot_advice *advice, uint32_t replay_count, alloti_json *json)
{
    allot_advice_summary summary;
    allot_advice_get_summary(advice, &summary);
    alloti_html_rows_begin(json, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (uint32_t i = 0; i < allot_advice_row_count(advice); i++) {
        if (!alloti_advice_shows(advice, i, ROWS)) {
            continue;
        }
        allot_advice_row row;
        allot_advice_get_row(advice, i, &row);
        row.has_saving = row.has_saving && i != 0;
        alloti_html_row_begin(json, row.finishes ? "good" : "bad");
        put_row(&row,
                i == 0         ? " (now)"
                : row.is_tried ? " (asked for)"
                               : "",
                i == 0 || summary.is_complete, json);
        alloti_json_array_end(json);
        alloti_json_put_index(json, "replay", i < replay_count ? i : ALLOT_NONE);
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
}

/** The tone of the answer. */
static const char *level_of(const allot_advice_summary *summary)
{
    switch (summary->verdict) {
    case ALLOT_ADVICE_VERDICT_CHANGE:
        return summary->is_tight ? "warn" : "good";
    case ALLOT_ADVICE_VERDICT_KEEP:
        return summary->is_tight ? "warn" : "info";
    case ALLOT_ADVICE_VERDICT_NOTHING_HELPS:
    case ALLOT_ADVICE_VERDICT_NOT_FOUND:
        return "bad";
    case ALLOT_ADVICE_VERDICT_CANNOT_SAY:
        break;
    }
    return "warn";
}

static void write_verdict(const allot_advice *advice, const allot_advice_summary *summary,
                          alloti_json *json)
{
    alloti_html_verdict_begin(json, level_of(summary), "%s", allot_advice_headline(advice));
    alloti_html_sentence(json, "%s", allot_advice_reason(advice));
    alloti_html_verdict_end(json);
}

static void write_advice(const allot_advice *advice, const allot_advice_summary *summary,
                         uint32_t replay_count, alloti_json *json)
{
    char text[ALLOTI_ASSIGNMENT_MAX];
    alloti_json_object_begin(json, "advice");
    if (summary->recommended != NULL) {
        alloti_json_put_string(json, "setting", alloti_setting_assign(summary->recommended, text));
    }
    alloti_json_put_index(json, "recommended", summary->recommended_row);
    write_rows(advice, replay_count, json);
    alloti_json_array_begin(json, "notes");
    if (allot_advice_strategy_count(advice) > 0) {
        alloti_json_put_string(json, NULL, ALLOTI_STRATEGIES_TITLE ": " ALLOTI_STRATEGIES_REMARK);
    }
    alloti_json_put_string(json, NULL, alloti_advice_columns(summary).text);
    alloti_json_put_string(json, NULL, alloti_advice_order(summary).text);
    if (summary->is_checked) {
        snprintf(text, sizeof text, "The model places %llu of %llu recorded blocks as recorded.",
                 (unsigned long long)summary->placements_equal,
                 (unsigned long long)summary->placements);
        alloti_json_put_string(json, NULL, text);
    }
    for (uint32_t i = 0; i < allot_advice_note_count(advice); i++) {
        alloti_json_put_string(json, NULL, allot_advice_note(advice, i));
    }
    alloti_json_array_end(json);
    alloti_json_object_end(json);
}

/** allot's own strategies, apart from the settings. */
static void write_strategies(const allot_advice *advice, const allot_advice_summary *summary,
                             alloti_json *json)
{
    alloti_json_object_begin(json, NULL);
    alloti_json_put_string(json, "title", ALLOTI_STRATEGIES_TITLE);
    alloti_html_column columns[sizeof COLUMNS / sizeof COLUMNS[0]];
    memcpy(columns, COLUMNS, sizeof columns);
    columns[0].name = "model";
    alloti_html_rows_begin(json, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < allot_advice_strategy_count(advice); i++) {
        allot_advice_row row;
        allot_advice_get_strategy(advice, i, &row);
        alloti_html_row_begin(json, row.finishes ? "good" : "bad");
        put_row(&row, "", summary->is_complete, json);
        alloti_html_row_end(json);
    }
    alloti_json_array_end(json);
    alloti_json_object_end(json);
}

/** Where memory goes, if a setting alone does not help. */
static void write_lines(const allot_advice *advice, alloti_json *json)
{
    static const alloti_html_column columns[] = {
        {"Code line", "text"}, {"Holds", "bytes"}, {"Blocks", "number"}};
    alloti_json_object_begin(json, NULL);
    alloti_json_put_string(json, "title", "Lines of code that hold most when most is needed");
    alloti_html_rows_begin(json, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < allot_advice_line_count(advice); i++) {
        allot_advice_line line;
        allot_advice_get_line(advice, i, &line);
        alloti_html_row_begin(json, NULL);
        alloti_json_put_string(json, NULL, line.text);
        alloti_json_put_u64(json, NULL, line.bytes);
        alloti_json_put_u64(json, NULL, line.count);
        alloti_html_row_end(json);
    }
    alloti_json_array_end(json);
    alloti_json_object_end(json);
}

/** Reserved bytes of a replay as steps. */
static void write_samples(const allot_replay_result *result, alloti_html_page *page)
{
    for (unsigned c = 0; c < 2; c++) {
        alloti_pack_column column = alloti_pack_begin(&page->pack, true);
        for (uint32_t i = 0; i < result->sample_count; i++) {
            const allot_replay_sample *const sample = &result->samples[i];
            alloti_pack_put(&column, c == 0 ? sample->event + 1 : sample->reserved);
        }
        alloti_pack_end(&column, &page->json, c == 0 ? "point" : "bytes");
    }
}

static allot_status write_replay(const allot_requests *requests, const allot_advice_row *row,
                                 bool is_present, const allot_advice_summary *summary,
                                 alloti_html_page *page)
{
    char model[ALLOT_TORCH_CONF_TEXT_MAX + 16];
    snprintf(model, sizeof model, "torch%s%s", *row->setting != '\0' ? ":" : "", row->setting);
    const allot_replay_options options = {.struct_size = sizeof options,
                                          .model = model,
                                          .limit = summary->limit,
                                          .fraction = summary->fraction,
                                          .sample_count = SAMPLES};
    allot_replay_result *result = NULL;
    const allot_status status = allot_replay_run(requests, &options, &result);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_json_object_begin(&page->json, NULL);
    alloti_json_put_string(&page->json, "name", alloti_setting_text(row->setting));
    alloti_json_put_bool(&page->json, "recorded", is_present);
    if (result->oom_count != 0) {
        alloti_json_put_u64(&page->json, "oom_event", result->oom_event);
    }
    write_samples(result, page);
    alloti_json_object_end(&page->json);
    allot_replay_result_destroy(result);
    return ALLOT_STATUS_OK;
}

static allot_status write_replays(const allot_history *history, const allot_advice *advice,
                                  uint32_t count, const allot_advice_summary *summary,
                                  alloti_html_page *page)
{
    allot_requests *requests = NULL;
    allot_status status = ALLOT_STATUS_OK;
    if (count != 0) {
        status = allot_requests_create(allot_history_trace(history), allot_history_device(history),
                                       &requests, NULL);
    }
    alloti_json_array_begin(&page->json, "replays");
    for (uint32_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        allot_advice_row row;
        allot_advice_get_row(advice, i, &row);
        status = write_replay(requests, &row, i == 0, summary, page);
    }
    alloti_json_array_end(&page->json);
    allot_requests_destroy(requests);
    return status;
}

allot_status allot_html_advise(const allot_history *history, const allot_advice *advice,
                               const allot_html_options *given, const allot_sink *sink)
{
    allot_html_options options;
    allot_status status = alloti_html_options_take(given, &options);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_advice_summary summary;
    allot_advice_get_summary(advice, &summary);
    const uint32_t all = allot_advice_row_count(advice);
    const uint32_t replay_count = all < REPLAYS ? all : REPLAYS;
    alloti_html_page page;
    alloti_html_subject subject;
    alloti_html_page_begin(&page, "advise", options.name);
    status = alloti_html_subject_init(&subject, history, &options);
    if (status == ALLOT_STATUS_OK) {
        write_verdict(advice, &summary, &page.json);
        write_advice(advice, &summary, replay_count, &page.json);
        alloti_json_array_begin(&page.json, "tables");
        write_lines(advice, &page.json);
        write_strategies(advice, &summary, &page.json);
        alloti_json_array_end(&page.json);
        status = write_replays(history, advice, replay_count, &summary, &page);
    }
    if (status == ALLOT_STATUS_OK) {
        const uint64_t limit = options.limit != 0 ? options.limit : summary.limit;
        status = alloti_html_write_one(&subject, limit, alloti_html_first_event(history), &options,
                                       &page);
    }
    alloti_html_subject_fini(&subject);
    return alloti_html_page_finish(&page, status, sink);
}
