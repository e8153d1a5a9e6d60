/* SPDX-License-Identifier: MIT */
/* NCCL with one rank that runs without the others, which by rule hold what it holds. */
#include "nccl_ranks.h"
#include "support/check.h"
#include "support/standin.h"

enum { SIZE = 8, RANK = 5 };

static void *join(void)
{
    standin_nccl_id id;
    void *comm = NULL;
    standin_load("ranks:alone");
    CHECK_EQ(cuda.ncclGetUniqueId(&id), 0);
    CHECK_EQ(cuda.ncclCommInitRank(&comm, SIZE, id, RANK), 0);
    return comm;
}

static void the_others_hold_the_same(void)
{
    void *const comm = join();
    const int64_t own = 77;
    int64_t got[SIZE] = {0};
    void *const from = ranks_put(&own, sizeof own);
    void *const to = ranks_put(NULL, sizeof got);
    CHECK_EQ(cuda.ncclAllGather(from, to, 1, RANKS_INT64, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, to, sizeof got), 0);
    for (int i = 0; i < SIZE; i++) {
        CHECK_EQ(got[i], 77);
    }
    /* From another rank comes what this rank's own buffer holds. */
    CHECK_EQ(cuda.ncclBroadcast(from, from, 1, RANKS_INT64, 0, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, from, sizeof own), 0);
    CHECK_EQ(got[0], 77);
    CHECK_EQ(cuda.ncclCommDestroy(comm), 0);
    cuda.cudaFree(from);
    cuda.cudaFree(to);
}

static void what_was_sent_is_what_is_received(void)
{
    void *const comm = join();
    const int64_t own = 31;
    int64_t got = 0;
    void *const from = ranks_put(&own, sizeof own);
    void *const to = ranks_put(NULL, sizeof own);
    CHECK_EQ(cuda.ncclSend(from, 1, RANKS_INT64, RANK + 1, comm, NULL), 0);
    CHECK_EQ(cuda.ncclRecv(to, 1, RANKS_INT64, RANK - 1, comm, NULL), 0);
    CHECK_EQ(ranks_get(&got, to, sizeof got), 0);
    CHECK_EQ(got, 31);
    CHECK_EQ(cuda.ncclCommDestroy(comm), 0);
    cuda.cudaFree(from);
    cuda.cudaFree(to);
}

static void a_split_waits_for_nobody(void)
{
    void *const comm = join();
    void *part = NULL;
    void *none = comm;
    int size = 0;
    CHECK_EQ(cuda.ncclCommSplit(comm, 1, RANK, &part, NULL), 0);
    CHECK_EQ(cuda.ncclCommCount(part, &size), 0);
    CHECK_EQ(size, SIZE);
    CHECK_EQ(cuda.ncclCommSplit(comm, -1, RANK, &none, NULL), 0);
    CHECK(none == NULL);
    CHECK_EQ(cuda.ncclCommDestroy(part), 0);
    CHECK_EQ(cuda.ncclCommDestroy(comm), 0);
    CHECK(cuda.ncclAllReduce(NULL, NULL, 1, RANKS_INT64, RANKS_SUM, NULL, NULL) != 0);
}

static void a_rank_or_a_size_that_cannot_be_is_refused(void)
{
    enum { INVALID = 4 };
    void *const comm = join();
    const int64_t own = 1;
    void *const from = ranks_put(&own, sizeof own);
    CHECK_EQ(cuda.ncclSend(from, 1, RANKS_INT64, -1, comm, NULL), INVALID);
    CHECK_EQ(cuda.ncclSend(from, 1, RANKS_INT64, SIZE, comm, NULL), INVALID);
    CHECK_EQ(cuda.ncclRecv(from, 1, RANKS_INT64, -1, comm, NULL), INVALID);
    CHECK_EQ(cuda.ncclBroadcast(from, from, 1, RANKS_INT64, -1, comm, NULL), INVALID);
    CHECK_EQ(cuda.ncclAllGather(from, from, SIZE_MAX / sizeof own, RANKS_INT64, comm, NULL),
             INVALID);
    CHECK_EQ(cuda.ncclCommDestroy(comm), 0);
    cuda.cudaFree(from);
}

static const check_test TESTS[] = {
    {"the_others_hold_the_same", the_others_hold_the_same},
    {"what_was_sent_is_what_is_received", what_was_sent_is_what_is_received},
    {"a_split_waits_for_nobody", a_split_waits_for_nobody},
    {"a_rank_or_a_size_that_cannot_be_is_refused", a_rank_or_a_size_that_cannot_be_is_refused},
};
CHECK_MAIN(TESTS)
