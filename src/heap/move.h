/* SPDX-License-Identifier: MIT */
/** Changing the place of a live block. */
#ifndef ALLOTI_HEAP_MOVE_H
#define ALLOTI_HEAP_MOVE_H

#include "heap/place.h"

/** A request for a place like a block's own, of another size. Under the lock. */
heap_ask alloti_ask_like(allot_heap *heap, uint32_t index, uint64_t size);

/** A block as it was at one moment: where it is, and a request for a place like its own. */
typedef struct heap_sight {
    allot_handle handle;
    uint64_t address; /**< What the caller sees. */
    heap_ask like;    /**< Its segment and range are where the block is. */
} heap_sight;

/**
 * Look at a block that can be moved; false if it cannot: it is no handle, pinned, used by other
 * streams and they are not to be waited for, or in memory of another stream. Under the lock. Only
 * what is seen so is known: what else is read of a block may be written at the same time, by a
 * thread that it is handed out to.
 */
bool alloti_block_look(allot_heap *heap, uint32_t index, bool waits, heap_sight *out);

/**
 * Bring the bytes of the block that a handle names to the range of `ask`, from alloti_ask_like(),
 * on the block's stream, and free what it had in the order of the streams that used it. Under the
 * lock.
 *
 * @param[in] ghost  From alloti_block_take(), taken over: the place of what is freed.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID if the block was freed meanwhile, and may be
 *         another one by now; ALLOT_STATUS_NOT_FOUND if it was dropped; ALLOT_STATUS_BUSY if it was
 *         pinned; what copying returned. The range is given back after a failure.
 */
ALLOT_NODISCARD allot_status alloti_block_carry(allot_heap *heap, allot_handle handle,
                                                uint32_t ghost, const heap_ask *ask);

/** Let a block's own stream begin what follows after the work of all others that use it. Under the
 * lock, while the block is held. */
ALLOT_NODISCARD allot_status alloti_block_after_uses(allot_heap *heap, const heap_block *block);

/**
 * Let the range of a block begin at a lower offset of its segment, in the free memory right before
 * it: the block's bytes are copied there in chunks that do not overlap themselves. Under the lock.
 *
 * @param[in] stage  Bytes of free memory elsewhere to copy through, if there is so much; below the
 *                   distance: none.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_FRAGMENTED if what is before the block is not free;
 *         ALLOT_STATUS_BUSY also if it lies in memory of another stream; else as
 * alloti_block_carry(). Where a copy failed the block is as it was; where bringing back what was
 * copied by then failed as well, the block is one that was dropped: its bytes are lost.
 */
ALLOT_NODISCARD allot_status alloti_block_slide(allot_heap *heap, allot_handle handle,
                                                uint64_t offset, uint64_t stage);

#endif /* ALLOTI_HEAP_MOVE_H */
