/* SPDX-License-Identifier: MIT */
/* CUDA runtime: device memory, host memory, pools, memory of other processes. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

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

/* ---- pools ---- */

/** Give the default or the current pool of a device. */
static int get_pool(void **out, int device,
                    cuda_status (*get)(standin *state, uint32_t device, standin_pool **out))
{
    if (device < 0 || (unsigned)device >= standin_settings()->device_count) {
        return standin_result(CUDA_INVALID_DEVICE);
    }
    standin *const state = standin_open();
    standin_pool *pool = NULL;
    const cuda_status status = get(state, (uint32_t)device, &pool);
    *out = status == CUDA_OK ? pool->handle : NULL;
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaDeviceGetDefaultMemPool)(void **out, int device)
{
    return get_pool(out, device, pool_default);
}

CUDA_ENTRY(int, cudaDeviceGetMemPool)(void **out, int device)
{
    return get_pool(out, device, pool_current);
}

/** Find the pool of a handle and do something with it, under the lock. */
static int with_pool(void *handle, void *out,
                     cuda_status (*act)(standin *state, standin_pool *pool, void *out))
{
    standin *const state = standin_open();
    standin_pool *const pool = pool_get(state, handle);
    cuda_status status = CUDA_INVALID_VALUE;
    if (pool != NULL) {
        status = act(state, pool, out);
    } else if (handle != NULL) {
        status = rule_broken(state, NULL, CUDA_INVALID_HANDLE,
                             "%p is not a memory pool, or one that was destroyed", handle);
    }
    standin_close(state);
    return standin_result(status);
}

static cuda_status make_current(standin *state, standin_pool *pool, void *device)
{
    if (*(const int *)device < 0 || *(const uint32_t *)device != pool->device) {
        return CUDA_INVALID_VALUE;
    }
    state->pools.current[pool->device] = pool;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaDeviceSetMemPool)(int device, void *pool)
{
    return with_pool(pool, &device, make_current);
}

CUDA_ENTRY(int, cudaMemPoolCreate)(void **out, const cuda_allocation_properties *properties)
{
    return properties->location.type == 1 ? get_pool(out, properties->location.id, pool_create)
                                          : standin_result(CUDA_INVALID_VALUE);
}

static cuda_status destroy_pool(standin *state, standin_pool *pool, void *out)
{
    (void)out;
    if (pool->is_default) {
        return CUDA_INVALID_VALUE;
    }
    pool_destroy(state, pool);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaMemPoolDestroy)(void *pool)
{
    return with_pool(pool, NULL, destroy_pool);
}

typedef struct pool_attribute {
    int number;
    void *value;
} pool_attribute;

static cuda_status get_attribute(standin *state, standin_pool *pool, void *out)
{
    const pool_attribute *const attribute = out;
    (void)state;
    return pool_get_attribute(pool, attribute->number, attribute->value);
}

CUDA_ENTRY(int, cudaMemPoolGetAttribute)(void *pool, int number, void *value)
{
    pool_attribute attribute = {number, value};
    return with_pool(pool, &attribute, get_attribute);
}

static cuda_status set_attribute(standin *state, standin_pool *pool, void *out)
{
    const pool_attribute *const attribute = out;
    (void)state;
    return pool_set_attribute(pool, attribute->number, attribute->value);
}

CUDA_ENTRY(int, cudaMemPoolSetAttribute)(void *pool, int number, void *value)
{
    pool_attribute attribute = {number, value};
    return with_pool(pool, &attribute, set_attribute);
}

static cuda_status trim(standin *state, standin_pool *pool, void *keep)
{
    pool_trim(state, pool, *(const size_t *)keep);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaMemPoolTrimTo)(void *pool, size_t keep)
{
    return with_pool(pool, &keep, trim);
}

static cuda_status ignore_access(standin *state, standin_pool *pool, void *out)
{
    (void)state;
    (void)pool;
    (void)out;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaMemPoolSetAccess)(void *pool, const cuda_access *access, size_t count)
{
    (void)access;
    (void)count;
    return with_pool(pool, NULL, ignore_access);
}

/** A request to a pool. */
typedef struct pooled_request {
    size_t size;
    void *stream;
    void *pointer; /**< The answer; NULL on failure. */
} pooled_request;

static cuda_status allocate_pooled(standin *state, standin_pool *pool, void *out)
{
    pooled_request *const request = out;
    standin_stream *stream = NULL;
    uint64_t address = 0;
    cuda_status status = stream_get(state, request->stream, &stream);
    if (status == CUDA_OK) {
        status = pool_allocate(state, pool, request->size, stream, &address);
    }
    request->pointer = pointer_of(status == CUDA_OK ? address : 0);
    return status;
}

CUDA_ENTRY(int, cudaMallocFromPoolAsync)(void **out, size_t size, void *pool, void *stream)
{
    pooled_request request = {.size = size, .stream = stream};
    const int status = with_pool(pool, &request, allocate_pooled);
    *out = request.pointer;
    return status;
}

CUDA_ENTRY(int, cudaMallocAsync)(void **out, size_t size, void *stream)
{
    if (size == 0) {
        *out = NULL;
        return CUDA_OK;
    }
    pooled_request request = {.size = size, .stream = stream};
    standin_pool *pool = NULL;
    standin *const state = standin_open();
    cuda_status status = pool_current(state, current_device(), &pool);
    if (status == CUDA_OK) {
        status = allocate_pooled(state, pool, &request);
    }
    standin_close(state);
    *out = request.pointer;
    return standin_result(status);
}

static cuda_status free_pooled(standin *state, standin_stream *stream, void *pointer)
{
    const uint64_t address = (uintptr_t)pointer;
    const memory_block *const block = memory_find(state, address);
    if (block != NULL && block->kind == MEMORY_POOLED && block->address == address) {
        return pool_free(state, address, stream);
    }
    if (block != NULL && block->kind == MEMORY_PLAIN && !state->config.has_bytes) {
        return memory_release(state, address, MEMORY_PLAIN);
    }
    return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                       "cudaFreeAsync of %p, which no pool allocated or which was freed before",
                       pointer);
}

CUDA_ENTRY(int, cudaFreeAsync)(void *pointer, void *stream)
{
    return pointer == NULL ? CUDA_OK : stream_with(stream, pointer, free_pooled);
}

/* ---- memory of other processes ---- */

/** What an IPC handle holds: 64 bytes that mean something to us alone. */
typedef struct ipc_handle {
    uint64_t mark;
    uint64_t address; /**< Of the whole allocation. */
    uint64_t size;
    int64_t process;
    uint32_t device;
    uint32_t unused;
    uint64_t spare[3];
} ipc_handle;
_Static_assert(sizeof(ipc_handle) == sizeof(cuda_ipc_handle), "an IPC handle has 64 bytes");

static const uint64_t IPC_MARK = UINT64_C(0x616c6c6f74697063);

CUDA_ENTRY(int, cudaIpcGetMemHandle)(cuda_ipc_handle *handle, void *pointer)
{
    standin *const state = standin_open();
    const memory_block *const block = memory_find(state, (uintptr_t)pointer);
    if (block == NULL || block->kind != MEMORY_PLAIN) {
        standin_close(state);
        return standin_result(CUDA_INVALID_VALUE);
    }
    const ipc_handle own = {.mark = IPC_MARK,
                            .address = block->address,
                            .size = block->size,
                            .process = getpid(),
                            .device = block->device};
    standin_close(state);
    memcpy(handle, &own, sizeof own);
    return CUDA_OK;
}

/** Show another process's allocation at fresh addresses; its device pays nothing again. */
static cuda_status open_foreign(standin *state, const ipc_handle *own, uint64_t *address)
{
    uint64_t extent = 0;
    if (own->mark != IPC_MARK || !memory_extent(own->size, &extent) ||
        own->device >= state->config.device_count) {
        return CUDA_INVALID_VALUE;
    }
    if (address_take(&state->space, extent, STANDIN_GRANULE, address) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    const memory_block block = {.address = *address,
                                .size = own->size,
                                .extent = extent,
                                .device = own->device,
                                .kind = MEMORY_IMPORTED,
                                .readers = UINT64_MAX,
                                .writers = UINT64_MAX};
    const cuda_status status = memory_enter(state, &block, NULL);
    if (status != CUDA_OK) {
        (void)!address_give(&state->space, *address, extent);
    }
    return status;
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
    *out = pointer_of(status == CUDA_OK ? address : 0);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaIpcCloseMemHandle)(void *pointer)
{
    standin *const state = standin_open();
    const uint32_t index = address_owner(&state->space, (uintptr_t)pointer);
    if (index != ALLOT_NONE && state->memory.blocks[index].kind == MEMORY_IMPORTED) {
        const memory_block block = state->memory.blocks[index];
        memory_forget(state, index);
        (void)!address_give(&state->space, block.address, block.extent);
    }
    standin_close(state);
    return CUDA_OK;
}
