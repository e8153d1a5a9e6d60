/* SPDX-License-Identifier: MIT */
/**
 * Columns of allot's own CSV, shared by its writer and its reader. docs/formats.md describes them.
 *
 * The header names the columns; those without a value in the whole trace are left out. "" is an
 * empty text, an empty field is none. A stack is its frames, innermost first, joined by ";"; a
 * frame is "name|file|line". Inside, "\" stands before "\", "|" and ";", "\n" and "\r" are line
 * ends, "\0" is a name or file that is not known.
 */
#ifndef ALLOTI_TRACE_CSV_H
#define ALLOTI_TRACE_CSV_H

/** X(NAME, header) in the order in which they are written. */
#define ALLOTI_CSV_COLUMNS(X)                                                                      \
    X(DEVICE, "device")                                                                            \
    X(EVENT, "event")                                                                              \
    X(ADDRESS, "address")                                                                          \
    X(SIZE_REQUESTED, "size_requested")                                                            \
    X(SIZE_ROUNDED, "size_rounded")                                                                \
    X(TIME, "time_ns")                                                                             \
    X(STREAM, "stream")                                                                            \
    X(POOL, "pool")                                                                                \
    X(CATEGORY, "category")                                                                        \
    X(CONTEXT, "compile_context")                                                                  \
    X(METADATA, "user_metadata")                                                                   \
    X(TOTAL_ALLOCATED, "total_allocated")                                                          \
    X(TOTAL_RESERVED, "total_reserved")                                                            \
    X(STACK, "stack")

typedef enum alloti_csv_column {
#define ALLOTI_CSV_ENUM(name, header) ALLOTI_CSV_##name,
    ALLOTI_CSV_COLUMNS(ALLOTI_CSV_ENUM)
#undef ALLOTI_CSV_ENUM
        ALLOTI_CSV_COLUMN_COUNT,
} alloti_csv_column;

static inline const char *alloti_csv_header(alloti_csv_column column)
{
    static const char *const HEADERS[] = {
#define ALLOTI_CSV_HEADER(name, header) header,
        ALLOTI_CSV_COLUMNS(ALLOTI_CSV_HEADER)
#undef ALLOTI_CSV_HEADER
    };
    return HEADERS[column];
}

/** Spelling of a memory kind before the device's number: "gpu:0". */
static inline const char *alloti_csv_memory(unsigned memory)
{
    static const char *const NAMES[] = {"gpu", "pinned", "cpu"};
    return NAMES[memory];
}

enum { ALLOTI_CSV_MEMORY_COUNT = 3 };

#endif /* ALLOTI_TRACE_CSV_H */
