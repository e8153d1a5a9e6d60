/* SPDX-License-Identifier: MIT */
#include "heap/front.h"

#include <string.h>

#include "core/mix.h"
#include "core/size_math.h"
#include "heap/block.h"
#include "heap/pending.h"
#include "heap/segment.h"
#include "heap/stats.h"

/** Slots that a size may be in. */
enum { FRONT_WAYS = 4 };

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

/** The slot of a size: the one that has it, else an empty one. Sizes have a few slots each to
 * choose from, so that two that are in use do not drive each other out. FRONT_SLOTS: none. */
static unsigned slot_of(const heap_front *front, uint64_t size)
{
    const unsigned home = (unsigned)(alloti_mix64(size) % FRONT_SLOTS);
    unsigned found = FRONT_SLOTS;
    for (unsigned i = 0; i < FRONT_WAYS; i++) {
        const unsigned slot = (home + i) % FRONT_SLOTS;
        if (front->size[slot] == size) {
            return slot;
        }
        if (found == FRONT_SLOTS && front->first[slot] == ALLOT_NONE) {
            found = slot;
        }
    }
    return found;
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
    pthread_mutex_lock(&front->mutex);
    const unsigned slot = slot_of(front, size);
    const uint32_t found = slot == FRONT_SLOTS ? ALLOT_NONE : front->first[slot];
    if (found == ALLOT_NONE || !is_of(heap, index, request)) {
        pthread_mutex_unlock(&front->mutex);
        return ALLOT_NONE;
    }
    heap_block *const block = heap_block_at(heap, found);
    front->first[slot] = block->next;
    front->bytes -= size;
    front->count--;
    front->requested -= request->size;
    front->pop_count++;
    front->pop_bytes += size;
    front->pop_requested += request->size;
    front->histogram[alloti_log2(request->size)]++;
    block->requested = request->size;
    block->align = request->align;
    block->tag = request->tag;
    block->owner = request->owner;
    block->flags = 0;
    block->priority = request->priority;
    alloti_block_publish(block, bits);
    pthread_mutex_unlock(&front->mutex);
    return found;
}

bool alloti_front_push(allot_heap *heap, uint32_t index)
{
    heap_block *const block = heap_block_at(heap, index);
    heap_arena *const arena = heap->arenas[block->arena];
    heap_front *const front = &arena->front;
    pthread_mutex_lock(&front->mutex);
    const unsigned slot = slot_of(front, block->size);
    const bool suits = slot != FRONT_SLOTS && !arena->is_dead && block->is_home &&
                       block->uses == ALLOT_NONE &&
                       block->size <= heap->options.front_size - front->bytes;
    if (suits) {
        block->next = front->first[slot];
        front->first[slot] = index;
        front->size[slot] = block->size;
        front->bytes += block->size;
        front->count++;
        front->requested += block->requested;
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
            front->count--;
            front->requested -= block->requested;
        }
    }
    pthread_mutex_unlock(&front->mutex);
    return found;
}

/** What was handed out of a front that is empty is counted where all the rest is. */
static void count_pops(allot_heap *heap, uint32_t index)
{
    heap_front *const front = &heap->arenas[index]->front;
    front_sums sums = {0};
    uint64_t histogram[64] = {0};
    pthread_mutex_lock(&front->mutex);
    /* Else somebody has just put a block in: another time. */
    if (front->count == 0) {
        sums = (front_sums){.requested = front->requested,
                            .pop_count = front->pop_count,
                            .pop_bytes = front->pop_bytes,
                            .pop_requested = front->pop_requested};
        memcpy(histogram, front->histogram, sizeof histogram);
        front->requested = front->pop_count = front->pop_bytes = front->pop_requested = 0;
        memset(front->histogram, 0, sizeof front->histogram);
    }
    pthread_mutex_unlock(&front->mutex);
    alloti_count_front(heap, index, &sums, histogram);
}

uint64_t alloti_front_flush(allot_heap *heap, uint32_t index)
{
    heap_front *const front = &heap->arenas[index]->front;
    uint64_t bytes = 0;
    for (uint32_t i = pop_any(heap, front); i != ALLOT_NONE; i = pop_any(heap, front)) {
        bytes += heap_block_at(heap, i)->size;
        alloti_count_freed(heap, heap_block_at(heap, i));
        alloti_count_inactive(heap, heap_block_at(heap, i));
        alloti_pending_undo(heap, i, true);
    }
    count_pops(heap, index);
    return bytes;
}

uint64_t alloti_front_flush_all(allot_heap *heap)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < heap->arena_count && heap->options.front_size != 0; i++) {
        bytes += alloti_front_flush(heap, i);
    }
    return bytes;
}

void alloti_front_add_up(allot_heap *heap, uint32_t arena, front_sums *sums, uint64_t *histogram)
{
    heap_front *const front = &heap->arenas[arena]->front;
    pthread_mutex_lock(&front->mutex);
    sums->bytes += front->bytes;
    sums->count += front->count;
    sums->requested += front->requested;
    sums->pop_count += front->pop_count;
    sums->pop_bytes += front->pop_bytes;
    sums->pop_requested += front->pop_requested;
    for (int i = 0; i < 64 && histogram != NULL; i++) {
        histogram[i] += front->histogram[i];
    }
    pthread_mutex_unlock(&front->mutex);
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
