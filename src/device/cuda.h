/* SPDX-License-Identifier: MIT */
/** What the files of the CUDA backend share: the device, and calls in its context. */
#ifndef ALLOTI_DEVICE_CUDA_H
#define ALLOTI_DEVICE_CUDA_H

#include <pthread.h>

#include "device/areas.h"
#include "device/cuda_driver.h"
#include "device/device.h"

typedef struct cuda_device {
    const cuda_driver *driver;
    allot_device_ops ops; /**< What this driver and GPU can do. */
    void *context;        /**< The primary one, retained: CUDA programs of this process share it. */
    int device;           /**< CUdevice. */
    uint64_t granule;     /**< Of virtual memory; 0: none. */
    allot_device_info info;
    pthread_mutex_t mutex; /**< Guards the areas; no call of the driver is made with it held. */
    device_areas allocations;
    device_areas reservations;
    device_areas memories; /**< By handle, of size 1; value: bytes; kind: whether it is mapped. */
    device_areas mappings; /**< value: the handle. */
} cuda_device;

/**
 * Enter what the driver handed out; ALLOT_STATUS_HOST_MEMORY. What cannot be entered is given back
 * by the caller.
 */
ALLOT_NODISCARD allot_status alloti_cuda_hold(cuda_device *device, device_areas *areas,
                                              const device_area *area);

/** Lift exactly this area: its place, ALLOT_NONE if there is none. Ended by alloti_cuda_end(). */
uint32_t alloti_cuda_lift(cuda_device *device, device_areas *areas, uint64_t address,
                          uint64_t size);

/** After the driver was asked to free what was lifted; returns `status`. */
allot_status alloti_cuda_end(cuda_device *device, device_areas *areas, uint32_t place,
                             allot_status status);

/** A call within the device's context. */
typedef struct cuda_scope {
    const cuda_device *device;
    bool is_pushed;
    int error;        /**< Of entering; then nothing may be called. */
    const char *call; /**< What failed. */
} cuda_scope;

/** Make the context current if it is not; ended by alloti_cuda_leave(). */
ALLOT_NODISCARD cuda_scope alloti_cuda_enter(const cuda_device *device);

/** What a call of the driver answers; where entering failed it is not made. A macro, as a function
 * would be given the answer. */
#define CUDA_WITHIN(scope, call) ((scope).error == CUDA_SUCCESS ? (call) : (scope).error)

/** Restore the thread's context; the status of entering or else of what `call` answered. */
allot_status alloti_cuda_leave(const cuda_scope *scope, int error, const char *call);

/** Streams and events as the driver names them. */
static inline void *cuda_handle(uint64_t value)
{
    return (void *)(uintptr_t)value;
}

/* Operations, by file. Contracts are those of device.h. */

/* cuda_memory.c */
allot_status alloti_cuda_alloc(void *self, uint64_t size, uint64_t *address);
allot_status alloti_cuda_free(void *self, uint64_t address, uint64_t size);
allot_status alloti_cuda_alloc_async(void *self, uint64_t stream, uint64_t size, uint64_t *address);
allot_status alloti_cuda_free_async(void *self, uint64_t stream, uint64_t address, uint64_t size);

/* cuda_virtual.c */
allot_status alloti_cuda_granule(cuda_device *device, uint64_t *out);
allot_status alloti_cuda_reserve(void *self, uint64_t size, uint64_t *address);
allot_status alloti_cuda_unreserve(void *self, uint64_t address, uint64_t size);
allot_status alloti_cuda_memory_create(void *self, uint64_t size, uint64_t *memory);
allot_status alloti_cuda_memory_release(void *self, uint64_t memory, uint64_t size);
allot_status alloti_cuda_map(void *self, uint64_t address, uint64_t memory, uint64_t size);
allot_status alloti_cuda_unmap(void *self, uint64_t address, uint64_t size);

/* cuda_stream.c */
allot_status alloti_cuda_stream_create(void *self, uint64_t *stream);
allot_status alloti_cuda_stream_destroy(void *self, uint64_t stream);
allot_status alloti_cuda_stream_wait(void *self, uint64_t stream, uint64_t event);
allot_status alloti_cuda_stream_synchronize(void *self, uint64_t stream);
allot_status alloti_cuda_event_create(void *self, uint64_t *event);
allot_status alloti_cuda_event_destroy(void *self, uint64_t event);
allot_status alloti_cuda_event_record(void *self, uint64_t event, uint64_t stream);
allot_status alloti_cuda_event_query(void *self, uint64_t event);
allot_status alloti_cuda_event_synchronize(void *self, uint64_t event);

/* cuda_copy.c */
allot_status alloti_cuda_copy(void *self, uint64_t stream, uint64_t dst, uint64_t src,
                              uint64_t size);
allot_status alloti_cuda_copy_batch(void *self, uint64_t stream, const allot_copy *copies,
                                    size_t count);
allot_status alloti_cuda_fill(void *self, uint64_t stream, uint64_t dst, uint8_t value,
                              uint64_t size);
allot_status alloti_cuda_write(void *self, uint64_t stream, uint64_t dst, const void *src,
                               uint64_t size);
allot_status alloti_cuda_read(void *self, uint64_t stream, void *dst, uint64_t src, uint64_t size);

#endif /* ALLOTI_DEVICE_CUDA_H */
