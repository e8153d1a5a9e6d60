/* SPDX-License-Identifier: MIT */
/**
 * The table of blocks, their words, and the handles that name them.
 *
 * A handle is the block's generation above, its place + 1 below. A place whose generations are used
 * up is never used again, so that a handle cannot come back. Each heap begins with a generation of
 * its own, so that a handle of one names, but for a rare chance, nothing in another.
 */
#ifndef ALLOTI_HEAP_BLOCK_H
#define ALLOTI_HEAP_BLOCK_H

#include "heap/heap.h"

/** A place for a block, owned by the caller until it is put back; ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_block_take(allot_heap *heap, uint32_t *out);
void alloti_block_put(allot_heap *heap, uint32_t index);

/** Empty. */
void alloti_blocks_init(allot_heap *heap);
void alloti_blocks_fini(allot_heap *heap);

static inline heap_block *heap_block_at(const allot_heap *heap, uint32_t index)
{
    heap_block *const chunk =
        atomic_load_explicit(&heap->blocks.chunks[index / BLOCKS_PER_CHUNK], memory_order_acquire);
    return &chunk[index % BLOCKS_PER_CHUNK];
}

/** The handle of a live block. */
allot_handle alloti_block_handle(const allot_heap *heap, uint32_t index);

/** The handle that a block's next alloti_block_publish() will give it. */
allot_handle alloti_block_next_handle(const allot_heap *heap, uint32_t index);

/**
 * Place of the block that a handle names; ALLOT_STATUS_INVALID if it is none, was freed, or is of
 * another heap. *word is its word, which may change meanwhile.
 */
ALLOT_NODISCARD allot_status alloti_block_find(const allot_heap *heap, allot_handle handle,
                                               uint32_t *index, uint64_t *word);

/**
 * Hand a block out: from now on its word says live, with `bits`, no pins, and a new generation;
 * everything else of it was set before.
 */
void alloti_block_publish(heap_block *block, uint64_t bits);

/**
 * End a block's life: its word is live no more, the caller owns it.
 *
 * @param[in,out] word  In: as found; out: as it was last, for alloti_block_revive().
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_BUSY while it is pinned; ALLOT_STATUS_INVALID if it is not
 *         live in this generation; ALLOT_STATUS_CANCELLED if it is moving: to be tried again under
 *         the heap's lock, where nothing moves.
 */
ALLOT_NODISCARD allot_status alloti_block_retire(const allot_heap *heap, uint32_t index,
                                                 uint64_t *word);

/** Undo alloti_block_retire(), before anybody could notice: same generation, same bits. */
void alloti_block_revive(heap_block *block, uint64_t word);

/** Let nobody pin a block while its place changes; false if it is pinned. Under the lock. */
bool alloti_block_begin_move(heap_block *block);

/**
 * The same for the block that a handle names, pinned or not: neither a pin nor a free comes between
 * then. *word is its word as it was found.
 */
ALLOT_NODISCARD allot_status alloti_block_hold(const allot_heap *heap, allot_handle handle,
                                               uint32_t *index, uint64_t *word);
void alloti_block_end_move(heap_block *block);

/** ALLOT_STATUS_OK if a block with this word can be moved; ALLOT_STATUS_NOT_FOUND if it was
 * dropped; ALLOT_STATUS_BUSY if it is pinned, or a pointer. */
ALLOT_NODISCARD allot_status alloti_block_can_move(uint64_t word);

/** What is told of a block. Under the lock. */
void alloti_block_describe(allot_heap *heap, uint32_t index, allot_block_info *out);

#endif /* ALLOTI_HEAP_BLOCK_H */
