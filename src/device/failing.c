/* SPDX-License-Identifier: MIT */
/*
 * A device that fails on request. Calls are counted and failed in one place, before they are handed
 * on. Events are objects of its own, so that they can be held back: an event is reached only after
 * so many queries. Within a stream the order stays: an event that is seen to be reached, or a
 * stream that was waited for, brings those before it along.
 */
#include <pthread.h>
#include <stdlib.h>

#include "core/options.h"
#include "core/random.h"
#include "core/slot.h"
#include "device/forward.h"

enum { FAILING_EVENT = 'f' };

#define CALL_BIT(name) (UINT64_C(1) << ALLOT_DEVICE_CALL_##name)

static const uint64_t RELEASING = CALL_BIT(FREE) | CALL_BIT(FREE_ASYNC) | CALL_BIT(UNRESERVE) |
                                  CALL_BIT(MEMORY_RELEASE) | CALL_BIT(UNMAP) |
                                  CALL_BIT(STREAM_DESTROY) | CALL_BIT(EVENT_DESTROY);
static const uint64_t ASKING = CALL_BIT(EVENT_QUERY) | CALL_BIT(MEMORY_INFO);
static const uint64_t ALLOCATING =
    CALL_BIT(ALLOC) | CALL_BIT(ALLOC_ASYNC) | CALL_BIT(MEMORY_CREATE);

typedef struct failing_event {
    uint64_t inner;
    uint64_t stream;   /**< Where it was recorded last. */
    uint64_t sequence; /**< Of that recording; 0: none yet. */
    uint64_t held;     /**< Queries that it is held back for. */
} failing_event;

typedef struct failing {
    device_wrapper wrapper;
    /* Guards everything below; never held while the inner device is called. */
    pthread_mutex_t mutex;
    allot_failing_options options;
    uint64_t random;
    uint64_t call_count;
    uint64_t failed_count;
    uint64_t sequence; /**< Recordings. */
    alloti_slots events;
} failing;

static bool is_due(failing *self, allot_device_call call)
{
    const allot_failing_options *const options = &self->options;
    const uint64_t mask = options->call_mask != 0 ? options->call_mask : ~(RELEASING | ASKING);
    if ((mask >> call & 1) == 0) {
        return false;
    }
    self->call_count++;
    const bool due = self->call_count == options->nth ||
                     (options->every != 0 && self->call_count % options->every == 0);
    self->failed_count += due;
    return due;
}

static allot_status fail_if_due(device_wrapper *wrapper, allot_device_call call)
{
    failing *const self = (failing *)wrapper;
    pthread_mutex_lock(&self->mutex);
    const bool due = is_due(self, call);
    const uint64_t number = self->call_count;
    allot_status status = self->options.status;
    pthread_mutex_unlock(&self->mutex);
    if (!due) {
        return ALLOT_STATUS_OK;
    }
    if (status == ALLOT_STATUS_OK) {
        status = (ALLOCATING >> call & 1) != 0 ? ALLOT_STATUS_DEVICE_MEMORY : ALLOT_STATUS_BACKEND;
    }
    return alloti_fail(status, "%s failed on request: call %llu", allot_device_call_name(call),
                       (unsigned long long)number);
}

/** The inner device's event behind a handle; one that something else made stands for itself. */
static uint64_t inner_event(failing *self, uint64_t handle)
{
    pthread_mutex_lock(&self->mutex);
    const failing_event *const found = alloti_slots_get(&self->events, FAILING_EVENT, handle);
    const uint64_t inner = found != NULL ? found->inner : handle;
    pthread_mutex_unlock(&self->mutex);
    return inner;
}

/** Let go of the events of a stream that were recorded up to a moment. The caller has the lock. */
static void reach(failing *self, uint64_t stream, uint64_t sequence)
{
    for (uint64_t i = 0; i < self->events.count; i++) {
        failing_event *const event = self->events.slots[i].object;
        if (event != NULL && event->stream == stream && event->sequence <= sequence) {
            event->held = 0;
        }
    }
}

/** The same for an event and those before it in its stream. */
static void reach_event(failing *self, uint64_t handle)
{
    pthread_mutex_lock(&self->mutex);
    const failing_event *const found = alloti_slots_get(&self->events, FAILING_EVENT, handle);
    if (found != NULL) {
        reach(self, found->stream, found->sequence);
    }
    pthread_mutex_unlock(&self->mutex);
}

/** Whether an event is still held back; one query is over. */
static bool hold_back(failing *self, uint64_t handle)
{
    pthread_mutex_lock(&self->mutex);
    failing_event *const found = alloti_slots_get(&self->events, FAILING_EVENT, handle);
    const bool is_held = found != NULL && found->held > 0;
    if (is_held) {
        found->held--;
    }
    pthread_mutex_unlock(&self->mutex);
    return is_held;
}

static allot_status enter_event(failing *self, uint64_t inner, uint64_t *out)
{
    failing_event *const event = calloc(1, sizeof *event);
    if (event == NULL) {
        return alloti_fail_memory(sizeof *event);
    }
    event->inner = inner;
    pthread_mutex_lock(&self->mutex);
    const uint64_t handle = alloti_slots_add(&self->events, FAILING_EVENT, event);
    pthread_mutex_unlock(&self->mutex);
    if (handle == 0) {
        free(event);
        return alloti_fail_memory(sizeof *event);
    }
    *out = handle;
    return ALLOT_STATUS_OK;
}

static allot_status event_create(void *self, uint64_t *event)
{
    failing *const device = self;
    allot_event inner = {0};
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_EVENT_CREATE);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_event_create(device->wrapper.inner, &inner);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = enter_event(device, inner.value, event);
    if (status != ALLOT_STATUS_OK) {
        (void)!allot_device_event_destroy(device->wrapper.inner, inner);
    }
    return status;
}

static allot_status event_destroy(void *self, uint64_t event)
{
    failing *const device = self;
    const allot_event inner = {inner_event(device, event)};
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_EVENT_DESTROY);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_event_destroy(device->wrapper.inner, inner);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    pthread_mutex_lock(&device->mutex);
    failing_event *const found = alloti_slots_get(&device->events, FAILING_EVENT, event);
    if (found != NULL) {
        alloti_slots_remove(&device->events, event);
        free(found);
    }
    pthread_mutex_unlock(&device->mutex);
    return ALLOT_STATUS_OK;
}

static allot_status event_record(void *self, uint64_t event, uint64_t stream)
{
    failing *const device = self;
    const allot_event inner = {inner_event(device, event)};
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_EVENT_RECORD);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_event_record(device->wrapper.inner, inner, (allot_stream){stream});
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    pthread_mutex_lock(&device->mutex);
    failing_event *const found = alloti_slots_get(&device->events, FAILING_EVENT, event);
    if (found != NULL) {
        found->stream = stream;
        found->sequence = ++device->sequence;
        found->held = alloti_random(&device->random) % ((uint64_t)device->options.event_delay + 1);
    }
    pthread_mutex_unlock(&device->mutex);
    return ALLOT_STATUS_OK;
}

static allot_status event_query(void *self, uint64_t event)
{
    failing *const device = self;
    const allot_event inner = {inner_event(device, event)};
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_EVENT_QUERY);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (hold_back(device, event)) {
        return ALLOT_STATUS_BUSY;
    }
    status = allot_device_event_query(device->wrapper.inner, inner);
    if (status == ALLOT_STATUS_OK) {
        reach_event(device, event);
    }
    return status;
}

static allot_status event_synchronize(void *self, uint64_t event)
{
    failing *const device = self;
    const allot_event inner = {inner_event(device, event)};
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_EVENT_SYNCHRONIZE);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_event_synchronize(device->wrapper.inner, inner);
    }
    if (status == ALLOT_STATUS_OK) {
        reach_event(device, event);
    }
    return status;
}

static allot_status stream_wait(void *self, uint64_t stream, uint64_t event)
{
    failing *const device = self;
    const allot_event inner = {inner_event(device, event)};
    const allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_STREAM_WAIT);
    return status == ALLOT_STATUS_OK
               ? allot_device_stream_wait(device->wrapper.inner, (allot_stream){stream}, inner)
               : status;
}

static allot_status stream_synchronize(void *self, uint64_t stream)
{
    failing *const device = self;
    allot_status status = alloti_forward_before(self, ALLOT_DEVICE_CALL_STREAM_SYNCHRONIZE);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    pthread_mutex_lock(&device->mutex);
    const uint64_t sequence = device->sequence;
    pthread_mutex_unlock(&device->mutex);
    status = allot_device_stream_synchronize(device->wrapper.inner, (allot_stream){stream});
    if (status == ALLOT_STATUS_OK) {
        pthread_mutex_lock(&device->mutex);
        reach(device, stream, sequence);
        pthread_mutex_unlock(&device->mutex);
    }
    return status;
}

static void destroy(void *self, bool is_forked)
{
    failing *const device = self;
    for (uint64_t i = 0; i < device->events.count; i++) {
        free(device->events.slots[i].object);
    }
    alloti_slots_fini(&device->events);
    if (!is_forked) { /* where a thread that is gone may hold it */
        pthread_mutex_destroy(&device->mutex);
    }
    free(device);
}

static void arm(failing *self, const allot_failing_options *options)
{
    self->options = *options;
    self->random = options->seed;
    self->call_count = 0;
    self->failed_count = 0;
}

allot_status allot_device_open_failing(allot_device *inner, const allot_failing_options *options,
                                       allot_device **out)
{
    if (inner == NULL || out == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a wrapper needs a device and a place to go");
    }
    allot_failing_options taken;
    allot_status status = alloti_options_take(options, sizeof taken, &taken);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    failing *const self = calloc(1, sizeof *self);
    if (self == NULL) {
        return alloti_fail_memory(sizeof *self);
    }
    self->wrapper = (device_wrapper){.inner = inner, .name = "failing", .before = fail_if_due};
    pthread_mutex_init(&self->mutex, NULL);
    arm(self, &taken);
    allot_device_ops ops;
    alloti_forward_ops(inner, &ops);
    ops.destroy = destroy;
    ops.event_create = event_create;
    ops.event_destroy = event_destroy;
    ops.event_record = event_record;
    ops.event_query = event_query;
    ops.event_synchronize = event_synchronize;
    ops.stream_wait = stream_wait;
    ops.stream_synchronize = stream_synchronize;
    status = allot_device_create(&ops, self, out);
    if (status != ALLOT_STATUS_OK) {
        destroy(self, false);
    }
    return status;
}

static bool is_failing(const allot_device *device)
{
    return device->ops.event_query == event_query;
}

allot_status allot_failing_arm(allot_device *device, const allot_failing_options *options)
{
    if (!is_failing(device)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s does not fail on request", device->info.name);
    }
    allot_failing_options taken;
    allot_status status = alloti_device_check_fork(device);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_options_take(options, sizeof taken, &taken);
    }
    if (status == ALLOT_STATUS_OK) {
        failing *const self = device->self;
        pthread_mutex_lock(&self->mutex);
        arm(self, &taken);
        pthread_mutex_unlock(&self->mutex);
    }
    return status;
}

/** What is behind a failing device that may be asked; NULL. */
static failing *open_up(const allot_device *device)
{
    return is_failing(device) && !alloti_device_is_forked(device) ? device->self : NULL;
}

static uint64_t read_count(failing *self, const uint64_t *count)
{
    pthread_mutex_lock(&self->mutex);
    const uint64_t value = *count;
    pthread_mutex_unlock(&self->mutex);
    return value;
}

uint64_t allot_failing_call_count(const allot_device *device)
{
    failing *const self = open_up(device);
    return self == NULL ? 0 : read_count(self, &self->call_count);
}

uint64_t allot_failing_failed_count(const allot_device *device)
{
    failing *const self = open_up(device);
    return self == NULL ? 0 : read_count(self, &self->failed_count);
}
