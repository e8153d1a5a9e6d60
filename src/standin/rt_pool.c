/* SPDX-License-Identifier: MIT */
/* CUDA runtime: memory pools and what is allocated from them in stream order. */
#include "standin/runtime.h"

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
    request->pointer = (void *)(uintptr_t)(status == CUDA_OK ? address : 0);
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
    cuda_status status = pool_current(state, standin_this_thread()->device, &pool);
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
