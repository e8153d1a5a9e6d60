/* SPDX-License-Identifier: MIT */
#include "heap/drop.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "heap/block.h"
#include "heap/pending.h"
#include "heap/stats.h"

static int compare(const void *owner, uint32_t a, uint32_t b)
{
    const allot_heap *const heap = owner;
    const heap_block *const x = heap_block_at(heap, a);
    const heap_block *const y = heap_block_at(heap, b);
    if (x->flags != y->flags) {
        return x->flags < y->flags ? -1 : 1;
    }
    if (x->priority != y->priority) {
        return x->priority < y->priority ? -1 : 1;
    }
    if (x->line_at != y->line_at) {
        return x->line_at < y->line_at ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static alloti_tree_host host_of(allot_heap *heap)
{
    return (alloti_tree_host){.nodes = heap->drop_nodes, .owner = heap, .compare = compare};
}

allot_status alloti_drop_reserve(allot_heap *heap, uint32_t index)
{
    const uint64_t old = heap->drop_capacity;
    const allot_status status = alloti_array_reserve(&heap->drop_nodes, &heap->drop_capacity,
                                                     (uint64_t)index + 1, sizeof *heap->drop_nodes);
    if (status == ALLOT_STATUS_OK && heap->drop_capacity != old) {
        memset(&heap->drop_nodes[old], 0,
               (size_t)(heap->drop_capacity - old) * sizeof *heap->drop_nodes);
    }
    return status;
}

static uint64_t used_at(const heap_block *block)
{
    return atomic_load_explicit(&block->used_at, memory_order_relaxed);
}

void alloti_drop_add(allot_heap *heap, uint32_t index)
{
    const alloti_tree_host host = host_of(heap);
    heap_block *const block = heap_block_at(heap, index);
    block->line_at = used_at(block);
    alloti_tree_insert(&heap->drop_line, &host, index);
}

void alloti_drop_remove(allot_heap *heap, uint32_t index)
{
    const alloti_tree_host host = host_of(heap);
    if (index < heap->drop_capacity && alloti_tree_has(heap->drop_nodes, index)) {
        alloti_tree_remove(&heap->drop_line, &host, index);
    }
}

allot_status alloti_drop_memory(allot_heap *heap, uint32_t index, uint32_t ghost)
{
    heap_block *const block = heap_block_at(heap, index);
    const allot_status status = alloti_pending_detach(heap, index, ghost, false);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_count_freed(heap, block);
    block->size = 0;
    atomic_fetch_or_explicit(&block->word, BLOCK_DROPPED, memory_order_relaxed);
    alloti_drop_remove(heap, index);
    return ALLOT_STATUS_OK;
}

static allot_status drop(allot_heap *heap, uint32_t index)
{
    uint32_t ghost = 0;
    allot_status status = alloti_block_take(heap, &ghost);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_drop_memory(heap, index, ghost);
        if (status != ALLOT_STATUS_OK) {
            alloti_block_put(heap, ghost);
        }
    }
    return status;
}

/** The next block in line with a flag that is neither pinned nor was used since; marked as moving.
 * Those that were used go back in line. ALLOT_NONE if there is none. */
static uint32_t take_next(allot_heap *heap, uint32_t flag)
{
    uint32_t index = alloti_tree_first(&heap->drop_line, heap->drop_nodes);
    while (index != ALLOT_NONE) {
        heap_block *const block = heap_block_at(heap, index);
        const uint32_t next = alloti_tree_next(heap->drop_nodes, index);
        if (block->flags == flag && block->line_at != used_at(block)) {
            alloti_drop_remove(heap, index);
            alloti_drop_add(heap, index);
            /* It may be the next one all the same. */
            index = next == ALLOT_NONE || compare(heap, index, next) < 0 ? index : next;
            continue;
        }
        if (block->flags == flag && alloti_block_begin_move(block)) {
            return index;
        }
        index = next;
    }
    return ALLOT_NONE;
}

allot_status alloti_drop_one(allot_heap *heap, uint32_t flag, uint64_t *size)
{
    *size = 0;
    const uint32_t index = take_next(heap, flag);
    if (index == ALLOT_NONE) {
        return ALLOT_STATUS_OK;
    }
    heap_block *const block = heap_block_at(heap, index);
    const uint64_t bytes = block->size;
    const allot_status status = drop(heap, index);
    *size = status == ALLOT_STATUS_OK ? bytes : 0;
    alloti_block_end_move(block);
    return status;
}

void alloti_drop_fini(allot_heap *heap)
{
    free(heap->drop_nodes);
}
