/* SPDX-License-Identifier: MIT */
#include "standin/handle.h"

#include <stdlib.h>

#include "standin/state.h"

static const uint64_t HANDLE_MARK = UINT64_C(0x616c6c6f74686e64);

standin_handle *handle_create(void)
{
    standin_handle *const handle = calloc(1, sizeof *handle);
    if (handle != NULL) {
        handle->mark = HANDLE_MARK;
    }
    return handle;
}

standin_handle *handle_get(void *pointer)
{
    standin_handle *const handle = pointer;
    return (uintptr_t)pointer > UINT16_MAX && handle->mark == HANDLE_MARK ? handle : NULL;
}

void handle_destroy(void *pointer)
{
    standin_handle *const handle = handle_get(pointer);
    if (handle != NULL) {
        handle->mark = 0;
        free(handle);
    }
}

void handle_work(void *pointer)
{
    const standin_handle *const handle = handle_get(pointer);
    standin *const state = standin_open();
    state->values.launches++;
    stream_work_on(state, handle == NULL ? NULL : handle->stream);
    standin_close(state);
}
