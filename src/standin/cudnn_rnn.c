/* SPDX-License-Identifier: MIT */
/*
 * cuDNN's recurrent networks. The weight space is laid out exactly, since programs put their own
 * weights into it; workspaces are in the user's table or estimated, and the report says which.
 */
#include "standin/cudnn.h"
#include "standin/handle.h"
#include "standin/report.h"

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
    return cudnn_create(descriptor);
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
    *size = rnn == NULL ? 0
                        : (size_t)(find_weight(rnn, -1, 0, false).offset *
                                   cudnn_type_size(rnn->values[RNN_TYPE]));
    return 0;
}

/** Describe a part to the caller: its address and a tensor of 1 x rows x columns. */
static void give_weight(const standin_handle *rnn, const weight_part *part, char *weights,
                        void *descriptor, void **address)
{
    const int size[3] = {1, (int)part->rows, (int)part->columns};
    const int stride[3] = {size[1] * size[2], size[2], 1};
    if (address != NULL) {
        *address = part->rows == 0
                       ? NULL
                       : weights + part->offset * cudnn_type_size(rnn->values[RNN_TYPE]);
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
    return cudnn_create(descriptor);
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

/** An activation for each gate: the right order of magnitude, no more. */
static uint64_t activations(const standin_handle *rnn, const standin_handle *data)
{
    return (uint64_t)(data->values[DATA_TIME] * data->values[DATA_BATCH] * rnn->values[RNN_HIDDEN] *
                      rnn->values[RNN_LAYERS] * rnn->values[RNN_DIRECTIONS] * gates(rnn)) *
           cudnn_type_size(rnn->values[RNN_TYPE]);
}

CUDA_ENTRY(int, cudnnGetRNNTempSpaceSizes)
(void *handle, void *descriptor, int mode, void *data_descriptor, size_t *work, size_t *reserve)
{
    enum { NOT_SUPPORTED = 3000 };
    static report_size for_work = {.name = "cuDNN workspaces of recurrent networks",
                                   .workspace = ALLOT_WORKSPACE_cudnn};
    static report_size for_reserve = {.name = "what cuDNN keeps of recurrent networks",
                                      .workspace = ALLOT_WORKSPACE_cudnn_reserve};
    const standin_handle *const rnn = handle_get(descriptor);
    const standin_handle *const data = handle_get(data_descriptor);
    (void)handle;
    const uint64_t estimate = rnn == NULL || data == NULL ? 0 : activations(rnn, data);
    uint64_t bytes = estimate;
    bool is_answered = report_size_by_table(&for_work, REPORT_UNKNOWN, &bytes, 0);
    *work = (size_t)bytes;
    if (reserve != NULL) {
        *reserve = 0;
    }
    if (reserve != NULL && mode != 0) {
        bytes = 2 * estimate;
        is_answered = report_size_by_table(&for_reserve, REPORT_UNKNOWN, &bytes, 0) && is_answered;
        *reserve = (size_t)bytes;
    }
    return is_answered ? 0 : NOT_SUPPORTED;
}
