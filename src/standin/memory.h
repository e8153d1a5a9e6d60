/* SPDX-License-Identifier: MIT */
/**
 * Device memory: what is taken of each device, and the blocks that hold addresses.
 *
 * A block is a range of addresses with a device behind it: a plain allocation, one from a pool, a
 * mapping of physical memory, or memory of another process. Most own their granules; small ones are
 * parts of a block that holds many. The devices' figures
 * count physical memory only, so that mappings and imports cost nothing.
 *
 * Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_MEMORY_H
#define ALLOTI_STANDIN_MEMORY_H

#include <allot/base.h>

#include "standin/abi.h"
#include "standin/config.h"
#include "standin/region.h"

struct standin;

typedef enum memory_kind {
    MEMORY_NONE,       /**< The slot is free. */
    MEMORY_PLAIN,      /**< cudaMalloc */
    MEMORY_POOLED,     /**< cudaMallocAsync */
    MEMORY_MAPPING,    /**< cuMemMap; `owner` is the physical memory's index */
    MEMORY_IMPORTED,   /**< another process's; `owner` counts how often it is open */
    MEMORY_SYMBOL,     /**< variables of kernels */
    MEMORY_POOL_RANGE, /**< granules of a pool; `owner` is its index */
    MEMORY_SHARED,     /**< a granule of small allocations; `owner` is its entry (small.h) */
} memory_kind;

typedef struct memory_block {
    uint64_t address;
    uint64_t size;   /**< As asked for. */
    uint64_t extent; /**< Rounded up to granules. */
    uint64_t id;     /**< Unique for the life of the process. */
    uint32_t device;
    uint32_t owner; /**< Meaning by kind. */
    int file;       /**< With real bytes: the memory file it became, + 1; 0: none. */
    bool is_part;   /**< Its granules are another block's, and its extent is no multiple of them. */
    memory_kind kind;
    uint64_t readers; /**< Bit i: device i may read it. Mappings: as granted, else all. */
    uint64_t writers;
} memory_block;

typedef struct memory_device {
    uint64_t total;
    uint64_t used;
    uint64_t peak;
    uint64_t refusals;     /**< Requests that the device had no room for. */
    uint64_t refused_size; /**< Bytes of the first of them. */
    uint64_t peers;        /**< Bit i: access to device i was enabled. */
    bool has_context;
    region_set regions; /**< Where plain allocations lie; unused with other kinds of addresses. */
} memory_device;

typedef struct memory_state {
    memory_device devices[STANDIN_DEVICES_MAX];
    memory_block *blocks;
    uint64_t block_count; /**< Slots, free ones included. */
    uint64_t block_capacity;
    uint32_t *free_slots;
    uint64_t free_count;
    uint64_t free_capacity;
    uint64_t next_id;
    uint64_t allocations; /**< Successful ones so far: the guard against endless loops looks. */
} memory_state;

void memory_init(memory_state *memory, const standin_config *config);

/** Round a size up to granules; false on overflow or 0. */
bool memory_extent(uint64_t size, uint64_t *out);

/** Take physical memory of a device; its context first if it has none. */
cuda_status memory_charge(struct standin *state, uint32_t device, uint64_t bytes);
void memory_refund(struct standin *state, uint32_t device, uint64_t bytes);

/** Make sure that a device's context exists. */
cuda_status memory_ensure_context(struct standin *state, uint32_t device);

/** Enter a block for addresses that the caller has taken. CUDA_OUT_OF_MEMORY without host memory.
 */
cuda_status memory_enter(struct standin *state, const memory_block *block, uint32_t *index);

/** Forget a block; its addresses stay taken. */
void memory_forget(struct standin *state, uint32_t index);

/** Charge, take addresses, enter: a whole allocation, undone as a whole on failure. */
cuda_status memory_allocate(struct standin *state, uint32_t device, uint64_t size, memory_kind kind,
                            uint64_t *address);

/** The opposite. CUDA_INVALID_VALUE unless `address` begins a block of this kind. */
cuda_status memory_release(struct standin *state, uint64_t address, memory_kind kind);

/** Index of the block that holds an address, ALLOT_NONE for none. */
uint32_t memory_index(const struct standin *state, uint64_t address);

/** The block that holds an address, NULL for none. Borrowed: valid until the next allocation. */
memory_block *memory_find(const struct standin *state, uint64_t address);

/** Whether the figures agree with each other. */
bool memory_check(const struct standin *state);

#endif /* ALLOTI_STANDIN_MEMORY_H */
