/* SPDX-License-Identifier: MIT */
/**
 * Freed blocks, until their memory may be used by any work on the stream of their segment's arena:
 * at once where no other stream used them, else when events on those streams were reached.
 */
#ifndef ALLOTI_HEAP_PENDING_H
#define ALLOTI_HEAP_PENDING_H

#include "heap/heap.h"

/** Another stream uses a block, from now until it is freed. */
ALLOT_NODISCARD allot_status alloti_pending_use(allot_heap *heap, uint32_t block, uint32_t stream);

/**
 * Free the memory of a block that was retired and is counted as allocated no more. Its place in the
 * table is put back now or later.
 *
 * @return ALLOT_STATUS_OK, and the caller has no part in the block any more; else nothing has
 *         changed.
 */
ALLOT_NODISCARD allot_status alloti_pending_free(allot_heap *heap, uint32_t block);

/**
 * The same for what a live block takes now: it gets a block of its own, and the live one keeps no
 * memory. Room for the place was reserved: `ghost` is from alloti_block_take(), and is put back by
 * this call or later; after a failure it is the caller's.
 *
 * @param[in] keeps_uses  The live block keeps its uses; its own stream was ordered after them.
 */
ALLOT_NODISCARD allot_status alloti_pending_detach(allot_heap *heap, uint32_t block, uint32_t ghost,
                                                   bool keeps_uses);

/** Give back what no longer waits. Does not wait. */
ALLOT_NODISCARD allot_status alloti_pending_collect(allot_heap *heap);

/** Wait for all streams that freed blocks wait for, then collect. */
ALLOT_NODISCARD allot_status alloti_pending_wait(allot_heap *heap);

/**
 * Forget a range that was placed but not handed out. `block` is a retired block with no uses, and
 * the caller has no part in it any more; false if its range goes back only later.
 *
 * @param[in] is_done  No work of the block's own stream may use the range any more.
 */
bool alloti_pending_undo(allot_heap *heap, uint32_t block, bool is_done);

/** An event that was not recorded, or was reached, or is not looked at any more; and back. */
ALLOT_NODISCARD allot_status alloti_event_take(allot_heap *heap, allot_event *out);
void alloti_event_put(allot_heap *heap, allot_event event);
/** Forget what waits for a stream that was waited for; its events are unused then. */
void alloti_pending_forget(allot_heap *heap, uint32_t index);
/** Give unused events back to the device; those that it refuses are kept. */
ALLOT_NODISCARD allot_status alloti_events_release(allot_heap *heap);

#endif /* ALLOTI_HEAP_PENDING_H */
