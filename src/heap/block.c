/* SPDX-License-Identifier: MIT */
#include "heap/block.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/mix.h"
#include "core/table.h"
#include "heap/pool.h"

#define BITS_MASK ((UINT64_C(1) << BLOCK_PIN_SHIFT) - 1)
#define GENERATION_ONE (UINT64_C(1) << BLOCK_GENERATION_SHIFT)

static uint64_t generation(uint64_t word)
{
    return word >> BLOCK_GENERATION_SHIFT;
}

static uint64_t pins(uint64_t word)
{
    return (word >> BLOCK_PIN_SHIFT) & BLOCK_PINS_MAX;
}

/* ---- places ---- */

static allot_status add_chunk(heap_blocks *blocks)
{
    const uint32_t chunk = blocks->count / BLOCKS_PER_CHUNK;
    if (chunk == BLOCK_CHUNKS_MAX) {
        return alloti_fail(ALLOT_STATUS_HOST_MEMORY, "a heap has at most %u blocks", blocks->count);
    }
    heap_block *fresh = NULL;
    uint64_t capacity = 0;
    const allot_status status =
        alloti_table_reserve(&fresh, &capacity, BLOCKS_PER_CHUNK, sizeof *fresh);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    memset(fresh, 0, BLOCKS_PER_CHUNK * sizeof *fresh);
    for (uint32_t i = 0; i < BLOCKS_PER_CHUNK; i++) {
        atomic_store_explicit(&fresh[i].word,
                              (uint64_t)blocks->generation << BLOCK_GENERATION_SHIFT,
                              memory_order_relaxed);
    }
    /* Release: readers that see the chunk see words that are not live. */
    atomic_store_explicit(&blocks->chunks[chunk], fresh, memory_order_release);
    return ALLOT_STATUS_OK;
}

allot_status alloti_block_take(allot_heap *heap, uint32_t *out)
{
    heap_blocks *const blocks = &heap->blocks;
    if (blocks->unused != ALLOT_NONE) {
        *out = blocks->unused;
        blocks->unused = heap_block_at(heap, *out)->next;
        return ALLOT_STATUS_OK;
    }
    if (blocks->count % BLOCKS_PER_CHUNK == 0) {
        const allot_status status = add_chunk(blocks);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    *out = blocks->count++;
    heap_block_at(heap, *out)->segment = ALLOT_NONE;
    return ALLOT_STATUS_OK;
}

void alloti_block_put(allot_heap *heap, uint32_t index)
{
    heap_block *const block = heap_block_at(heap, index);
    block->segment = ALLOT_NONE;
    /* Owned by the caller, and not live: nobody else changes the word. */
    const uint64_t word = atomic_load_explicit(&block->word, memory_order_relaxed);
    if (generation(word) != UINT32_MAX) {
        block->next = heap->blocks.unused;
        heap->blocks.unused = index;
    }
}

void alloti_blocks_init(allot_heap *heap)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t heap_itself = alloti_mix64((uint64_t)(uintptr_t)heap);
    const uint64_t mixed = alloti_mix64(heap_itself + (uint64_t)now.tv_nsec);
    heap->blocks.unused = ALLOT_NONE;
    heap->blocks.generation = (uint32_t)(mixed >> 33); /* at least 2^31 are left of 2^32 */
}

void alloti_blocks_fini(allot_heap *heap)
{
    for (uint32_t i = 0; i < heap->blocks.count; i += BLOCKS_PER_CHUNK) {
        free(heap_block_at(heap, i));
    }
}

/* ---- words and handles ---- */

static allot_handle handle_of(uint32_t index, uint64_t word)
{
    return (allot_handle){generation(word) << BLOCK_GENERATION_SHIFT | (index + 1)};
}

static uint64_t word_of(const allot_heap *heap, uint32_t index)
{
    return atomic_load_explicit(&heap_block_at(heap, index)->word, memory_order_relaxed);
}

allot_handle alloti_block_handle(const allot_heap *heap, uint32_t index)
{
    return handle_of(index, word_of(heap, index));
}

allot_handle alloti_block_next_handle(const allot_heap *heap, uint32_t index)
{
    return handle_of(index, word_of(heap, index) + GENERATION_ONE);
}

static allot_status refuse(allot_handle handle)
{
    return alloti_fail(ALLOT_STATUS_INVALID,
                       "handle %#" PRIx64 ": no block of this heap, or it was freed", handle.value);
}

/** Inline for pins, which are the calls that are made most. */
static inline allot_status find(const allot_heap *heap, allot_handle handle, uint32_t *index,
                                uint64_t *word)
{
    const uint32_t place = (uint32_t)handle.value;
    if (place == 0 || (place - 1) / BLOCKS_PER_CHUNK >= BLOCK_CHUNKS_MAX ||
        atomic_load_explicit(&heap->blocks.chunks[(place - 1) / BLOCKS_PER_CHUNK],
                             memory_order_acquire) == NULL) {
        return refuse(handle);
    }
    /* Acquire: what was written to the block before it was handed out is seen. */
    const uint64_t now =
        atomic_load_explicit(&heap_block_at(heap, place - 1)->word, memory_order_acquire);
    if ((now & BLOCK_LIVE) == 0 || generation(now) != generation(handle.value)) {
        return refuse(handle);
    }
    *index = place - 1;
    *word = now;
    return ALLOT_STATUS_OK;
}

allot_status alloti_block_find(const allot_heap *heap, allot_handle handle, uint32_t *index,
                               uint64_t *word)
{
    return find(heap, handle, index, word);
}

void alloti_block_publish(heap_block *block, uint64_t bits)
{
    const uint64_t word = atomic_load_explicit(&block->word, memory_order_relaxed);
    const uint64_t next = (word & ~(GENERATION_ONE - 1)) + GENERATION_ONE;
    atomic_store_explicit(&block->word, next | BLOCK_LIVE | bits, memory_order_release);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the exchange writes to it */
allot_status alloti_block_retire(const allot_heap *heap, uint32_t index, uint64_t *word)
{
    heap_block *const block = heap_block_at(heap, index);
    const uint64_t wanted = generation(*word);
    for (;;) {
        if ((*word & BLOCK_LIVE) == 0 || generation(*word) != wanted) {
            return refuse(handle_of(index, wanted << BLOCK_GENERATION_SHIFT));
        }
        if (pins(*word) != 0) {
            return alloti_fail(ALLOT_STATUS_BUSY, "the block is pinned %" PRIu64 " times",
                               pins(*word));
        }
        if ((*word & BLOCK_MOVING) != 0) {
            return ALLOT_STATUS_CANCELLED;
        }
        /* Acquire: the block is the caller's now, and what others wrote to it is seen. */
        if (atomic_compare_exchange_weak_explicit(&block->word, word, *word & ~BITS_MASK,
                                                  memory_order_acquire, memory_order_acquire)) {
            return ALLOT_STATUS_OK;
        }
    }
}

void alloti_block_revive(heap_block *block, uint64_t word)
{
    atomic_store_explicit(&block->word, word, memory_order_release);
}

bool alloti_block_begin_move(heap_block *block)
{
    uint64_t word = atomic_load_explicit(&block->word, memory_order_relaxed);
    do {
        if ((word & (BLOCK_LIVE | BLOCK_FIXED | BLOCK_MOVING | BLOCK_DROPPED)) != BLOCK_LIVE ||
            pins(word) != 0) {
            return false;
        }
        /* Acquire: whoever unpinned is done with the address. */
    } while (!atomic_compare_exchange_weak_explicit(&block->word, &word, word | BLOCK_MOVING,
                                                    memory_order_acquire, memory_order_relaxed));
    return true;
}

allot_status alloti_block_hold(const allot_heap *heap, allot_handle handle, uint32_t *index,
                               uint64_t *word)
{
    const allot_status status = alloti_block_find(heap, handle, index, word);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap_block *const block = heap_block_at(heap, *index);
    do {
        if ((*word & BLOCK_LIVE) == 0 || generation(*word) != generation(handle.value)) {
            return refuse(handle);
        }
        /* Acquire: whoever unpinned is done with the address. */
    } while (!atomic_compare_exchange_weak_explicit(&block->word, word, *word | BLOCK_MOVING,
                                                    memory_order_acquire, memory_order_acquire));
    return ALLOT_STATUS_OK;
}

allot_status alloti_block_can_move(uint64_t word)
{
    if ((word & BLOCK_DROPPED) != 0) {
        return alloti_fail(ALLOT_STATUS_NOT_FOUND, "the block was dropped for want of memory");
    }
    return pins(word) == 0 && (word & BLOCK_FIXED) == 0
               ? ALLOT_STATUS_OK
               : alloti_fail(ALLOT_STATUS_BUSY, "the block would have to move and is pinned");
}

void alloti_block_end_move(heap_block *block)
{
    /* Release: whoever pins from now on sees the new address. */
    atomic_fetch_and_explicit(&block->word, ~(uint64_t)BLOCK_MOVING, memory_order_release);
}

/* ---- pins ---- */

allot_status allot_heap_pin(allot_heap *heap, allot_handle handle, allot_devptr *out)
{
    uint32_t index = 0;
    uint64_t word = 0;
    allot_status status = heap_check_fork(heap);
    if (status == ALLOT_STATUS_OK) {
        status = find(heap, handle, &index, &word);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap_block *const block = heap_block_at(heap, index);
    for (;;) {
        if ((word & BLOCK_LIVE) == 0 || generation(word) != generation(handle.value)) {
            return refuse(handle);
        }
        if ((word & BLOCK_DROPPED) != 0) {
            return alloti_fail(ALLOT_STATUS_NOT_FOUND, "the block was dropped for want of memory");
        }
        if ((word & BLOCK_MOVING) != 0) {
            /* Moves are made under the lock: once it is free, this one is over. */
            const allot_status entered = alloti_heap_enter(heap);
            if (entered != ALLOT_STATUS_OK) {
                return entered;
            }
            word = atomic_load_explicit(&block->word, memory_order_acquire);
            pthread_mutex_unlock(&heap->mutex);
            continue;
        }
        if (pins(word) == BLOCK_PINS_MAX) {
            return alloti_fail(ALLOT_STATUS_BUSY, "the block is pinned 2^24 - 1 times");
        }
        if (atomic_compare_exchange_weak_explicit(&block->word, &word, word + BLOCK_PIN_ONE,
                                                  memory_order_acquire, memory_order_acquire)) {
            out->address = block->address;
            return ALLOT_STATUS_OK;
        }
    }
}

allot_status allot_heap_unpin(allot_heap *heap, allot_handle handle)
{
    uint32_t index = 0;
    uint64_t word = 0;
    allot_status status = heap_check_fork(heap);
    if (status == ALLOT_STATUS_OK) {
        status = find(heap, handle, &index, &word);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap_block *const block = heap_block_at(heap, index);
    if ((word & BLOCK_DROPPABLE) != 0) {
        const uint64_t now = atomic_fetch_add_explicit(&heap->ticks, 1, memory_order_relaxed);
        atomic_store_explicit(&block->used_at, now, memory_order_relaxed);
    }
    do {
        if (generation(word) != generation(handle.value) || pins(word) == 0) {
            return alloti_fail(ALLOT_STATUS_INVALID, "the block is not pinned");
        }
        /* Release: uses of the address come before the block moves. */
    } while (!atomic_compare_exchange_weak_explicit(&block->word, &word, word - BLOCK_PIN_ONE,
                                                    memory_order_release, memory_order_relaxed));
    return ALLOT_STATUS_OK;
}

void alloti_block_describe(allot_heap *heap, uint32_t index, allot_block_info *out)
{
    const heap_block *const block = heap_block_at(heap, index);
    const heap_arena *const arena = heap->arenas[block->arena];
    const uint64_t word = atomic_load_explicit(&block->word, memory_order_relaxed);
    const allot_handle none = {0};
    *out = (allot_block_info){
        .handle = block->is_pending ? none : handle_of(index, word),
        .ptr = {block->address},
        .size = block->size,
        .size_requested = block->requested,
        .stream = heap->streams[arena->stream]->stream,
        .pool = alloti_pool_handle(heap, arena->pool),
        .tag = block->tag,
        .owner = block->owner,
        .flags = block->flags,
        .priority = block->priority,
        .pin_count = (uint32_t)pins(word),
        .is_pending = block->is_pending,
    };
}
