/* SPDX-License-Identifier: MIT */
/*
 * OpenCL: an event of ours outlives its recordings, one of OpenCL's is a single moment. So each
 * recording puts a marker in the queue and holds that; before the first there is none, which counts
 * as reached. The queue is flushed then, or the marker might never be reached.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "device/opencl.h"

typedef struct opencl_event {
    void *marker; /**< Retained; NULL: not recorded yet. */
} opencl_event;

static allot_status refuse(const opencl_device *device, uint64_t event)
{
    return alloti_fail(ALLOT_STATUS_INVALID, "%s: there is no event %#" PRIx64, device->info.name,
                       event);
}

/** The marker of an event, retained for the caller; NULL if it was not recorded. */
static allot_status find_marker(opencl_device *device, uint64_t event, void **out)
{
    pthread_mutex_lock(&device->mutex);
    const opencl_event *const found = alloti_slots_get(&device->events, OPENCL_EVENT, event);
    void *const marker = found == NULL ? NULL : found->marker;
    if (marker != NULL) {
        (void)device->driver->clRetainEvent(marker);
    }
    pthread_mutex_unlock(&device->mutex);
    *out = marker;
    return found == NULL ? refuse(device, event) : ALLOT_STATUS_OK;
}

static void let_go(const opencl_device *device, void *marker)
{
    if (marker != NULL) {
        (void)device->driver->clReleaseEvent(marker);
    }
}

allot_status alloti_opencl_event_create(void *self, uint64_t *event)
{
    opencl_device *const device = self;
    opencl_event *const made = calloc(1, sizeof *made);
    if (made == NULL) {
        return alloti_fail_memory(sizeof *made);
    }
    pthread_mutex_lock(&device->mutex);
    const uint64_t handle = alloti_slots_add(&device->events, OPENCL_EVENT, made);
    pthread_mutex_unlock(&device->mutex);
    if (handle == 0) {
        free(made);
        return alloti_fail_memory(sizeof(alloti_slot));
    }
    *event = handle;
    return ALLOT_STATUS_OK;
}

allot_status alloti_opencl_event_destroy(void *self, uint64_t event)
{
    opencl_device *const device = self;
    pthread_mutex_lock(&device->mutex);
    opencl_event *const found = alloti_slots_get(&device->events, OPENCL_EVENT, event);
    if (found != NULL) {
        alloti_slots_remove(&device->events, event);
    }
    pthread_mutex_unlock(&device->mutex);
    if (found == NULL) {
        return refuse(device, event);
    }
    let_go(device, found->marker);
    free(found);
    return ALLOT_STATUS_OK;
}

/** A marker at the present end of a queue. */
static allot_status mark(const opencl_device *device, void *queue, void **out)
{
    const opencl_driver *const driver = device->driver;
    void *marker = NULL;
    allot_status status =
        alloti_opencl_answer(driver->clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker),
                             "clEnqueueMarkerWithWaitList");
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = alloti_opencl_answer(driver->clFlush(queue), "clFlush");
    if (status != ALLOT_STATUS_OK) {
        let_go(device, marker);
        return status;
    }
    *out = marker;
    return ALLOT_STATUS_OK;
}

allot_status alloti_opencl_event_record(void *self, uint64_t event, uint64_t stream)
{
    opencl_device *const device = self;
    void *queue = NULL;
    void *marker = NULL;
    allot_status status = alloti_opencl_find_queue(device, stream, &queue);
    if (status == ALLOT_STATUS_OK) {
        status = mark(device, queue, &marker);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    pthread_mutex_lock(&device->mutex);
    opencl_event *const found = alloti_slots_get(&device->events, OPENCL_EVENT, event);
    if (found != NULL) {
        void *const before = found->marker;
        found->marker = marker;
        marker = before;
    }
    pthread_mutex_unlock(&device->mutex);
    let_go(device, marker);
    return found == NULL ? refuse(device, event) : ALLOT_STATUS_OK;
}

allot_status alloti_opencl_event_query(void *self, uint64_t event)
{
    opencl_device *const device = self;
    void *marker = NULL;
    int state = 0; /* 0: reached; below: an error; above: not yet */
    allot_status status = find_marker(device, event, &marker);
    if (status != ALLOT_STATUS_OK || marker == NULL) {
        return status;
    }
    status = alloti_opencl_answer(
        device->driver->clGetEventInfo(marker, OPENCL_EVENT_STATUS, sizeof state, &state, NULL),
        "clGetEventInfo");
    let_go(device, marker);
    if (status == ALLOT_STATUS_OK && state < 0) {
        return alloti_opencl_answer(state, "work before the event");
    }
    return status == ALLOT_STATUS_OK && state > 0 ? ALLOT_STATUS_BUSY : status;
}

allot_status alloti_opencl_event_synchronize(void *self, uint64_t event)
{
    opencl_device *const device = self;
    void *marker = NULL;
    allot_status status = find_marker(device, event, &marker);
    if (status != ALLOT_STATUS_OK || marker == NULL) {
        return status;
    }
    status = alloti_opencl_answer(device->driver->clWaitForEvents(1, &marker), "clWaitForEvents");
    let_go(device, marker);
    return status;
}

allot_status alloti_opencl_stream_wait(void *self, uint64_t stream, uint64_t event)
{
    opencl_device *const device = self;
    void *queue = NULL;
    void *marker = NULL;
    allot_status status = alloti_opencl_find_queue(device, stream, &queue);
    if (status == ALLOT_STATUS_OK) {
        status = find_marker(device, event, &marker);
    }
    if (status != ALLOT_STATUS_OK || marker == NULL) {
        return status;
    }
    status =
        alloti_opencl_answer(device->driver->clEnqueueBarrierWithWaitList(queue, 1, &marker, NULL),
                             "clEnqueueBarrierWithWaitList");
    let_go(device, marker);
    return status;
}

void alloti_opencl_events_fini(opencl_device *device, bool is_forked)
{
    for (uint64_t i = 0; i < device->events.count; i++) {
        opencl_event *const event = device->events.slots[i].object;
        if (event != NULL && !is_forked) {
            let_go(device, event->marker);
        }
        free(event);
    }
    alloti_slots_fini(&device->events);
}
