/* SPDX-License-Identifier: MIT */
#include "standin/stream.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "standin/graph.h"
#include "standin/state.h"

static const uint64_t STREAM_MARK = UINT64_C(0x616c6c6f74737472);
enum { FLAG_NON_BLOCKING = 1 };

/* ---- finishing ---- */

/** Move the callbacks of a stream that are due to the list of those to run. */
static void collect_due(standin *state, standin_stream *stream)
{
    stream_state *const streams = &state->streams;
    uint64_t taken = 0;
    while (taken < stream->callback_count &&
           stream->callbacks[taken].number <= streams->finished[stream->slot]) {
        if (alloti_array_reserve(&streams->due, &streams->due_capacity, streams->due_count + 1,
                                 sizeof *streams->due) != ALLOT_STATUS_OK) {
            break; /* they stay due and are collected next time */
        }
        streams->due[streams->due_count++] = stream->callbacks[taken++];
    }
    if (taken != 0) {
        stream->callback_count -= taken;
        memmove(stream->callbacks, stream->callbacks + taken,
                (size_t)stream->callback_count * sizeof *stream->callbacks);
    }
}

static void finish_slot(standin *state, uint64_t slot, uint64_t number)
{
    stream_state *const streams = &state->streams;
    if (number > streams->finished[slot]) {
        streams->finished[slot] = number;
    }
    if (streams->streams[slot] != NULL && streams->streams[slot]->callback_count != 0) {
        collect_due(state, streams->streams[slot]);
    }
}

void stream_observe(standin *state, const stream_point *point)
{
    uint64_t *const observed = state->streams.observed;
    for (uint64_t i = 0; i < point->clock.count; i++) {
        if (point->clock.numbers[i] > observed[i]) {
            observed[i] = point->clock.numbers[i];
        }
    }
}

bool point_ask(standin *state, const stream_point *point)
{
    const bool is_finished = point_is_finished(state, point);
    if (is_finished && state->config.has_bytes) {
        stream_observe(state, point);
    }
    return is_finished;
}

/* This thread runs callbacks of the program, which may ask for anything but wait for themselves. */
static _Thread_local bool is_calling;

/** Callbacks before a point that another thread found due and runs have to have returned. */
static cuda_status wait_for_calls(standin *state, const stream_point *point)
{
    stream_point before = {0};
    if (state->streams.calling == 0 || is_calling) {
        return CUDA_OK;
    }
    if (point_copy(&before, point) != CUDA_OK) { /* it may be gone after the wait */
        return CUDA_OUT_OF_MEMORY;
    }
    for (uint64_t i = 0; i < before.clock.count; i++) {
        while (before.clock.numbers[i] != 0 && state->streams.places[i].calling != 0) {
            pthread_cond_wait(&state->queues.changed, &state->lock);
        }
    }
    point_fini(&before);
    return CUDA_OK;
}

cuda_status point_finish(standin *state, const stream_point *point)
{
    if (state->config.has_bytes) {
        const cuda_status status = queue_wait(state, point);
        return status == CUDA_OK ? state->broken : status;
    }
    for (uint64_t i = 0; i < point->clock.count; i++) {
        finish_slot(state, i, point->clock.numbers[i]);
    }
    return wait_for_calls(state, point);
}

cuda_status stream_synchronize(standin *state, standin_stream *stream)
{
    const uint32_t device = stream->device; /* the stream may be gone after the wait */
    const cuda_status status = point_finish(state, &stream->now);
    pool_trim_after_wait(state, device);
    return status;
}

cuda_status stream_synchronize_all(standin *state)
{
    cuda_status status = CUDA_OK;
    for (unsigned i = 0; i < state->config.device_count && status == CUDA_OK; i++) {
        status = stream_synchronize_device(state, i);
    }
    return status;
}

cuda_status stream_synchronize_device(standin *state, uint32_t device)
{
    stream_state *const streams = &state->streams;
    if (state->config.has_bytes) {
        const cuda_status status = queue_wait_device(state, device);
        pool_trim_after_wait(state, device);
        return status == CUDA_OK ? state->broken : status;
    }
    for (uint64_t i = 0; i < streams->slot_count; i++) {
        if (streams->devices[i] == device && streams->streams[i] != NULL) {
            (void)point_finish(state, &streams->streams[i]->now);
        } else if (streams->devices[i] == device) {
            streams->finished[i] = UINT64_MAX; /* destroyed: nothing is put on it any more */
        }
    }
    pool_trim_after_wait(state, device);
    return CUDA_OK;
}

bool stream_is_finished(standin *state, const standin_stream *stream)
{
    return point_ask(state, &stream->now);
}

/* ---- streams ---- */

static cuda_status add_slot(stream_state *streams, uint32_t device)
{
    const uint64_t need = streams->slot_count + 1;
    if (alloti_array_reserve(&streams->streams, &streams->slot_capacity, need, sizeof(void *)) !=
            ALLOT_STATUS_OK ||
        alloti_array_reserve(&streams->finished, &streams->finished_capacity, need,
                             sizeof *streams->finished) != ALLOT_STATUS_OK ||
        alloti_array_reserve(&streams->observed, &streams->observed_capacity, need,
                             sizeof *streams->observed) != ALLOT_STATUS_OK ||
        alloti_array_reserve(&streams->devices, &streams->device_capacity, need,
                             sizeof *streams->devices) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    streams->streams[streams->slot_count] = NULL;
    streams->finished[streams->slot_count] = 0;
    streams->observed[streams->slot_count] = 0;
    streams->devices[streams->slot_count] = device;
    streams->slot_count = need;
    return CUDA_OK;
}

/*
 * Streams lie in one array, by slot, and no place is used twice. Their handles ascend as streams
 * are made, and with them what a program orders by handle (PyTorch's cached blocks) is the same in
 * every run. A handle of a destroyed stream is told by its mark. Pages that are not touched cost
 * nothing.
 */
enum { STREAMS_MAX = 1 << 18 };

static bool have_places(stream_state *streams)
{
    if (streams->places == NULL) {
        streams->places = calloc(STREAMS_MAX, sizeof *streams->places);
        if (streams->places == NULL) {
            return false;
        }
    }
    return streams->slot_count < STREAMS_MAX;
}

cuda_status stream_create(standin *state, uint32_t device, unsigned flags, int priority,
                          standin_stream **out)
{
    stream_state *const streams = &state->streams;
    const cuda_status status = standin_may_fail(state);
    if (status != CUDA_OK) {
        return status;
    }
    if (!have_places(streams) || add_slot(streams, device) != CUDA_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    standin_stream *const stream = &streams->places[streams->slot_count - 1];
    *stream = (standin_stream){.mark = STREAM_MARK,
                               .id = ++streams->created,
                               .slot = (uint32_t)(streams->slot_count - 1),
                               .device = device,
                               .priority = priority,
                               .flags = flags};
    if (!clock_grow(&stream->now.clock, streams->slot_count)) {
        stream->mark = 0;
        return CUDA_OUT_OF_MEMORY;
    }
    streams->streams[stream->slot] = stream;
    streams->blocking += (flags & FLAG_NON_BLOCKING) == 0 ? 1 : 0;
    *out = stream;
    return CUDA_OK;
}

static void stream_empty(standin_stream *stream)
{
    if (stream == NULL) {
        return;
    }
    stream->mark = 0;
    point_fini(&stream->now);
    free(stream->callbacks);
    free(stream->tails);
}

cuda_status stream_destroy(standin *state, standin_stream *stream)
{
    if (state->streams.defaults[stream->device] == stream) {
        return CUDA_INVALID_HANDLE;
    }
    if (stream->callback_count != 0) {
        /* Their place is reached some time after this. */
        (void)point_finish(state, &stream->now);
    }
    state->streams.streams[stream->slot] = NULL;
    state->streams.blocking -= (stream->flags & FLAG_NON_BLOCKING) == 0 ? 1 : 0;
    stream_empty(stream);
    return CUDA_OK;
}

/** Whether a handle is the place of a stream that lives. */
static bool is_stream(const stream_state *streams, const void *handle)
{
    const uintptr_t first = (uintptr_t)streams->places;
    const uintptr_t offset = (uintptr_t)handle - first;
    return first != 0 && (uintptr_t)handle >= first &&
           offset < streams->slot_count * sizeof *streams->places &&
           offset % sizeof *streams->places == 0 &&
           ((const standin_stream *)handle)->mark == STREAM_MARK;
}

static cuda_status get_default(standin *state, standin_stream **place, standin_stream **out)
{
    if (*place == NULL) {
        const cuda_status status = stream_create(state, standin_this_thread()->device, 0, 0, place);
        if (status != CUDA_OK) {
            return status;
        }
    }
    *out = *place;
    return CUDA_OK;
}

cuda_status stream_get(standin *state, void *handle, standin_stream **out)
{
    enum { PER_THREAD = 2 };
    if (state->broken != CUDA_OK) {
        return state->broken;
    }
    if ((uintptr_t)handle > PER_THREAD) {
        if (!is_stream(&state->streams, handle)) {
            return rule_broken(state, NULL, CUDA_INVALID_HANDLE,
                               "%p is not a stream, or one that was destroyed", handle);
        }
        *out = handle;
        return CUDA_OK;
    }
    const uint32_t device = standin_this_thread()->device;
    return (uintptr_t)handle == PER_THREAD
               ? get_default(state, standin_thread_stream(device), out)
               : get_default(state, &state->streams.defaults[device], out);
}

/** The order that the default stream imposes on blocking streams of its device. */
static bool order_with_default(standin *state, standin_stream *stream)
{
    stream_state *const streams = &state->streams;
    standin_stream *const first = streams->defaults[stream->device];
    if ((stream->flags & FLAG_NON_BLOCKING) != 0 || streams->blocking < 2 || first == NULL) {
        return true;
    }
    if (stream != first) {
        return point_merge(&stream->now, &first->now);
    }
    for (uint64_t i = 0; i < streams->slot_count; i++) {
        const standin_stream *const other = streams->streams[i];
        if (other != NULL && other != first && other->device == first->device &&
            (other->flags & FLAG_NON_BLOCKING) == 0 && !point_merge(&first->now, &other->now)) {
            return false;
        }
    }
    return true;
}

bool stream_keeps_order(const standin *state)
{
    return state->config.events != STANDIN_EVENTS_INSTANT || state->streams.keeps_order;
}

/** Give the next piece of work its number. */
static cuda_status advance(standin *state, standin_stream *stream)
{
    standin_this_thread()->has_worked = true;
    const cuda_status status = standin_may_fail(state);
    if (status != CUDA_OK) {
        return status;
    }
    if (stream_keeps_order(state) && !order_with_default(state, stream)) {
        return CUDA_OUT_OF_MEMORY;
    }
    stream->now.tick = ++state->streams.tick;
    /* The clock of a stream covers its own slot from the start. */
    const uint64_t number =
        ++stream->now.clock.numbers[stream->slot]; // NOLINT(clang-analyzer-core.NullDereference)
    if (state->config.events == STANDIN_EVENTS_INSTANT) {
        state->streams.finished[stream->slot] = number;
    }
    return CUDA_OK;
}

cuda_status stream_work(standin *state, standin_stream *stream)
{
    /* A stream that was found is there. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    if (state->config.has_bytes || stream->capture != NULL) {
        standin_task nothing = {.kind = TASK_NOTHING};
        return stream_put(state, stream, &nothing);
    }
    return advance(state, stream);
}

static cuda_status put_in_queue(standin *state, standin_stream *stream, standin_task *task)
{
    if (queue_is_worker()) {
        task_fini(task);
        return rule_broken(state, NULL, CUDA_NOT_PERMITTED,
                           "a host function of a stream puts work on a stream");
    }
    cuda_status status = advance(state, stream);
    if (status == CUDA_OK) {
        status = task_check(state, stream, task);
        if (status == CUDA_OK) {
            status = queue_put(state, stream, task);
            if (status == CUDA_OK) {
                task_mark(state, stream, task); /* nothing runs before the lock is given back */
            }
        } else {
            task_fini(task);
        }
        if (status != CUDA_OK) {
            stream->now.clock.numbers[stream->slot]--; /* nobody will finish it */
        }
    } else {
        task_fini(task);
    }
    return status;
}

cuda_status stream_put(standin *state, standin_stream *stream, standin_task *task)
{
    standin_this_thread()->has_worked = true;
    if (stream->capture != NULL) { // as above: NOLINT(clang-analyzer-core.NullDereference)
        return graph_capture_work(stream, task);
    }
    if (state->config.has_bytes) {
        return put_in_queue(state, stream, task);
    }
    task_fini(task);
    return advance(state, stream);
}

void stream_work_on(standin *state, void *handle)
{
    standin_stream *stream = NULL;
    if (stream_get(state, handle, &stream) == CUDA_OK) {
        (void)stream_work(state, stream);
    }
}

cuda_status stream_call(standin *state, standin_stream *stream, const stream_callback *callback)
{
    if (stream->capture != NULL && callback->run == NULL) {
        return CUDA_CAPTURE_UNSUPPORTED;
    }
    if (stream->capture != NULL || state->config.has_bytes) {
        standin_task task = {.kind = TASK_CALL, .call = *callback};
        return stream_put(state, stream, &task);
    }
    if (alloti_array_reserve(&stream->callbacks, &stream->callback_capacity,
                             stream->callback_count + 1,
                             sizeof *stream->callbacks) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    const cuda_status status = stream_work(state, stream);
    if (status != CUDA_OK) {
        return status;
    }
    stream->callbacks[stream->callback_count] = *callback;
    stream->callbacks[stream->callback_count].number = stream->now.clock.numbers[stream->slot];
    stream->callbacks[stream->callback_count].slot = stream->slot;
    stream->callback_count++;
    collect_due(state, stream);
    return CUDA_OK;
}

static void count_calls(standin *state, const stream_callback *calls, uint64_t count, bool is_begun)
{
    for (uint64_t i = 0; i < count; i++) {
        if (calls[i].slot != ALLOT_NONE) {
            state->streams.places[calls[i].slot].calling += is_begun ? 1 : UINT64_MAX;
            state->streams.calling += is_begun ? 1 : UINT64_MAX;
        }
    }
}

void stream_run_due(standin *state)
{
    stream_state *const streams = &state->streams;
    stream_callback *const due = streams->due;
    const uint64_t count = streams->due_count;
    const bool is_nested = is_calling;
    streams->due = NULL;
    streams->due_count = 0;
    streams->due_capacity = 0;
    count_calls(state, due, count, true);
    pthread_mutex_unlock(&state->lock);
    is_calling = true;
    for (uint64_t i = 0; i < count; i++) {
        callback_run(&due[i]);
    }
    is_calling = is_nested;
    pthread_mutex_lock(&state->lock);
    count_calls(state, due, count, false);
    pthread_cond_broadcast(&state->queues.changed);
    pthread_mutex_unlock(&state->lock);
    free(due);
}
