/* SPDX-License-Identifier: MIT */
/**
 * What a writer of traces is, and the buffered output it writes to. The table of all writers is in
 * report/export.c, since some formats are made from a trace's history.
 */
#ifndef ALLOTI_TRACE_WRITER_H
#define ALLOTI_TRACE_WRITER_H

#include <allot/trace.h>

#include "core/progress.h"

enum { ALLOTI_OUTPUT_SIZE = 64 << 10 };

/**
 * Output on its way to a sink. The first failure sticks: a writer writes on and returns `status`.
 * Nothing may be written after alloti_output_flush() but by going on.
 */
typedef struct alloti_output {
    const allot_sink *sink;
    const alloti_progress *progress; /**< Told by alloti_output_progress(); NULL allowed. */
    allot_status status;
    size_t size; /**< Bytes that wait in `buffer`. */
    uint8_t buffer[ALLOTI_OUTPUT_SIZE];
} alloti_output;

void alloti_output_put(alloti_output *output, const void *data, size_t size);
void alloti_output_text(alloti_output *output, const char *text);
/** For numbers and short words: at most 511 bytes at once, asserted; the rest would be cut. */
void alloti_output_printf(alloti_output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void alloti_output_flush(alloti_output *output);

/** A sink over the output, for writers that know sinks only. */
allot_sink alloti_output_sink(alloti_output *output);

/** Report every few thousand items; cancelling makes `status` ALLOT_STATUS_CANCELLED. */
void alloti_output_progress(alloti_output *output, uint64_t done, uint64_t total);

typedef struct alloti_writer {
    allot_trace_format format;
    /** Write all of the trace; the caller flushes. */
    allot_status (*write)(const allot_trace *trace, alloti_output *output);
} alloti_writer;

extern const alloti_writer alloti_writer_csv;
extern const alloti_writer alloti_writer_native;
extern const alloti_writer alloti_writer_torch;

#endif /* ALLOTI_TRACE_WRITER_H */
