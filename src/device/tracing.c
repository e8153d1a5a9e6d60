/* SPDX-License-Identifier: MIT */
/*
 * A device that records what it is asked for: events in the order in which they took place, and
 * what is held now. The lock is held over the inner device's call, so that the record of an address
 * that one thread gives back and another gets is in that order; calls for memory do not run at
 * once therefore. Room for the record is made before the call: what was done is always recorded.
 *
 * A trace is made of the record when it is asked for. The device knows segments, not what its user
 * puts there, so each segment is one inactive block.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/array.h"
#include "device/areas.h"
#include "device/forward.h"
#include "trace/builder.h"

/** Segments up to this size count as small, as in PyTorch. */
static const uint64_t SMALL_MAX = UINT64_C(1) << 20;

typedef struct record {
    allot_event_kind kind;
    uint64_t address;
    uint64_t size;
    uint64_t stream;
    uint64_t time_ns;
} record;

typedef struct tracing {
    device_wrapper wrapper;
    uint64_t begin_ns;     /**< The device's clock when it was opened. */
    pthread_mutex_t mutex; /**< Guards everything below; held while the inner device is called. */
    record *records;
    uint64_t count;
    uint64_t capacity;
    device_areas segments;     /**< Plain allocations; the value is the stream. */
    device_areas maps;         /**< Mapped memory. */
    device_areas reservations; /**< Where memory that is mapped side by side is one segment. */
} tracing;

/** Lock, and make room for a record and an area. Unlocked on failure. */
static allot_status begin(tracing *self, device_areas *areas)
{
    pthread_mutex_lock(&self->mutex);
    allot_status status = alloti_array_reserve(&self->records, &self->capacity, self->count + 1,
                                               sizeof *self->records);
    if (status == ALLOT_STATUS_OK && areas != NULL) {
        status = alloti_areas_reserve(areas);
    }
    if (status != ALLOT_STATUS_OK) {
        pthread_mutex_unlock(&self->mutex);
    }
    return status;
}

static allot_status end(tracing *self, allot_status status)
{
    pthread_mutex_unlock(&self->mutex);
    return status;
}

static void add(tracing *self, allot_event_kind kind, uint64_t address, uint64_t size,
                uint64_t stream)
{
    self->records[self->count++] =
        (record){.kind = kind,
                 .address = address,
                 .size = size,
                 .stream = stream,
                 .time_ns = allot_device_clock_ns(self->wrapper.inner) - self->begin_ns};
}

/** An area that room was made for. */
static void add_area(device_areas *areas, uint64_t address, uint64_t size, uint64_t stream)
{
    const device_area area = {.address = address, .size = size, .value = stream};
    (void)!alloti_areas_add(areas, &area);
}

/** Take out the area that begins at an address, if one does. */
static void remove_area(device_areas *areas, uint64_t address)
{
    const device_area *const found = alloti_areas_at(areas, address);
    if (found != NULL) {
        alloti_areas_remove(areas, found);
    }
}

/** Record a failure to allocate as PyTorch does: with what was free. */
static void add_failure(tracing *self, allot_status status, uint64_t size, uint64_t stream)
{
    uint64_t size_free = 0;
    uint64_t size_total = 0;
    if (status == ALLOT_STATUS_DEVICE_MEMORY) {
        char detail[ALLOTI_DETAIL_SIZE];
        snprintf(detail, sizeof detail, "%s", allot_error_detail());
        if (allot_device_memory_info(self->wrapper.inner, &size_free, &size_total) !=
            ALLOT_STATUS_OK) {
            size_free = 0;
            (void)alloti_fail(status, "%s", detail); /* the failure that the caller asks about */
        }
        add(self, ALLOT_EVENT_OOM, size_free, size, stream);
    }
}

/** Record what an allocation brought. */
static void add_alloc(tracing *self, allot_status status, allot_devptr ptr, uint64_t size,
                      uint64_t stream)
{
    if (status == ALLOT_STATUS_OK) {
        add(self, ALLOT_EVENT_SEGMENT_ALLOC, ptr.address, size, stream);
        add_area(&self->segments, ptr.address, size, stream);
    } else {
        add_failure(self, status, size, stream);
    }
}

static allot_status trace_alloc(void *self, uint64_t size, uint64_t *address)
{
    tracing *const device = self;
    allot_status status = begin(device, &device->segments);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_devptr ptr = {0};
    status = allot_device_alloc(device->wrapper.inner, size, &ptr);
    add_alloc(device, status, ptr, size, 0);
    *address = ptr.address;
    return end(device, status);
}

static allot_status trace_alloc_async(void *self, uint64_t stream, uint64_t size, uint64_t *address)
{
    tracing *const device = self;
    allot_status status = begin(device, &device->segments);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_devptr ptr = {0};
    status = allot_device_alloc_async(device->wrapper.inner, (allot_stream){stream}, size, &ptr);
    add_alloc(device, status, ptr, size, stream);
    *address = ptr.address;
    return end(device, status);
}

/** Record that a segment went: in the stream that it was allocated in, whichever it was freed in.
 */
static void add_free(tracing *self, allot_status status, uint64_t address, uint64_t size)
{
    const device_area *const segment = alloti_areas_at(&self->segments, address);
    if (status == ALLOT_STATUS_OK) {
        add(self, ALLOT_EVENT_SEGMENT_FREE, address, size, segment == NULL ? 0 : segment->value);
        remove_area(&self->segments, address);
    }
}

static allot_status trace_free(void *self, uint64_t address, uint64_t size)
{
    tracing *const device = self;
    allot_status status = begin(device, NULL);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = allot_device_free(device->wrapper.inner, (allot_devptr){address}, size);
    add_free(device, status, address, size);
    return end(device, status);
}

static allot_status trace_free_async(void *self, uint64_t stream, uint64_t address, uint64_t size)
{
    tracing *const device = self;
    allot_status status = begin(device, NULL);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = allot_device_free_async(device->wrapper.inner, (allot_stream){stream},
                                     (allot_devptr){address}, size);
    add_free(device, status, address, size);
    return end(device, status);
}

static allot_status trace_reserve(void *self, uint64_t size, uint64_t *address)
{
    tracing *const device = self;
    allot_status status = begin(device, &device->reservations);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_devptr ptr = {0};
    status = allot_device_reserve(device->wrapper.inner, size, &ptr);
    if (status == ALLOT_STATUS_OK) {
        add_area(&device->reservations, ptr.address, size, 0);
        *address = ptr.address;
    }
    return end(device, status);
}

static allot_status trace_unreserve(void *self, uint64_t address, uint64_t size)
{
    tracing *const device = self;
    pthread_mutex_lock(&device->mutex);
    const allot_status status =
        allot_device_unreserve(device->wrapper.inner, (allot_devptr){address}, size);
    if (status == ALLOT_STATUS_OK) {
        remove_area(&device->reservations, address);
    }
    return end(device, status);
}

static allot_status trace_memory_create(void *self, uint64_t size, uint64_t *memory)
{
    tracing *const device = self;
    allot_status status = begin(device, NULL);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_memory made = {0};
    status = allot_device_memory_create(device->wrapper.inner, size, &made);
    add_failure(device, status, size, 0);
    *memory = made.value;
    return end(device, status);
}

static allot_status trace_map(void *self, uint64_t address, uint64_t memory, uint64_t size)
{
    tracing *const device = self;
    allot_status status = begin(device, &device->maps);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = allot_device_map(device->wrapper.inner, (allot_devptr){address},
                              (allot_memory){memory}, size);
    if (status == ALLOT_STATUS_OK) {
        add(device, ALLOT_EVENT_SEGMENT_MAP, address, size, 0);
        add_area(&device->maps, address, size, 0);
    }
    return end(device, status);
}

static allot_status trace_unmap(void *self, uint64_t address, uint64_t size)
{
    tracing *const device = self;
    allot_status status = begin(device, NULL);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = allot_device_unmap(device->wrapper.inner, (allot_devptr){address}, size);
    if (status == ALLOT_STATUS_OK) {
        add(device, ALLOT_EVENT_SEGMENT_UNMAP, address, size, 0);
        remove_area(&device->maps, address);
    }
    return end(device, status);
}

static void destroy(void *self, bool is_forked)
{
    tracing *const device = self;
    alloti_areas_fini(&device->segments);
    alloti_areas_fini(&device->maps);
    alloti_areas_fini(&device->reservations);
    free(device->records);
    if (!is_forked) { /* where a thread that is gone may hold it */
        pthread_mutex_destroy(&device->mutex);
    }
    free(device);
}

allot_status allot_device_open_tracing(allot_device *inner, allot_device **out)
{
    if (inner == NULL || out == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a wrapper needs a device and a place to go");
    }
    tracing *const self = calloc(1, sizeof *self);
    if (self == NULL) {
        return alloti_fail_memory(sizeof *self);
    }
    self->wrapper = (device_wrapper){.inner = inner, .name = "tracing"};
    self->begin_ns = allot_device_clock_ns(inner);
    pthread_mutex_init(&self->mutex, NULL);
    alloti_areas_init(&self->segments);
    alloti_areas_init(&self->maps);
    alloti_areas_init(&self->reservations);
    allot_device_ops ops;
    alloti_forward_ops(inner, &ops);
    ops.destroy = destroy;
    ops.alloc = trace_alloc;
    ops.free = trace_free;
    if (ops.alloc_async != NULL) {
        ops.alloc_async = trace_alloc_async;
        ops.free_async = trace_free_async;
    }
    if (ops.reserve != NULL) {
        ops.reserve = trace_reserve;
        ops.unreserve = trace_unreserve;
        ops.memory_create = trace_memory_create;
        ops.map = trace_map;
        ops.unmap = trace_unmap;
    }
    const allot_status status = allot_device_create(&ops, self, out);
    if (status != ALLOT_STATUS_OK) {
        destroy(self, false);
    }
    return status;
}

/** What a trace is made with. */
typedef struct making {
    alloti_builder *builder;
    uint32_t device;
    uint32_t pool;
} making;

static allot_status build_event(const making *m, const record *r)
{
    alloti_event event = ALLOTI_EVENT_INIT;
    event.kind = r->kind;
    event.addr = r->address;
    event.size = r->size;
    event.time_ns = r->time_ns > INT64_MAX ? INT64_MAX : (int64_t)r->time_ns;
    event.pool = m->pool;
    const allot_status status = alloti_builder_intern_stream(m->builder, r->stream, &event.stream);
    return status == ALLOT_STATUS_OK ? alloti_builder_add_event(m->builder, m->device, &event)
                                     : status;
}

/** A segment that is one inactive block. */
static allot_status build_segment(const making *m, const device_area *area, bool is_expandable)
{
    allot_segment segment = {.address = area->address,
                             .total_size = area->size,
                             .device = m->device,
                             .pool = m->pool,
                             .stack = ALLOT_NONE,
                             .is_large = area->size > SMALL_MAX,
                             .is_expandable = is_expandable};
    const allot_block block = {.address = area->address,
                               .size = area->size,
                               .stack = ALLOT_NONE,
                               .context = ALLOT_NONE,
                               .metadata = ALLOT_NONE,
                               .state = ALLOT_BLOCK_INACTIVE};
    allot_status status = alloti_builder_intern_stream(m->builder, area->value, &segment.stream);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_add_segment(m->builder, &segment);
    }
    return status == ALLOT_STATUS_OK ? alloti_builder_add_block(m->builder, &block) : status;
}

static allot_status build_segments(const making *m, const tracing *self)
{
    allot_status status = ALLOT_STATUS_OK;
    const device_area *at = alloti_areas_first(&self->segments);
    for (; at != NULL && status == ALLOT_STATUS_OK; at = alloti_areas_next(&self->segments, at)) {
        status = build_segment(m, at, false);
    }
    return status;
}

/** Mapped memory side by side in one reservation is one segment. */
static allot_status build_maps(const making *m, const tracing *self)
{
    allot_status status = ALLOT_STATUS_OK;
    const device_area *at = alloti_areas_first(&self->maps);
    while (at != NULL && status == ALLOT_STATUS_OK) {
        const device_area *const range = alloti_areas_find(&self->reservations, at->address);
        device_area whole = *at;
        at = alloti_areas_next(&self->maps, at);
        while (at != NULL && at->address == whole.address + whole.size &&
               alloti_areas_find(&self->reservations, at->address) == range) {
            whole.size += at->size;
            at = alloti_areas_next(&self->maps, at);
        }
        status = build_segment(m, &whole, true);
    }
    return status;
}

static allot_status build(making *m, const tracing *self, allot_trace **out)
{
    allot_status status = alloti_builder_device(m->builder, ALLOT_MEMORY_DEVICE, 0, &m->device);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_intern_pool(m->builder, (allot_pool_id){0, 0}, &m->pool);
    }
    for (uint64_t i = 0; i < self->count && status == ALLOT_STATUS_OK; i++) {
        status = build_event(m, &self->records[i]);
    }
    if (status == ALLOT_STATUS_OK) {
        status = build_segments(m, self);
    }
    if (status == ALLOT_STATUS_OK) {
        status = build_maps(m, self);
    }
    alloti_builder_set_trait(m->builder, ALLOT_TRACE_HAS_ADDRESSES);
    alloti_builder_set_trait(m->builder, ALLOT_TRACE_HAS_REQUESTED);
    return status == ALLOT_STATUS_OK
               ? alloti_builder_finish(m->builder, ALLOT_TRACE_FORMAT_AUTO, out)
               : status;
}

allot_status allot_tracing_get_trace(allot_device *device, allot_trace **out)
{
    if (device->ops.destroy != destroy) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s does not record a trace", device->info.name);
    }
    allot_status status = alloti_device_check_fork(device);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    tracing *const self = device->self;
    making m = {.builder = NULL};
    status = alloti_builder_create(&m.builder);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    pthread_mutex_lock(&self->mutex);
    status = build(&m, self, out);
    pthread_mutex_unlock(&self->mutex);
    if (status != ALLOT_STATUS_OK) {
        alloti_builder_destroy(m.builder);
    }
    return status;
}
