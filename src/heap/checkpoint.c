/* SPDX-License-Identifier: MIT */
#include "heap/checkpoint.h"

#include "heap/pending.h"

/** Whether the checkpoint under way was reached. */
static allot_status query(allot_heap *heap, heap_stream *stream)
{
    const allot_status status = allot_device_event_query(heap->device, stream->checkpoint);
    if (status == ALLOT_STATUS_OK) {
        stream->reached = stream->epoch;
        stream->has_checkpoint = false;
        alloti_event_put(heap, stream->checkpoint);
    }
    return status == ALLOT_STATUS_BUSY ? ALLOT_STATUS_OK : status;
}

/** Set one; epochs begin at 0, so that what was never freed is done with after the first. */
static allot_status set(allot_heap *heap, heap_stream *stream)
{
    allot_event event = {0};
    allot_status status = alloti_event_take(heap, &event);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = allot_device_event_record(heap->device, event, stream->stream);
    if (status != ALLOT_STATUS_OK) {
        alloti_event_put(heap, event);
        return status;
    }
    stream->checkpoint = event;
    stream->has_checkpoint = true;
    stream->epoch++;
    return ALLOT_STATUS_OK;
}

allot_status alloti_checkpoint_look(allot_heap *heap, uint32_t stream)
{
    heap_stream *const at = heap->streams[stream];
    allot_status status = ALLOT_STATUS_OK;
    if (at->is_ended) {
        return status;
    }
    if (at->has_checkpoint) {
        status = query(heap, at);
    }
    if (status == ALLOT_STATUS_OK && !at->has_checkpoint) {
        status = set(heap, at);
        if (status == ALLOT_STATUS_OK) {
            status = query(heap, at);
        }
    }
    return status;
}

void alloti_checkpoint_pass(allot_heap *heap, uint32_t stream)
{
    heap_stream *const at = heap->streams[stream];
    if (at->has_checkpoint) {
        at->has_checkpoint = false;
        alloti_event_put(heap, at->checkpoint);
    }
    at->reached = ++at->epoch;
}
