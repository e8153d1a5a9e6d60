/* SPDX-License-Identifier: MIT */
/* Making devices of tables of operations, closing them, and what is known of them. */
#include "device/device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/fork.h"
#include "core/options.h"
#include "core/size_math.h"

const char *allot_backend_name(allot_backend backend)
{
    switch (backend) {
#define BACKEND_NAME(name, spelling, text)                                                         \
    case ALLOT_BACKEND_##name:                                                                     \
        return spelling;
        ALLOT_BACKEND_LIST(BACKEND_NAME)
#undef BACKEND_NAME
    case ALLOT_BACKEND_COUNT:
        break;
    }
    return "unknown";
}

const char *allot_backend_text(allot_backend backend)
{
    switch (backend) {
#define BACKEND_TEXT(name, spelling, text)                                                         \
    case ALLOT_BACKEND_##name:                                                                     \
        return text;
        ALLOT_BACKEND_LIST(BACKEND_TEXT)
#undef BACKEND_TEXT
    case ALLOT_BACKEND_COUNT:
        break;
    }
    return "unknown";
}

const char *allot_device_call_name(allot_device_call call)
{
    switch (call) {
#define CALL_NAME(name, spelling)                                                                  \
    case ALLOT_DEVICE_CALL_##name:                                                                 \
        return spelling;
        ALLOT_DEVICE_CALL_LIST(CALL_NAME)
#undef CALL_NAME
    case ALLOT_DEVICE_CALL_COUNT:
        break;
    }
    return "unknown";
}

allot_status allot_backend_fail(allot_status status, const char *format, ...)
{
    char text[ALLOTI_DETAIL_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return alloti_fail(status, "%s", text);
}

/** Operations that every backend has, and whether this one does. */
static allot_status check_required(const allot_device_ops *ops)
{
    const struct {
        const char *name;
        bool is_there;
    } required[] = {
        {"destroy", ops->destroy != NULL},
        {"get_info", ops->get_info != NULL},
        {"memory_info", ops->memory_info != NULL},
        {"alloc", ops->alloc != NULL},
        {"free", ops->free != NULL},
        {"stream_create", ops->stream_create != NULL},
        {"stream_destroy", ops->stream_destroy != NULL},
        {"stream_wait", ops->stream_wait != NULL},
        {"stream_synchronize", ops->stream_synchronize != NULL},
        {"event_create", ops->event_create != NULL},
        {"event_destroy", ops->event_destroy != NULL},
        {"event_record", ops->event_record != NULL},
        {"event_query", ops->event_query != NULL},
        {"event_synchronize", ops->event_synchronize != NULL},
        {"copy", ops->copy != NULL},
        {"fill", ops->fill != NULL},
        {"write", ops->write != NULL},
        {"read", ops->read != NULL},
    };
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        if (!required[i].is_there) {
            return alloti_fail(ALLOT_STATUS_INVALID, "the backend lacks the operation %s",
                               required[i].name);
        }
    }
    return ALLOT_STATUS_OK;
}

/** Groups are there whole or not at all. */
static allot_status check_groups(const allot_device_ops *ops)
{
    const int async = (ops->alloc_async != NULL) + (ops->free_async != NULL);
    const int virtual = (ops->reserve != NULL) + (ops->unreserve != NULL) +
                        (ops->memory_create != NULL) + (ops->memory_release != NULL) +
                        (ops->map != NULL) + (ops->unmap != NULL);
    if (async == 1) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "the backend has one of alloc_async and free_async, not both");
    }
    if (virtual != 0 && virtual != 6) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "the backend has %d of the 6 operations of virtual memory", virtual);
    }
    return ALLOT_STATUS_OK;
}

static allot_status check_info(const allot_device *device)
{
    const allot_device_info *const info = &device->info;
    if (!alloti_is_pow2(info->align)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s: alignment %llu is no power of 2", info->name,
                           (unsigned long long)info->align);
    }
    if ((info->granule != 0) != (device->ops.reserve != NULL) ||
        (info->granule != 0 && !alloti_is_pow2(info->granule))) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "%s: a granule of %llu bytes does not fit its virtual memory",
                           info->name, (unsigned long long)info->granule);
    }
    if (info->page != 0 && !alloti_is_pow2(info->page)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s: a page of %llu bytes is no power of 2",
                           info->name, (unsigned long long)info->page);
    }
    return ALLOT_STATUS_OK;
}

static void read_info(allot_device *device)
{
    allot_device_info *const info = &device->info;
    device->ops.get_info(device->self, info);
    info->struct_size = sizeof *info;
    info->has_async_alloc = device->ops.alloc_async != NULL;
    info->has_batch_copy = device->ops.copy_batch != NULL;
}

allot_status allot_device_create(const allot_device_ops *ops, void *self, allot_device **out)
{
    if (ops == NULL || out == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a device needs operations and a place to go");
    }
    allot_device *const device = calloc(1, sizeof *device);
    if (device == NULL) {
        return alloti_fail_memory(sizeof *device);
    }
    device->self = self;
    device->fork_generation = alloti_fork_generation();
    allot_status status = alloti_options_take(ops, sizeof device->ops, &device->ops);
    if (status == ALLOT_STATUS_OK) {
        status = check_required(&device->ops);
    }
    if (status == ALLOT_STATUS_OK) {
        status = check_groups(&device->ops);
    }
    if (status == ALLOT_STATUS_OK) {
        read_info(device);
        status = check_info(device);
    }
    if (status != ALLOT_STATUS_OK) {
        free(device);
        return status;
    }
    *out = device;
    return ALLOT_STATUS_OK;
}

void allot_device_destroy(allot_device *device)
{
    if (device == NULL) {
        return;
    }
    device->ops.destroy(device->self, alloti_device_is_forked(device));
    free(device);
}

void allot_device_get_info(const allot_device *device, allot_device_info *out)
{
    *out = device->info;
}

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void allot_device_get_counts(const allot_device *device, allot_device_counts *out)
{
    *out = (allot_device_counts){
        .struct_size = sizeof *out,
        .size_allocated = get(&device->size_allocated),
        .size_created = get(&device->size_created),
        .size_reserved = get(&device->size_reserved),
        .size_copied = get(&device->size_copied),
        .live_count = get(&device->live_count),
    };
    for (size_t i = 0; i < ALLOT_DEVICE_CALL_COUNT; i++) {
        out->calls[i] = get(&device->calls[i]);
        out->failures[i] = get(&device->failures[i]);
    }
}
