/* SPDX-License-Identifier: MIT */
/**
 * Comparing traces by what they say: strings, stacks, streams and pools are compared by content,
 * so the numbers that a reader gave them may differ. Each function prints the first difference and
 * fails the test.
 */
#ifndef TRACE_EQUAL_H
#define TRACE_EQUAL_H

#include <allot/trace.h>

/** Everything that <allot/trace.h> can tell but the format. */
bool trace_equal(const allot_trace *a, const allot_trace *b);

/** Parts of it: devices and their events; with or without what torch.fx added to frames. */
bool trace_events_equal(const allot_trace *a, const allot_trace *b, bool with_fx);
bool trace_segments_equal(const allot_trace *a, const allot_trace *b);
bool trace_annotations_equal(const allot_trace *a, const allot_trace *b);
bool trace_settings_equal(const allot_trace *a, const allot_trace *b);

/** A sink that keeps what it receives. Zero-initialise; release `data` with free(). */
typedef struct trace_buffer {
    char *data;
    size_t size;
} trace_buffer;

allot_sink trace_buffer_sink(trace_buffer *buffer);

/** Write `trace` to memory and read it back; NULL (test failed) if either fails. */
allot_trace *trace_round_trip(const allot_trace *trace, allot_trace_format format);

#endif /* TRACE_EQUAL_H */
