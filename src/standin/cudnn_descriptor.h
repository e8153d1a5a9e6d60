/* SPDX-License-Identifier: MIT */
/**
 * Descriptors of cuDNN's graph interface. A descriptor is a type and a list of attributes, which
 * hold numbers or other descriptors; nothing here knows what they mean. That is enough to hand a
 * whole graph on to a real cuDNN.
 *
 * A descriptor that is an attribute of another lives as long as that one. Attributes are set before
 * a descriptor is given on, so that only the count of references is shared between threads.
 */
#ifndef ALLOTI_STANDIN_CUDNN_DESCRIPTOR_H
#define ALLOTI_STANDIN_CUDNN_DESCRIPTOR_H

#include <stdatomic.h>

#include "standin/report.h"

/** Numbers of cudnnBackendAttributeType_t. */
enum {
    CUDNN_TYPE_HANDLE = 0,
    CUDNN_TYPE_BOOLEAN = 2,
    CUDNN_TYPE_INT64 = 3,
    CUDNN_TYPE_DOUBLE = 5,
    CUDNN_TYPE_POINTER = 6,
    CUDNN_TYPE_HEURISTIC_MODE = 8,
    CUDNN_TYPE_NUMERICAL_NOTE = 11,
    CUDNN_TYPE_DESCRIPTOR = 15,
    CUDNN_TYPE_BEHAVIOR_NOTE = 19,
    CUDNN_TYPE_CHAR = 24,
    CUDNN_TYPE_FRACTION = 26,
};

/** Of cudnnBackendDescriptorType_t. */
enum {
    CUDNN_ENGINE = 2,
    CUDNN_ENGINE_CONFIG = 3,
    CUDNN_HEURISTICS = 4,
    CUDNN_PLAN = 5,
    CUDNN_GRAPH = 15,
    CUDNN_DEVICE_PROPERTIES = 38,
};

/** Of cudnnBackendAttributeName_t. */
enum {
    CUDNN_HEURISTICS_MODE = 200,
    CUDNN_HEURISTICS_GRAPH = 201,
    CUDNN_HEURISTICS_RESULTS = 202,
    CUDNN_HEURISTICS_DEVICE = 204,
    CUDNN_CONFIG_ENGINE = 300,
    CUDNN_CONFIG_KNOBS = 302,
    CUDNN_CONFIG_WORKSPACE_SIZE = 303,
    CUDNN_PLAN_CONFIG = 401,
    CUDNN_PLAN_WORKSPACE_SIZE = 402,
    CUDNN_ENGINE_GRAPH = 1300,
    CUDNN_ENGINE_INDEX = 1301,
    CUDNN_ENGINE_NUMERICAL_NOTE = 1303,
    CUDNN_ENGINE_BEHAVIOR_NOTE = 1305,
    CUDNN_DEVICE_JSON = 2702,
};

/** Of cudnnStatus_t. */
enum {
    CUDNN_OK = 0,
    CUDNN_BAD_PARAMETER = 2000,
    CUDNN_NOT_SUPPORTED = 3000,
    CUDNN_NO_HOST_MEMORY = 4003,
};

typedef struct cudnn_attribute {
    int name;
    int type;
    uint32_t count;
    void *values; /**< [count] of cudnn_value_size(type) bytes; pointers to descriptors are held. */
} cudnn_attribute;

typedef struct cudnn_descriptor {
    uint64_t mark;
    int type;
    atomic_uint references;
    cudnn_attribute *attributes;
    uint64_t count;
    uint64_t capacity;
    report_basis basis;          /**< Of the workspace of an engine configuration or a plan. */
    int status;                  /**< What finalising a plan of this engine configuration gives. */
    struct cudnn_answer *answer; /**< Of the real cuDNN, that proposed it; NULL for none. */
    uint32_t choice;             /**< Which of its proposals. */
} cudnn_descriptor;

/** NULL without host memory. */
cudnn_descriptor *cudnn_descriptor_create(int type);

/** NULL unless it is a live descriptor. */
cudnn_descriptor *cudnn_descriptor_get(void *pointer);

/** One reference less; the last one frees it. NULL is allowed. */
void cudnn_descriptor_release(cudnn_descriptor *descriptor);

/** Bytes of one value; 0 for types that are not known. */
size_t cudnn_value_size(int type);

/** Set an attribute, in place of what it was. false without host memory or for an unknown type. */
bool cudnn_descriptor_set(cudnn_descriptor *descriptor, int name, int type, uint32_t count,
                          const void *values);

/** NULL for none. Borrowed: valid until the next cudnn_descriptor_set(). */
const cudnn_attribute *cudnn_descriptor_find(const cudnn_descriptor *descriptor, int name);

/** The descriptor that an attribute holds, NULL for none. */
cudnn_descriptor *cudnn_descriptor_child(const cudnn_descriptor *descriptor, int name);

/** The first number of an attribute, `otherwise` for none. */
int64_t cudnn_descriptor_number(const cudnn_descriptor *descriptor, int name, int64_t otherwise);

/** Make `to` the same as `from`. false without host memory. */
bool cudnn_descriptor_assign(cudnn_descriptor *to, const cudnn_descriptor *from);

#endif /* ALLOTI_STANDIN_CUDNN_DESCRIPTOR_H */
