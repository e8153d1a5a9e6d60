/* SPDX-License-Identifier: MIT */
#include "heap/arena.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "heap/checkpoint.h"
#include "heap/front.h"
#include "heap/pending.h"
#include "heap/pool.h"
#include "heap/segment.h"

/* Key of an arena that is not to be found; no handle of a pool has this value. */
#define POOL_NONE UINT64_MAX

/* ---- streams ---- */

bool alloti_stream_find(const allot_heap *heap, allot_stream stream, uint32_t *out)
{
    for (uint32_t i = 0; i < heap->stream_count; i++) {
        if (heap->streams[i]->stream.value == stream.value && !heap->streams[i]->is_ended) {
            *out = i;
            return true;
        }
    }
    return false;
}

/** Whether blocks are still counted for an ended stream, or wait for it. */
static bool is_needed(const allot_heap *heap, uint32_t stream)
{
    if (!heap->streams[stream]->is_ended || heap->streams[stream]->waits_count != 0) {
        return true;
    }
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        const heap_arena *const arena = heap->arenas[i];
        const bool names_it = arena->stream == stream || arena->meters_stream == stream;
        if (names_it && (!arena->is_dead || arena->block_count != 0)) {
            return true;
        }
    }
    return false;
}

/** The place of a stream that ended and is forgotten; ALLOT_NONE if there is none. */
static uint32_t take_ended(allot_heap *heap, allot_stream stream)
{
    for (uint32_t i = 0; i < heap->stream_count; i++) {
        if (!is_needed(heap, i)) {
            free(heap->streams[i]->waits);
            *heap->streams[i] = (heap_stream){.stream = stream};
            return i;
        }
    }
    return ALLOT_NONE;
}

allot_status alloti_stream_get(allot_heap *heap, allot_stream stream, uint32_t *out)
{
    if (alloti_stream_find(heap, stream, out)) {
        return ALLOT_STATUS_OK;
    }
    *out = take_ended(heap, stream);
    if (*out != ALLOT_NONE) {
        return ALLOT_STATUS_OK;
    }
    if (heap->stream_count == STREAMS_MAX) {
        return alloti_fail(ALLOT_STATUS_HOST_MEMORY,
                           "a heap knows at most %d streams: tell it of those that end",
                           STREAMS_MAX);
    }
    heap_stream *const fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL) {
        return alloti_fail_memory(sizeof *fresh);
    }
    fresh->stream = stream;
    *out = heap->stream_count;
    heap->streams[heap->stream_count++] = fresh;
    return ALLOT_STATUS_OK;
}

void alloti_streams_fini(allot_heap *heap)
{
    for (uint32_t i = 0; i < heap->stream_count; i++) {
        free(heap->streams[i]->waits);
        free(heap->streams[i]);
    }
}

allot_status alloti_stream_synchronize(allot_heap *heap, uint32_t stream)
{
    if (heap->streams[stream]->is_ended) {
        return ALLOT_STATUS_OK;
    }
    heap->syncs++;
    const allot_status status =
        allot_device_stream_synchronize(heap->device, heap->streams[stream]->stream);
    if (status == ALLOT_STATUS_OK) {
        alloti_checkpoint_pass(heap, stream);
    }
    return status;
}

/* ---- finding ---- */

uint32_t alloti_arena_find(const allot_heap *heap, uint64_t pool, uint64_t stream)
{
    const uint32_t count = atomic_load_explicit(&heap->arena_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        if (atomic_load_explicit(&heap->arena_streams[i], memory_order_acquire) == stream &&
            atomic_load_explicit(&heap->arena_pools[i], memory_order_acquire) == pool) {
            return i;
        }
    }
    return ALLOT_NONE;
}

/** A place for an arena: one that was buried, or a new one. */
static allot_status take_place(allot_heap *heap, uint32_t *out)
{
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        if (heap->arenas[i]->is_dead && heap->arenas[i]->block_count == 0) {
            *out = i;
            return ALLOT_STATUS_OK;
        }
    }
    if (heap->arena_count == ARENAS_MAX) {
        return alloti_fail(ALLOT_STATUS_HOST_MEMORY,
                           "a heap has at most %d pairs of a pool and a stream", ARENAS_MAX);
    }
    heap_arena *const arena = calloc(1, sizeof *arena);
    if (arena == NULL) {
        return alloti_fail_memory(sizeof *arena);
    }
    const allot_status status = alloti_front_init(&arena->front);
    if (status != ALLOT_STATUS_OK) {
        free(arena);
        return status;
    }
    const uint32_t index = heap->arena_count;
    heap->arenas[index] = arena;
    arena->is_dead = true;
    atomic_store_explicit(&heap->arena_pools[index], POOL_NONE, memory_order_relaxed);
    /* Release: whoever sees the count sees the arena. */
    atomic_store_explicit(&heap->arena_count, index + 1, memory_order_release);
    *out = index;
    return ALLOT_STATUS_OK;
}

allot_status alloti_arena_get(allot_heap *heap, uint32_t pool, allot_stream stream, uint32_t *out)
{
    const uint64_t key = alloti_pool_handle(heap, pool).value;
    const uint32_t known = alloti_arena_find(heap, key, stream.value);
    if (known != ALLOT_NONE) {
        *out = known;
        return ALLOT_STATUS_OK;
    }
    uint32_t place = 0;
    uint32_t index = 0;
    allot_status status = alloti_stream_get(heap, stream, &place);
    if (status == ALLOT_STATUS_OK) {
        status = take_place(heap, &index);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap_arena *const arena = heap->arenas[index];
    /* The front's lock, for those that found the place under its old key. */
    pthread_mutex_lock(&arena->front.mutex);
    arena->pool = pool;
    arena->stream = arena->meters_stream = place;
    arena->is_dead = false;
    atomic_store_explicit(&heap->arena_pools[index], key, memory_order_release);
    atomic_store_explicit(&heap->arena_streams[index], stream.value, memory_order_release);
    pthread_mutex_unlock(&arena->front.mutex);
    *out = index;
    return ALLOT_STATUS_OK;
}

void alloti_arenas_fini(allot_heap *heap)
{
    for (uint32_t i = 0; i < heap->arena_count; i++) {
        heap_arena *const arena = heap->arenas[i];
        alloti_front_fini(&arena->front);
        free(arena->segments);
        free(arena->largest);
        free(arena);
    }
}

/** Change by what an arena is found. The front's lock, for those that found it already. */
static void set_key(allot_heap *heap, uint32_t index, uint64_t key, bool is_dead)
{
    heap_arena *const arena = heap->arenas[index];
    pthread_mutex_lock(&arena->front.mutex);
    atomic_store_explicit(&heap->arena_pools[index], key, memory_order_release);
    arena->is_dead = is_dead;
    pthread_mutex_unlock(&arena->front.mutex);
}

void alloti_arena_hide(allot_heap *heap, uint32_t index)
{
    set_key(heap, index, POOL_NONE, heap->arenas[index]->is_dead);
}

void alloti_arena_show(allot_heap *heap, uint32_t index)
{
    if (!heap->arenas[index]->is_dead) {
        set_key(heap, index, alloti_pool_handle(heap, heap->arenas[index]->pool).value, false);
    }
}

void alloti_arena_bury(allot_heap *heap, uint32_t index)
{
    set_key(heap, index, POOL_NONE, true);
}

/* ---- segments of an arena, by address ---- */

allot_status alloti_arena_reserve(heap_arena *arena, uint64_t count)
{
    const uint64_t need = arena->count + count;
    const allot_status status = alloti_array_reserve(&arena->segments, &arena->segments_capacity,
                                                     need, sizeof *arena->segments);
    return status != ALLOT_STATUS_OK
               ? status
               : alloti_array_reserve(&arena->largest, &arena->largest_capacity, need,
                                      sizeof *arena->largest);
}

/** Where a segment with this address is, or belongs. */
static uint32_t find_place(const allot_heap *heap, const heap_arena *arena, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = arena->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (heap->segments[arena->segments[middle]].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void alloti_arena_add(allot_heap *heap, uint32_t index, uint32_t segment)
{
    heap_arena *const arena = heap->arenas[index];
    const uint32_t at = find_place(heap, arena, heap->segments[segment].address);
    const size_t above = arena->count - at;
    memmove(&arena->segments[at + 1], &arena->segments[at], above * sizeof *arena->segments);
    memmove(&arena->largest[at + 1], &arena->largest[at], above * sizeof *arena->largest);
    arena->segments[at] = segment;
    arena->largest[at] = allot_space_largest_free(heap->segments[segment].space);
    arena->count++;
    heap->segments[segment].arena = index;
}

void alloti_arena_remove(allot_heap *heap, uint32_t segment)
{
    heap_arena *const arena = heap->arenas[heap->segments[segment].arena];
    const uint32_t at = find_place(heap, arena, heap->segments[segment].address);
    const size_t above = arena->count - at - 1;
    memmove(&arena->segments[at], &arena->segments[at + 1], above * sizeof *arena->segments);
    memmove(&arena->largest[at], &arena->largest[at + 1], above * sizeof *arena->largest);
    arena->count--;
}

void alloti_arena_update(allot_heap *heap, uint32_t segment)
{
    const heap_segment *const s = &heap->segments[segment];
    const heap_arena *const arena = heap->arenas[s->arena];
    const uint32_t at = arena->count == 1 ? 0 : find_place(heap, arena, s->address);
    arena->largest[at] = allot_space_largest_free(s->space);
}

allot_status alloti_arena_release(allot_heap *heap, uint32_t index)
{
    heap_arena *const arena = heap->arenas[index];
    (void)alloti_front_flush(heap, index);
    allot_status status =
        arena->count == 0 ? ALLOT_STATUS_OK : alloti_stream_synchronize(heap, arena->stream);
    for (uint32_t i = arena->count; i-- > 0 && status == ALLOT_STATUS_OK;) {
        if (heap->segments[arena->segments[i]].active_count == 0) {
            status = alloti_segment_release(heap, arena->segments[i]);
        }
    }
    return status;
}

/* ---- a stream that ends ---- */

static bool is_of_stream(const heap_arena *arena, uint32_t stream)
{
    return arena->stream == stream && !arena->is_dead;
}

/** The arena that the segments of one go to, with room for them. */
static allot_status find_heir(allot_heap *heap, uint32_t from, uint32_t *out)
{
    const heap_arena *const arena = heap->arenas[from];
    const allot_status status = alloti_arena_get(heap, arena->pool, (allot_stream){0}, out);
    return status == ALLOT_STATUS_OK ? alloti_arena_reserve(heap->arenas[*out], arena->count)
                                     : status;
}

/** Segments of one arena go to another of the same pool, which has room for them. */
static void hand_over(allot_heap *heap, uint32_t from, uint32_t to)
{
    heap_arena *const arena = heap->arenas[from];
    /* First, so that nothing more comes to its front. */
    alloti_arena_bury(heap, from);
    (void)alloti_front_flush(heap, from);
    while (arena->count != 0) {
        const uint32_t segment = arena->segments[arena->count - 1];
        alloti_segment_move(heap, segment, to);
    }
    /* Its blocks are used by what its place was made for: the default stream. */
    arena->stream = heap->arenas[to]->stream;
}

static allot_status end_stream(allot_heap *heap, uint32_t stream)
{
    uint32_t heir = 0;
    allot_status status = alloti_stream_synchronize(heap, stream);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_pending_collect(heap);
    }
    if (status == ALLOT_STATUS_OK) {
        /* What was collected may have been scrubbed, on this stream. */
        status = alloti_stream_synchronize(heap, stream);
    }
    for (uint32_t i = 0; i < heap->arena_count && status == ALLOT_STATUS_OK; i++) {
        status = is_of_stream(heap->arenas[i], stream) ? find_heir(heap, i, &heir) : status;
    }
    /* From here on nothing fails: the heirs are there, and have room. */
    for (uint32_t i = 0; i < heap->arena_count && status == ALLOT_STATUS_OK; i++) {
        if (is_of_stream(heap->arenas[i], stream)) {
            status = find_heir(heap, i, &heir);
            hand_over(heap, i, heir);
        }
    }
    if (status == ALLOT_STATUS_OK) {
        heap->streams[stream]->is_ended = true;
    }
    return status;
}

allot_status allot_heap_end_stream(allot_heap *heap, allot_stream stream)
{
    allot_status status = alloti_heap_enter(heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint32_t index = 0;
    if (stream.value == 0) {
        status = alloti_fail(ALLOT_STATUS_INVALID, "the default stream does not end");
    } else if (alloti_stream_find(heap, stream, &index)) {
        status = end_stream(heap, index);
    }
    return heap_leave(heap, status);
}
