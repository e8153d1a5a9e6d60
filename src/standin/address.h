/* SPDX-License-Identifier: MIT */
/**
 * Addresses of device memory: a large range of the process's address space that nothing may touch.
 *
 * The range is cut into granules of 2 MiB, the unit in which the driver gives out memory. Taking
 * looks for the lowest free range, so that a freed range is used again; or always goes upwards,
 * which makes runs comparable that differ in what they free; or looks for the highest, as a kernel
 * does that maps memory (region.h). Free ranges are an array sorted by
 * address. Owners are a table with one entry per granule, which makes finding what an address
 * belongs to one load; the table is itself touched only where addresses are in use.
 *
 * Not thread-safe: guarded by the process's lock (state.h).
 */
#ifndef ALLOTI_STANDIN_ADDRESS_H
#define ALLOTI_STANDIN_ADDRESS_H

#include <allot/base.h>

#define STANDIN_GRANULE (UINT64_C(2) << 20)

typedef struct address_range {
    uint64_t begin;
    uint64_t end;
} address_range;

typedef struct address_space {
    uint64_t begin; /**< Multiple of the granule. */
    uint64_t end;
    uint64_t next; /**< Upwards: everything from here on was never given out. */
    bool is_upward;
    address_range *free; /**< Sorted, disjoint, none adjacent to another. */
    uint64_t free_count;
    uint64_t free_capacity;
    uint32_t *owners; /**< [granules], index of the owner + 1, 0 for nobody. */
    uint64_t alias;   /**< Added to an address: where its bytes are, with real bytes; else 0. */
} address_space;

/** Reserve the range: 32 TiB, or the largest power of two that the system allows. */
ALLOT_NODISCARD allot_status address_space_init(address_space *space, bool is_upward,
                                                bool has_bytes);

/** Give everything back to the system. */
void address_space_fini(address_space *space);

static inline bool address_is_inside(const address_space *space, uint64_t address)
{
    return address >= space->begin && address < space->end;
}

/**
 * Take `size` bytes (a multiple of the granule) aligned to `align` (a power of two, at least the
 * granule). ALLOT_STATUS_DEVICE_MEMORY if no range is large enough.
 */
ALLOT_NODISCARD allot_status address_take(address_space *space, uint64_t size, uint64_t align,
                                          uint64_t *out);

/**
 * Take `size` bytes aligned to `align` from the highest free range that has both together: what
 * mapping so much and giving back what is not aligned comes to.
 */
ALLOT_NODISCARD allot_status address_take_highest(address_space *space, uint64_t size,
                                                  uint64_t align, uint64_t *out);

/** Take exactly this range if it is free; false if it is not. */
bool address_take_at(address_space *space, uint64_t address, uint64_t size);

/** Give a range back. ALLOT_STATUS_HOST_MEMORY leaves it taken. */
ALLOT_NODISCARD allot_status address_give(address_space *space, uint64_t address, uint64_t size);

/** Say who owns the granules of a range; ALLOT_NONE for nobody. */
void address_set_owner(address_space *space, uint64_t address, uint64_t size, uint32_t owner);

/** Owner of the granule that holds an address, ALLOT_NONE for nobody. */
uint32_t address_owner(const address_space *space, uint64_t address);

/** Whether the array of free ranges is as its description says. */
bool address_space_check(const address_space *space);

#endif /* ALLOTI_STANDIN_ADDRESS_H */
