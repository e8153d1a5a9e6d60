/* SPDX-License-Identifier: MIT */
/**
 * Lines of text out of a source, and the fields of a line of comma-separated values.
 */
#ifndef ALLOTI_TRACE_LINES_H
#define ALLOTI_TRACE_LINES_H

#include "core/progress.h"
#include "trace/source.h"

/** A cursor over lines. Set source and progress, zero the rest. */
typedef struct alloti_lines {
    alloti_source *source;
    const alloti_progress *progress; /**< NULL allowed. */
    bool has_quotes;                 /**< A line end between double quotes does not end the line. */
    uint64_t number;                 /**< Of the line returned last, from 1. */
    uint64_t offset;                 /**< Byte at which that line begins. */
    const char *text;  /**< Without its line end ("\n" or "\r\n"); valid until the next call. */
    size_t length;     /**< Bytes at `text`. */
    size_t unconsumed; /**< Bytes of that line which the source still shows. */
    bool is_end;       /**< There was no further line. */
} alloti_lines;

/** Go to the next line, or set is_end. */
ALLOT_NODISCARD allot_status alloti_lines_next(alloti_lines *lines);

/** ALLOT_STATUS_FORMAT with "line N (byte M): " in front of the text. */
allot_status alloti_lines_fail(const alloti_lines *lines, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/**
 * Lines of the first bytes of a file, for recognising it: cuts a line off [*at, end) and moves *at
 * behind it. false where nothing is left.
 */
bool alloti_head_line(const char **at, const char *end, const char **text, size_t *length);

/** Whether one of the lines of these first bytes [size] is like that. */
bool alloti_head_any(const uint8_t *head, size_t size,
                     bool (*is_like)(const char *text, size_t length));

/** Whether `part` occurs in text [length]. */
bool alloti_text_contains(const char *text, size_t length, const char *part);

/** First character that is no white space; NUL if there is none. */
char alloti_text_first(const char *text, size_t length);

/** A piece of a line. */
typedef struct alloti_field {
    const char *text;
    size_t length;
    bool is_quoted; /**< Stood between double quotes, which are not part of the text. */
} alloti_field;

/** Whether the field is this text. */
bool alloti_field_is(const alloti_field *field, const char *text);

/** The field without blanks around it. */
alloti_field alloti_field_trim(alloti_field field);

/**
 * Split a line at commas into at most `max` fields [max]; quotes mean nothing.
 *
 * @return Number of fields; max + 1 if there are more.
 */
size_t alloti_fields_split(const char *text, size_t length, alloti_field *fields, size_t max);

/**
 * The same with double quotes: a quoted field may hold commas, line ends and doubled quotes, which
 * are written once into `scratch` [length].
 *
 * @return Number of fields; max + 1 if there are more; 0 if a quote is not closed or stands inside
 *         a field.
 */
size_t alloti_fields_split_quoted(const char *text, size_t length, char *scratch,
                                  alloti_field *fields, size_t max);

#endif /* ALLOTI_TRACE_LINES_H */
