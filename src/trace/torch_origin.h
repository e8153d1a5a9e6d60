/* SPDX-License-Identifier: MIT */
/** Whether PyTorch's caching allocator made a trace, whose rules then hold for it. */
#ifndef ALLOTI_TRACE_TORCH_ORIGIN_H
#define ALLOTI_TRACE_TORCH_ORIGIN_H

#include <allot/trace.h>

/** By the format; for allot's own formats by the settings and kinds of events that only PyTorch
 * has. */
bool alloti_trace_is_torch(const allot_trace *trace);

#endif /* ALLOTI_TRACE_TORCH_ORIGIN_H */
