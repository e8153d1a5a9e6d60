/* SPDX-License-Identifier: MIT */
/*
 * NCCL with one real process: any rank of a communicator of any size runs alone, under the rule
 * that every rank holds the same data as this one. Small values follow the collectives (values.h),
 * so that shapes and counts which ranks exchange agree. Nothing is sent anywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "standin/runtime.h"

static const uint64_t COMM_MARK = UINT64_C(0x616c6c6f746e6363);
enum { NCCL_OK = 0, NCCL_UNHANDLED = 1, NCCL_SYSTEM = 2, NCCL_INVALID = 4 };

typedef struct nccl_comm {
    uint64_t mark;
    int rank;
    int size;
    int device;
} nccl_comm;

/**
 * Size of the group that the program is about to make by splitting: a rank alone cannot know who
 * else passes the same colour, so the Python side says so. 0: as many as the parent.
 */
__attribute__((visibility("default"))) int allot_standin_split_size;

static nccl_comm *comm_get(void *handle)
{
    nccl_comm *const comm = handle;
    return comm != NULL && comm->mark == COMM_MARK ? comm : NULL;
}

static int comm_create(void **out, int size, int rank, int device)
{
    if (rank < 0 || rank >= size) {
        return NCCL_INVALID;
    }
    nccl_comm *const comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        return NCCL_SYSTEM;
    }
    *comm = (nccl_comm){.mark = COMM_MARK, .rank = rank, .size = size, .device = device};
    *out = comm;
    return NCCL_OK;
}

static int current_device(void)
{
    return (int)standin_this_thread()->device;
}

CUDA_ENTRY(int, ncclGetVersion)(int *version)
{
    *version = (int)standin_settings()->nccl_version;
    return NCCL_OK;
}

CUDA_ENTRY(int, ncclGetUniqueId)(cuda_unique_id *id)
{
    memset(id, 7, sizeof *id);
    return NCCL_OK;
}

CUDA_ENTRY(const char *, ncclGetErrorString)(int status)
{
    return status == NCCL_OK ? "no error" : "unhandled error";
}

CUDA_ENTRY(const char *, ncclGetLastError)(void *comm)
{
    (void)comm;
    return "";
}

CUDA_ENTRY(int, ncclCommInitRank)(void **out, int size, cuda_unique_id id, int rank)
{
    (void)id;
    return comm_create(out, size, rank, current_device());
}

CUDA_ENTRY(int, ncclCommInitRankConfig)
(void **out, int size, cuda_unique_id id, int rank, void *config)
{
    (void)id;
    (void)config;
    return comm_create(out, size, rank, current_device());
}

CUDA_ENTRY(int, ncclCommInitRankScalable)
(void **out, int size, int rank, int id_count, void *ids, void *config)
{
    (void)id_count;
    (void)ids;
    (void)config;
    return comm_create(out, size, rank, current_device());
}

CUDA_ENTRY(int, ncclCommInitAll)(void **out, int size, const int *devices)
{
    int status = NCCL_OK;
    for (int i = 0; i < size && status == NCCL_OK; i++) {
        status = comm_create(&out[i], size, i, devices == NULL ? i : devices[i]);
    }
    return status;
}

CUDA_ENTRY(int, ncclCommSplit)(void *handle, int color, int key, void **out, void *config)
{
    (void)key;
    (void)config;
    const nccl_comm *const comm = comm_get(handle);
    if (comm == NULL) {
        return NCCL_INVALID;
    }
    if (color < 0) {
        *out = NULL;
        return NCCL_OK;
    }
    const int size = allot_standin_split_size > 0 ? allot_standin_split_size : comm->size;
    return comm_create(out, size, comm->rank % size, comm->device);
}

static int destroy(void *handle)
{
    nccl_comm *const comm = comm_get(handle);
    if (comm == NULL) {
        return NCCL_INVALID;
    }
    comm->mark = 0;
    free(comm);
    return NCCL_OK;
}

CUDA_ENTRY(int, ncclCommDestroy)(void *comm)
{
    return destroy(comm);
}

CUDA_ENTRY(int, ncclCommAbort)(void *comm)
{
    return destroy(comm);
}

CUDA_ENTRY(int, ncclCommFinalize)(void *comm)
{
    return comm_get(comm) == NULL ? NCCL_INVALID : NCCL_OK;
}

CUDA_ENTRY(int, ncclCommCount)(void *handle, int *count)
{
    const nccl_comm *const comm = comm_get(handle);
    if (comm == NULL) {
        return NCCL_INVALID;
    }
    *count = comm->size;
    return NCCL_OK;
}

CUDA_ENTRY(int, ncclCommUserRank)(void *handle, int *rank)
{
    const nccl_comm *const comm = comm_get(handle);
    if (comm == NULL) {
        return NCCL_INVALID;
    }
    *rank = comm->rank;
    return NCCL_OK;
}

CUDA_ENTRY(int, ncclCommCuDevice)(void *handle, int *device)
{
    const nccl_comm *const comm = comm_get(handle);
    if (comm == NULL) {
        return NCCL_INVALID;
    }
    *device = comm->device;
    return NCCL_OK;
}

CUDA_ENTRY(int, ncclCommGetAsyncError)(void *comm, int *error)
{
    *error = NCCL_OK;
    return comm_get(comm) == NULL ? NCCL_INVALID : NCCL_OK;
}

CUDA_ENTRY(int, ncclMemAlloc)(void **out, size_t size)
{
    return cudaMalloc(out, size) == CUDA_OK ? NCCL_OK : NCCL_UNHANDLED;
}

CUDA_ENTRY(int, ncclMemFree)(void *pointer)
{
    return cudaFree(pointer) == CUDA_OK ? NCCL_OK : NCCL_UNHANDLED;
}

/* ---- collectives ---- */

static uint64_t type_size(int type)
{
    static const uint64_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && type < (int)(sizeof sizes / sizeof sizes[0]) ? sizes[type] : 4;
}

/** Copy what is known of `from` to `count` places one after another, as work of a stream. */
static int spread(void *to, const void *from, uint64_t size, uint64_t count, void *stream)
{
    standin *const state = standin_open();
    state->values.launches++;
    for (uint64_t i = 0; i < count && size <= VALUE_SIZE_MAX; i++) {
        /* In place too: from now on the values are what the collective left there. */
        value_collect(&state->values, (uintptr_t)to + i * size, (uintptr_t)from, size);
    }
    stream_work_on(state, stream);
    standin_close(state);
    return NCCL_OK;
}

/* Broadcasts inside a group stand for one exchange: what this rank sends, others send as well. */
enum { GROUP_MAX = 4096 };
typedef struct group_part {
    const void *from;
    void *to;
    uint64_t size;
    bool is_own;
} group_part;
static _Thread_local group_part group[GROUP_MAX];
static _Thread_local int group_count;
static _Thread_local int group_depth;

CUDA_ENTRY(int, ncclGroupStart)(void)
{
    if (group_depth++ == 0) {
        group_count = 0;
    }
    return NCCL_OK;
}

static void finish_group(void)
{
    const group_part *own = NULL;
    for (int i = 0; i < group_count; i++) {
        own = group[i].is_own ? &group[i] : own;
    }
    for (int i = 0; i < group_count && own != NULL; i++) {
        if (!group[i].is_own && group[i].size == own->size) {
            (void)spread(group[i].to, own->from, own->size, 1, NULL);
        }
    }
}

CUDA_ENTRY(int, ncclGroupEnd)(void)
{
    if (group_depth == 0) {
        return NCCL_INVALID;
    }
    if (--group_depth == 0) {
        finish_group();
    }
    return NCCL_OK;
}

CUDA_ENTRY(int, ncclAllReduce)
(const void *from, void *to, size_t count, int type, int operation, void *comm, void *stream)
{
    (void)operation;
    return comm_get(comm) == NULL ? NCCL_INVALID
                                  : spread(to, from, count * type_size(type), 1, stream);
}

CUDA_ENTRY(int, ncclReduce)
(const void *from, void *to, size_t count, int type, int operation, int root, void *comm,
 void *stream)
{
    (void)operation;
    (void)root;
    return comm_get(comm) == NULL ? NCCL_INVALID
                                  : spread(to, from, count * type_size(type), 1, stream);
}

CUDA_ENTRY(int, ncclAllGather)
(const void *from, void *to, size_t count, int type, void *handle, void *stream)
{
    const nccl_comm *const comm = comm_get(handle);
    return comm == NULL ? NCCL_INVALID
                        : spread(to, from, count * type_size(type), (uint64_t)comm->size, stream);
}

CUDA_ENTRY(int, ncclReduceScatter)
(const void *from, void *to, size_t count, int type, int operation, void *comm, void *stream)
{
    (void)operation;
    return comm_get(comm) == NULL ? NCCL_INVALID
                                  : spread(to, from, count * type_size(type), 1, stream);
}

CUDA_ENTRY(int, ncclBroadcast)
(const void *from, void *to, size_t count, int type, int root, void *handle, void *stream)
{
    const nccl_comm *const comm = comm_get(handle);
    if (comm == NULL) {
        return NCCL_INVALID;
    }
    const bool is_own = root == comm->rank;
    const uint64_t size = count * type_size(type);
    if (group_depth != 0 && group_count < GROUP_MAX) {
        group[group_count++] = (group_part){from, to, size, is_own};
    }
    /* Received from another rank: what is in this rank's buffer is what it would have sent. */
    const bool is_kept = !is_own && group_depth == 0;
    standin *const state = standin_open();
    if (is_kept && size <= VALUE_SIZE_MAX) {
        value_collect(&state->values, (uintptr_t)to, (uintptr_t)to, size);
    }
    standin_close(state);
    return spread(to, from, size, is_own ? 1 : 0, stream);
}

CUDA_ENTRY(int, ncclBcast)
(void *buffer, size_t count, int type, int root, void *comm, void *stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

CUDA_ENTRY(int, ncclAlltoAll)
(const void *from, void *to, size_t count, int type, void *handle, void *stream)
{
    const nccl_comm *const comm = comm_get(handle);
    return comm == NULL ? NCCL_INVALID
                        : spread(to, from, count * type_size(type), (uint64_t)comm->size, stream);
}

CUDA_ENTRY(int, ncclSend)
(const void *from, size_t count, int type, int peer, void *comm, void *stream)
{
    (void)from;
    (void)count;
    (void)type;
    (void)peer;
    return comm_get(comm) == NULL ? NCCL_INVALID : spread(NULL, NULL, 0, 0, stream);
}

CUDA_ENTRY(int, ncclRecv)(void *to, size_t count, int type, int peer, void *comm, void *stream)
{
    (void)to;
    (void)count;
    (void)type;
    (void)peer;
    return comm_get(comm) == NULL ? NCCL_INVALID : spread(NULL, NULL, 0, 0, stream);
}
