/* SPDX-License-Identifier: MIT */
/* Giving blocks back, and telling which streams use them. */
#include <inttypes.h>

#include "heap/arena.h"
#include "heap/block.h"
#include "heap/debug.h"
#include "heap/drop.h"
#include "heap/front.h"
#include "heap/pending.h"
#include "heap/stats.h"

/** Retire a block; where it is just being moved, after that. */
static allot_status retire(allot_heap *heap, uint32_t index, uint64_t *word)
{
    for (;;) {
        const allot_status status = alloti_block_retire(heap, index, word);
        if (status != ALLOT_STATUS_CANCELLED) {
            return status;
        }
        const allot_status entered = alloti_heap_enter(heap);
        if (entered != ALLOT_STATUS_OK) {
            return entered;
        }
        *word = atomic_load_explicit(&heap_block_at(heap, index)->word, memory_order_acquire);
        pthread_mutex_unlock(&heap->mutex);
    }
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
    if (status != ALLOT_STATUS_OK && status != ALLOT_STATUS_MISMATCH) {
        alloti_block_revive(block, word);
    }
    return status;
}

/** Free a block of this word. Of a pointer the address is already out of the map. */
static allot_status free_found(allot_heap *heap, uint32_t index, uint64_t word)
{
    allot_status status = retire(heap, index, &word);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap_block *const block = heap_block_at(heap, index);
    const uint64_t address = block->address;
    const bool is_fixed = (word & BLOCK_FIXED) != 0;
    if (is_fixed) {
        /* Before somebody else can get the address. */
        (void)alloti_address_map_remove(&heap->addresses, address);
    }
    const bool is_dropped = (word & BLOCK_DROPPED) != 0;
    if (heap->options.front_size != 0 &&
        !atomic_load_explicit(&heap->is_recording, memory_order_relaxed) && !is_dropped &&
        block->flags == 0 && alloti_front_push(heap, index)) {
        return ALLOT_STATUS_OK;
    }
    status = alloti_heap_enter(heap);
    if (status == ALLOT_STATUS_OK) {
        status = heap_leave(heap, free_block(heap, index, word));
    }
    if (is_fixed && status != ALLOT_STATUS_OK && status != ALLOT_STATUS_MISMATCH) {
        const allot_status entered = alloti_address_map_set(&heap->addresses, address, index);
        status = entered == ALLOT_STATUS_OK ? status : entered;
    }
    return status;
}

allot_status allot_heap_free(allot_heap *heap, allot_handle handle)
{
    uint32_t index = 0;
    uint64_t word = 0;
    allot_status status = alloti_heap_check_fork(heap);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_block_find(heap, handle, &index, &word);
    }
    return status == ALLOT_STATUS_OK ? free_found(heap, index, word) : status;
}

/** Block of a pointer. */
static allot_status find_pointer(allot_heap *heap, allot_devptr ptr, uint32_t *index,
                                 uint64_t *word)
{
    const allot_status status = alloti_heap_check_fork(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    *index = alloti_address_map_get(&heap->addresses, ptr.address);
    if (*index == ALLOT_NONE) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%#" PRIx64 ": no pointer of this heap",
                           ptr.address);
    }
    *word = atomic_load_explicit(&heap_block_at(heap, *index)->word, memory_order_acquire);
    return ALLOT_STATUS_OK;
}

allot_status allot_heap_free_pointer(allot_heap *heap, allot_devptr ptr)
{
    uint32_t index = 0;
    uint64_t word = 0;
    const allot_status status = find_pointer(heap, ptr, &index, &word);
    return status == ALLOT_STATUS_OK ? free_found(heap, index, word) : status;
}

allot_status allot_heap_find(allot_heap *heap, allot_devptr ptr, allot_handle *out)
{
    uint32_t index = 0;
    uint64_t word = 0;
    const allot_status status = find_pointer(heap, ptr, &index, &word);
    if (status == ALLOT_STATUS_OK) {
        *out = alloti_block_handle(heap, index);
    }
    return status;
}

/* ---- uses and looking ---- */

allot_status allot_heap_use(allot_heap *heap, allot_handle handle, allot_stream stream)
{
    uint32_t index = 0;
    uint64_t word = 0;
    uint32_t place = 0;
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = alloti_block_find(heap, handle, &index, &word);
    if (status != ALLOT_STATUS_OK || (word & BLOCK_DROPPED) != 0) {
        return heap_leave(heap, status);
    }
    status = alloti_stream_get(heap, stream, &place);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_pending_use(heap, index, place);
    }
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
