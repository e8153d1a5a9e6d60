/* SPDX-License-Identifier: MIT */
/* CUDA: plain memory, and memory in the order of a stream from the driver's default pool. */
#include <inttypes.h>

#include "device/cuda.h"

static allot_status hold_allocation(cuda_device *device, uint64_t address, uint64_t size)
{
    const device_area area = {.address = address, .size = size};
    return alloti_cuda_hold(device, &device->allocations, &area);
}

static allot_status take_allocation(cuda_device *device, uint64_t address, uint64_t size,
                                    uint32_t *place)
{
    *place = alloti_cuda_lift(device, &device->allocations, address, size);
    return *place != ALLOT_NONE ? ALLOT_STATUS_OK
                                : alloti_fail(ALLOT_STATUS_INVALID,
                                              "%s: no allocation of %" PRIu64 " bytes at %#" PRIx64,
                                              device->info.name, size, address);
}

allot_status alloti_cuda_alloc(void *self, uint64_t size, uint64_t *address)
{
    cuda_device *const device = self;
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(scope, device->driver->cuMemAlloc(address, (size_t)size));
    allot_status status = ALLOT_STATUS_OK;
    if (error == CUDA_SUCCESS) {
        status = hold_allocation(device, *address, size);
    }
    if (status != ALLOT_STATUS_OK) {
        (void)device->driver->cuMemFree(*address);
    }
    const allot_status answer = alloti_cuda_leave(&scope, error, "cuMemAlloc");
    return status != ALLOT_STATUS_OK ? status : answer;
}

allot_status alloti_cuda_free(void *self, uint64_t address, uint64_t size)
{
    cuda_device *const device = self;
    uint32_t place = 0;
    const allot_status status = take_allocation(device, address, size, &place);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(scope, device->driver->cuMemFree(address));
    const allot_status answer = alloti_cuda_leave(&scope, error, "cuMemFree");
    return alloti_cuda_end(device, &device->allocations, place, answer);
}

allot_status alloti_cuda_alloc_async(void *self, uint64_t stream, uint64_t size, uint64_t *address)
{
    cuda_device *const device = self;
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(
        scope, device->driver->cuMemAllocAsync(address, (size_t)size, cuda_handle(stream)));
    allot_status status = ALLOT_STATUS_OK;
    if (error == CUDA_SUCCESS) {
        status = hold_allocation(device, *address, size);
    }
    if (status != ALLOT_STATUS_OK) {
        (void)device->driver->cuMemFreeAsync(*address, cuda_handle(stream));
    }
    const allot_status answer = alloti_cuda_leave(&scope, error, "cuMemAllocAsync");
    return status != ALLOT_STATUS_OK ? status : answer;
}

allot_status alloti_cuda_free_async(void *self, uint64_t stream, uint64_t address, uint64_t size)
{
    cuda_device *const device = self;
    uint32_t place = 0;
    const allot_status status = take_allocation(device, address, size, &place);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error =
        CUDA_WITHIN(scope, device->driver->cuMemFreeAsync(address, cuda_handle(stream)));
    const allot_status answer = alloti_cuda_leave(&scope, error, "cuMemFreeAsync");
    return alloti_cuda_end(device, &device->allocations, place, answer);
}
