/* SPDX-License-Identifier: MIT */
#include "device/blind_device.h"

#include <stdlib.h>

#include "device/forward.h"

static void destroy(void *self, bool is_forked)
{
    (void)is_forked;
    free(self);
}

static allot_status stream_wait(void *self, uint64_t stream, uint64_t event)
{
    (void)self;
    (void)stream;
    (void)event;
    return ALLOT_STATUS_OK;
}

static allot_status event_query(void *self, uint64_t event)
{
    (void)self;
    (void)event;
    return ALLOT_STATUS_OK;
}

allot_status blind_device_open(allot_device *inner, blindness kind, allot_device **out)
{
    device_wrapper *const self = calloc(1, sizeof *self);
    if (self == NULL) {
        return ALLOT_STATUS_HOST_MEMORY;
    }
    *self = (device_wrapper){.inner = inner, .name = "blind"};
    allot_device_ops ops;
    alloti_forward_ops(inner, &ops);
    ops.destroy = destroy;
    if (kind == BLIND_TO_WAITS) {
        ops.stream_wait = stream_wait;
    } else {
        ops.event_query = event_query;
    }
    const allot_status status = allot_device_create(&ops, self, out);
    if (status != ALLOT_STATUS_OK) {
        free(self);
    }
    return status;
}
