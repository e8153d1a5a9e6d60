/* SPDX-License-Identifier: MIT */
/* A page whose verdict and tables the caller tells, around a history or without one. */
#include <string.h>

#include "core/options.h"
#include "core/status.h"
#include "report/html_write.h"

static const char *text_of(const char *text)
{
    return text == NULL ? "" : text;
}

static bool is_level(const char *level)
{
    static const char *const levels[] = {"good", "warn", "bad", "info"};
    for (size_t i = 0; level != NULL && i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(level, levels[i]) == 0) {
            return true;
        }
    }
    return false;
}

static allot_status take_story(const allot_html_story *given, allot_html_story *out)
{
    const allot_status status = given == NULL
                                    ? alloti_fail(ALLOT_STATUS_INVALID, "a page needs its story")
                                    : alloti_options_take(given, sizeof *out, out);
    if (status == ALLOT_STATUS_OK &&
        (out->verb == NULL || out->headline == NULL || !is_level(out->level))) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "a story needs a verb, a headline and a level of good, warn, bad, info");
    }
    return status;
}

static void put_verdict(const allot_html_story *story, alloti_json *json)
{
    alloti_html_verdict_begin(json, story->level, "%s", story->headline);
    for (uint32_t i = 0; i < story->sentence_count; i++) {
        alloti_html_sentence(json, "%s", text_of(story->sentences[i]));
    }
    alloti_html_verdict_end(json);
}

static void put_table(const allot_html_facts *table, alloti_json *json)
{
    static const alloti_html_column COLUMNS[] = {{"", "text"}, {" ", "text"}, {"  ", "text"}};
    alloti_json_object_begin(json, NULL);
    alloti_json_put_string(json, "title", text_of(table->title));
    alloti_json_put_bool(json, "first", table->is_first);
    alloti_html_rows_begin(json, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (uint32_t i = 0; i < table->count; i++) {
        alloti_html_row_begin(json, NULL);
        alloti_json_put_string(json, NULL, text_of(table->facts[i].name));
        alloti_json_put_string(json, NULL, text_of(table->facts[i].value));
        alloti_json_put_string(json, NULL, text_of(table->facts[i].remark));
        alloti_html_row_end(json);
    }
    alloti_json_array_end(json);
    alloti_json_object_end(json);
}

static void put_column(alloti_html_page *page, const char *key, const uint64_t *values,
                       uint64_t count, uint64_t add)
{
    alloti_pack_column column = alloti_pack_begin(&page->pack, true);
    for (uint64_t i = 0; i < count; i++) {
        alloti_pack_put(&column, values[i] + add);
    }
    alloti_pack_end(&column, &page->json, key);
}

/** Lines over the events; the state after event e is point e + 1. */
static void put_series(const allot_html_story *story, alloti_html_page *page)
{
    alloti_json_put_string(&page->json, "series_title", text_of(story->series_title));
    alloti_json_array_begin(&page->json, "series");
    for (uint32_t i = 0; i < story->series_count; i++) {
        const allot_html_series *const series = &story->series[i];
        alloti_json_object_begin(&page->json, NULL);
        alloti_json_put_string(&page->json, "name", text_of(series->name));
        put_column(page, "point", series->events, series->count, 1);
        put_column(page, "bytes", series->bytes, series->count, 0);
        alloti_json_object_end(&page->json);
    }
    alloti_json_array_end(&page->json);
}

/** More pieces than a picture has room for. */
enum { SPANS_MAX = 1 << 16 };

/** Bytes of spans from *at on that lie in [begin, end); *at goes on to the first that may lie in
 * what follows. */
static uint64_t used_in(const allot_html_map *map, uint64_t begin, uint64_t end, uint32_t *at)
{
    uint64_t used = 0;
    for (uint32_t i = *at; i < map->span_count && map->spans[i].begin < end; i++) {
        const uint64_t from = map->spans[i].begin > begin ? map->spans[i].begin : begin;
        const uint64_t to = map->spans[i].end < end ? map->spans[i].end : end;
        used += to > from ? to - from : 0;
        *at = map->spans[i].end <= end ? i + 1 : i;
    }
    return used;
}

/** Begin and end of each span. Of too many those in one cell of the picture become one. */
static void put_spans(const allot_html_map *map, alloti_html_page *page)
{
    const uint64_t cell = map->size / SPANS_MAX + 1;
    alloti_pack_column column = alloti_pack_begin(&page->pack, true);
    for (uint32_t i = 0; map->span_count <= SPANS_MAX && i < map->span_count; i++) {
        alloti_pack_put(&column, map->spans[i].begin);
        alloti_pack_put(&column, map->spans[i].end);
    }
    for (uint32_t i = 0, at = 0; map->span_count > SPANS_MAX && i < SPANS_MAX; i++) {
        const uint64_t begin = i * cell;
        const uint64_t used = used_in(map, begin, begin + cell, &at);
        if (used != 0) {
            alloti_pack_put(&column, begin);
            alloti_pack_put(&column, begin + used);
        }
    }
    alloti_pack_end(&column, &page->json, "spans");
}

static void put_maps(const allot_html_story *story, alloti_html_page *page)
{
    alloti_json_array_begin(&page->json, "maps");
    for (uint32_t i = 0; i < story->map_count; i++) {
        const allot_html_map *const map = &story->maps[i];
        alloti_json_object_begin(&page->json, NULL);
        alloti_json_put_string(&page->json, "title", text_of(map->title));
        alloti_json_put_u64(&page->json, "size", map->size);
        put_column(page, "segments", map->segments, map->segment_count, 0);
        put_spans(map, page);
        alloti_json_object_end(&page->json);
    }
    alloti_json_array_end(&page->json);
}

static allot_status put_trace(const allot_history *history, uint32_t event,
                              const allot_html_options *options, alloti_html_page *page)
{
    alloti_html_subject subject = {0};
    allot_status status = ALLOT_STATUS_OK;
    alloti_json_array_begin(&page->json, "traces");
    if (history != NULL) {
        status = alloti_html_subject_init(&subject, history, options);
    }
    if (history != NULL && status == ALLOT_STATUS_OK) {
        status = alloti_html_subject_write(&subject, options->name, options->limit, event, options,
                                           page);
    }
    alloti_json_array_end(&page->json);
    alloti_html_subject_fini(&subject);
    return status;
}

allot_status allot_html_tell(const allot_history *history, uint32_t event,
                             const allot_html_story *given_story, const allot_html_options *given,
                             const allot_sink *sink)
{
    allot_html_options options;
    allot_html_story story;
    allot_status status = alloti_html_options_take(given, &options);
    if (status == ALLOT_STATUS_OK) {
        status = take_story(given_story, &story);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_html_page page;
    alloti_html_page_begin(&page, story.verb, options.name);
    put_verdict(&story, &page.json);
    alloti_json_array_begin(&page.json, "tables");
    for (uint32_t i = 0; i < story.table_count; i++) {
        put_table(&story.tables[i], &page.json);
    }
    if (history != NULL) {
        alloti_html_settings_write(allot_history_trace(history), &page.json);
    }
    alloti_json_array_end(&page.json);
    if (history != NULL && story.series_count != 0) {
        put_series(&story, &page);
    }
    put_maps(&story, &page);
    status = put_trace(history, event, &options, &page);
    return alloti_html_page_finish(&page, status, sink);
}
