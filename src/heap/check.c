/* SPDX-License-Identifier: MIT */
/*
 * All invariants of a heap. Everything is held still: the heap's lock and all fronts. A block that
 * another thread has retired and not yet freed counts as handed out, as it does in the sums.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "core/array.h"
#include "heap/block.h"
#include "heap/front.h"
#include "heap/pool.h"
#include "space/space.h"

/** What was found so far. */
typedef struct tally {
    allot_heap *heap;
    uint32_t *waits;   /**< [blocks] Entries in queues. */
    uint8_t *is_front; /**< [blocks] In a front, or waiting to be given back. */
    uint64_t placed;   /**< Blocks that have a range. */
    uint64_t ranges;   /**< Used ranges. */
    uint64_t active_bytes;
    uint64_t in_segments; /**< Bytes of blocks in them. */
    uint64_t allocated;
    uint64_t allocated_bytes;
    uint64_t requested_bytes;
    uint64_t front_requested; /**< As fronts count it, modulo 2^64. */
} tally;

static allot_status wrong(const char *what, uint64_t is, uint64_t should_be)
{
    return alloti_fail(ALLOT_STATUS_MISMATCH, "%s: %" PRIu64 ", should be %" PRIu64, what, is,
                       should_be);
}

#define MUST_BE(what, is, should_be)                                                               \
    do {                                                                                           \
        if ((uint64_t)(is) != (uint64_t)(should_be)) {                                             \
            return wrong((what), (is), (should_be));                                               \
        }                                                                                          \
    } while (0)

/* ---- queues and fronts ---- */

static void tally_waits(tally *t)
{
    for (uint32_t i = 0; i < t->heap->stream_count; i++) {
        const heap_stream *const stream = t->heap->streams[i];
        for (uint64_t j = 0; j < stream->waits_count; j++) {
            const uint64_t at = (stream->waits_head + j) & (stream->waits_capacity - 1);
            t->waits[stream->waits[at].block]++;
        }
    }
}

static allot_status check_front(tally *t, const heap_front *front)
{
    uint64_t bytes = 0;
    uint64_t count = 0;
    for (int slot = 0; slot < FRONT_SLOTS; slot++) {
        for (uint32_t i = front->first[slot]; i != ALLOT_NONE;
             i = heap_block_at(t->heap, i)->next) {
            MUST_BE("size of a block in a front", heap_block_at(t->heap, i)->size,
                    front->size[slot]);
            t->is_front[i] = 1;
            bytes += front->size[slot];
            count++;
        }
    }
    MUST_BE("bytes of a front", front->bytes, bytes);
    MUST_BE("blocks of a front", front->count, count);
    t->front_requested += front->requested;
    return ALLOT_STATUS_OK;
}

static allot_status check_fronts(tally *t)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < t->heap->arena_count && status == ALLOT_STATUS_OK; i++) {
        status = check_front(t, &t->heap->arenas[i]->front);
    }
    return status;
}

/* ---- blocks ---- */

static allot_status check_mapped(const allot_heap *heap, const heap_segment *segment,
                                 const allot_range *range)
{
    const uint64_t granule = heap->info.granule;
    for (uint64_t at = range->offset / granule; at * granule < range->offset + range->size; at++) {
        MUST_BE("granules that are mapped under a block", segment->granules[at].memory.value != 0,
                1);
    }
    return ALLOT_STATUS_OK;
}

static allot_status check_block(tally *t, uint32_t index)
{
    const heap_block *const block = heap_block_at(t->heap, index);
    if (block->segment == ALLOT_NONE) {
        return ALLOT_STATUS_OK;
    }
    const heap_segment *const segment = &t->heap->segments[block->segment];
    MUST_BE("segment of a block is there", segment->address != 0, 1);
    allot_range range;
    allot_status status = allot_space_get(segment->space, block->range, &range);
    if (status != ALLOT_STATUS_OK) {
        return alloti_fail_prefix(ALLOT_STATUS_MISMATCH, "block %" PRIu32 ": ", index);
    }
    MUST_BE("owner of a range", segment->owners[block->range], index);
    MUST_BE("size of a block", block->size, range.size);
    const uint64_t begin = segment->address + range.offset;
    MUST_BE("a block lies in its range",
            block->address >= begin && block->address + block->requested <= begin + range.size, 1);
    MUST_BE("events that a block waits for", t->waits[index], block->pending);
    if (t->heap->is_virtual) {
        status = check_mapped(t->heap, segment, &range);
    }
    t->placed++;
    t->active_bytes += block->size;
    if (!block->is_pending) {
        /* To the meters a block in a front is handed out still. */
        t->allocated++;
        t->allocated_bytes += block->size;
        t->requested_bytes += t->is_front[index] != 0 ? 0 : block->requested;
    }
    return status;
}

static allot_status check_blocks(tally *t)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < t->heap->blocks.count && status == ALLOT_STATUS_OK; i++) {
        status = check_block(t, i);
    }
    return status;
}

/* ---- segments and arenas ---- */

static allot_status check_segment(tally *t, const heap_segment *segment)
{
    const allot_space *const space = segment->space;
    const allot_status status = allot_space_check(space);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    MUST_BE("bytes of blocks in a segment", segment->active, space->size_used);
    MUST_BE("blocks in a segment", segment->active_count, space->used_count);
    uint64_t held = t->heap->is_virtual ? 0 : segment->device_size;
    for (uint64_t i = 0; t->heap->is_virtual && i < segment->size / t->heap->info.granule; i++) {
        const bool is_mapped = segment->granules[i].memory.value != 0;
        MUST_BE("granules above the end of a space",
                is_mapped && (i + 1) * t->heap->info.granule > space->capacity, 0);
        held += is_mapped ? t->heap->info.granule : 0;
    }
    MUST_BE("bytes that a segment holds", segment->held, held);
    t->ranges += space->used_count;
    return status;
}

static allot_status check_arena(tally *t, uint32_t index, uint64_t *held)
{
    const heap_arena *const arena = t->heap->arenas[index];
    uint64_t before = 0;
    for (uint32_t i = 0; i < arena->count; i++) {
        const heap_segment *const segment = &t->heap->segments[arena->segments[i]];
        MUST_BE("arena of a segment", segment->arena, index);
        MUST_BE("segments are in the order of their addresses", segment->address > before, 1);
        MUST_BE("largest free range of a segment", arena->largest[i],
                allot_space_largest_free(segment->space));
        const allot_status status = check_segment(t, segment);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        before = segment->address;
        *held += segment->held;
        t->in_segments += segment->active;
    }
    return ALLOT_STATUS_OK;
}

static allot_status check_arenas(tally *t)
{
    allot_heap *const heap = t->heap;
    uint64_t held = 0;
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        const allot_status status = check_arena(t, i, &held);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    MUST_BE("bytes held", heap->held, held);
    uint64_t in_pools = 0;
    uint64_t active = 0;
    for (uint32_t i = 0; i < heap->pool_count; i++) {
        in_pools += heap->pools[i]->held;
        active += heap->pools[i]->active;
    }
    MUST_BE("bytes held by pools", in_pools, held);
    MUST_BE("bytes of blocks in pools", active, t->in_segments);
    MUST_BE("used ranges", t->ranges, t->placed);
    return ALLOT_STATUS_OK;
}

static allot_status check_meters(const tally *t)
{
    const allot_heap *const heap = t->heap;
    MUST_BE("reserved_bytes", heap->meters.reserved_bytes.current, heap->held);
    MUST_BE("active_bytes", heap->meters.active_bytes.current, t->active_bytes);
    MUST_BE("allocation", heap->meters.allocation.current, t->allocated);
    MUST_BE("allocated_bytes", heap->meters.allocated_bytes.current, t->allocated_bytes);
    MUST_BE("requested_bytes", heap->meters.requested_bytes.current - t->front_requested,
            t->requested_bytes);
    return ALLOT_STATUS_OK;
}

static allot_status check_all(tally *t)
{
    tally_waits(t);
    allot_status status = check_fronts(t);
    if (status == ALLOT_STATUS_OK) {
        status = check_blocks(t);
    }
    if (status == ALLOT_STATUS_OK) {
        status = check_arenas(t);
    }
    return status == ALLOT_STATUS_OK ? check_meters(t) : status;
}

allot_status allot_heap_check(allot_heap *heap)
{
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t count = (uint64_t)heap->blocks.count + 1;
    tally t = {.heap = heap,
               .waits = alloti_calloc_array(count, sizeof *t.waits),
               .is_front = alloti_calloc_array(count, sizeof *t.is_front)};
    alloti_front_lock_all(heap);
    status = t.waits == NULL || t.is_front == NULL ? alloti_fail_memory(count * sizeof *t.waits)
                                                   : check_all(&t);
    alloti_front_unlock_all(heap);
    free(t.waits);
    free(t.is_front);
    return heap_leave(heap, status);
}
