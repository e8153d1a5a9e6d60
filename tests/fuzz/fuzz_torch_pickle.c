/* SPDX-License-Identifier: MIT */
/* The pickle reader on any bytes: a trace or a refusal that names a place, nothing else. */
#include <allot/trace.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const allot_trace_read_options options = {.struct_size = sizeof options,
                                              .format = ALLOT_TRACE_FORMAT_TORCH_PICKLE};
    allot_trace *trace = NULL;
    const allot_status status = allot_trace_read_memory(data, size, "input", &options, &trace);
    if (status == ALLOT_STATUS_OK) {
        (void)allot_trace_main_device(trace);
        allot_trace_destroy(trace);
    } else if (status != ALLOT_STATUS_FORMAT || strstr(allot_error_detail(), "byte ") == NULL) {
        abort();
    }
    return 0;
}
