/* SPDX-License-Identifier: MIT */
#include "heap/pending.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "heap/arena.h"
#include "heap/block.h"
#include "heap/checkpoint.h"
#include "heap/debug.h"
#include "heap/granules.h"
#include "heap/habits.h"
#include "heap/record.h"
#include "heap/segment.h"
#include "heap/stats.h"
#include "space/space.h"

/* ---- events ---- */

/** Room for all events in the list of unused ones, so that putting one back cannot fail. */
static allot_status make_event(allot_heap *heap)
{
    allot_status status = alloti_array_reserve(&heap->events, &heap->events_capacity,
                                               heap->event_made + 1, sizeof *heap->events);
    allot_event event = {0};
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_event_create(heap->device, &event);
    }
    if (status == ALLOT_STATUS_OK) {
        heap->event_made++;
        heap->events[heap->event_count++] = event;
    }
    return status;
}

/** At least so many unused events. */
static allot_status reserve_events(allot_heap *heap, uint64_t count)
{
    allot_status status = ALLOT_STATUS_OK;
    while (heap->event_count < count && status == ALLOT_STATUS_OK) {
        status = make_event(heap);
    }
    return status;
}

allot_status alloti_event_take(allot_heap *heap, allot_event *out)
{
    const allot_status status = reserve_events(heap, 1);
    if (status == ALLOT_STATUS_OK) {
        *out = heap->events[--heap->event_count];
    }
    return status;
}

void alloti_event_put(allot_heap *heap, allot_event event)
{
    heap->events[heap->event_count++] = event;
}

allot_status alloti_events_release(allot_heap *heap)
{
    while (heap->event_count != 0) {
        const allot_status status =
            allot_device_event_destroy(heap->device, heap->events[heap->event_count - 1]);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        heap->event_count--;
        heap->event_made--;
    }
    return ALLOT_STATUS_OK;
}

/* ---- uses ---- */

allot_status alloti_pending_use(allot_heap *heap, uint32_t index, uint32_t stream)
{
    heap_block *const block = heap_block_at(heap, index);
    for (uint32_t i = block->uses; i != ALLOT_NONE; i = heap->uses[i].next) {
        if (heap->uses[i].stream == stream) {
            return ALLOT_STATUS_OK;
        }
    }
    uint32_t fresh = heap->uses_unused;
    if (fresh != ALLOT_NONE) {
        heap->uses_unused = heap->uses[fresh].next;
    } else {
        const allot_status status = alloti_array_reserve(
            &heap->uses, &heap->uses_capacity, (uint64_t)heap->uses_count + 1, sizeof *heap->uses);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        fresh = heap->uses_count++;
    }
    heap->uses[fresh] = (heap_use){.stream = stream, .next = block->uses};
    block->uses = fresh;
    return ALLOT_STATUS_OK;
}

static void forget_uses(allot_heap *heap, heap_block *block)
{
    while (block->uses != ALLOT_NONE) {
        const uint32_t use = block->uses;
        block->uses = heap->uses[use].next;
        heap->uses[use].next = heap->uses_unused;
        heap->uses_unused = use;
    }
}

/** Stream on which the memory of a block can be used again at once. */
static uint32_t home_of(const allot_heap *heap, const heap_block *block)
{
    return heap->arenas[heap->segments[block->segment].arena]->stream;
}

/** The next stream that a freed block has to wait for, from `*use` on; ALLOT_NONE after the last.
 * `*use` begins as the block's first use, its own stream comes last. */
static uint32_t next_stream(const allot_heap *heap, const heap_block *block, uint32_t *use,
                            bool *own_is_done)
{
    const uint32_t home = home_of(heap, block);
    const uint32_t own = heap->arenas[block->arena]->stream;
    while (*use != ALLOT_NONE) {
        const uint32_t stream = heap->uses[*use].stream;
        *use = heap->uses[*use].next;
        if (stream != home && stream != own && !heap->streams[stream]->is_ended) {
            return stream;
        }
    }
    if (!*own_is_done && own != home) {
        *own_is_done = true;
        return own;
    }
    return ALLOT_NONE;
}

/* ---- queues ---- */

static heap_wait *wait_at(const heap_stream *stream, uint64_t number)
{
    return &stream->waits[(stream->waits_head + number) & (stream->waits_capacity - 1)];
}

static allot_status reserve_wait(heap_stream *stream)
{
    if (stream->waits_count < stream->waits_capacity) {
        return ALLOT_STATUS_OK;
    }
    const uint64_t capacity = stream->waits_capacity == 0 ? 64 : 2 * stream->waits_capacity;
    heap_wait *const fresh = alloti_alloc_array(capacity, sizeof *fresh);
    if (fresh == NULL) {
        return alloti_fail_memory(capacity * sizeof *fresh);
    }
    for (uint64_t i = 0; i < stream->waits_count; i++) {
        fresh[i] = *wait_at(stream, i);
    }
    free(stream->waits);
    stream->waits = fresh;
    stream->waits_capacity = capacity;
    stream->waits_head = 0;
    return ALLOT_STATUS_OK;
}

/** Host memory and events for all that a block has to wait for; *count is how many streams. */
static allot_status reserve_waits(allot_heap *heap, const heap_block *block, uint64_t *count)
{
    uint32_t use = block->uses;
    bool own_is_done = false;
    allot_status status = ALLOT_STATUS_OK;
    *count = 0;
    for (;;) {
        const uint32_t stream = next_stream(heap, block, &use, &own_is_done);
        if (stream == ALLOT_NONE || status != ALLOT_STATUS_OK) {
            break;
        }
        (*count)++;
        status = reserve_wait(heap->streams[stream]);
    }
    return status == ALLOT_STATUS_OK ? reserve_events(heap, *count) : status;
}

/** Take back the first `count` waits of a block, which are the last in their queues. */
static void undo_waits(allot_heap *heap, const heap_block *block, uint64_t count)
{
    uint32_t use = block->uses;
    bool own_is_done = false;
    for (uint64_t i = 0; i < count; i++) {
        heap_stream *const stream = heap->streams[next_stream(heap, block, &use, &own_is_done)];
        stream->waits_count--;
        alloti_event_put(heap, wait_at(stream, stream->waits_count)->event);
    }
}

static allot_status add_waits(allot_heap *heap, uint32_t index, uint64_t count)
{
    heap_block *const block = heap_block_at(heap, index);
    uint32_t use = block->uses;
    bool own_is_done = false;
    for (uint64_t i = 0; i < count; i++) {
        heap_stream *const stream = heap->streams[next_stream(heap, block, &use, &own_is_done)];
        const allot_event event = heap->events[heap->event_count - 1];
        const allot_status status = allot_device_event_record(heap->device, event, stream->stream);
        if (status != ALLOT_STATUS_OK) {
            undo_waits(heap, block, i);
            return status;
        }
        heap->event_count--;
        *wait_at(stream, stream->waits_count) = (heap_wait){.event = event, .block = index};
        stream->waits_count++;
    }
    block->pending = (uint32_t)count;
    return ALLOT_STATUS_OK;
}

/* ---- giving back ---- */

/** A block that waits for nothing any more, but could not be given back: tried again later. */
static void give_back_later(allot_heap *heap, uint32_t index)
{
    heap_block *const block = heap_block_at(heap, index);
    block->is_pending = true;
    block->next = heap->give_back;
    heap->give_back = index;
}

/** Work of the segment's stream may use the memory of a block still. Where an adaptive pool may
 * want it for something else, it is seen how far the stream has come; a failure to see only means
 * that less is known. */
static void look_ahead(allot_heap *heap, const heap_block *block)
{
    const heap_segment *const segment = &heap->segments[block->segment];
    const heap_arena *const arena = heap->arenas[segment->arena];
    const bool is_whole =
        heap->is_virtual ? block->size >= heap->info.granule : segment->active_count == 0;
    if (is_whole && heap->pools[arena->pool]->strategy == ALLOT_SPACE_STRATEGY_ADAPTIVE &&
        alloti_checkpoint_look(heap, arena->stream) != ALLOT_STATUS_OK) {
        return;
    }
}

/** The memory of a block is free again, or will be when there is host memory; nothing has changed
 * after a failure. */
static allot_status give_back(allot_heap *heap, uint32_t index)
{
    heap_block *const block = heap_block_at(heap, index);
    allot_status status = ALLOT_STATUS_OK;
    if (block->is_unordered) {
        status = alloti_stream_synchronize(heap, heap->arenas[block->arena]->stream);
        block->is_unordered = status != ALLOT_STATUS_OK;
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_debug_before_reuse(heap, block);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (!block->is_pending) {
        alloti_record_block(heap, ALLOT_EVENT_FREE_REQUESTED, block);
    }
    if (heap->is_virtual) {
        alloti_granules_note_free(heap, block->segment,
                                  range_offset(heap->segments[block->segment].space, block->range),
                                  block->size);
    }
    if (alloti_segment_give_back(heap, block->segment, block->range, block->size) !=
        ALLOT_STATUS_OK) {
        /* Its bytes may be overwritten already: it cannot be as it was. */
        give_back_later(heap, index);
        return ALLOT_STATUS_OK;
    }
    look_ahead(heap, block);
    alloti_habits_end(heap, block);
    alloti_record_block(heap, ALLOT_EVENT_FREE_COMPLETED, block);
    alloti_count_inactive(heap, block);
    forget_uses(heap, block);
    block->is_pending = false;
    heap->arenas[block->arena]->block_count--;
    alloti_block_put(heap, index);
    return ALLOT_STATUS_OK;
}

allot_status alloti_pending_free(allot_heap *heap, uint32_t index)
{
    heap_block *const block = heap_block_at(heap, index);
    uint64_t count = 0;
    allot_status status = reserve_waits(heap, block, &count);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (count == 0) {
        return give_back(heap, index);
    }
    status = add_waits(heap, index, count);
    if (status == ALLOT_STATUS_OK) {
        block->is_pending = true;
        alloti_record_block(heap, ALLOT_EVENT_FREE_REQUESTED, block);
    }
    return status;
}

allot_status alloti_pending_detach(allot_heap *heap, uint32_t index, uint32_t ghost,
                                   bool keeps_uses)
{
    heap_block *const block = heap_block_at(heap, index);
    heap_block *const other = heap_block_at(heap, ghost);
    /* The word stays the ghost's own: others may be looking at it, and at used_at. */
    memcpy(&other->address, &block->address,
           offsetof(heap_block, used_at) - offsetof(heap_block, address));
    other->is_learned = false;
    if (keeps_uses) {
        other->uses = ALLOT_NONE;
    }
    heap->arenas[block->arena]->block_count++;
    heap->segments[block->segment].owners[block->range] = ghost;
    const allot_status status = alloti_pending_free(heap, ghost);
    if (status != ALLOT_STATUS_OK) {
        heap->segments[block->segment].owners[block->range] = index;
        heap->arenas[block->arena]->block_count--;
        return status;
    }
    if (!keeps_uses) {
        block->uses = ALLOT_NONE;
    }
    block->segment = ALLOT_NONE;
    block->address = 0;
    return ALLOT_STATUS_OK;
}

bool alloti_pending_undo(allot_heap *heap, uint32_t index, bool is_done)
{
    heap_block *const block = heap_block_at(heap, index);
    block->is_unordered = !is_done && !block->is_home;
    if (!block->is_unordered && alloti_segment_give_back(heap, block->segment, block->range,
                                                         block->size) == ALLOT_STATUS_OK) {
        heap->arenas[block->arena]->block_count--;
        alloti_block_put(heap, index);
        return true;
    }
    /* Counted as one that was freed, until it can be given back. */
    alloti_count_active(heap, block);
    give_back_later(heap, index);
    return false;
}

/* ---- collecting ---- */

static allot_status give_back_all(allot_heap *heap)
{
    uint32_t index = heap->give_back;
    allot_status first = ALLOT_STATUS_OK;
    heap->give_back = ALLOT_NONE;
    while (index != ALLOT_NONE) {
        const uint32_t next = heap_block_at(heap, index)->next;
        const allot_status status = give_back(heap, index);
        if (status != ALLOT_STATUS_OK) {
            give_back_later(heap, index);
            first = first == ALLOT_STATUS_OK ? status : first;
        }
        index = next;
    }
    return first;
}

static allot_status collect_stream(allot_heap *heap, heap_stream *stream)
{
    while (stream->waits_count != 0) {
        const heap_wait wait = *wait_at(stream, 0);
        const allot_status status = allot_device_event_query(heap->device, wait.event);
        if (status != ALLOT_STATUS_OK) {
            return status == ALLOT_STATUS_BUSY ? ALLOT_STATUS_OK : status;
        }
        stream->waits_head = (stream->waits_head + 1) & (stream->waits_capacity - 1);
        stream->waits_count--;
        alloti_event_put(heap, wait.event);
        heap_block *const block = heap_block_at(heap, wait.block);
        block->pending--;
        if (block->pending == 0) {
            give_back_later(heap, wait.block);
        }
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_pending_collect(allot_heap *heap)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < heap->stream_count && status == ALLOT_STATUS_OK; i++) {
        status = collect_stream(heap, heap->streams[i]);
        if (status == ALLOT_STATUS_OK && heap->streams[i]->has_checkpoint) {
            status = alloti_checkpoint_look(heap, i);
        }
    }
    const allot_status given = give_back_all(heap);
    return status == ALLOT_STATUS_OK ? given : status;
}

void alloti_pending_forget(allot_heap *heap, uint32_t index)
{
    heap_stream *const stream = heap->streams[index];
    for (; stream->waits_count != 0; stream->waits_count--) {
        alloti_event_put(heap, wait_at(stream, stream->waits_count - 1)->event);
    }
}

allot_status alloti_pending_wait(allot_heap *heap)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < heap->stream_count && status == ALLOT_STATUS_OK; i++) {
        if (heap->streams[i]->waits_count != 0) {
            status = alloti_stream_synchronize(heap, i);
        }
    }
    return status == ALLOT_STATUS_OK ? alloti_pending_collect(heap) : status;
}

allot_status allot_heap_collect(allot_heap *heap)
{
    const allot_status status = alloti_heap_enter(heap);
    return status == ALLOT_STATUS_OK ? heap_leave(heap, alloti_pending_collect(heap)) : status;
}
