/* SPDX-License-Identifier: MIT */
/** What the files of the OpenCL backend share. */
#ifndef ALLOTI_DEVICE_OPENCL_H
#define ALLOTI_DEVICE_OPENCL_H

#include <pthread.h>

#include "core/slot.h"
#include "device/areas.h"
#include "device/device.h"
#include "device/opencl_driver.h"

/** Kinds of handles. */
enum { OPENCL_STREAM = 1, OPENCL_EVENT = 2 };

typedef struct opencl_device {
    const opencl_driver *driver;
    void *device;
    void *context;
    void *queue;            /**< The default stream. */
    allot_device_info info; /**< memory_total is the limit that was asked for. */
    uint64_t alloc_max;     /**< Largest single allocation. */
    pthread_mutex_t mutex;  /**< Guards what follows; no call that waits is made with it held. */
    device_areas allocations;
    uint64_t memory_used;
    alloti_slots streams; /**< Queues. */
    alloti_slots events;  /**< opencl_event */
} opencl_device;

/* Operations, by file. Contracts are those of device.h. */

/* opencl_memory.c */
allot_status alloti_opencl_memory_info(void *self, uint64_t *size_free, uint64_t *size_total);
allot_status alloti_opencl_alloc(void *self, uint64_t size, uint64_t *address);
allot_status alloti_opencl_free(void *self, uint64_t address, uint64_t size);
/** Free what is left, and the table. */
void alloti_opencl_memory_fini(opencl_device *device, bool is_forked);

/* opencl_stream.c */
/** The queue of a stream; ALLOT_STATUS_INVALID if there is no such stream. */
allot_status alloti_opencl_find_queue(opencl_device *device, uint64_t stream, void **out);
allot_status alloti_opencl_stream_create(void *self, uint64_t *stream);
allot_status alloti_opencl_stream_destroy(void *self, uint64_t stream);
allot_status alloti_opencl_stream_synchronize(void *self, uint64_t stream);
void alloti_opencl_streams_fini(opencl_device *device, bool is_forked);

/* opencl_event.c */
allot_status alloti_opencl_stream_wait(void *self, uint64_t stream, uint64_t event);
allot_status alloti_opencl_event_create(void *self, uint64_t *event);
allot_status alloti_opencl_event_destroy(void *self, uint64_t event);
allot_status alloti_opencl_event_record(void *self, uint64_t event, uint64_t stream);
allot_status alloti_opencl_event_query(void *self, uint64_t event);
allot_status alloti_opencl_event_synchronize(void *self, uint64_t event);
void alloti_opencl_events_fini(opencl_device *device, bool is_forked);

#endif /* ALLOTI_DEVICE_OPENCL_H */
