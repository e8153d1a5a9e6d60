/* SPDX-License-Identifier: MIT */
/** Bringing a block to a range that was found for it. */
#ifndef ALLOTI_COMPACT_CARRY_H
#define ALLOTI_COMPACT_CARRY_H

#include "heap/move.h"

/**
 * Move a block to the range of `ask`, from alloti_ask_like(). Under the lock.
 *
 * @param[in] ghost  From alloti_block_take(); taken over.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_BUSY if it was pinned meanwhile; what copying returned. The
 *         range is given back after a failure.
 */
ALLOT_NODISCARD allot_status alloti_compact_carry(allot_heap *heap, uint32_t block, uint32_t ghost,
                                                  const heap_ask *ask);

#endif /* ALLOTI_COMPACT_CARRY_H */
