/* SPDX-License-Identifier: MIT */
/**
 * Where a device's plain allocations lie, as NVIDIA's driver does it on Linux.
 *
 * The driver maps its address space in regions of whole 32 MiB, each as large as the request that
 * made it, at the highest gap that the kernel finds, so that addresses fall. What is left at a
 * region's end serves later requests: the newest region with room is taken, in it the lowest place.
 * A region that holds nothing is unmapped.
 *
 *     172 MiB asked for     |<------- 172 ------->|<- 20 left ->|     a region of 192 MiB
 *     then 2 MiB            |<------- 172 ------->|2|<-- 18 --->|     the newest that has room
 *
 * It matters because PyTorch takes the lowest of several equally good blocks. Found from recorded
 * addresses: of 584 segments of a program that frees and allocates them again and again, 573 lie
 * where this rule puts them; the others beside mappings that the recording does not show.
 *
 * Regions are slots in the order of their making, with a tree of maxima above for the newest that
 * has room, O(log n); by falling address in an array, for the one that holds an address.
 *
 * Not thread-safe: guarded by the process's lock (state.h).
 */
#ifndef ALLOTI_STANDIN_REGION_H
#define ALLOTI_STANDIN_REGION_H

#include "standin/address.h"

typedef struct region_piece {
    address_range range;
    uint32_t next; /**< Higher free piece of the region, or next unused one; ALLOT_NONE: last. */
} region_piece;

typedef struct region {
    address_range range;  /**< Empty: the slot is unused since the region went. */
    uint32_t piece_first; /**< Free pieces by address, none adjacent to another. */
} region;

typedef struct region_place {
    uint64_t begin;
    uint32_t slot;
} region_place;

typedef struct region_set {
    region *slots; /**< [slot_count] In the order of making. */
    uint64_t slot_count;
    uint64_t slot_capacity;
    uint64_t *largest;    /**< [2 * leaf_count] Tree of maxima of the largest free pieces. */
    uint64_t leaf_count;  /**< A power of two, or 0. */
    region_place *places; /**< [place_count] By falling address. */
    uint64_t place_count;
    uint64_t place_capacity;
    region_piece *pieces;
    uint64_t piece_count;
    uint64_t piece_capacity;
    uint32_t piece_unused; /**< First of the unused ones + 1, 0 for none. */
} region_set;

/** Forget all regions; zeroed is empty. Their addresses are not given back. */
void region_set_fini(region_set *set);

/**
 * Take `size` bytes (a multiple of the granule) from a region, or from a new one of the space.
 * ALLOT_STATUS_DEVICE_MEMORY if the space has no gap, ALLOT_STATUS_HOST_MEMORY; nothing changed
 * then.
 */
ALLOT_NODISCARD allot_status region_take(region_set *set, address_space *space, uint64_t size,
                                         uint64_t *out);

/** Give a range back that region_take() gave. ALLOT_STATUS_HOST_MEMORY leaves it taken. */
ALLOT_NODISCARD allot_status region_give(region_set *set, address_space *space, uint64_t address,
                                         uint64_t size);

/** Whether the three views of the regions agree. */
bool region_set_check(const region_set *set);

#endif /* ALLOTI_STANDIN_REGION_H */
