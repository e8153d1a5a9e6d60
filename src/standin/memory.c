/* SPDX-License-Identifier: MIT */
#include "standin/memory.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/array.h"
#include "core/size_math.h"
#include "standin/bytes.h"
#include "standin/state.h"

void memory_init(memory_state *memory, const standin_config *config)
{
    *memory = (memory_state){.next_id = 1};
    for (unsigned i = 0; i < config->device_count; i++) {
        memory->devices[i].total = config->limit;
    }
}

/** Whether blocks of this kind are only there to be divided. */
static bool has_parts(memory_kind kind)
{
    return kind == MEMORY_SHARED || kind == MEMORY_POOL_RANGE;
}

bool memory_extent(uint64_t size, uint64_t *out)
{
    return size != 0 && alloti_align_up(size, STANDIN_GRANULE, out);
}

static bool charge(memory_device *device, uint64_t bytes)
{
    if (bytes > device->total - device->used) {
        return false;
    }
    device->used += bytes;
    if (device->used > device->peak) {
        device->peak = device->used;
    }
    return true;
}

cuda_status memory_ensure_context(standin *state, uint32_t device)
{
    memory_device *const at = &state->memory.devices[device];
    if (!at->has_context) {
        if (!charge(at, state->config.context)) {
            return CUDA_OUT_OF_MEMORY;
        }
        at->has_context = true;
    }
    return CUDA_OK;
}

cuda_status memory_charge(standin *state, uint32_t device, uint64_t bytes)
{
    cuda_status status = state->broken;
    if (status == CUDA_OK) {
        status = standin_may_fail(state);
    }
    if (status == CUDA_OK) {
        status = memory_ensure_context(state, device);
    }
    if (status != CUDA_OK) {
        return status;
    }
    memory_device *const at = &state->memory.devices[device];
    if (charge(at, bytes)) {
        return CUDA_OK;
    }
    /* What the pools hold and nobody uses goes before an allocation fails. */
    pool_trim_device(state, device);
    if (charge(at, bytes)) {
        return CUDA_OK;
    }
    at->refused_size = at->refusals++ == 0 ? bytes : at->refused_size;
    return CUDA_OUT_OF_MEMORY;
}

void memory_refund(standin *state, uint32_t device, uint64_t bytes)
{
    state->memory.devices[device].used -= bytes;
}

static bool take_slot(memory_state *memory, uint32_t *out)
{
    if (memory->free_count != 0) {
        *out = memory->free_slots[--memory->free_count];
        return true;
    }
    if (memory->block_count >= ALLOT_NONE - 1 ||
        alloti_array_reserve(&memory->blocks, &memory->block_capacity, memory->block_count + 1,
                             sizeof *memory->blocks) != ALLOT_STATUS_OK ||
        /* Room to give every slot back, so that forgetting cannot fail. */
        alloti_array_reserve(&memory->free_slots, &memory->free_capacity, memory->block_count + 1,
                             sizeof *memory->free_slots) != ALLOT_STATUS_OK) {
        return false;
    }
    *out = (uint32_t)memory->block_count++;
    return true;
}

cuda_status memory_enter(standin *state, const memory_block *block, uint32_t *index)
{
    memory_state *const memory = &state->memory;
    uint32_t slot = 0;
    if (!take_slot(memory, &slot)) {
        return CUDA_OUT_OF_MEMORY;
    }
    if (use_begin(state, slot) != CUDA_OK) {
        memory->free_slots[memory->free_count++] = slot;
        return CUDA_OUT_OF_MEMORY;
    }
    memory->blocks[slot] = *block;
    memory->blocks[slot].id = memory->next_id++;
    memory->allocations++;
    if (!block->is_part) {
        address_set_owner(&state->space, block->address, block->extent, slot);
    }
    if (index != NULL) {
        *index = slot;
    }
    return CUDA_OK;
}

void memory_forget(standin *state, uint32_t index)
{
    memory_state *const memory = &state->memory;
    memory_block *const block = &memory->blocks[index];
    if (!block->is_part) {
        address_set_owner(&state->space, block->address, block->extent, ALLOT_NONE);
    }
    if (block->file != 0) {
        close(block->file - 1);
    }
    *block = (memory_block){0};
    memory->free_slots[memory->free_count++] = index;
}

static bool has_regions(const standin *state, memory_kind kind)
{
    return (kind == MEMORY_PLAIN || kind == MEMORY_SHARED) &&
           state->config.addresses == STANDIN_ADDRESSES_LINUX;
}

static allot_status take_addresses(standin *state, uint32_t device, memory_kind kind,
                                   uint64_t extent, uint64_t *out)
{
    region_set *const regions = &state->memory.devices[device].regions;
    return has_regions(state, kind) ? region_take(regions, &state->space, extent, out)
                                    : address_take(&state->space, extent, STANDIN_GRANULE, out);
}

/** Without host memory for the arrays of free ranges the addresses are lost, which 32 TiB bear. */
static void give_addresses(standin *state, uint32_t device, memory_kind kind, uint64_t address,
                           uint64_t extent)
{
    region_set *const regions = &state->memory.devices[device].regions;
    const allot_status status = has_regions(state, kind)
                                    ? region_give(regions, &state->space, address, extent)
                                    : address_give(&state->space, address, extent);
    (void)status;
}

cuda_status memory_allocate(standin *state, uint32_t device, uint64_t size, memory_kind kind,
                            uint64_t *address)
{
    uint64_t extent = 0;
    if (kind == MEMORY_PLAIN && size < STANDIN_GRANULE && size != 0) {
        return small_allocate(state, device, size, address);
    }
    if (!memory_extent(size, &extent)) {
        return CUDA_OUT_OF_MEMORY;
    }
    cuda_status status = memory_charge(state, device, extent);
    if (status != CUDA_OK) {
        return status;
    }
    uint64_t begin = 0;
    if (take_addresses(state, device, kind, extent, &begin) != ALLOT_STATUS_OK) {
        memory_refund(state, device, extent);
        return CUDA_OUT_OF_MEMORY;
    }
    const memory_block block = {.address = begin,
                                .size = size,
                                .extent = extent,
                                .device = device,
                                .kind = kind,
                                .readers = UINT64_MAX,
                                .writers = UINT64_MAX};
    status = bytes_commit(state, begin, extent);
    if (status == CUDA_OK) {
        status = memory_enter(state, &block, NULL);
    }
    if (status != CUDA_OK) {
        give_addresses(state, device, kind, begin, extent);
        memory_refund(state, device, extent);
        return status;
    }
    *address = begin;
    return CUDA_OK;
}

cuda_status memory_release(standin *state, uint64_t address, memory_kind kind)
{
    const uint32_t index =
        has_parts(kind) ? address_owner(&state->space, address) : memory_index(state, address);
    if (index == ALLOT_NONE) {
        return CUDA_INVALID_VALUE;
    }
    const memory_block block = state->memory.blocks[index];
    if (block.address != address || block.kind != kind) {
        return CUDA_INVALID_VALUE;
    }
    if (block.is_part) {
        small_free(state, index);
        return CUDA_OK;
    }
    memory_forget(state, index);
    bytes_release(state, address, block.extent);
    memory_refund(state, block.device, block.extent);
    give_addresses(state, block.device, kind, address, block.extent);
    return CUDA_OK;
}

uint32_t memory_index(const standin *state, uint64_t address)
{
    const uint32_t index = address_owner(&state->space, address);
    if (index == ALLOT_NONE || !has_parts(state->memory.blocks[index].kind)) {
        return index;
    }
    const memory_block *const whole = &state->memory.blocks[index];
    return whole->kind == MEMORY_SHARED ? small_find(state, whole->owner, address)
                                        : pool_find(state, whole->owner, address);
}

memory_block *memory_find(const standin *state, uint64_t address)
{
    const uint32_t index = memory_index(state, address);
    return index == ALLOT_NONE ? NULL : &state->memory.blocks[index];
}

bool memory_check(const standin *state)
{
    uint64_t used[STANDIN_DEVICES_MAX] = {0};
    for (unsigned i = 0; i < state->config.device_count; i++) {
        used[i] = state->memory.devices[i].has_context ? state->config.context : 0;
    }
    for (uint64_t i = 0; i < state->memory.block_count; i++) {
        const memory_block *const block = &state->memory.blocks[i];
        if (!block->is_part && (block->kind == MEMORY_PLAIN || block->kind == MEMORY_SYMBOL ||
                                block->kind == MEMORY_SHARED)) {
            used[block->device] += block->extent;
        }
        const uint32_t found = has_parts(block->kind) ? address_owner(&state->space, block->address)
                                                      : memory_index(state, block->address);
        if (block->kind != MEMORY_NONE && found != (uint32_t)i) {
            return false;
        }
    }
    vmm_count(state, used);
    pool_count(state, used);
    for (unsigned i = 0; i < state->config.device_count; i++) {
        if (used[i] != state->memory.devices[i].used ||
            !region_set_check(&state->memory.devices[i].regions)) {
            return false;
        }
    }
    return address_space_check(&state->space);
}
