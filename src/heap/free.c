/* SPDX-License-Identifier: MIT */
/* Giving blocks back, and telling which streams use them. */
#include <inttypes.h>

#include "heap/arena.h"
#include "heap/block.h"
#include "heap/debug.h"
#include "heap/drop.h"
#include "heap/front.h"
#include "heap/pending.h"
#include "heap/place.h"
#include "heap/stats.h"

/** Retire the block of a handle; where it is just being moved, after that. */
static allot_status retire(allot_heap *heap, allot_handle handle, uint32_t *index, uint64_t *word)
{
    allot_status status = alloti_block_find(heap, handle, index, word);
    while (status == ALLOT_STATUS_OK) {
        status = alloti_block_retire(heap, *index, word);
        if (status != ALLOT_STATUS_CANCELLED) {
            break;
        }
        status = alloti_heap_enter(heap);
        if (status == ALLOT_STATUS_OK) {
            /* Its place may be another block's by now. */
            status = heap_leave(heap, alloti_block_find(heap, handle, index, word));
        }
    }
    return status;
}

/** Free the memory of a retired block. */
static allot_status free_memory(allot_heap *heap, uint32_t index)
{
    const heap_block *const block = heap_block_at(heap, index);
    const allot_status checked = alloti_debug_check(heap, block);
    if (checked != ALLOT_STATUS_OK && checked != ALLOT_STATUS_MISMATCH) {
        return checked;
    }
    const allot_status status = alloti_pending_free(heap, index);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    /* Its place is not used anew before the lock is given back. */
    alloti_count_freed(heap, block);
    alloti_drop_remove(heap, index);
    return checked;
}

/** Free a retired block under the lock; live again after a failure. */
static allot_status free_block(allot_heap *heap, uint32_t index, uint64_t word)
{
    heap_block *const block = heap_block_at(heap, index);
    if ((word & BLOCK_DROPPED) != 0) {
        heap->arenas[block->arena]->block_count--;
        alloti_block_put(heap, index);
        return ALLOT_STATUS_OK;
    }
    const allot_status status = free_memory(heap, index);
    if (status == ALLOT_STATUS_OK || status == ALLOT_STATUS_MISMATCH) {
        return status;
    }
    allot_status known = ALLOT_STATUS_OK;
    if ((word & BLOCK_FIXED) != 0) {
        /* Before somebody else can free it again. */
        known = alloti_address_map_set(&heap->addresses, block->address,
                                       alloti_block_handle(heap, index));
    }
    alloti_block_revive(block, word);
    return known == ALLOT_STATUS_OK ? status : known;
}

allot_status allot_heap_free(allot_heap *heap, allot_handle handle)
{
    uint32_t index = 0;
    uint64_t word = 0;
    allot_status status = heap_check_fork(heap);
    if (status == ALLOT_STATUS_OK) {
        status = retire(heap, handle, &index, &word);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap_block *const block = heap_block_at(heap, index);
    if ((word & BLOCK_FIXED) != 0) {
        /* Before somebody else can get the address. */
        alloti_address_map_remove(&heap->addresses, block->address);
    }
    const bool is_dropped = (word & BLOCK_DROPPED) != 0;
    if (heap->options.front_size != 0 &&
        !atomic_load_explicit(&heap->is_recording, memory_order_relaxed) && !is_dropped &&
        block->flags == 0 && alloti_front_push(heap, index)) {
        return ALLOT_STATUS_OK;
    }
    status = alloti_heap_enter(heap);
    return status == ALLOT_STATUS_OK ? heap_leave(heap, free_block(heap, index, word)) : status;
}

allot_status allot_heap_find(allot_heap *heap, allot_devptr ptr, allot_handle *out)
{
    const allot_status status = heap_check_fork(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const allot_handle found = alloti_address_map_get(&heap->addresses, ptr.address);
    if (found.value == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%#" PRIx64 ": no pointer of this heap",
                           ptr.address);
    }
    *out = found;
    return ALLOT_STATUS_OK;
}

allot_status allot_heap_free_pointer(allot_heap *heap, allot_devptr ptr)
{
    allot_handle handle = {0};
    const allot_status status = allot_heap_find(heap, ptr, &handle);
    return status == ALLOT_STATUS_OK ? allot_heap_free(heap, handle) : status;
}

/* ---- uses and looking ---- */

/** Work that a stream is given from now on comes after the block was moved. */
static allot_status order_after_move(allot_heap *heap, heap_block *block, allot_stream stream)
{
    const uint32_t own = heap->arenas[block->arena]->stream;
    if (!block->is_moved || heap->streams[own]->stream.value == stream.value) {
        return ALLOT_STATUS_OK;
    }
    const allot_status done = alloti_place_order(heap, stream, own, false);
    block->is_moved = done != ALLOT_STATUS_OK;
    return done == ALLOT_STATUS_BUSY ? alloti_place_order(heap, stream, own, true) : done;
}

allot_status allot_heap_use(allot_heap *heap, allot_handle handle, allot_stream stream)
{
    uint32_t index = 0;
    uint64_t word = 0;
    uint32_t place = 0;
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = alloti_block_hold(heap, handle, &index, &word);
    if (status != ALLOT_STATUS_OK) {
        return heap_leave(heap, status);
    }
    /* What was dropped has no memory that could be in use. */
    if ((word & BLOCK_DROPPED) == 0) {
        status = alloti_stream_get(heap, stream, &place);
        if (status == ALLOT_STATUS_OK) {
            status = alloti_pending_use(heap, index, place);
        }
        if (status == ALLOT_STATUS_OK) {
            status = order_after_move(heap, heap_block_at(heap, index), stream);
        }
    }
    alloti_block_end_move(heap_block_at(heap, index));
    return heap_leave(heap, status);
}

allot_status allot_heap_use_pointer(allot_heap *heap, allot_devptr ptr, allot_stream stream)
{
    allot_handle handle = {0};
    const allot_status status = allot_heap_find(heap, ptr, &handle);
    return status == ALLOT_STATUS_OK ? allot_heap_use(heap, handle, stream) : status;
}

allot_status allot_heap_get_block(allot_heap *heap, allot_handle handle, allot_block_info *out)
{
    uint32_t index = 0;
    uint64_t word = 0;
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_front_lock_all(heap);
    status = alloti_block_find(heap, handle, &index, &word);
    if (status == ALLOT_STATUS_OK) {
        alloti_block_describe(heap, index, out);
    }
    alloti_front_unlock_all(heap);
    return heap_leave(heap, status);
}

allot_status allot_heap_walk(allot_heap *heap,
                             bool (*visit)(void *context, const allot_block_info *block),
                             void *context)
{
    const allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_front_lock_all(heap);
    bool goes_on = true;
    for (uint32_t i = 0; i < heap->blocks.count && goes_on; i++) {
        const heap_block *const block = heap_block_at(heap, i);
        const uint64_t word = atomic_load_explicit(&block->word, memory_order_acquire);
        if ((word & BLOCK_LIVE) != 0 || block->is_pending) {
            allot_block_info info;
            alloti_block_describe(heap, i, &info);
            goes_on = visit(context, &info);
        }
    }
    alloti_front_unlock_all(heap);
    return heap_leave(heap, status);
}
