/* SPDX-License-Identifier: MIT */
/* CUDA: bytes, all in the order of a stream. */
#include "device/cuda.h"

/** Copies given to the driver at once; their three arrays lie on the stack (12 KiB). */
enum { BATCH_MAX = 512 };

allot_status alloti_cuda_copy(void *self, uint64_t stream, uint64_t dst, uint64_t src,
                              uint64_t size)
{
    cuda_device *const device = self;
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(
        scope, device->driver->cuMemcpyDtoDAsync(dst, src, (size_t)size, cuda_handle(stream)));
    return alloti_cuda_leave(&scope, error, "cuMemcpyDtoDAsync");
}

static allot_status copy_each(cuda_device *device, uint64_t stream, const allot_copy *copies,
                              size_t count)
{
    allot_status status = ALLOT_STATUS_OK;
    for (size_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        status = alloti_cuda_copy(device, stream, copies[i].dst.address, copies[i].src.address,
                                  copies[i].size);
    }
    return status;
}

/** Up to BATCH_MAX copies. */
static int copy_some(const cuda_driver *driver, uint64_t stream, const allot_copy *copies,
                     size_t count)
{
    enum { IN_STREAM_ORDER = 1 };
    uint64_t to[BATCH_MAX];
    uint64_t from[BATCH_MAX];
    size_t sizes[BATCH_MAX];
    cuda_copy_attributes attributes = {.order = IN_STREAM_ORDER};
    size_t first = 0; /* the copy from which on the attributes hold */
    for (size_t i = 0; i < count; i++) {
        to[i] = copies[i].dst.address;
        from[i] = copies[i].src.address;
        sizes[i] = (size_t)copies[i].size;
    }
    if (driver->cuMemcpyBatchAsync != NULL) {
        return driver->cuMemcpyBatchAsync(to, from, sizes, count, &attributes, &first, 1,
                                          cuda_handle(stream));
    }
    size_t failed = 0;
    return driver->cuMemcpyBatchAsync12(to, from, sizes, count, &attributes, &first, 1, &failed,
                                        cuda_handle(stream));
}

allot_status alloti_cuda_copy_batch(void *self, uint64_t stream, const allot_copy *copies,
                                    size_t count)
{
    cuda_device *const device = self;
    enum { PER_THREAD_STREAM = 2 };    /* 0 and 1: the default stream */
    if (stream <= PER_THREAD_STREAM) { /* the driver has batches for other streams only */
        return copy_each(device, stream, copies, count);
    }
    const cuda_scope scope = alloti_cuda_enter(device);
    int error = scope.error;
    size_t done = 0;
    while (done < count && error == CUDA_SUCCESS) {
        const size_t n = count - done < BATCH_MAX ? count - done : BATCH_MAX;
        error = copy_some(device->driver, stream, copies + done, n);
        done += error == CUDA_SUCCESS ? n : 0;
    }
    if (error != CUDA_NOT_SUPPORTED) {
        return alloti_cuda_leave(&scope, error, "cuMemcpyBatchAsync");
    }
    const allot_status left = alloti_cuda_leave(&scope, CUDA_SUCCESS, "cuMemcpyBatchAsync");
    return left != ALLOT_STATUS_OK ? left : copy_each(device, stream, copies + done, count - done);
}

allot_status alloti_cuda_fill(void *self, uint64_t stream, uint64_t dst, uint8_t value,
                              uint64_t size)
{
    cuda_device *const device = self;
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(
        scope, device->driver->cuMemsetD8Async(dst, value, (size_t)size, cuda_handle(stream)));
    return alloti_cuda_leave(&scope, error, "cuMemsetD8Async");
}

allot_status alloti_cuda_write(void *self, uint64_t stream, uint64_t dst, const void *src,
                               uint64_t size)
{
    cuda_device *const device = self;
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(
        scope, device->driver->cuMemcpyHtoDAsync(dst, src, (size_t)size, cuda_handle(stream)));
    return alloti_cuda_leave(&scope, error, "cuMemcpyHtoDAsync");
}

allot_status alloti_cuda_read(void *self, uint64_t stream, void *dst, uint64_t src, uint64_t size)
{
    cuda_device *const device = self;
    const cuda_scope scope = alloti_cuda_enter(device);
    const int error = CUDA_WITHIN(
        scope, device->driver->cuMemcpyDtoHAsync(dst, src, (size_t)size, cuda_handle(stream)));
    return alloti_cuda_leave(&scope, error, "cuMemcpyDtoHAsync");
}
