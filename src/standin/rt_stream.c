/* SPDX-License-Identifier: MIT */
/* CUDA runtime: streams, events, callbacks. */
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "standin/nccl_exchange.h"
#include "standin/runtime.h"

CUDA_ENTRY(int, cudaStreamCreateWithPriority)(void **out, unsigned flags, int priority)
{
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    cuda_status status = state->broken;
    if (status == CUDA_OK) {
        status = stream_create(state, standin_this_thread()->device, flags, priority, &stream);
    }
    standin_close(state);
    *out = stream;
    return standin_result(status);
}

CUDA_ENTRY(int, cudaStreamCreateWithFlags)(void **out, unsigned flags)
{
    return cudaStreamCreateWithPriority(out, flags, 0);
}

CUDA_ENTRY(int, cudaStreamCreate)(void **out)
{
    return cudaStreamCreateWithPriority(out, 0, 0);
}

int stream_with(void *handle, void *out,
                cuda_status (*act)(standin *state, standin_stream *stream, void *out))
{
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    cuda_status status = stream_get(state, handle, &stream);
    if (status == CUDA_OK) {
        status = act(state, stream, out);
    }
    standin_close(state);
    return standin_result(status);
}

static cuda_status destroy(standin *state, standin_stream *stream, void *out)
{
    (void)out;
    return stream_destroy(state, stream);
}

CUDA_ENTRY(int, cudaStreamDestroy)(void *stream)
{
    return stream_with(stream, NULL, destroy);
}

/* So many questions in so many milliseconds, with no work in between, are a loop that waits. */
enum { ASKED_OFTEN = 32, ASKED_LONG = 250 };

static uint64_t milliseconds(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/** Whether the thread does nothing but ask for one thing, which is to wait for it. */
static bool is_waiting(const standin *state, const void *what)
{
    standin_asking *const asking = &standin_this_thread()->asking;
    if (asking->what != what || asking->tick != state->streams.tick) {
        *asking =
            (standin_asking){.what = what, .tick = state->streams.tick, .since = milliseconds()};
    }
    return ++asking->count >= ASKED_OFTEN && milliseconds() - asking->since >= ASKED_LONG;
}

static cuda_status query(standin *state, standin_stream *stream, void *out)
{
    (void)out;
    if (stream->capture != NULL) {
        return CUDA_CAPTURE_UNSUPPORTED;
    }
    if (!state->config.has_bytes && !stream_is_finished(state, stream) &&
        is_waiting(state, stream)) {
        (void)stream_synchronize(state, stream);
    }
    return stream_is_finished(state, stream) ? CUDA_OK : CUDA_NOT_READY;
}

CUDA_ENTRY(int, cudaStreamQuery)(void *stream)
{
    return stream_with(stream, NULL, query);
}

static cuda_status synchronize(standin *state, standin_stream *stream, void *out)
{
    (void)out;
    if (stream->capture != NULL) {
        return CUDA_CAPTURE_UNSUPPORTED;
    }
    return stream_synchronize(state, stream);
}

CUDA_ENTRY(int, cudaStreamSynchronize)(void *stream)
{
    const cuda_status status = nccl_wait_stream(stream);
    return status != CUDA_OK ? standin_result(status) : stream_with(stream, NULL, synchronize);
}

CUDA_ENTRY(int, cudaDeviceSynchronize)(void)
{
    const cuda_status waited = nccl_wait_device(standin_this_thread()->device);
    standin *const state = standin_open();
    const cuda_status status = stream_synchronize_device(state, standin_this_thread()->device);
    standin_close(state);
    return standin_result(status == CUDA_OK ? waited : status);
}

static cuda_status get_priority(standin *state, standin_stream *stream, void *out)
{
    (void)state;
    memcpy(out, &stream->priority, sizeof stream->priority);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaStreamGetPriority)(void *stream, int *priority)
{
    return stream_with(stream, priority, get_priority);
}

static cuda_status get_flags(standin *state, standin_stream *stream, void *out)
{
    (void)state;
    memcpy(out, &stream->flags, sizeof stream->flags);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaStreamGetFlags)(void *stream, unsigned *flags)
{
    return stream_with(stream, flags, get_flags);
}

static cuda_status get_id(standin *state, standin_stream *stream, void *out)
{
    (void)state;
    memcpy(out, &stream->id, sizeof stream->id);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaStreamGetId)(void *stream, unsigned long long *id)
{
    return stream_with(stream, id, get_id);
}

static cuda_status get_device(standin *state, standin_stream *stream, void *out)
{
    (void)state;
    memcpy(out, &stream->device, sizeof stream->device);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaStreamGetDevice)(void *stream, int *device)
{
    return stream_with(stream, device, get_device);
}

CUDA_ENTRY(int, cudaDeviceGetStreamPriorityRange)(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return CUDA_OK;
}

/* ---- callbacks ---- */

static cuda_status call(standin *state, standin_stream *stream, void *out)
{
    return stream_call(state, stream, out);
}

CUDA_ENTRY(int, cudaLaunchHostFunc)(void *stream, void (*run)(void *), void *data)
{
    stream_callback callback = {.run = run, .data = data};
    return stream_with(stream, &callback, call);
}

CUDA_ENTRY(int, cudaStreamAddCallback)
(void *stream, void (*run)(void *, int, void *), void *data, unsigned flags)
{
    (void)flags;
    stream_callback callback = {.run_with_stream = run, .data = data, .stream = stream};
    return stream_with(stream, &callback, call);
}

/* ---- events ---- */

/** The event of a handle; NULL, and the rule that this breaks, for another. */
static standin_event *get_event(standin *state, const void *handle)
{
    standin_event *const event = event_get(state, handle);
    if (event == NULL) {
        (void)rule_broken(state, NULL, CUDA_INVALID_HANDLE,
                          "%p is not an event, or one that was destroyed", handle);
    }
    return event;
}

CUDA_ENTRY(int, cudaEventCreateWithFlags)(void **out, unsigned flags)
{
    standin *const state = standin_open();
    standin_event *event = NULL;
    const cuda_status status = event_create(state, standin_this_thread()->device, flags, &event);
    standin_close(state);
    *out = status == CUDA_OK ? event->handle : NULL;
    return standin_result(status);
}

CUDA_ENTRY(int, cudaEventCreate)(void **out)
{
    return cudaEventCreateWithFlags(out, 0);
}

CUDA_ENTRY(int, cudaEventDestroy)(void *handle)
{
    standin *const state = standin_open();
    standin_event *const event = get_event(state, handle);
    if (event != NULL) {
        event_destroy(state, event);
    }
    standin_close(state);
    return standin_result(event == NULL ? CUDA_INVALID_HANDLE : CUDA_OK);
}

/** Record or wait: what needs both an event and a stream. */
static int with_both(void *event_handle, void *stream_handle,
                     cuda_status (*act)(standin *state, standin_event *event,
                                        standin_stream *stream))
{
    standin *const state = standin_open();
    standin_event *const event = get_event(state, event_handle);
    standin_stream *stream = NULL;
    cuda_status status = event == NULL ? CUDA_INVALID_HANDLE : CUDA_OK;
    if (status == CUDA_OK) {
        status = stream_get(state, stream_handle, &stream);
    }
    if (status == CUDA_OK) {
        status = act(state, event, stream);
    }
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaEventRecord)(void *event, void *stream)
{
    return with_both(event, stream, event_record);
}

CUDA_ENTRY(int, cudaEventRecordWithFlags)(void *event, void *stream, unsigned flags)
{
    (void)flags;
    return with_both(event, stream, event_record);
}

CUDA_ENTRY(int, cudaStreamWaitEvent)(void *stream, void *event, unsigned flags)
{
    (void)flags;
    return with_both(event, stream, event_wait);
}

/**
 * Whether this thread only watches whether work gets done, and may end the program if it does not,
 * as PyTorch's watchdog of collectives. Threads of its backward pass are told by their name, since
 * they allocate before they put work anywhere.
 */
static bool is_watching(void)
{
    char name[16] = "";
    if (standin_this_thread()->has_worked) {
        return false;
    }
    (void)prctl(PR_GET_NAME, name, 0, 0, 0);
    return strncmp(name, "pt_autograd", strlen("pt_autograd")) != 0;
}

/** To those that use the device it matters whether memory can be used again; to watchers not. */
static cuda_status query_event(standin *state, const standin_event *event)
{
    const cuda_status status = event_query(state, event);
    if (state->config.has_bytes) {
        return status; /* the work does get done */
    }
    if (status != CUDA_NOT_READY || is_watching()) {
        return status == CUDA_NOT_READY ? CUDA_OK : status;
    }
    return is_waiting(state, event) ? event_synchronize(state, event) : status;
}

CUDA_ENTRY(int, cudaEventQuery)(void *handle)
{
    nccl_nudge();
    standin *const state = standin_open();
    const standin_event *const event = get_event(state, handle);
    const cuda_status status = event == NULL ? CUDA_INVALID_HANDLE : query_event(state, event);
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaEventSynchronize)(void *handle)
{
    const cuda_status waited = nccl_wait_event(handle);
    standin *const state = standin_open();
    const standin_event *const event = get_event(state, handle);
    const cuda_status status =
        event == NULL ? CUDA_INVALID_HANDLE : event_synchronize(state, event);
    standin_close(state);
    return standin_result(status == CUDA_OK ? waited : status);
}

static cuda_status elapsed(standin *state, void *start, void *end, float *milliseconds)
{
    const standin_event *const first = get_event(state, start);
    const standin_event *const last = get_event(state, end);
    if (first == NULL || last == NULL || !first->is_recorded || !last->is_recorded ||
        first->device != last->device) {
        return CUDA_INVALID_HANDLE;
    }
    *milliseconds = 1.0f; /* nothing runs, so there is no time to tell; dividing by it must work */
    return event_query(state, first) == CUDA_OK ? event_query(state, last) : CUDA_NOT_READY;
}

CUDA_ENTRY(int, cudaEventElapsedTime)(float *milliseconds, void *start, void *end)
{
    standin *const state = standin_open();
    const cuda_status status = elapsed(state, start, end, milliseconds);
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaEventElapsedTime_v2)(float *milliseconds, void *start, void *end)
{
    return cudaEventElapsedTime(milliseconds, start, end);
}

CUDA_ENTRY(int, cudaIpcGetEventHandle)(cuda_ipc_handle *handle, void *event)
{
    memset(handle, 0, sizeof *handle);
    standin *const state = standin_open();
    const bool is_event = get_event(state, event) != NULL;
    standin_close(state);
    return standin_result(is_event ? CUDA_OK : CUDA_INVALID_HANDLE);
}

CUDA_ENTRY(int, cudaIpcOpenEventHandle)(void **event, cuda_ipc_handle handle)
{
    (void)handle; /* another process's event: as good as finished, so a fresh one will do */
    return cudaEventCreateWithFlags(event, 0);
}
