/* SPDX-License-Identifier: MIT */
#include "heap/debug.h"

#include <inttypes.h>

#include "space/space.h"

enum { POISON_ALLOCATED = 0xCD, POISON_FREED = 0xDD, POISON_ZONE = 0xFD, ZONE_STEP = 256 };

static allot_stream own_stream(const allot_heap *heap, const heap_block *block)
{
    return heap->streams[heap->arenas[block->arena]->stream]->stream;
}

static uint64_t range_begin(const allot_heap *heap, const heap_block *block)
{
    const heap_segment *const segment = &heap->segments[block->segment];
    return segment->address + range_offset(segment->space, block->range);
}

/** Bytes behind the caller's, up to the end of the range. */
static uint64_t tail_size(const allot_heap *heap, const heap_block *block)
{
    return range_begin(heap, block) + block->size - (block->address + block->requested);
}

static allot_status fill(allot_heap *heap, allot_stream stream, uint64_t address, uint8_t value,
                         uint64_t size)
{
    return allot_device_fill(heap->device, stream, (allot_devptr){address}, value, size);
}

static allot_status poison(allot_heap *heap, const heap_block *block)
{
    const allot_stream stream = own_stream(heap, block);
    const uint64_t begin = range_begin(heap, block);
    allot_status status = fill(heap, stream, begin, POISON_ZONE, block->address - begin);
    if (status == ALLOT_STATUS_OK) {
        status = fill(heap, stream, block->address, POISON_ALLOCATED, block->requested);
    }
    if (status == ALLOT_STATUS_OK) {
        status = fill(heap, stream, block->address + block->requested, POISON_ZONE,
                      tail_size(heap, block));
    }
    return status;
}

/** Whether another owner may have had what a block got; from now on this one has it. */
static bool changes_owner(heap_segment *segment, uint32_t owner)
{
    if (!segment->has_owner) {
        segment->has_owner = true;
        segment->owner = owner;
        return false;
    }
    segment->has_owners = segment->has_owners || segment->owner != owner;
    return segment->has_owners;
}

allot_status alloti_debug_before_shrinking(allot_heap *heap, const heap_block *block, uint64_t size)
{
    if (heap->options.scrub != ALLOT_HEAP_SCRUB_FREE) {
        return ALLOT_STATUS_OK;
    }
    return fill(heap, own_stream(heap, block), range_begin(heap, block) + size, 0,
                block->size - size);
}

allot_status alloti_debug_before_use(allot_heap *heap, const heap_block *block)
{
    heap_segment *const segment = &heap->segments[block->segment];
    allot_status status = ALLOT_STATUS_OK;
    if (heap->options.scrub == ALLOT_HEAP_SCRUB_REUSE && changes_owner(segment, block->owner)) {
        status = fill(heap, own_stream(heap, block), range_begin(heap, block), 0, block->size);
    }
    if (status == ALLOT_STATUS_OK && heap->options.is_debug) {
        status = poison(heap, block);
    }
    return status;
}

allot_status alloti_debug_before_growth(allot_heap *heap, const heap_block *block, uint64_t size)
{
    heap_segment *const segment = &heap->segments[block->segment];
    if (heap->options.scrub != ALLOT_HEAP_SCRUB_REUSE || size <= block->size ||
        !changes_owner(segment, block->owner)) {
        return ALLOT_STATUS_OK;
    }
    return fill(heap, own_stream(heap, block), range_begin(heap, block) + block->size, 0,
                size - block->size);
}

/** Look for a byte that is not the zone's; ALLOT_STATUS_MISMATCH with where it is. */
static allot_status check_zone(allot_heap *heap, const heap_block *block, uint64_t address,
                               uint64_t size)
{
    const allot_stream stream = own_stream(heap, block);
    uint8_t bytes[ZONE_STEP];
    for (uint64_t at = 0; at < size; at += ZONE_STEP) {
        const uint64_t step = size - at < ZONE_STEP ? size - at : ZONE_STEP;
        allot_status status =
            allot_device_read(heap->device, stream, bytes, (allot_devptr){address + at}, step);
        if (status == ALLOT_STATUS_OK) {
            status = allot_device_stream_synchronize(heap->device, stream);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        for (uint64_t i = 0; i < step; i++) {
            if (bytes[i] != POISON_ZONE) {
                return alloti_fail(
                    ALLOT_STATUS_MISMATCH,
                    "block %#" PRIx64 " of %" PRIu64 " bytes: byte %" PRId64 " was written to",
                    block->address, block->requested, (int64_t)(address + at + i - block->address));
            }
        }
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_debug_check(allot_heap *heap, const heap_block *block)
{
    if (!heap->options.is_debug || !heap->info.has_bytes) {
        return ALLOT_STATUS_OK;
    }
    const uint64_t begin = range_begin(heap, block);
    const allot_status status = check_zone(heap, block, begin, block->address - begin);
    return status != ALLOT_STATUS_OK
               ? status
               : check_zone(heap, block, block->address + block->requested, tail_size(heap, block));
}

/** Poison or scrub the last `size` bytes of a block's range. */
static allot_status fill_end(allot_heap *heap, const heap_block *block, uint64_t size)
{
    if (!heap->options.is_debug && heap->options.scrub != ALLOT_HEAP_SCRUB_FREE) {
        return ALLOT_STATUS_OK;
    }
    const uint32_t home = heap->arenas[heap->segments[block->segment].arena]->stream;
    const bool scrubs = heap->options.scrub == ALLOT_HEAP_SCRUB_FREE;
    return fill(heap, heap->streams[home]->stream, range_begin(heap, block) + block->size - size,
                scrubs ? 0 : POISON_FREED, size);
}

allot_status alloti_debug_before_sliding(allot_heap *heap, const heap_block *block,
                                         uint64_t distance)
{
    return fill_end(heap, block, distance);
}

allot_status alloti_debug_before_reuse(allot_heap *heap, const heap_block *block)
{
    return fill_end(heap, block, block->size);
}
