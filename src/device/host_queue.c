/* SPDX-License-Identifier: MIT */
/*
 * Streams, events and bytes. Work is done before a call returns, in the order of the calls, which
 * every stream and event agrees with; they are only told from what is none.
 */
#include <inttypes.h>
#include <string.h>

#include "device/host.h"
#include "device/host_pages.h"

/** A new handle. There is nothing to know of a stream or an event but that it is there. */
static allot_status add_handle(host_device *device, alloti_slots *slots, uint8_t kind,
                               uint64_t *out)
{
    pthread_mutex_lock(&device->lock);
    const uint64_t handle = alloti_slots_add(slots, kind, device);
    pthread_mutex_unlock(&device->lock);
    if (handle == 0) {
        return alloti_fail_memory(sizeof(alloti_slot));
    }
    *out = handle;
    return ALLOT_STATUS_OK;
}

/** Whether a handle is live; if `is_used_up`, it is so no more. */
static allot_status check_handle(host_device *device, alloti_slots *slots, uint8_t kind,
                                 uint64_t handle, bool is_used_up)
{
    pthread_mutex_lock(&device->lock);
    const bool is_live = alloti_slots_get(slots, kind, handle) != NULL;
    if (is_live && is_used_up) {
        alloti_slots_remove(slots, handle);
    }
    pthread_mutex_unlock(&device->lock);
    return is_live ? ALLOT_STATUS_OK
                   : alloti_fail(ALLOT_STATUS_INVALID, "host: no %s %#" PRIx64,
                                 kind == HOST_KIND_STREAM ? "stream" : "event", handle);
}

static allot_status check_stream(host_device *device, uint64_t stream)
{
    return stream == 0 ? ALLOT_STATUS_OK
                       : check_handle(device, &device->streams, HOST_KIND_STREAM, stream, false);
}

static allot_status check_event(host_device *device, uint64_t event)
{
    return check_handle(device, &device->events, HOST_KIND_EVENT, event, false);
}

allot_status alloti_host_stream_create(void *self, uint64_t *stream)
{
    host_device *const device = self;
    return add_handle(device, &device->streams, HOST_KIND_STREAM, stream);
}

allot_status alloti_host_stream_destroy(void *self, uint64_t stream)
{
    host_device *const device = self;
    return check_handle(device, &device->streams, HOST_KIND_STREAM, stream, true);
}

allot_status alloti_host_stream_wait(void *self, uint64_t stream, uint64_t event)
{
    const allot_status status = check_stream(self, stream);
    return status == ALLOT_STATUS_OK ? check_event(self, event) : status;
}

allot_status alloti_host_stream_synchronize(void *self, uint64_t stream)
{
    return check_stream(self, stream);
}

allot_status alloti_host_event_create(void *self, uint64_t *event)
{
    host_device *const device = self;
    return add_handle(device, &device->events, HOST_KIND_EVENT, event);
}

allot_status alloti_host_event_destroy(void *self, uint64_t event)
{
    host_device *const device = self;
    return check_handle(device, &device->events, HOST_KIND_EVENT, event, true);
}

allot_status alloti_host_event_record(void *self, uint64_t event, uint64_t stream)
{
    return alloti_host_stream_wait(self, stream, event);
}

allot_status alloti_host_event_query(void *self, uint64_t event)
{
    return check_event(self, event);
}

allot_status alloti_host_event_synchronize(void *self, uint64_t event)
{
    return check_event(self, event);
}

allot_status alloti_host_copy(void *self, uint64_t stream, uint64_t dst, uint64_t src,
                              uint64_t size)
{
    const allot_status status = check_stream(self, stream);
    if (status == ALLOT_STATUS_OK) {
        memcpy(alloti_host_pointer(dst), alloti_host_pointer(src), (size_t)size);
    }
    return status;
}

/** Whether two regions have pages of the same kind: mremap() takes the kind along. */
static bool is_alike(const host_device *device, const host_region *a, const host_region *b)
{
    return device->granule >= HOST_HUGE_PAGE || (a->owners == NULL) == (b->owners == NULL);
}

/** Whether pages may be moved: both ends are this device's, and a mapping may be cut up for it. */
static bool can_move(host_device *device, uint64_t dst, uint64_t src, uint64_t size)
{
    pthread_mutex_lock(&device->lock);
    host_region *const to = alloti_host_region_find(device, dst, size);
    const host_region *const from = alloti_host_region_find(device, src, size);
    const bool can = to != NULL && from != NULL &&
                     (device->mover.way != HOST_WAY_MREMAP || is_alike(device, to, from)) &&
                     alloti_host_cut(device, &to->cut_count);
    pthread_mutex_unlock(&device->lock);
    return can;
}

allot_status alloti_host_move_op(void *self, uint64_t stream, uint64_t dst, uint64_t src,
                                 uint64_t size)
{
    host_device *const device = self;
    if (device->mover.way == HOST_WAY_COPY || size < device->page_move_min ||
        !can_move(device, dst, src, size)) {
        return alloti_host_copy(self, stream, dst, src, size);
    }
    const allot_status status = check_stream(device, stream);
    if (status == ALLOT_STATUS_OK) {
        alloti_host_move(&device->mover, dst, src, size);
    }
    return status;
}

allot_status alloti_host_fill(void *self, uint64_t stream, uint64_t dst, uint8_t value,
                              uint64_t size)
{
    const allot_status status = check_stream(self, stream);
    if (status == ALLOT_STATUS_OK) {
        memset(alloti_host_pointer(dst), value, (size_t)size);
    }
    return status;
}

allot_status alloti_host_write(void *self, uint64_t stream, uint64_t dst, const void *src,
                               uint64_t size)
{
    const allot_status status = check_stream(self, stream);
    if (status == ALLOT_STATUS_OK) {
        memcpy(alloti_host_pointer(dst), src, (size_t)size);
    }
    return status;
}

allot_status alloti_host_read(void *self, uint64_t stream, void *dst, uint64_t src, uint64_t size)
{
    const allot_status status = check_stream(self, stream);
    if (status == ALLOT_STATUS_OK) {
        memcpy(dst, alloti_host_pointer(src), (size_t)size);
    }
    return status;
}
