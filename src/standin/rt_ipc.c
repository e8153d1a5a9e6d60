/* SPDX-License-Identifier: MIT */
/*
 * CUDA runtime: memory of other processes. With real bytes an allocation that is shared becomes a
 * memory file, which another process of the same user opens through /proc.
 */
#include <string.h>
#include <unistd.h>

#include "standin/bytes.h"
#include "standin/runtime.h"

/** What an IPC handle holds: 64 bytes that mean something to us alone. */
typedef struct ipc_handle {
    uint64_t mark;
    uint64_t address; /**< Of the allocation. */
    uint64_t size;
    int64_t process;
    uint32_t device;
    int32_t file;    /**< Of that process, with real bytes; else -1. */
    uint64_t offset; /**< Of the allocation in the file. */
    uint64_t extent; /**< Of the file. */
    uint64_t spare;
} ipc_handle;
_Static_assert(sizeof(ipc_handle) == sizeof(cuda_ipc_handle), "an IPC handle has 64 bytes");

static const uint64_t IPC_MARK = UINT64_C(0x616c6c6f74697063);

/** The granules of an allocation as a file; small allocations share theirs with others. */
static cuda_status share(standin *state, const memory_block *block, ipc_handle *own)
{
    memory_block *const whole = &state->memory.blocks[address_owner(&state->space, block->address)];
    own->file = -1;
    if (!state->config.has_bytes) {
        return CUDA_OK;
    }
    if (whole->file == 0) {
        queue_pause(state); /* the pages are replaced */
        const int file = bytes_share(state, whole->address, whole->extent);
        if (file < 0) {
            return CUDA_OUT_OF_MEMORY;
        }
        whole->file = file + 1;
    }
    own->file = whole->file - 1;
    own->offset = block->address - whole->address;
    own->extent = whole->extent;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaIpcGetMemHandle)(cuda_ipc_handle *handle, void *pointer)
{
    standin *const state = standin_open();
    const memory_block *const block = memory_find(state, (uintptr_t)pointer);
    ipc_handle own = {.mark = IPC_MARK, .process = getpid()};
    cuda_status status = CUDA_INVALID_VALUE;
    if (block != NULL && block->kind == MEMORY_PLAIN) {
        own.address = block->address;
        own.size = block->size;
        own.device = block->device;
        status = share(state, block, &own);
    }
    standin_close(state);
    if (status == CUDA_OK) {
        memcpy(handle, &own, sizeof own);
    }
    return standin_result(status);
}

/** Show another process's allocation at fresh addresses; its device pays nothing again. */
static cuda_status open_foreign(standin *state, const ipc_handle *own, uint64_t *address)
{
    uint64_t extent = 0;
    const uint64_t size = state->config.has_bytes ? own->extent : own->size;
    if (own->mark != IPC_MARK || !memory_extent(size, &extent) ||
        own->device >= state->config.device_count || own->offset > size) {
        return CUDA_INVALID_VALUE;
    }
    if (address_take(&state->space, extent, STANDIN_GRANULE, address) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    const memory_block block = {.address = *address,
                                .size = size,
                                .extent = extent,
                                .device = own->device,
                                .kind = MEMORY_IMPORTED,
                                .readers = UINT64_MAX,
                                .writers = UINT64_MAX};
    cuda_status status = bytes_map_foreign(state, *address, extent, (long)own->process, own->file);
    if (status == CUDA_OK) {
        status = memory_enter(state, &block, NULL);
    }
    if (status != CUDA_OK) {
        bytes_release(state, *address, extent);
        (void)!address_give(&state->space, *address, extent);
        return status;
    }
    *address += own->offset;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaIpcOpenMemHandle)(void **out, cuda_ipc_handle handle, unsigned flags)
{
    (void)flags;
    ipc_handle own;
    memcpy(&own, &handle, sizeof own);
    standin *const state = standin_open();
    uint64_t address = own.address;
    cuda_status status = CUDA_OK;
    if (own.mark != IPC_MARK || own.process != getpid()) {
        status = open_foreign(state, &own, &address);
    }
    standin_close(state);
    *out = (void *)(uintptr_t)(status == CUDA_OK ? address : 0);
    return standin_result(status);
}

/** Closing waits, as freeing does: what is pending may use the memory. */
static cuda_status close_foreign(standin *state, uint64_t address)
{
    const memory_block *const block = memory_find(state, address);
    if (block == NULL || block->kind != MEMORY_IMPORTED) {
        return CUDA_OK; /* one of this process's own, opened to itself */
    }
    const cuda_status status = stream_synchronize_all(state);
    const uint32_t index = memory_index(state, address);
    if (status == CUDA_OK && index != ALLOT_NONE) {
        const memory_block gone = state->memory.blocks[index];
        memory_forget(state, index);
        bytes_release(state, gone.address, gone.extent);
        (void)!address_give(&state->space, gone.address, gone.extent);
    }
    return status;
}

CUDA_ENTRY(int, cudaIpcCloseMemHandle)(void *pointer)
{
    standin *const state = standin_open();
    const cuda_status status = close_foreign(state, (uintptr_t)pointer);
    standin_close(state);
    return standin_result(status);
}
