/* SPDX-License-Identifier: MIT */
#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/utf8.h"

enum { COLUMNS_MAX = 24, GAP = 2, FLEX_MIN = 16 };

static const char ELLIPSIS[] = "\xe2\x80\xa6";

void alloti_table_init(alloti_table *table, const alloti_column *columns, uint32_t column_count)
{
    *table =
        (alloti_table){.columns = columns,
                       .column_count = column_count < COLUMNS_MAX ? column_count : COLUMNS_MAX};
}

void alloti_table_cell(alloti_table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    const uint64_t room = length < 0 ? 1 : (uint64_t)length + 1;
    if (table->status == ALLOT_STATUS_OK) {
        table->status =
            alloti_array_reserve(&table->bytes, &table->capacity, table->size + room, 1);
    }
    if (table->status == ALLOT_STATUS_OK) {
        table->status = alloti_array_reserve(&table->starts, &table->cell_capacity,
                                             table->cell_count + 1, sizeof *table->starts);
    }
    if (table->status == ALLOT_STATUS_OK) {
        char *const cell = table->bytes + table->size;
        cell[0] = '\0';
        vsnprintf(cell, (size_t)room, format, args);
        alloti_utf8_disarm(cell);
        table->starts[table->cell_count++] = table->size;
        table->size += room;
    }
    va_end(args);
}

static const char *cell_at(const alloti_table *table, uint64_t row, uint32_t column)
{
    return table->bytes + table->starts[row * table->column_count + column];
}

static size_t columns_of(const char *text)
{
    return alloti_utf8_columns(text, strlen(text));
}

static uint64_t row_count(const alloti_table *table)
{
    return table->column_count == 0 ? 0 : table->cell_count / table->column_count;
}

/* Width of each column; the flexible one gives way if the line would be too long. */
static void measure(const alloti_table *table, uint32_t width, size_t *widths)
{
    size_t total = 0;
    uint32_t flex = table->column_count;
    for (uint32_t c = 0; c < table->column_count; c++) {
        widths[c] = columns_of(table->columns[c].title);
        for (uint64_t r = 0; r < row_count(table); r++) {
            const size_t columns = columns_of(cell_at(table, r, c));
            widths[c] = columns > widths[c] ? columns : widths[c];
        }
        total += widths[c] + (c == 0 ? 0 : GAP);
        flex = table->columns[c].kind == ALLOTI_COLUMN_FLEX ? c : flex;
    }
    if (total > width && flex < table->column_count) {
        const size_t others = total - widths[flex];
        widths[flex] = others + FLEX_MIN < width ? width - others : FLEX_MIN;
    }
}

static void pad(alloti_text *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        alloti_text_write(text, " ", 1);
    }
}

/* The tail of a text that fits behind an ellipsis. */
static const char *tail_of(const char *cell, size_t width)
{
    const size_t columns = columns_of(cell);
    return cell + alloti_utf8_cut(cell, strlen(cell), columns - width + 1);
}

static void write_cell(alloti_text *text, const char *cell, alloti_column_kind kind, size_t width,
                       bool is_last)
{
    size_t columns = columns_of(cell);
    if (columns > width && width > 1) {
        const char *const tail = tail_of(cell, width);
        alloti_text_write(text, ELLIPSIS, sizeof ELLIPSIS - 1);
        alloti_text_write(text, tail, strlen(tail));
        columns = 1 + columns_of(tail);
    } else {
        if (kind == ALLOTI_COLUMN_RIGHT) {
            pad(text, width - columns);
            columns = width;
        }
        alloti_text_write(text, cell, strlen(cell));
    }
    if (!is_last) {
        pad(text, width - columns + GAP);
    }
}

/* Bytes of a text that fit, up to behind a comma; all of it if there is no such place. */
static size_t fitting(const char *cell, size_t room)
{
    const size_t size = strlen(cell);
    if (columns_of(cell) <= room) {
        return size;
    }
    size_t cut = room < size ? room : size;
    while (cut > 0 && cell[cut - 1] != ',') {
        cut--;
    }
    return cut == 0 ? size : cut;
}

static void write_below(alloti_text *text, const char *cell, size_t indent, size_t width)
{
    while (*cell != '\0') {
        const size_t size = fitting(cell, indent < width ? width - indent : 0);
        alloti_text_write(text, "\n", 1);
        pad(text, GAP + indent);
        alloti_text_write(text, cell, size);
        cell += size;
    }
}

static void write_header(const alloti_table *table, alloti_text *text, const size_t *widths)
{
    pad(text, GAP);
    for (uint32_t c = 0; c < table->column_count; c++) {
        write_cell(text, table->columns[c].title, table->columns[c].kind, widths[c],
                   c + 1 == table->column_count);
    }
    alloti_text_write(text, "\n", 1);
}

/* Whether the last cell of a row goes below it. */
static bool is_below(const alloti_table *table, uint64_t row, size_t width, const size_t *widths)
{
    const uint32_t last = table->column_count - 1;
    size_t at = 0;
    for (uint32_t c = 0; c < last; c++) {
        at += widths[c] + GAP;
    }
    return table->columns[last].kind == ALLOTI_COLUMN_BELOW &&
           at + columns_of(cell_at(table, row, last)) > width;
}

static void write_row(const alloti_table *table, uint64_t row, alloti_text *text, size_t width,
                      const size_t *widths)
{
    const bool below = is_below(table, row, width, widths);
    const uint32_t count = below ? table->column_count - 1 : table->column_count;
    pad(text, GAP);
    for (uint32_t c = 0; c < count; c++) {
        write_cell(text, cell_at(table, row, c), table->columns[c].kind, widths[c], c + 1 == count);
    }
    if (below) {
        write_below(text, cell_at(table, row, count), widths[0] + GAP, width);
    }
    alloti_text_write(text, "\n", 1);
}

void alloti_table_write(alloti_table *table, alloti_text *text)
{
    if (text->status == ALLOT_STATUS_OK) {
        text->status = table->status;
    }
    size_t widths[COLUMNS_MAX] = {0};
    if (text->status == ALLOT_STATUS_OK) {
        measure(table, text->width - GAP, widths);
        write_header(table, text, widths);
        for (uint64_t r = 0; r < row_count(table); r++) {
            write_row(table, r, text, text->width - GAP, widths);
        }
    }
    alloti_table_fini(table);
}

void alloti_table_fini(alloti_table *table)
{
    free(table->bytes);
    free(table->starts);
    *table = (alloti_table){.columns = table->columns, .column_count = table->column_count};
}
