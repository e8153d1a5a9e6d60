/* SPDX-License-Identifier: MIT */
/*
 * cuDNN: versions, streams, tensor descriptors that remember what they are told. The graph
 * interface, recurrent networks and normalisation are in files of their own.
 */
#include "standin/cudnn.h"

#include "standin/device.h"
#include "standin/handle.h"
#include "standin/report.h"
#include "standin/runtime.h"

CUDA_ENTRY(size_t, cudnnGetVersion)(void)
{
    return standin_settings()->cudnn_version;
}

CUDA_ENTRY(size_t, cudnnGetCudartVersion)(void)
{
    return (size_t)device_cuda_version();
}

CUDA_ENTRY(size_t, cudnnGetMaxDeviceVersion)(void)
{
    return 1200;
}

CUDA_ENTRY(const char *, cudnnGetErrorString)(int status)
{
    return status == 0 ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_EXECUTION_FAILED";
}

CUDA_ENTRY(void, cudnnGetLastErrorString)(char *text, size_t size)
{
    if (size != 0) {
        text[0] = '\0';
    }
}

CUDA_ENTRY(int, cudnnGetProperty)(int property, int *value)
{
    const unsigned version = standin_settings()->cudnn_version; /* 91002: 9.10.2 */
    const unsigned parts[] = {version / 10000, version / 100 % 100, version % 100};
    *value = property >= 0 && property < 3 ? (int)parts[property] : 0;
    return 0;
}

CUDA_ENTRY(int, cudnnSetStream)(void *handle, void *stream)
{
    standin_handle *const known = handle_get(handle);
    if (known != NULL) {
        known->stream = stream;
    }
    return 0;
}

CUDA_ENTRY(int, cudnnGetStream)(void *handle, void **stream)
{
    const standin_handle *const known = handle_get(handle);
    *stream = known == NULL ? NULL : known->stream;
    return 0;
}

int cudnn_create(void **descriptor)
{
    enum { ALLOCATION_FAILED = 2 };
    *descriptor = handle_create();
    return *descriptor == NULL ? ALLOCATION_FAILED : 0;
}

/* ---- tensors ---- */

CUDA_ENTRY(int, cudnnCreateTensorDescriptor)(void **descriptor)
{
    return cudnn_create(descriptor);
}

CUDA_ENTRY(int, cudnnDestroyTensorDescriptor)(void *descriptor)
{
    handle_destroy(descriptor);
    return 0;
}

CUDA_ENTRY(int, cudnnSetTensorNdDescriptor)
(void *descriptor, int type, int rank, const int *size, const int *stride)
{
    standin_handle *const tensor = handle_get(descriptor);
    if (tensor == NULL) {
        return 0;
    }
    tensor->values[CUDNN_TENSOR_TYPE] = type;
    tensor->values[CUDNN_TENSOR_RANK] = rank;
    for (int i = 0; i < rank && i < CUDNN_TENSOR_RANK_MAX; i++) {
        tensor->values[CUDNN_TENSOR_SIZE + i] = size[i];
        tensor->values[CUDNN_TENSOR_STRIDE + i] = stride[i];
    }
    return 0;
}

CUDA_ENTRY(int, cudnnGetTensorNdDescriptor)
(void *descriptor, int room, int *type, int *rank, int *size, int *stride)
{
    const standin_handle *const tensor = handle_get(descriptor);
    if (tensor == NULL) {
        return 0;
    }
    if (type != NULL) {
        *type = (int)tensor->values[CUDNN_TENSOR_TYPE];
    }
    if (rank != NULL) {
        *rank = (int)tensor->values[CUDNN_TENSOR_RANK];
    }
    for (int i = 0; i < tensor->values[CUDNN_TENSOR_RANK] && i < room && i < CUDNN_TENSOR_RANK_MAX;
         i++) {
        if (size != NULL) {
            size[i] = (int)tensor->values[CUDNN_TENSOR_SIZE + i];
        }
        if (stride != NULL) {
            stride[i] = (int)tensor->values[CUDNN_TENSOR_STRIDE + i];
        }
    }
    return 0;
}

uint64_t cudnn_type_size(int64_t type)
{
    switch (type) {
    case 1: /* double */
        return 8;
    case 2: /* half */
    case 9: /* bfloat16 */
        return 2;
    default:
        return 4;
    }
}

/* ---- dropout ---- */

CUDA_ENTRY(int, cudnnDropoutGetStatesSize)(void *handle, size_t *size)
{
    enum { STATE = 48, THREADS = 2048 };
    static report_size asked = {.name = "cudnnDropoutGetStatesSize",
                                .source = "a generator of 48 bytes for each of 2048 threads of a "
                                          "multiprocessor",
                                .workspace = ALLOT_WORKSPACE_cudnn_reserve};
    (void)handle;
    const uint64_t bytes = standin_settings()->gpu.sm_count * THREADS * STATE;
    (void)report_size_call(&asked, REPORT_RULE, bytes, bytes);
    *size = (size_t)bytes;
    return 0;
}
