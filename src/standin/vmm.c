/* SPDX-License-Identifier: MIT */
#include "standin/vmm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "core/size_math.h"
#include "standin/bytes.h"
#include "standin/state.h"

/* Handles are small numbers with a mark, so that 0 and stray pointers are never one. */
static const uint64_t HANDLE_MARK = UINT64_C(0x5a00000000000000);

void vmm_fini(vmm_state *vmm)
{
    free(vmm->physical);
    free(vmm->reservations);
}

static bool is_whole(uint64_t value)
{
    return value % STANDIN_GRANULE == 0;
}

/** Index of the first reservation that ends above `address`. */
static uint64_t reservation_bound(const vmm_state *vmm, uint64_t address)
{
    uint64_t low = 0;
    uint64_t high = vmm->reservation_count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (vmm->reservations[middle].address + vmm->reservations[middle].size <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const vmm_reservation *vmm_reservation_at(const standin *state, uint64_t address)
{
    const vmm_state *const vmm = &state->vmm;
    const uint64_t at = reservation_bound(vmm, address);
    return at < vmm->reservation_count && vmm->reservations[at].address <= address
               ? &vmm->reservations[at]
               : NULL;
}

cuda_status vmm_reserve(standin *state, uint64_t size, uint64_t align, uint64_t wish, uint64_t *out)
{
    vmm_state *const vmm = &state->vmm;
    const uint64_t step = align < STANDIN_GRANULE ? STANDIN_GRANULE : align;
    const cuda_status failure = standin_may_fail(state);
    if (failure != CUDA_OK) {
        return failure;
    }
    if (size == 0 || !is_whole(size) || !alloti_is_pow2(step)) {
        return CUDA_INVALID_VALUE;
    }
    if (alloti_array_reserve(&vmm->reservations, &vmm->reservation_capacity,
                             vmm->reservation_count + 1,
                             sizeof *vmm->reservations) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    uint64_t address = wish;
    if (!(address_is_inside(&state->space, wish) && address_take_at(&state->space, wish, size)) &&
        address_take(&state->space, size, step, &address) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    const uint64_t at = reservation_bound(vmm, address);
    memmove(vmm->reservations + at + 1, vmm->reservations + at,
            (size_t)(vmm->reservation_count - at) * sizeof *vmm->reservations);
    vmm->reservations[at] = (vmm_reservation){address, size};
    vmm->reservation_count++;
    *out = address;
    return CUDA_OK;
}

/** Whether any granule of a range is mapped. */
static bool has_mapping(const standin *state, uint64_t address, uint64_t size)
{
    for (uint64_t at = address; at < address + size; at += STANDIN_GRANULE) {
        if (address_owner(&state->space, at) != ALLOT_NONE) {
            return true;
        }
    }
    return false;
}

cuda_status vmm_unreserve(standin *state, uint64_t address, uint64_t size)
{
    vmm_state *const vmm = &state->vmm;
    const uint64_t at = reservation_bound(vmm, address);
    if (at == vmm->reservation_count || vmm->reservations[at].address != address ||
        vmm->reservations[at].size != size || has_mapping(state, address, size)) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                           "cuMemAddressFree of %" PRIu64 " bytes at 0x%" PRIx64
                           ", which is no whole reservation or still has mappings",
                           size, address);
    }
    vmm->reservation_count--;
    memmove(vmm->reservations + at, vmm->reservations + at + 1,
            (size_t)(vmm->reservation_count - at) * sizeof *vmm->reservations);
    (void)!address_give(&state->space, address, size);
    return CUDA_OK;
}

static vmm_physical *physical_of(const vmm_state *vmm, uint64_t handle)
{
    const uint64_t index = handle - HANDLE_MARK;
    if (handle < HANDLE_MARK || index >= vmm->physical_count || vmm->physical[index].size == 0) {
        return NULL;
    }
    return &vmm->physical[index];
}

const vmm_physical *vmm_find(const standin *state, uint64_t handle)
{
    const vmm_physical *const physical = physical_of(&state->vmm, handle);
    return physical != NULL && physical->handles != 0 ? physical : NULL;
}

/** A free slot; UINT64_MAX without host memory. */
static uint64_t take_slot(vmm_state *vmm)
{
    for (uint64_t i = vmm->physical_hint; i < vmm->physical_count; i++) {
        if (vmm->physical[i].size == 0) {
            vmm->physical_hint = i + 1;
            return i;
        }
    }
    if (alloti_array_reserve(&vmm->physical, &vmm->physical_capacity, vmm->physical_count + 1,
                             sizeof *vmm->physical) != ALLOT_STATUS_OK) {
        return UINT64_MAX;
    }
    vmm->physical_hint = vmm->physical_count + 1;
    return vmm->physical_count++;
}

static cuda_status enter(standin *state, const vmm_physical *physical, uint64_t *handle)
{
    const uint64_t slot = take_slot(&state->vmm);
    if (slot == UINT64_MAX) {
        return CUDA_OUT_OF_MEMORY;
    }
    state->vmm.physical[slot] = *physical;
    *handle = HANDLE_MARK + slot;
    return CUDA_OK;
}

cuda_status vmm_create(standin *state, uint64_t size, const cuda_allocation_properties *properties,
                       uint64_t *handle)
{
    if (size == 0 || !is_whole(size) || properties->location.type != 1 ||
        (unsigned)properties->location.id >= state->config.device_count) {
        return CUDA_INVALID_VALUE;
    }
    const uint32_t device = (uint32_t)properties->location.id;
    cuda_status status = memory_charge(state, device, size);
    if (status != CUDA_OK) {
        return status;
    }
    const vmm_physical physical = {.size = size,
                                   .device = device,
                                   .handles = 1,
                                   .file = bytes_file(state, size),
                                   .properties = *properties};
    status = enter(state, &physical, handle);
    if (status != CUDA_OK) {
        memory_refund(state, device, size);
    } else {
        state->memory.allocations++;
    }
    return status;
}

cuda_status vmm_import(standin *state, uint64_t size, uint32_t device, int file, uint64_t *handle)
{
    const vmm_physical physical = {
        .size = size,
        .device = device,
        .handles = 1,
        .file = file,
        .is_imported = true,
        .properties = {.type = 1, .location = {.type = 1, .id = (int)device}}};
    return enter(state, &physical, handle);
}

/** Let physical memory go once nothing refers to it. */
static void collect(standin *state, vmm_physical *physical)
{
    if (physical->handles != 0 || physical->mappings != 0) {
        return;
    }
    if (!physical->is_imported) {
        memory_refund(state, physical->device, physical->size);
    }
    if (physical->file >= 0) {
        close(physical->file);
    }
    *physical = (vmm_physical){.file = -1};
    const uint64_t index = (uint64_t)(physical - state->vmm.physical);
    if (index < state->vmm.physical_hint) {
        state->vmm.physical_hint = index;
    }
}

cuda_status vmm_release(standin *state, uint64_t handle)
{
    vmm_physical *const physical = physical_of(&state->vmm, handle);
    if (physical == NULL || physical->handles == 0) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                           "cuMemRelease of 0x%" PRIx64 ", which is no handle or was released",
                           handle);
    }
    physical->handles--;
    collect(state, physical);
    return CUDA_OK;
}

cuda_status vmm_retain_at(standin *state, uint64_t address, uint64_t *handle)
{
    const memory_block *const block = memory_find(state, address);
    if (block == NULL || block->kind != MEMORY_MAPPING) {
        return CUDA_INVALID_VALUE;
    }
    state->vmm.physical[block->owner].handles++;
    *handle = HANDLE_MARK + block->owner;
    return CUDA_OK;
}

cuda_status vmm_map(standin *state, uint64_t address, uint64_t size, uint64_t offset,
                    uint64_t handle)
{
    vmm_physical *const physical = physical_of(&state->vmm, handle);
    const vmm_reservation *const reservation = vmm_reservation_at(state, address);
    const cuda_status failure = standin_may_fail(state);
    if (failure != CUDA_OK) {
        return failure;
    }
    if (physical == NULL || physical->handles == 0 || reservation == NULL || size == 0 ||
        !is_whole(size) || !is_whole(address) || !is_whole(offset) || offset > physical->size ||
        size > physical->size - offset ||
        size > reservation->address + reservation->size - address ||
        has_mapping(state, address, size)) {
        return CUDA_INVALID_VALUE;
    }
    if (offset != 0 && state->config.has_bytes) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                           "cuMemMap with an offset of %" PRIu64 ", which must be zero", offset);
    }
    cuda_status status = bytes_map(state, address, size, physical->file, offset);
    if (status != CUDA_OK) {
        return status;
    }
    const memory_block block = {.address = address,
                                .size = size,
                                .extent = size,
                                .device = physical->device,
                                .owner = (uint32_t)(physical - state->vmm.physical),
                                .kind = MEMORY_MAPPING}; /* cuMemSetAccess lets devices in */
    status = memory_enter(state, &block, NULL);
    if (status == CUDA_OK) {
        physical->mappings++;
    }
    return status;
}

/** Whether whole mappings fill a range exactly. */
static bool is_mapped_exactly(const standin *state, uint64_t address, uint64_t size)
{
    uint64_t at = address;
    while (at < address + size) {
        const memory_block *const block = memory_find(state, at);
        if (block == NULL || block->kind != MEMORY_MAPPING || block->address != at) {
            return false;
        }
        at += block->extent;
    }
    return at == address + size;
}

/**
 * Unmapping does not wait for the device: the documentation has it synchronous "for most use
 * cases", which a program cannot rely on. Work that runs later than this fails.
 */
static void check_users(standin *state, uint64_t address, uint64_t size)
{
    for (uint64_t at = address; at < address + size;) {
        const uint32_t index = memory_index(state, at);
        uint32_t user = 0;
        if (!use_is_over(state, index, NULL, &user)) {
            (void)rule_broken(state, NULL, CUDA_OK,
                              "0x%" PRIx64 " is unmapped while stream %u may still use it", at,
                              user + 1);
        }
        at += state->memory.blocks[index].extent;
    }
}

cuda_status vmm_unmap(standin *state, uint64_t address, uint64_t size)
{
    if (size == 0 || !is_mapped_exactly(state, address, size)) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                           "cuMemUnmap of %" PRIu64 " bytes at 0x%" PRIx64
                           ", which are not whole mappings",
                           size, address);
    }
    if (state->config.has_bytes) {
        check_users(state, address, size);
        queue_pause(state);
    }
    for (uint64_t at = address; at < address + size;) {
        const uint32_t index = address_owner(&state->space, at);
        const memory_block block = state->memory.blocks[index];
        vmm_physical *const physical = &state->vmm.physical[block.owner];
        memory_forget(state, index);
        bytes_release(state, block.address, block.extent);
        physical->mappings--;
        collect(state, physical);
        at += block.extent;
    }
    return CUDA_OK;
}

static cuda_status set_access_one(standin *state, uint64_t address, uint64_t size,
                                  const cuda_access *access)
{
    enum { READ = 1, WRITE = 2 };
    if (access->location.type == 1 && (unsigned)access->location.id >= state->config.device_count) {
        return CUDA_INVALID_DEVICE;
    }
    for (uint64_t at = address; at < address + size;) {
        memory_block *const block = memory_find(state, at);
        if (access->location.type == 1) {
            const uint64_t bit = UINT64_C(1) << (unsigned)access->location.id;
            block->readers =
                (access->flags & READ) != 0 ? block->readers | bit : block->readers & ~bit;
            block->writers =
                (access->flags & WRITE) != 0 ? block->writers | bit : block->writers & ~bit;
        }
        at += block->extent;
    }
    return CUDA_OK;
}

cuda_status vmm_set_access(standin *state, uint64_t address, uint64_t size,
                           const cuda_access *access, size_t count)
{
    if (access == NULL || size == 0 || !is_mapped_exactly(state, address, size)) {
        return CUDA_INVALID_VALUE;
    }
    cuda_status status = standin_may_fail(state);
    for (size_t i = 0; i < count && status == CUDA_OK; i++) {
        status = set_access_one(state, address, size, &access[i]);
    }
    return status;
}

void vmm_count(const standin *state, uint64_t *used)
{
    for (uint64_t i = 0; i < state->vmm.physical_count; i++) {
        const vmm_physical *const physical = &state->vmm.physical[i];
        if (!physical->is_imported) {
            used[physical->device] += physical->size;
        }
    }
}
