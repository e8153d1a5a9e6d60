/* SPDX-License-Identifier: MIT */
/*
 * Reads events from comma-separated values (csv.h): allot's own export, or a table that somebody
 * made with these column names, in any order. "device", "event", "stream" and one of the sizes are
 * needed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/number_text.h"
#include "core/status.h"
#include "trace/csv.h"
#include "trace/lines.h"
#include "trace/reader.h"

typedef struct csv_reader {
    alloti_lines lines;
    alloti_builder *builder;
    alloti_csv_column columns[ALLOTI_CSV_COLUMN_COUNT]; /**< By place in the row. */
    bool has[ALLOTI_CSV_COLUMN_COUNT];
    size_t column_count;
    char *scratch; /**< For fields without their quotes, then for parts of a stack. */
    uint64_t scratch_capacity;
    char *part;
    uint64_t part_capacity;
    uint32_t *frames;
    uint64_t frame_capacity;
    uint64_t event_count;
} csv_reader;

static allot_status fail_field(const csv_reader *r, alloti_csv_column column,
                               const alloti_field *field, const char *wanted)
{
    const size_t shown = field->length < 80 ? field->length : 80;
    return alloti_lines_fail(&r->lines, "column \"%s\": %s was expected, not \"%.*s\"",
                             alloti_csv_header(column), wanted, (int)shown, field->text);
}

static allot_status split(csv_reader *r, alloti_field *fields, size_t *count)
{
    const alloti_lines *const lines = &r->lines;
    const allot_status status =
        alloti_array_reserve(&r->scratch, &r->scratch_capacity, lines->length + 1, 1);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    *count = alloti_fields_split_quoted(lines->text, lines->length, r->scratch, fields,
                                        ALLOTI_CSV_COLUMN_COUNT);
    if (*count == 0) {
        return alloti_lines_fail(lines, "a quote is not closed or stands inside a field");
    }
    return ALLOT_STATUS_OK;
}

static bool find_column(const alloti_field *field, alloti_csv_column *out)
{
    for (unsigned i = 0; i < ALLOTI_CSV_COLUMN_COUNT; i++) {
        if (alloti_field_is(field, alloti_csv_header((alloti_csv_column)i))) {
            *out = (alloti_csv_column)i;
            return true;
        }
    }
    return false;
}

static allot_status read_header(csv_reader *r)
{
    alloti_field fields[ALLOTI_CSV_COLUMN_COUNT];
    const allot_status status = split(r, fields, &r->column_count);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (r->column_count > ALLOTI_CSV_COLUMN_COUNT) {
        return alloti_lines_fail(&r->lines, "more than %d columns", ALLOTI_CSV_COLUMN_COUNT);
    }
    for (size_t i = 0; i < r->column_count; i++) {
        if (!find_column(&fields[i], &r->columns[i]) || r->has[r->columns[i]]) {
            const size_t shown = fields[i].length < 80 ? fields[i].length : 80;
            return alloti_lines_fail(&r->lines, "column \"%.*s\" is unknown or stands there twice",
                                     (int)shown, fields[i].text);
        }
        r->has[r->columns[i]] = true;
    }
    if (!r->has[ALLOTI_CSV_DEVICE] || !r->has[ALLOTI_CSV_EVENT] || !r->has[ALLOTI_CSV_STREAM] ||
        r->has[ALLOTI_CSV_SIZE_REQUESTED] == r->has[ALLOTI_CSV_SIZE_ROUNDED]) {
        return alloti_lines_fail(&r->lines, "the columns device, event, stream and one of "
                                            "size_requested and size_rounded are needed");
    }
    return ALLOT_STATUS_OK;
}

/* "gpu:0" */
static bool parse_device(const alloti_field *field, allot_memory_kind *memory, uint32_t *index)
{
    for (unsigned i = 0; i < ALLOTI_CSV_MEMORY_COUNT; i++) {
        const char *const name = alloti_csv_memory(i);
        const size_t length = strlen(name);
        uint64_t number = 0;
        if (field->length > length && memcmp(field->text, name, length) == 0 &&
            field->text[length] == ':' &&
            alloti_number_u64(field->text + length + 1, field->length - length - 1, &number) &&
            number < ALLOT_NONE) {
            *memory = (allot_memory_kind)i;
            *index = (uint32_t)number;
            return true;
        }
    }
    return false;
}

static allot_status read_device(const csv_reader *r, const alloti_field *field, uint32_t *device)
{
    allot_memory_kind memory = ALLOT_MEMORY_DEVICE;
    uint32_t index = 0;
    if (!parse_device(field, &memory, &index)) {
        return fail_field(r, ALLOTI_CSV_DEVICE, field, "gpu:N, pinned:N or cpu:N");
    }
    return alloti_builder_device(r->builder, memory, index, device);
}

static allot_status read_kind(const csv_reader *r, const alloti_field *field,
                              allot_event_kind *kind)
{
    for (unsigned i = 0; i < ALLOT_EVENT_KIND_COUNT; i++) {
        if (alloti_field_is(field, allot_event_kind_name((allot_event_kind)i))) {
            *kind = (allot_event_kind)i;
            return ALLOT_STATUS_OK;
        }
    }
    return fail_field(r, ALLOTI_CSV_EVENT, field, "the name of an event");
}

static allot_status read_category(const csv_reader *r, const alloti_field *field,
                                  allot_category *category)
{
    for (unsigned i = 0; i < ALLOT_CATEGORY_COUNT; i++) {
        if (alloti_field_is(field, allot_category_name((allot_category)i))) {
            *category = (allot_category)i;
            return ALLOT_STATUS_OK;
        }
    }
    return fail_field(r, ALLOTI_CSV_CATEGORY, field, "a category");
}

static allot_status read_u64(const csv_reader *r, alloti_csv_column column,
                             const alloti_field *field, uint64_t *out)
{
    return alloti_number_u64(field->text, field->length, out)
               ? ALLOT_STATUS_OK
               : fail_field(r, column, field, "a number from 0 to 2^64 - 1");
}

/* Empty and not quoted: there is no value. */
static bool is_none(const alloti_field *field)
{
    return field->length == 0 && !field->is_quoted;
}

static allot_status read_string(const csv_reader *r, const alloti_field *field, uint32_t *out)
{
    return is_none(field)
               ? ALLOT_STATUS_OK
               : alloti_builder_intern_string(r->builder, field->text, field->length, out);
}

static allot_status read_pool(const csv_reader *r, const alloti_field *field, uint32_t *out)
{
    if (is_none(field)) {
        return ALLOT_STATUS_OK;
    }
    const char *const colon = memchr(field->text, ':', field->length);
    allot_pool_id id = {0, 0};
    if (colon == NULL ||
        !alloti_number_u64(field->text, (size_t)(colon - field->text), &id.first) ||
        !alloti_number_u64(colon + 1, field->length - (size_t)(colon + 1 - field->text),
                           &id.second)) {
        return fail_field(r, ALLOTI_CSV_POOL, field, "two numbers N:M");
    }
    return alloti_builder_intern_pool(r->builder, id, out);
}

/**
 * Take a part of a stack off the field: what stands before the next "|" or ";" (or the end), its
 * escapes undone, into r->part. `end` receives what ended it, NUL at the end of the field.
 */
static allot_status take_part(csv_reader *r, alloti_field *rest, size_t *length, bool *is_unknown,
                              char *end)
{
    const allot_status status =
        alloti_array_reserve(&r->part, &r->part_capacity, rest->length + 1, 1);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    *length = 0;
    *is_unknown = false;
    *end = '\0';
    size_t i = 0;
    for (; i < rest->length && rest->text[i] != '|' && rest->text[i] != ';'; i++) {
        char c = rest->text[i];
        if (c == '\\' && i + 1 < rest->length) {
            const char escaped = rest->text[++i];
            *is_unknown = *is_unknown || escaped == '0';
            c = escaped == 'n' ? '\n' : escaped == 'r' ? '\r' : escaped;
        }
        r->part[(*length)++] = c;
    }
    if (i < rest->length) {
        *end = rest->text[i++];
    }
    rest->text += i;
    rest->length -= i;
    return ALLOT_STATUS_OK;
}

static allot_status take_name(csv_reader *r, alloti_field *rest, uint32_t *out)
{
    size_t length = 0;
    bool is_unknown = false;
    char end = '\0';
    const alloti_field before = *rest;
    *out = ALLOT_NONE;
    const allot_status status = take_part(r, rest, &length, &is_unknown, &end);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (end != '|') {
        return fail_field(r, ALLOTI_CSV_STACK, &before, "name|file|line");
    }
    return is_unknown ? ALLOT_STATUS_OK
                      : alloti_builder_intern_string(r->builder, r->part, length, out);
}

static allot_status take_frame(csv_reader *r, alloti_field *rest, uint32_t *out, bool *has_more)
{
    allot_frame frame = {.fx = ALLOT_NONE};
    allot_status status = take_name(r, rest, &frame.name);
    if (status == ALLOT_STATUS_OK) {
        status = take_name(r, rest, &frame.filename);
    }
    size_t length = 0;
    bool is_unknown = false;
    char end = '\0';
    const alloti_field before = *rest;
    if (status == ALLOT_STATUS_OK) {
        status = take_part(r, rest, &length, &is_unknown, &end);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t line = 0;
    if (end == '|' || !alloti_number_u64(r->part, length, &line) || line > UINT32_MAX) {
        return fail_field(r, ALLOTI_CSV_STACK, &before, "a line number");
    }
    frame.line = (uint32_t)line;
    *has_more = end == ';';
    return alloti_builder_intern_frame(r->builder, &frame, out);
}

static allot_status read_stack(csv_reader *r, const alloti_field *field, uint32_t *out)
{
    if (is_none(field)) {
        return ALLOT_STATUS_OK;
    }
    alloti_field rest = *field;
    uint64_t count = 0;
    allot_status status = ALLOT_STATUS_OK;
    for (bool has_more = field->length != 0; has_more && status == ALLOT_STATUS_OK; count++) {
        status = alloti_array_reserve(&r->frames, &r->frame_capacity, count + 1, sizeof *r->frames);
        if (status == ALLOT_STATUS_OK) {
            status = take_frame(r, &rest, &r->frames[count], &has_more);
        }
    }
    return status != ALLOT_STATUS_OK
               ? status
               : alloti_builder_intern_stack(r->builder, r->frames, (uint32_t)count, out);
}

static allot_status read_field(csv_reader *r, alloti_csv_column column, const alloti_field *field,
                               alloti_event *event, uint32_t *device)
{
    uint64_t stream = 0;
    allot_status status = ALLOT_STATUS_OK;
    switch (column) {
    case ALLOTI_CSV_DEVICE:
        return read_device(r, field, device);
    case ALLOTI_CSV_EVENT:
        return read_kind(r, field, &event->kind);
    case ALLOTI_CSV_ADDRESS:
        return read_u64(r, column, field, &event->addr);
    case ALLOTI_CSV_SIZE_REQUESTED:
    case ALLOTI_CSV_SIZE_ROUNDED:
        return read_u64(r, column, field, &event->size);
    case ALLOTI_CSV_TIME:
        return is_none(field) || alloti_number_i64(field->text, field->length, &event->time_ns)
                   ? ALLOT_STATUS_OK
                   : fail_field(r, column, field, "a time in nanoseconds");
    case ALLOTI_CSV_STREAM:
        status = read_u64(r, column, field, &stream);
        return status != ALLOT_STATUS_OK
                   ? status
                   : alloti_builder_intern_stream(r->builder, stream, &event->stream);
    case ALLOTI_CSV_POOL:
        return read_pool(r, field, &event->pool);
    case ALLOTI_CSV_CATEGORY:
        return read_category(r, field, &event->category);
    case ALLOTI_CSV_CONTEXT:
        return read_string(r, field, &event->context);
    case ALLOTI_CSV_METADATA:
        return read_string(r, field, &event->metadata);
    case ALLOTI_CSV_TOTAL_ALLOCATED:
        return is_none(field) ? status : read_u64(r, column, field, &event->total_allocated);
    case ALLOTI_CSV_TOTAL_RESERVED:
        return is_none(field) ? status : read_u64(r, column, field, &event->total_reserved);
    case ALLOTI_CSV_STACK:
        return read_stack(r, field, &event->stack);
    case ALLOTI_CSV_COLUMN_COUNT:
        break;
    }
    return status;
}

static allot_status read_row(csv_reader *r)
{
    alloti_field fields[ALLOTI_CSV_COLUMN_COUNT];
    size_t count = 0;
    if (r->lines.length == 0) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = split(r, fields, &count);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (count != r->column_count) {
        return alloti_lines_fail(&r->lines, "%zu fields were expected", r->column_count);
    }
    alloti_event event = ALLOTI_EVENT_INIT;
    uint32_t device = 0;
    for (size_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        status = read_field(r, r->columns[i], &fields[i], &event, &device);
    }
    if (status == ALLOT_STATUS_OK) {
        r->event_count++;
        status = alloti_builder_add_event(r->builder, device, &event);
    }
    return status;
}

static allot_status finish(const csv_reader *r)
{
    if (r->event_count == 0) {
        return alloti_lines_fail(&r->lines, "the table has no rows");
    }
    if (r->has[ALLOTI_CSV_ADDRESS]) {
        alloti_builder_set_trait(r->builder, ALLOT_TRACE_HAS_ADDRESSES);
    }
    if (r->has[ALLOTI_CSV_SIZE_REQUESTED]) {
        alloti_builder_set_trait(r->builder, ALLOT_TRACE_HAS_REQUESTED);
    }
    if (r->has[ALLOTI_CSV_CATEGORY]) {
        alloti_builder_set_trait(r->builder, ALLOT_TRACE_HAS_CATEGORIES);
    }
    return ALLOT_STATUS_OK;
}

static allot_status read_csv(alloti_source *source, const alloti_progress *progress,
                             alloti_builder *builder)
{
    csv_reader r = {.lines = {.source = source, .progress = progress, .has_quotes = true},
                    .builder = builder};
    allot_status status = alloti_lines_next(&r.lines);
    if (status == ALLOT_STATUS_OK) {
        status = read_header(&r);
    }
    while (status == ALLOT_STATUS_OK) {
        status = alloti_lines_next(&r.lines);
        if (status != ALLOT_STATUS_OK || r.lines.is_end) {
            break;
        }
        status = read_row(&r);
    }
    if (status == ALLOT_STATUS_OK) {
        status = finish(&r);
    }
    free(r.scratch);
    free(r.part);
    free(r.frames);
    return status;
}

/* The first line names columns of ours, "device" and "event" among them. */
static bool detect(const uint8_t *head, size_t size)
{
    const char *at = (const char *)head;
    const char *text = NULL;
    size_t length = 0;
    alloti_field fields[ALLOTI_CSV_COLUMN_COUNT];
    if (!alloti_head_line(&at, at + size, &text, &length)) {
        return false;
    }
    const size_t count = alloti_fields_split(text, length, fields, ALLOTI_CSV_COLUMN_COUNT);
    bool has_device = false;
    bool has_event = false;
    for (size_t i = 0; i < count && i < ALLOTI_CSV_COLUMN_COUNT; i++) {
        has_device = has_device || alloti_field_is(&fields[i], "device");
        has_event = has_event || alloti_field_is(&fields[i], "event");
    }
    return has_device && has_event;
}

const alloti_reader alloti_reader_csv = {
    .format = ALLOT_TRACE_FORMAT_CSV, .detect = detect, .read = read_csv};
