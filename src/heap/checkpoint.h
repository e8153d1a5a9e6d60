/* SPDX-License-Identifier: MIT */
/**
 * How far a stream has come, as far as the heap wants to know: what was freed before a checkpoint
 * that the stream has reached is used by none of its work.
 *
 * Each checkpoint begins a new epoch. What is freed carries the epoch it was freed in; it is done
 * with once that is below `reached`. At most one checkpoint of a stream is under way, and a new one
 * is only set when somebody asks, so that streams nobody asks about pay nothing.
 */
#ifndef ALLOTI_HEAP_CHECKPOINT_H
#define ALLOTI_HEAP_CHECKPOINT_H

#include "heap/heap.h"

/** See whether the checkpoint under way was reached, and set the next one. Does not wait. */
ALLOT_NODISCARD allot_status alloti_checkpoint_look(allot_heap *heap, uint32_t stream);

/** A stream was waited for: all that was freed by now is done with. */
void alloti_checkpoint_pass(allot_heap *heap, uint32_t stream);

#endif /* ALLOTI_HEAP_CHECKPOINT_H */
