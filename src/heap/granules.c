/* SPDX-License-Identifier: MIT */
#include "heap/granules.h"

#include <inttypes.h>

#include "core/array.h"
#include "core/size_math.h"
#include "heap/arena.h"
#include "heap/checkpoint.h"
#include "heap/record.h"
#include "space/space.h"

/** Attempts to make a space long enough, each twice as long: some strategies take more room than a
 * request needs. */
enum { GROW_ATTEMPTS = 4 };

static uint64_t granule_of(const allot_heap *heap)
{
    return heap->info.granule;
}

static uint64_t end_of(const allot_heap *heap, uint64_t offset, uint64_t size)
{
    return (offset + size + granule_of(heap) - 1) / granule_of(heap);
}

static allot_devptr address_of(const allot_heap *heap, const heap_segment *segment, uint64_t number)
{
    return (allot_devptr){segment->address + number * granule_of(heap)};
}

/* ---- one granule ---- */

/*
 * Memory on its way from one place to another, and memory that could neither be mapped nor be given
 * back, which takes two failures at once: kept for the next granule, or until the heap is trimmed.
 * It is not counted as held.
 */

static allot_status reserve_spare(allot_heap *heap)
{
    return alloti_array_reserve(&heap->spares, &heap->spares_capacity, heap->spare_count + 1,
                                sizeof *heap->spares);
}

static void release_or_keep(allot_heap *heap, allot_memory memory)
{
    if (allot_device_memory_release(heap->device, memory, granule_of(heap)) != ALLOT_STATUS_OK) {
        heap->spares[heap->spare_count++] = memory;
    }
}

allot_status alloti_granules_release_spares(allot_heap *heap)
{
    while (heap->spare_count != 0) {
        const allot_status status = allot_device_memory_release(
            heap->device, heap->spares[heap->spare_count - 1], granule_of(heap));
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        heap->spare_count--;
    }
    return ALLOT_STATUS_OK;
}

static allot_status get_memory(allot_heap *heap, allot_memory *out)
{
    allot_status status = reserve_spare(heap);
    if (status == ALLOT_STATUS_OK && heap->spare_count != 0) {
        *out = heap->spares[--heap->spare_count];
    } else if (status == ALLOT_STATUS_OK) {
        status = allot_device_memory_create(heap->device, granule_of(heap), out);
    }
    return status;
}

static allot_status map_one(allot_heap *heap, uint32_t index, uint64_t number)
{
    heap_segment *const segment = &heap->segments[index];
    const allot_devptr at = address_of(heap, segment, number);
    allot_memory memory = {0};
    allot_status status = get_memory(heap, &memory);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = allot_device_map(heap->device, at, memory, granule_of(heap));
    if (status != ALLOT_STATUS_OK) {
        release_or_keep(heap, memory);
        return status;
    }
    segment->granules[number].memory = memory;
    segment->granules[number].is_fresh = true;
    alloti_segment_hold(heap, index, granule_of(heap), 1);
    alloti_record_segment(heap, ALLOT_EVENT_SEGMENT_MAP, index, at.address, granule_of(heap));
    return ALLOT_STATUS_OK;
}

/** Unmapped, and kept for the next granule that is mapped; nothing has changed after a failure. */
static allot_status unmap_to_spare(allot_heap *heap, uint32_t index, uint64_t number)
{
    heap_segment *const segment = &heap->segments[index];
    const allot_devptr at = address_of(heap, segment, number);
    allot_status status = reserve_spare(heap);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_unmap(heap->device, at, granule_of(heap));
    }
    if (status == ALLOT_STATUS_OK) {
        heap->spares[heap->spare_count++] = segment->granules[number].memory;
        segment->granules[number].memory = (allot_memory){0};
        alloti_segment_let_go(heap, index, granule_of(heap), 1);
        alloti_record_segment(heap, ALLOT_EVENT_SEGMENT_UNMAP, index, at.address, granule_of(heap));
    }
    return status;
}

/** The same of one that is free, to be mapped elsewhere: it is noted, so that it can be undone. */
static allot_status lend(allot_heap *heap, uint32_t index, uint64_t number)
{
    allot_status status = alloti_array_reserve(&heap->lent, &heap->lent_capacity,
                                               heap->lent_count + 1, sizeof *heap->lent);
    if (status == ALLOT_STATUS_OK) {
        status = unmap_to_spare(heap, index, number);
    }
    if (status == ALLOT_STATUS_OK) {
        heap->lent[heap->lent_count++] = (heap_lent){.segment = index, .number = number};
    }
    return status;
}

/** Back to the device; after a failure it is mapped as before, or, if that fails too, a spare. */
static allot_status unmap_one(allot_heap *heap, uint32_t index, uint64_t number)
{
    heap_segment *const segment = &heap->segments[index];
    const allot_devptr at = address_of(heap, segment, number);
    const allot_memory memory = segment->granules[number].memory;
    allot_status status = reserve_spare(heap);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_unmap(heap->device, at, granule_of(heap));
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = allot_device_memory_release(heap->device, memory, granule_of(heap));
    if (status != ALLOT_STATUS_OK) {
        if (allot_device_map(heap->device, at, memory, granule_of(heap)) == ALLOT_STATUS_OK) {
            return status;
        }
        heap->spares[heap->spare_count++] = memory;
    }
    segment->granules[number] = (heap_granule){0};
    alloti_segment_let_go(heap, index, granule_of(heap), 1);
    alloti_record_segment(heap, ALLOT_EVENT_SEGMENT_UNMAP, index, at.address, granule_of(heap));
    return status;
}

/* ---- growing ---- */

/** Whether a space ends with free memory for requests of any size: not with a chunk of a tier. */
static bool ends_free(const allot_space *space)
{
    return space_is_free(space, space->last) && space_zone(space, space->last) == 0;
}

/** Whether a request fits, at least at the end: free memory of tiers is for their sizes alone. */
static bool has_room(const allot_space *space, uint64_t size)
{
    return space->strategy == ALLOT_SPACE_STRATEGY_TIERED
               ? ends_free(space) && range_size(space, space->last) >= size
               : allot_space_largest_free(space) >= size;
}

/** Where a request would begin at the end of a space. */
static uint64_t begin_at_end(const allot_space *space, uint64_t align)
{
    const uint64_t end = ends_free(space) ? range_offset(space, space->last) : space->capacity;
    return (end + align - 1) & ~(align - 1);
}

/** Make a space long enough; false, and it is as it was, if its addresses do not suffice. */
static allot_status extend(allot_heap *heap, uint32_t index, uint64_t size, uint64_t align,
                           bool *fits)
{
    const heap_segment *const segment = &heap->segments[index];
    const bool is_buddy = segment->space->strategy == ALLOT_SPACE_STRATEGY_BUDDY;
    const uint64_t begin = begin_at_end(segment->space, is_buddy && size > align ? size : align);
    uint64_t extra = size;
    *fits = false;
    for (int i = 0; i < GROW_ATTEMPTS && !*fits; i++, extra *= 2) {
        uint64_t end = 0;
        if (!alloti_add(begin, extra, &end) || !alloti_align_up(end, granule_of(heap), &end) ||
            end > segment->size) {
            break;
        }
        /* What follows may be long enough and lack granules: it stays as long as it is. */
        end = end < segment->space->capacity ? segment->space->capacity : end;
        const allot_status status = allot_space_set_capacity(segment->space, end);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        *fits = has_room(segment->space, size);
    }
    alloti_arena_update(heap, index);
    return ALLOT_STATUS_OK;
}

allot_status alloti_granules_grow(allot_heap *heap, uint32_t arena, uint64_t size, uint64_t align,
                                  uint32_t *fresh)
{
    bool fits = false;
    for (uint32_t i = 0; i < heap->arenas[arena]->count; i++) {
        const uint32_t index = heap->arenas[arena]->segments[i];
        if ((heap->segments[index].address & (align - 1)) != 0) {
            continue;
        }
        const allot_status status = extend(heap, index, size, align, &fits);
        if (status != ALLOT_STATUS_OK || fits) {
            return status;
        }
        alloti_granules_settle(heap, index);
    }
    uint64_t addresses = heap->options.reserve_size;
    if (addresses < size) {
        addresses = size;
    }
    if (!alloti_align_up(addresses, granule_of(heap), &addresses)) {
        return alloti_fail(ALLOT_STATUS_DEVICE_MEMORY, "%" PRIu64 " bytes are too many", size);
    }
    const allot_status status = alloti_segment_create(heap, arena, addresses, align, fresh);
    return status == ALLOT_STATUS_OK ? extend(heap, *fresh, size, align, &fits) : status;
}

/* ---- giving back ---- */

static bool is_mapped(const heap_segment *segment, uint64_t number)
{
    return segment->granules[number].memory.value != 0;
}

/** Granules of [first, end) that are not mapped. */
static uint64_t count_missing(const heap_segment *segment, uint64_t first, uint64_t end)
{
    uint64_t missing = 0;
    for (uint64_t i = first; i < end; i++) {
        missing += !is_mapped(segment, i);
    }
    return missing;
}

void alloti_granules_note_free(allot_heap *heap, uint32_t index, uint64_t offset, uint64_t size)
{
    heap_segment *const segment = &heap->segments[index];
    const uint64_t epoch = heap->streams[heap->arenas[segment->arena]->stream]->epoch;
    for (uint64_t i = offset / granule_of(heap); i < end_of(heap, offset, size); i++) {
        segment->granules[i].freed_at = epoch;
    }
}

void alloti_granules_settle(allot_heap *heap, uint32_t index)
{
    const heap_segment *const segment = &heap->segments[index];
    uint64_t end = segment->space->capacity / granule_of(heap);
    while (end > 0 && !is_mapped(segment, end - 1)) {
        end--;
    }
    if (end * granule_of(heap) < segment->space->capacity &&
        allot_space_set_capacity(segment->space, end * granule_of(heap)) == ALLOT_STATUS_OK) {
        alloti_arena_update(heap, index);
    }
}

/** Whole granules of a free range: [*first, *end). */
static void inner_granules(const allot_heap *heap, const allot_space *space, uint32_t id,
                           uint64_t *first, uint64_t *end)
{
    const uint64_t offset = range_offset(space, id);
    *first = (offset + granule_of(heap) - 1) / granule_of(heap);
    *end = (offset + range_size(space, id)) / granule_of(heap);
}

uint64_t alloti_granules_trimmable(const allot_heap *heap, uint32_t index)
{
    const heap_segment *const segment = &heap->segments[index];
    const allot_space *const space = segment->space;
    uint64_t total = 0;
    for (uint32_t id = space->first; id != ALLOT_NONE; id = space->ranges[id].next) {
        uint64_t first = 0;
        uint64_t end = 0;
        inner_granules(heap, space, id, &first, &end);
        if (space_is_free(space, id) && first < end) {
            total += end - first - count_missing(segment, first, end);
        }
    }
    return total * granule_of(heap);
}

/** How a granule is unmapped. */
typedef allot_status (*unmap_fn)(allot_heap *heap, uint32_t index, uint64_t number);

/** Unmap such granules that were freed before an epoch, from the end, until `size` bytes are. */
static allot_status unmap_free(allot_heap *heap, uint32_t index, uint64_t size, uint64_t epoch,
                               unmap_fn unmap, uint64_t *done)
{
    const heap_segment *const segment = &heap->segments[index];
    const allot_space *const space = segment->space;
    for (uint32_t id = space->last; id != ALLOT_NONE && *done < size; id = space->ranges[id].prev) {
        uint64_t first = 0;
        uint64_t end = 0;
        inner_granules(heap, space, id, &first, &end);
        while (space_is_free(space, id) && first < end && *done < size) {
            end--;
            if (is_mapped(segment, end) && segment->granules[end].freed_at < epoch) {
                const allot_status status = unmap(heap, index, end);
                if (status != ALLOT_STATUS_OK) {
                    return status;
                }
                *done += granule_of(heap);
            }
        }
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_granules_trim(allot_heap *heap, uint32_t index, uint64_t size,
                                  uint64_t *released)
{
    uint64_t done = 0;
    const allot_status status = unmap_free(heap, index, size, UINT64_MAX, unmap_one, &done);
    *released += done;
    alloti_granules_settle(heap, index);
    return status;
}

/* ---- lending ---- */

/** Free granules of an arena are lent, until `wanted` bytes are. */
static allot_status lend_from(allot_heap *heap, const heap_arena *arena, uint64_t wanted,
                              uint64_t *done)
{
    bool has_any = false;
    for (uint32_t i = 0; i < arena->count; i++) {
        has_any |= arena->largest[i] >= granule_of(heap);
    }
    if (!has_any) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = alloti_checkpoint_look(heap, arena->stream);
    const uint64_t epoch = heap->streams[arena->stream]->reached;
    for (uint32_t i = 0; i < arena->count && *done < wanted && status == ALLOT_STATUS_OK; i++) {
        status = unmap_free(heap, arena->segments[i], wanted, epoch, lend, done);
    }
    return status;
}

/**
 * Lend free granules of a pool to a commit that lacks so many bytes. What blocks lie around them
 * does not matter: they keep their addresses. Only what was freed before a checkpoint that its
 * stream has reached, as there may be work on the rest. ALLOT_STATUS_FRAGMENTED if that has to
 * suffice and does not.
 */
static allot_status lend_to(allot_heap *heap, uint32_t pool, uint64_t wanted, heap_bound bound)
{
    uint64_t done = 0;
    allot_status status = ALLOT_STATUS_OK;
    if (bound == HEAP_BOUND_NONE ||
        (bound != HEAP_BOUND_LENT &&
         heap->pools[pool]->strategy != ALLOT_SPACE_STRATEGY_ADAPTIVE)) {
        return status;
    }
    for (uint32_t i = 0; i < heap->arena_count && done < wanted && status == ALLOT_STATUS_OK; i++) {
        const heap_arena *const arena = heap->arenas[i];
        if (!arena->is_dead && arena->pool == pool) {
            status = lend_from(heap, arena, wanted, &done);
        }
    }
    return status == ALLOT_STATUS_OK && bound == HEAP_BOUND_LENT && done < wanted
               ? alloti_fail(ALLOT_STATUS_FRAGMENTED,
                             "%" PRIu64 " of %" PRIu64 " bytes are free in whole granules", done,
                             wanted)
               : status;
}

/** What was lent stays where it is used now. */
static void keep_lent(allot_heap *heap)
{
    heap->remapped += heap->lent_count * granule_of(heap);
    while (heap->lent_count != 0) {
        alloti_granules_settle(heap, heap->lent[--heap->lent_count].segment);
    }
}

/** What was lent goes back to where it was. What cannot, which takes a second failure, is spare. */
static void return_lent(allot_heap *heap)
{
    while (heap->lent_count != 0) {
        const heap_lent *const lent = &heap->lent[--heap->lent_count];
        if (map_one(heap, lent->segment, lent->number) == ALLOT_STATUS_OK) {
            heap->segments[lent->segment].granules[lent->number].is_fresh = false;
        }
    }
}

/* ---- committing ---- */

/** Nothing of [first, end) was mapped for a request yet. */
static void begin_commit(heap_segment *segment, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        segment->granules[i].is_fresh = false;
    }
}

void alloti_granules_end(allot_heap *heap, uint32_t index, uint64_t offset, uint64_t size,
                         bool stays)
{
    heap_segment *const segment = &heap->segments[index];
    for (uint64_t i = end_of(heap, offset, size); i-- > offset / granule_of(heap);) {
        const bool is_fresh = segment->granules[i].is_fresh;
        segment->granules[i].is_fresh = false;
        if (!is_fresh || stays) {
            continue;
        }
        /* What cannot be unmapped is free memory of the heap. */
        const bool is_lent = heap->spare_count < heap->lent_count;
        const allot_status status =
            is_lent ? unmap_to_spare(heap, index, i) : unmap_one(heap, index, i);
        if (status != ALLOT_STATUS_OK) {
            continue;
        }
    }
    if (stays) {
        keep_lent(heap);
    } else {
        return_lent(heap);
    }
}

allot_status alloti_granules_commit(allot_heap *heap, uint32_t index, uint64_t offset,
                                    uint64_t size, heap_bound bound)
{
    heap_segment *const segment = &heap->segments[index];
    const uint32_t pool = heap->arenas[segment->arena]->pool;
    const uint64_t first = offset / granule_of(heap);
    const uint64_t end = end_of(heap, offset, size);
    begin_commit(segment, first, end);
    const uint64_t missing = count_missing(segment, first, end) * granule_of(heap);
    if (missing == 0) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = lend_to(heap, pool, missing, bound);
    if (status == ALLOT_STATUS_OK && bound != HEAP_BOUND_LENT) {
        status = alloti_segment_may_hold(heap, pool, missing, bound);
    }
    for (uint64_t i = first; i < end && status == ALLOT_STATUS_OK; i++) {
        if (!is_mapped(segment, i)) {
            status = map_one(heap, index, i);
        }
    }
    if (status != ALLOT_STATUS_OK) {
        alloti_granules_end(heap, index, offset, size, false);
    }
    return status;
}

/* ---- at the end ---- */

allot_status alloti_granules_abandon(allot_heap *heap, uint32_t index)
{
    const heap_segment *const segment = &heap->segments[index];
    allot_status worst = ALLOT_STATUS_OK;
    for (uint64_t i = segment->space->capacity / granule_of(heap); i-- > 0;) {
        if (is_mapped(segment, i)) {
            const allot_status status = unmap_one(heap, index, i);
            worst = status == ALLOT_STATUS_OK ? worst : status;
        }
    }
    return worst;
}
