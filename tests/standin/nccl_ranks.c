/* SPDX-License-Identifier: MIT */
#include "nccl_ranks.h"

#include <pthread.h>
#include <stdbool.h>

#include "support/check.h"
#include "support/standin.h"

enum { TO_DEVICE = 1, TO_HOST = 2 };

typedef struct rank_thread {
    int rank;
    standin_nccl_id id;
    void (*body)(int rank, void *comm);
} rank_thread;

static void *run(void *data)
{
    const rank_thread *const own = data;
    void *comm = NULL;
    int rank = -1;
    int count = 0;
    CHECK_EQ(cuda.cudaSetDevice(own->rank), 0);
    if (!CHECK_EQ(cuda.ncclCommInitRank(&comm, RANKS, own->id, own->rank), 0)) {
        return NULL;
    }
    CHECK_EQ(cuda.ncclCommCount(comm, &count), 0);
    CHECK_EQ(cuda.ncclCommUserRank(comm, &rank), 0);
    CHECK_EQ(count, RANKS);
    CHECK_EQ(rank, own->rank);
    own->body(own->rank, comm);
    (void)cuda.ncclCommDestroy(comm);
    return NULL;
}

void ranks_run(void (*body)(int rank, void *comm))
{
    rank_thread ranks[RANKS] = {{0}};
    pthread_t threads[RANKS];
    standin_nccl_id id;
    REQUIRE(cuda.ncclGetUniqueId(&id) == 0);
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (rank_thread){i, id, body};
        REQUIRE(pthread_create(&threads[i], NULL, run, &ranks[i]) == 0);
    }
    for (int i = 0; i < RANKS; i++) {
        pthread_join(threads[i], NULL);
    }
}

void *ranks_put(const void *bytes, size_t size)
{
    void *device = NULL;
    CHECK_EQ(cuda.cudaMalloc(&device, size), 0);
    if (bytes != NULL) {
        CHECK_EQ(cuda.cudaMemcpy(device, bytes, size, TO_DEVICE), 0);
    }
    return device;
}

int ranks_get(void *bytes, const void *device, size_t size)
{
    return cuda.cudaMemcpy(bytes, device, size, TO_HOST);
}
