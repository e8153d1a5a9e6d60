/* SPDX-License-Identifier: MIT */
/**
 * The stand-in's shared object as a program sees it: functions by name, loaded at run time.
 * Settings hold for the life of a process, so each test program has its own: standin_load() comes
 * first in every test and does its work once.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct standin_location {
    int type;
    int id;
} standin_location;

typedef struct standin_properties {
    int type;
    int handle_types;
    standin_location location;
    void *win32;
    unsigned char flags[8];
} standin_properties;

typedef struct standin_access {
    standin_location location;
    int flags;
} standin_access;

/** CUmemcpyAttributes. */
typedef struct standin_copy_attributes {
    int order; /**< 1: the source is read in stream order, 2: during the call, 3: any time. */
    standin_location from_hint;
    standin_location to_hint;
    unsigned flags;
} standin_copy_attributes;

typedef struct standin_ipc {
    char bytes[64];
} standin_ipc;

typedef struct standin_nccl_id {
    char bytes[128];
} standin_nccl_id;

/** Every function that a test calls. X(result, name, parameters) */
#define STANDIN_FUNCTION_LIST(X)                                                                   \
    X(int, cudaGetDeviceCount, (int *))                                                            \
    X(int, cudaSetDevice, (int))                                                                   \
    X(int, cudaGetDevice, (int *))                                                                 \
    X(int, cudaGetLastError, (void))                                                               \
    X(int, cudaPeekAtLastError, (void))                                                            \
    X(const char *, cudaGetErrorName, (int))                                                       \
    X(const char *, cudaGetErrorString, (int))                                                     \
    X(int, cudaGetDeviceProperties, (void *, int))                                                 \
    X(int, cudaGetDeviceProperties_v2, (void *, int))                                              \
    X(int, cudaDeviceGetAttribute, (int *, int, int))                                              \
    X(int, cudaDeviceCanAccessPeer, (int *, int, int))                                             \
    X(int, cudaDeviceEnablePeerAccess, (int, unsigned))                                            \
    X(int, cudaDeviceDisablePeerAccess, (int))                                                     \
    X(int, cudaDeviceGetPCIBusId, (char *, int, int))                                              \
    X(int, cudaDeviceGetByPCIBusId, (int *, const char *))                                         \
    X(int, cudaMalloc, (void **, size_t))                                                          \
    X(int, cudaFree, (void *))                                                                     \
    X(int, cudaMemGetInfo, (size_t *, size_t *))                                                   \
    X(int, cudaPointerGetAttributes, (void *, const void *))                                       \
    X(int, cudaHostAlloc, (void **, size_t, unsigned))                                             \
    X(int, cudaFreeHost, (void *))                                                                 \
    X(int, cudaHostRegister, (void *, size_t, unsigned))                                           \
    X(int, cudaHostUnregister, (void *))                                                           \
    X(int, cudaHostGetDevicePointer, (void **, void *, unsigned))                                  \
    X(int, cudaMallocManaged, (void **, size_t, unsigned))                                         \
    X(int, cudaMemcpy, (void *, const void *, size_t, int))                                        \
    X(int, cudaMemcpyAsync, (void *, const void *, size_t, int, void *))                           \
    X(int, cudaMemcpy2DAsync, (void *, size_t, const void *, size_t, size_t, size_t, int, void *)) \
    X(int, cudaMemcpyPeerAsync, (void *, int, const void *, int, size_t, void *))                  \
    X(int, cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *))                         \
    X(int, cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *))                               \
    X(int, cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void *))                             \
    X(int, cuMemcpyAsync, (uint64_t, uint64_t, size_t, void *))                                    \
    X(int, cuMemcpyBatchAsync_v2,                                                                  \
      (const uint64_t *, const uint64_t *, const size_t *, size_t,                                 \
       const standin_copy_attributes *, const size_t *, size_t, void *))                           \
    X(int, cuMemcpy2DAsync_v2, (const void *, void *))                                             \
    X(int, cuMemPoolCreate, (void **, const standin_properties *))                                 \
    X(int, cuMemPoolDestroy, (void *))                                                             \
    X(int, cuMemAllocFromPoolAsync, (uint64_t *, size_t, void *, void *))                          \
    X(int, cuGraphLaunch, (void *, void *))                                                        \
    X(int, cufftCreate, (int *))                                                                   \
    X(int, cufftDestroy, (int))                                                                    \
    X(int, cufftSetStream, (int, void *))                                                          \
    X(int, cufftXtExec, (int, void *, void *, int))                                                \
    X(int, cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *))                             \
    X(int, cuMemsetD16Async, (uint64_t, unsigned short, size_t, void *))                           \
    X(int, cuMemsetD32Async, (uint64_t, unsigned, size_t, void *))                                 \
    X(int, cuMemAlloc_v2, (uint64_t *, size_t))                                                    \
    X(int, cuMemFree_v2, (uint64_t))                                                               \
    X(int, cuMemAllocAsync, (uint64_t *, size_t, void *))                                          \
    X(int, cuMemFreeAsync, (uint64_t, void *))                                                     \
    X(int, cuStreamSynchronize, (void *))                                                          \
    X(int, cuStreamWaitEvent, (void *, void *, unsigned))                                          \
    X(int, cuEventRecord, (void *, void *))                                                        \
    X(int, cuEventQuery, (void *))                                                                 \
    X(int, cuEventSynchronize, (void *))                                                           \
    X(int, cuMemGetAccess, (unsigned long long *, const standin_location *, uint64_t))             \
    X(int, cudaMemset, (void *, int, size_t))                                                      \
    X(int, cudaMemsetAsync, (void *, int, size_t, void *))                                         \
    X(int, cudaDeviceGetDefaultMemPool, (void **, int))                                            \
    X(int, cudaMemPoolCreate, (void **, const standin_properties *))                               \
    X(int, cudaMemPoolDestroy, (void *))                                                           \
    X(int, cudaMemPoolGetAttribute, (void *, int, void *))                                         \
    X(int, cudaMemPoolSetAttribute, (void *, int, void *))                                         \
    X(int, cudaMemPoolTrimTo, (void *, size_t))                                                    \
    X(int, cudaMallocAsync, (void **, size_t, void *))                                             \
    X(int, cudaMallocFromPoolAsync, (void **, size_t, void *, void *))                             \
    X(int, cudaFreeAsync, (void *, void *))                                                        \
    X(int, cudaIpcGetMemHandle, (standin_ipc *, void *))                                           \
    X(int, cudaIpcOpenMemHandle, (void **, standin_ipc, unsigned))                                 \
    X(int, cudaIpcCloseMemHandle, (void *))                                                        \
    X(int, cudaStreamCreateWithFlags, (void **, unsigned))                                         \
    X(int, cudaStreamDestroy, (void *))                                                            \
    X(int, cudaStreamQuery, (void *))                                                              \
    X(int, cudaStreamSynchronize, (void *))                                                        \
    X(int, cudaStreamWaitEvent, (void *, void *, unsigned))                                        \
    X(int, cudaDeviceSynchronize, (void))                                                          \
    X(int, cudaLaunchHostFunc, (void *, void (*)(void *), void *))                                 \
    X(int, cudaEventCreateWithFlags, (void **, unsigned))                                          \
    X(int, cudaEventDestroy, (void *))                                                             \
    X(int, cudaEventRecord, (void *, void *))                                                      \
    X(int, cudaEventQuery, (void *))                                                               \
    X(int, cudaEventSynchronize, (void *))                                                         \
    X(int, cudaEventElapsedTime, (float *, void *, void *))                                        \
    X(int, cudaStreamBeginCapture, (void *, int))                                                  \
    X(int, cudaStreamEndCapture, (void *, void **))                                                \
    X(int, cudaStreamIsCapturing, (void *, int *))                                                 \
    X(int, cudaStreamGetCaptureInfo,                                                               \
      (void *, int *, unsigned long long *, void **, void ***, const void **, size_t *))           \
    X(int, cudaGraphGetNodes, (void *, void **, size_t *))                                         \
    X(int, cudaGraphNodeGetDependencies, (void *, void **, void *, size_t *))                      \
    X(int, cudaGraphNodeGetType, (void *, int *))                                                  \
    X(int, cudaGraphInstantiate, (void **, void *, unsigned long long))                            \
    X(int, cudaGraphLaunch, (void *, void *))                                                      \
    X(int, cudaGraphExecDestroy, (void *))                                                         \
    X(int, cudaGraphDestroy, (void *))                                                             \
    X(int, cudaGraphCreate, (void **, unsigned))                                                   \
    X(int, cudaGraphAddMemcpyNode1D,                                                               \
      (void **, void *, void *const *, size_t, void *, const void *, size_t, int))                 \
    X(int, cudaGraphAddMemsetNode, (void **, void *, void *const *, size_t, const void *))         \
    X(int, cudaGraphAddHostNode, (void **, void *, void *const *, size_t, const void *))           \
    X(int, cudaUserObjectCreate, (void **, void *, void (*)(void *), unsigned, unsigned))          \
    X(int, cudaGraphRetainUserObject, (void *, void *, unsigned, unsigned))                        \
    X(int, cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, unsigned long long))        \
    X(int, cuMemAddressFree, (uint64_t, size_t))                                                   \
    X(int, cuMemCreate, (uint64_t *, size_t, const standin_properties *, unsigned long long))      \
    X(int, cuMemRelease, (uint64_t))                                                               \
    X(int, cuMemMap, (uint64_t, size_t, size_t, uint64_t, unsigned long long))                     \
    X(int, cuMemUnmap, (uint64_t, size_t))                                                         \
    X(int, cuMemSetAccess, (uint64_t, size_t, const standin_access *, size_t))                     \
    X(int, cuMemRetainAllocationHandle, (uint64_t *, void *))                                      \
    X(int, cuMemGetAllocationPropertiesFromHandle, (standin_properties *, uint64_t))               \
    X(int, cuMemExportToShareableHandle, (int *, uint64_t, int, unsigned long long))               \
    X(int, cuMemImportFromShareableHandle, (uint64_t *, void *, int))                              \
    X(int, cuMemGetAddressRange_v2, (uint64_t *, size_t *, uint64_t))                              \
    X(int, cuPointerGetAttribute, (void *, int, uint64_t))                                         \
    X(int, cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *))                     \
    X(int, cuGetErrorName, (int, const char **))                                                   \
    X(void, allot_standin_fail, (uint64_t, int))                                                   \
    X(bool, allot_standin_check, (void))                                                           \
    X(uint64_t, allot_standin_rules_broken, (void))                                                \
    X(int, cublasCreate_v2, (void **))                                                             \
    X(int, cublasDestroy_v2, (void *))                                                             \
    X(int, cublasSetStream_v2, (void *, void *))                                                   \
    X(int, cusparseCreate, (void **))                                                              \
    X(int, cusparseGetVersion, (void *, int *))                                                    \
    X(int, ncclGetUniqueId, (standin_nccl_id *))                                                   \
    X(int, ncclCommInitRank, (void **, int, standin_nccl_id, int))                                 \
    X(int, ncclCommInitAll, (void **, int, const int *))                                           \
    X(int, ncclCommSplit, (void *, int, int, void **, void *))                                     \
    X(int, ncclCommCount, (void *, int *))                                                         \
    X(int, ncclCommUserRank, (void *, int *))                                                      \
    X(int, ncclCommDestroy, (void *))                                                              \
    X(int, ncclCommAbort, (void *))                                                                \
    X(int, ncclCommGetAsyncError, (void *, int *))                                                 \
    X(const char *, ncclGetLastError, (void *))                                                    \
    X(int, ncclGroupStart, (void))                                                                 \
    X(int, ncclGroupEnd, (void))                                                                   \
    X(int, ncclAllReduce, (const void *, void *, size_t, int, int, void *, void *))                \
    X(int, ncclReduce, (const void *, void *, size_t, int, int, int, void *, void *))              \
    X(int, ncclBroadcast, (const void *, void *, size_t, int, int, void *, void *))                \
    X(int, ncclAllGather, (const void *, void *, size_t, int, void *, void *))                     \
    X(int, ncclReduceScatter, (const void *, void *, size_t, int, int, void *, void *))            \
    X(int, ncclAlltoAll, (const void *, void *, size_t, int, void *, void *))                      \
    X(int, ncclGather, (const void *, void *, size_t, int, int, void *, void *))                   \
    X(int, ncclScatter, (const void *, void *, size_t, int, int, void *, void *))                  \
    X(int, ncclSend, (const void *, size_t, int, int, void *, void *))                             \
    X(int, ncclRecv, (void *, size_t, int, int, void *, void *))

typedef struct standin_functions {
#define STANDIN_MEMBER(result, name, parameters) result(*name) parameters;
    STANDIN_FUNCTION_LIST(STANDIN_MEMBER)
#undef STANDIN_MEMBER
} standin_functions;

/** The functions; filled in by standin_load(). */
extern standin_functions cuda;

/** Load the stand-in with these settings, once per process. A missing function ends the process. */
void standin_load(const char *settings);

/** Any function of one of its libraries ("libcuda.so.1", "libnvidia-ml.so.1"); NULL for none. */
void *standin_symbol(const char *library, const char *name);

#define STANDIN_MIB(n) ((size_t)(n) << 20)

/** Bytes of the current device that are taken. */
size_t standin_used(void);

/** A stream that does not wait for the default one; a failure fails the test. */
void *standin_stream(void);

/** An event with a time; a failure fails the test. */
void *standin_event(void);

#endif /* STANDIN_H */
