/* SPDX-License-Identifier: MIT */
/** Reading small traces that stand in a test's source. */
#ifndef READ_TEXT_H
#define READ_TEXT_H

#include <allot/trace.h>

/** Read `text` with its format found out from the content; NULL (test failed) if it is refused. */
allot_trace *read_text(const char *text, allot_trace_format expected);

/** Check that `text`, read as `format`, is refused with a message that contains `message`. */
void check_refused(const char *text, allot_trace_format format, const char *message);

/** The same for JSON, in which ' stands for ": the text stays readable in C. */
allot_trace *read_json(const char *text, allot_trace_format expected);
void check_refused_json(const char *text, allot_trace_format format, const char *message);

/** Events of one device of a trace. */
allot_events read_events(const allot_trace *trace, uint32_t device);

/** Bytes allocated minus bytes freed (free_completed) over all events of a device. */
int64_t sum_events(const allot_events *events);

#endif /* READ_TEXT_H */
