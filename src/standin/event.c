/* SPDX-License-Identifier: MIT */
/* Events; described in stream.h. */
#include <stdlib.h>

#include "standin/graph.h"
#include "standin/state.h"

cuda_status event_create(standin *state, uint32_t device, unsigned flags, standin_event **out)
{
    const cuda_status status = standin_may_fail(state);
    if (status != CUDA_OK) {
        return status;
    }
    standin_event *const event = calloc(1, sizeof *event);
    if (event == NULL) {
        return CUDA_OUT_OF_MEMORY;
    }
    *event = (standin_event){
        .handle = slot_add(&state->events, SLOT_EVENT, event), .device = device, .flags = flags};
    if (event->handle == NULL) {
        free(event);
        return CUDA_OUT_OF_MEMORY;
    }
    *out = event;
    return CUDA_OK;
}

void event_destroy(standin *state, standin_event *event)
{
    slot_remove(&state->events, event->handle);
    graph_capture_let_go(event->capture);
    point_fini(&event->at);
    free(event->tails);
    free(event);
}

standin_event *event_get(const standin *state, const void *handle)
{
    return slot_get(&state->events, SLOT_EVENT, handle);
}

cuda_status event_record(standin *state, standin_event *event, standin_stream *stream)
{
    if (event->device != stream->device) {
        return rule_broken(state, NULL, CUDA_INVALID_HANDLE,
                           "an event of device %u is recorded in a stream of device %u",
                           (unsigned)event->device, (unsigned)stream->device);
    }
    event->is_recorded = true;
    if (stream->capture != NULL) {
        return graph_capture_record(event, stream);
    }
    graph_capture_let_go(event->capture);
    event->capture = NULL;
    if (!stream_keeps_order(state)) {
        return CUDA_OK;
    }
    const cuda_status status = stream_work(state, stream);
    return status != CUDA_OK ? status : point_copy(&event->at, &stream->now);
}

cuda_status event_wait(standin *state, standin_event *event, standin_stream *stream)
{
    if (event->capture != NULL && graph_capture_is_active(event->capture)) {
        return graph_capture_join(event, stream);
    }
    if (stream->capture != NULL) {
        return event->is_recorded ? CUDA_CAPTURE_MERGE : CUDA_OK;
    }
    if (!event->is_recorded || !stream_keeps_order(state)) {
        return CUDA_OK;
    }
    return point_merge(&stream->now, &event->at) ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

cuda_status event_query(standin *state, const standin_event *event)
{
    if (event->capture != NULL && graph_capture_is_active(event->capture)) {
        return CUDA_CAPTURED_EVENT;
    }
    if (state->broken != CUDA_OK) {
        return state->broken;
    }
    return !event->is_recorded || point_ask(state, &event->at) ? CUDA_OK : CUDA_NOT_READY;
}

cuda_status event_synchronize(standin *state, const standin_event *event)
{
    if (event->capture != NULL && graph_capture_is_active(event->capture)) {
        return CUDA_CAPTURED_EVENT;
    }
    return point_finish(state, &event->at);
}
