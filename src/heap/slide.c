/* SPDX-License-Identifier: MIT */
/*
 * Sliding: a block moves down into the free memory before it, by less than its own length.
 *
 *     [free ..][0 0 0 1 1 1 2 2 2 3]           distance 3, chunks of 3
 *     [0 0 0 1 1 1 2 2 2 3][free ..]
 *
 * The bytes are copied in chunks, the lowest first, each no longer than the distance, so that no
 * copy overlaps itself. Where that would be many small copies, larger chunks take the way through a
 * free range elsewhere, the stage. A chunk overwrites bytes of its own and of the chunk before,
 * which is at its new place already: so whatever chunk fails, the others are copied back, the last
 * one first, and the block is as it was. The heap's table of ranges changes when all are copied.
 *
 * If copying back fails too, a part of the bytes is at the new place and a part at the old one:
 * the block is lost, and is treated as one that was dropped.
 */
#include <inttypes.h>

#include "heap/alloc.h"
#include "heap/block.h"
#include "heap/debug.h"
#include "heap/drop.h"
#include "heap/granules.h"
#include "heap/move.h"
#include "heap/pending.h"
#include "heap/record.h"
#include "space/space.h"

/** A block on its way. */
typedef struct slide {
    allot_heap *heap;
    heap_block *block;
    allot_stream stream;
    uint64_t from; /**< Addresses. */
    uint64_t to;
    uint64_t size; /**< Bytes to copy. */
    uint64_t chunk;
    bool is_staged;
    bool is_on_stage; /**< The chunk that is copied: whole, in the stage. */
    heap_ask stage;
} slide;

/* ---- the stage ---- */

/** Whether what is copied must leave no trace where it was on the way. */
static bool leaves_no_trace(const allot_heap *heap)
{
    return heap->options.is_debug || heap->options.scrub != ALLOT_HEAP_SCRUB_NEVER;
}

/** Give the stage back, or the place that was taken for it: what follows on the stream may use it.
 */
static void end_stage(slide *s, uint32_t staging)
{
    alloti_fill_block(s->heap, &s->stage, staging);
    s->heap->arenas[s->stage.arena]->block_count++;
    (void)alloti_pending_undo(s->heap, staging, true);
}

/** Whether the stage is where the block is to go. */
static bool is_in_the_way(const slide *s)
{
    const uint64_t begin = s->heap->segments[s->stage.segment].address + s->stage.range.offset;
    return begin < s->from && begin + s->stage.range.size > s->to;
}

/** Get a stage of `size` bytes if there is one. `staging` is put back if there is none. */
static void begin_stage(slide *s, uint32_t staging, uint64_t size)
{
    s->stage = (heap_ask){.request = {.struct_size = sizeof(allot_request), .size = size},
                          .size = size,
                          .align = s->heap->options.granule,
                          .arena = s->block->arena,
                          .fresh = ALLOT_NONE,
                          .takes_spared = true};
    if (size <= s->chunk || leaves_no_trace(s->heap) ||
        alloti_place_in(s->heap, s->block->arena, &s->stage, HEAP_BOUND_NONE) != ALLOT_STATUS_OK) {
        alloti_block_put(s->heap, staging);
        return;
    }
    alloti_place_end(s->heap, &s->stage, true);
    s->is_staged = !is_in_the_way(s);
    if (s->is_staged) {
        s->chunk = size;
    } else {
        end_stage(s, staging);
    }
}

/* ---- copying ---- */

static uint64_t stage_address(const slide *s)
{
    return s->heap->segments[s->stage.segment].address + s->stage.range.offset;
}

static allot_status copy(const slide *s, uint64_t dst, uint64_t src, uint64_t size)
{
    return allot_device_copy(s->heap->device, s->stream, (allot_devptr){dst}, (allot_devptr){src},
                             size);
}

static allot_status copy_chunk(slide *s, uint64_t dst, uint64_t src, uint64_t size)
{
    s->is_on_stage = false;
    if (!s->is_staged) {
        return copy(s, dst, src, size);
    }
    const allot_status status = copy(s, stage_address(s), src, size);
    s->is_on_stage = status == ALLOT_STATUS_OK;
    return status == ALLOT_STATUS_OK ? copy(s, dst, stage_address(s), size) : status;
}

static uint64_t chunk_size(const slide *s, uint64_t at)
{
    return s->size - at < s->chunk ? s->size - at : s->chunk;
}

/** Copy all chunks; after a failure *at is where the one begins that failed. */
static allot_status copy_down(slide *s, uint64_t *at)
{
    allot_status status = ALLOT_STATUS_OK;
    for (*at = 0; *at < s->size && status == ALLOT_STATUS_OK;) {
        status = copy_chunk(s, s->to + *at, s->from + *at, chunk_size(s, *at));
        *at += status == ALLOT_STATUS_OK ? s->chunk : 0;
    }
    return status;
}

/** Undo that: the chunk at `at` if a copy of it overwrote a part of it, then those before it. */
static allot_status copy_back(slide *s, uint64_t at)
{
    allot_status status = ALLOT_STATUS_OK;
    if (at < s->size && s->is_on_stage) {
        status = copy(s, s->from + at, stage_address(s), chunk_size(s, at));
    }
    while (at > 0 && status == ALLOT_STATUS_OK) {
        at -= s->chunk;
        status = copy_chunk(s, s->from + at, s->to + at, chunk_size(s, at));
    }
    return status;
}

/** What cannot be undone: a part of the bytes is here, a part there. `lost` is a place for what the
 * block had. */
static allot_status lose(const slide *s, uint32_t index, uint32_t lost, allot_status status)
{
    if (alloti_drop_memory(s->heap, index, lost) != ALLOT_STATUS_OK) {
        alloti_block_put(s->heap, lost);
        return alloti_fail_prefix(status, "block %#" PRIx64 " has not all of its bytes: ", s->from);
    }
    return alloti_fail_prefix(status, "block %#" PRIx64 " is lost: ", s->from);
}

/** Bring the bytes down, or leave them where they are. */
static allot_status bring_down(slide *s, uint32_t index, uint32_t lost)
{
    uint64_t at = 0;
    allot_status status = copy_down(s, &at);
    if (status == ALLOT_STATUS_OK) {
        s->is_on_stage = false;
        status = alloti_debug_before_sliding(s->heap, s->block, s->from - s->to);
    }
    if (status != ALLOT_STATUS_OK && copy_back(s, at) != ALLOT_STATUS_OK) {
        return lose(s, index, lost, status);
    }
    alloti_block_put(s->heap, lost);
    return status;
}

/* ---- moving ---- */

/** All bytes are at the new place. */
static void settle(const slide *s, uint64_t offset)
{
    alloti_record_block(s->heap, ALLOT_EVENT_FREE_REQUESTED, s->block);
    alloti_record_block(s->heap, ALLOT_EVENT_FREE_COMPLETED, s->block);
    alloti_segment_slide(s->heap, s->block->segment, s->block->range, offset);
    s->block->address -= s->from - s->to;
    s->block->is_moved = true;
    alloti_record_block(s->heap, ALLOT_EVENT_ALLOC, s->block);
}

/** The memory from `offset` up to the block is there and taken for it. `lost` is put back. */
static allot_status slide_into(slide *s, uint32_t index, uint64_t offset, uint32_t lost)
{
    allot_heap *const heap = s->heap;
    const uint32_t segment = s->block->segment;
    const uint64_t distance = s->from - s->to;
    allot_status status =
        alloti_space_reserve_slide(heap->segments[segment].space, s->block->range, offset);
    if (status == ALLOT_STATUS_OK && heap->is_virtual) {
        status = alloti_granules_commit(heap, segment, offset, distance, HEAP_BOUND_NONE);
    }
    if (status != ALLOT_STATUS_OK) {
        alloti_block_put(heap, lost);
        return status;
    }
    status = bring_down(s, index, lost);
    if (status == ALLOT_STATUS_OK) {
        settle(s, offset);
    }
    if (heap->is_virtual) {
        alloti_granules_end(heap, segment, offset, distance, status == ALLOT_STATUS_OK);
    }
    return status;
}

/** With two places taken: for the stage, and for what a lost block had. */
static allot_status slide_block(slide *s, uint32_t index, uint64_t offset, uint64_t stage)
{
    uint32_t staging = 0;
    uint32_t lost = 0;
    allot_status status = alloti_block_take(s->heap, &staging);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = alloti_block_take(s->heap, &lost);
    if (status != ALLOT_STATUS_OK) {
        alloti_block_put(s->heap, staging);
        return status;
    }
    begin_stage(s, staging, stage);
    status = slide_into(s, index, offset, lost);
    if (s->is_staged) {
        end_stage(s, staging);
    }
    return status;
}

static allot_status begin_slide(allot_heap *heap, uint32_t index, uint64_t offset, uint64_t stage)
{
    heap_block *const block = heap_block_at(heap, index);
    const heap_segment *const segment = &heap->segments[block->segment];
    if (!block->is_home) {
        return alloti_fail(ALLOT_STATUS_BUSY, "the block lies in memory of another stream");
    }
    allot_status status = alloti_space_reserve_slide(segment->space, block->range, offset);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_block_after_uses(heap, block);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t from = segment->address + range_offset(segment->space, block->range);
    const uint64_t to = segment->address + offset;
    slide s = {.heap = heap,
               .block = block,
               .stream = heap->streams[heap->arenas[block->arena]->stream]->stream,
               .from = from,
               .to = to,
               /* Red zones and what is scrubbed behind the caller's bytes go along. */
               .size = leaves_no_trace(heap) ? block->size : block->requested,
               .chunk = from - to};
    return slide_block(&s, index, offset, stage);
}

allot_status alloti_block_slide(allot_heap *heap, allot_handle handle, uint64_t offset,
                                uint64_t stage)
{
    uint32_t index = 0;
    uint64_t word = 0;
    allot_status status = alloti_block_hold(heap, handle, &index, &word);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = alloti_block_can_move(word);
    if (status == ALLOT_STATUS_OK) {
        status = begin_slide(heap, index, offset, stage);
    }
    alloti_block_end_move(heap_block_at(heap, index));
    return status;
}
