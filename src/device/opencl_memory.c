/* SPDX-License-Identifier: MIT */
/*
 * OpenCL: memory is coarse-grain shared virtual memory, whose addresses are real and may point into
 * an allocation. Drivers promise more than there is, so what is handed out is counted here.
 */
#include <inttypes.h>

#include "core/size_text.h"
#include "device/opencl.h"

allot_status alloti_opencl_memory_info(void *self, uint64_t *size_free, uint64_t *size_total)
{
    opencl_device *const device = self;
    pthread_mutex_lock(&device->mutex);
    *size_total = device->info.memory_total;
    *size_free = device->info.memory_total - device->memory_used;
    pthread_mutex_unlock(&device->mutex);
    return ALLOT_STATUS_OK;
}

/** Count `size` bytes as taken, before they are. */
static allot_status take(opencl_device *device, uint64_t size)
{
    const uint64_t total = device->info.memory_total;
    pthread_mutex_lock(&device->mutex);
    const uint64_t size_free = total - device->memory_used;
    const bool fits = size <= size_free;
    device->memory_used += fits ? size : 0;
    pthread_mutex_unlock(&device->mutex);
    return fits ? ALLOT_STATUS_OK
                : alloti_fail(ALLOT_STATUS_DEVICE_MEMORY, "%s: asked for %s, free %s of %s",
                              device->info.name, alloti_size(size).text,
                              alloti_size(size_free).text, alloti_size(total).text);
}

static void give(opencl_device *device, uint64_t size)
{
    pthread_mutex_lock(&device->mutex);
    device->memory_used -= size;
    pthread_mutex_unlock(&device->mutex);
}

/** Get it of the driver and enter it. */
static allot_status alloc(opencl_device *device, uint64_t size, uint64_t *address)
{
    const opencl_driver *const driver = device->driver;
    enum { DEFAULT_ALIGN = 0 };
    void *const memory =
        driver->clSVMAlloc(device->context, OPENCL_READ_WRITE, (size_t)size, DEFAULT_ALIGN);
    if (memory == NULL) {
        return alloti_fail(ALLOT_STATUS_DEVICE_MEMORY,
                           "%s: clSVMAlloc of %s failed; one allocation has at most %s",
                           device->info.name, alloti_size(size).text,
                           alloti_size(device->alloc_max).text);
    }
    const device_area area = {.address = (uintptr_t)memory, .size = size};
    pthread_mutex_lock(&device->mutex);
    const allot_status status = alloti_areas_add(&device->allocations, &area);
    pthread_mutex_unlock(&device->mutex);
    if (status != ALLOT_STATUS_OK) {
        driver->clSVMFree(device->context, memory);
        return status;
    }
    *address = area.address;
    return ALLOT_STATUS_OK;
}

allot_status alloti_opencl_alloc(void *self, uint64_t size, uint64_t *address)
{
    opencl_device *const device = self;
    allot_status status = take(device, size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = alloc(device, size, address);
    if (status != ALLOT_STATUS_OK) {
        give(device, size);
    }
    return status;
}

allot_status alloti_opencl_free(void *self, uint64_t address, uint64_t size)
{
    opencl_device *const device = self;
    pthread_mutex_lock(&device->mutex);
    const device_area *const area = alloti_areas_at(&device->allocations, address);
    const bool is_found = area != NULL && area->size == size;
    if (is_found) {
        alloti_areas_remove(&device->allocations, area);
    }
    pthread_mutex_unlock(&device->mutex);
    if (!is_found) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "%s: no allocation of %" PRIu64 " bytes at %#" PRIx64, device->info.name,
                           size, address);
    }
    device->driver->clSVMFree(device->context, (void *)(uintptr_t)address);
    give(device, size);
    return ALLOT_STATUS_OK;
}

void alloti_opencl_memory_fini(opencl_device *device, bool is_forked)
{
    device_area area;
    while (!is_forked && alloti_areas_pop(&device->allocations, &area)) {
        device->driver->clSVMFree(device->context, (void *)(uintptr_t)area.address);
    }
    alloti_areas_fini(&device->allocations);
}
