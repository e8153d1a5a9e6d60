/* SPDX-License-Identifier: MIT */
/* JSON, tables and text of reports. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "report/json.h"
#include "report/table.h"
#include "support/check.h"
#include "support/sample_trace.h"

enum { BUFFER = 65536 };

/* Where a report goes; it can fail after some bytes. */
typedef struct target {
    char text[BUFFER];
    size_t size;
    size_t size_max;
} target;

static allot_status take(void *context, const void *data, size_t size)
{
    target *const t = context;
    if (t->size + size >= t->size_max) {
        return alloti_fail(ALLOT_STATUS_IO, "no space left");
    }
    memcpy(t->text + t->size, data, size);
    t->size += size;
    t->text[t->size] = '\0';
    return ALLOT_STATUS_OK;
}

static target *target_create(size_t size_max, allot_sink *sink)
{
    target *const t = calloc(1, sizeof *t);
    if (!CHECK(t != NULL)) {
        abort();
    }
    t->size_max = size_max;
    *sink = (allot_sink){.write = take, .context = t};
    return t;
}

static void json_keeps_64_bits_and_mends_strings(void)
{
    allot_sink sink;
    target *const t = target_create(BUFFER, &sink);
    alloti_json json;
    alloti_json_begin(&json, &sink, "allot.test/1");
    alloti_json_put_u64(&json, "most", UINT64_MAX);
    alloti_json_put_i64(&json, "least", INT64_MIN);
    alloti_json_put_double(&json, "half", 0.5);
    alloti_json_put_double(&json, "nan", (double)NAN);
    alloti_json_put_index(&json, "none", ALLOT_NONE);
    alloti_json_put_string(&json, "bad",
                           "a\xff"
                           "b\x1b\"");
    alloti_json_put_string(&json, "null", NULL);
    alloti_json_array_begin(&json, "list");
    alloti_json_put_bool(&json, NULL, true);
    alloti_json_array_end(&json);
    CHECK_OK(alloti_json_end(&json));
    CHECK_CONTAINS(t->text, "{\n  \"schema\": \"allot.test/1\"");
    CHECK_CONTAINS(t->text, "\"most\": 18446744073709551615");
    CHECK_CONTAINS(t->text, "\"least\": -9223372036854775808");
    CHECK_CONTAINS(t->text, "\"half\": 0.5");
    CHECK_CONTAINS(t->text, "\"nan\": null");
    CHECK_CONTAINS(t->text, "\"none\": null");
    CHECK_CONTAINS(t->text, "\"bad\": \"a\xef\xbf\xbd"
                            "b\\u001B\\\"\"");
    CHECK_CONTAINS(t->text, "\"null\": null");
    free(t);
}

static void json_hands_the_first_failure_on(void)
{
    allot_sink sink;
    target *const t = target_create(40, &sink);
    alloti_json json;
    alloti_json_begin(&json, &sink, "allot.test/1");
    for (uint64_t i = 0; i < 10; i++) {
        alloti_json_put_u64(&json, "x", i);
    }
    CHECK_EQ(alloti_json_end(&json), ALLOT_STATUS_IO);
    free(t);
}

static const alloti_column COLUMNS[] = {
    {"size", ALLOTI_COLUMN_RIGHT}, {"name", ALLOTI_COLUMN_LEFT}, {"path", ALLOTI_COLUMN_FLEX}};

static void tables_align_by_terminal_columns(void)
{
    allot_sink sink;
    target *const t = target_create(BUFFER, &sink);
    const allot_report_options options = {.struct_size = sizeof options};
    alloti_text text = alloti_text_begin(&sink, &options);
    alloti_table table;
    alloti_table_init(&table, COLUMNS, 3);
    static const char *const CELLS[] = {"1 B", "\xe6\xbc\xa2", "x", "12 MiB", "ab", "y"};
    for (size_t i = 0; i < 6; i++) {
        alloti_table_cell(&table, "%s", CELLS[i]);
    }
    alloti_table_write(&table, &text);
    CHECK_OK(text.status);
    CHECK_STR(t->text, "    size  name  path\n"
                       "     1 B  \xe6\xbc\xa2    x\n"
                       "  12 MiB  ab    y\n");
    free(t);
}

static void a_wide_table_cuts_the_start_of_its_flexible_column(void)
{
    allot_sink sink;
    target *const t = target_create(BUFFER, &sink);
    const allot_report_options options = {.struct_size = sizeof options, .width = 40};
    alloti_text text = alloti_text_begin(&sink, &options);
    alloti_table table;
    alloti_table_init(&table, COLUMNS, 3);
    alloti_table_cell(&table, "1 B");
    alloti_table_cell(&table, "n");
    alloti_table_cell(&table, "/a/very/long/path/that/does/not/fit/train.py:88");
    alloti_table_write(&table, &text);
    CHECK_CONTAINS(t->text, "\xe2\x80\xa6");
    CHECK_CONTAINS(t->text, "fit/train.py:88\n");
    for (const char *line = strtok(t->text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        CHECK(strlen(line) <= 40 + 2);
    }
    free(t);
}

static void text_wraps_words_and_colours_on_request(void)
{
    allot_sink sink;
    target *const t = target_create(BUFFER, &sink);
    const allot_report_options options = {
        .struct_size = sizeof options, .width = 40, .use_color = true};
    alloti_text text = alloti_text_begin(&sink, &options);
    alloti_text_style(&text, ALLOTI_STYLE_BAD, "no");
    alloti_text_wrap_from(&text, 2, "    ", "%s",
                          "aaaaaaaaa bbbbbbbbb ccccccccc ddddddddd eeeeeeeee");
    CHECK_STR(t->text, "\033[31mno\033[0maaaaaaaaa bbbbbbbbb ccccccccc\n    ddddddddd eeeeeeeee\n");
    free(t);
}

static void names_cannot_speak_to_the_terminal(void)
{
    allot_sink sink;
    target *const t = target_create(BUFFER, &sink);
    const allot_report_options options = {.struct_size = sizeof options};
    alloti_text text = alloti_text_begin(&sink, &options);
    alloti_text_printf(&text, "%s\n",
                       "a\033]0;x\a\xc2\x9b"
                       "31mb\x7f");
    CHECK_STR(t->text, "a?]0;x???31mb?\n");
    free(t);
}

/* Every report of one trace in one format; the number of bytes written. */
static size_t report_all(const allot_trace *trace, allot_report_format format, size_t size_max,
                         allot_status want)
{
    allot_sink sink;
    target *const t = target_create(size_max, &sink);
    const allot_report_options options = {
        .struct_size = sizeof options, .format = format, .name = "sample"};
    allot_history *history = NULL;
    CHECK_OK(allot_history_create(trace, allot_trace_main_device(trace), NULL, &history));
    CHECK_EQ(allot_report_inspect(trace, ALLOT_NONE, &options, &sink), want);
    uint32_t event = ALLOT_NONE;
    CHECK_OK(allot_history_find(history, "peak", &event));
    for (int by = 0; by <= ALLOT_GROUP_POOL; by++) {
        CHECK_EQ(allot_report_explain(history, event, (allot_group_by)by, &options, &sink, NULL),
                 want);
    }
    const size_t size = t->size;
    allot_history_destroy(history);
    free(t);
    return size;
}

static void every_report_is_written_or_fails_with_its_sink(void)
{
    allot_trace *const trace = sample_trace(true);
    REQUIRE(trace != NULL);
    CHECK(report_all(trace, ALLOT_REPORT_TEXT, BUFFER, ALLOT_STATUS_OK) > 1000);
    CHECK(report_all(trace, ALLOT_REPORT_JSON, BUFFER, ALLOT_STATUS_OK) > 1000);
    CHECK_EQ(report_all(trace, ALLOT_REPORT_TEXT, 1, ALLOT_STATUS_IO), 0);
    CHECK_EQ(report_all(trace, ALLOT_REPORT_JSON, 1, ALLOT_STATUS_IO), 0);
    allot_trace_destroy(trace);
}

static const check_test TESTS[] = {
    {"json_keeps_64_bits_and_mends_strings", json_keeps_64_bits_and_mends_strings},
    {"json_hands_the_first_failure_on", json_hands_the_first_failure_on},
    {"tables_align_by_terminal_columns", tables_align_by_terminal_columns},
    {"a_wide_table_cuts_the_start_of_its_flexible_column",
     a_wide_table_cuts_the_start_of_its_flexible_column},
    {"text_wraps_words_and_colours_on_request", text_wraps_words_and_colours_on_request},
    {"names_cannot_speak_to_the_terminal", names_cannot_speak_to_the_terminal},
    {"every_report_is_written_or_fails_with_its_sink",
     every_report_is_written_or_fails_with_its_sink},
};

CHECK_MAIN(TESTS)
