/* SPDX-License-Identifier: MIT */
/*
 * The CUDA backend: GPUs of NVIDIA through the driver, which is loaded when it is first asked for.
 *
 * The primary context is used, so memory, streams and events are those of every CUDA program in the
 * process. A thread's current context is looked at in each call and changed for its duration where
 * it is another one.
 */
#include "device/cuda.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/size_math.h"

/** What the CUDA programming guide promises of every address that an allocation returns. */
enum { CUDA_ALIGN = 256 };

cuda_scope alloti_cuda_enter(const cuda_device *device)
{
    const cuda_driver *const driver = device->driver;
    void *current = NULL;
    cuda_scope scope = {.device = device, .call = "cuCtxGetCurrent"};
    scope.error = driver->cuCtxGetCurrent(&current);
    if (scope.error == CUDA_SUCCESS && current != device->context) {
        scope.call = "cuCtxPushCurrent";
        scope.error = driver->cuCtxPushCurrent(device->context);
        scope.is_pushed = scope.error == CUDA_SUCCESS;
    }
    return scope;
}

allot_status alloti_cuda_leave(const cuda_scope *scope, int error, const char *call)
{
    const cuda_driver *const driver = scope->device->driver;
    if (scope->error != CUDA_SUCCESS) {
        return alloti_cuda_answer(driver, scope->error, scope->call);
    }
    if (scope->is_pushed) {
        void *popped = NULL;
        const int pop_error = driver->cuCtxPopCurrent(&popped);
        if (error == CUDA_SUCCESS && pop_error != CUDA_SUCCESS) {
            return alloti_cuda_answer(driver, pop_error, "cuCtxPopCurrent");
        }
    }
    return alloti_cuda_answer(driver, error, call);
}

allot_status alloti_cuda_hold(cuda_device *device, device_areas *areas, const device_area *area)
{
    pthread_mutex_lock(&device->mutex);
    const allot_status status = alloti_areas_add(areas, area);
    pthread_mutex_unlock(&device->mutex);
    return status;
}

uint32_t alloti_cuda_lift(cuda_device *device, device_areas *areas, uint64_t address, uint64_t size)
{
    pthread_mutex_lock(&device->mutex);
    const device_area *const area = alloti_areas_at(areas, address);
    const uint32_t place =
        area == NULL || area->size != size ? ALLOT_NONE : alloti_areas_lift(areas, area);
    pthread_mutex_unlock(&device->mutex);
    return place;
}

allot_status alloti_cuda_end(cuda_device *device, device_areas *areas, uint32_t place,
                             allot_status status)
{
    pthread_mutex_lock(&device->mutex);
    if (status == ALLOT_STATUS_OK) {
        alloti_areas_give_up(areas, place);
    } else {
        alloti_areas_put_back(areas, place);
    }
    pthread_mutex_unlock(&device->mutex);
    return status;
}

static allot_status memory_info(void *self, uint64_t *size_free, uint64_t *size_total)
{
    cuda_device *const device = self;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(scope, device->driver->cuMemGetInfo(&free_bytes, &total_bytes));
    const allot_status status = alloti_cuda_leave(&scope, error, "cuMemGetInfo");
    if (status == ALLOT_STATUS_OK) {
        *size_free = free_bytes;
        *size_total = total_bytes;
    }
    return status;
}

static void get_info(void *self, allot_device_info *out)
{
    const cuda_device *const device = self;
    *out = device->info;
}

/** Give back what was not freed, once no work uses it. The driver's failures change nothing. */
static void give_back(cuda_device *device)
{
    const cuda_driver *const driver = device->driver;
    device_area area;
    const cuda_scope scope = alloti_cuda_enter(device);
    if (scope.error != CUDA_SUCCESS) {
        return;
    }
    if (device->allocations.tree.count != 0 || device->mappings.tree.count != 0) {
        (void)driver->cuCtxSynchronize();
    }
    while (alloti_areas_pop(&device->allocations, &area)) {
        (void)driver->cuMemFree(area.address);
    }
    while (alloti_areas_pop(&device->mappings, &area)) {
        (void)driver->cuMemUnmap(area.address, (size_t)area.size);
    }
    while (alloti_areas_pop(&device->memories, &area)) {
        (void)driver->cuMemRelease(area.address);
    }
    while (alloti_areas_pop(&device->reservations, &area)) {
        (void)driver->cuMemAddressFree(area.address, (size_t)area.size);
    }
    (void)alloti_cuda_leave(&scope, CUDA_SUCCESS, "");
}

static void release(cuda_device *device, bool is_forked)
{
    alloti_areas_fini(&device->allocations);
    alloti_areas_fini(&device->reservations);
    alloti_areas_fini(&device->memories);
    alloti_areas_fini(&device->mappings);
    if (!is_forked) { /* where a thread that is gone may hold it */
        pthread_mutex_destroy(&device->mutex);
    }
    free(device);
}

static void destroy(void *self, bool is_forked)
{
    cuda_device *const device = self;
    if (!is_forked) {
        give_back(device);
        (void)device->driver->cuDevicePrimaryCtxRelease(device->device);
    }
    release(device, is_forked);
}

static const allot_device_ops OPS = {
    .struct_size = sizeof(allot_device_ops),
    .destroy = destroy,
    .get_info = get_info,
    .memory_info = memory_info,
    .alloc = alloti_cuda_alloc,
    .free = alloti_cuda_free,
    .stream_create = alloti_cuda_stream_create,
    .stream_destroy = alloti_cuda_stream_destroy,
    .stream_wait = alloti_cuda_stream_wait,
    .stream_synchronize = alloti_cuda_stream_synchronize,
    .event_create = alloti_cuda_event_create,
    .event_destroy = alloti_cuda_event_destroy,
    .event_record = alloti_cuda_event_record,
    .event_query = alloti_cuda_event_query,
    .event_synchronize = alloti_cuda_event_synchronize,
    .copy = alloti_cuda_copy,
    .fill = alloti_cuda_fill,
    .write = alloti_cuda_write,
    .read = alloti_cuda_read,
    .copy_batch = alloti_cuda_copy_batch,
    .alloc_async = alloti_cuda_alloc_async,
    .free_async = alloti_cuda_free_async,
    .reserve = alloti_cuda_reserve,
    .unreserve = alloti_cuda_unreserve,
    .memory_create = alloti_cuda_memory_create,
    .memory_release = alloti_cuda_memory_release,
    .map = alloti_cuda_map,
    .unmap = alloti_cuda_unmap,
};

/** An attribute of the GPU; 0 if the driver does not know it. */
static uint64_t attribute(const cuda_device *device, int number)
{
    int value = 0;
    const int error = device->driver->cuDeviceGetAttribute(&value, number, device->device);
    return error == CUDA_SUCCESS && value > 0 ? (uint64_t)value : 0;
}

/** Leave out what this driver and GPU cannot do. */
static allot_status choose_ops(cuda_device *device)
{
    const cuda_driver *const driver = device->driver;
    device->ops = OPS;
    if (driver->cuMemcpyBatchAsync == NULL && driver->cuMemcpyBatchAsync12 == NULL) {
        device->ops.copy_batch = NULL;
    }
    if (!driver->has_async || attribute(device, CUDA_HAS_MEMORY_POOLS) == 0) {
        device->ops.alloc_async = NULL;
        device->ops.free_async = NULL;
    }
    if (driver->has_virtual && attribute(device, CUDA_HAS_VIRTUAL_MEMORY) != 0) {
        return alloti_cuda_granule(device, &device->granule);
    }
    device->ops.reserve = NULL;
    device->ops.unreserve = NULL;
    device->ops.memory_create = NULL;
    device->ops.memory_release = NULL;
    device->ops.map = NULL;
    device->ops.unmap = NULL;
    return ALLOT_STATUS_OK;
}

/**
 * Half of what the memory can move, as a copy reads and writes: two transfers per clock on a bus of
 * so many bits.
 */
static uint64_t copy_rate(const cuda_device *device)
{
    enum { HZ_PER_KHZ = 1000, BITS_PER_BYTE = 8 };
    return attribute(device, CUDA_MEMORY_CLOCK_KHZ) * HZ_PER_KHZ *
           attribute(device, CUDA_MEMORY_BUS_BITS) / BITS_PER_BYTE;
}

static allot_status ask_info(cuda_device *device)
{
    const cuda_driver *const driver = device->driver;
    allot_device_info *const info = &device->info;
    size_t total = 0;
    allot_status status = alloti_cuda_answer(
        driver, driver->cuDeviceGetName(info->name, sizeof info->name, device->device),
        "cuDeviceGetName");
    if (status == ALLOT_STATUS_OK) {
        status = alloti_cuda_answer(driver, driver->cuDeviceTotalMem(&total, device->device),
                                    "cuDeviceTotalMem");
    }
    if (status == ALLOT_STATUS_OK) {
        status = choose_ops(device);
    }
    snprintf(info->backend, sizeof info->backend, "cuda");
    info->memory_total = total;
    info->align = CUDA_ALIGN;
    info->granule = device->granule;
    info->copy_bytes_per_s = copy_rate(device);
    info->has_bytes = true;
    return status;
}

static allot_status probe(allot_backend_probe_result *out)
{
    enum { MAJOR = 1000, MINOR = 10 };
    const cuda_driver *driver = NULL;
    const allot_status status = alloti_cuda_driver(&driver);
    if (status != ALLOT_STATUS_OK) {
        snprintf(out->reason, sizeof out->reason, "%s", allot_error_detail());
        return status;
    }
    out->device_count = (uint32_t)driver->device_count;
    snprintf(out->reason, sizeof out->reason, "driver for CUDA %d.%d, libcuda.so.1",
             driver->version / MAJOR, driver->version % MAJOR / MINOR);
    return ALLOT_STATUS_OK;
}

/** The GPU and its context; the context is retained on success. */
static allot_status find_device(cuda_device *device, uint32_t ordinal)
{
    const cuda_driver *const driver = device->driver;
    allot_status status = alloti_cuda_answer(
        driver, driver->cuDeviceGet(&device->device, (int)ordinal), "cuDeviceGet");
    if (status == ALLOT_STATUS_OK) {
        status = ask_info(device);
    }
    return status != ALLOT_STATUS_OK
               ? status
               : alloti_cuda_answer(
                     driver, driver->cuDevicePrimaryCtxRetain(&device->context, device->device),
                     "cuDevicePrimaryCtxRetain");
}

static allot_status open_device(const device_settings *settings, allot_device **out)
{
    const cuda_driver *driver = NULL;
    allot_status status = alloti_cuda_driver(&driver);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    cuda_device *const device = calloc(1, sizeof *device);
    if (device == NULL) {
        return alloti_fail_memory(sizeof *device);
    }
    device->driver = driver;
    pthread_mutex_init(&device->mutex, NULL);
    alloti_areas_init(&device->allocations);
    alloti_areas_init(&device->reservations);
    alloti_areas_init(&device->memories);
    alloti_areas_init(&device->mappings);
    status = find_device(device, settings->ordinal);
    if (status != ALLOT_STATUS_OK) {
        release(device, false);
        return status;
    }
    status = allot_device_create(&device->ops, device, out);
    if (status != ALLOT_STATUS_OK) {
        destroy(device, false);
    }
    return status;
}

const device_backend alloti_backend_cuda = {.probe = probe, .open = open_device};
