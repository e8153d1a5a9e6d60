/* SPDX-License-Identifier: MIT */
/** What the files of cuDNN's older interface share: tensor descriptors and their types. */
#ifndef ALLOTI_STANDIN_CUDNN_H
#define ALLOTI_STANDIN_CUDNN_H

#include <stdint.h>

#include "standin/abi.h"

/** Places of a tensor descriptor's values in its handle. */
enum {
    CUDNN_TENSOR_TYPE,
    CUDNN_TENSOR_RANK,
    CUDNN_TENSOR_SIZE,
    CUDNN_TENSOR_STRIDE = 7,
    CUDNN_TENSOR_RANK_MAX = 5
};

/** A new handle for a descriptor; cuDNN's status. */
int cudnn_create(void **descriptor);

/** Bytes of an element of a cudnnDataType_t. */
uint64_t cudnn_type_size(int64_t type);

int cudnnSetTensorNdDescriptor(void *descriptor, int type, int rank, const int *size,
                               const int *stride);

#endif /* ALLOTI_STANDIN_CUDNN_H */
