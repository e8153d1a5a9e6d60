/* SPDX-License-Identifier: MIT */
#include "compact/carry.h"

#include "heap/alloc.h"
#include "heap/block.h"
#include "heap/debug.h"

allot_status alloti_compact_carry(allot_heap *heap, uint32_t index, uint32_t ghost,
                                  const heap_ask *ask)
{
    heap_block *const block = heap_block_at(heap, index);
    alloti_fill_block(heap, ask, ghost);
    allot_status status = alloti_debug_before_use(heap, heap_block_at(heap, ghost));
    if (status == ALLOT_STATUS_OK && !alloti_block_begin_move(block)) {
        status = alloti_fail(ALLOT_STATUS_BUSY, "a block was pinned meanwhile");
    } else if (status == ALLOT_STATUS_OK) {
        /* Nothing can free it now. Before, it may have become another block at the same place. */
        status = block->requested == ask->request.size && block->uses == ALLOT_NONE
                     ? alloti_block_move(heap, index, ghost, ask)
                     : alloti_fail(ALLOT_STATUS_BUSY, "a block was changed meanwhile");
        alloti_block_end_move(block);
    }
    if (status == ALLOT_STATUS_OK) {
        alloti_place_end(heap, ask, true);
    } else {
        alloti_forget_place(heap, ask, ghost);
    }
    return status;
}
