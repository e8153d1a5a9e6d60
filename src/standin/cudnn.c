/* SPDX-License-Identifier: MIT */
/*
 * cuDNN: descriptors that remember what they are told, so that the sizes a program asks for come
 * out right. One engine that needs no workspace answers every graph: real workspaces depend on
 * heuristics that only cuDNN itself knows, and the report says so.
 */
#include <string.h>

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

static int create(void **descriptor)
{
    enum { ALLOCATION_FAILED = 2 };
    *descriptor = handle_create();
    return *descriptor == NULL ? ALLOCATION_FAILED : 0;
}

/* ---- the graph interface ---- */

CUDA_ENTRY(int, cudnnBackendCreateDescriptor)(int type, void **descriptor)
{
    (void)type;
    return create(descriptor);
}

CUDA_ENTRY(int, cudnnBackendDestroyDescriptor)(void *descriptor)
{
    handle_destroy(descriptor);
    return 0;
}

CUDA_ENTRY(int, cudnnBackendExecute)(void *handle, void *plan, void *variant)
{
    static report_guess guess = {.name = "cuDNN workspaces"};
    (void)plan;
    (void)variant;
    (void)report_guess_call(&guess);
    handle_work(handle);
    return 0;
}

/* Numbers of cudnnBackendAttributeType_t. */
enum {
    TYPE_HANDLE = 0,
    TYPE_BOOLEAN = 2,
    TYPE_INT64 = 3,
    TYPE_DOUBLE = 5,
    TYPE_VOID_POINTER = 6,
    TYPE_DESCRIPTOR = 15,
    TYPE_CHAR = 24,
};

/** Every attribute is one zero; descriptors that the caller made are left as they are. */
CUDA_ENTRY(int, cudnnBackendGetAttribute)
(void *descriptor, int name, int type, int64_t room, int64_t *count, void *out)
{
    (void)descriptor;
    (void)name;
    if (count != NULL) {
        *count = 1;
    }
    if (out == NULL || room <= 0) {
        return 0;
    }
    switch (type) {
    case TYPE_HANDLE:
    case TYPE_VOID_POINTER:
    case TYPE_DESCRIPTOR:
    case TYPE_CHAR:
        break;
    case TYPE_BOOLEAN:
        memset(out, 0, 1);
        break;
    case TYPE_INT64:
    case TYPE_DOUBLE:
        memset(out, 0, sizeof(int64_t));
        break;
    default:
        memset(out, 0, sizeof(int));
    }
    return 0;
}

/* ---- tensors ---- */

/* What a tensor descriptor's values mean. */
enum { TENSOR_TYPE, TENSOR_RANK, TENSOR_SIZE, TENSOR_STRIDE = 7, TENSOR_RANK_MAX = 5 };

CUDA_ENTRY(int, cudnnCreateTensorDescriptor)(void **descriptor)
{
    return create(descriptor);
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
    tensor->values[TENSOR_TYPE] = type;
    tensor->values[TENSOR_RANK] = rank;
    for (int i = 0; i < rank && i < TENSOR_RANK_MAX; i++) {
        tensor->values[TENSOR_SIZE + i] = size[i];
        tensor->values[TENSOR_STRIDE + i] = stride[i];
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
        *type = (int)tensor->values[TENSOR_TYPE];
    }
    if (rank != NULL) {
        *rank = (int)tensor->values[TENSOR_RANK];
    }
    for (int i = 0; i < tensor->values[TENSOR_RANK] && i < room && i < TENSOR_RANK_MAX; i++) {
        if (size != NULL) {
            size[i] = (int)tensor->values[TENSOR_SIZE + i];
        }
        if (stride != NULL) {
            stride[i] = (int)tensor->values[TENSOR_STRIDE + i];
        }
    }
    return 0;
}

static uint64_t type_size(int64_t type)
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

/* ---- recurrent networks ---- */

enum {
    RNN_TYPE,
    RNN_MODE,
    RNN_BIAS,
    RNN_DIRECTIONS,
    RNN_INPUT,
    RNN_HIDDEN,
    RNN_PROJECTION,
    RNN_LAYERS,
};
enum { MODE_LSTM = 2, MODE_GRU = 3, BIAS_NONE = 0, BIAS_DOUBLE = 2, BIDIRECTIONAL = 1 };

CUDA_ENTRY(int, cudnnCreateRNNDescriptor)(void **descriptor)
{
    return create(descriptor);
}

CUDA_ENTRY(int, cudnnDestroyRNNDescriptor)(void *descriptor)
{
    handle_destroy(descriptor);
    return 0;
}

CUDA_ENTRY(int, cudnnSetRNNDescriptor_v8)
(void *descriptor, int algorithm, int mode, int bias, int direction, int input_mode, int type,
 int math_precision, int math_type, int input, int hidden, int projection, int layers,
 void *dropout, unsigned flags)
{
    (void)algorithm;
    (void)input_mode;
    (void)math_precision;
    (void)math_type;
    (void)dropout;
    (void)flags;
    standin_handle *const rnn = handle_get(descriptor);
    if (rnn != NULL) {
        rnn->values[RNN_TYPE] = type;
        rnn->values[RNN_MODE] = mode;
        rnn->values[RNN_BIAS] = bias;
        rnn->values[RNN_DIRECTIONS] = direction == BIDIRECTIONAL ? 2 : 1;
        rnn->values[RNN_INPUT] = input;
        rnn->values[RNN_HIDDEN] = hidden;
        rnn->values[RNN_PROJECTION] = projection;
        rnn->values[RNN_LAYERS] = layers;
    }
    return 0;
}

static int64_t gates(const standin_handle *rnn)
{
    return rnn->values[RNN_MODE] == MODE_LSTM ? 4 : rnn->values[RNN_MODE] == MODE_GRU ? 3 : 1;
}

static int64_t biases(const standin_handle *rnn)
{
    return rnn->values[RNN_BIAS] == BIAS_NONE ? 0 : rnn->values[RNN_BIAS] == BIAS_DOUBLE ? 2 : 1;
}

/** One matrix or bias inside the weight space, in elements. */
typedef struct weight_part {
    uint64_t offset;
    uint64_t rows; /**< 0: there is no such part. */
    uint64_t columns;
} weight_part;

/** Size of part `layer`: first all matrices of input and hidden state, then the projection. */
static weight_part matrix(const standin_handle *rnn, int64_t layer, int64_t part)
{
    const uint64_t hidden = (uint64_t)rnn->values[RNN_HIDDEN];
    const uint64_t projection = (uint64_t)rnn->values[RNN_PROJECTION];
    const uint64_t directions = (uint64_t)rnn->values[RNN_DIRECTIONS];
    const uint64_t input = layer < rnn->values[RNN_DIRECTIONS] ? (uint64_t)rnn->values[RNN_INPUT]
                                                               : projection * directions;
    if (part == 2 * gates(rnn)) {
        /* Without a projection there is no such matrix. */
        return (weight_part){0, projection == hidden ? 0 : projection, hidden};
    }
    return (weight_part){0, hidden, part < gates(rnn) ? input : projection};
}

/**
 * Find a part of the weight space: all matrices of all layers come first, then all biases. With a
 * layer that does not exist the offset is the size of the whole.
 */
static weight_part find_weight(const standin_handle *rnn, int64_t layer, int64_t part, bool is_bias)
{
    const int64_t layers = rnn->values[RNN_LAYERS] * rnn->values[RNN_DIRECTIONS];
    const int64_t parts = 2 * gates(rnn) + 1;
    uint64_t offset = 0;
    for (int64_t i = 0; i < layers; i++) {
        for (int64_t j = 0; j < parts; j++) {
            weight_part at = matrix(rnn, i, j);
            if (!is_bias && i == layer && j == part) {
                at.offset = offset;
                return at;
            }
            offset += at.rows * at.columns;
        }
    }
    const uint64_t hidden = (uint64_t)rnn->values[RNN_HIDDEN];
    for (int64_t i = 0; i < layers; i++) {
        for (int64_t j = 0; j < biases(rnn) * gates(rnn); j++) {
            if (is_bias && i == layer && j == part) {
                return (weight_part){offset, hidden, 1};
            }
            offset += hidden;
        }
    }
    return (weight_part){offset, 0, 0};
}

CUDA_ENTRY(int, cudnnGetRNNWeightSpaceSize)(void *handle, void *descriptor, size_t *size)
{
    (void)handle;
    const standin_handle *const rnn = handle_get(descriptor);
    *size =
        rnn == NULL
            ? 0
            : (size_t)(find_weight(rnn, -1, 0, false).offset * type_size(rnn->values[RNN_TYPE]));
    return 0;
}

/** Describe a part to the caller: its address and a tensor of 1 x rows x columns. */
static void give_weight(const standin_handle *rnn, const weight_part *part, char *weights,
                        void *descriptor, void **address)
{
    const int size[3] = {1, (int)part->rows, (int)part->columns};
    const int stride[3] = {size[1] * size[2], size[2], 1};
    if (address != NULL) {
        *address =
            part->rows == 0 ? NULL : weights + part->offset * type_size(rnn->values[RNN_TYPE]);
    }
    if (descriptor != NULL) {
        (void)cudnnSetTensorNdDescriptor(descriptor, (int)rnn->values[RNN_TYPE],
                                         part->rows == 0 ? 0 : 3, size, stride);
    }
}

CUDA_ENTRY(int, cudnnGetRNNWeightParams)
(void *handle, void *descriptor, int layer, size_t size, void *weights, int part,
 void *matrix_descriptor, void **matrix_address, void *bias_descriptor, void **bias_address)
{
    (void)handle;
    (void)size;
    const standin_handle *const rnn = handle_get(descriptor);
    if (rnn == NULL) {
        return 0;
    }
    const weight_part matrix_part = find_weight(rnn, layer, part, false);
    const weight_part bias_part = find_weight(rnn, layer, part, true);
    give_weight(rnn, &matrix_part, weights, matrix_descriptor, matrix_address);
    give_weight(rnn, &bias_part, weights, bias_descriptor, bias_address);
    return 0;
}

enum { DATA_TIME, DATA_BATCH };

CUDA_ENTRY(int, cudnnCreateRNNDataDescriptor)(void **descriptor)
{
    return create(descriptor);
}

CUDA_ENTRY(int, cudnnDestroyRNNDataDescriptor)(void *descriptor)
{
    handle_destroy(descriptor);
    return 0;
}

CUDA_ENTRY(int, cudnnSetRNNDataDescriptor)
(void *descriptor, int type, int layout, int time, int batch, int size, const int *lengths,
 void *padding)
{
    (void)type;
    (void)layout;
    (void)size;
    (void)lengths;
    (void)padding;
    standin_handle *const data = handle_get(descriptor);
    if (data != NULL) {
        data->values[DATA_TIME] = time;
        data->values[DATA_BATCH] = batch;
    }
    return 0;
}

CUDA_ENTRY(int, cudnnGetRNNTempSpaceSizes)
(void *handle, void *descriptor, int mode, void *data_descriptor, size_t *work, size_t *reserve)
{
    static report_guess guess = {.name = "cuDNN workspaces of recurrent networks"};
    const standin_handle *const rnn = handle_get(descriptor);
    const standin_handle *const data = handle_get(data_descriptor);
    (void)handle;
    (void)report_guess_call(&guess);
    uint64_t size = 0;
    if (rnn != NULL && data != NULL) {
        /* One activation per gate: the right order of magnitude, not the exact figure. */
        size = (uint64_t)(data->values[DATA_TIME] * data->values[DATA_BATCH] *
                          rnn->values[RNN_HIDDEN] * rnn->values[RNN_LAYERS] *
                          rnn->values[RNN_DIRECTIONS] * gates(rnn)) *
               type_size(rnn->values[RNN_TYPE]);
    }
    *work = (size_t)size;
    if (reserve != NULL) {
        *reserve = mode != 0 ? (size_t)size * 2 : 0;
    }
    return 0;
}

CUDA_ENTRY(int, cudnnDropoutGetStatesSize)(void *handle, size_t *size)
{
    enum { STATE = 48 }; /* of the random generator of one thread */
    (void)handle;
    const allot_gpu *const gpu = &standin_settings()->gpu;
    *size = (size_t)(gpu->sm_count * 2048 * STATE);
    return 0;
}
