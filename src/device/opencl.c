/* SPDX-License-Identifier: MIT */
/*
 * The OpenCL backend: devices that have shared virtual memory, numbered through all platforms. They
 * have addresses of plain memory only: no virtual memory, no pool of their own.
 */
#include "device/opencl.h"

#include <stdio.h>
#include <stdlib.h>

/** Of clSVMAlloc by default: the largest type of a device with the full profile, long16. */
enum { OPENCL_ALIGN = 128 };

static allot_status copy_bytes(opencl_device *device, uint64_t stream, void *dst, const void *src,
                               uint64_t size)
{
    enum { NON_BLOCKING = 0 };
    void *queue = NULL;
    const allot_status status = alloti_opencl_find_queue(device, stream, &queue);
    return status != ALLOT_STATUS_OK
               ? status
               : alloti_opencl_answer(device->driver->clEnqueueSVMMemcpy(queue, NON_BLOCKING, dst,
                                                                         src, (size_t)size, 0, NULL,
                                                                         NULL),
                                      "clEnqueueSVMMemcpy");
}

static allot_status copy(void *self, uint64_t stream, uint64_t dst, uint64_t src, uint64_t size)
{
    return copy_bytes(self, stream, (void *)(uintptr_t)dst, (const void *)(uintptr_t)src, size);
}

static allot_status write_bytes(void *self, uint64_t stream, uint64_t dst, const void *src,
                                uint64_t size)
{
    return copy_bytes(self, stream, (void *)(uintptr_t)dst, src, size);
}

static allot_status read_bytes(void *self, uint64_t stream, void *dst, uint64_t src, uint64_t size)
{
    return copy_bytes(self, stream, dst, (const void *)(uintptr_t)src, size);
}

static allot_status fill(void *self, uint64_t stream, uint64_t dst, uint8_t value, uint64_t size)
{
    opencl_device *const device = self;
    void *queue = NULL;
    const allot_status status = alloti_opencl_find_queue(device, stream, &queue);
    return status != ALLOT_STATUS_OK
               ? status
               : alloti_opencl_answer(
                     device->driver->clEnqueueSVMMemFill(queue, (void *)(uintptr_t)dst, &value,
                                                         sizeof value, (size_t)size, 0, NULL, NULL),
                     "clEnqueueSVMMemFill");
}

static void get_info(void *self, allot_device_info *out)
{
    const opencl_device *const device = self;
    *out = device->info;
}

static void destroy(void *self, bool is_forked)
{
    opencl_device *const device = self;
    if (!is_forked && device->queue != NULL) {
        (void)device->driver->clFinish(device->queue);
    }
    alloti_opencl_streams_fini(device, is_forked);
    alloti_opencl_events_fini(device, is_forked);
    alloti_opencl_memory_fini(device, is_forked);
    if (!is_forked && device->queue != NULL) {
        (void)device->driver->clReleaseCommandQueue(device->queue);
    }
    if (!is_forked && device->context != NULL) {
        (void)device->driver->clReleaseContext(device->context);
    }
    if (!is_forked) { /* where a thread that is gone may hold it */
        pthread_mutex_destroy(&device->mutex);
    }
    free(device);
}

static const allot_device_ops OPS = {
    .struct_size = sizeof(allot_device_ops),
    .destroy = destroy,
    .get_info = get_info,
    .memory_info = alloti_opencl_memory_info,
    .alloc = alloti_opencl_alloc,
    .free = alloti_opencl_free,
    .stream_create = alloti_opencl_stream_create,
    .stream_destroy = alloti_opencl_stream_destroy,
    .stream_wait = alloti_opencl_stream_wait,
    .stream_synchronize = alloti_opencl_stream_synchronize,
    .event_create = alloti_opencl_event_create,
    .event_destroy = alloti_opencl_event_destroy,
    .event_record = alloti_opencl_event_record,
    .event_query = alloti_opencl_event_query,
    .event_synchronize = alloti_opencl_event_synchronize,
    .copy = copy,
    .fill = fill,
    .write = write_bytes,
    .read = read_bytes,
};

static allot_status ask(const opencl_device *device, uint32_t what, size_t size, void *out)
{
    return alloti_opencl_answer(
        device->driver->clGetDeviceInfo(device->device, what, size, out, NULL), "clGetDeviceInfo");
}

/** OpenCL gives a name whole or not at all; what is too long for us is cut. */
static allot_status ask_name(const opencl_device *device, char out[ALLOT_DEVICE_NAME_MAX])
{
    enum { NAME_MAX = 1024 };
    char name[NAME_MAX] = "";
    const allot_status status = ask(device, OPENCL_DEVICE_NAME, sizeof name - 1, name);
    if (status == ALLOT_STATUS_OK) {
        snprintf(out, ALLOT_DEVICE_NAME_MAX, "%s", name);
    }
    return status;
}

static allot_status ask_info(opencl_device *device, uint64_t limit)
{
    allot_device_info *const info = &device->info;
    uint64_t memory = 0;
    allot_status status = ask_name(device, info->name);
    if (status == ALLOT_STATUS_OK) {
        status = ask(device, OPENCL_DEVICE_MEMORY_SIZE, sizeof memory, &memory);
    }
    if (status == ALLOT_STATUS_OK) {
        status =
            ask(device, OPENCL_DEVICE_MAX_ALLOC_SIZE, sizeof device->alloc_max, &device->alloc_max);
    }
    snprintf(info->backend, sizeof info->backend, "opencl");
    info->memory_total = limit != 0 && limit < memory ? limit : memory;
    info->align = OPENCL_ALIGN;
    info->has_bytes = true;
    return status;
}

static allot_status start(opencl_device *device)
{
    const opencl_driver *const driver = device->driver;
    int error = 0;
    device->context = driver->clCreateContext(NULL, 1, &device->device, NULL, NULL, &error);
    if (device->context == NULL) {
        return alloti_opencl_answer(error, "clCreateContext");
    }
    device->queue = driver->clCreateCommandQueue(device->context, device->device, 0, &error);
    return device->queue == NULL ? alloti_opencl_answer(error, "clCreateCommandQueue")
                                 : ALLOT_STATUS_OK;
}

static allot_status probe(allot_backend_probe_result *out)
{
    const opencl_driver *driver = NULL;
    const allot_status status = alloti_opencl_driver(&driver);
    if (status != ALLOT_STATUS_OK) {
        snprintf(out->reason, sizeof out->reason, "%s", allot_error_detail());
        return status;
    }
    out->device_count = driver->device_count;
    snprintf(out->reason, sizeof out->reason,
             "%s; %u of %u devices with shared virtual memory, libOpenCL.so.1", driver->platform,
             driver->device_count, driver->device_count_all);
    return ALLOT_STATUS_OK;
}

static allot_status open_device(const device_settings *settings, allot_device **out)
{
    const opencl_driver *driver = NULL;
    allot_status status = alloti_opencl_driver(&driver);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (settings->ordinal >= driver->device_count) {
        return alloti_fail(ALLOT_STATUS_NOT_FOUND, "opencl has %u devices", driver->device_count);
    }
    opencl_device *const device = calloc(1, sizeof *device);
    if (device == NULL) {
        return alloti_fail_memory(sizeof *device);
    }
    device->driver = driver;
    device->device = driver->devices[settings->ordinal];
    pthread_mutex_init(&device->mutex, NULL);
    alloti_areas_init(&device->allocations);
    status = ask_info(device, settings->memory);
    if (status == ALLOT_STATUS_OK) {
        status = start(device);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_create(&OPS, device, out);
    }
    if (status != ALLOT_STATUS_OK) {
        destroy(device, false);
    }
    return status;
}

const device_backend alloti_backend_opencl = {.probe = probe, .open = open_device};
