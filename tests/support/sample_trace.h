/* SPDX-License-Identifier: MIT */
/** A small trace that uses everything <allot/trace.h> can hold. */
#ifndef SAMPLE_TRACE_H
#define SAMPLE_TRACE_H

#include <allot/trace.h>

/**
 * Two GPUs (0 with events of every kind, 1 empty); segments, classic and expandable; stacks with
 * and without torch.fx, an empty stack, private pools, streams, contexts, metadata, settings of
 * every type, annotations. `with_categories` adds categories and running totals, which PyTorch's
 * own format cannot hold. NULL (test failed) if it cannot be built.
 */
allot_trace *sample_trace(bool with_categories);

#endif /* SAMPLE_TRACE_H */
