/* SPDX-License-Identifier: MIT */
/* Writing a trace: the table of writers, of this area and of src/trace. */
#include "report/export.h"

#include <stdlib.h>

#include "core/options.h"
#include "core/status.h"

static const alloti_writer *const WRITERS[] = {
    &alloti_writer_torch, &alloti_writer_chrome, &alloti_writer_native,
    &alloti_writer_csv,   &alloti_writer_folded,
};

enum { WRITER_COUNT = sizeof WRITERS / sizeof WRITERS[0] };

static const alloti_writer *find_writer(allot_trace_format format)
{
    for (size_t i = 0; i < WRITER_COUNT; i++) {
        if (WRITERS[i]->format == format) {
            return WRITERS[i];
        }
    }
    return NULL;
}

bool allot_trace_format_is_writable(allot_trace_format format)
{
    return find_writer(format) != NULL;
}

allot_status allot_trace_write(const allot_trace *trace, allot_trace_format format,
                               const allot_trace_write_options *options, const allot_sink *sink)
{
    allot_trace_write_options o;
    allot_status status = alloti_options_take(options, sizeof o, &o);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const alloti_writer *const writer = find_writer(format);
    if (writer == NULL) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "format %s cannot be written",
                           allot_trace_format_name(format));
    }
    alloti_output *const output = malloc(sizeof *output);
    if (output == NULL) {
        return alloti_fail_memory(sizeof *output);
    }
    const alloti_progress progress = {
        .report = o.progress, .context = o.progress_context, .stage = "writing"};
    output->sink = sink;
    output->progress = &progress;
    output->status = ALLOT_STATUS_OK;
    output->size = 0;
    status = writer->write(trace, output);
    if (status == ALLOT_STATUS_OK) {
        alloti_output_flush(output);
        status = output->status;
    }
    free(output);
    return status;
}
