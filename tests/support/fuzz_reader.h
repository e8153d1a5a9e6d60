/* SPDX-License-Identifier: MIT */
/** What every fuzzer of a reader checks. */
#ifndef FUZZ_READER_H
#define FUZZ_READER_H

#include <allot/trace.h>

/**
 * Read any bytes as `format`: the result is a trace or a refusal that names a byte or line. A trace
 * must survive allot's own format, and every writer must cope with it. Aborts otherwise; returns 0.
 */
int fuzz_reader(allot_trace_format format, const uint8_t *data, size_t size);

#endif /* FUZZ_READER_H */
