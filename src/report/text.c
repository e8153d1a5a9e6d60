/* SPDX-License-Identifier: MIT */
#include "report/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "core/utf8.h"

enum { WIDTH_DEFAULT = 100, WIDTH_MIN = 40, TOP_DEFAULT = 10 };

alloti_text alloti_text_begin(const allot_sink *sink, const allot_report_options *options)
{
    alloti_text text = {.sink = sink,
                        .use_color = options->use_color,
                        .width = options->width == 0 ? WIDTH_DEFAULT : options->width};
    text.width = text.width < WIDTH_MIN ? WIDTH_MIN : text.width;
    return text;
}

uint32_t alloti_report_top(const allot_report_options *options)
{
    return options->top == 0 ? TOP_DEFAULT : options->top;
}

void alloti_text_write(alloti_text *text, const char *data, size_t size)
{
    if (text->status == ALLOT_STATUS_OK && size != 0) {
        text->status = text->sink->write(text->sink->context, data, size);
    }
}

/* The formatted text, to be freed; NULL after noting the failure. */
static char *format_text(alloti_text *text, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
static char *format_text(alloti_text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *const buffer = size < 0 ? NULL : malloc((size_t)size + 1);
    if (buffer == NULL) {
        if (text->status == ALLOT_STATUS_OK) {
            text->status = alloti_fail_memory(size < 0 ? 0 : (uint64_t)size + 1);
        }
        return NULL;
    }
    vsnprintf(buffer, (size_t)size + 1, format, args);
    alloti_utf8_disarm(buffer);
    return buffer;
}

void alloti_text_printf(alloti_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *const line = format_text(text, format, args);
    va_end(args);
    if (line != NULL) {
        alloti_text_write(text, line, strlen(line));
    }
    free(line);
}

void alloti_text_style(alloti_text *text, alloti_style style, const char *format, ...)
{
    static const char *const CODES[] = {"", "\033[1m", "\033[32m", "\033[31m", "\033[2m"};
    const bool is_colored = text->use_color && style != ALLOTI_STYLE_PLAIN;
    va_list args;
    va_start(args, format);
    char *const line = format_text(text, format, args);
    va_end(args);
    if (line == NULL) {
        return;
    }
    if (is_colored) {
        alloti_text_write(text, CODES[style], strlen(CODES[style]));
    }
    alloti_text_write(text, line, strlen(line));
    if (is_colored) {
        alloti_text_write(text, "\033[0m", 4);
    }
    free(line);
}

/* Fill words into lines; NULL stands for a text that could not be made. */
static void fill(alloti_text *text, size_t column, const char *indent, const char *words)
{
    bool is_first = true;
    for (const char *word = words; word != NULL && *word != '\0';) {
        const size_t size = strcspn(word, " ");
        const size_t columns = alloti_utf8_columns(word, size);
        if (!is_first && column + 1 + columns > text->width) {
            alloti_text_write(text, "\n", 1);
            alloti_text_write(text, indent, strlen(indent));
            column = strlen(indent);
        } else if (!is_first) {
            alloti_text_write(text, " ", 1);
            column++;
        }
        alloti_text_write(text, word, size);
        column += columns;
        is_first = false;
        word += size;
        word += *word == ' ';
    }
    alloti_text_write(text, "\n", 1);
}

void alloti_text_wrap(alloti_text *text, const char *indent, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *const words = format_text(text, format, args);
    va_end(args);
    fill(text, 0, indent, words);
    free(words);
}

void alloti_text_wrap_from(alloti_text *text, size_t column, const char *indent, const char *format,
                           ...)
{
    va_list args;
    va_start(args, format);
    char *const words = format_text(text, format, args);
    va_end(args);
    fill(text, column, indent, words);
    free(words);
}
