/* SPDX-License-Identifier: MIT */
#include "support/fuzz_reader.h"

#include <stdlib.h>
#include <string.h>

#include "support/trace_equal.h"

static void require(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

/* Write, read back, compare. */
static void check_own_format(const allot_trace *trace)
{
    trace_buffer buffer = {.size = 0};
    const allot_sink sink = trace_buffer_sink(&buffer);
    allot_trace *back = NULL;
    require(allot_trace_write(trace, ALLOT_TRACE_FORMAT_ALLOT, NULL, &sink) == ALLOT_STATUS_OK);
    require(allot_trace_read_memory(buffer.data, buffer.size, "written", NULL, &back) ==
            ALLOT_STATUS_OK);
    require(trace_equal(trace, back));
    allot_trace_destroy(back);
    free(buffer.data);
}

static void check_writers(const allot_trace *trace)
{
    static const allot_trace_format FORMATS[] = {ALLOT_TRACE_FORMAT_TORCH_PICKLE,
                                                 ALLOT_TRACE_FORMAT_CHROME, ALLOT_TRACE_FORMAT_CSV,
                                                 ALLOT_TRACE_FORMAT_FOLDED};
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        trace_buffer buffer = {.size = 0};
        const allot_sink sink = trace_buffer_sink(&buffer);
        const allot_status status = allot_trace_write(trace, FORMATS[i], NULL, &sink);
        require(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_UNSUPPORTED);
        free(buffer.data);
    }
}

int fuzz_reader(allot_trace_format format, const uint8_t *data, size_t size)
{
    const allot_trace_read_options options = {.struct_size = sizeof options, .format = format};
    allot_trace *trace = NULL;
    const allot_status status = allot_trace_read_memory(data, size, "input", &options, &trace);
    if (status == ALLOT_STATUS_OK) {
        check_own_format(trace);
        check_writers(trace);
        allot_trace_destroy(trace);
        return 0;
    }
    require(status == ALLOT_STATUS_FORMAT || status == ALLOT_STATUS_VERSION);
    const char *const detail = allot_error_detail();
    require(strstr(detail, "byte ") != NULL || strstr(detail, "line ") != NULL);
    return 0;
}
