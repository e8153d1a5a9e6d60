/* SPDX-License-Identifier: MIT */
/* CUDA runtime: kernels, what is known of them, starting them, which does nothing but count. */
#include <stdlib.h>
#include <string.h>

#include "standin/handle.h"
#include "standin/module.h"
#include "standin/runtime.h"

/* ---- registration, called by what nvcc generates ---- */

CUDA_ENTRY(void **, __cudaRegisterFatBinary)(const void *wrapper)
{
    return module_register(wrapper);
}

CUDA_ENTRY(void, __cudaRegisterFatBinaryEnd)(void **handle)
{
    (void)handle;
}

CUDA_ENTRY(void, __cudaUnregisterFatBinary)(void **handle)
{
    (void)handle; /* happens while the process ends; functions may be asked about until then */
}

CUDA_ENTRY(void, __cudaRegisterFunction)
(void **handle, const char *function, char *device_function, const char *name, int threads,
 void *thread, void *block, void *block_size, void *grid_size, int *warp)
{
    (void)device_function;
    (void)threads;
    (void)thread;
    (void)block;
    (void)block_size;
    (void)grid_size;
    (void)warp;
    module_add_function(handle, function, name);
}

CUDA_ENTRY(void, __cudaRegisterVar)(void **handle)
{
    (void)handle;
}

CUDA_ENTRY(void, __cudaRegisterManagedVar)(void **handle)
{
    (void)handle;
}

CUDA_ENTRY(char, __cudaInitModule)(void **handle)
{
    (void)handle;
    return 0;
}

/* ---- launches ---- */

typedef struct call_configuration {
    cuda_dim3 grid;
    cuda_dim3 block;
    size_t shared_size;
    void *stream;
} call_configuration;

/* Launches by <<< >>> push this and pop it at once, in a function that the compiler generated. */
static _Thread_local call_configuration pushed;

CUDA_ENTRY(unsigned, __cudaPushCallConfiguration)
(cuda_dim3 grid, cuda_dim3 block, size_t shared_size, void *stream)
{
    pushed = (call_configuration){grid, block, shared_size, stream};
    return 0;
}

CUDA_ENTRY(int, __cudaPopCallConfiguration)
(cuda_dim3 *grid, cuda_dim3 *block, size_t *shared_size, void **stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared_size = pushed.shared_size;
    *stream = pushed.stream;
    return 0;
}

cuda_status launch_on(void *handle, const void *kernel)
{
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    cuda_status status = stream_get(state, handle, &stream);
    if (status == CUDA_OK) {
        state->values.launches++;
        stream->kernel = kernel;
        status = stream_work(state, stream);
    }
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, __cudaGetKernel)(const void **kernel, const void *function)
{
    *kernel = function;
    return CUDA_OK;
}

/* The entries that start a kernel differ in name only: of their arguments the stream counts. */
#define LAUNCH_ENTRY(name, default_stream)                                                         \
    CUDA_ENTRY(int, name)                                                                          \
    (const void *kernel, cuda_dim3 grid, cuda_dim3 block, void **arguments, size_t shared_size,    \
     void *stream)                                                                                 \
    {                                                                                              \
        (void)grid;                                                                                \
        (void)block;                                                                               \
        (void)arguments;                                                                           \
        (void)shared_size;                                                                         \
        return launch_on(stream == NULL ? (default_stream) : stream, kernel);                      \
    }

LAUNCH_ENTRY(__cudaLaunchKernel, NULL)
LAUNCH_ENTRY(__cudaLaunchKernel_ptsz, (void *)2) /* cudaStreamPerThread */
LAUNCH_ENTRY(cudaLaunchKernel, NULL)
LAUNCH_ENTRY(cudaLaunchCooperativeKernel, NULL)

CUDA_ENTRY(int, cudaLaunchKernelExC)
(const cuda_launch_config *config, const void *kernel, void **arguments)
{
    (void)arguments;
    return launch_on(config->stream, kernel);
}

/* ---- what is known of a kernel ---- */

cuda_status function_get(const void *function, function_facts *out)
{
    enum { REGISTERS = 32 }; /* an assumption: nothing here depends on it but what is displayed */
    const allot_gpu *const gpu = &standin_settings()->gpu;
    const int found =
        module_architecture(function, (unsigned)gpu->compute_major, (unsigned)gpu->compute_minor);
    if (found == 0) {
        return CUDA_INVALID_DEVICE_FUNCTION;
    }
    *out = (function_facts){
        .architecture = found > 0 ? found : (int)(gpu->compute_major * 10 + gpu->compute_minor),
        .registers = REGISTERS,
        .threads = 1024};
    return CUDA_OK;
}

int function_occupancy(int threads, uint64_t shared_size)
{
    /* Registers are not known, and they decide on real hardware. Two blocks reproduce recordings of
     * real runs; never more than threads and shared memory allow. */
    enum { ASSUMED = 2 };
    const allot_gpu *const gpu = &standin_settings()->gpu;
    uint64_t blocks = ASSUMED;
    if (threads > 0 && gpu->sm_threads / (uint64_t)threads < blocks) {
        blocks = gpu->sm_threads / (uint64_t)threads;
    }
    if (shared_size != 0 && gpu->sm_shared_size / shared_size < blocks) {
        blocks = gpu->sm_shared_size / shared_size;
    }
    return (int)blocks;
}

CUDA_ENTRY(int, cudaFuncGetAttributes)(cuda_function_attributes *out, const void *function)
{
    function_facts facts = {0};
    const cuda_status status = function_get(function, &facts);
    if (status != CUDA_OK) {
        return standin_result(status);
    }
    memset(out, 0, sizeof *out);
    out->max_threads = facts.threads;
    out->registers = facts.registers;
    out->ptx_version = facts.architecture;
    out->binary_version = facts.architecture;
    out->max_dynamic_shared_size = (int)standin_settings()->gpu.block_shared_optin_size;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaFuncSetAttribute)(const void *function, int attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaOccupancyMaxActiveBlocksPerMultiprocessor)
(int *blocks, const void *function, int threads, size_t shared_size)
{
    (void)function;
    *blocks = function_occupancy(threads, shared_size);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
(int *blocks, const void *function, int threads, size_t shared_size, unsigned flags)
{
    (void)function;
    (void)flags;
    *blocks = function_occupancy(threads, shared_size);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaOccupancyMaxActiveClusters)
(int *clusters, const void *function, const cuda_launch_config *config)
{
    (void)function;
    (void)config;
    *clusters = (int)standin_settings()->gpu.sm_count / 8;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGetFuncBySymbol)(const void **function, const void *symbol)
{
    *function = symbol;
    return CUDA_OK;
}

/* ---- libraries loaded at run time ---- */

CUDA_ENTRY(int, cudaLibraryLoadData)(void **library)
{
    *library = handle_create();
    return standin_result(*library == NULL ? CUDA_OUT_OF_MEMORY : CUDA_OK);
}

CUDA_ENTRY(int, cudaLibraryLoadFromFile)(void **library)
{
    *library = handle_create();
    return standin_result(*library == NULL ? CUDA_OUT_OF_MEMORY : CUDA_OK);
}

CUDA_ENTRY(int, cudaLibraryUnload)(void *library)
{
    handle_destroy(library);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaLibraryGetKernel)(void **kernel, void *library, const char *name)
{
    (void)library;
    (void)name;
    *kernel = handle_create();
    return standin_result(*kernel == NULL ? CUDA_OUT_OF_MEMORY : CUDA_OK);
}

/* ---- driver entries looked up by name ---- */

static int give_entry(const char *name, void **entry, int *result)
{
    enum { FOUND = 0, NOT_FOUND = 1 };
    *entry = entry_find(name);
    if (result != NULL) {
        *result = *entry == NULL ? NOT_FOUND : FOUND;
    }
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGetDriverEntryPoint)
(const char *name, void **entry, unsigned long long flags, int *result)
{
    (void)flags;
    return give_entry(name, entry, result);
}

CUDA_ENTRY(int, cudaGetDriverEntryPointByVersion)
(const char *name, void **entry, unsigned version, unsigned long long flags, int *result)
{
    (void)version;
    (void)flags;
    return give_entry(name, entry, result);
}
