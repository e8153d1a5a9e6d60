/* SPDX-License-Identifier: MIT */
/* Allocations and virtual memory of a simulated device: who holds which addresses, and how much. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/size_math.h"
#include "core/size_text.h"
#include "device/simulated.h"

allot_status alloti_simulated_memory_info(void *self, uint64_t *size_free, uint64_t *size_total)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_MEMORY_INFO);
    *size_free = device->info.memory_total - device->memory_used;
    *size_total = device->info.memory_total;
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_MEMORY_INFO, 0, ALLOT_STATUS_OK);
}

/** Bytes of memory are taken. */
static allot_status take_memory(simulated *self, uint64_t size)
{
    const uint64_t size_free = self->info.memory_total - self->memory_used;
    if (size > size_free) {
        return alloti_fail(ALLOT_STATUS_DEVICE_MEMORY, "%s: asked for %s, free %s of %s",
                           self->info.name, alloti_size(size).text, alloti_size(size_free).text,
                           alloti_size(self->info.memory_total).text);
    }
    self->memory_used += size;
    return ALLOT_STATUS_OK;
}

/** Addresses are given out, aligned to `align`. */
static allot_status take_addresses(simulated *self, uint32_t kind, uint64_t size, uint64_t align,
                                   uint64_t *address)
{
    allot_range range = {0};
    allot_status status = allot_space_alloc(self->addresses, size, align, 0, &range);
    if (status != ALLOT_STATUS_OK) {
        return status == ALLOT_STATUS_HOST_MEMORY
                   ? status
                   : alloti_fail(ALLOT_STATUS_HOST_MEMORY,
                                 "%s: no %s of addresses are free in one piece", self->info.name,
                                 alloti_size(size).text);
    }
    const device_area area = {
        .address = SIMULATED_BASE + range.offset, .size = size, .value = range.id, .kind = kind};
    status = alloti_areas_add(&self->areas, &area);
    if (status != ALLOT_STATUS_OK) {
        (void)!allot_space_free(self->addresses, range.id);
        return status;
    }
    *address = area.address;
    return ALLOT_STATUS_OK;
}

/** The area that begins there, if it is of this kind and size. */
static allot_status find_area(const simulated *self, uint32_t kind, uint64_t address, uint64_t size,
                              const device_area **out)
{
    const device_area *const found = alloti_areas_at(&self->areas, address);
    const char *const what = kind == SIMULATED_ALLOCATED ? "allocated" : "reserved";
    if (found == NULL || found->kind != kind) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s: nothing was %s at %#" PRIx64, self->info.name,
                           what, address);
    }
    if (found->size != size) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "%s: at %#" PRIx64 " %" PRIu64 " bytes were %s, not %" PRIu64,
                           self->info.name, address, found->size, what, size);
    }
    *out = found;
    return ALLOT_STATUS_OK;
}

static void drop_area(simulated *self, const device_area *area)
{
    (void)!allot_space_free(self->addresses, (uint32_t)area->value);
    alloti_areas_remove(&self->areas, area);
}

/** What an allocation takes of the memory: whole pieces of the alignment. */
static uint64_t charge_of(const simulated *self, uint64_t size)
{
    uint64_t charge = UINT64_MAX;
    return alloti_align_up(size, self->info.align, &charge) ? charge : UINT64_MAX;
}

static allot_status alloc(simulated *self, uint64_t size, uint64_t *address)
{
    const uint64_t charge = charge_of(self, size);
    allot_status status = take_memory(self, charge);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = take_addresses(self, SIMULATED_ALLOCATED, size, self->info.align, address);
    if (status != ALLOT_STATUS_OK) {
        self->memory_used -= charge;
    }
    return status;
}

allot_status alloti_simulated_alloc(void *self, uint64_t size, uint64_t *address)
{
    alloti_simulated_begin(self, ALLOT_DEVICE_CALL_ALLOC);
    const allot_status status = alloc(self, size, address);
    return alloti_simulated_end(self, ALLOT_DEVICE_CALL_ALLOC, size, status);
}

allot_status alloti_simulated_free(void *self, uint64_t address, uint64_t size)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_FREE);
    const device_area *area = NULL;
    const allot_status status = find_area(device, SIMULATED_ALLOCATED, address, size, &area);
    if (status == ALLOT_STATUS_OK) {
        /* As in CUDA: memory is free once all work is done. */
        alloti_simulated_wait(device, device->end_ns);
        device->memory_used -= charge_of(device, size);
        drop_area(device, area);
    }
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_FREE, size, status);
}

allot_status alloti_simulated_reserve(void *self, uint64_t size, uint64_t *address)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_RESERVE);
    const allot_status status =
        take_addresses(device, SIMULATED_RESERVED, size, device->info.granule, address);
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_RESERVE, size, status);
}

static allot_status unreserve(simulated *self, uint64_t address, uint64_t size)
{
    const device_area *area = NULL;
    const allot_status status = find_area(self, SIMULATED_RESERVED, address, size, &area);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (alloti_areas_overlap(&self->maps, address, size)) {
        return alloti_fail(ALLOT_STATUS_BUSY,
                           "%s: memory is still mapped in the %s reserved at %#" PRIx64,
                           self->info.name, alloti_size(size).text, address);
    }
    drop_area(self, area);
    return ALLOT_STATUS_OK;
}

allot_status alloti_simulated_unreserve(void *self, uint64_t address, uint64_t size)
{
    alloti_simulated_begin(self, ALLOT_DEVICE_CALL_UNRESERVE);
    const allot_status status = unreserve(self, address, size);
    return alloti_simulated_end(self, ALLOT_DEVICE_CALL_UNRESERVE, size, status);
}

static allot_status memory_create(simulated *self, uint64_t size, uint64_t *handle)
{
    const allot_status status = take_memory(self, size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    simulated_memory *const memory = calloc(1, sizeof *memory);
    const uint64_t made =
        memory == NULL ? 0 : alloti_slots_add(&self->memories, SIMULATED_MEMORY, memory);
    if (made == 0) {
        free(memory);
        self->memory_used -= size;
        return alloti_fail_memory(sizeof *memory);
    }
    memory->size = size;
    *handle = made;
    return ALLOT_STATUS_OK;
}

allot_status alloti_simulated_memory_create(void *self, uint64_t size, uint64_t *memory)
{
    alloti_simulated_begin(self, ALLOT_DEVICE_CALL_MEMORY_CREATE);
    const allot_status status = memory_create(self, size, memory);
    return alloti_simulated_end(self, ALLOT_DEVICE_CALL_MEMORY_CREATE, size, status);
}

/** A memory of this size that is not mapped. */
static allot_status find_memory(const simulated *self, uint64_t handle, uint64_t size,
                                simulated_memory **out)
{
    simulated_memory *const memory = alloti_slots_get(&self->memories, SIMULATED_MEMORY, handle);
    if (memory == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s: there is no memory %#" PRIx64,
                           self->info.name, handle);
    }
    if (memory->size != size) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "%s: the memory has %" PRIu64 " bytes, not %" PRIu64, self->info.name,
                           memory->size, size);
    }
    if (memory->is_mapped) {
        return alloti_fail(ALLOT_STATUS_BUSY, "%s: the memory of %s is mapped", self->info.name,
                           alloti_size(size).text);
    }
    *out = memory;
    return ALLOT_STATUS_OK;
}

allot_status alloti_simulated_memory_release(void *self, uint64_t memory, uint64_t size)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_MEMORY_RELEASE);
    simulated_memory *found = NULL;
    const allot_status status = find_memory(device, memory, size, &found);
    if (status == ALLOT_STATUS_OK) {
        alloti_slots_remove(&device->memories, memory);
        device->memory_used -= size;
        free(found);
    }
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_MEMORY_RELEASE, size, status);
}

static allot_status map(simulated *self, uint64_t address, uint64_t handle, uint64_t size)
{
    const device_area *const area = alloti_areas_find(&self->areas, address);
    if (area == NULL || area->kind != SIMULATED_RESERVED ||
        area->address + area->size < address + size) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "%s: the %s at %#" PRIx64 " do not lie in one reservation",
                           self->info.name, alloti_size(size).text, address);
    }
    simulated_memory *memory = NULL;
    allot_status status = find_memory(self, handle, size, &memory);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (alloti_areas_overlap(&self->maps, address, size)) {
        return alloti_fail(ALLOT_STATUS_BUSY, "%s: memory is already mapped in the %s at %#" PRIx64,
                           self->info.name, alloti_size(size).text, address);
    }
    const device_area mapped = {.address = address, .size = size, .value = handle};
    status = alloti_areas_add(&self->maps, &mapped);
    if (status == ALLOT_STATUS_OK) {
        memory->is_mapped = true;
    }
    return status;
}

allot_status alloti_simulated_map(void *self, uint64_t address, uint64_t memory, uint64_t size)
{
    alloti_simulated_begin(self, ALLOT_DEVICE_CALL_MAP);
    const allot_status status = map(self, address, memory, size);
    return alloti_simulated_end(self, ALLOT_DEVICE_CALL_MAP, size, status);
}

static allot_status unmap(simulated *self, uint64_t address, uint64_t size)
{
    const device_area *const mapped = alloti_areas_at(&self->maps, address);
    if (mapped == NULL || mapped->size != size) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "%s: no memory of %" PRIu64 " bytes is mapped at %#" PRIx64,
                           self->info.name, size, address);
    }
    simulated_memory *const memory =
        alloti_slots_get(&self->memories, SIMULATED_MEMORY, mapped->value);
    memory->is_mapped = false;
    alloti_areas_remove(&self->maps, mapped);
    return ALLOT_STATUS_OK;
}

allot_status alloti_simulated_unmap(void *self, uint64_t address, uint64_t size)
{
    alloti_simulated_begin(self, ALLOT_DEVICE_CALL_UNMAP);
    const allot_status status = unmap(self, address, size);
    return alloti_simulated_end(self, ALLOT_DEVICE_CALL_UNMAP, size, status);
}

allot_status alloti_simulated_check_access(const simulated *self, uint64_t address, uint64_t size)
{
    const device_area *const area = alloti_areas_find(&self->areas, address);
    const bool is_there = area != NULL && (area->kind == SIMULATED_ALLOCATED
                                               ? area->address + area->size >= address + size
                                               : alloti_areas_cover(&self->maps, address, size));
    return is_there ? ALLOT_STATUS_OK
                    : alloti_fail(ALLOT_STATUS_INVALID,
                                  "%s: not all of the %" PRIu64 " bytes at %#" PRIx64
                                  " is allocated or mapped",
                                  self->info.name, size, address);
}
