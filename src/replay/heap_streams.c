/* SPDX-License-Identifier: MIT */
/* Streams of the simulated device for those of the recording. */
#include "core/array.h"
#include "replay/model_heap.h"

static allot_status add_stream(alloti_heap_model *self, uint64_t recorded, allot_stream *out)
{
    allot_status status =
        alloti_array_reserve(&self->streams, &self->streams_capacity,
                             (uint64_t)self->stream_count + 1, sizeof *self->streams);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_map64_set(&self->stream_numbers, recorded, self->stream_count);
    }
    allot_stream fresh = {0};
    if (status == ALLOT_STATUS_OK && recorded != 0) {
        status = allot_device_stream_create(self->device, &fresh);
    }
    if (status == ALLOT_STATUS_OK) {
        self->streams[self->stream_count++] = fresh;
        *out = fresh;
    }
    return status;
}

allot_status alloti_heap_stream(alloti_heap_model *self, uint64_t recorded, allot_stream *out)
{
    const uint32_t known = alloti_map64_get(&self->stream_numbers, recorded);
    if (known < self->stream_count) {
        *out = self->streams[known];
        return ALLOT_STATUS_OK;
    }
    return add_stream(self, recorded, out);
}
