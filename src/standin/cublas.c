/* SPDX-License-Identifier: MIT */
/* cuBLAS, cuBLASLt, cuSPARSE, cuSOLVER, cuFFT, cuRAND: what programs look at. */
#include <stdatomic.h>
#include <string.h>

#include "standin/device.h"
#include "standin/handle.h"
#include "standin/runtime.h"

static int set_stream(void *handle, void *stream)
{
    standin_handle *const known = handle_get(handle);
    if (known != NULL) {
        known->stream = stream;
    }
    return 0;
}

static int get_stream(void *handle, void **stream)
{
    const standin_handle *const known = handle_get(handle);
    *stream = known == NULL ? NULL : known->stream;
    return 0;
}

CUDA_ENTRY(int, cublasSetStream_v2)(void *handle, void *stream)
{
    return set_stream(handle, stream);
}

CUDA_ENTRY(int, cublasGetStream_v2)(void *handle, void **stream)
{
    return get_stream(handle, stream);
}

CUDA_ENTRY(int, cusparseSetStream)(void *handle, void *stream)
{
    return set_stream(handle, stream);
}

CUDA_ENTRY(int, cusparseGetStream)(void *handle, void **stream)
{
    return get_stream(handle, stream);
}

CUDA_ENTRY(int, cusolverDnSetStream)(void *handle, void *stream)
{
    return set_stream(handle, stream);
}

CUDA_ENTRY(int, cusolverDnGetStream)(void *handle, void **stream)
{
    return get_stream(handle, stream);
}

CUDA_ENTRY(int, curandSetStream)(void *handle, void *stream)
{
    return set_stream(handle, stream);
}

CUDA_ENTRY(size_t, cublasLtGetVersion)(void)
{
    return standin_settings()->cublas_version;
}

CUDA_ENTRY(size_t, cublasLtGetCudartVersion)(void)
{
    return (size_t)device_cuda_version();
}

CUDA_ENTRY(size_t, cublasGetCudartVersion)(void)
{
    return (size_t)device_cuda_version();
}

CUDA_ENTRY(int, cublasGetVersion_v2)(void *handle, int *version)
{
    (void)handle;
    *version = (int)standin_settings()->cublas_version;
    return 0;
}

static const char *status_text(int status)
{
    return status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_EXECUTION_FAILED";
}

CUDA_ENTRY(const char *, cublasGetStatusString)(int status)
{
    return status_text(status);
}

CUDA_ENTRY(const char *, cublasGetStatusName)(int status)
{
    return status_text(status);
}

CUDA_ENTRY(const char *, cublasLtGetStatusString)(int status)
{
    return status_text(status);
}

CUDA_ENTRY(const char *, cublasLtGetStatusName)(int status)
{
    return status_text(status);
}

/** One way to multiply, which needs no workspace: cublasLtMatmulHeuristicResult_t of 96 bytes. */
CUDA_ENTRY(int, cublasLtMatmulAlgoGetHeuristic)
(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int room,
 void *results, int *found)
{
    enum { RESULT_SIZE = 96 };
    (void)handle;
    (void)operation;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    (void)preference;
    *found = room > 0 ? 1 : 0;
    if (room > 0) {
        memset(results, 0, RESULT_SIZE);
    }
    return 0;
}

CUDA_ENTRY(int, cublasLtMatmul)
(void *handle, void *operation, void *alpha, void *a, void *a_layout, void *b, void *b_layout,
 void *beta, void *c, void *c_layout, void *d, void *d_layout, void *algorithm, void *workspace,
 size_t workspace_size, void *stream)
{
    (void)handle;
    (void)operation;
    (void)alpha;
    (void)a;
    (void)a_layout;
    (void)b;
    (void)b_layout;
    (void)beta;
    (void)c;
    (void)c_layout;
    (void)d;
    (void)d_layout;
    (void)algorithm;
    (void)workspace;
    (void)workspace_size;
    return launch_on(stream, NULL) == CUDA_OK ? 0 : 13;
}

/* Plans of cuFFT are numbers. */
CUDA_ENTRY(int, cufftCreate)(int *plan)
{
    static atomic_int last;
    *plan = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return 0;
}
