/* SPDX-License-Identifier: MIT */
/* CUDA runtime: device memory, host memory. */
#include <inttypes.h>
#include <string.h>

#include "standin/device.h"
#include "standin/runtime.h"

static uint32_t current_device(void)
{
    return standin_this_thread()->device;
}

static void *pointer_of(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* ---- device memory ---- */

CUDA_ENTRY(int, cudaMalloc)(void **out, size_t size)
{
    if (out == NULL) {
        return standin_result(CUDA_INVALID_VALUE);
    }
    if (size == 0) {
        *out = NULL;
        return CUDA_OK;
    }
    standin *const state = standin_open();
    uint64_t address = 0;
    const cuda_status status =
        memory_allocate(state, current_device(), size, MEMORY_PLAIN, &address);
    standin_close(state);
    *out = pointer_of(address);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaMallocPitch)(void **out, size_t *pitch, size_t width, size_t height)
{
    enum { PITCH = 512 };
    if (width > SIZE_MAX - PITCH || (height != 0 && (width + PITCH) > SIZE_MAX / height)) {
        return standin_result(CUDA_INVALID_VALUE);
    }
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return cudaMalloc(out, *pitch * height);
}

/** Freeing waits for the device that the memory is of, as on real hardware. */
static cuda_status free_plain(standin *state, uint64_t address)
{
    const memory_block *const block = memory_find(state, address);
    const uint64_t id = block->id;
    if (block->address != address) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                           "0x%" PRIx64 " is freed, which lies inside an allocation", address);
    }
    const cuda_status status = stream_synchronize_device(state, block->device);
    if (status != CUDA_OK) {
        return status;
    }
    const uint32_t index = memory_index(state, address); /* the wait gave the lock up */
    if (index == ALLOT_NONE || state->memory.blocks[index].id != id) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE, "0x%" PRIx64 " is freed by two threads",
                           address);
    }
    uint32_t user = 0;
    if (state->config.has_bytes && !use_is_over(state, index, NULL, &user)) {
        (void)rule_broken(state, NULL, CUDA_OK,
                          "0x%" PRIx64 " is freed while stream %u of another device may use it",
                          address, user + 1);
        queue_pause(state);
    }
    return memory_release(state, address, MEMORY_PLAIN);
}

static cuda_status free_any(standin *state, void *pointer)
{
    const uint64_t address = (uintptr_t)pointer;
    const memory_block *const block = memory_find(state, address);
    if (block != NULL && block->kind == MEMORY_PLAIN) {
        return free_plain(state, address);
    }
    if (block != NULL && block->kind == MEMORY_POOLED) {
        return pool_free_now(state, address);
    }
    const host_range *const range = host_find(&state->host, address);
    if (range != NULL && range->kind == HOST_MANAGED) {
        const cuda_status status = stream_synchronize_all(state);
        return status == CUDA_OK ? host_free(&state->host, pointer, HOST_MANAGED) : status;
    }
    return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                       "%p is freed, which is no allocation or was freed before", pointer);
}

CUDA_ENTRY(int, cudaFree)(void *pointer)
{
    if (pointer == NULL) {
        return CUDA_OK;
    }
    standin *const state = standin_open();
    const cuda_status status = free_any(state, pointer);
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaMemGetInfo)(size_t *free, size_t *total)
{
    standin *const state = standin_open();
    const cuda_status status = memory_ensure_context(state, current_device());
    const memory_device *const device = &state->memory.devices[current_device()];
    *total = device->total;
    *free = device->total - device->used;
    standin_close(state);
    return standin_result(status);
}

static void describe(const standin *state, const void *pointer, cuda_pointer_attributes *out)
{
    const uint64_t address = (uintptr_t)pointer;
    if (address_is_inside(&state->space, address)) {
        const memory_block *const block = memory_find(state, address);
        out->type = CUDA_MEMORY_DEVICE;
        out->device = (int)(block == NULL ? current_device() : block->device);
        out->device_pointer = pointer_of(address);
        return;
    }
    const host_range *const range = host_find(&state->host, address);
    if (range == NULL) {
        out->type = CUDA_MEMORY_UNREGISTERED;
        out->device = -2;
        out->host_pointer = pointer_of(address);
        return;
    }
    out->type = range->kind == HOST_MANAGED ? CUDA_MEMORY_MANAGED : CUDA_MEMORY_HOST;
    out->device = (int)range->device;
    out->device_pointer = pointer_of(address);
    out->host_pointer = pointer_of(address);
}

CUDA_ENTRY(int, cudaPointerGetAttributes)(cuda_pointer_attributes *out, const void *pointer)
{
    cuda_pointer_attributes attributes = {0};
    standin *const state = standin_open();
    describe(state, pointer, &attributes);
    standin_close(state);
    memcpy(out, &attributes,
           device_cuda_major() == 12 ? offsetof(cuda_pointer_attributes, reserved)
                                     : sizeof attributes);
    return CUDA_OK;
}

/* ---- host memory ---- */

static int allocate_host(void **out, size_t size, host_kind kind)
{
    standin *const state = standin_open();
    cuda_status status = standin_may_fail(state);
    if (status == CUDA_OK) {
        status = host_allocate(&state->host, size, current_device(), kind, out);
    }
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaHostAlloc)(void **out, size_t size, unsigned flags)
{
    (void)flags;
    return allocate_host(out, size, HOST_PINNED);
}

CUDA_ENTRY(int, cudaMallocHost)(void **out, size_t size)
{
    return allocate_host(out, size, HOST_PINNED);
}

CUDA_ENTRY(int, cudaMallocManaged)(void **out, size_t size, unsigned flags)
{
    (void)flags;
    return size == 0 ? standin_result(CUDA_INVALID_VALUE) : allocate_host(out, size, HOST_MANAGED);
}

/**
 * With real bytes: wait for what may use host memory before it goes. That cudaFreeHost() waits is
 * not documented; a worker that met unmapped memory would end the process.
 */
static cuda_status wait_for_host(standin *state, const void *pointer)
{
    return state->config.has_bytes && host_find(&state->host, (uintptr_t)pointer) != NULL
               ? stream_synchronize_all(state)
               : CUDA_OK;
}

CUDA_ENTRY(int, cudaFreeHost)(void *pointer)
{
    if (pointer == NULL) {
        return CUDA_OK;
    }
    standin *const state = standin_open();
    cuda_status status = wait_for_host(state, pointer);
    if (status == CUDA_OK) {
        status = host_free(&state->host, pointer, HOST_PINNED);
    }
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaHostRegister)(void *pointer, size_t size, unsigned flags)
{
    (void)flags;
    standin *const state = standin_open();
    cuda_status status = standin_may_fail(state);
    if (status == CUDA_OK) {
        status = host_register(&state->host, pointer, size, current_device());
    }
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaHostUnregister)(void *pointer)
{
    standin *const state = standin_open();
    cuda_status status = wait_for_host(state, pointer);
    if (status == CUDA_OK) {
        status = host_unregister(&state->host, pointer);
    }
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaHostGetDevicePointer)(void **device, void *host, unsigned flags)
{
    (void)flags;
    standin *const state = standin_open();
    const bool is_known = host_find(&state->host, (uintptr_t)host) != NULL;
    standin_close(state);
    *device = is_known ? host : NULL;
    return standin_result(is_known ? CUDA_OK : CUDA_INVALID_VALUE);
}

CUDA_ENTRY(int, cudaHostGetFlags)(unsigned *flags, void *host)
{
    (void)host;
    *flags = 0;
    return CUDA_OK;
}
