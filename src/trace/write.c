/* SPDX-License-Identifier: MIT */
/* Writing a trace: finds the writer, buffers what it writes. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "trace/writer.h"

static const alloti_writer *const WRITERS[] = {
    &alloti_writer_native,
    &alloti_writer_torch,
};

enum { WRITER_COUNT = sizeof WRITERS / sizeof WRITERS[0] };
enum { PROGRESS_STEP = 1 << 13 };

void alloti_output_flush(alloti_output *output)
{
    if (output->status == ALLOT_STATUS_OK && output->size != 0) {
        output->status = output->sink->write(output->sink->context, output->buffer, output->size);
    }
    output->size = 0;
}

void alloti_output_put(alloti_output *output, const void *data, size_t size)
{
    if (size > sizeof output->buffer - output->size) {
        alloti_output_flush(output);
    }
    if (output->status != ALLOT_STATUS_OK || size == 0) {
        return;
    }
    if (size > sizeof output->buffer) {
        output->status = output->sink->write(output->sink->context, data, size);
        return;
    }
    memcpy(output->buffer + output->size, data, size);
    output->size += size;
}

void alloti_output_text(alloti_output *output, const char *text)
{
    alloti_output_put(output, text, strlen(text));
}

void alloti_output_printf(alloti_output *output, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert(length >= 0 && (size_t)length < sizeof text);
    alloti_output_put(output, text, (size_t)length);
}

void alloti_output_progress(alloti_output *output, uint64_t done, uint64_t total)
{
    if (output->status == ALLOT_STATUS_OK && done % PROGRESS_STEP == 0) {
        output->status = alloti_progress_tell(output->progress, done, total);
    }
}

static const alloti_writer *find_writer(allot_trace_format format)
{
    for (size_t i = 0; i < WRITER_COUNT; i++) {
        if (WRITERS[i]->format == format) {
            return WRITERS[i];
        }
    }
    return NULL;
}

allot_status allot_trace_write(const allot_trace *trace, allot_trace_format format,
                               const allot_trace_write_options *options, const allot_sink *sink)
{
    const alloti_writer *const writer = find_writer(format);
    if (writer == NULL) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "format %s cannot be written",
                           allot_trace_format_name(format));
    }
    alloti_output *const output = malloc(sizeof *output);
    if (output == NULL) {
        return alloti_fail_memory(sizeof *output);
    }
    const alloti_progress progress = {.report = options == NULL ? NULL : options->progress,
                                      .context = options == NULL ? NULL : options->progress_context,
                                      .stage = "writing"};
    output->sink = sink;
    output->progress = &progress;
    output->status = ALLOT_STATUS_OK;
    output->size = 0;
    allot_status status = writer->write(trace, output);
    if (status == ALLOT_STATUS_OK) {
        alloti_output_flush(output);
        status = output->status;
    }
    free(output);
    return status;
}
