/* SPDX-License-Identifier: MIT */
/**
 * The part of the CUDA driver interface that the backend calls, found in libcuda.so.1 at run time.
 * The declarations are our own, with the numbers and layouts of the public interface: nothing of
 * NVIDIA's is needed to build this.
 *
 * Handles (contexts, streams, events) are pointers of the driver's; addresses and handles of memory
 * are 64-bit numbers. Every function returns a CUresult, an int; 0 is success.
 */
#ifndef ALLOTI_DEVICE_CUDA_DRIVER_H
#define ALLOTI_DEVICE_CUDA_DRIVER_H

#include "core/status.h"

/** CUresult values that mean something to the backend. */
enum {
    CUDA_SUCCESS = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_READY = 600,
    CUDA_NOT_SUPPORTED = 801,
};

/** CUdevice_attribute values. */
enum {
    CUDA_MEMORY_CLOCK_KHZ = 36,
    CUDA_MEMORY_BUS_BITS = 37,
    CUDA_HAS_VIRTUAL_MEMORY = 102,
    CUDA_HAS_MEMORY_POOLS = 115,
};

/** CUmemLocation. */
typedef struct cuda_location {
    int type; /**< 1: a device. */
    int id;
} cuda_location;

/** CUmemAllocationProp. */
typedef struct cuda_memory_properties {
    int type; /**< 1: pinned, the only one. */
    int handle_types;
    cuda_location location;
    void *win32;
    unsigned char flags[8];
} cuda_memory_properties;

/** CUmemAccessDesc. */
typedef struct cuda_access {
    cuda_location location;
    int flags; /**< 3: read and write. */
} cuda_access;

/** CUmemcpyAttributes. */
typedef struct cuda_copy_attributes {
    int order; /**< 1: sources are read in the order of the stream. */
    cuda_location from_hint;
    cuda_location to_hint;
    unsigned flags;
} cuda_copy_attributes;

/**
 * X(name, suffix, need, parameters). A suffix tells the version of a function whose meaning or
 * layout changed; `need` is REQUIRED, or OPTIONAL: then the group that it belongs to is missing.
 */
#define CUDA_FUNCTION_LIST(X)                                                                      \
    X(cuInit, , REQUIRED, (unsigned))                                                              \
    X(cuDriverGetVersion, , REQUIRED, (int *))                                                     \
    X(cuGetErrorName, , REQUIRED, (int, const char **))                                            \
    X(cuDeviceGetCount, , REQUIRED, (int *))                                                       \
    X(cuDeviceGet, , REQUIRED, (int *, int))                                                       \
    X(cuDeviceGetName, , REQUIRED, (char *, int, int))                                             \
    X(cuDeviceTotalMem, _v2, REQUIRED, (size_t *, int))                                            \
    X(cuDeviceGetAttribute, , REQUIRED, (int *, int, int))                                         \
    X(cuDevicePrimaryCtxRetain, , REQUIRED, (void **, int))                                        \
    X(cuDevicePrimaryCtxRelease, _v2, REQUIRED, (int))                                             \
    X(cuCtxGetCurrent, , REQUIRED, (void **))                                                      \
    X(cuCtxPushCurrent, _v2, REQUIRED, (void *))                                                   \
    X(cuCtxPopCurrent, _v2, REQUIRED, (void **))                                                   \
    X(cuCtxSynchronize, , REQUIRED, (void))                                                        \
    X(cuMemGetInfo, _v2, REQUIRED, (size_t *, size_t *))                                           \
    X(cuMemAlloc, _v2, REQUIRED, (uint64_t *, size_t))                                             \
    X(cuMemFree, _v2, REQUIRED, (uint64_t))                                                        \
    X(cuMemcpyDtoDAsync, _v2, REQUIRED, (uint64_t, uint64_t, size_t, void *))                      \
    X(cuMemcpyHtoDAsync, _v2, REQUIRED, (uint64_t, const void *, size_t, void *))                  \
    X(cuMemcpyDtoHAsync, _v2, REQUIRED, (void *, uint64_t, size_t, void *))                        \
    X(cuMemsetD8Async, , REQUIRED, (uint64_t, unsigned char, size_t, void *))                      \
    X(cuStreamCreate, , REQUIRED, (void **, unsigned))                                             \
    X(cuStreamDestroy, _v2, REQUIRED, (void *))                                                    \
    X(cuStreamSynchronize, , REQUIRED, (void *))                                                   \
    X(cuStreamWaitEvent, , REQUIRED, (void *, void *, unsigned))                                   \
    X(cuEventCreate, , REQUIRED, (void **, unsigned))                                              \
    X(cuEventDestroy, _v2, REQUIRED, (void *))                                                     \
    X(cuEventRecord, , REQUIRED, (void *, void *))                                                 \
    X(cuEventQuery, , REQUIRED, (void *))                                                          \
    X(cuEventSynchronize, , REQUIRED, (void *))                                                    \
    /* virtual memory, CUDA 10.2 */                                                                \
    X(cuMemGetAllocationGranularity, , OPTIONAL, (size_t *, const cuda_memory_properties *, int))  \
    X(cuMemAddressReserve, , OPTIONAL, (uint64_t *, size_t, size_t, uint64_t, unsigned long long)) \
    X(cuMemAddressFree, , OPTIONAL, (uint64_t, size_t))                                            \
    X(cuMemCreate, , OPTIONAL,                                                                     \
      (uint64_t *, size_t, const cuda_memory_properties *, unsigned long long))                    \
    X(cuMemRelease, , OPTIONAL, (uint64_t))                                                        \
    X(cuMemMap, , OPTIONAL, (uint64_t, size_t, size_t, uint64_t, unsigned long long))              \
    X(cuMemUnmap, , OPTIONAL, (uint64_t, size_t))                                                  \
    X(cuMemSetAccess, , OPTIONAL, (uint64_t, size_t, const cuda_access *, size_t))                 \
    /* the driver's pool, CUDA 11.2 */                                                             \
    X(cuMemAllocAsync, , OPTIONAL, (uint64_t *, size_t, void *))                                   \
    X(cuMemFreeAsync, , OPTIONAL, (uint64_t, void *))

/** What the current CUDA calls cuMemcpyBatchAsync, and what 12.8 and 12.9 do: with the number of a
 * failed copy before the stream. Both optional. */
typedef int (*cuda_copy_batch)(uint64_t *, uint64_t *, size_t *, size_t, cuda_copy_attributes *,
                               size_t *, size_t, void *);
typedef int (*cuda_copy_batch_12)(uint64_t *, uint64_t *, size_t *, size_t, cuda_copy_attributes *,
                                  size_t *, size_t, size_t *, void *);

typedef struct cuda_driver {
    /* NOLINTNEXTLINE(bugprone-macro-parentheses): declarations */
#define CUDA_MEMBER(name, suffix, need, parameters) int(*name) parameters;
    CUDA_FUNCTION_LIST(CUDA_MEMBER)
#undef CUDA_MEMBER
    cuda_copy_batch cuMemcpyBatchAsync;
    cuda_copy_batch_12 cuMemcpyBatchAsync12;
    int version; /**< 1000 times the CUDA version that it brings, plus 10 times the minor one. */
    int device_count;
    bool has_virtual; /**< All of the group is there. */
    bool has_async;
} cuda_driver;

/**
 * The driver, loaded and initialised by the first call of the process.
 *
 * @param[out] out  Borrowed: valid until the process ends. Untouched on failure.
 * @return ALLOT_STATUS_OK; what allot_backend_probe() returns; ALLOT_STATUS_FORKED in the child of
 *         a process that had loaded it, which the driver does not bear. Thread-safe.
 */
ALLOT_NODISCARD allot_status alloti_cuda_driver(const cuda_driver **out);

/** The status for what a call answered; sets the detail "cuMemCreate: 2 (CUDA_ERROR_...)". */
ALLOT_NODISCARD allot_status alloti_cuda_answer(const cuda_driver *driver, int error,
                                                const char *call);

#endif /* ALLOTI_DEVICE_CUDA_DRIVER_H */
