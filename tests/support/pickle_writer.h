/* SPDX-License-Identifier: MIT */
/**
 * Pickles for tests, opcode by opcode: what no pickler writes can be written too. All functions
 * append to the same fixed buffer.
 */
#ifndef PICKLE_WRITER_H
#define PICKLE_WRITER_H

#include <allot/trace.h>

enum { PICKLE_BYTES_MAX = 1 << 20 };

typedef struct pickle_writer {
    uint8_t data[PICKLE_BYTES_MAX];
    size_t size;
} pickle_writer;

/** Empty it, then the header of protocol 4. */
void pickle_begin(pickle_writer *w);

void pickle_bytes(pickle_writer *w, const void *data, size_t size);

/** Opcodes without arguments, as a string: "}(" is EMPTY_DICT MARK. */
void pickle_ops(pickle_writer *w, const char *ops);

/** SHORT_BINUNICODE; up to 255 bytes. */
void pickle_text(pickle_writer *w, const char *text);

/** LONG1 of 9 bytes. */
void pickle_u64(pickle_writer *w, uint64_t number);

/** A text, then LONG1: a key and its value. */
void pickle_pair(pickle_writer *w, const char *key, uint64_t number);

/** Two texts: a key and its value. */
void pickle_text_pair(pickle_writer *w, const char *key, const char *text);

/** A frame's dict. */
void pickle_frame(pickle_writer *w, const char *name, const char *filename, uint64_t line);

/** "{device_traces: [[" with marks, so that entries can follow; closed by pickle_end_entries(). */
void pickle_begin_entries(pickle_writer *w);
void pickle_end_entries(pickle_writer *w);

/** An entry {action, addr, size}, which is left open for more pairs until pickle_ops("u"). */
void pickle_open_entry(pickle_writer *w, const char *action, uint64_t addr, uint64_t size);

/** Read what was written. */
allot_status pickle_read(const pickle_writer *w, allot_trace **out);

/** Read it and check that it is refused as FORMAT with this text in the message. */
void pickle_check_refused(const pickle_writer *w, const char *part);

#endif /* PICKLE_WRITER_H */
