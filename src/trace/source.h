/* SPDX-License-Identifier: MIT */
/**
 * Bytes of a trace file in order, decompressed, through a window.
 *
 * A reader asks for a number of bytes at the cursor, looks at them and consumes some. Pages of a
 * mapped file that lie behind the cursor are given back, so that a large file costs little memory.
 * A mapped file that somebody shortens meanwhile ends the program with SIGBUS: the price of it.
 * Offsets count decompressed bytes from the start.
 */
#ifndef ALLOTI_TRACE_SOURCE_H
#define ALLOTI_TRACE_SOURCE_H

#include <allot/base.h>

typedef struct alloti_source alloti_source;

/** Open a file; recognises gzip and zstd by content. ALLOT_STATUS_IO, FORMAT, HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_source_open(const char *path, alloti_source **out);

/** The same over memory that stays as it is until the source is closed; NULL for no bytes. */
ALLOT_NODISCARD allot_status alloti_source_open_memory(const void *data, size_t size,
                                                       alloti_source **out);

void alloti_source_close(alloti_source *source);

/**
 * Make `want` bytes visible at the cursor. *available is at least `want`, or less at the end of the
 * input (0: nothing is left). *data is valid until the next call of fill or consume.
 */
ALLOT_NODISCARD allot_status alloti_source_fill(alloti_source *source, size_t want,
                                                const uint8_t **data, size_t *available);

/** Move the cursor by `size` bytes, at most what fill() showed. */
void alloti_source_consume(alloti_source *source, size_t size);

/** Decompressed bytes before the cursor. */
uint64_t alloti_source_offset(const alloti_source *source);

/** Progress in bytes of the file itself (compressed, where it is), and its size. */
void alloti_source_progress(const alloti_source *source, uint64_t *done, uint64_t *total);

#endif /* ALLOTI_TRACE_SOURCE_H */
