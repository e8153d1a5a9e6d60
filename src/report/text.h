/* SPDX-License-Identifier: MIT */
/**
 * Text for people: formatted writing to a sink with colours that can be off, sizes and shares. The
 * first failure sticks in `status`; callers write on and hand it back at the end.
 */
#ifndef ALLOTI_REPORT_TEXT_H
#define ALLOTI_REPORT_TEXT_H

#include <allot/report.h>

#include "core/size_text.h"

typedef enum alloti_style {
    ALLOTI_STYLE_PLAIN,
    ALLOTI_STYLE_HEADING,
    ALLOTI_STYLE_GOOD,
    ALLOTI_STYLE_BAD,
    ALLOTI_STYLE_DIM,
} alloti_style;

typedef struct alloti_text {
    const allot_sink *sink;
    bool use_color;
    uint32_t width; /**< Columns of a line. */
    allot_status status;
} alloti_text;

/** Begin, as the options say. */
alloti_text alloti_text_begin(const allot_sink *sink, const allot_report_options *options);

/** Rows of a ranking that the options ask for. */
uint32_t alloti_report_top(const allot_report_options *options);

/** Bytes as they are. */
void alloti_text_write(alloti_text *text, const char *data, size_t size);

void alloti_text_printf(alloti_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** The same in a style. */
void alloti_text_style(alloti_text *text, alloti_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Words filled into lines of the text's width, each line after the first begun with `indent`. */
void alloti_text_wrap(alloti_text *text, const char *indent, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The same where `column` columns of the first line are written already. */
void alloti_text_wrap_from(alloti_text *text, size_t column, const char *indent, const char *format,
                           ...) __attribute__((format(printf, 4, 5)));

#endif /* ALLOTI_REPORT_TEXT_H */
