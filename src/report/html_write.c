/* SPDX-License-Identifier: MIT */
/* What the pages share. */
#include "report/html_write.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/options.h"
#include "core/size_math.h"

enum { SENTENCE_BYTES = 2048 };

/* A page is passed on: the folders of the machine that made it are nobody's business. */
static const char *file_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

allot_status alloti_html_options_take(const allot_html_options *given, allot_html_options *out)
{
    const allot_status status = alloti_options_take(given, sizeof *out, out);
    if (status == ALLOT_STATUS_OK) {
        out->name = out->name != NULL ? file_name(out->name) : "trace";
        out->name_b = out->name_b != NULL ? file_name(out->name_b) : "second trace";
    }
    return status;
}

allot_status alloti_html_subject_init(alloti_html_subject *subject, const allot_history *history,
                                      const allot_html_options *options)
{
    *subject = (alloti_html_subject){.history = history};
    if (options->progress != NULL &&
        !options->progress(options->progress_context, "drawing", 0, 0)) {
        return ALLOT_STATUS_CANCELLED;
    }
    allot_status status =
        allot_lines_create(allot_history_trace(history), options->lines, &subject->lines);
    if (status == ALLOT_STATUS_OK) {
        status = allot_categories_create(history, &subject->categories);
    }
    return status;
}

void alloti_html_subject_fini(alloti_html_subject *subject)
{
    allot_categories_destroy(subject->categories);
    allot_lines_destroy(subject->lines);
    *subject = (alloti_html_subject){0};
}

/* What was held and what the driver had left at the last out-of-memory; 0 without one. */
static uint64_t infer_limit(const allot_history *history)
{
    allot_events events;
    allot_trace_get_events(allot_history_trace(history), allot_history_device(history), &events);
    for (uint64_t i = events.count; i-- > 0;) {
        if (events.kind[i] == ALLOT_EVENT_OOM) {
            uint64_t sum = 0;
            const uint64_t held = allot_history_value(history, ALLOT_MEASURE_RESERVED, (uint32_t)i);
            return alloti_add(held, events.addr[i], &sum) && held != 0 ? sum : 0;
        }
    }
    return 0;
}

allot_status alloti_html_subject_write(const alloti_html_subject *subject, const char *name,
                                       uint64_t limit, uint32_t event,
                                       const allot_html_options *options, alloti_html_page *page)
{
    const alloti_html_trace what = {.history = subject->history,
                                    .lines = subject->lines,
                                    .categories = subject->categories,
                                    .name = name,
                                    .limit = limit != 0 ? limit : infer_limit(subject->history),
                                    .block_max = options->block_max,
                                    .event = event};
    return alloti_html_trace_write(&what, page);
}

allot_status alloti_html_write_one(const alloti_html_subject *subject, uint64_t limit,
                                   uint32_t event, const allot_html_options *options,
                                   alloti_html_page *page)
{
    alloti_json_array_begin(&page->json, "traces");
    const allot_status status =
        alloti_html_subject_write(subject, options->name, limit, event, options, page);
    alloti_json_array_end(&page->json);
    return status;
}

uint32_t alloti_html_first_event(const allot_history *history)
{
    uint32_t event = ALLOT_NONE;
    if (allot_history_find(history, "oom", &event) != ALLOT_STATUS_OK) {
        event = allot_history_peak(history, ALLOT_MEASURE_ALLOCATED).event;
    }
    return event;
}

void alloti_html_verdict_begin(alloti_json *json, const char *level, const char *format, ...)
{
    char text[SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    alloti_json_object_begin(json, "verdict");
    alloti_json_put_string(json, "level", level);
    alloti_json_put_string(json, "headline", text);
    alloti_json_array_begin(json, "text");
}

void alloti_html_sentence(alloti_json *json, const char *format, ...)
{
    char text[SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    alloti_json_put_string(json, NULL, text);
}

void alloti_html_verdict_end(alloti_json *json)
{
    alloti_json_array_end(json);
    alloti_json_object_end(json);
}

void alloti_html_rows_begin(alloti_json *json, const alloti_html_column *columns, size_t count)
{
    alloti_json_array_begin(json, "columns");
    for (size_t i = 0; i < count; i++) {
        alloti_json_object_begin(json, NULL);
        alloti_json_put_string(json, "name", columns[i].name);
        alloti_json_put_string(json, "kind", columns[i].kind);
        alloti_json_object_end(json);
    }
    alloti_json_array_end(json);
    alloti_json_array_begin(json, "rows");
}

void alloti_html_row_begin(alloti_json *json, const char *state)
{
    alloti_json_object_begin(json, NULL);
    alloti_json_put_string(json, "state", state);
    alloti_json_array_begin(json, "cells");
}

void alloti_html_row_end(alloti_json *json)
{
    alloti_json_array_end(json);
    alloti_json_object_end(json);
}
