/* SPDX-License-Identifier: MIT */
/**
 * Own declarations of the parts of the CUDA binary interface that the stand-in answers itself. Only
 * numbers, layouts and names that programs rely on are here; nothing needs NVIDIA's headers.
 * Numbers are those of the public CUDA runtime and driver interfaces, versions 12 and 13.
 *
 * Handles are pointers to our own objects and pass through programs as void *.
 */
#ifndef ALLOTI_STANDIN_ABI_H
#define ALLOTI_STANDIN_ABI_H

#include <stddef.h>
#include <stdint.h>

/** Defines a function that CUDA programs call by this name. They have the prototype, not we. */
#define CUDA_ENTRY(type, name) __attribute__((visibility("default"))) type name

/** Error codes that runtime and driver share; one list yields number, both names and the text. */
#define CUDA_STATUS_LIST(X)                                                                        \
    X(OK, 0, "cudaSuccess", "CUDA_SUCCESS", "no error")                                            \
    X(INVALID_VALUE, 1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument")   \
    X(OUT_OF_MEMORY, 2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")  \
    X(NOT_INITIALIZED, 3, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED",            \
      "initialization error")                                                                      \
    X(NO_DEVICE, 100, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE",                                 \
      "no CUDA-capable device is detected")                                                        \
    X(INVALID_DEVICE, 101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE",                  \
      "invalid device ordinal")                                                                    \
    X(INVALID_DEVICE_FUNCTION, 98, "cudaErrorInvalidDeviceFunction",                               \
      "CUDA_ERROR_INVALID_DEVICE_FUNCTION", "invalid device function")                             \
    X(INVALID_CONTEXT, 201, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT",          \
      "invalid device context")                                                                    \
    X(NO_KERNEL_IMAGE, 209, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU",     \
      "no kernel image is available for execution on the device")                                  \
    X(PEER_ACCESS_UNSUPPORTED, 217, "cudaErrorPeerAccessUnsupported",                              \
      "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",                                                        \
      "peer access is not supported between these two devices")                                    \
    X(INVALID_HANDLE, 400, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE",          \
      "invalid resource handle")                                                                   \
    X(ILLEGAL_STATE, 401, "cudaErrorIllegalState", "CUDA_ERROR_ILLEGAL_STATE",                     \
      "the operation cannot be performed in the present state")                                    \
    X(NOT_FOUND, 500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found") \
    X(NOT_READY, 600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready")             \
    X(ILLEGAL_ADDRESS, 700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS",               \
      "an illegal memory access was encountered")                                                  \
    X(PEER_ALREADY_ENABLED, 704, "cudaErrorPeerAccessAlreadyEnabled",                              \
      "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled")                  \
    X(PEER_NOT_ENABLED, 705, "cudaErrorPeerAccessNotEnabled",                                      \
      "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled")                    \
    X(HOST_ALREADY_REGISTERED, 712, "cudaErrorHostMemoryAlreadyRegistered",                        \
      "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",                                                 \
      "part or all of the memory is registered already")                                           \
    X(HOST_NOT_REGISTERED, 713, "cudaErrorHostMemoryNotRegistered",                                \
      "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the pointer is not registered host memory")        \
    X(LAUNCH_FAILURE, 719, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED",                   \
      "unspecified launch failure")                                                                \
    X(NOT_PERMITTED, 800, "cudaErrorNotPermitted", "CUDA_ERROR_NOT_PERMITTED",                     \
      "operation not permitted")                                                                   \
    X(NOT_SUPPORTED, 801, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED",                     \
      "operation not supported")                                                                   \
    X(CAPTURE_UNSUPPORTED, 900, "cudaErrorStreamCaptureUnsupported",                               \
      "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing") \
    X(CAPTURE_INVALIDATED, 901, "cudaErrorStreamCaptureInvalidated",                               \
      "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "an earlier error ended the capture")               \
    X(CAPTURE_MERGE, 902, "cudaErrorStreamCaptureMerge", "CUDA_ERROR_STREAM_CAPTURE_MERGE",        \
      "the operation would merge two independent captures")                                        \
    X(CAPTURE_UNMATCHED, 903, "cudaErrorStreamCaptureUnmatched",                                   \
      "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture was not begun on this stream")           \
    X(CAPTURE_UNJOINED, 904, "cudaErrorStreamCaptureUnjoined",                                     \
      "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "captured work was not joined to the first stream")    \
    X(CAPTURED_EVENT, 907, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT",                  \
      "operation not permitted on an event last recorded in a capturing stream")                   \
    X(UNKNOWN, 999, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error")

typedef enum cuda_status {
#define CUDA_STATUS_ENUM(name, value, runtime, driver, text) CUDA_##name = (value),
    CUDA_STATUS_LIST(CUDA_STATUS_ENUM)
#undef CUDA_STATUS_ENUM
        CUDA_SIGNED = -1, /**< Never used: makes the type an int, as CUDA's functions return. */
} cuda_status;

typedef struct cuda_dim3 {
    unsigned x, y, z;
} cuda_dim3;

typedef struct cuda_uuid {
    unsigned char bytes[16];
} cuda_uuid;

typedef struct cuda_launch_config {
    cuda_dim3 grid;
    cuda_dim3 block;
    size_t shared_size;
    void *stream;
    void *attributes;
    unsigned attribute_count;
} cuda_launch_config;

/** cudaFuncAttributes. */
typedef struct cuda_function_attributes {
    size_t shared_size;
    size_t constant_size;
    size_t local_size;
    int max_threads;
    int registers;
    int ptx_version;
    int binary_version;
    int cache_mode;
    int max_dynamic_shared_size;
    int preferred_carveout;
    int cluster_must_be_set;
    int cluster[3];
    int cluster_policy;
    int non_portable_cluster;
    int reserved[16];
} cuda_function_attributes;

typedef enum cuda_memory_type {
    CUDA_MEMORY_UNREGISTERED = 0,
    CUDA_MEMORY_HOST = 1,
    CUDA_MEMORY_DEVICE = 2,
    CUDA_MEMORY_MANAGED = 3,
} cuda_memory_type;

/** cudaPointerAttributes. */
typedef struct cuda_pointer_attributes {
    int type;
    int device;
    void *device_pointer;
    void *host_pointer;
    long reserved[8]; /**< Version 13 only: programs built for 12 give no room for it. */
} cuda_pointer_attributes;

typedef struct cuda_location {
    int type; /**< 1: device. */
    int id;
} cuda_location;

/** CUmemAllocationProp and, in its first fields, cudaMemPoolProps. */
typedef struct cuda_allocation_properties {
    int type;
    int handle_types;
    cuda_location location;
    void *win32;
    unsigned char flags[8];
} cuda_allocation_properties;

/** CUmemAccessDesc and cudaMemAccessDesc. */
typedef struct cuda_access {
    cuda_location location;
    int flags; /**< 0 none, 1 read, 3 read and write. */
} cuda_access;

typedef struct cuda_ipc_handle {
    char reserved[64];
} cuda_ipc_handle;

typedef struct cuda_unique_id {
    char bytes[128];
} cuda_unique_id;

typedef enum cuda_capture_status {
    CUDA_CAPTURE_STATUS_NONE = 0,
    CUDA_CAPTURE_STATUS_ACTIVE = 1,
} cuda_capture_status;

/** Attributes of a memory pool (cudaMemPoolAttr, CUmemPool_attribute). */
typedef enum cuda_pool_attribute {
    CUDA_POOL_REUSE_FOLLOW_EVENTS = 1,
    CUDA_POOL_REUSE_OPPORTUNISTIC = 2,
    CUDA_POOL_REUSE_INTERNAL = 3,
    CUDA_POOL_RELEASE_THRESHOLD = 4,
    CUDA_POOL_RESERVED_CURRENT = 5,
    CUDA_POOL_RESERVED_HIGH = 6,
    CUDA_POOL_USED_CURRENT = 7,
    CUDA_POOL_USED_HIGH = 8,
} cuda_pool_attribute;

#endif /* ALLOTI_STANDIN_ABI_H */
