/* SPDX-License-Identifier: MIT */
#include "heap/stats.h"

#include <inttypes.h>
#include <string.h>

#include "core/size_math.h"
#include "heap/arena.h"
#include "heap/block.h"
#include "heap/front.h"
#include "heap/pool.h"
#include "heap/segment.h"

/* ---- counting ---- */

/** The three scopes that a block counts for. */
typedef struct scopes {
    heap_meters *meters[3];
} scopes;

static scopes scopes_of(allot_heap *heap, uint32_t index)
{
    const heap_arena *const arena = heap->arenas[index];
    return (scopes){{&heap->meters, &heap->pools[arena->pool]->meters,
                     &heap->streams[arena->meters_stream]->meters}};
}

void alloti_count_allocated(allot_heap *heap, const heap_block *block)
{
    const scopes all = scopes_of(heap, block->arena);
    for (int i = 0; i < 3; i++) {
        heap_meter_add(&all.meters[i]->allocation, 1);
        heap_meter_add(&all.meters[i]->allocated_bytes, block->size);
        heap_meter_add(&all.meters[i]->requested_bytes, block->requested);
    }
    heap->histogram[alloti_log2(block->requested)]++;
}

void alloti_count_freed(allot_heap *heap, const heap_block *block)
{
    const scopes all = scopes_of(heap, block->arena);
    for (int i = 0; i < 3; i++) {
        heap_meter_sub(&all.meters[i]->allocation, 1);
        heap_meter_sub(&all.meters[i]->allocated_bytes, block->size);
        heap_meter_sub(&all.meters[i]->requested_bytes, block->requested);
    }
}

void alloti_count_active(allot_heap *heap, const heap_block *block)
{
    const scopes all = scopes_of(heap, block->arena);
    for (int i = 0; i < 3; i++) {
        heap_meter_add(&all.meters[i]->active, 1);
        heap_meter_add(&all.meters[i]->active_bytes, block->size);
    }
}

void alloti_count_inactive(allot_heap *heap, const heap_block *block)
{
    const scopes all = scopes_of(heap, block->arena);
    for (int i = 0; i < 3; i++) {
        heap_meter_sub(&all.meters[i]->active, 1);
        heap_meter_sub(&all.meters[i]->active_bytes, block->size);
    }
}

void alloti_count_front(allot_heap *heap, uint32_t arena, const front_sums *sums,
                        const uint64_t *histogram)
{
    const scopes all = scopes_of(heap, arena);
    for (int i = 0; i < 3; i++) {
        all.meters[i]->allocation.allocated += sums->pop_count;
        all.meters[i]->active.allocated += sums->pop_count;
        all.meters[i]->allocated_bytes.allocated += sums->pop_bytes;
        all.meters[i]->active_bytes.allocated += sums->pop_bytes;
        all.meters[i]->requested_bytes.allocated += sums->pop_requested;
        all.meters[i]->requested_bytes.current -= sums->requested;
    }
    for (int i = 0; i < 64; i++) {
        heap->histogram[i] += histogram[i];
    }
}

/* ---- reading ---- */

static allot_stat read_meter(const heap_meter *meter)
{
    return (allot_stat){.current = meter->current,
                        .peak = meter->peak,
                        .allocated = meter->allocated,
                        .freed = meter->allocated - meter->current};
}

static void read_meters(const heap_meters *meters, allot_heap_stats *out)
{
    *out = (allot_heap_stats){.struct_size = sizeof *out};
#define READ_METER(name, text) out->name = read_meter(&meters->name);
    ALLOT_HEAP_STAT_LIST(READ_METER)
#undef READ_METER
}

static void correct(allot_stat *stat, uint64_t held, uint64_t handed_out)
{
    stat->current -= held;
    stat->allocated += handed_out;
    stat->freed = stat->allocated - stat->current;
}

/** What is in fronts is not handed out, and what came from there was. Counts what belongs to a pool
 * and a stream, ALLOT_NONE for all of them. */
static void correct_by_fronts(allot_heap *heap, uint32_t pool, uint32_t stream,
                              allot_heap_stats *out)
{
    front_sums sums = {0};
    for (uint32_t i = 0; i < heap->arena_count && heap->options.front_size != 0; i++) {
        const heap_arena *const arena = heap->arenas[i];
        if ((pool == ALLOT_NONE || arena->pool == pool) &&
            (stream == ALLOT_NONE || arena->meters_stream == stream)) {
            alloti_front_add_up(heap, i, &sums, out->size_histogram);
        }
    }
    correct(&out->allocation, sums.count, sums.pop_count);
    correct(&out->active, sums.count, sums.pop_count);
    correct(&out->allocated_bytes, sums.bytes, sums.pop_bytes);
    correct(&out->active_bytes, sums.bytes, sums.pop_bytes);
    correct(&out->requested_bytes, sums.requested, sums.pop_requested);
    out->front_bytes = sums.bytes;
}

static void reset_meters(heap_meters *meters)
{
#define RESET_METER(name, text) meters->name.peak = meters->name.current;
    ALLOT_HEAP_STAT_LIST(RESET_METER)
#undef RESET_METER
}

/** External fragmentation over the segments for which a scope is counted. */
static double fragmentation(const allot_heap *heap, const heap_meters *scope)
{
    uint64_t size_free = 0;
    uint64_t largest = 0;
    for (uint32_t i = 0; i < heap->segment_count; i++) {
        const heap_segment *const segment = &heap->segments[i];
        if (segment->address == 0) {
            continue;
        }
        const heap_arena *const arena = heap->arenas[segment->arena];
        if (scope == &heap->meters || scope == &heap->pools[arena->pool]->meters ||
            scope == &heap->streams[arena->meters_stream]->meters) {
            const uint64_t here = allot_space_largest_free(segment->space);
            size_free += segment->held - segment->active;
            largest = here > largest ? here : largest;
        }
    }
    return size_free == 0 || largest >= size_free ? 0 : 1 - (double)largest / (double)size_free;
}

allot_status allot_heap_get_stats(allot_heap *heap, allot_heap_stats *out)
{
    const allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    read_meters(&heap->meters, out);
    out->num_alloc_retries = heap->retries;
    out->num_ooms = heap->ooms;
    out->num_sync_all_streams = heap->syncs;
    out->num_device_alloc = heap->device_allocs;
    out->num_device_free = heap->device_frees;
    out->remapped_bytes = heap->remapped;
    memcpy(out->size_histogram, heap->histogram, sizeof out->size_histogram);
    correct_by_fronts(heap, ALLOT_NONE, ALLOT_NONE, out);
    out->fragmentation = fragmentation(heap, &heap->meters);
    return heap_leave(heap, status);
}

allot_status allot_heap_get_stream_stats(allot_heap *heap, allot_stream stream,
                                         allot_heap_stats *out)
{
    const allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint32_t index = 0;
    if (alloti_stream_find(heap, stream, &index)) {
        read_meters(&heap->streams[index]->meters, out);
        correct_by_fronts(heap, ALLOT_NONE, index, out);
        out->fragmentation = fragmentation(heap, &heap->streams[index]->meters);
        return heap_leave(heap, ALLOT_STATUS_OK);
    }
    return heap_leave(heap, alloti_fail(ALLOT_STATUS_NOT_FOUND,
                                        "the heap has nothing for stream %#" PRIx64, stream.value));
}

allot_status allot_heap_get_pool_stats(allot_heap *heap, allot_heap_pool pool,
                                       allot_heap_stats *out)
{
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint32_t index = 0;
    status = alloti_pool_find(heap, pool, &index);
    if (status == ALLOT_STATUS_OK) {
        read_meters(&heap->pools[index]->meters, out);
        correct_by_fronts(heap, index, ALLOT_NONE, out);
        out->fragmentation = fragmentation(heap, &heap->pools[index]->meters);
    }
    return heap_leave(heap, status);
}

allot_status allot_heap_reset_peaks(allot_heap *heap)
{
    const allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    /* What is in fronts counts in peaks. */
    (void)alloti_front_flush_all(heap);
    reset_meters(&heap->meters);
    for (uint32_t i = 0; i < heap->pool_count; i++) {
        reset_meters(&heap->pools[i]->meters);
    }
    for (uint32_t i = 0; i < heap->stream_count; i++) {
        reset_meters(&heap->streams[i]->meters);
    }
    return heap_leave(heap, status);
}
