/* SPDX-License-Identifier: MIT */
/* CUDA driver: memory. */
#include <string.h>

#include "standin/runtime.h"

static void *pointer_of(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

CUDA_ENTRY(int, cuMemGetInfo_v2)(size_t *free, size_t *total)
{
    return cudaMemGetInfo(free, total);
}

CUDA_ENTRY(int, cuMemAlloc_v2)(uint64_t *out, size_t size)
{
    void *pointer = NULL;
    const int status = size == 0 ? CUDA_INVALID_VALUE : cudaMalloc(&pointer, size);
    *out = (uintptr_t)pointer;
    return status;
}

CUDA_ENTRY(int, cuMemAllocPitch_v2)
(uint64_t *out, size_t *pitch, size_t width, size_t height, unsigned element_size)
{
    (void)element_size;
    void *pointer = NULL;
    const int status = cudaMallocPitch(&pointer, pitch, width, height);
    *out = (uintptr_t)pointer;
    return status;
}

CUDA_ENTRY(int, cuMemAllocManaged)(uint64_t *out, size_t size, unsigned flags)
{
    void *pointer = NULL;
    const int status = cudaMallocManaged(&pointer, size, flags);
    *out = (uintptr_t)pointer;
    return status;
}

CUDA_ENTRY(int, cuMemFree_v2)(uint64_t address)
{
    return cudaFree(pointer_of(address));
}

CUDA_ENTRY(int, cuMemHostAlloc)(void **out, size_t size, unsigned flags)
{
    return cudaHostAlloc(out, size, flags);
}

CUDA_ENTRY(int, cuMemAllocHost_v2)(void **out, size_t size)
{
    return cudaHostAlloc(out, size, 0);
}

CUDA_ENTRY(int, cuMemFreeHost)(void *pointer)
{
    return cudaFreeHost(pointer);
}

CUDA_ENTRY(int, cuMemHostRegister_v2)(void *pointer, size_t size, unsigned flags)
{
    return cudaHostRegister(pointer, size, flags);
}

CUDA_ENTRY(int, cuMemHostUnregister)(void *pointer)
{
    return cudaHostUnregister(pointer);
}

CUDA_ENTRY(int, cuMemAllocAsync)(uint64_t *out, size_t size, void *stream)
{
    void *pointer = NULL;
    const int status = cudaMallocAsync(&pointer, size, stream);
    *out = (uintptr_t)pointer;
    return status;
}

CUDA_ENTRY(int, cuMemFreeAsync)(uint64_t address, void *stream)
{
    return cudaFreeAsync(pointer_of(address), stream);
}

CUDA_ENTRY(int, cuMemcpyHtoDAsync_v2)(uint64_t to, const void *from, size_t size, void *stream)
{
    return cudaMemcpyAsync(pointer_of(to), from, size, COPY_HOST_TO_DEVICE, stream);
}

CUDA_ENTRY(int, cuMemcpyHtoD_v2)(uint64_t to, const void *from, size_t size)
{
    return cudaMemcpy(pointer_of(to), from, size, COPY_HOST_TO_DEVICE);
}

CUDA_ENTRY(int, cuMemcpyDtoHAsync_v2)(void *to, uint64_t from, size_t size, void *stream)
{
    return cudaMemcpyAsync(to, pointer_of(from), size, COPY_DEVICE_TO_HOST, stream);
}

CUDA_ENTRY(int, cuMemcpyDtoH_v2)(void *to, uint64_t from, size_t size)
{
    return cudaMemcpy(to, pointer_of(from), size, COPY_DEVICE_TO_HOST);
}

CUDA_ENTRY(int, cuMemcpyDtoDAsync_v2)(uint64_t to, uint64_t from, size_t size, void *stream)
{
    return cudaMemcpyAsync(pointer_of(to), pointer_of(from), size, COPY_DEVICE_TO_DEVICE, stream);
}

CUDA_ENTRY(int, cuMemcpyDtoD_v2)(uint64_t to, uint64_t from, size_t size)
{
    return cudaMemcpy(pointer_of(to), pointer_of(from), size, COPY_DEVICE_TO_DEVICE);
}

CUDA_ENTRY(int, cuMemcpyAsync)(uint64_t to, uint64_t from, size_t size, void *stream)
{
    return cudaMemcpyAsync(pointer_of(to), pointer_of(from), size, COPY_ANY, stream);
}

CUDA_ENTRY(int, cuMemcpy)(uint64_t to, uint64_t from, size_t size)
{
    return cudaMemcpy(pointer_of(to), pointer_of(from), size, COPY_ANY);
}

CUDA_ENTRY(int, cuMemcpyPeerAsync)
(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t size, void *stream)
{
    (void)to_context;
    (void)from_context;
    return cudaMemcpyAsync(pointer_of(to), pointer_of(from), size, COPY_DEVICE_TO_DEVICE, stream);
}

CUDA_ENTRY(int, cuMemcpyPeer)
(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t size)
{
    (void)to_context;
    (void)from_context;
    return cudaMemcpy(pointer_of(to), pointer_of(from), size, COPY_DEVICE_TO_DEVICE);
}

CUDA_ENTRY(int, cuMemsetD8Async)(uint64_t to, unsigned char value, size_t size, void *stream)
{
    return cudaMemsetAsync(pointer_of(to), value, size, stream);
}

CUDA_ENTRY(int, cuMemsetD8_v2)(uint64_t to, unsigned char value, size_t size)
{
    return cudaMemset(pointer_of(to), value, size);
}

/** Fills of values of 2 or 4 bytes. */
static int fill_values(uint64_t to, unsigned value, unsigned unit, size_t count, void *stream)
{
    if (count > SIZE_MAX / sizeof value) {
        return CUDA_INVALID_VALUE;
    }
    return fill_on(task_fill(pointer_of(to), value, unit, count), stream, false);
}

CUDA_ENTRY(int, cuMemsetD16Async)(uint64_t to, unsigned short value, size_t count, void *stream)
{
    return fill_values(to, value, 2, count, stream);
}

CUDA_ENTRY(int, cuMemsetD16_v2)(uint64_t to, unsigned short value, size_t count)
{
    return fill_values(to, value, 2, count, NULL);
}

CUDA_ENTRY(int, cuMemsetD32Async)(uint64_t to, unsigned value, size_t count, void *stream)
{
    return fill_values(to, value, 4, count, stream);
}

CUDA_ENTRY(int, cuMemsetD32_v2)(uint64_t to, unsigned value, size_t count)
{
    return fill_values(to, value, 4, count, NULL);
}

CUDA_ENTRY(int, cuIpcGetMemHandle)(cuda_ipc_handle *handle, uint64_t address)
{
    return cudaIpcGetMemHandle(handle, pointer_of(address));
}

CUDA_ENTRY(int, cuIpcOpenMemHandle_v2)(uint64_t *out, cuda_ipc_handle handle, unsigned flags)
{
    void *pointer = NULL;
    const int status = cudaIpcOpenMemHandle(&pointer, handle, flags);
    *out = (uintptr_t)pointer;
    return status;
}

CUDA_ENTRY(int, cuIpcCloseMemHandle)(uint64_t address)
{
    return cudaIpcCloseMemHandle(pointer_of(address));
}

/* ---- questions about addresses ---- */

CUDA_ENTRY(int, cuMemGetAddressRange_v2)(uint64_t *base, size_t *size, uint64_t address)
{
    standin *const state = standin_open();
    const memory_block *const block = memory_find(state, address);
    if (block != NULL) {
        if (base != NULL) {
            *base = block->address;
        }
        if (size != NULL) {
            *size = (size_t)block->size;
        }
    }
    standin_close(state);
    return block == NULL ? CUDA_INVALID_VALUE : CUDA_OK;
}

/* Numbers of CUpointer_attribute. */
enum {
    POINTER_CONTEXT = 1,
    POINTER_MEMORY_TYPE = 2,
    POINTER_DEVICE = 3,
    POINTER_HOST = 4,
    POINTER_SYNC_MEMOPS = 6,
    POINTER_BUFFER_ID = 7,
    POINTER_IS_MANAGED = 8,
    POINTER_ORDINAL = 9,
    POINTER_LEGACY_IPC = 10,
    POINTER_RANGE_START = 11,
    POINTER_RANGE_SIZE = 12,
    POINTER_MAPPED = 13,
    POINTER_HANDLE_TYPES = 14,
};

int cuDevicePrimaryCtxRetain(void **context, int device);

static cuda_status answer_device(const memory_block *block, uint64_t address, int attribute,
                                 void *out)
{
    const int type = CUDA_MEMORY_DEVICE;
    const int one = block->kind == MEMORY_MAPPING ? 0 : 1;
    switch (attribute) {
    case POINTER_MEMORY_TYPE:
        memcpy(out, &type, sizeof type);
        return CUDA_OK;
    case POINTER_DEVICE:
        memcpy(out, &address, sizeof address);
        return CUDA_OK;
    case POINTER_BUFFER_ID:
        memcpy(out, &block->id, sizeof block->id);
        return CUDA_OK;
    case POINTER_ORDINAL:
        memcpy(out, &block->device, sizeof block->device);
        return CUDA_OK;
    case POINTER_RANGE_START:
        memcpy(out, &block->address, sizeof block->address);
        return CUDA_OK;
    case POINTER_RANGE_SIZE:
        memcpy(out, &block->size, sizeof block->size);
        return CUDA_OK;
    case POINTER_LEGACY_IPC:
        memcpy(out, &one, sizeof one);
        return CUDA_OK;
    case POINTER_HOST:
        return CUDA_INVALID_VALUE;
    default:
        memset(out, 0, sizeof(int));
        return CUDA_OK;
    }
}

static cuda_status answer_host(const host_range *range, uint64_t address, int attribute, void *out)
{
    const int type = CUDA_MEMORY_HOST;
    const int is_managed = range->kind == HOST_MANAGED ? 1 : 0;
    switch (attribute) {
    case POINTER_MEMORY_TYPE:
        memcpy(out, &type, sizeof type);
        return CUDA_OK;
    case POINTER_DEVICE:
    case POINTER_HOST:
        memcpy(out, &address, sizeof address);
        return CUDA_OK;
    case POINTER_ORDINAL:
        memcpy(out, &range->device, sizeof range->device);
        return CUDA_OK;
    case POINTER_IS_MANAGED:
        memcpy(out, &is_managed, sizeof is_managed);
        return CUDA_OK;
    default:
        memset(out, 0, sizeof(int));
        return CUDA_OK;
    }
}

CUDA_ENTRY(int, cuPointerGetAttribute)(void *out, int attribute, uint64_t address)
{
    standin *const state = standin_open();
    const memory_block *const block = memory_find(state, address);
    const host_range *const range = host_find(&state->host, address);
    uint32_t device = 0;
    cuda_status status = CUDA_INVALID_VALUE;
    if (block != NULL) {
        device = block->device;
        status = answer_device(block, address, attribute, out);
    } else if (range != NULL) {
        device = range->device;
        status = answer_host(range, address, attribute, out);
    }
    standin_close(state);
    if (status == CUDA_OK && attribute == POINTER_CONTEXT) {
        status = (cuda_status)cuDevicePrimaryCtxRetain(out, (int)device);
    }
    return status;
}

CUDA_ENTRY(int, cuPointerGetAttributes)
(unsigned count, const int *attributes, void **out, uint64_t address)
{
    for (unsigned i = 0; i < count; i++) {
        if (cuPointerGetAttribute(out[i], attributes[i], address) != CUDA_OK) {
            memset(out[i], 0, sizeof(int)); /* documented: unknown pointers answer zeros */
        }
    }
    return CUDA_OK;
}
