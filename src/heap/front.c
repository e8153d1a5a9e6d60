/* SPDX-License-Identifier: MIT */
#include "heap/front.h"

#include "core/mix.h"
#include "heap/block.h"
#include "heap/pending.h"
#include "heap/segment.h"
#include "heap/stats.h"

allot_status alloti_front_init(heap_front *front)
{
    if (pthread_mutex_init(&front->mutex, NULL) != 0) {
        return alloti_fail(ALLOT_STATUS_HOST_MEMORY, "a lock could not be made");
    }
    for (int i = 0; i < FRONT_SLOTS; i++) {
        front->first[i] = ALLOT_NONE;
    }
    return ALLOT_STATUS_OK;
}

void alloti_front_fini(heap_front *front)
{
    pthread_mutex_destroy(&front->mutex);
}

static unsigned slot_of(uint64_t size)
{
    return (unsigned)(alloti_mix64(size) % FRONT_SLOTS);
}

/** Whether an arena is still that of a pool and a stream. Under the front's lock. */
static bool is_of(const allot_heap *heap, uint32_t arena, const allot_request *request)
{
    return atomic_load_explicit(&heap->arena_pools[arena], memory_order_relaxed) ==
               request->pool.value &&
           atomic_load_explicit(&heap->arena_streams[arena], memory_order_relaxed) ==
               request->stream.value;
}

uint32_t alloti_front_pop(allot_heap *heap, uint32_t index, const allot_request *request,
                          uint64_t size, uint64_t bits)
{
    heap_front *const front = &heap->arenas[index]->front;
    const unsigned slot = slot_of(size);
    pthread_mutex_lock(&front->mutex);
    const uint32_t found = front->first[slot];
    if (found == ALLOT_NONE || front->size[slot] != size || !is_of(heap, index, request)) {
        pthread_mutex_unlock(&front->mutex);
        return ALLOT_NONE;
    }
    heap_block *const block = heap_block_at(heap, found);
    front->first[slot] = block->next;
    front->bytes -= size;
    atomic_fetch_sub_explicit(&heap->front_bytes, size, memory_order_relaxed);
    block->requested = request->size;
    block->align = request->align;
    block->tag = request->tag;
    block->owner = request->owner;
    block->flags = 0;
    block->priority = request->priority;
    alloti_count_active(heap, block);
    alloti_count_allocated(heap, block);
    alloti_block_publish(block, bits);
    pthread_mutex_unlock(&front->mutex);
    return found;
}

bool alloti_front_push(allot_heap *heap, uint32_t index)
{
    heap_block *const block = heap_block_at(heap, index);
    heap_arena *const arena = heap->arenas[block->arena];
    heap_front *const front = &arena->front;
    const unsigned slot = slot_of(block->size);
    pthread_mutex_lock(&front->mutex);
    const bool suits = !arena->is_dead && block->is_home && block->uses == ALLOT_NONE &&
                       block->size <= heap->options.front_size - front->bytes &&
                       (front->size[slot] == block->size || front->first[slot] == ALLOT_NONE);
    if (suits) {
        block->next = front->first[slot];
        front->first[slot] = index;
        front->size[slot] = block->size;
        front->bytes += block->size;
        atomic_fetch_add_explicit(&heap->front_bytes, block->size, memory_order_relaxed);
        alloti_count_freed(heap, block);
        alloti_count_inactive(heap, block);
    }
    pthread_mutex_unlock(&front->mutex);
    return suits;
}

/** Take any block out of a front; ALLOT_NONE if it is empty. */
static uint32_t pop_any(allot_heap *heap, heap_front *front)
{
    uint32_t found = ALLOT_NONE;
    pthread_mutex_lock(&front->mutex);
    for (int slot = 0; slot < FRONT_SLOTS && found == ALLOT_NONE; slot++) {
        found = front->first[slot];
        if (found != ALLOT_NONE) {
            const heap_block *const block = heap_block_at(heap, found);
            front->first[slot] = block->next;
            front->bytes -= block->size;
            atomic_fetch_sub_explicit(&heap->front_bytes, block->size, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&front->mutex);
    return found;
}

void alloti_front_flush(allot_heap *heap, uint32_t index)
{
    heap_front *const front = &heap->arenas[index]->front;
    for (uint32_t block = pop_any(heap, front); block != ALLOT_NONE; block = pop_any(heap, front)) {
        alloti_pending_undo(heap, block);
    }
}

uint64_t alloti_front_flush_all(allot_heap *heap)
{
    const uint64_t before = atomic_load_explicit(&heap->front_bytes, memory_order_relaxed);
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        alloti_front_flush(heap, i);
    }
    return before;
}

void alloti_front_lock_all(allot_heap *heap)
{
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        pthread_mutex_lock(&heap->arenas[i]->front.mutex);
    }
}

void alloti_front_unlock_all(allot_heap *heap)
{
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        pthread_mutex_unlock(&heap->arenas[i]->front.mutex);
    }
}
