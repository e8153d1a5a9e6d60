/* SPDX-License-Identifier: MIT */
/* NCCL: making communicators, splitting them, letting them go. */
#include "standin/nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "standin/nccl_buffers.h"
#include "standin/nccl_exchange.h"
#include "standin/nccl_group.h"
#include "standin/nccl_id.h"
#include "standin/runtime.h"

static const uint64_t COMM_MARK = UINT64_C(0x616c6c6f746e6363);

static _Thread_local char last_text[SEGMENT_TEXT_MAX]; /* of a failure without a communicator */

/**
 * Size of the group that the program is about to make by splitting: a rank alone cannot know who
 * else passes the same colour, so the Python side says so. 0: as many as the parent.
 */
__attribute__((visibility("default"))) int allot_standin_split_size;

nccl_comm *comm_get(void *handle)
{
    nccl_comm *const comm = handle;
    return comm != NULL && comm->mark == COMM_MARK ? comm : NULL;
}

static int current_device(void)
{
    return (int)standin_this_thread()->device;
}

static nccl_status fail(nccl_status status, const char *text)
{
    snprintf(last_text, sizeof last_text, "%s", text);
    fprintf(stderr, "allot: NCCL: %s\n", text);
    return status;
}

/* ---- versions, ids, texts ---- */

CUDA_ENTRY(int, ncclGetVersion)(int *version)
{
    *version = (int)standin_settings()->nccl_version;
    return NCCL_OK;
}

CUDA_ENTRY(int, ncclGetUniqueId)(cuda_unique_id *id)
{
    if (nccl_id_make(id) != ALLOT_STATUS_OK) {
        return fail(NCCL_SYSTEM, allot_error_detail());
    }
    return NCCL_OK;
}

CUDA_ENTRY(const char *, ncclGetErrorString)(int status)
{
    switch (status) {
    case NCCL_OK:
        return "no error";
    case NCCL_SYSTEM:
        return "unhandled system error";
    case NCCL_INVALID:
        return "invalid argument";
    case NCCL_USAGE:
        return "invalid usage";
    case NCCL_REMOTE:
        return "remote process exited or there was a network error";
    default:
        return "unhandled error";
    }
}

CUDA_ENTRY(const char *, ncclGetLastError)(void *handle)
{
    const nccl_comm *const comm = comm_get(handle);
    return comm == NULL || exchange_error(comm) == NCCL_OK ? last_text : comm->text;
}

/* ---- making ---- */

static void comm_free(nccl_comm *comm)
{
    nccl_buffers_give_back((unsigned)comm->device, comm->buffers);
    comm->mark = 0;
    free(comm->out);
    free(comm->in);
    free(comm->sent);
    free(comm);
}

static nccl_comm *comm_new(int size, int rank, int device)
{
    nccl_comm *const comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        return NULL;
    }
    comm->mark = COMM_MARK;
    comm->rank = rank;
    comm->size = size;
    comm->device = device;
    comm->out = calloc((size_t)size, sizeof *comm->out);
    comm->in = calloc((size_t)size, sizeof *comm->in);
    if (comm->out == NULL || comm->in == NULL) {
        comm_free(comm);
        return NULL;
    }
    return comm;
}

/** A meeting place for ranks. */
typedef struct meeting {
    const char *path; /**< NULL: a rank alone. */
    bool may_create;
} meeting;

/** Make a communicator and enter it; the others may not have come yet. */
static nccl_status comm_enter(const meeting *place, int size, int rank, int device, nccl_comm **out)
{
    if (size <= 0 || rank < 0 || rank >= size) {
        return fail(NCCL_INVALID, "a rank must be below the number of ranks");
    }
    nccl_comm *const comm = comm_new(size, rank, device);
    if (comm == NULL) {
        return NCCL_SYSTEM;
    }
    if (nccl_buffers_take((unsigned)device, size, &comm->buffers) != CUDA_OK) {
        comm_free(comm);
        return fail(NCCL_UNHANDLED, "out of device memory for the buffers of a communicator");
    }
    if (place->path != NULL &&
        segment_join(place->path, place->may_create, (unsigned)size, (unsigned)rank,
                     standin_settings()->visible[device], &comm->segment) != ALLOT_STATUS_OK) {
        comm_free(comm);
        return fail(NCCL_INVALID, allot_error_detail());
    }
    if (comm->segment != NULL) {
        standin *const state = standin_open();
        state->streams.keeps_order = true; /* what is waited for depends on it */
        standin_close(state);
    }
    exchange_lock();
    exchange_add(comm);
    exchange_unlock();
    *out = comm;
    return NCCL_OK;
}

static void comm_destroy(nccl_comm *comm)
{
    group_forget(comm);
    exchange_lock();
    exchange_drop(comm);
    exchange_remove(comm);
    exchange_unlock();
    segment_leave(comm->segment);
    comm_free(comm);
}

/** Wait for the others, or let the end of the group do so. */
static nccl_status comm_join(nccl_comm *comm)
{
    if (comm->segment == NULL) {
        return NCCL_OK;
    }
    if (group_is_open()) {
        return group_join_later(comm)
                   ? NCCL_OK
                   : fail(NCCL_INVALID, "too many communicators are made in one group");
    }
    const nccl_status status = exchange_join(comm);
    if (status != NCCL_OK) {
        snprintf(last_text, sizeof last_text, "%s", comm->text);
    }
    return status;
}

/** Enter and, outside of groups, wait for the others. */
static nccl_status comm_create(const meeting *place, int size, int rank, void **out)
{
    nccl_comm *comm = NULL;
    nccl_status status = comm_enter(place, size, rank, current_device(), &comm);
    if (status != NCCL_OK) {
        return status;
    }
    status = comm_join(comm);
    if (status != NCCL_OK) {
        comm_destroy(comm);
        return status;
    }
    *out = comm;
    return NCCL_OK;
}

static nccl_status create_by_id(void **out, int size, const cuda_unique_id *id, int rank)
{
    char path[sizeof id->bytes];
    if (size == 1 || standin_settings()->is_alone) {
        return comm_create(&(meeting){NULL, false}, size, rank, out);
    }
    if (!nccl_id_path(id, path)) {
        return fail(NCCL_INVALID,
                    "this unique id is not from ncclGetUniqueId() of a dry run; to run one rank "
                    "without the others: allot dryrun --world N --rank R");
    }
    return comm_create(&(meeting){path, false}, size, rank, out);
}

CUDA_ENTRY(int, ncclCommInitRank)(void **out, int size, cuda_unique_id id, int rank)
{
    return create_by_id(out, size, &id, rank);
}

CUDA_ENTRY(int, ncclCommInitRankConfig)
(void **out, int size, cuda_unique_id id, int rank, void *config)
{
    (void)config;
    return create_by_id(out, size, &id, rank);
}

CUDA_ENTRY(int, ncclCommInitRankScalable)
(void **out, int size, int rank, int id_count, void *ids, void *config)
{
    (void)config;
    return id_count < 1 ? NCCL_INVALID : create_by_id(out, size, ids, rank);
}

/** All ranks of one process. */
static nccl_status create_all(void **out, int size, const int *devices, const meeting *place)
{
    nccl_status status = NCCL_OK;
    int made = 0;
    for (; made < size && status == NCCL_OK; made++) {
        nccl_comm *comm = NULL;
        const int device = devices == NULL ? made : devices[made];
        status = device < 0 || device >= (int)standin_settings()->device_count
                     ? NCCL_INVALID
                     : comm_enter(place, size, made, device, &comm);
        out[made] = comm;
    }
    for (int i = 0; i < made && status == NCCL_OK && place->path != NULL; i++) {
        status = exchange_join(out[i]);
    }
    for (int i = 0; i < made && status != NCCL_OK; i++) {
        if (out[i] != NULL) {
            comm_destroy(out[i]);
        }
    }
    return status;
}

CUDA_ENTRY(int, ncclCommInitAll)(void **out, int size, const int *devices)
{
    cuda_unique_id id;
    if (size == 1 || standin_settings()->is_alone) {
        return create_all(out, size, devices, &(meeting){NULL, false});
    }
    char path[sizeof id.bytes];
    const int status = ncclGetUniqueId(&id);
    if (status != NCCL_OK || !nccl_id_path(&id, path)) {
        return status;
    }
    return create_all(out, size, devices, &(meeting){path, false});
}

/* ---- splitting ---- */

typedef struct split_wish {
    int32_t color;
    int32_t key;
} split_wish;

/** Place and size of this rank's part: by key, then by rank. */
static void find_part(const nccl_comm *comm, const split_wish *all, int *rank, int *size)
{
    const split_wish own = all[comm->rank];
    *rank = 0;
    *size = 0;
    for (int i = 0; i < comm->size; i++) {
        if (all[i].color != own.color) {
            continue;
        }
        *size += 1;
        const bool is_earlier = i < comm->rank;
        *rank += all[i].key < own.key || (is_earlier && all[i].key == own.key) ? 1 : 0;
    }
}

static nccl_status create_part(nccl_comm *comm, int color, int rank, int size, void **out)
{
    char path[SEGMENT_PATH_MAX];
    if (size == 1) {
        return comm_create(&(meeting){NULL, false}, size, rank, out);
    }
    if (snprintf(path, sizeof path, "%s.%llu.%d", segment_path(comm->segment),
                 (unsigned long long)comm->splits, color) >= (int)sizeof path) {
        return NCCL_SYSTEM;
    }
    return comm_create(&(meeting){path, true}, size, rank, out);
}

static nccl_status split(nccl_comm *comm, int color, int key, void **out)
{
    split_wish all[SEGMENT_RANKS_MAX];
    const split_wish own = {color, key};
    int rank = 0;
    int size = 0;
    const nccl_status status = exchange_host(comm, NCCL_SPLIT, &own, sizeof own, all);
    if (status != NCCL_OK) {
        return status;
    }
    comm->splits++;
    *out = NULL;
    if (color < 0) {
        return NCCL_OK;
    }
    find_part(comm, all, &rank, &size);
    return create_part(comm, color, rank, size, out);
}

CUDA_ENTRY(int, ncclCommSplit)(void *handle, int color, int key, void **out, void *config)
{
    (void)config;
    nccl_comm *const comm = comm_get(handle);
    if (comm == NULL) {
        return NCCL_INVALID;
    }
    if (comm->segment != NULL) {
        return split(comm, color, key, out);
    }
    if (color < 0) {
        *out = NULL;
        return NCCL_OK;
    }
    const int told = allot_standin_split_size;
    const int size = told > 0 && told <= comm->size ? told : comm->size;
    return comm_create(&(meeting){NULL, false}, size, comm->rank % size, out);
}

/* ---- letting go ---- */

CUDA_ENTRY(int, ncclCommFinalize)(void *handle)
{
    nccl_comm *const comm = comm_get(handle);
    return comm == NULL ? NCCL_INVALID : exchange_flush(comm);
}

CUDA_ENTRY(int, ncclCommDestroy)(void *handle)
{
    nccl_comm *const comm = comm_get(handle);
    if (comm == NULL) {
        return NCCL_INVALID;
    }
    const nccl_status status = exchange_flush(comm);
    comm_destroy(comm);
    return status;
}

CUDA_ENTRY(int, ncclCommAbort)(void *handle)
{
    nccl_comm *const comm = comm_get(handle);
    if (comm == NULL) {
        return NCCL_INVALID;
    }
    nccl_nudge(); /* what others can still have of this rank */
    comm_destroy(comm);
    return NCCL_OK;
}

/* ---- questions ---- */

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

CUDA_ENTRY(int, ncclCommGetAsyncError)(void *handle, int *error)
{
    const nccl_comm *const comm = comm_get(handle);
    if (comm == NULL) {
        return NCCL_INVALID;
    }
    nccl_nudge();
    *error = exchange_error(comm);
    return NCCL_OK;
}

CUDA_ENTRY(int, ncclMemAlloc)(void **out, size_t size)
{
    return cudaMalloc(out, size) == CUDA_OK ? NCCL_OK : NCCL_UNHANDLED;
}

CUDA_ENTRY(int, ncclMemFree)(void *pointer)
{
    return cudaFree(pointer) == CUDA_OK ? NCCL_OK : NCCL_UNHANDLED;
}
