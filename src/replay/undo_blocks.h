/* SPDX-License-Identifier: MIT */
/**
 * Blocks by address while events are undone, for undo.c. A block is found by any address inside it,
 * and free neighbours in the same home merge.
 */
#ifndef ALLOTI_REPLAY_UNDO_BLOCKS_H
#define ALLOTI_REPLAY_UNDO_BLOCKS_H

#include "core/tree.h"
#include "replay/ranges.h"

#include <assert.h>

/** What is common to the blocks of a classic segment, or to all of an expandable range. */
typedef struct undo_home {
    uint64_t stream;
    uint32_t pool;
    bool is_large;
    bool is_expandable;
} undo_home;

typedef struct undo_block {
    uint64_t address;
    uint64_t size;
    uint64_t requested;
    uint32_t home;
    uint32_t slot;
    uint8_t state; /**< allot_block_state. */
    bool is_dead;
    bool may_grow; /**< Its unsplit rest, if it had one, is not known yet. */
} undo_block;

/** Bounds the search for a range; programs have a handful. */
enum { RANGES_MAX = 1024 };

typedef struct undoing {
    allot_requests *requests;
    const alloti_places *places;
    undo_block *blocks;
    alloti_tree_node *nodes;
    uint64_t block_count;
    uint64_t block_capacity;
    uint64_t node_capacity;
    alloti_tree tree; /**< Live blocks by address. */
    undo_home *homes;
    uint64_t home_count;
    uint64_t home_capacity;
    uint32_t ranges[RANGES_MAX]; /**< Homes of expandable ranges. */
    uint32_t range_count;
} undoing;

void alloti_undo_fini(undoing *undo);

static inline undo_block *alloti_undo_at(const undoing *undo, uint32_t block)
{
    assert(undo->blocks != NULL && block < undo->block_count);
    return &undo->blocks[block];
}

/** Add a block; `out` may be NULL. */
ALLOT_NODISCARD allot_status alloti_undo_add(undoing *undo, const undo_block *content,
                                             uint32_t *out);
void alloti_undo_drop(undoing *undo, uint32_t block);

/** The block that contains an address, ALLOT_NONE if none does. */
uint32_t alloti_undo_find(const undoing *undo, uint64_t address);

/** The first block that begins at an address or behind it. */
uint32_t alloti_undo_from(const undoing *undo, uint64_t address);

/** The block right before or after, in the same home and without a gap; ALLOT_NONE if none. */
uint32_t alloti_undo_neighbour(const undoing *undo, uint32_t block, bool after);

/** Merge a free block with the free ones beside it. */
void alloti_undo_merge(undoing *undo, uint32_t block);

ALLOT_NODISCARD allot_status alloti_undo_add_home(undoing *undo, const undo_home *home,
                                                  uint32_t *out);

/** Home of an expandable stretch: one for all of the same stream, pool and size class. */
ALLOT_NODISCARD allot_status alloti_undo_range_home(undoing *undo, const undo_home *home,
                                                    uint32_t *out);

#endif /* ALLOTI_REPLAY_UNDO_BLOCKS_H */
