/* SPDX-License-Identifier: MIT */
/** Entries of the CUDA runtime that the stand-in's own driver and library entries are made of. */
#ifndef ALLOTI_STANDIN_RUNTIME_H
#define ALLOTI_STANDIN_RUNTIME_H

#include "standin/abi.h"
#include "standin/state.h"

int cudaGetDevice(int *device);
int cudaDeviceGetAttribute(int *value, int attribute, int device);
int cudaDeviceCanAccessPeer(int *can, int device, int peer);
int cudaMalloc(void **out, size_t size);
int cudaMallocManaged(void **out, size_t size, unsigned flags);
int cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height);
int cudaFree(void *pointer);
int cudaHostAlloc(void **out, size_t size, unsigned flags);
int cudaFreeHost(void *pointer);
int cudaHostRegister(void *pointer, size_t size, unsigned flags);
int cudaHostUnregister(void *pointer);
int cudaMemGetInfo(size_t *free, size_t *total);
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream);
int cudaMemset(void *to, int value, size_t size);
int cudaMemcpy(void *to, const void *from, size_t size, int kind);
int cudaMemsetAsync(void *to, int value, size_t size, void *stream);
int cudaMallocAsync(void **out, size_t size, void *stream);
int cudaMallocFromPoolAsync(void **out, size_t size, void *pool, void *stream);
int cudaFreeAsync(void *pointer, void *stream);
int cudaStreamCreateWithPriority(void **out, unsigned flags, int priority);
int cudaStreamDestroy(void *stream);
int cudaStreamQuery(void *stream);
int cudaStreamSynchronize(void *stream);
int cudaStreamWaitEvent(void *stream, void *event, unsigned flags);
int cudaStreamGetPriority(void *stream, int *priority);
int cudaStreamIsCapturing(void *stream, int *status);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaDeviceSynchronize(void);
int cudaEventCreateWithFlags(void **out, unsigned flags);
int cudaEventDestroy(void *event);
int cudaEventRecord(void *event, void *stream);
int cudaEventQuery(void *event);
int cudaEventSynchronize(void *event);
int cudaEventElapsedTime(float *milliseconds, void *start, void *end);
int cudaEventRecordWithFlags(void *event, void *stream, unsigned flags);
int cudaStreamAddCallback(void *stream, void (*run)(void *, int, void *), void *data,
                          unsigned flags);
int cudaStreamGetDevice(void *stream, int *device);
int cudaStreamGetFlags(void *stream, unsigned *flags);
int cudaStreamGetId(void *stream, unsigned long long *id);
int cudaDeviceGetDefaultMemPool(void **pool, int device);
int cudaDeviceGetMemPool(void **pool, int device);
int cudaDeviceSetMemPool(int device, void *pool);
int cudaMemPoolCreate(void **pool, const cuda_allocation_properties *properties);
int cudaMemPoolDestroy(void *pool);
int cudaMemPoolGetAttribute(void *pool, int attribute, void *value);
int cudaMemPoolSetAttribute(void *pool, int attribute, void *value);
int cudaMemPoolTrimTo(void *pool, size_t keep);
int cudaMemPoolSetAccess(void *pool, const cuda_access *access, size_t count);
int cudaGraphCreate(void **graph, unsigned flags);
int cudaGraphDestroy(void *graph);
int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags);
int cudaGraphExecDestroy(void *exec);
int cudaGraphLaunch(void *exec, void *stream);
int cudaGraphUpload(void *exec, void *stream);
int cudaLaunchHostFunc(void *stream, void (*run)(void *), void *data);
int cudaIpcGetMemHandle(cuda_ipc_handle *handle, void *pointer);
int cudaIpcOpenMemHandle(void **out, cuda_ipc_handle handle, unsigned flags);
int cudaIpcCloseMemHandle(void *pointer);

/** Find the stream of a handle and do something with it, under the lock. */
int stream_with(void *handle, void *out,
                cuda_status (*act)(standin *state, standin_stream *stream, void *out));

/** Numbers of cudaMemcpyKind. */
enum {
    COPY_HOST_TO_HOST = 0,
    COPY_HOST_TO_DEVICE = 1,
    COPY_DEVICE_TO_HOST = 2,
    COPY_DEVICE_TO_DEVICE = 3,
    COPY_ANY = 4,
};

/** What a copy is asked for beside its places. */
typedef struct copy_manner {
    int kind;          /**< One of the above. */
    bool is_blocking;  /**< cudaMemcpy rather than cudaMemcpyAsync. */
    bool is_read_late; /**< The source is read when the copy's turn comes, pageable or not. */
} copy_manner;

/** Put a copy, a fill on a stream; what all entries that copy or fill are made of. */
int copy_on(standin_task task, void *stream, const copy_manner *manner);
int fill_on(standin_task task, void *stream, bool is_blocking);

/**
 * Count a launch on a stream; the common part of everything that starts a kernel. `kernel` is the
 * function that stands for it, NULL where none does.
 */
cuda_status launch_on(void *stream, const void *kernel);

/** The function that a program looks up by name, as a driver entry; NULL if there is none. */
void *entry_find(const char *name);

/** Parameters of a kernel, known or assumed. */
typedef struct function_facts {
    int architecture; /**< 86: of the code that the device would run. */
    int registers;
    int threads;          /**< Largest block. */
    uint64_t shared_size; /**< Static, per block. */
} function_facts;

/** CUDA_INVALID_DEVICE_FUNCTION if nothing in the program's binaries runs on the device. */
cuda_status function_get(const void *function, function_facts *out);

/** Largest block of a kernel, from its registers and its launch bounds (0: none). */
int function_threads_max(uint32_t registers, uint32_t bound);

/** Blocks of so many threads of a kernel that a multiprocessor holds. */
int function_occupancy(const function_facts *facts, int threads, uint64_t dynamic_size);

#endif /* ALLOTI_STANDIN_RUNTIME_H */
