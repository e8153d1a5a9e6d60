/* SPDX-License-Identifier: MIT */
/* OpenCL: streams are queues that work in order; the default stream is one like the others. */
#include <inttypes.h>

#include "device/opencl.h"

static allot_status refuse(const opencl_device *device, uint64_t stream)
{
    return alloti_fail(ALLOT_STATUS_INVALID, "%s: there is no stream %#" PRIx64, device->info.name,
                       stream);
}

allot_status alloti_opencl_find_queue(opencl_device *device, uint64_t stream, void **out)
{
    if (stream == 0) {
        *out = device->queue;
        return ALLOT_STATUS_OK;
    }
    pthread_mutex_lock(&device->mutex);
    void *const queue = alloti_slots_get(&device->streams, OPENCL_STREAM, stream);
    pthread_mutex_unlock(&device->mutex);
    if (queue == NULL) {
        return refuse(device, stream);
    }
    *out = queue;
    return ALLOT_STATUS_OK;
}

allot_status alloti_opencl_stream_create(void *self, uint64_t *stream)
{
    opencl_device *const device = self;
    const opencl_driver *const driver = device->driver;
    enum { IN_ORDER = 0 };
    int error = 0;
    void *const queue =
        driver->clCreateCommandQueue(device->context, device->device, IN_ORDER, &error);
    if (queue == NULL) {
        return alloti_opencl_answer(error, "clCreateCommandQueue");
    }
    pthread_mutex_lock(&device->mutex);
    const uint64_t handle = alloti_slots_add(&device->streams, OPENCL_STREAM, queue);
    pthread_mutex_unlock(&device->mutex);
    if (handle == 0) {
        (void)driver->clReleaseCommandQueue(queue);
        return alloti_fail_memory(sizeof(alloti_slot));
    }
    *stream = handle;
    return ALLOT_STATUS_OK;
}

/** Forget a stream; false where another thread did in the meantime. */
static bool forget_stream(opencl_device *device, uint64_t stream)
{
    pthread_mutex_lock(&device->mutex);
    const bool is_there = alloti_slots_get(&device->streams, OPENCL_STREAM, stream) != NULL;
    if (is_there) {
        alloti_slots_remove(&device->streams, stream);
    }
    pthread_mutex_unlock(&device->mutex);
    return is_there;
}

allot_status alloti_opencl_stream_destroy(void *self, uint64_t stream)
{
    opencl_device *const device = self;
    void *queue = NULL;
    allot_status status = alloti_opencl_find_queue(device, stream, &queue);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_opencl_answer(device->driver->clFinish(queue), "clFinish");
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return !forget_stream(device, stream)
               ? refuse(device, stream)
               : alloti_opencl_answer(device->driver->clReleaseCommandQueue(queue),
                                      "clReleaseCommandQueue");
}

allot_status alloti_opencl_stream_synchronize(void *self, uint64_t stream)
{
    opencl_device *const device = self;
    void *queue = NULL;
    const allot_status status = alloti_opencl_find_queue(device, stream, &queue);
    return status != ALLOT_STATUS_OK
               ? status
               : alloti_opencl_answer(device->driver->clFinish(queue), "clFinish");
}

void alloti_opencl_streams_fini(opencl_device *device, bool is_forked)
{
    for (uint64_t i = 0; !is_forked && i < device->streams.count; i++) {
        void *const queue = device->streams.slots[i].object;
        if (queue != NULL) {
            (void)device->driver->clFinish(queue);
            (void)device->driver->clReleaseCommandQueue(queue);
        }
    }
    alloti_slots_fini(&device->streams);
}
