/* SPDX-License-Identifier: MIT */
/* CUDA runtime: copies and fills. */
#include "standin/bytes.h"
#include "standin/nccl_exchange.h"
#include "standin/reads.h"
#include "standin/runtime.h"

/** A rectangle of `height` rows of `width` bytes; one row is a plain copy. */
typedef struct copy_shape {
    size_t to_pitch;
    size_t from_pitch;
    size_t width;
    size_t height;
} copy_shape;

static cuda_status copy_rows(standin *state, void *to, const void *from, const copy_shape *shape)
{
    cuda_status status = CUDA_OK;
    for (size_t i = 0; i < shape->height && status == CUDA_OK; i++) {
        status = bytes_copy(state, (char *)to + i * shape->to_pitch,
                            (const char *)from + i * shape->from_pitch, shape->width);
    }
    return status;
}

static bool is_pageable(const standin *state, const void *pointer)
{
    return !address_is_inside(&state->space, (uintptr_t)pointer) &&
           host_find(&state->host, (uintptr_t)pointer) == NULL;
}

/** What other ranks contribute to what is read, or to what comes before it, has to be there. */
static cuda_status wait_for_ranks(void *to, const void *from, const copy_shape *shape, void *handle,
                                  bool waits)
{
    if (exchange_is_idle()) {
        return CUDA_OK;
    }
    const uint64_t pitch =
        shape->to_pitch > shape->from_pitch ? shape->to_pitch : shape->from_pitch;
    const cuda_status status =
        nccl_wait_copy(to, from, shape->width + pitch * (shape->height - (shape->height != 0)));
    standin *const state = standin_open();
    const bool is_read = address_is_inside(&state->space, (uintptr_t)from) &&
                         !address_is_inside(&state->space, (uintptr_t)to);
    waits = waits || (is_read && is_pageable(state, to));
    standin_close(state);
    return status == CUDA_OK && waits ? nccl_wait_stream(handle) : status;
}

/**
 * Copy as work of a stream. A copy from the device into memory that is not pinned waits for the
 * stream, as CUDA documents; `waits` asks for that anyway.
 */
static int copy(void *to, const void *from, const copy_shape *shape, void *handle, bool waits)
{
    const cuda_status waited = wait_for_ranks(to, from, shape, handle, waits);
    if (waited != CUDA_OK) {
        return standin_result(waited);
    }
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    cuda_status status = stream_get(state, handle, &stream);
    bool is_read = false;
    if (status == CUDA_OK) {
        status = stream_work(state, stream);
    }
    if (status == CUDA_OK && stream->capture == NULL) {
        status = copy_rows(state, to, from, shape);
        is_read = address_is_inside(&state->space, (uintptr_t)from) &&
                  !address_is_inside(&state->space, (uintptr_t)to);
        if (waits || (is_read && is_pageable(state, to))) {
            stream_synchronize(state, stream);
        }
    }
    const bool is_unknown = is_read && !state->config.has_bytes &&
                            !value_is_known(&state->values, (uintptr_t)from, shape->width);
    const read_facts facts = {.size = shape->width * shape->height,
                              .allocations = state->memory.allocations,
                              .launches = state->values.launches,
                              .kernel = stream == NULL ? NULL : stream->kernel};
    standin_close(state);
    if (status == CUDA_OK && is_unknown) {
        status = read_note(to, &facts);
    }
    return standin_result(status);
}

static copy_shape one_row(size_t size)
{
    return (copy_shape){.width = size, .height = 1};
}

CUDA_ENTRY(int, cudaMemcpyAsync)(void *to, const void *from, size_t size, int kind, void *stream)
{
    (void)kind;
    const copy_shape shape = one_row(size);
    return copy(to, from, &shape, stream, false);
}

CUDA_ENTRY(int, cudaMemcpy)(void *to, const void *from, size_t size, int kind)
{
    (void)kind;
    const copy_shape shape = one_row(size);
    return copy(to, from, &shape, NULL, true);
}

CUDA_ENTRY(int, cudaMemcpyPeerAsync)
(void *to, int to_device, const void *from, int from_device, size_t size, void *stream)
{
    (void)to_device;
    (void)from_device;
    const copy_shape shape = one_row(size);
    return copy(to, from, &shape, stream, false);
}

CUDA_ENTRY(int, cudaMemcpyPeer)
(void *to, int to_device, const void *from, int from_device, size_t size)
{
    (void)to_device;
    (void)from_device;
    const copy_shape shape = one_row(size);
    return copy(to, from, &shape, NULL, true);
}

CUDA_ENTRY(int, cudaMemcpy2DAsync)
(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
 int kind, void *stream)
{
    (void)kind;
    const copy_shape shape = {to_pitch, from_pitch, width, height};
    return copy(to, from, &shape, stream, false);
}

CUDA_ENTRY(int, cudaMemcpy2D)
(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
 int kind)
{
    (void)kind;
    const copy_shape shape = {to_pitch, from_pitch, width, height};
    return copy(to, from, &shape, NULL, true);
}

static int fill(void *to, int value, size_t size, void *handle)
{
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    cuda_status status = stream_get(state, handle, &stream);
    if (status == CUDA_OK) {
        status = stream_work(state, stream);
    }
    if (status == CUDA_OK && stream->capture == NULL) {
        status = bytes_set(state, to, value, size);
    }
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaMemsetAsync)(void *to, int value, size_t size, void *stream)
{
    return fill(to, value, size, stream);
}

CUDA_ENTRY(int, cudaMemset)(void *to, int value, size_t size)
{
    return fill(to, value, size, NULL);
}

/* Variables of kernels have an address but, without kernels, never a value. */

CUDA_ENTRY(int, cudaGetSymbolAddress)(void **out, const void *symbol)
{
    /* One place for all of them: nobody reads or writes it. */
    static uint64_t place; /* guarded by the process's lock */
    enum { PLACE_SIZE = 64 << 20 };
    (void)symbol;
    standin *const state = standin_open();
    cuda_status status = CUDA_OK;
    if (place == 0 &&
        address_take(&state->space, PLACE_SIZE, STANDIN_GRANULE, &place) != ALLOT_STATUS_OK) {
        status = CUDA_OUT_OF_MEMORY;
    }
    standin_close(state);
    *out = (void *)(uintptr_t)place;
    return standin_result(status);
}

CUDA_ENTRY(int, cudaGetSymbolSize)(size_t *size, const void *symbol)
{
    (void)symbol;
    *size = sizeof(uint64_t);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaMemcpyToSymbol)
(const void *symbol, const void *from, size_t size, size_t offset, int kind)
{
    (void)symbol;
    (void)from;
    (void)size;
    (void)offset;
    (void)kind;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaMemcpyFromSymbol)
(void *to, const void *symbol, size_t size, size_t offset, int kind)
{
    (void)symbol;
    (void)offset;
    (void)kind;
    standin *const state = standin_open();
    const cuda_status status = bytes_set(state, to, 0, size);
    standin_close(state);
    return standin_result(status);
}
