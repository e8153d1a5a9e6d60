/* SPDX-License-Identifier: MIT */
/* CUDA driver: modules, kernels, launches, streams, events. */
#include <string.h>

#include "standin/handle.h"
#include "standin/runtime.h"

static int give_handle(void **out)
{
    *out = handle_create();
    return *out == NULL ? CUDA_OUT_OF_MEMORY : CUDA_OK;
}

CUDA_ENTRY(int, cuModuleLoad)(void **module, const char *path)
{
    (void)path;
    return give_handle(module);
}

CUDA_ENTRY(int, cuModuleLoadData)(void **module, const void *image)
{
    (void)image;
    return give_handle(module);
}

CUDA_ENTRY(int, cuModuleLoadDataEx)(void **module, const void *image)
{
    (void)image;
    return give_handle(module);
}

CUDA_ENTRY(int, cuModuleUnload)(void *module)
{
    handle_destroy(module);
    return CUDA_OK;
}

CUDA_ENTRY(int, cuModuleGetFunction)(void **function, void *module, const char *name)
{
    (void)module;
    (void)name;
    return give_handle(function);
}

CUDA_ENTRY(int, cuModuleGetGlobal_v2)
(uint64_t *address, size_t *size, void *module, const char *name)
{
    (void)module;
    (void)name;
    standin *const state = standin_open();
    uint64_t place = 0;
    const cuda_status status = memory_allocate(state, standin_this_thread()->device,
                                               STANDIN_GRANULE, MEMORY_SYMBOL, &place);
    standin_close(state);
    if (status == CUDA_OK && address != NULL) {
        *address = place;
    }
    if (status == CUDA_OK && size != NULL) {
        *size = 4096;
    }
    return status;
}

CUDA_ENTRY(int, cuLibraryLoadData)(void **library)
{
    return give_handle(library);
}

CUDA_ENTRY(int, cuLibraryGetKernel)(void **kernel, void *library, const char *name)
{
    (void)library;
    (void)name;
    return give_handle(kernel);
}

CUDA_ENTRY(int, cuLibraryGetModule)(void **module, void *library)
{
    (void)library;
    return give_handle(module);
}

CUDA_ENTRY(int, cuKernelGetFunction)(void **function, void *kernel)
{
    *function = kernel;
    return CUDA_OK;
}

CUDA_ENTRY(int, cuLinkCreate_v2)(unsigned count, void *options, void **values, void **link)
{
    (void)count;
    (void)options;
    (void)values;
    return give_handle(link);
}

CUDA_ENTRY(int, cuLinkComplete)(void *link, void **image, size_t *size)
{
    static char nothing[64];
    (void)link;
    *image = nothing;
    if (size != NULL) {
        *size = sizeof nothing;
    }
    return CUDA_OK;
}

static int answer_function(int *value, int attribute)
{
    enum { THREADS = 0, REGISTERS = 4, PTX = 5, BINARY = 6 };
    const allot_gpu *const gpu = &standin_settings()->gpu;
    switch (attribute) {
    case THREADS:
        *value = 1024;
        break;
    case REGISTERS:
        *value = 32;
        break;
    case PTX:
    case BINARY:
        *value = (int)(gpu->compute_major * 10 + gpu->compute_minor);
        break;
    default:
        *value = 0;
    }
    return CUDA_OK;
}

CUDA_ENTRY(int, cuFuncGetAttribute)(int *value, int attribute, void *function)
{
    (void)function;
    return answer_function(value, attribute);
}

CUDA_ENTRY(int, cuKernelGetAttribute)(int *value, int attribute, void *kernel, int device)
{
    (void)kernel;
    (void)device;
    return answer_function(value, attribute);
}

CUDA_ENTRY(int, cuOccupancyMaxActiveBlocksPerMultiprocessor)
(int *blocks, void *function, int threads, size_t shared_size)
{
    function_facts facts = {0};
    const cuda_status status = function_get(function, &facts);
    *blocks = status == CUDA_OK ? function_occupancy(&facts, threads, shared_size) : 0;
    return status;
}

CUDA_ENTRY(int, cuOccupancyMaxActiveClusters)(int *clusters, void *function, const void *config)
{
    (void)function;
    (void)config;
    *clusters = (int)standin_settings()->gpu.sm_count / 8;
    return CUDA_OK;
}

CUDA_ENTRY(int, cuLaunchKernel)
(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
 unsigned block_y, unsigned block_z, unsigned shared_size, void *stream, void **arguments,
 void **extra)
{
    (void)function;
    (void)grid_x;
    (void)grid_y;
    (void)grid_z;
    (void)block_x;
    (void)block_y;
    (void)block_z;
    (void)shared_size;
    (void)arguments;
    (void)extra;
    return launch_on(stream, NULL);
}

CUDA_ENTRY(int, cuLaunchCooperativeKernel)
(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
 unsigned block_y, unsigned block_z, unsigned shared_size, void *stream, void **arguments)
{
    (void)function;
    (void)grid_x;
    (void)grid_y;
    (void)grid_z;
    (void)block_x;
    (void)block_y;
    (void)block_z;
    (void)shared_size;
    (void)arguments;
    return launch_on(stream, NULL);
}

/** CUlaunchConfig: as the runtime's, with a shorter field for shared memory. */
typedef struct driver_launch_config {
    cuda_dim3 grid;
    cuda_dim3 block;
    unsigned shared_size;
    void *stream;
    void *attributes;
    unsigned attribute_count;
} driver_launch_config;

CUDA_ENTRY(int, cuLaunchKernelEx)
(const driver_launch_config *config, void *function, void **arguments, void **extra)
{
    (void)function;
    (void)arguments;
    (void)extra;
    return launch_on(config->stream, NULL);
}

/** CUtensorMap has 128 bytes that only kernels read. */
CUDA_ENTRY(int, cuTensorMapEncodeTiled)(void *map)
{
    memset(map, 0, 128);
    return CUDA_OK;
}

/* ---- streams and events ---- */

CUDA_ENTRY(int, cuStreamCreate)(void **stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

CUDA_ENTRY(int, cuStreamCreateWithPriority)(void **stream, unsigned flags, int priority)
{
    return cudaStreamCreateWithPriority(stream, flags, priority);
}

CUDA_ENTRY(int, cuStreamDestroy_v2)(void *stream)
{
    return cudaStreamDestroy(stream);
}

CUDA_ENTRY(int, cuStreamQuery)(void *stream)
{
    return cudaStreamQuery(stream);
}

CUDA_ENTRY(int, cuStreamSynchronize)(void *stream)
{
    return cudaStreamSynchronize(stream);
}

CUDA_ENTRY(int, cuStreamWaitEvent)(void *stream, void *event, unsigned flags)
{
    return cudaStreamWaitEvent(stream, event, flags);
}

CUDA_ENTRY(int, cuStreamGetPriority)(void *stream, int *priority)
{
    return cudaStreamGetPriority(stream, priority);
}

CUDA_ENTRY(int, cuStreamIsCapturing)(void *stream, int *status)
{
    return cudaStreamIsCapturing(stream, status);
}

CUDA_ENTRY(int, cuStreamBeginCapture_v2)(void *stream, int mode)
{
    return cudaStreamBeginCapture(stream, mode);
}

CUDA_ENTRY(int, cuStreamEndCapture)(void *stream, void **graph)
{
    return cudaStreamEndCapture(stream, graph);
}

CUDA_ENTRY(int, cuLaunchHostFunc)(void *stream, void (*run)(void *), void *data)
{
    return cudaLaunchHostFunc(stream, run, data);
}

CUDA_ENTRY(int, cuStreamAddCallback)
(void *stream, void (*run)(void *, int, void *), void *data, unsigned flags)
{
    return cudaStreamAddCallback(stream, run, data, flags);
}

CUDA_ENTRY(int, cuStreamGetDevice)(void *stream, int *device)
{
    return cudaStreamGetDevice(stream, device);
}

CUDA_ENTRY(int, cuStreamGetFlags)(void *stream, unsigned *flags)
{
    return cudaStreamGetFlags(stream, flags);
}

CUDA_ENTRY(int, cuStreamGetId)(void *stream, unsigned long long *id)
{
    return cudaStreamGetId(stream, id);
}

CUDA_ENTRY(int, cuEventCreate)(void **event, unsigned flags)
{
    return cudaEventCreateWithFlags(event, flags);
}

CUDA_ENTRY(int, cuEventDestroy_v2)(void *event)
{
    return cudaEventDestroy(event);
}

CUDA_ENTRY(int, cuEventRecord)(void *event, void *stream)
{
    return cudaEventRecord(event, stream);
}

CUDA_ENTRY(int, cuEventRecordWithFlags)(void *event, void *stream, unsigned flags)
{
    return cudaEventRecordWithFlags(event, stream, flags);
}

CUDA_ENTRY(int, cuEventQuery)(void *event)
{
    return cudaEventQuery(event);
}

CUDA_ENTRY(int, cuEventSynchronize)(void *event)
{
    return cudaEventSynchronize(event);
}

CUDA_ENTRY(int, cuEventElapsedTime)(float *milliseconds, void *start, void *end)
{
    return cudaEventElapsedTime(milliseconds, start, end);
}
