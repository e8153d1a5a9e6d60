/* SPDX-License-Identifier: MIT */
/* CUDA driver: memory pools, graphs: the runtime's under other names. */
#include "standin/runtime.h"

CUDA_ENTRY(int, cuDeviceGetDefaultMemPool)(void **pool, int device)
{
    return cudaDeviceGetDefaultMemPool(pool, device);
}

CUDA_ENTRY(int, cuDeviceGetMemPool)(void **pool, int device)
{
    return cudaDeviceGetMemPool(pool, device);
}

CUDA_ENTRY(int, cuDeviceSetMemPool)(int device, void *pool)
{
    return cudaDeviceSetMemPool(device, pool);
}

CUDA_ENTRY(int, cuMemPoolCreate)(void **pool, const cuda_allocation_properties *properties)
{
    return cudaMemPoolCreate(pool, properties);
}

CUDA_ENTRY(int, cuMemPoolDestroy)(void *pool)
{
    return cudaMemPoolDestroy(pool);
}

CUDA_ENTRY(int, cuMemPoolGetAttribute)(void *pool, int attribute, void *value)
{
    return cudaMemPoolGetAttribute(pool, attribute, value);
}

CUDA_ENTRY(int, cuMemPoolSetAttribute)(void *pool, int attribute, void *value)
{
    return cudaMemPoolSetAttribute(pool, attribute, value);
}

CUDA_ENTRY(int, cuMemPoolTrimTo)(void *pool, size_t keep)
{
    return cudaMemPoolTrimTo(pool, keep);
}

CUDA_ENTRY(int, cuMemPoolSetAccess)(void *pool, const cuda_access *access, size_t count)
{
    return cudaMemPoolSetAccess(pool, access, count);
}

CUDA_ENTRY(int, cuMemAllocFromPoolAsync)(uint64_t *out, size_t size, void *pool, void *stream)
{
    void *pointer = NULL;
    const int status = cudaMallocFromPoolAsync(&pointer, size, pool, stream);
    *out = (uintptr_t)pointer;
    return status;
}

CUDA_ENTRY(int, cuGraphCreate)(void **graph, unsigned flags)
{
    return cudaGraphCreate(graph, flags);
}

CUDA_ENTRY(int, cuGraphDestroy)(void *graph)
{
    return cudaGraphDestroy(graph);
}

CUDA_ENTRY(int, cuGraphInstantiateWithFlags)(void **exec, void *graph, unsigned long long flags)
{
    return cudaGraphInstantiate(exec, graph, flags);
}

CUDA_ENTRY(int, cuGraphExecDestroy)(void *exec)
{
    return cudaGraphExecDestroy(exec);
}

CUDA_ENTRY(int, cuGraphLaunch)(void *exec, void *stream)
{
    return cudaGraphLaunch(exec, stream);
}

CUDA_ENTRY(int, cuGraphUpload)(void *exec, void *stream)
{
    return cudaGraphUpload(exec, stream);
}
