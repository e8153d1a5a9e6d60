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
