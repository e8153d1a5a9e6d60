/* SPDX-License-Identifier: MIT */
#include "trace/torch_origin.h"

bool alloti_trace_is_torch(const allot_trace *trace)
{
    const allot_trace_format format = allot_trace_get_format(trace);
    return format == ALLOT_TRACE_FORMAT_TORCH_PICKLE || format == ALLOT_TRACE_FORMAT_TORCH_JSON ||
           allot_trace_find_setting(trace, "PYTORCH_CUDA_ALLOC_CONF") != NULL ||
           allot_trace_find_setting(trace, "expandable_segments") != NULL ||
           allot_trace_has(trace, ALLOT_TRACE_HAS_SEGMENT_EVENTS);
}
