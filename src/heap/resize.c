/* SPDX-License-Identifier: MIT */
/* Another size for a block: where it is, else elsewhere by a copy on its stream. */
#include "heap/alloc.h"
#include "heap/arena.h"
#include "heap/block.h"
#include "heap/debug.h"
#include "heap/granules.h"
#include "heap/move.h"
#include "heap/pending.h"
#include "heap/record.h"
#include "heap/stats.h"

/** A block's share of the meters, before and after its size changes. */
static void count_again(allot_heap *heap, heap_block *block, uint64_t size, uint64_t requested)
{
    alloti_count_freed(heap, block);
    alloti_count_inactive(heap, block);
    block->size = size;
    block->requested = requested;
    alloti_count_active(heap, block);
    alloti_count_allocated(heap, block);
}

/** What a block has got at its end is there, and ready for its stream. */
static allot_status take_tail(allot_heap *heap, const heap_block *block, const allot_range *range)
{
    const heap_segment *const segment = &heap->segments[block->segment];
    const heap_arena *const own = heap->arenas[block->arena];
    const heap_arena *const home = heap->arenas[segment->arena];
    allot_status status = ALLOT_STATUS_OK;
    if (heap->is_virtual) {
        status = alloti_granules_commit(heap, block->segment, range->offset, range->size,
                                        HEAP_BOUND_HARD);
    }
    if (status == ALLOT_STATUS_OK && own->stream != home->stream) {
        /* What is free in a segment may be used by work of the segment's stream. */
        status = alloti_place_order(heap, heap->streams[own->stream]->stream, home->stream, true);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_debug_before_growth(heap, block, range->size);
    }
    return status;
}

/** Where it is. ALLOT_STATUS_FRAGMENTED and the like if that cannot be; then nothing has changed.
 */
static allot_status resize_in_place(allot_heap *heap, heap_block *block, uint64_t size)
{
    const uint64_t old_size = block->size;
    allot_range range;
    if (heap->red_zone != 0) {
        return alloti_fail(ALLOT_STATUS_FRAGMENTED, "a red zone is in the way");
    }
    if (size <= old_size && (block->uses != ALLOT_NONE || !block->is_home)) {
        /* Other streams may be using its end still: it stays with the block. */
        count_again(heap, block, old_size, size);
        return ALLOT_STATUS_OK;
    }
    allot_status status = alloti_segment_resize(heap, block->segment, block->range, size, &range);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t larger = range.size > old_size ? range.size : old_size;
    status = range.size > old_size ? take_tail(heap, block, &range)
                                   : alloti_debug_before_shrinking(heap, block, range.size);
    if (status != ALLOT_STATUS_OK) {
        /* There is room for this; should there not be, the block's size does not tell of some bytes
         * that its range has. */
        const allot_status undone =
            alloti_segment_resize(heap, block->segment, block->range, old_size, &range);
        status = undone == ALLOT_STATUS_OK ? status : undone;
    } else {
        count_again(heap, block, range.size, size);
    }
    if (heap->is_virtual) {
        alloti_granules_end(heap, block->segment, range.offset, larger, status == ALLOT_STATUS_OK);
    }
    return status;
}

allot_status alloti_block_after_uses(allot_heap *heap, const heap_block *block)
{
    const uint32_t own = heap->arenas[block->arena]->stream;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = block->uses; i != ALLOT_NONE && status == ALLOT_STATUS_OK;
         i = heap->uses[i].next) {
        const uint32_t other = heap->uses[i].stream;
        if (other != own && !heap->streams[other]->is_ended) {
            status = alloti_place_order(heap, heap->streams[own]->stream, other, true);
        }
    }
    return status;
}

/**
 * Bring the bytes of a block to another address. Where nothing can fail afterwards, so that nobody
 * needs them where they were, pages may be moved instead.
 */
static allot_status bring(allot_heap *heap, const heap_block *block, const heap_ask *ask,
                          uint64_t address, uint64_t size)
{
    const bool is_free_at_once = block->is_home && block->uses == ALLOT_NONE &&
                                 !heap->options.is_debug &&
                                 heap->options.scrub != ALLOT_HEAP_SCRUB_FREE;
    const allot_devptr dst = {address};
    const allot_devptr src = {block->address};
    return is_free_at_once ? allot_device_move(heap->device, ask->request.stream, dst, src, size)
                           : allot_device_copy(heap->device, ask->request.stream, dst, src, size);
}

/**
 * Bring a block to the range of `ask`. Between alloti_block_hold(), which says whether it can move,
 * and end_move(). `ghost` is the place of what is freed, and is put back by this call or later;
 * after a failure it is the caller's, and so is the range.
 */
static allot_status move_block(allot_heap *heap, uint32_t index, uint32_t ghost,
                               const heap_ask *ask)
{
    heap_block *const block = heap_block_at(heap, index);
    const uint64_t address = heap->segments[ask->segment].address + ask->range.offset + ask->lead;
    const uint64_t kept =
        block->requested < ask->request.size ? block->requested : ask->request.size;
    allot_status status = alloti_block_after_uses(heap, block);
    if (status == ALLOT_STATUS_OK) {
        status = bring(heap, block, ask, address, kept);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_pending_detach(heap, index, ghost, true);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_count_freed(heap, block);
    block->address = address;
    block->size = ask->range.size;
    block->requested = ask->request.size;
    block->segment = ask->segment;
    block->range = ask->range.id;
    block->is_moved = true;
    heap->segments[ask->segment].owners[ask->range.id] = index;
    block->is_home = heap->segments[ask->segment].arena == block->arena;
    alloti_count_active(heap, block);
    alloti_count_allocated(heap, block);
    alloti_record_block(heap, ALLOT_EVENT_ALLOC, block);
    return status;
}

heap_ask alloti_ask_like(allot_heap *heap, uint32_t index, uint64_t size)
{
    allot_block_info info;
    alloti_block_describe(heap, index, &info);
    return (heap_ask){.request = {.struct_size = sizeof(allot_request),
                                  .size = size,
                                  .align = heap_block_at(heap, index)->align,
                                  .stream = info.stream,
                                  .pool = info.pool,
                                  .priority = info.priority,
                                  .tag = info.tag,
                                  .owner = info.owner},
                      .fresh = ALLOT_NONE};
}

bool alloti_block_look(allot_heap *heap, uint32_t index, bool waits, heap_sight *out)
{
    heap_block *const block = heap_block_at(heap, index);
    const uint64_t granule = heap->options.granule;
    if (!alloti_block_begin_move(block)) {
        return false;
    }
    const bool can_move = block->is_home && (waits || block->uses == ALLOT_NONE);
    if (can_move) {
        *out = (heap_sight){.handle = alloti_block_handle(heap, index),
                            .address = block->address,
                            .like = alloti_ask_like(heap, index, block->requested)};
        out->like.size = block->size;
        out->like.align = block->align > granule ? block->align : granule;
        out->like.lead = heap_block_lead(heap, block->align);
        out->like.arena = block->arena;
        out->like.segment = block->segment;
        out->like.range.id = block->range;
        out->like.takes_spared = true;
    }
    alloti_block_end_move(block);
    return can_move;
}

allot_status alloti_block_carry(allot_heap *heap, allot_handle handle, uint32_t ghost,
                                const heap_ask *ask)
{
    uint32_t index = 0;
    uint64_t word = 0;
    alloti_fill_block(heap, ask, ghost);
    allot_status status = alloti_debug_before_use(heap, heap_block_at(heap, ghost));
    if (status == ALLOT_STATUS_OK) {
        status = alloti_block_hold(heap, handle, &index, &word);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_block_can_move(word);
        if (status == ALLOT_STATUS_OK) {
            status = move_block(heap, index, ghost, ask);
        }
        alloti_block_end_move(heap_block_at(heap, index));
    }
    if (status == ALLOT_STATUS_OK) {
        alloti_place_end(heap, ask, true);
    } else {
        alloti_forget_place(heap, ask, ghost);
    }
    return status;
}

/** Try where it is; ALLOT_STATUS_FRAGMENTED and `ask` if it has to move. */
static allot_status begin_resize(allot_heap *heap, allot_handle handle, uint64_t size,
                                 heap_ask *ask)
{
    uint32_t index = 0;
    uint64_t word = 0;
    const allot_status status = alloti_block_hold(heap, handle, &index, &word);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap_block *const block = heap_block_at(heap, index);
    const allot_status movable = alloti_block_can_move(word);
    allot_status resized = movable;
    if (movable != ALLOT_STATUS_NOT_FOUND) {
        *ask = alloti_ask_like(heap, index, size);
        resized = resize_in_place(heap, block, size);
    }
    alloti_block_end_move(block);
    return heap_is_no_room(resized) && movable != ALLOT_STATUS_OK ? alloti_block_can_move(word)
                                                                  : resized;
}

allot_status allot_heap_resize(allot_heap *heap, allot_handle handle, uint64_t size)
{
    heap_ask ask = {0};
    uint32_t ghost = 0;
    if (size == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a block has at least one byte");
    }
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = heap_leave(heap, begin_resize(heap, handle, size, &ask));
    if (!heap_is_no_room(status)) {
        return status;
    }
    status = alloti_find_room(heap, &ask, &ghost);
    return status == ALLOT_STATUS_OK
               ? heap_leave(heap, alloti_block_carry(heap, handle, ghost, &ask))
               : status;
}
