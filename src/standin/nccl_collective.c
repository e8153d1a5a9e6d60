/* SPDX-License-Identifier: MIT */
/* NCCL: collectives, sends and receives, groups. */
#include "core/size_math.h"
#include "standin/nccl_exchange.h"
#include "standin/nccl_group.h"
#include "standin/nccl_type.h"
#include "standin/runtime.h"

enum { JOINS_MAX = 64 };
static _Thread_local int group_depth;
static _Thread_local nccl_comm *joins[JOINS_MAX];
static _Thread_local int join_count;

bool group_is_open(void)
{
    return group_depth != 0;
}

bool group_join_later(nccl_comm *comm)
{
    if (join_count == JOINS_MAX) {
        return false;
    }
    joins[join_count++] = comm;
    return true;
}

void group_forget(const nccl_comm *comm)
{
    int kept = 0;
    for (int i = 0; i < join_count; i++) {
        if (joins[i] != comm) {
            joins[kept++] = joins[i];
        }
    }
    join_count = kept;
}

CUDA_ENTRY(int, ncclGroupStart)(void)
{
    if (group_depth++ == 0) {
        join_count = 0;
        nccl_alone_group_begin();
    }
    return NCCL_OK;
}

/* Calls are under way since they were made: only joining waits for the end of the group. */
CUDA_ENTRY(int, ncclGroupEnd)(void)
{
    if (group_depth == 0) {
        return NCCL_USAGE;
    }
    if (--group_depth != 0) {
        return NCCL_OK;
    }
    nccl_status status = NCCL_OK;
    nccl_alone_group_end();
    for (int i = 0; i < join_count && status == NCCL_OK; i++) {
        status = exchange_join(joins[i]);
    }
    join_count = 0;
    return status;
}

static bool has_root(nccl_kind kind)
{
    return kind != NCCL_ALL_REDUCE && kind != NCCL_ALL_GATHER && kind != NCCL_REDUCE_SCATTER &&
           kind != NCCL_ALL_TO_ALL;
}

/** Whether the bytes of all ranks together can be counted. */
static bool is_countable(const nccl_call *call)
{
    uint64_t bytes = 0;
    return alloti_mul(call->count, nccl_type_size(call->type), &bytes) &&
           alloti_mul(bytes, (uint64_t)call->comm->size, &bytes);
}

/** Every collective comes through here. */
static int collect(void *handle, nccl_call *call)
{
    call->comm = comm_get(handle);
    if (call->comm == NULL || nccl_type_size(call->type) == 0 || !is_countable(call) ||
        call->root >= call->comm->size || (has_root(call->kind) && call->root < 0)) {
        return NCCL_INVALID;
    }
    return call->comm->segment == NULL ? nccl_alone(call) : exchange_start(call);
}

CUDA_ENTRY(int, ncclAllReduce)
(const void *from, void *to, size_t count, int type, int operation, void *comm, void *stream)
{
    return collect(comm, &(nccl_call){.kind = NCCL_ALL_REDUCE,
                                      .from = from,
                                      .to = to,
                                      .count = count,
                                      .type = (uint32_t)type,
                                      .operation = (uint32_t)operation,
                                      .root = -1,
                                      .stream = stream});
}

CUDA_ENTRY(int, ncclReduce)
(const void *from, void *to, size_t count, int type, int operation, int root, void *comm,
 void *stream)
{
    return collect(comm, &(nccl_call){.kind = NCCL_REDUCE,
                                      .from = from,
                                      .to = to,
                                      .count = count,
                                      .type = (uint32_t)type,
                                      .operation = (uint32_t)operation,
                                      .root = root,
                                      .stream = stream});
}

CUDA_ENTRY(int, ncclReduceScatter)
(const void *from, void *to, size_t count, int type, int operation, void *comm, void *stream)
{
    return collect(comm, &(nccl_call){.kind = NCCL_REDUCE_SCATTER,
                                      .from = from,
                                      .to = to,
                                      .count = count,
                                      .type = (uint32_t)type,
                                      .operation = (uint32_t)operation,
                                      .root = -1,
                                      .stream = stream});
}

/** Calls without an operation. */
static int move(nccl_kind kind, const void *from, void *to, size_t count, int type, int root,
                void *comm, void *stream)
{
    return collect(comm, &(nccl_call){.kind = kind,
                                      .from = from,
                                      .to = to,
                                      .count = count,
                                      .type = (uint32_t)type,
                                      .root = root,
                                      .stream = stream});
}

CUDA_ENTRY(int, ncclAllGather)
(const void *from, void *to, size_t count, int type, void *comm, void *stream)
{
    return move(NCCL_ALL_GATHER, from, to, count, type, -1, comm, stream);
}

CUDA_ENTRY(int, ncclBroadcast)
(const void *from, void *to, size_t count, int type, int root, void *comm, void *stream)
{
    return move(NCCL_BROADCAST, from, to, count, type, root, comm, stream);
}

CUDA_ENTRY(int, ncclBcast)
(void *buffer, size_t count, int type, int root, void *comm, void *stream)
{
    return move(NCCL_BROADCAST, buffer, buffer, count, type, root, comm, stream);
}

CUDA_ENTRY(int, ncclAlltoAll)
(const void *from, void *to, size_t count, int type, void *comm, void *stream)
{
    return move(NCCL_ALL_TO_ALL, from, to, count, type, -1, comm, stream);
}

CUDA_ENTRY(int, ncclGather)
(const void *from, void *to, size_t count, int type, int root, void *comm, void *stream)
{
    return move(NCCL_GATHER, from, to, count, type, root, comm, stream);
}

CUDA_ENTRY(int, ncclScatter)
(const void *from, void *to, size_t count, int type, int root, void *comm, void *stream)
{
    return move(NCCL_SCATTER, from, to, count, type, root, comm, stream);
}

CUDA_ENTRY(int, ncclSend)
(const void *from, size_t count, int type, int peer, void *comm, void *stream)
{
    return move(NCCL_SEND, from, NULL, count, type, peer, comm, stream);
}

CUDA_ENTRY(int, ncclRecv)(void *to, size_t count, int type, int peer, void *comm, void *stream)
{
    return move(NCCL_RECEIVE, NULL, to, count, type, peer, comm, stream);
}
