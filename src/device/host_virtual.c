/* SPDX-License-Identifier: MIT */
/*
 * Reserved addresses, memories, and which lies where; see host.h for the idea. Granules that a
 * memory was unmapped from still hold its bytes until it is mapped elsewhere, released, or made
 * way.
 *
 * With `guard` all addresses are closed where nothing is mapped, and opened for as long as pages
 * are moved from or to them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/size_text.h"
#include "device/host.h"
#include "device/host_pages.h"

void alloti_host_transfer(host_device *device, uint64_t dst, uint64_t src, uint64_t size,
                          uint32_t *cut_count)
{
    if (alloti_host_cut(device, cut_count)) {
        alloti_host_relocate(&device->mover, dst, src, size);
        return;
    }
    host_mover copier = {.way = HOST_WAY_COPY, .uffd = -1, .page = device->mover.page};
    alloti_host_relocate(&copier, dst, src, size);
}

/** Open or close addresses of a guarded device; others are always open. */
static allot_status protect(const host_device *device, uint64_t address, uint64_t size, bool open)
{
    if (!device->is_guarded || size == 0 || alloti_host_pages_protect(address, size, open)) {
        return ALLOT_STATUS_OK;
    }
    return alloti_fail(ALLOT_STATUS_HOST_MEMORY, "host: mprotect of %s: %s", alloti_size(size).text,
                       strerror(errno));
}

/** Close what is of no use any more. Where the kernel has no mapping left for that, the addresses
 * stay open, which harms nobody: there is nothing in them. */
static void close_range(const host_device *device, uint64_t address, uint64_t size)
{
    (void)protect(device, address, size, false);
}

/** Note which memory lies at a range of a region; NULL: none. */
static void set_owner(const host_device *device, const host_region *region, uint64_t address,
                      uint64_t size, host_memory *owner)
{
    const uint64_t begin = (address - region->begin) / device->granule;
    for (uint64_t i = 0; i < size / device->granule; i++) {
        region->owners[begin + i] = owner;
    }
}

static host_memory *find_memory(const host_device *device, uint64_t handle, uint64_t size)
{
    host_memory *const memory = alloti_slots_get(&device->memories, HOST_KIND_MEMORY, handle);
    return memory != NULL && memory->size == size ? memory : NULL;
}

/** Reserved addresses that have all of a range; NULL. */
static host_region *find_reserved(const host_device *device, uint64_t address, uint64_t size)
{
    host_region *const region = alloti_host_region_find(device, address, size);
    return region != NULL && region->owners != NULL ? region : NULL;
}

allot_status alloti_host_reserve(void *self, uint64_t size, uint64_t *address)
{
    host_device *const device = self;
    const host_mapping mapping = {.size = size,
                                  .align = device->granule,
                                  .is_huge = device->is_huge && device->granule >= HOST_HUGE_PAGE,
                                  .is_reserved = true,
                                  .is_closed = device->is_guarded};
    pthread_mutex_lock(&device->lock);
    const allot_status status = alloti_host_region_add(device, &mapping, size, address);
    pthread_mutex_unlock(&device->lock);
    return status;
}

/** Put a memory that was left where it was aside. */
static allot_status make_way(host_device *device, host_memory *memory)
{
    const uint64_t address = memory->address;
    host_region *const region = alloti_host_region_find(device, memory->address, memory->size);
    allot_status status = protect(device, address, memory->size, true);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = alloti_host_park(device, memory);
    close_range(device, address, memory->size);
    if (status == ALLOT_STATUS_OK) {
        set_owner(device, region, address, memory->size, NULL);
        region->left_count--;
    }
    return status;
}

/** Let every memory but `but` that was left in a range make way. */
static allot_status clear_range(host_device *device, const host_region *region, uint64_t address,
                                uint64_t size, const host_memory *but)
{
    const uint64_t begin = (address - region->begin) / device->granule;
    for (uint64_t i = begin; i < begin + size / device->granule; i++) {
        host_memory *const memory = region->owners[i];
        const allot_status status =
            memory == NULL || memory == but ? ALLOT_STATUS_OK : make_way(device, memory);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

static allot_status unreserve_locked(host_device *device, uint64_t address, uint64_t size)
{
    host_region *const region = find_reserved(device, address, size);
    if (region == NULL || region->begin != address || region->size != size) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "host: no %" PRIu64 " bytes of addresses are reserved at %#" PRIx64,
                           size, address);
    }
    if (region->mapped_count != 0) {
        return alloti_fail(ALLOT_STATUS_BUSY,
                           "host: %" PRIu32 " memories are mapped in the %s at %#" PRIx64,
                           region->mapped_count, alloti_size(size).text, address);
    }
    const allot_status status = region->left_count == 0
                                    ? ALLOT_STATUS_OK
                                    : clear_range(device, region, address, size, NULL);
    return status == ALLOT_STATUS_OK ? alloti_host_region_remove(device, region) : status;
}

allot_status alloti_host_unreserve(void *self, uint64_t address, uint64_t size)
{
    host_device *const device = self;
    pthread_mutex_lock(&device->lock);
    const allot_status status = unreserve_locked(device, address, size);
    pthread_mutex_unlock(&device->lock);
    return status;
}

static allot_status create_locked(host_device *device, uint64_t size, uint64_t *handle)
{
    const allot_status status = alloti_host_claim(device, size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    host_memory *const memory = malloc(sizeof *memory);
    const uint64_t made =
        memory == NULL ? 0 : alloti_slots_add(&device->memories, HOST_KIND_MEMORY, memory);
    if (made == 0) {
        free(memory);
        device->size_used -= size;
        return alloti_fail_memory(sizeof *memory);
    }
    *memory = (host_memory){.place = HOST_PLACE_FRESH, .size = size};
    *handle = made;
    return ALLOT_STATUS_OK;
}

allot_status alloti_host_memory_create(void *self, uint64_t size, uint64_t *memory)
{
    host_device *const device = self;
    pthread_mutex_lock(&device->lock);
    const allot_status status = create_locked(device, size, memory);
    pthread_mutex_unlock(&device->lock);
    return status;
}

/** A memory that was left somewhere is there no more; what it held is the caller's to deal with. */
static void leave(host_device *device, const host_memory *memory)
{
    host_region *const region = alloti_host_region_find(device, memory->address, memory->size);
    set_owner(device, region, memory->address, memory->size, NULL);
    region->left_count--;
}

static allot_status release_locked(host_device *device, uint64_t handle, uint64_t size)
{
    host_memory *const memory = find_memory(device, handle, size);
    if (memory == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "host: no memory %#" PRIx64 " of %" PRIu64 " bytes", handle, size);
    }
    if (memory->place == HOST_PLACE_MAPPED) {
        return alloti_fail(ALLOT_STATUS_BUSY, "host: the memory is mapped at %#" PRIx64,
                           memory->address);
    }
    if (memory->place == HOST_PLACE_LEFT) {
        alloti_host_pages_discard(memory->address, size);
        leave(device, memory);
    } else if (memory->place == HOST_PLACE_PARKED) {
        alloti_host_parking_drop(device, memory);
    }
    alloti_slots_remove(&device->memories, handle);
    free(memory);
    device->size_used -= size;
    return ALLOT_STATUS_OK;
}

allot_status alloti_host_memory_release(void *self, uint64_t memory, uint64_t size)
{
    host_device *const device = self;
    pthread_mutex_lock(&device->lock);
    const allot_status status = release_locked(device, memory, size);
    pthread_mutex_unlock(&device->lock);
    return status;
}

/** Close the part of a place that a memory has moved out of, but for what it has moved to. */
static void close_outside(const host_device *device, uint64_t old, uint64_t kept, uint64_t size)
{
    if (old + size <= kept || kept + size <= old) {
        close_range(device, old, size);
    } else if (old < kept) {
        close_range(device, old, kept - old);
    } else {
        close_range(device, kept + size, old - kept);
    }
}

/** Bring a memory from where it was left to an address; the two may overlap. Pieces that do not
 * overlap are moved in the order in which none is overwritten. */
static void slide(host_device *device, const host_memory *memory, uint64_t address,
                  uint32_t *cut_count)
{
    const uint64_t old = memory->address;
    const uint64_t distance = old > address ? old - address : address - old;
    const uint64_t size = memory->size;
    if (distance >= size) {
        alloti_host_transfer(device, address, old, size, cut_count);
        return;
    }
    for (uint64_t done = 0; done < size;) {
        const uint64_t piece = size - done < distance ? size - done : distance;
        const uint64_t at = old > address ? done : size - done - piece;
        alloti_host_transfer(device, address + at, old + at, piece, cut_count);
        done += piece;
    }
}

/** Bring the bytes of a memory to an open and empty address. */
static allot_status bring(host_device *device, host_memory *memory, uint64_t address,
                          uint32_t *cut_count)
{
    const uint64_t old = memory->address;
    switch (memory->place) {
    case HOST_PLACE_FRESH:
        /* What was written to unmapped addresses must not come up in somebody's new memory. */
        alloti_host_pages_discard(address, memory->size);
        return ALLOT_STATUS_OK;
    case HOST_PLACE_PARKED:
        alloti_host_unpark(device, memory, address, cut_count);
        return ALLOT_STATUS_OK;
    case HOST_PLACE_LEFT:
    case HOST_PLACE_MAPPED:
        break;
    }
    const allot_status status = protect(device, old, memory->size, true);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    leave(device, memory);
    if (old != address) {
        slide(device, memory, address, cut_count);
        close_outside(device, old, address, memory->size);
    }
    return ALLOT_STATUS_OK;
}

/** Whether any memory is mapped in a range of a region. */
static bool has_mapped(const host_device *device, const host_region *region, uint64_t address,
                       uint64_t size)
{
    const uint64_t begin = (address - region->begin) / device->granule;
    for (uint64_t i = begin; i < begin + size / device->granule; i++) {
        if (region->owners[i] != NULL && region->owners[i]->place == HOST_PLACE_MAPPED) {
            return true;
        }
    }
    return false;
}

static allot_status check_map(const host_device *device, const host_region *region,
                              const host_memory *memory, uint64_t address, uint64_t size)
{
    if (region == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "host: %s at %#" PRIx64 " are not reserved",
                           alloti_size(size).text, address);
    }
    if (memory == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "host: no memory of %" PRIu64 " bytes to map",
                           size);
    }
    if (memory->place == HOST_PLACE_MAPPED) {
        return alloti_fail(ALLOT_STATUS_BUSY, "host: the memory is mapped at %#" PRIx64,
                           memory->address);
    }
    if (has_mapped(device, region, address, size)) {
        return alloti_fail(ALLOT_STATUS_BUSY,
                           "host: something is mapped in the %s at %#" PRIx64 " already",
                           alloti_size(size).text, address);
    }
    return ALLOT_STATUS_OK;
}

static allot_status map_locked(host_device *device, uint64_t address, uint64_t handle,
                               uint64_t size)
{
    host_region *const region = find_reserved(device, address, size);
    host_memory *const memory = find_memory(device, handle, size);
    allot_status status = check_map(device, region, memory, address, size);
    if (status == ALLOT_STATUS_OK) {
        status = clear_range(device, region, address, size, memory);
    }
    if (status == ALLOT_STATUS_OK) {
        status = protect(device, address, size, true);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = bring(device, memory, address, &region->cut_count);
    if (status != ALLOT_STATUS_OK) {
        close_range(device, address, size);
        return status;
    }
    memory->place = HOST_PLACE_MAPPED;
    memory->address = address;
    set_owner(device, region, address, size, memory);
    region->mapped_count++;
    return ALLOT_STATUS_OK;
}

allot_status alloti_host_map(void *self, uint64_t address, uint64_t memory, uint64_t size)
{
    host_device *const device = self;
    pthread_mutex_lock(&device->lock);
    const allot_status status = map_locked(device, address, memory, size);
    pthread_mutex_unlock(&device->lock);
    return status;
}

static allot_status unmap_locked(host_device *device, uint64_t address, uint64_t size)
{
    host_region *const region = find_reserved(device, address, size);
    host_memory *const memory =
        region == NULL ? NULL : region->owners[(address - region->begin) / device->granule];
    if (memory == NULL || memory->place != HOST_PLACE_MAPPED || memory->address != address ||
        memory->size != size) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "host: no memory of %" PRIu64 " bytes is mapped at %#" PRIx64, size,
                           address);
    }
    const allot_status status = protect(device, address, size, false);
    if (status == ALLOT_STATUS_OK) {
        memory->place = HOST_PLACE_LEFT;
        region->mapped_count--;
        region->left_count++;
    }
    return status;
}

allot_status alloti_host_unmap(void *self, uint64_t address, uint64_t size)
{
    host_device *const device = self;
    pthread_mutex_lock(&device->lock);
    const allot_status status = unmap_locked(device, address, size);
    pthread_mutex_unlock(&device->lock);
    return status;
}
