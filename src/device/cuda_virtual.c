/* SPDX-License-Identifier: MIT */
/*
 * CUDA: virtual memory. The driver lets one memory be mapped at several addresses and be released
 * while it is mapped; devices of allot do not, so the areas tell what is where. A claim is
 * entered before the driver is called and taken back if it fails: two threads cannot map the same
 * thing.
 */
#include <inttypes.h>

#include "device/cuda.h"

enum { PINNED = 1, ON_DEVICE = 1, READ_AND_WRITE = 3 };

/** Kinds of a memory's area. */
enum { FREE, MAPPED };

static cuda_memory_properties properties_of(const cuda_device *device)
{
    return (cuda_memory_properties){.type = PINNED,
                                    .location = {.type = ON_DEVICE, .id = device->device}};
}

allot_status alloti_cuda_granule(cuda_device *device, uint64_t *out)
{
    enum { MINIMUM = 0 };
    const cuda_memory_properties properties = properties_of(device);
    size_t granule = 0;
    const allot_status status = alloti_cuda_answer(
        device->driver,
        device->driver->cuMemGetAllocationGranularity(&granule, &properties, MINIMUM),
        "cuMemGetAllocationGranularity");
    if (status == ALLOT_STATUS_OK) {
        *out = granule;
    }
    return status;
}

/** What runs out in these calls is room of the process, not of the GPU. */
static allot_status as_host_memory(allot_status status)
{
    return status == ALLOT_STATUS_DEVICE_MEMORY ? ALLOT_STATUS_HOST_MEMORY : status;
}

allot_status alloti_cuda_reserve(void *self, uint64_t size, uint64_t *address)
{
    cuda_device *const device = self;
    const cuda_driver *const driver = device->driver;
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(
        scope, driver->cuMemAddressReserve(address, (size_t)size, (size_t)device->granule, 0, 0));
    allot_status status = ALLOT_STATUS_OK;
    if (error == CUDA_SUCCESS) {
        status = alloti_cuda_hold(device, &device->reservations,
                                  &(device_area){.address = *address, .size = size});
    }
    if (status != ALLOT_STATUS_OK) {
        (void)driver->cuMemAddressFree(*address, (size_t)size);
    }
    const allot_status answer =
        as_host_memory(alloti_cuda_leave(&scope, error, "cuMemAddressReserve"));
    return status != ALLOT_STATUS_OK ? status : answer;
}

/** Lift a reservation, its place in *place; the mutex is held. */
static allot_status lift_reservation(cuda_device *device, uint64_t address, uint64_t size,
                                     uint32_t *place)
{
    const device_area *const area = alloti_areas_at(&device->reservations, address);
    if (area == NULL || area->size != size) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "%s: no %" PRIu64 " bytes were reserved at %#" PRIx64, device->info.name,
                           size, address);
    }
    if (alloti_areas_overlap(&device->mappings, address, size)) {
        return alloti_fail(ALLOT_STATUS_BUSY,
                           "%s: memory is mapped in the addresses from %#" PRIx64,
                           device->info.name, address);
    }
    *place = alloti_areas_lift(&device->reservations, area);
    return ALLOT_STATUS_OK;
}

allot_status alloti_cuda_unreserve(void *self, uint64_t address, uint64_t size)
{
    cuda_device *const device = self;
    uint32_t place = 0;
    pthread_mutex_lock(&device->mutex);
    allot_status status = lift_reservation(device, address, size, &place);
    pthread_mutex_unlock(&device->mutex);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(scope, device->driver->cuMemAddressFree(address, (size_t)size));
    status = alloti_cuda_leave(&scope, error, "cuMemAddressFree");
    return alloti_cuda_end(device, &device->reservations, place, status);
}

allot_status alloti_cuda_memory_create(void *self, uint64_t size, uint64_t *memory)
{
    cuda_device *const device = self;
    const cuda_driver *const driver = device->driver;
    const cuda_memory_properties properties = properties_of(device);
    const cuda_scope scope = alloti_cuda_enter(device);
    uint64_t handle = 0;
    const int error =
        CUDA_WITHIN(scope, driver->cuMemCreate(&handle, (size_t)size, &properties, 0));
    allot_status status = ALLOT_STATUS_OK;
    if (error == CUDA_SUCCESS) {
        status = alloti_cuda_hold(
            device, &device->memories,
            &(device_area){.address = handle, .size = 1, .value = size, .kind = FREE});
    }
    if (status != ALLOT_STATUS_OK) {
        (void)driver->cuMemRelease(handle);
    }
    const allot_status answer = alloti_cuda_leave(&scope, error, "cuMemCreate");
    status = status != ALLOT_STATUS_OK ? status : answer;
    if (status == ALLOT_STATUS_OK) {
        *memory = handle;
    }
    return status;
}

/** A memory; the mutex is held. NULL if there is none. */
static device_area *memory_at(cuda_device *device, uint64_t memory, uint64_t size)
{
    const device_area *const area = alloti_areas_at(&device->memories, memory);
    return area == NULL || area->value != size
               ? NULL
               : &device->memories.items[area - device->memories.items];
}

static allot_status refuse_memory(const cuda_device *device, uint64_t memory, uint64_t size)
{
    return alloti_fail(ALLOT_STATUS_INVALID, "%s: no memory %#" PRIx64 " of %" PRIu64 " bytes",
                       device->info.name, memory, size);
}

static allot_status refuse_mapped(const cuda_device *device, uint64_t memory)
{
    return alloti_fail(ALLOT_STATUS_BUSY, "%s: memory %#" PRIx64 " is mapped", device->info.name,
                       memory);
}

allot_status alloti_cuda_memory_release(void *self, uint64_t memory, uint64_t size)
{
    cuda_device *const device = self;
    pthread_mutex_lock(&device->mutex);
    const device_area *const area = memory_at(device, memory, size);
    const bool is_mapped = area != NULL && area->kind == MAPPED;
    const uint32_t place =
        area == NULL || is_mapped ? ALLOT_NONE : alloti_areas_lift(&device->memories, area);
    pthread_mutex_unlock(&device->mutex);
    if (place == ALLOT_NONE) {
        return is_mapped ? refuse_mapped(device, memory) : refuse_memory(device, memory, size);
    }
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(scope, device->driver->cuMemRelease(memory));
    const allot_status status = alloti_cuda_leave(&scope, error, "cuMemRelease");
    return alloti_cuda_end(device, &device->memories, place, status);
}

/** Enter a mapping before it is made; the mutex is held. */
static allot_status claim(cuda_device *device, uint64_t address, uint64_t memory, uint64_t size)
{
    device_area *const area = memory_at(device, memory, size);
    if (area == NULL) {
        return refuse_memory(device, memory, size);
    }
    if (area->kind == MAPPED) {
        return refuse_mapped(device, memory);
    }
    const device_area *const reserved = alloti_areas_find(&device->reservations, address);
    if (reserved == NULL || size > reserved->size - (address - reserved->address)) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "%s: %" PRIu64 " bytes at %#" PRIx64 " do not lie in one reservation",
                           device->info.name, size, address);
    }
    if (alloti_areas_overlap(&device->mappings, address, size)) {
        return alloti_fail(ALLOT_STATUS_BUSY,
                           "%s: memory is mapped already in %" PRIu64 " bytes at %#" PRIx64,
                           device->info.name, size, address);
    }
    const device_area mapping = {.address = address, .size = size, .value = memory};
    const allot_status status = alloti_areas_add(&device->mappings, &mapping);
    if (status == ALLOT_STATUS_OK) {
        area->kind = MAPPED;
    }
    return status;
}

/** Take a mapping out again. */
static void unclaim(cuda_device *device, uint64_t address, uint64_t memory, uint64_t size)
{
    pthread_mutex_lock(&device->mutex);
    alloti_areas_remove(&device->mappings, alloti_areas_at(&device->mappings, address));
    memory_at(device, memory, size)->kind = FREE;
    pthread_mutex_unlock(&device->mutex);
}

/** Map and let the device in; what was mapped is unmapped if that fails. */
static allot_status map(cuda_device *device, uint64_t address, uint64_t memory, uint64_t size)
{
    const cuda_driver *const driver = device->driver;
    const cuda_access access = {.location = {.type = ON_DEVICE, .id = device->device},
                                .flags = READ_AND_WRITE};
    const cuda_scope scope = alloti_cuda_enter(device);
    const char *call = "cuMemMap";
    int error = CUDA_WITHIN(scope, driver->cuMemMap(address, (size_t)size, 0, memory, 0));
    if (error == CUDA_SUCCESS) {
        call = "cuMemSetAccess";
        error = driver->cuMemSetAccess(address, (size_t)size, &access, 1);
        if (error != CUDA_SUCCESS) {
            (void)driver->cuMemUnmap(address, (size_t)size);
        }
    }
    return as_host_memory(alloti_cuda_leave(&scope, error, call));
}

allot_status alloti_cuda_map(void *self, uint64_t address, uint64_t memory, uint64_t size)
{
    cuda_device *const device = self;
    pthread_mutex_lock(&device->mutex);
    allot_status status = claim(device, address, memory, size);
    pthread_mutex_unlock(&device->mutex);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = map(device, address, memory, size);
    if (status != ALLOT_STATUS_OK) {
        unclaim(device, address, memory, size);
    }
    return status;
}

/** Lift a mapping, its place in *place: of threads that unmap the same, one does. */
static allot_status lift_mapping(cuda_device *device, uint64_t address, uint64_t size,
                                 uint32_t *place)
{
    *place = alloti_cuda_lift(device, &device->mappings, address, size);
    return *place != ALLOT_NONE
               ? ALLOT_STATUS_OK
               : alloti_fail(ALLOT_STATUS_INVALID,
                             "%s: no memory of %" PRIu64 " bytes is mapped at %#" PRIx64,
                             device->info.name, size, address);
}

allot_status alloti_cuda_unmap(void *self, uint64_t address, uint64_t size)
{
    cuda_device *const device = self;
    uint32_t place = 0;
    allot_status status = lift_mapping(device, address, size, &place);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(scope, device->driver->cuMemUnmap(address, (size_t)size));
    status = alloti_cuda_leave(&scope, error, "cuMemUnmap");
    pthread_mutex_lock(&device->mutex);
    if (status == ALLOT_STATUS_OK) {
        memory_at(device, device->mappings.items[place].value, size)->kind = FREE;
        alloti_areas_give_up(&device->mappings, place);
    } else {
        alloti_areas_put_back(&device->mappings, place);
    }
    pthread_mutex_unlock(&device->mutex);
    return status;
}
