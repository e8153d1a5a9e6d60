/* SPDX-License-Identifier: MIT */
/** Changing the place of a live block. */
#ifndef ALLOTI_HEAP_MOVE_H
#define ALLOTI_HEAP_MOVE_H

#include "heap/place.h"

/** A request for a place like a block's own, of another size. Under the lock. */
heap_ask alloti_ask_like(allot_heap *heap, uint32_t index, uint64_t size);

/**
 * Bring the bytes of a block to the range of `ask`, on the block's stream, and free what it had in
 * the order of the streams that used it. Under the lock, between alloti_block_begin_move() or
 * hold(), which says whether it can move, and end_move().
 *
 * @param[in] ghost  From alloti_block_take(): the place of what is freed. It is put back by this
 *                   call or later; after a failure it is the caller's, and so is the range.
 */
ALLOT_NODISCARD allot_status alloti_block_move(allot_heap *heap, uint32_t block, uint32_t ghost,
                                               const heap_ask *ask);

#endif /* ALLOTI_HEAP_MOVE_H */
