/* SPDX-License-Identifier: MIT */
#include "heap/record.h"

#include <stdlib.h>

#include "core/size_math.h"
#include "heap/front.h"

/** A new event at the end of the ring, in place of the oldest one if it is full. */
static void add(allot_heap *heap, heap_event event)
{
    heap_recording *const r = heap->recording;
    event.time_ns = allot_device_clock_ns(heap->device);
    r->events[(r->head + r->count) % r->max] = event;
    if (r->count < r->max) {
        r->count++;
    } else {
        r->head = (r->head + 1) % r->max;
    }
}

void alloti_record_segment(allot_heap *heap, allot_event_kind kind, uint32_t segment,
                           uint64_t address, uint64_t size)
{
    if (heap->recording == NULL) {
        return;
    }
    const heap_arena *const arena = heap->arenas[heap->segments[segment].arena];
    add(heap, (heap_event){.kind = kind,
                           .pool = arena->pool,
                           .address = address,
                           .size = size,
                           .stream = heap->streams[arena->stream]->stream.value});
}

void alloti_record_block(allot_heap *heap, allot_event_kind kind, const heap_block *block)
{
    if (heap->recording == NULL) {
        return;
    }
    const heap_arena *const arena = heap->arenas[block->arena];
    add(heap, (heap_event){.kind = kind,
                           .pool = arena->pool,
                           .tag = block->tag,
                           .address = block->address - heap_block_lead(heap, block->align),
                           .size = block->size,
                           .stream = heap->streams[arena->stream]->stream.value});
}

void alloti_record_refusal(allot_heap *heap, uint32_t pool, const allot_request *request,
                           uint64_t device_free)
{
    if (heap->recording != NULL) {
        add(heap, (heap_event){.kind = ALLOT_EVENT_OOM,
                               .pool = pool,
                               .tag = request->tag,
                               .address = device_free,
                               .size = request->size,
                               .stream = request->stream.value});
    }
}

void alloti_record_fini(allot_heap *heap)
{
    free(heap->recording);
}

static allot_status start(allot_heap *heap, uint64_t event_max)
{
    uint64_t bytes = 0;
    if (!alloti_mul(event_max, sizeof(heap_event), &bytes) ||
        !alloti_add(bytes, sizeof(heap_recording), &bytes) || bytes > SIZE_MAX) {
        return alloti_fail_memory(UINT64_MAX);
    }
    heap_recording *const fresh = calloc(1, (size_t)bytes);
    if (fresh == NULL) {
        return alloti_fail_memory(bytes);
    }
    fresh->max = event_max;
    free(heap->recording);
    heap->recording = fresh;
    return ALLOT_STATUS_OK;
}

allot_status allot_heap_record(allot_heap *heap, uint64_t event_max)
{
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (event_max == 0) {
        free(heap->recording);
        heap->recording = NULL;
    } else {
        status = start(heap, event_max);
    }
    /* What passes through a front is not seen here. */
    const bool is_on = heap->recording != NULL;
    atomic_store_explicit(&heap->is_recording, is_on, memory_order_relaxed);
    if (is_on) {
        (void)alloti_front_flush_all(heap);
    }
    return heap_leave(heap, status);
}
