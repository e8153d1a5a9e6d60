/* SPDX-License-Identifier: MIT */
/** What the pages share: their traces, sentences and tables. */
#ifndef ALLOTI_REPORT_HTML_WRITE_H
#define ALLOTI_REPORT_HTML_WRITE_H

#include "report/html_trace.h"

/** A history with its lines and categories, which the page makes itself. */
typedef struct alloti_html_subject {
    const allot_history *history;
    allot_lines *lines;
    allot_categories *categories;
} alloti_html_subject;

/** Take over what the caller gave (core/options.h) and fill in the names that it left out. */
ALLOT_NODISCARD allot_status alloti_html_options_take(const allot_html_options *given,
                                                      allot_html_options *out);

/** Released with alloti_html_subject_fini(), also after a failure. */
ALLOT_NODISCARD allot_status alloti_html_subject_init(alloti_html_subject *subject,
                                                      const allot_history *history,
                                                      const allot_html_options *options);
void alloti_html_subject_fini(alloti_html_subject *subject);

/** An element of the open array "traces". */
ALLOT_NODISCARD allot_status alloti_html_subject_write(const alloti_html_subject *subject,
                                                       const char *name, uint64_t limit,
                                                       uint32_t event,
                                                       const allot_html_options *options,
                                                       alloti_html_page *page);

/** The only trace of a page: the whole array "traces". */
ALLOT_NODISCARD allot_status alloti_html_write_one(const alloti_html_subject *subject,
                                                   uint64_t limit, uint32_t event,
                                                   const allot_html_options *options,
                                                   alloti_html_page *page);

/** The last out-of-memory, else the peak: where a page opens. */
uint32_t alloti_html_first_event(const allot_history *history);

/** Begin "verdict": `level` is "bad", "warn", "good" or "info"; further sentences go into the open
 * array "text" as strings, then alloti_html_verdict_end(). */
void alloti_html_verdict_begin(alloti_json *json, const char *level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** One more sentence. */
void alloti_html_sentence(alloti_json *json, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void alloti_html_verdict_end(alloti_json *json);

/** A column of a ready table; kinds: text, code, bytes, change, number, duration (ns). */
typedef struct alloti_html_column {
    const char *name;
    const char *kind;
} alloti_html_column;

/** "columns" and the opening of "rows", into the open object. */
void alloti_html_rows_begin(alloti_json *json, const alloti_html_column *columns, size_t count);
/** Begin one row: opens "cells"; `state` is "good", "bad", "default" (folded away) or NULL. */
void alloti_html_row_begin(alloti_json *json, const char *state);
void alloti_html_row_end(alloti_json *json);

/** The recorded settings: an element of the open array "tables". */
void alloti_html_settings_write(const allot_trace *trace, alloti_json *json);

#endif /* ALLOTI_REPORT_HTML_WRITE_H */
