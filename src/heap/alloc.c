/* SPDX-License-Identifier: MIT */
/* Getting blocks: a request is checked, answered from the front cache or by the ladder, and becomes
 * a block. */
#include "heap/alloc.h"

#include <inttypes.h>

#include "core/options.h"
#include "core/size_math.h"
#include "heap/arena.h"
#include "heap/block.h"
#include "heap/debug.h"
#include "heap/drop.h"
#include "heap/front.h"
#include "heap/habits.h"
#include "heap/ladder.h"
#include "heap/pending.h"
#include "heap/pool.h"
#include "heap/record.h"
#include "heap/stats.h"

/* ---- checking ---- */

allot_status alloti_request_check(const allot_request *request, bool is_fixed)
{
    if (request->size == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a block has at least one byte");
    }
    if ((request->align & (request->align - 1)) != 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "alignment %" PRIu64 " is no power of two",
                           request->align);
    }
    if (request->flags > ALLOT_BLOCK_CACHED) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "flags %#" PRIx32 ": a block is temporary, cached, or neither",
                           request->flags);
    }
    if (is_fixed && request->flags != 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "what has a pointer cannot be dropped");
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_ask_measure(const allot_heap *heap, uint32_t pool, heap_ask *ask)
{
    const uint64_t zone = heap->red_zone;
    ask->align = ask->request.align;
    ask->lead = heap_block_lead(heap, ask->align);
    ask->size = ask->request.size;
    if (zone != 0 && (!alloti_add(ask->size, ask->lead, &ask->size) ||
                      !alloti_add(ask->size, zone, &ask->size))) {
        ask->size = UINT64_MAX;
    }
    return alloti_segment_round(heap, pool, &ask->size, &ask->align);
}

/* ---- without the heap's lock ---- */

/** A block of the front cache; ALLOT_NONE if there is none. */
static uint32_t try_front(allot_heap *heap, const allot_request *request, uint64_t bits)
{
    const uint64_t granule = heap->options.granule;
    uint64_t size = 0;
    if (heap->options.front_size == 0 || request->flags != 0 || request->align > granule ||
        atomic_load_explicit(&heap->is_recording, memory_order_relaxed) ||
        !alloti_align_up(request->size, granule, &size)) {
        return ALLOT_NONE;
    }
    const uint32_t arena = alloti_arena_find(heap, request->pool.value, request->stream.value);
    return arena == ALLOT_NONE ? ALLOT_NONE : alloti_front_pop(heap, arena, request, size, bits);
}

/* ---- with it ---- */

static allot_status prepare(allot_heap *heap, heap_ask *ask)
{
    uint32_t pool = 0;
    allot_status status = alloti_pool_find(heap, ask->request.pool, &pool);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_ask_measure(heap, pool, ask);
    }
    return status == ALLOT_STATUS_OK
               ? alloti_arena_get(heap, pool, ask->request.stream, &ask->arena)
               : status;
}

/** Room in tables, so that a range that was found can become a block. */
static allot_status reserve(allot_heap *heap, const allot_request *request, uint32_t *index)
{
    allot_status status = alloti_block_take(heap, index);
    if (status == ALLOT_STATUS_OK && request->flags != 0) {
        status = alloti_drop_reserve(heap, *index);
        if (status != ALLOT_STATUS_OK) {
            heap_block_at(heap, *index)->segment = ALLOT_NONE;
            alloti_block_put(heap, *index);
        }
    }
    return status;
}

void alloti_fill_block(allot_heap *heap, const heap_ask *ask, uint32_t index)
{
    heap_block *const block = heap_block_at(heap, index);
    const heap_segment *const segment = &heap->segments[ask->segment];
    block->address = segment->address + ask->range.offset + ask->lead;
    block->size = ask->range.size;
    block->requested = ask->request.size;
    block->align = ask->request.align;
    block->segment = ask->segment;
    block->range = ask->range.id;
    segment->owners[ask->range.id] = index;
    block->arena = ask->arena;
    block->uses = ALLOT_NONE;
    block->pending = 0;
    block->tag = ask->request.tag;
    block->owner = ask->request.owner;
    block->flags = ask->request.flags;
    block->priority = ask->request.priority;
    block->is_home = segment->arena == ask->arena;
    block->is_pending = false;
    block->is_unordered = false;
    block->is_moved = false;
    block->is_learned = false;
    atomic_store_explicit(&block->used_at, atomic_load_explicit(&heap->ticks, memory_order_relaxed),
                          memory_order_relaxed);
}

/** Nothing is left of a range that was found and its block. Work on it may have been queued, and
 * what goes back may be unmapped, or be the next block of another stream. */
static void take_back(allot_heap *heap, const heap_ask *ask, uint32_t index)
{
    const bool is_done =
        alloti_stream_synchronize(heap, heap->arenas[ask->arena]->stream) == ALLOT_STATUS_OK;
    const bool is_undone = alloti_pending_undo(heap, index, is_done);
    alloti_place_end(heap, ask, !is_done || !is_undone);
}

void alloti_forget_place(allot_heap *heap, const heap_ask *ask, uint32_t index)
{
    alloti_fill_block(heap, ask, index);
    heap->arenas[ask->arena]->block_count++;
    take_back(heap, ask, index);
}

/** The range that was found becomes a block and is handed out; nothing is left of it on failure. */
static allot_status settle(allot_heap *heap, const heap_ask *ask, uint32_t index, uint64_t bits)
{
    heap_block *const block = heap_block_at(heap, index);
    alloti_fill_block(heap, ask, index);
    heap->arenas[ask->arena]->block_count++;
    allot_status status = alloti_debug_before_use(heap, block);
    if (status == ALLOT_STATUS_OK && (bits & BLOCK_FIXED) != 0) {
        status = alloti_address_map_set(&heap->addresses, block->address,
                                        alloti_block_next_handle(heap, index));
    }
    if (status != ALLOT_STATUS_OK) {
        take_back(heap, ask, index);
        return status;
    }
    alloti_place_end(heap, ask, true);
    alloti_habits_begin(heap, block);
    alloti_count_active(heap, block);
    alloti_count_allocated(heap, block);
    if (block->flags != 0) {
        alloti_drop_add(heap, index);
    }
    alloti_record_block(heap, ALLOT_EVENT_ALLOC, block);
    alloti_block_publish(block, bits | (block->flags == 0 ? 0 : BLOCK_DROPPABLE));
    return status;
}

allot_status alloti_find_room(allot_heap *heap, heap_ask *ask, uint32_t *index)
{
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    ask->fresh = ALLOT_NONE;
    status = prepare(heap, ask);
    if (status == ALLOT_STATUS_OK) {
        status = reserve(heap, &ask->request, index);
    }
    if (status != ALLOT_STATUS_OK) {
        return heap_leave(heap, status);
    }
    status = alloti_ladder_climb(heap, ask);
    /* In a forked child nothing is of use any more. */
    if (status != ALLOT_STATUS_OK && alloti_heap_enter(heap) == ALLOT_STATUS_OK) {
        alloti_block_put(heap, *index);
        pthread_mutex_unlock(&heap->mutex);
    }
    return status;
}

/** The address of a block of the front cache becomes known; the block is freed if it cannot. */
static allot_status enter_pointer(allot_heap *heap, uint32_t index)
{
    const uint64_t address = heap_block_at(heap, index)->address;
    const allot_handle handle = alloti_block_handle(heap, index);
    const allot_status status = alloti_address_map_set(&heap->addresses, address, handle);
    if (status != ALLOT_STATUS_OK) {
        const allot_status freed = allot_heap_free(heap, handle);
        return freed == ALLOT_STATUS_OK ? alloti_fail_memory(sizeof address) : freed;
    }
    return status;
}

/** The caller is told once that the heap has grown past its soft limit, and again after it was
 * below seven eighths of it. */
static void tell_pressure(allot_heap *heap)
{
    const allot_heap_options *const options = &heap->options;
    if (options->pressure == NULL || alloti_heap_enter(heap) != ALLOT_STATUS_OK) {
        return;
    }
    const uint64_t soft = options->limit_soft;
    const bool is_over = soft != 0 && heap->held > soft;
    const bool is_told = heap->is_over_soft;
    if (is_over || heap->held < soft - soft / 8) {
        heap->is_over_soft = is_over;
    }
    pthread_mutex_unlock(&heap->mutex);
    if (is_over && !is_told) {
        (void)options->pressure(options->pressure_context, heap, 0);
    }
}

static allot_status alloc(allot_heap *heap, const allot_request *request, uint64_t bits,
                          uint32_t *out)
{
    heap_ask ask = {0};
    allot_status status = alloti_options_take(request, sizeof ask.request, &ask.request);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_request_check(&ask.request, (bits & BLOCK_FIXED) != 0);
    }
    if (status == ALLOT_STATUS_OK) {
        status = heap_check_fork(heap);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    *out = try_front(heap, &ask.request, bits);
    if (*out != ALLOT_NONE) {
        return (bits & BLOCK_FIXED) == 0 ? ALLOT_STATUS_OK : enter_pointer(heap, *out);
    }
    status = alloti_find_room(heap, &ask, out);
    if (status == ALLOT_STATUS_OK) {
        status = heap_leave(heap, settle(heap, &ask, *out, bits));
    }
    if (status == ALLOT_STATUS_OK) {
        tell_pressure(heap);
    }
    return status;
}

allot_status allot_heap_alloc(allot_heap *heap, const allot_request *request, allot_handle *out)
{
    uint32_t index = 0;
    const allot_status status = alloc(heap, request, 0, &index);
    if (status == ALLOT_STATUS_OK) {
        *out = alloti_block_handle(heap, index);
    }
    return status;
}

allot_status allot_heap_alloc_pointer(allot_heap *heap, const allot_request *request,
                                      allot_devptr *out)
{
    uint32_t index = 0;
    const allot_status status = alloc(heap, request, BLOCK_FIXED, &index);
    if (status == ALLOT_STATUS_OK) {
        out->address = heap_block_at(heap, index)->address;
    }
    return status;
}
