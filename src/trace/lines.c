/* SPDX-License-Identifier: MIT */
#include "trace/lines.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/status.h"

enum { WINDOW_MIN = 64 << 10, PROGRESS_LINES = 1 << 14 };

/* First line end in [begin, end) that ends the line; NULL if there is none. */
static const char *find_line_end(const char *begin, const char *end, bool has_quotes)
{
    bool is_inside = false;
    const char *at = begin;
    while (at < end) {
        const char *const found = memchr(at, '\n', (size_t)(end - at));
        if (found == NULL || !has_quotes) {
            return found;
        }
        for (; at < found; at++) {
            is_inside ^= *at == '"';
        }
        if (!is_inside) {
            return found;
        }
        at = found + 1;
    }
    return NULL;
}

static allot_status tell_progress(const alloti_lines *lines)
{
    if (lines->number % PROGRESS_LINES != 0) {
        return ALLOT_STATUS_OK;
    }
    uint64_t done = 0;
    uint64_t total = 0;
    alloti_source_progress(lines->source, &done, &total);
    return alloti_progress_tell(lines->progress, done, total);
}

allot_status alloti_lines_next(alloti_lines *lines)
{
    alloti_source_consume(lines->source, lines->unconsumed);
    lines->unconsumed = 0;
    size_t want = WINDOW_MIN;
    const char *text = NULL;
    const char *end = NULL;
    size_t available = 0;
    for (;;) {
        const uint8_t *data = NULL;
        const allot_status status = alloti_source_fill(lines->source, want, &data, &available);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        text = (const char *)data;
        end = find_line_end(text, text + available, lines->has_quotes);
        if (end != NULL || available < want || want > SIZE_MAX / 2) {
            break;
        }
        want *= 2;
    }
    lines->is_end = available == 0;
    if (lines->is_end) {
        return ALLOT_STATUS_OK;
    }
    lines->offset = alloti_source_offset(lines->source);
    lines->number++;
    lines->text = text;
    lines->length = end == NULL ? available : (size_t)(end - text);
    lines->unconsumed = lines->length + (end != NULL);
    if (lines->length != 0 && text[lines->length - 1] == '\r') {
        lines->length--;
    }
    return tell_progress(lines);
}

allot_status alloti_lines_fail(const alloti_lines *lines, const char *format, ...)
{
    char text[ALLOTI_DETAIL_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return alloti_fail(ALLOT_STATUS_FORMAT, "line %" PRIu64 " (byte %" PRIu64 "): %s",
                       lines->number, lines->offset, text);
}

bool alloti_head_line(const char **at, const char *end, const char **text, size_t *length)
{
    if (*at == end) {
        return false;
    }
    const char *const found = memchr(*at, '\n', (size_t)(end - *at));
    *text = *at;
    *length = (size_t)((found == NULL ? end : found) - *at);
    *at = found == NULL ? end : found + 1;
    if (*length != 0 && (*text)[*length - 1] == '\r') {
        (*length)--;
    }
    return true;
}

bool alloti_head_any(const uint8_t *head, size_t size,
                     bool (*is_like)(const char *text, size_t length))
{
    const char *at = (const char *)head;
    const char *const end = at + size;
    const char *text = NULL;
    size_t length = 0;
    while (alloti_head_line(&at, end, &text, &length)) {
        if (is_like(text, length)) {
            return true;
        }
    }
    return false;
}

bool alloti_text_contains(const char *text, size_t length, const char *part)
{
    const size_t part_length = strlen(part);
    while (length >= part_length) {
        const char *const found = memchr(text, part[0], length - part_length + 1);
        if (found == NULL) {
            return false;
        }
        if (memcmp(found, part, part_length) == 0) {
            return true;
        }
        length -= (size_t)(found + 1 - text);
        text = found + 1;
    }
    return false;
}

char alloti_text_first(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length &&
           (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r')) {
        i++;
    }
    return i < length ? text[i] : '\0';
}

bool alloti_field_is(const alloti_field *field, const char *text)
{
    return field->length == strlen(text) && memcmp(field->text, text, field->length) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

alloti_field alloti_field_trim(alloti_field field)
{
    while (field.length != 0 && is_blank(field.text[0])) {
        field.text++;
        field.length--;
    }
    while (field.length != 0 && is_blank(field.text[field.length - 1])) {
        field.length--;
    }
    return field;
}

size_t alloti_fields_split(const char *text, size_t length, alloti_field *fields, size_t max)
{
    size_t count = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= length; i++) {
        if (i != length && text[i] != ',') {
            continue;
        }
        if (count == max) {
            return max + 1;
        }
        fields[count++] = (alloti_field){.text = text + begin, .length = i - begin};
        begin = i + 1;
    }
    return count;
}

/* Take the quoted field that begins at text[*at]; false if it is malformed. */
static bool take_quoted(const char *text, size_t length, size_t *at, char **scratch,
                        alloti_field *out)
{
    char *const begin = *scratch;
    size_t i = *at + 1;
    for (;; i++) {
        if (i == length) {
            return false;
        }
        if (text[i] == '"') {
            if (i + 1 == length || text[i + 1] != '"') {
                break;
            }
            i++;
        }
        *(*scratch)++ = text[i];
    }
    *out = (alloti_field){.text = begin, .length = (size_t)(*scratch - begin), .is_quoted = true};
    *at = i + 1;
    return *at == length || text[*at] == ',';
}

static bool take_plain(const char *text, size_t length, size_t *at, alloti_field *out)
{
    const size_t begin = *at;
    while (*at < length && text[*at] != ',') {
        if (text[*at] == '"') {
            return false;
        }
        (*at)++;
    }
    *out = (alloti_field){.text = text + begin, .length = *at - begin};
    return true;
}

size_t alloti_fields_split_quoted(const char *text, size_t length, char *scratch,
                                  alloti_field *fields, size_t max)
{
    size_t at = 0;
    for (size_t count = 0;; count++, at++) {
        if (count == max) {
            return max + 1;
        }
        const bool is_quoted = at < length && text[at] == '"';
        const bool is_well = is_quoted ? take_quoted(text, length, &at, &scratch, &fields[count])
                                       : take_plain(text, length, &at, &fields[count]);
        if (!is_well) {
            return 0;
        }
        if (at == length) {
            return count + 1;
        }
    }
}
