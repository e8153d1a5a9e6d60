/* SPDX-License-Identifier: MIT */
/**
 * The part of OpenCL that the backend calls, found in the loader of installed drivers
 * (libOpenCL.so.1) at run time. The declarations are our own, with the numbers of the public
 * interface: no headers of OpenCL are needed to build this.
 *
 * Platforms, devices, contexts, queues and events are pointers of the loader's. Results named int
 * are error codes, 0 for success.
 */
#ifndef ALLOTI_DEVICE_OPENCL_DRIVER_H
#define ALLOTI_DEVICE_OPENCL_DRIVER_H

#include "core/status.h"

/** What is asked for, and bits of answers. */
enum {
    OPENCL_PLATFORM_NAME = 0x0902,
    OPENCL_DEVICE_MAX_ALLOC_SIZE = 0x1010,
    OPENCL_DEVICE_MEMORY_SIZE = 0x101f,
    OPENCL_DEVICE_NAME = 0x102b,
    OPENCL_DEVICE_SVM = 0x1053,
    OPENCL_SVM_COARSE_GRAIN = 1,
    OPENCL_EVENT_STATUS = 0x11d3,
    OPENCL_READ_WRITE = 1,
};

/** Errors, by number. X(name, value) */
#define OPENCL_ERROR_LIST(X)                                                                       \
    X(CL_DEVICE_NOT_FOUND, -1)                                                                     \
    X(CL_DEVICE_NOT_AVAILABLE, -2)                                                                 \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE, -4)                                                        \
    X(CL_OUT_OF_RESOURCES, -5)                                                                     \
    X(CL_OUT_OF_HOST_MEMORY, -6)                                                                   \
    X(CL_MEM_COPY_OVERLAP, -8)                                                                     \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14)                                           \
    X(CL_INVALID_VALUE, -30)                                                                       \
    X(CL_INVALID_DEVICE, -33)                                                                      \
    X(CL_INVALID_CONTEXT, -34)                                                                     \
    X(CL_INVALID_COMMAND_QUEUE, -36)                                                               \
    X(CL_INVALID_EVENT, -58)                                                                       \
    X(CL_INVALID_OPERATION, -59)                                                                   \
    X(CL_PLATFORM_NOT_FOUND_KHR, -1001)

enum {
#define OPENCL_ERROR(name, value) OPENCL_##name = (value),
    OPENCL_ERROR_LIST(OPENCL_ERROR)
#undef OPENCL_ERROR
};

/** X(result, name, parameters); all are required. */
#define OPENCL_FUNCTION_LIST(X)                                                                    \
    X(int, clGetPlatformIDs, (uint32_t, void **, uint32_t *))                                      \
    X(int, clGetPlatformInfo, (void *, uint32_t, size_t, void *, size_t *))                        \
    X(int, clGetDeviceIDs, (void *, uint64_t, uint32_t, void **, uint32_t *))                      \
    X(int, clGetDeviceInfo, (void *, uint32_t, size_t, void *, size_t *))                          \
    X(void *, clCreateContext,                                                                     \
      (const intptr_t *, uint32_t, void *const *,                                                  \
       void (*)(const char *, const void *, size_t, void *), void *, int *))                       \
    X(int, clReleaseContext, (void *))                                                             \
    X(void *, clCreateCommandQueue, (void *, void *, uint64_t, int *))                             \
    X(int, clReleaseCommandQueue, (void *))                                                        \
    X(int, clFlush, (void *))                                                                      \
    X(int, clFinish, (void *))                                                                     \
    X(void *, clSVMAlloc, (void *, uint64_t, size_t, uint32_t))                                    \
    X(void, clSVMFree, (void *, void *))                                                           \
    X(int, clEnqueueSVMMemcpy,                                                                     \
      (void *, uint32_t, void *, const void *, size_t, uint32_t, void *const *, void **))          \
    X(int, clEnqueueSVMMemFill,                                                                    \
      (void *, void *, const void *, size_t, size_t, uint32_t, void *const *, void **))            \
    X(int, clEnqueueMarkerWithWaitList, (void *, uint32_t, void *const *, void **))                \
    X(int, clEnqueueBarrierWithWaitList, (void *, uint32_t, void *const *, void **))               \
    X(int, clGetEventInfo, (void *, uint32_t, size_t, void *, size_t *))                           \
    X(int, clWaitForEvents, (uint32_t, void *const *))                                             \
    X(int, clRetainEvent, (void *))                                                                \
    X(int, clReleaseEvent, (void *))

/** Devices that are looked at; more are not counted. */
enum { OPENCL_DEVICES_MAX = 64 };

typedef struct opencl_driver {
    /* NOLINTNEXTLINE(bugprone-macro-parentheses): declarations */
#define OPENCL_MEMBER(result, name, parameters) result(*name) parameters;
    OPENCL_FUNCTION_LIST(OPENCL_MEMBER)
#undef OPENCL_MEMBER
    void *devices[OPENCL_DEVICES_MAX]; /**< Those with shared virtual memory. */
    uint32_t device_count;
    uint32_t device_count_all;
    char platform[64]; /**< Name of the first device's platform. */
} opencl_driver;

/**
 * The loader and its devices, looked for by the first call of the process.
 *
 * @param[out] out  Borrowed: valid until the process ends. Untouched on failure.
 * @return ALLOT_STATUS_OK; what allot_backend_probe() returns; ALLOT_STATUS_FORKED in the child of
 *         a process that had loaded it. Thread-safe.
 */
ALLOT_NODISCARD allot_status alloti_opencl_driver(const opencl_driver **out);

/** The status for what a call answered; sets the detail "clFinish: -5 (CL_OUT_OF_RESOURCES)". */
ALLOT_NODISCARD allot_status alloti_opencl_answer(int error, const char *call);

#endif /* ALLOTI_DEVICE_OPENCL_DRIVER_H */
