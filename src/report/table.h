/* SPDX-License-Identifier: MIT */
/**
 * Tables of aligned columns. Cells are added row by row; widths are measured in terminal columns.
 * If the table is wider than the text, the flexible column is cut with an ellipsis.
 */
#ifndef ALLOTI_REPORT_TABLE_H
#define ALLOTI_REPORT_TABLE_H

#include "report/text.h"

typedef enum alloti_column_kind {
    ALLOTI_COLUMN_LEFT,  /**< Text. */
    ALLOTI_COLUMN_RIGHT, /**< Numbers. */
    ALLOTI_COLUMN_FLEX,  /**< Text that may be cut at its start, where a path says least. */
    ALLOTI_COLUMN_BELOW, /**< Text of the last column, never cut: below if the line is too long. */
} alloti_column_kind;

typedef struct alloti_column {
    const char *title;
    alloti_column_kind kind;
} alloti_column;

typedef struct alloti_table {
    const alloti_column *columns; /**< [column_count]; borrowed. */
    uint32_t column_count;
    char *bytes; /**< All cells, each followed by a NUL. */
    uint64_t size;
    uint64_t capacity;
    uint64_t *starts; /**< [cell_count] */
    uint64_t cell_count;
    uint64_t cell_capacity;
    allot_status status;
} alloti_table;

/** `columns` must outlive the table. */
void alloti_table_init(alloti_table *table, const alloti_column *columns, uint32_t column_count);

/** The next cell, left to right, then the next row. */
void alloti_table_cell(alloti_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Write the header and the rows, each begun with two blanks, and release the table. */
void alloti_table_write(alloti_table *table, alloti_text *text);

/** Release a table that is not written. */
void alloti_table_fini(alloti_table *table);

#endif /* ALLOTI_REPORT_TABLE_H */
