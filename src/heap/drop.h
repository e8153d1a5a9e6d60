/* SPDX-License-Identifier: MIT */
/**
 * Temporary and cached blocks, in the order in which they are dropped: temporary ones first, then
 * by priority, then those unused for longest. When a block was used last is only noted with it
 * (unpinning takes no lock); one whose turn comes and that was used meanwhile goes back in line.
 */
#ifndef ALLOTI_HEAP_DROP_H
#define ALLOTI_HEAP_DROP_H

#include "heap/heap.h"

/** Room for a block; then it is entered, and taken out when it is freed or dropped. */
ALLOT_NODISCARD allot_status alloti_drop_reserve(allot_heap *heap, uint32_t block);
void alloti_drop_add(allot_heap *heap, uint32_t index);
void alloti_drop_remove(allot_heap *heap, uint32_t index);

/**
 * Drop one block with this flag (ALLOT_BLOCK_TEMPORARY or CACHED) that is not pinned.
 *
 * @param[out] size  Bytes that will be free, at once or when their streams are done; 0: there is no
 *                   such block.
 */
ALLOT_NODISCARD allot_status alloti_drop_one(allot_heap *heap, uint32_t flag, uint64_t *size);

/** Take a block's memory; it stays, as one that was dropped. It is marked as moving. `ghost` is
 * from alloti_block_take(); after a failure it is the caller's. */
ALLOT_NODISCARD allot_status alloti_drop_memory(allot_heap *heap, uint32_t index, uint32_t ghost);

void alloti_drop_fini(allot_heap *heap);

#endif /* ALLOTI_HEAP_DROP_H */
