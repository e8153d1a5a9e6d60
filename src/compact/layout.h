/* SPDX-License-Identifier: MIT */
/**
 * A layout: the areas that blocks are packed into, side by side in one space, in which places are
 * tried without touching a heap.
 *
 *     [area 0 ....][gap][area 1 ......][gap][area 2, up to a cut]
 *
 * Gaps are used ranges, so that nothing crosses them, and bring each area to an offset that is as
 * much aligned as its address.
 */
#ifndef ALLOTI_COMPACT_LAYOUT_H
#define ALLOTI_COMPACT_LAYOUT_H

#include "compact/state.h"

/** Where a block is by now, in a plan. [block_count] */
typedef struct compact_place {
    uint32_t area;
    uint64_t offset;
    uint32_t range; /**< In the layout; ALLOT_NONE: outside of it. */
    uint32_t move;  /**< That brought it there; ALLOT_NONE: it was there. */
    uint64_t stage; /**< Where it slid there: free bytes elsewhere to copy through, or 0. */
    uint32_t below; /**< Block that it was placed above; ALLOT_NONE: not known. */
} compact_place;

/** An area up to an offset. */
typedef struct compact_region {
    uint32_t area;
    uint64_t end;
} compact_region;

typedef struct compact_layout {
    allot_space *space;
    const compact_region *regions; /**< Borrowed; by area. [region_count] */
    uint64_t *bases;               /**< [region_count] */
    uint32_t region_count;
    uint32_t *owners; /**< [range] Block, or ALLOT_NONE: a gap. */
    uint64_t owners_capacity;
} compact_layout;

/**
 * Lay out what is in these regions: blocks that end within them, and the parts therein of what
 * cannot be moved. Sets the range of all places.
 */
ALLOT_NODISCARD allot_status alloti_layout_init(const compact_state *state, compact_place *places,
                                                const compact_region *regions,
                                                uint32_t region_count,
                                                allot_space_strategy strategy, compact_layout *out);
void alloti_layout_fini(compact_layout *layout);

/** Place a block: *out is its range, *fits false if there is none. Only a lack of host memory is a
 * failure. O(log n). */
ALLOT_NODISCARD allot_status alloti_layout_place(compact_layout *layout, uint64_t size,
                                                 uint64_t align, allot_range *out, bool *fits);

/** A range becomes that of a block. */
ALLOT_NODISCARD allot_status alloti_layout_own(compact_layout *layout, const allot_range *range,
                                               uint32_t block, compact_place *place);

/** Give a range back. */
ALLOT_NODISCARD allot_status alloti_layout_free(compact_layout *layout, uint32_t range);

/** A run of ranges that a request would fit in once the blocks in it are elsewhere. */
typedef struct layout_window {
    uint32_t first; /**< Range. */
    uint32_t end;   /**< Range behind the last; ALLOT_NONE: there is none. */
    uint64_t begin; /**< Offset of the request. */
    uint64_t cost;  /**< Bytes of the blocks in it. */
} layout_window;

/**
 * The cheapest window; false if there is none below `cost_max`. `can_go` says which blocks may
 * leave. *steps is lowered by the ranges that were looked at. O(ranges).
 */
bool alloti_layout_window(const compact_layout *layout, uint64_t size, uint64_t align,
                          uint64_t cost_max, bool (*can_go)(const void *context, uint32_t block),
                          const void *context, uint64_t *steps, layout_window *out);

#endif /* ALLOTI_COMPACT_LAYOUT_H */
