/* SPDX-License-Identifier: MIT */
#include "device/forward.h"

#include <stdio.h>

static allot_devptr pointer_to(uint64_t address)
{
    return (allot_devptr){.address = address};
}

static allot_stream stream_of(uint64_t stream)
{
    return (allot_stream){.value = stream};
}

static allot_event event_of(uint64_t event)
{
    return (allot_event){.value = event};
}

static allot_memory memory_of(uint64_t memory)
{
    return (allot_memory){.value = memory};
}

static allot_device *inner_of(void *self)
{
    return ((device_wrapper *)self)->inner;
}

allot_status alloti_forward_before(void *self, allot_device_call call)
{
    device_wrapper *const wrapper = self;
    return wrapper->before == NULL ? ALLOT_STATUS_OK : wrapper->before(wrapper, call);
}

static void get_info(void *self, allot_device_info *out)
{
    const device_wrapper *const wrapper = self;
    allot_device_get_info(wrapper->inner, out);
    char inner[ALLOT_DEVICE_NAME_MAX];
    snprintf(inner, sizeof inner, "%s", out->backend);
    snprintf(out->backend, sizeof out->backend, "%s(%.100s)", wrapper->name, inner);
}

static uint64_t clock_ns(void *self)
{
    return allot_device_clock_ns(inner_of(self));
}

static allot_status forward_memory_info(void *self, uint64_t *size_free, uint64_t *size_total)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_MEMORY_INFO);
    return status == ALLOT_STATUS_OK
               ? allot_device_memory_info(inner_of(self), size_free, size_total)
               : status;
}

static allot_status forward_alloc(void *self, uint64_t size, uint64_t *address)
{
    allot_devptr ptr = {0};
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_ALLOC);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_alloc(inner_of(self), size, &ptr);
    }
    if (status == ALLOT_STATUS_OK) {
        *address = ptr.address;
    }
    return status;
}

static allot_status forward_free(void *self, uint64_t address, uint64_t size)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_FREE);
    return status == ALLOT_STATUS_OK ? allot_device_free(inner_of(self), pointer_to(address), size)
                                     : status;
}

static allot_status forward_alloc_async(void *self, uint64_t stream, uint64_t size,
                                        uint64_t *address)
{
    allot_devptr ptr = {0};
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_ALLOC_ASYNC);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_alloc_async(inner_of(self), stream_of(stream), size, &ptr);
    }
    if (status == ALLOT_STATUS_OK) {
        *address = ptr.address;
    }
    return status;
}

static allot_status forward_free_async(void *self, uint64_t stream, uint64_t address, uint64_t size)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_FREE_ASYNC);
    return status == ALLOT_STATUS_OK ? allot_device_free_async(inner_of(self), stream_of(stream),
                                                               pointer_to(address), size)
                                     : status;
}

static allot_status forward_reserve(void *self, uint64_t size, uint64_t *address)
{
    allot_devptr ptr = {0};
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_RESERVE);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_reserve(inner_of(self), size, &ptr);
    }
    if (status == ALLOT_STATUS_OK) {
        *address = ptr.address;
    }
    return status;
}

static allot_status forward_unreserve(void *self, uint64_t address, uint64_t size)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_UNRESERVE);
    return status == ALLOT_STATUS_OK
               ? allot_device_unreserve(inner_of(self), pointer_to(address), size)
               : status;
}

static allot_status forward_memory_create(void *self, uint64_t size, uint64_t *memory)
{
    allot_memory made = {0};
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_MEMORY_CREATE);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_memory_create(inner_of(self), size, &made);
    }
    if (status == ALLOT_STATUS_OK) {
        *memory = made.value;
    }
    return status;
}

static allot_status forward_memory_release(void *self, uint64_t memory, uint64_t size)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_MEMORY_RELEASE);
    return status == ALLOT_STATUS_OK
               ? allot_device_memory_release(inner_of(self), memory_of(memory), size)
               : status;
}

static allot_status forward_map(void *self, uint64_t address, uint64_t memory, uint64_t size)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_MAP);
    return status == ALLOT_STATUS_OK
               ? allot_device_map(inner_of(self), pointer_to(address), memory_of(memory), size)
               : status;
}

static allot_status forward_unmap(void *self, uint64_t address, uint64_t size)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_UNMAP);
    return status == ALLOT_STATUS_OK ? allot_device_unmap(inner_of(self), pointer_to(address), size)
                                     : status;
}

static allot_status forward_stream_create(void *self, uint64_t *stream)
{
    allot_stream made = {0};
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_STREAM_CREATE);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_stream_create(inner_of(self), &made);
    }
    if (status == ALLOT_STATUS_OK) {
        *stream = made.value;
    }
    return status;
}

static allot_status forward_stream_destroy(void *self, uint64_t stream)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_STREAM_DESTROY);
    return status == ALLOT_STATUS_OK
               ? allot_device_stream_destroy(inner_of(self), stream_of(stream))
               : status;
}

static allot_status forward_stream_wait(void *self, uint64_t stream, uint64_t event)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_STREAM_WAIT);
    return status == ALLOT_STATUS_OK
               ? allot_device_stream_wait(inner_of(self), stream_of(stream), event_of(event))
               : status;
}

static allot_status forward_stream_synchronize(void *self, uint64_t stream)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_STREAM_SYNCHRONIZE);
    return status == ALLOT_STATUS_OK
               ? allot_device_stream_synchronize(inner_of(self), stream_of(stream))
               : status;
}

static allot_status forward_event_create(void *self, uint64_t *event)
{
    allot_event made = {0};
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_EVENT_CREATE);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_event_create(inner_of(self), &made);
    }
    if (status == ALLOT_STATUS_OK) {
        *event = made.value;
    }
    return status;
}

static allot_status forward_event_destroy(void *self, uint64_t event)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_EVENT_DESTROY);
    return status == ALLOT_STATUS_OK ? allot_device_event_destroy(inner_of(self), event_of(event))
                                     : status;
}

static allot_status forward_event_record(void *self, uint64_t event, uint64_t stream)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_EVENT_RECORD);
    return status == ALLOT_STATUS_OK
               ? allot_device_event_record(inner_of(self), event_of(event), stream_of(stream))
               : status;
}

static allot_status forward_event_query(void *self, uint64_t event)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_EVENT_QUERY);
    return status == ALLOT_STATUS_OK ? allot_device_event_query(inner_of(self), event_of(event))
                                     : status;
}

static allot_status forward_event_synchronize(void *self, uint64_t event)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_EVENT_SYNCHRONIZE);
    return status == ALLOT_STATUS_OK
               ? allot_device_event_synchronize(inner_of(self), event_of(event))
               : status;
}

static allot_status forward_copy(void *self, uint64_t stream, uint64_t dst, uint64_t src,
                                 uint64_t size)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_COPY);
    return status == ALLOT_STATUS_OK ? allot_device_copy(inner_of(self), stream_of(stream),
                                                         pointer_to(dst), pointer_to(src), size)
                                     : status;
}

static allot_status forward_copy_batch(void *self, uint64_t stream, const allot_copy *copies,
                                       size_t count)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_COPY_BATCH);
    return status == ALLOT_STATUS_OK
               ? allot_device_copy_batch(inner_of(self), stream_of(stream), copies, count)
               : status;
}

static allot_status forward_move(void *self, uint64_t stream, uint64_t dst, uint64_t src,
                                 uint64_t size)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_MOVE);
    return status == ALLOT_STATUS_OK ? allot_device_move(inner_of(self), stream_of(stream),
                                                         pointer_to(dst), pointer_to(src), size)
                                     : status;
}

static allot_status forward_fill(void *self, uint64_t stream, uint64_t dst, uint8_t value,
                                 uint64_t size)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_FILL);
    return status == ALLOT_STATUS_OK
               ? allot_device_fill(inner_of(self), stream_of(stream), pointer_to(dst), value, size)
               : status;
}

static allot_status forward_write(void *self, uint64_t stream, uint64_t dst, const void *src,
                                  uint64_t size)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_WRITE);
    return status == ALLOT_STATUS_OK
               ? allot_device_write(inner_of(self), stream_of(stream), pointer_to(dst), src, size)
               : status;
}

static allot_status forward_read(void *self, uint64_t stream, void *dst, uint64_t src,
                                 uint64_t size)
{
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_READ);
    return status == ALLOT_STATUS_OK
               ? allot_device_read(inner_of(self), stream_of(stream), dst, pointer_to(src), size)
               : status;
}

void alloti_forward_ops(const allot_device *inner, allot_device_ops *out)
{
    *out = (allot_device_ops){
        .struct_size = sizeof *out,
        .get_info = get_info,
        .clock_ns = clock_ns,
        .memory_info = forward_memory_info,
        .alloc = forward_alloc,
        .free = forward_free,
        .stream_create = forward_stream_create,
        .stream_destroy = forward_stream_destroy,
        .stream_wait = forward_stream_wait,
        .stream_synchronize = forward_stream_synchronize,
        .event_create = forward_event_create,
        .event_destroy = forward_event_destroy,
        .event_record = forward_event_record,
        .event_query = forward_event_query,
        .event_synchronize = forward_event_synchronize,
        .copy = forward_copy,
        .fill = forward_fill,
        .write = forward_write,
        .read = forward_read,
    };
    if (inner->ops.copy_batch != NULL) {
        out->copy_batch = forward_copy_batch;
    }
    if (inner->ops.move != NULL) {
        out->move = forward_move;
    }
    if (inner->ops.alloc_async != NULL) {
        out->alloc_async = forward_alloc_async;
        out->free_async = forward_free_async;
    }
    if (inner->ops.reserve != NULL) {
        out->reserve = forward_reserve;
        out->unreserve = forward_unreserve;
        out->memory_create = forward_memory_create;
        out->memory_release = forward_memory_release;
        out->map = forward_map;
        out->unmap = forward_unmap;
    }
}
