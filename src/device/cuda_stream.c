/* SPDX-License-Identifier: MIT */
/* CUDA: streams and events. */
#include "device/cuda.h"

/** Independent of the default stream; events without a time are cheaper. */
enum { STREAM_NON_BLOCKING = 1, EVENT_DISABLE_TIMING = 2 };

/** Calls that take one handle. */
static allot_status call_with(cuda_device *device, int (*function)(void *), uint64_t handle,
                              const char *call)
{
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(scope, function(cuda_handle(handle)));
    return alloti_cuda_leave(&scope, error, call);
}

/** Calls that make a handle. */
static allot_status create(cuda_device *device, int (*function)(void **, unsigned), unsigned flags,
                           const char *call, uint64_t *out)
{
    const cuda_scope scope = alloti_cuda_enter(device);
    void *made = NULL;
    const int error = CUDA_WITHIN(scope, function(&made, flags));
    const allot_status status = alloti_cuda_leave(&scope, error, call);
    if (status == ALLOT_STATUS_OK) {
        *out = (uintptr_t)made;
    }
    return status;
}

allot_status alloti_cuda_stream_create(void *self, uint64_t *stream)
{
    cuda_device *const device = self;
    return create(device, device->driver->cuStreamCreate, STREAM_NON_BLOCKING, "cuStreamCreate",
                  stream);
}

/** The driver lets the work of a destroyed stream end by itself. */
allot_status alloti_cuda_stream_destroy(void *self, uint64_t stream)
{
    cuda_device *const device = self;
    return call_with(device, device->driver->cuStreamDestroy, stream, "cuStreamDestroy");
}

allot_status alloti_cuda_stream_wait(void *self, uint64_t stream, uint64_t event)
{
    cuda_device *const device = self;
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(
        scope, device->driver->cuStreamWaitEvent(cuda_handle(stream), cuda_handle(event), 0));
    return alloti_cuda_leave(&scope, error, "cuStreamWaitEvent");
}

allot_status alloti_cuda_stream_synchronize(void *self, uint64_t stream)
{
    cuda_device *const device = self;
    return call_with(device, device->driver->cuStreamSynchronize, stream, "cuStreamSynchronize");
}

allot_status alloti_cuda_event_create(void *self, uint64_t *event)
{
    cuda_device *const device = self;
    return create(device, device->driver->cuEventCreate, EVENT_DISABLE_TIMING, "cuEventCreate",
                  event);
}

allot_status alloti_cuda_event_destroy(void *self, uint64_t event)
{
    cuda_device *const device = self;
    return call_with(device, device->driver->cuEventDestroy, event, "cuEventDestroy");
}

allot_status alloti_cuda_event_record(void *self, uint64_t event, uint64_t stream)
{
    cuda_device *const device = self;
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error =
        CUDA_WITHIN(scope, device->driver->cuEventRecord(cuda_handle(event), cuda_handle(stream)));
    return alloti_cuda_leave(&scope, error, "cuEventRecord");
}

allot_status alloti_cuda_event_query(void *self, uint64_t event)
{
    cuda_device *const device = self;
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(scope, device->driver->cuEventQuery(cuda_handle(event)));
    if (error == CUDA_NOT_READY) { /* an answer, no failure: no text is set */
        const allot_status left = alloti_cuda_leave(&scope, CUDA_SUCCESS, "cuEventQuery");
        return left == ALLOT_STATUS_OK ? ALLOT_STATUS_BUSY : left;
    }
    return alloti_cuda_leave(&scope, error, "cuEventQuery");
}

allot_status alloti_cuda_event_synchronize(void *self, uint64_t event)
{
    cuda_device *const device = self;
    return call_with(device, device->driver->cuEventSynchronize, event, "cuEventSynchronize");
}
