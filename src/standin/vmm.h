/* SPDX-License-Identifier: MIT */
/**
 * Virtual memory management: reserved addresses, physical memory, mappings between them, with the
 * driver's documented rules. Physical memory lives while a handle or a mapping refers to it.
 *
 * Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_VMM_H
#define ALLOTI_STANDIN_VMM_H

#include <allot/base.h>

#include "standin/abi.h"

struct standin;

typedef struct vmm_physical {
    uint64_t size; /**< 0: the slot is free. */
    uint32_t device;
    uint32_t handles;  /**< Times it must be released. */
    uint32_t mappings; /**< Blocks that show it. */
    int file;          /**< Its bytes, -1 for none. */
    bool is_imported;  /**< Another process pays for it. */
    cuda_allocation_properties properties;
} vmm_physical;

typedef struct vmm_reservation {
    uint64_t address;
    uint64_t size;
} vmm_reservation;

typedef struct vmm_state {
    vmm_physical *physical;
    uint64_t physical_count;
    uint64_t physical_capacity;
    uint64_t physical_hint;        /**< No free slot lies below. */
    vmm_reservation *reservations; /**< Sorted by address. */
    uint64_t reservation_count;
    uint64_t reservation_capacity;
} vmm_state;

void vmm_fini(vmm_state *vmm);

cuda_status vmm_reserve(struct standin *state, uint64_t size, uint64_t align, uint64_t wish,
                        uint64_t *out);
cuda_status vmm_unreserve(struct standin *state, uint64_t address, uint64_t size);

cuda_status vmm_create(struct standin *state, uint64_t size,
                       const cuda_allocation_properties *properties, uint64_t *handle);
cuda_status vmm_release(struct standin *state, uint64_t handle);
cuda_status vmm_retain_at(struct standin *state, uint64_t address, uint64_t *handle);

/** The physical memory of a handle, NULL for none. Borrowed: valid until the next vmm_create(). */
const vmm_physical *vmm_find(const struct standin *state, uint64_t handle);

cuda_status vmm_map(struct standin *state, uint64_t address, uint64_t size, uint64_t offset,
                    uint64_t handle);
cuda_status vmm_unmap(struct standin *state, uint64_t address, uint64_t size);
cuda_status vmm_set_access(struct standin *state, uint64_t address, uint64_t size,
                           const cuda_access *access, size_t count);

/** Enter memory of another process, or of this one seen through a file. Costs nothing. */
cuda_status vmm_import(struct standin *state, uint64_t size, uint32_t device, int file,
                       uint64_t *handle);

/** The reservation that holds an address, NULL for none. */
const vmm_reservation *vmm_reservation_at(const struct standin *state, uint64_t address);

/** Add each device's physical memory to used[device]. */
void vmm_count(const struct standin *state, uint64_t *used);

#endif /* ALLOTI_STANDIN_VMM_H */
