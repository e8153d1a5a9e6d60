/* SPDX-License-Identifier: MIT */
/* The clocks of a simulated device: of the host, of streams, of events. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/size_math.h"
#include "device/simulated.h"

uint64_t alloti_simulated_later(uint64_t time_ns, uint64_t by_ns)
{
    uint64_t sum = UINT64_MAX;
    return alloti_add(time_ns, by_ns, &sum) ? sum : UINT64_MAX;
}

void alloti_simulated_wait(simulated *self, uint64_t time_ns)
{
    self->host_ns = time_ns > self->host_ns ? time_ns : self->host_ns;
}

void alloti_simulated_begin(simulated *self, allot_device_call call)
{
    pthread_mutex_lock(&self->mutex);
    self->host_ns = alloti_simulated_later(self->host_ns, self->costs.calls[call].call_ns);
}

/** What a call takes for its size. */
static uint64_t cost_by_size(const simulated *self, allot_device_call call, uint64_t size)
{
    const simulated_call_cost *const cost = &self->costs.calls[call];
    const double gib = (double)size / (double)(UINT64_C(1) << 30);
    const uint64_t granules = size / self->info.granule;
    return alloti_to_u64((double)granules * (double)cost->granule_ns + gib * (double)cost->gib_ns);
}

allot_status alloti_simulated_end(simulated *self, allot_device_call call, uint64_t size,
                                  allot_status status)
{
    if (status == ALLOT_STATUS_OK) {
        self->host_ns = alloti_simulated_later(self->host_ns, cost_by_size(self, call, size));
    }
    pthread_mutex_unlock(&self->mutex);
    return status;
}

uint64_t alloti_simulated_clock_ns(void *self)
{
    simulated *const device = self;
    pthread_mutex_lock(&device->mutex);
    const uint64_t now = device->host_ns;
    pthread_mutex_unlock(&device->mutex);
    return now;
}

/** A stream by its handle, which is not that of the default stream. */
static allot_status find_made_stream(const simulated *self, uint64_t handle, simulated_stream **out)
{
    simulated_stream *const found = alloti_slots_get(&self->streams, SIMULATED_STREAM, handle);
    if (found == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s: there is no stream %#" PRIx64,
                           self->info.name, handle);
    }
    *out = found;
    return ALLOT_STATUS_OK;
}

static allot_status find_stream(simulated *self, uint64_t handle, simulated_stream **out)
{
    if (handle == 0) {
        *out = &self->stream_default;
        return ALLOT_STATUS_OK;
    }
    return find_made_stream(self, handle, out);
}

static allot_status find_event(const simulated *self, uint64_t handle, simulated_event **out)
{
    simulated_event *const found = alloti_slots_get(&self->events, SIMULATED_EVENT, handle);
    if (found == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s: there is no event %#" PRIx64, self->info.name,
                           handle);
    }
    *out = found;
    return ALLOT_STATUS_OK;
}

/** Enter a zeroed object of `size` bytes. */
static allot_status create(alloti_slots *slots, uint8_t kind, size_t size, uint64_t *out)
{
    void *const object = calloc(1, size);
    const uint64_t handle = object == NULL ? 0 : alloti_slots_add(slots, kind, object);
    if (handle == 0) {
        free(object);
        return alloti_fail_memory(size);
    }
    *out = handle;
    return ALLOT_STATUS_OK;
}

allot_status alloti_simulated_stream_create(void *self, uint64_t *stream)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_STREAM_CREATE);
    const allot_status status =
        create(&device->streams, SIMULATED_STREAM, sizeof(simulated_stream), stream);
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_STREAM_CREATE, 0, status);
}

allot_status alloti_simulated_stream_destroy(void *self, uint64_t stream)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_STREAM_DESTROY);
    simulated_stream *found = NULL;
    const allot_status status = find_made_stream(device, stream, &found);
    if (status == ALLOT_STATUS_OK) {
        alloti_slots_remove(&device->streams, stream);
        free(found);
    }
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_STREAM_DESTROY, 0, status);
}

/** A stream is busy from when it can begin for so long. */
static void run(simulated *self, simulated_stream *stream, uint64_t time_ns)
{
    const uint64_t begin = stream->end_ns > self->host_ns ? stream->end_ns : self->host_ns;
    stream->end_ns = alloti_simulated_later(begin, time_ns);
    self->end_ns = stream->end_ns > self->end_ns ? stream->end_ns : self->end_ns;
}

allot_status alloti_simulated_stream_wait(void *self, uint64_t stream, uint64_t event)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_STREAM_WAIT);
    simulated_stream *waiting = NULL;
    simulated_event *awaited = NULL;
    allot_status status = find_stream(device, stream, &waiting);
    if (status == ALLOT_STATUS_OK) {
        status = find_event(device, event, &awaited);
    }
    if (status == ALLOT_STATUS_OK && awaited->end_ns > waiting->end_ns) {
        waiting->end_ns = awaited->end_ns;
    }
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_STREAM_WAIT, 0, status);
}

allot_status alloti_simulated_stream_synchronize(void *self, uint64_t stream)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_STREAM_SYNCHRONIZE);
    simulated_stream *found = NULL;
    const allot_status status = find_stream(device, stream, &found);
    if (status == ALLOT_STATUS_OK) {
        alloti_simulated_wait(device, found->end_ns);
    }
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_STREAM_SYNCHRONIZE, 0, status);
}

allot_status alloti_simulated_event_create(void *self, uint64_t *event)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_EVENT_CREATE);
    const allot_status status =
        create(&device->events, SIMULATED_EVENT, sizeof(simulated_event), event);
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_EVENT_CREATE, 0, status);
}

allot_status alloti_simulated_event_destroy(void *self, uint64_t event)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_EVENT_DESTROY);
    simulated_event *found = NULL;
    const allot_status status = find_event(device, event, &found);
    if (status == ALLOT_STATUS_OK) {
        alloti_slots_remove(&device->events, event);
        free(found);
    }
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_EVENT_DESTROY, 0, status);
}

allot_status alloti_simulated_event_record(void *self, uint64_t event, uint64_t stream)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_EVENT_RECORD);
    simulated_stream *recorded = NULL;
    simulated_event *found = NULL;
    allot_status status = find_stream(device, stream, &recorded);
    if (status == ALLOT_STATUS_OK) {
        status = find_event(device, event, &found);
    }
    if (status == ALLOT_STATUS_OK) {
        found->end_ns = recorded->end_ns;
    }
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_EVENT_RECORD, 0, status);
}

allot_status alloti_simulated_event_query(void *self, uint64_t event)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_EVENT_QUERY);
    simulated_event *found = NULL;
    allot_status status = find_event(device, event, &found);
    if (status == ALLOT_STATUS_OK && found->end_ns > device->host_ns) {
        status = ALLOT_STATUS_BUSY;
    }
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_EVENT_QUERY, 0, status);
}

allot_status alloti_simulated_event_synchronize(void *self, uint64_t event)
{
    simulated *const device = self;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_EVENT_SYNCHRONIZE);
    simulated_event *found = NULL;
    const allot_status status = find_event(device, event, &found);
    if (status == ALLOT_STATUS_OK) {
        alloti_simulated_wait(device, found->end_ns);
    }
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_EVENT_SYNCHRONIZE, 0, status);
}

/** What moving bytes takes of a stream. */
static uint64_t time_of(const simulated *self, uint64_t size, uint64_t bytes_per_s)
{
    const uint64_t moving =
        bytes_per_s == 0 ? 0 : alloti_to_u64((double)size * 1e9 / (double)bytes_per_s);
    return alloti_simulated_later(self->costs.copy_latency_ns, moving);
}

/** Work on `size` bytes at one address, and at another that is not 0. */
static allot_status move_bytes(simulated *self, allot_device_call call, uint64_t stream,
                               uint64_t size, const uint64_t addresses[2], uint64_t bytes_per_s)
{
    alloti_simulated_begin(self, call);
    simulated_stream *found = NULL;
    allot_status status = find_stream(self, stream, &found);
    for (size_t i = 0; i < 2 && status == ALLOT_STATUS_OK; i++) {
        if (addresses[i] != 0) {
            status = alloti_simulated_check_access(self, addresses[i], size);
        }
    }
    if (status == ALLOT_STATUS_OK) {
        run(self, found, time_of(self, size, bytes_per_s));
    }
    return alloti_simulated_end(self, call, size, status);
}

allot_status alloti_simulated_copy(void *self, uint64_t stream, uint64_t dst, uint64_t src,
                                   uint64_t size)
{
    simulated *const device = self;
    return move_bytes(device, ALLOT_DEVICE_CALL_COPY, stream, size, (const uint64_t[2]){dst, src},
                      device->costs.copy_bytes_per_s);
}

allot_status alloti_simulated_fill(void *self, uint64_t stream, uint64_t dst, uint8_t value,
                                   uint64_t size)
{
    (void)value;
    simulated *const device = self;
    return move_bytes(device, ALLOT_DEVICE_CALL_FILL, stream, size, (const uint64_t[2]){dst, 0},
                      device->costs.fill_bytes_per_s);
}

allot_status alloti_simulated_write(void *self, uint64_t stream, uint64_t dst, const void *src,
                                    uint64_t size)
{
    (void)src;
    simulated *const device = self;
    return move_bytes(device, ALLOT_DEVICE_CALL_WRITE, stream, size, (const uint64_t[2]){dst, 0},
                      device->costs.link_bytes_per_s);
}

allot_status alloti_simulated_read(void *self, uint64_t stream, void *dst, uint64_t src,
                                   uint64_t size)
{
    (void)dst;
    simulated *const device = self;
    return move_bytes(device, ALLOT_DEVICE_CALL_READ, stream, size, (const uint64_t[2]){src, 0},
                      device->costs.link_bytes_per_s);
}

static allot_status check_batch(const simulated *self, const allot_copy *copies, size_t count,
                                uint64_t *total)
{
    allot_status status = ALLOT_STATUS_OK;
    for (size_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        status = alloti_simulated_check_access(self, copies[i].dst.address, copies[i].size);
        if (status == ALLOT_STATUS_OK) {
            status = alloti_simulated_check_access(self, copies[i].src.address, copies[i].size);
        }
        *total = alloti_simulated_later(*total, copies[i].size);
    }
    return status;
}

allot_status alloti_simulated_copy_batch(void *self, uint64_t stream, const allot_copy *copies,
                                         size_t count)
{
    simulated *const device = self;
    uint64_t total = 0;
    alloti_simulated_begin(device, ALLOT_DEVICE_CALL_COPY_BATCH);
    simulated_stream *found = NULL;
    allot_status status = find_stream(device, stream, &found);
    if (status == ALLOT_STATUS_OK) {
        status = check_batch(device, copies, count, &total);
    }
    if (status == ALLOT_STATUS_OK) {
        run(device, found, time_of(device, total, device->costs.copy_bytes_per_s));
    }
    return alloti_simulated_end(device, ALLOT_DEVICE_CALL_COPY_BATCH, 0, status);
}

/** The simulation behind a device, if that is one, and may be used. */
static allot_status open_up(allot_device *device, simulated **out)
{
    if (device->ops.alloc != alloti_simulated_alloc) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "%s: its time cannot be set",
                           device->info.name);
    }
    *out = device->self;
    return alloti_device_check_fork(device);
}

allot_status allot_simulated_run(allot_device *device, allot_stream stream, uint64_t time_ns)
{
    simulated *self = NULL;
    allot_status status = open_up(device, &self);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    simulated_stream *found = NULL;
    pthread_mutex_lock(&self->mutex);
    status = find_stream(self, stream.value, &found);
    if (status == ALLOT_STATUS_OK) {
        run(self, found, time_ns);
    }
    pthread_mutex_unlock(&self->mutex);
    return status;
}

allot_status allot_simulated_advance(allot_device *device, uint64_t time_ns)
{
    simulated *self = NULL;
    const allot_status status = open_up(device, &self);
    if (status == ALLOT_STATUS_OK) {
        pthread_mutex_lock(&self->mutex);
        self->host_ns = alloti_simulated_later(self->host_ns, time_ns);
        pthread_mutex_unlock(&self->mutex);
    }
    return status;
}
