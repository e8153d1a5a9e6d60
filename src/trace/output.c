/* SPDX-License-Identifier: MIT */
#include "trace/writer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    (void)length;
    alloti_output_text(output, text);
}

void alloti_output_progress(alloti_output *output, uint64_t done, uint64_t total)
{
    if (output->status == ALLOT_STATUS_OK && done % PROGRESS_STEP == 0) {
        output->status = alloti_progress_tell(output->progress, done, total);
    }
}

static allot_status output_write(void *context, const void *data, size_t size)
{
    alloti_output *const output = context;
    alloti_output_put(output, data, size);
    return output->status;
}

allot_sink alloti_output_sink(alloti_output *output)
{
    return (allot_sink){.write = output_write, .context = output};
}
