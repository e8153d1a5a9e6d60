/* SPDX-License-Identifier: MIT */
/* Mappings by address, plain memory, and the quota that all memory counts against. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/size_math.h"
#include "core/size_text.h"
#include "device/host.h"
#include "device/host_pages.h"

/** Kernel mappings that mremap() may add, of the 65,530 that Linux lets a process have. */
enum { CUTS_MAX = 8192, CUTS_A_MOVE = 2 };

allot_status alloti_host_claim(host_device *device, uint64_t size)
{
    const uint64_t size_free = device->quota - device->size_used;
    if (size > size_free) {
        return alloti_fail(ALLOT_STATUS_DEVICE_MEMORY,
                           "host: asked for %s (%" PRIu64 " bytes), %s (%" PRIu64
                           ") of %s are free; memory:SIZE sets how much the device has",
                           alloti_size(size).text, size, alloti_size(size_free).text, size_free,
                           alloti_size(device->quota).text);
    }
    device->size_used += size;
    return ALLOT_STATUS_OK;
}

/** Enter a mapped region. */
static allot_status enter(host_device *device, const host_region *values)
{
    host_region *const region = malloc(sizeof *region);
    if (region == NULL) {
        return alloti_fail_memory(sizeof *region);
    }
    *region = *values;
    const device_area area = {
        .address = region->begin, .size = region->span, .value = (uint64_t)(uintptr_t)region};
    const allot_status status = alloti_areas_add(&device->regions, &area);
    if (status != ALLOT_STATUS_OK) {
        free(region);
    }
    return status;
}

/** What lies in reserved addresses: nothing yet. */
static allot_status make_owners(uint64_t granules, host_memory ***out)
{
    const size_t item_size = sizeof(host_memory *);
    *out = alloti_calloc_array(granules, item_size);
    return *out != NULL ? ALLOT_STATUS_OK : alloti_fail_memory(granules * item_size);
}

allot_status alloti_host_region_add(host_device *device, const host_mapping *mapping, uint64_t size,
                                    uint64_t *address)
{
    host_region region = {.size = size, .span = mapping->size};
    region.begin = alloti_host_pages_map(mapping);
    if (region.begin == 0) {
        return alloti_fail(
            mapping->is_reserved ? ALLOT_STATUS_HOST_MEMORY : ALLOT_STATUS_DEVICE_MEMORY,
            "host: mmap of %s: %s", alloti_size(mapping->size).text, strerror(errno));
    }
    allot_status status = ALLOT_STATUS_OK;
    if (mapping->is_reserved) {
        status = make_owners(size / device->granule, &region.owners);
    }
    if (status == ALLOT_STATUS_OK) {
        status = enter(device, &region);
    }
    if (status != ALLOT_STATUS_OK) {
        free(region.owners);
        (void)alloti_host_pages_unmap(region.begin, mapping->size);
        return status;
    }
    alloti_host_mover_adopt(&device->mover, region.begin, mapping->size);
    *address = region.begin;
    return ALLOT_STATUS_OK;
}

allot_status alloti_host_region_remove(host_device *device, host_region *region)
{
    if (!alloti_host_pages_unmap(region->begin, region->span)) {
        return alloti_fail(ALLOT_STATUS_BACKEND, "host: munmap of %s: %s",
                           alloti_size(region->span).text, strerror(errno));
    }
    device->cut_count -= region->cut_count;
    alloti_areas_remove(&device->regions, alloti_areas_at(&device->regions, region->begin));
    free(region->owners);
    free(region);
    return ALLOT_STATUS_OK;
}

static host_region *region_of_area(const device_area *area)
{
    return alloti_host_pointer(area->value);
}

host_region *alloti_host_region_find(const host_device *device, uint64_t address, uint64_t size)
{
    const device_area *const area = alloti_areas_find(&device->regions, address);
    return area != NULL && size <= area->size - (address - area->address) ? region_of_area(area)
                                                                          : NULL;
}

bool alloti_host_cut(host_device *device, uint32_t *cut_count)
{
    if (device->mover.way != HOST_WAY_MREMAP) {
        return true;
    }
    if (device->cut_count + CUTS_A_MOVE > CUTS_MAX) {
        return false;
    }
    device->cut_count += CUTS_A_MOVE;
    *cut_count += CUTS_A_MOVE;
    return true;
}

void alloti_host_regions_fini(host_device *device)
{
    const device_areas *const areas = &device->regions;
    for (uint32_t item = alloti_tree_first(&areas->tree, areas->nodes); item != ALLOT_NONE;
         item = alloti_tree_next(areas->nodes, item)) {
        host_region *const region = region_of_area(&areas->items[item]);
        (void)alloti_host_pages_unmap(region->begin, region->span);
        free(region->owners);
        free(region);
    }
    alloti_areas_fini(&device->regions);
}

allot_status alloti_host_alloc(void *self, uint64_t size, uint64_t *address)
{
    host_device *const device = self;
    host_mapping mapping = {.align = device->is_huge ? HOST_HUGE_PAGE : device->machine->page,
                            .is_huge = device->is_huge};
    if (!alloti_align_up(size, device->machine->page, &mapping.size)) {
        mapping.size = UINT64_MAX; /* more than any quota */
    }
    pthread_mutex_lock(&device->lock);
    allot_status status = alloti_host_claim(device, mapping.size);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_host_region_add(device, &mapping, size, address);
        if (status != ALLOT_STATUS_OK) {
            device->size_used -= mapping.size;
        }
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

static allot_status free_locked(host_device *device, uint64_t address, uint64_t size)
{
    host_region *const region = alloti_host_region_find(device, address, size);
    if (region == NULL || region->owners != NULL || region->begin != address ||
        region->size != size) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "host: no allocation of %" PRIu64 " bytes begins at %#" PRIx64, size,
                           address);
    }
    const uint64_t span = region->span;
    const allot_status status = alloti_host_region_remove(device, region);
    if (status == ALLOT_STATUS_OK) {
        device->size_used -= span;
    }
    return status;
}

allot_status alloti_host_free(void *self, uint64_t address, uint64_t size)
{
    host_device *const device = self;
    pthread_mutex_lock(&device->lock);
    const allot_status status = free_locked(device, address, size);
    pthread_mutex_unlock(&device->lock);
    return status;
}

allot_status alloti_host_memory_info(void *self, uint64_t *size_free, uint64_t *size_total)
{
    host_device *const device = self;
    pthread_mutex_lock(&device->lock);
    *size_free = device->quota - device->size_used;
    pthread_mutex_unlock(&device->lock);
    *size_total = device->quota;
    return ALLOT_STATUS_OK;
}
