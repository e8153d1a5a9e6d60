/* SPDX-License-Identifier: MIT */
/*
 * The one place where the table of a backend is called: arguments are checked before, what came
 * back after, and both are counted.
 */
#include <inttypes.h>
#include <time.h>

#include "core/fork.h"
#include "core/size_math.h"
#include "device/device.h"

static void count(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/** Something of so many bytes is held, counted in `bytes` where that is not NULL. */
static void hold(allot_device *device, _Atomic uint64_t *bytes, uint64_t size)
{
    count(&device->live_count, 1);
    if (bytes != NULL) {
        count(bytes, size);
    }
}

static void let_go(allot_device *device, _Atomic uint64_t *bytes, uint64_t size)
{
    atomic_fetch_sub_explicit(&device->live_count, 1, memory_order_relaxed);
    if (bytes != NULL) {
        atomic_fetch_sub_explicit(bytes, size, memory_order_relaxed);
    }
}

bool alloti_device_is_forked(const allot_device *device)
{
    return device->fork_generation != alloti_fork_generation();
}

allot_status alloti_device_check_fork(const allot_device *device)
{
    return alloti_device_is_forked(device)
               ? alloti_fail(ALLOT_STATUS_FORKED,
                             "%s: the device was opened before fork(): open it anew in the child",
                             device->info.name)
               : ALLOT_STATUS_OK;
}

static allot_status begin(allot_device *device, allot_device_call call)
{
    const allot_status status = alloti_device_check_fork(device);
    if (status == ALLOT_STATUS_OK) {
        count(&device->calls[call], 1);
    }
    return status;
}

static allot_status end(allot_device *device, allot_device_call call, allot_status status)
{
    if (status != ALLOT_STATUS_OK) {
        count(&device->failures[call], 1);
    }
    return status;
}

/** The same for one that copies `size` bytes. */
static allot_status end_copy(allot_device *device, allot_device_call call, uint64_t size,
                             allot_status status)
{
    if (status == ALLOT_STATUS_OK) {
        count(&device->size_copied, size);
    }
    return end(device, call, status);
}

static allot_status refuse(const allot_device *device, const char *what, uint64_t value)
{
    return alloti_fail(ALLOT_STATUS_INVALID, "%s: %s (%" PRIu64 ")", device->info.name, what,
                       value);
}

/** The backend broke its contract; nothing is given back to it, since it is not ours for sure. */
static allot_status distrust(const allot_device *device, const char *call, uint64_t value)
{
    return alloti_fail(ALLOT_STATUS_BACKEND, "%s: %s answered with %#" PRIx64, device->info.name,
                       call, value);
}

/** Whether an address is aligned and its range ends below 2^64. */
static bool is_sound(uint64_t address, uint64_t size, uint64_t align)
{
    uint64_t end_address = 0;
    return address != 0 && (address & (align - 1)) == 0 && alloti_add(address, size, &end_address);
}

allot_status allot_device_memory_info(allot_device *device, uint64_t *size_free,
                                      uint64_t *size_total)
{
    const allot_status status = begin(device, ALLOT_DEVICE_CALL_MEMORY_INFO);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return end(device, ALLOT_DEVICE_CALL_MEMORY_INFO,
               device->ops.memory_info(device->self, size_free, size_total));
}

uint64_t allot_device_clock_ns(allot_device *device)
{
    if (alloti_device_is_forked(device)) {
        return 0;
    }
    if (device->ops.clock_ns != NULL) {
        return device->ops.clock_ns(device->self);
    }
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/** What `alloc` and `alloc_async` brought. */
static allot_status take_alloc(allot_device *device, allot_device_call call, allot_status status,
                               uint64_t address, uint64_t size, allot_devptr *out)
{
    if (status == ALLOT_STATUS_OK && !is_sound(address, size, device->info.align)) {
        status = distrust(device, allot_device_call_name(call), address);
    }
    if (status == ALLOT_STATUS_OK) {
        hold(device, &device->size_allocated, size);
        out->address = address;
    }
    return end(device, call, status);
}

allot_status allot_device_alloc(allot_device *device, uint64_t size, allot_devptr *out)
{
    if (size == 0) {
        return refuse(device, "an allocation needs a size", size);
    }
    const allot_status status = begin(device, ALLOT_DEVICE_CALL_ALLOC);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t address = 0;
    const allot_status answer = device->ops.alloc(device->self, size, &address);
    return take_alloc(device, ALLOT_DEVICE_CALL_ALLOC, answer, address, size, out);
}

allot_status allot_device_free(allot_device *device, allot_devptr ptr, uint64_t size)
{
    if (ptr.address == 0 || size == 0) {
        return refuse(device, "nothing to free", ptr.address);
    }
    allot_status status = begin(device, ALLOT_DEVICE_CALL_FREE);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = device->ops.free(device->self, ptr.address, size);
    if (status == ALLOT_STATUS_OK) {
        let_go(device, &device->size_allocated, size);
    }
    return end(device, ALLOT_DEVICE_CALL_FREE, status);
}

allot_status allot_device_alloc_async(allot_device *device, allot_stream stream, uint64_t size,
                                      allot_devptr *out)
{
    if (device->ops.alloc_async == NULL) {
        return allot_device_alloc(device, size, out);
    }
    if (size == 0) {
        return refuse(device, "an allocation needs a size", size);
    }
    const allot_status status = begin(device, ALLOT_DEVICE_CALL_ALLOC_ASYNC);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t address = 0;
    const allot_status answer = device->ops.alloc_async(device->self, stream.value, size, &address);
    return take_alloc(device, ALLOT_DEVICE_CALL_ALLOC_ASYNC, answer, address, size, out);
}

allot_status allot_device_free_async(allot_device *device, allot_stream stream, allot_devptr ptr,
                                     uint64_t size)
{
    if (device->ops.free_async == NULL) {
        const allot_status status = allot_device_stream_synchronize(device, stream);
        return status == ALLOT_STATUS_OK ? allot_device_free(device, ptr, size) : status;
    }
    if (ptr.address == 0 || size == 0) {
        return refuse(device, "nothing to free", ptr.address);
    }
    allot_status status = begin(device, ALLOT_DEVICE_CALL_FREE_ASYNC);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = device->ops.free_async(device->self, stream.value, ptr.address, size);
    if (status == ALLOT_STATUS_OK) {
        let_go(device, &device->size_allocated, size);
    }
    return end(device, ALLOT_DEVICE_CALL_FREE_ASYNC, status);
}

/** Begin a call of the virtual memory group. */
static allot_status begin_virtual(allot_device *device, allot_device_call call, uint64_t size)
{
    const uint64_t granule = device->info.granule;
    if (granule == 0) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "%s has no virtual memory", device->info.name);
    }
    if (size == 0 || (size & (granule - 1)) != 0) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "%s: %s: %" PRIu64 " bytes are not a multiple of the granule, %" PRIu64,
                           device->info.name, allot_device_call_name(call), size, granule);
    }
    return begin(device, call);
}

allot_status allot_device_reserve(allot_device *device, uint64_t size, allot_devptr *out)
{
    allot_status status = begin_virtual(device, ALLOT_DEVICE_CALL_RESERVE, size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t address = 0;
    status = device->ops.reserve(device->self, size, &address);
    if (status == ALLOT_STATUS_OK && !is_sound(address, size, device->info.granule)) {
        status = distrust(device, "reserve", address);
    }
    if (status == ALLOT_STATUS_OK) {
        hold(device, &device->size_reserved, size);
        out->address = address;
    }
    return end(device, ALLOT_DEVICE_CALL_RESERVE, status);
}

allot_status allot_device_unreserve(allot_device *device, allot_devptr ptr, uint64_t size)
{
    allot_status status = begin_virtual(device, ALLOT_DEVICE_CALL_UNRESERVE, size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = device->ops.unreserve(device->self, ptr.address, size);
    if (status == ALLOT_STATUS_OK) {
        let_go(device, &device->size_reserved, size);
    }
    return end(device, ALLOT_DEVICE_CALL_UNRESERVE, status);
}

allot_status allot_device_memory_create(allot_device *device, uint64_t size, allot_memory *out)
{
    allot_status status = begin_virtual(device, ALLOT_DEVICE_CALL_MEMORY_CREATE, size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t memory = 0;
    status = device->ops.memory_create(device->self, size, &memory);
    if (status == ALLOT_STATUS_OK && memory == 0) {
        status = distrust(device, "memory_create", memory);
    }
    if (status == ALLOT_STATUS_OK) {
        hold(device, &device->size_created, size);
        out->value = memory;
    }
    return end(device, ALLOT_DEVICE_CALL_MEMORY_CREATE, status);
}

allot_status allot_device_memory_release(allot_device *device, allot_memory memory, uint64_t size)
{
    allot_status status = begin_virtual(device, ALLOT_DEVICE_CALL_MEMORY_RELEASE, size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = device->ops.memory_release(device->self, memory.value, size);
    if (status == ALLOT_STATUS_OK) {
        let_go(device, &device->size_created, size);
    }
    return end(device, ALLOT_DEVICE_CALL_MEMORY_RELEASE, status);
}

allot_status allot_device_map(allot_device *device, allot_devptr ptr, allot_memory memory,
                              uint64_t size)
{
    const allot_status status = begin_virtual(device, ALLOT_DEVICE_CALL_MAP, size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (!is_sound(ptr.address, size, device->info.granule)) {
        return end(device, ALLOT_DEVICE_CALL_MAP,
                   refuse(device, "not an address to map at", ptr.address));
    }
    return end(device, ALLOT_DEVICE_CALL_MAP,
               device->ops.map(device->self, ptr.address, memory.value, size));
}

allot_status allot_device_unmap(allot_device *device, allot_devptr ptr, uint64_t size)
{
    const allot_status status = begin_virtual(device, ALLOT_DEVICE_CALL_UNMAP, size);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return end(device, ALLOT_DEVICE_CALL_UNMAP, device->ops.unmap(device->self, ptr.address, size));
}

allot_status allot_device_stream_create(allot_device *device, allot_stream *out)
{
    allot_status status = begin(device, ALLOT_DEVICE_CALL_STREAM_CREATE);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t stream = 0;
    status = device->ops.stream_create(device->self, &stream);
    if (status == ALLOT_STATUS_OK && stream == 0) {
        status = distrust(device, "stream_create", stream);
    }
    if (status == ALLOT_STATUS_OK) {
        hold(device, NULL, 0);
        out->value = stream;
    }
    return end(device, ALLOT_DEVICE_CALL_STREAM_CREATE, status);
}

allot_status allot_device_stream_destroy(allot_device *device, allot_stream stream)
{
    if (stream.value == 0) {
        return refuse(device, "the default stream cannot be destroyed", stream.value);
    }
    allot_status status = begin(device, ALLOT_DEVICE_CALL_STREAM_DESTROY);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = device->ops.stream_destroy(device->self, stream.value);
    if (status == ALLOT_STATUS_OK) {
        let_go(device, NULL, 0);
    }
    return end(device, ALLOT_DEVICE_CALL_STREAM_DESTROY, status);
}

allot_status allot_device_stream_wait(allot_device *device, allot_stream stream, allot_event event)
{
    const allot_status status = begin(device, ALLOT_DEVICE_CALL_STREAM_WAIT);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return end(device, ALLOT_DEVICE_CALL_STREAM_WAIT,
               device->ops.stream_wait(device->self, stream.value, event.value));
}

allot_status allot_device_stream_synchronize(allot_device *device, allot_stream stream)
{
    const allot_status status = begin(device, ALLOT_DEVICE_CALL_STREAM_SYNCHRONIZE);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return end(device, ALLOT_DEVICE_CALL_STREAM_SYNCHRONIZE,
               device->ops.stream_synchronize(device->self, stream.value));
}

allot_status allot_device_event_create(allot_device *device, allot_event *out)
{
    allot_status status = begin(device, ALLOT_DEVICE_CALL_EVENT_CREATE);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t event = 0;
    status = device->ops.event_create(device->self, &event);
    if (status == ALLOT_STATUS_OK && event == 0) {
        status = distrust(device, "event_create", event);
    }
    if (status == ALLOT_STATUS_OK) {
        hold(device, NULL, 0);
        out->value = event;
    }
    return end(device, ALLOT_DEVICE_CALL_EVENT_CREATE, status);
}

allot_status allot_device_event_destroy(allot_device *device, allot_event event)
{
    if (event.value == 0) {
        return refuse(device, "no event", event.value);
    }
    allot_status status = begin(device, ALLOT_DEVICE_CALL_EVENT_DESTROY);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = device->ops.event_destroy(device->self, event.value);
    if (status == ALLOT_STATUS_OK) {
        let_go(device, NULL, 0);
    }
    return end(device, ALLOT_DEVICE_CALL_EVENT_DESTROY, status);
}

allot_status allot_device_event_record(allot_device *device, allot_event event, allot_stream stream)
{
    const allot_status status = begin(device, ALLOT_DEVICE_CALL_EVENT_RECORD);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return end(device, ALLOT_DEVICE_CALL_EVENT_RECORD,
               device->ops.event_record(device->self, event.value, stream.value));
}

allot_status allot_device_event_query(allot_device *device, allot_event event)
{
    const allot_status status = begin(device, ALLOT_DEVICE_CALL_EVENT_QUERY);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const allot_status answer = device->ops.event_query(device->self, event.value);
    return answer == ALLOT_STATUS_BUSY ? answer
                                       : end(device, ALLOT_DEVICE_CALL_EVENT_QUERY, answer);
}

allot_status allot_device_event_synchronize(allot_device *device, allot_event event)
{
    const allot_status status = begin(device, ALLOT_DEVICE_CALL_EVENT_SYNCHRONIZE);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return end(device, ALLOT_DEVICE_CALL_EVENT_SYNCHRONIZE,
               device->ops.event_synchronize(device->self, event.value));
}

/** Whether [address, address + size) is a range of addresses at all. */
static allot_status check_range(const allot_device *device, allot_devptr ptr, uint64_t size)
{
    return is_sound(ptr.address, size, 1)
               ? ALLOT_STATUS_OK
               : refuse(device, "no address, or a range beyond the last one", ptr.address);
}

static allot_status check_copy(const allot_device *device, allot_devptr dst, allot_devptr src,
                               uint64_t size)
{
    allot_status status = check_range(device, dst, size);
    if (status == ALLOT_STATUS_OK) {
        status = check_range(device, src, size);
    }
    if (status == ALLOT_STATUS_OK && dst.address < src.address + size &&
        src.address < dst.address + size) {
        status = refuse(device, "the ranges of a copy overlap, size", size);
    }
    return status;
}

allot_status allot_device_copy(allot_device *device, allot_stream stream, allot_devptr dst,
                               allot_devptr src, uint64_t size)
{
    if (size == 0) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = check_copy(device, dst, src, size);
    if (status == ALLOT_STATUS_OK) {
        status = begin(device, ALLOT_DEVICE_CALL_COPY);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return end_copy(device, ALLOT_DEVICE_CALL_COPY, size,
                    device->ops.copy(device->self, stream.value, dst.address, src.address, size));
}

static allot_status copy_one_by_one(allot_device *device, allot_stream stream,
                                    const allot_copy *copies, size_t copy_count)
{
    allot_status status = ALLOT_STATUS_OK;
    for (size_t i = 0; i < copy_count && status == ALLOT_STATUS_OK; i++) {
        status = allot_device_copy(device, stream, copies[i].dst, copies[i].src, copies[i].size);
    }
    return status;
}

/** Copies up to the first that has no size: drivers refuse a batch with one of those. */
static size_t count_run(const allot_copy *copies, size_t copy_count)
{
    size_t run = 0;
    while (run < copy_count && copies[run].size != 0) {
        run++;
    }
    return run;
}

static allot_status copy_run(allot_device *device, allot_stream stream, const allot_copy *copies,
                             size_t copy_count)
{
    const allot_status status = begin(device, ALLOT_DEVICE_CALL_COPY_BATCH);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t size = 0;
    for (size_t i = 0; i < copy_count; i++) {
        size += copies[i].size; /* of ranges of one device: far from an overflow */
    }
    return end_copy(device, ALLOT_DEVICE_CALL_COPY_BATCH, size,
                    device->ops.copy_batch(device->self, stream.value, copies, copy_count));
}

allot_status allot_device_copy_batch(allot_device *device, allot_stream stream,
                                     const allot_copy *copies, size_t copy_count)
{
    if (device->ops.copy_batch == NULL) {
        return copy_one_by_one(device, stream, copies, copy_count);
    }
    for (size_t i = 0; i < copy_count; i++) {
        const allot_status status =
            copies[i].size == 0 ? ALLOT_STATUS_OK
                                : check_copy(device, copies[i].dst, copies[i].src, copies[i].size);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    allot_status status = ALLOT_STATUS_OK;
    for (size_t i = 0; i < copy_count && status == ALLOT_STATUS_OK;) {
        const size_t run = count_run(copies + i, copy_count - i);
        status = run == 0 ? ALLOT_STATUS_OK : copy_run(device, stream, copies + i, run);
        i += run == 0 ? 1 : run;
    }
    return status;
}

allot_status allot_device_move(allot_device *device, allot_stream stream, allot_devptr dst,
                               allot_devptr src, uint64_t size)
{
    if (device->ops.move == NULL || size == 0) {
        return allot_device_copy(device, stream, dst, src, size);
    }
    allot_status status = check_copy(device, dst, src, size);
    if (status == ALLOT_STATUS_OK) {
        status = begin(device, ALLOT_DEVICE_CALL_MOVE);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return end_copy(device, ALLOT_DEVICE_CALL_MOVE, size,
                    device->ops.move(device->self, stream.value, dst.address, src.address, size));
}

allot_status allot_device_fill(allot_device *device, allot_stream stream, allot_devptr dst,
                               uint8_t value, uint64_t size)
{
    if (size == 0) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = check_range(device, dst, size);
    if (status == ALLOT_STATUS_OK) {
        status = begin(device, ALLOT_DEVICE_CALL_FILL);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return end(device, ALLOT_DEVICE_CALL_FILL,
               device->ops.fill(device->self, stream.value, dst.address, value, size));
}

allot_status allot_device_write(allot_device *device, allot_stream stream, allot_devptr dst,
                                const void *src, uint64_t size)
{
    if (size == 0) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = check_range(device, dst, size);
    if (status == ALLOT_STATUS_OK) {
        status = begin(device, ALLOT_DEVICE_CALL_WRITE);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return end(device, ALLOT_DEVICE_CALL_WRITE,
               device->ops.write(device->self, stream.value, dst.address, src, size));
}

allot_status allot_device_read(allot_device *device, allot_stream stream, void *dst,
                               allot_devptr src, uint64_t size)
{
    if (size == 0) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = check_range(device, src, size);
    if (status == ALLOT_STATUS_OK) {
        status = begin(device, ALLOT_DEVICE_CALL_READ);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return end(device, ALLOT_DEVICE_CALL_READ,
               device->ops.read(device->self, stream.value, dst, src.address, size));
}
