/* SPDX-License-Identifier: MIT */
/* cuBLAS, cuBLASLt, cuSPARSE, cuSOLVER, cuRAND: what programs look at. */
#include <string.h>

#include "standin/device.h"
#include "standin/handle.h"
#include "standin/report.h"
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

/* What a handle of cuBLAS remembers beside its stream. */
enum { CUBLAS_DEVICE, CUBLAS_TAKEN };

/** A handle takes of the device what the user's table says. */
CUDA_ENTRY(int, cublasCreate_v2)(void **out)
{
    enum { ALLOCATION_FAILED = 3 };
    static report_size taken = {
        .name = "memory of a cuBLAS handle", .workspace = ALLOT_WORKSPACE_cublas, .is_taken = true};
    const allot_workspaces *const table = &standin_settings()->workspaces;
    const uint64_t size = table->size[ALLOT_WORKSPACE_cublas];
    standin_handle *const handle = handle_create();
    if (handle == NULL) {
        return ALLOCATION_FAILED;
    }
    const unsigned device = standin_this_thread()->device;
    standin *const state = standin_open();
    const cuda_status status = memory_charge(state, device, size);
    standin_close(state);
    if (status != CUDA_OK) {
        handle_destroy(handle);
        return ALLOCATION_FAILED;
    }
    if (table->is_set[ALLOT_WORKSPACE_cublas]) {
        (void)report_size_call(&taken, REPORT_TABLE, size, size);
    }
    handle->values[CUBLAS_DEVICE] = device;
    handle->values[CUBLAS_TAKEN] = (int64_t)size;
    *out = handle;
    return 0;
}

CUDA_ENTRY(int, cublasDestroy_v2)(void *pointer)
{
    const standin_handle *const handle = handle_get(pointer);
    if (handle != NULL) {
        standin *const state = standin_open();
        memory_refund(state, (uint32_t)handle->values[CUBLAS_DEVICE],
                      (uint64_t)handle->values[CUBLAS_TAKEN]);
        standin_close(state);
        handle_destroy(pointer);
    }
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
