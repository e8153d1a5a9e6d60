/* SPDX-License-Identifier: MIT */
/* CUDA runtime: fills, and the variables of kernels. */
#include <string.h>

#include "standin/bytes.h"
#include "standin/runtime.h"

int fill_on(standin_task task, void *handle, bool is_blocking)
{
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    const uint64_t to = task.to;
    cuda_status status = stream_get(state, handle, &stream);
    if (status == CUDA_OK) {
        status = stream_put(state, stream, &task);
    }
    if (status == CUDA_OK && stream->capture == NULL) {
        if (!state->config.has_bytes) {
            bytes_set(state, (void *)(uintptr_t)to, (int)(task.value & 0xff), task.shape.width);
        }
        if (is_blocking && !address_is_inside(&state->space, to)) {
            status = stream_synchronize(state, stream); /* only of host memory it is synchronous */
        }
    }
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaMemsetAsync)(void *to, int value, size_t size, void *stream)
{
    return fill_on(task_fill(to, (uint32_t)value, 1, size), stream, false);
}

CUDA_ENTRY(int, cudaMemset)(void *to, int value, size_t size)
{
    return fill_on(task_fill(to, (uint32_t)value, 1, size), NULL, true);
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
    memset(to, 0, size);
    return CUDA_OK;
}
