/* SPDX-License-Identifier: MIT */
/*
 * CUDA runtime: copies and fills.
 *
 * When a copy returns is documented in "API synchronization behavior" of the runtime's reference;
 * the rules stand in needs_wait() and in copy_real().
 */
#include "standin/bytes.h"
#include "standin/nccl_exchange.h"
#include "standin/python.h"
#include "standin/reads.h"
#include "standin/runtime.h"

/** What each end of a copy is. */
typedef struct copy_ends {
    bool to_device;
    bool from_device;
    bool to_pageable;
    bool from_pageable;
} copy_ends;

static bool is_pageable(const standin *state, uint64_t address)
{
    return !address_is_inside(&state->space, address) && host_find(&state->host, address) == NULL;
}

static copy_ends ends_of(const standin *state, const standin_task *task)
{
    return (copy_ends){.to_device = address_is_inside(&state->space, task->to),
                       .from_device = address_is_inside(&state->space, task->from),
                       .to_pageable = is_pageable(state, task->to),
                       .from_pageable = is_pageable(state, task->from)};
}

/** Whether a copy returns only once it is done. */
static bool needs_wait(const copy_ends *ends, bool is_blocking)
{
    if (!ends->to_device && !ends->from_device) {
        return true; /* host to host */
    }
    if (ends->from_device && ends->to_device) {
        return false;
    }
    if (ends->from_device) {
        return is_blocking || ends->to_pageable;
    }
    return is_blocking && !ends->from_pageable;
}

/** Managed memory is on both sides. */
static bool is_side(bool is_device, bool is_pageable_host, bool wants_device)
{
    return is_device == wants_device || (!is_device && !is_pageable_host);
}

static cuda_status check_kind(standin *state, const copy_ends *ends, int kind)
{
    if (kind < COPY_HOST_TO_HOST || kind > COPY_DEVICE_TO_DEVICE) {
        return CUDA_OK; /* told by the addresses */
    }
    const bool from_device = kind == COPY_DEVICE_TO_HOST || kind == COPY_DEVICE_TO_DEVICE;
    const bool to_device = kind == COPY_HOST_TO_DEVICE || kind == COPY_DEVICE_TO_DEVICE;
    if (is_side(ends->from_device, ends->from_pageable, from_device) &&
        is_side(ends->to_device, ends->to_pageable, to_device)) {
        return CUDA_OK;
    }
    return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                       "a copy is said to go from %s to %s, and does not",
                       from_device ? "device" : "host", to_device ? "device" : "host");
}

/** Follow what the host wrote; whether Python reads what a kernel may have had to write. */
static bool is_unknown_read(standin *state, const standin_task *task, const copy_ends *ends)
{
    const uint64_t width = task->shape.height == 1 ? task->shape.width : 0;
    if (width != 0 && ends->to_device &&
        (!ends->from_device || value_is_uploaded(&state->values, task->from, width))) {
        value_note_upload(&state->values, task->to, width);
    }
    return width != 0 && ends->from_device && !ends->to_device && python_is_here() &&
           !value_is_uploaded(&state->values, task->from, width);
}

/** A copy of real bytes. Takes what the task owns. */
static cuda_status copy_real(standin *state, standin_stream *stream, standin_task *task,
                             const copy_manner *manner, bool *is_read)
{
    const copy_ends ends = ends_of(state, task);
    cuda_status status = check_kind(state, &ends, manner->kind);
    const bool is_staged = ends.to_device && ends.from_pageable && stream->capture == NULL;
    if (status == CUDA_OK && is_staged && manner->is_blocking) {
        status = stream_synchronize(state, stream);
    }
    if (status == CUDA_OK && is_staged && !manner->is_read_late) {
        status = task_stage(task);
    }
    *is_read = stream->capture == NULL && is_unknown_read(state, task, &ends);
    const bool is_answered = *is_read && task->shape.width <= sizeof(uint64_t); /* maybe by rule */
    if (status == CUDA_OK) {
        status = stream_put(state, stream, task);
    } else {
        task_fini(task);
    }
    if (status == CUDA_OK && stream->capture == NULL &&
        (needs_wait(&ends, manner->is_blocking) || is_answered)) {
        status = stream_synchronize(state, stream);
    }
    return status;
}

/** A copy in a dry run: what the host sees of it happens at once. */
static cuda_status copy_dry(standin *state, standin_stream *stream, standin_task *task,
                            const copy_manner *manner, bool *is_read)
{
    const task_shape *const shape = &task->shape;
    const copy_ends ends = ends_of(state, task);
    const cuda_status status = stream_put(state, stream, task);
    if (status != CUDA_OK || stream->capture != NULL) {
        return status;
    }
    for (uint64_t i = 0; i < shape->height; i++) {
        bytes_copy(state, (void *)(uintptr_t)(task->to + i * shape->to_pitch),
                   (const void *)(uintptr_t)(task->from + i * shape->from_pitch), shape->width);
    }
    *is_read = ends.from_device && !ends.to_device &&
               !value_is_known(&state->values, task->from, shape->width);
    return needs_wait(&ends, manner->is_blocking) ? stream_synchronize(state, stream) : CUDA_OK;
}

/** What other ranks contribute to what is read, or to what comes before it, has to be there. */
static cuda_status wait_for_ranks(const standin_task *task, void *handle, const copy_manner *manner)
{
    if (exchange_is_idle()) {
        return CUDA_OK;
    }
    const task_shape *const shape = &task->shape;
    const uint64_t pitch =
        shape->to_pitch > shape->from_pitch ? shape->to_pitch : shape->from_pitch;
    const cuda_status status =
        nccl_wait_copy((const void *)(uintptr_t)task->to, (const void *)(uintptr_t)task->from,
                       shape->width + pitch * (shape->height - (shape->height != 0)));
    standin *const state = standin_open();
    const copy_ends ends = ends_of(state, task);
    standin_close(state);
    return status == CUDA_OK && needs_wait(&ends, manner->is_blocking) ? nccl_wait_stream(handle)
                                                                       : status;
}

int copy_on(standin_task task, void *handle, const copy_manner *manner)
{
    const cuda_status waited = wait_for_ranks(&task, handle, manner);
    if (waited != CUDA_OK) {
        return standin_result(waited);
    }
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    bool is_read = false;
    void *const to = (void *)(uintptr_t)task.to;
    const uint64_t size = task.shape.width * task.shape.height;
    cuda_status status = stream_get(state, handle, &stream);
    if (status == CUDA_OK) {
        status = state->config.has_bytes ? copy_real(state, stream, &task, manner, &is_read)
                                         : copy_dry(state, stream, &task, manner, &is_read);
    }
    const read_facts facts = {.size = size,
                              .allocations = state->memory.allocations,
                              .launches = state->values.launches,
                              .kernel = stream == NULL ? NULL : stream->kernel};
    standin_close(state);
    if (status == CUDA_OK && is_read) {
        status = read_note(to, &facts);
    }
    return standin_result(status);
}

static standin_task rectangle(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height)
{
    standin_task task = task_copy(to, from, width);
    task.shape = (task_shape){to_pitch, from_pitch, width, height};
    return task;
}

CUDA_ENTRY(int, cudaMemcpyAsync)(void *to, const void *from, size_t size, int kind, void *stream)
{
    const copy_manner manner = {.kind = kind};
    return copy_on(task_copy(to, from, size), stream, &manner);
}

CUDA_ENTRY(int, cudaMemcpy)(void *to, const void *from, size_t size, int kind)
{
    const copy_manner manner = {.kind = kind, .is_blocking = true};
    return copy_on(task_copy(to, from, size), NULL, &manner);
}

CUDA_ENTRY(int, cudaMemcpyPeerAsync)
(void *to, int to_device, const void *from, int from_device, size_t size, void *stream)
{
    (void)to_device;
    (void)from_device;
    return cudaMemcpyAsync(to, from, size, COPY_DEVICE_TO_DEVICE, stream);
}

CUDA_ENTRY(int, cudaMemcpyPeer)
(void *to, int to_device, const void *from, int from_device, size_t size)
{
    (void)to_device;
    (void)from_device;
    return cudaMemcpy(to, from, size, COPY_DEVICE_TO_DEVICE);
}

CUDA_ENTRY(int, cudaMemcpy2DAsync)
(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
 int kind, void *stream)
{
    const copy_manner manner = {.kind = kind};
    return copy_on(rectangle(to, to_pitch, from, from_pitch, width, height), stream, &manner);
}

CUDA_ENTRY(int, cudaMemcpy2D)
(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
 int kind)
{
    const copy_manner manner = {.kind = kind, .is_blocking = true};
    return copy_on(rectangle(to, to_pitch, from, from_pitch, width, height), NULL, &manner);
}
