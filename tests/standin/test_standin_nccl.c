/* SPDX-License-Identifier: MIT */
/* NCCL between real ranks, here threads: what each of them gets. Also for the thread sanitizer. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nccl_ranks.h"
#include "support/check.h"
#include "support/standin.h"

static const char SETTINGS[] = "devices:4,wait:60";

static void reduce_all_kinds(int rank, void *comm)
{
    const int64_t values[3] = {rank + 1, -10 * rank, INT64_C(1) << (40 + rank)};
    int64_t got[3] = {0};
    void *const from = ranks_put(values, sizeof values);
    void *const to = ranks_put(NULL, sizeof values);
    CHECK_EQ(cuda.ncclAllReduce(from, to, 3, RANKS_INT64, RANKS_SUM, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, to, sizeof got), 0);
    CHECK_EQ(got[0], 10);
    CHECK_EQ(got[1], -60);
    CHECK_EQ(got[2], INT64_C(15) << 40);
    CHECK_EQ(cuda.ncclAllReduce(from, to, 3, RANKS_INT64, RANKS_MIN, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, to, sizeof got), 0);
    CHECK_EQ(got[0], 1);
    CHECK_EQ(got[1], -30);
    CHECK_EQ(cuda.ncclReduce(from, to, 3, RANKS_INT64, RANKS_MAX, 2, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, to, sizeof got), 0);
    CHECK_EQ(got[0], rank == 2 ? 4 : 1);
    CHECK_EQ(got[1], rank == 2 ? 0 : -30);
    cuda.cudaFree(from);
    cuda.cudaFree(to);
}

static void reductions_are_computed(void)
{
    standin_load(SETTINGS);
    ranks_run(reduce_all_kinds);
}

static void reduce_reals(int rank, void *comm)
{
    const double wide[2] = {rank + 0.5, -rank};
    const float narrow = (float)(1 << rank);
    const uint16_t half = 0x3c00; /* 1.0 */
    double wide_got[2] = {0};
    float narrow_got = 0;
    uint16_t half_got = 0;
    enum { HALF = 6 };
    void *const at = ranks_put(wide, sizeof wide);
    CHECK_EQ(cuda.ncclAllReduce(at, at, 2, RANKS_DOUBLE, RANKS_AVERAGE, comm, NULL), 0);
    CHECK_EQ(ranks_get(wide_got, at, sizeof wide_got), 0);
    CHECK(wide_got[0] == 2.0 && wide_got[1] == -1.5);
    CHECK_EQ(cuda.cudaMemcpy(at, &narrow, sizeof narrow, 1), 0);
    CHECK_EQ(cuda.ncclAllReduce(at, at, 1, RANKS_FLOAT, RANKS_PRODUCT, comm, NULL), 0);
    CHECK_EQ(ranks_get(&narrow_got, at, sizeof narrow_got), 0);
    CHECK(narrow_got == 64.0f);
    CHECK_EQ(cuda.cudaMemcpy(at, &half, sizeof half, 1), 0);
    CHECK_EQ(cuda.ncclAllReduce(at, at, 1, HALF, RANKS_SUM, comm, NULL), 0);
    CHECK_EQ(ranks_get(&half_got, at, sizeof half_got), 0);
    CHECK_EQ(half_got, 0x4400); /* 4.0 */
    cuda.cudaFree(at);
}

static void real_numbers_are_reduced(void)
{
    standin_load(SETTINGS);
    ranks_run(reduce_reals);
}

/** Four numbers of a rank that no other rank has. */
static void numbers_of(int rank, int32_t *out)
{
    for (int i = 0; i < RANKS; i++) {
        out[i] = 100 * (rank + 1) + i;
    }
}

static void move_all_kinds(int rank, void *comm)
{
    int32_t own[RANKS];
    int32_t got[RANKS * RANKS] = {0};
    numbers_of(rank, own);
    void *const from = ranks_put(own, sizeof own);
    void *const to = ranks_put(NULL, sizeof got);
    CHECK_EQ(cuda.ncclAllGather(from, to, RANKS, RANKS_INT32, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, to, sizeof got), 0);
    for (int i = 0; i < RANKS * RANKS; i++) {
        CHECK_EQ(got[i], 100 * (i / RANKS + 1) + i % RANKS);
    }
    CHECK_EQ(cuda.ncclAlltoAll(from, to, 1, RANKS_INT32, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, to, sizeof own), 0);
    for (int i = 0; i < RANKS; i++) {
        CHECK_EQ(got[i], 100 * (i + 1) + rank);
    }
    CHECK_EQ(cuda.ncclReduceScatter(from, to, 1, RANKS_INT32, RANKS_SUM, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, to, sizeof *got), 0);
    CHECK_EQ(got[0], 1000 + 4 * rank);
    CHECK_EQ(cuda.ncclBroadcast(from, to, RANKS, RANKS_INT32, 3, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, to, sizeof own), 0);
    CHECK_EQ(got[1], 401);
    CHECK_EQ(cuda.ncclScatter(from, to, 1, RANKS_INT32, 1, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, to, sizeof *got), 0);
    CHECK_EQ(got[0], 200 + rank);
    CHECK_EQ(cuda.ncclGather(from, to, 1, RANKS_INT32, 0, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, to, sizeof own), 0);
    CHECK_EQ(got[3], rank == 0 ? 400 : 403);
    cuda.cudaFree(from);
    cuda.cudaFree(to);
}

static void every_rank_gets_what_is_its_own(void)
{
    standin_load(SETTINGS);
    ranks_run(move_all_kinds);
}

static void pass_around(int rank, void *comm)
{
    const int next = (rank + 1) % RANKS;
    const int before = (rank + RANKS - 1) % RANKS;
    int32_t own[RANKS];
    int32_t got[RANKS] = {0};
    numbers_of(rank, own);
    void *const from = ranks_put(own, sizeof own);
    void *const to = ranks_put(NULL, sizeof own);
    CHECK_EQ(cuda.ncclGroupStart(), 0);
    CHECK_EQ(cuda.ncclSend(from, RANKS, RANKS_INT32, next, comm, NULL), 0);
    CHECK_EQ(cuda.ncclRecv(to, RANKS, RANKS_INT32, before, comm, NULL), 0);
    CHECK_EQ(cuda.ncclGroupEnd(), 0);
    CHECK_EQ(ranks_get(got, to, sizeof got), 0);
    CHECK_EQ(got[2], 100 * (before + 1) + 2);
    /* To itself as well. */
    CHECK_EQ(cuda.ncclSend(from, RANKS, RANKS_INT32, rank, comm, NULL), 0);
    CHECK_EQ(cuda.ncclRecv(to, RANKS, RANKS_INT32, rank, comm, NULL), 0);
    CHECK_EQ(ranks_get(got, to, sizeof got), 0);
    CHECK_EQ(got[0], 100 * (rank + 1));
    cuda.cudaFree(from);
    cuda.cudaFree(to);
}

static void sends_reach_their_receivers(void)
{
    standin_load(SETTINGS);
    ranks_run(pass_around);
}

/** More than fits between two ranks at a time. */
static void send_much(int rank, void *comm)
{
    enum { SIZE = 1000003, UINT8 = 1 };
    unsigned char *const bytes = malloc(SIZE);
    uint64_t random = 42;
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = rank == 1 ? (unsigned char)check_random(&random) : 0;
    }
    void *const at = ranks_put(bytes, SIZE);
    CHECK_EQ(cuda.ncclBroadcast(at, at, SIZE, UINT8, 1, comm, NULL), 0);
    CHECK_EQ(ranks_get(bytes, at, SIZE), 0);
    random = 42;
    size_t wrong = 0;
    for (size_t i = 0; i < SIZE; i++) {
        wrong += bytes[i] != (unsigned char)check_random(&random) ? 1 : 0;
    }
    CHECK_EQ(wrong, 0);
    free(bytes);
    cuda.cudaFree(at);
}

static void much_is_sent_in_pieces(void)
{
    standin_load(SETTINGS);
    ranks_run(send_much);
}

/** A rank that is ahead does not wait before it has to. */
static void run_ahead(int rank, void *comm)
{
    enum { CALLS = 3000 };
    const int64_t one = 1;
    int64_t got = 0;
    void *const large = ranks_put(NULL, STANDIN_MIB(8));
    for (int i = 0; i < CALLS; i++) {
        CHECK_EQ(
            cuda.ncclAllReduce(large, large, STANDIN_MIB(2), RANKS_FLOAT, RANKS_SUM, comm, NULL),
            0);
        if (rank == 0 && i % 500 == 0) {
            CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
        }
    }
    /* All have made those calls then: values grow old with the calls of all threads. */
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    void *const value = ranks_put(&one, sizeof one);
    CHECK_EQ(cuda.ncclAllReduce(value, value, 1, RANKS_INT64, RANKS_SUM, comm, NULL), 0);
    CHECK_EQ(ranks_get(&got, value, sizeof got), 0);
    CHECK_EQ(got, RANKS);
    cuda.cudaFree(value);
    cuda.cudaFree(large);
}

static void ranks_run_ahead_of_each_other(void)
{
    standin_load(SETTINGS);
    ranks_run(run_ahead);
}

/** Waiting for one stream does not wait for what another stream does. */
static void wait_for_one_stream(int rank, void *comm)
{
    const int32_t own = 7 + rank;
    int32_t got = 0;
    void *side = NULL;
    void *event = NULL;
    void *const to = ranks_put(NULL, sizeof own);
    void *const from = ranks_put(&own, sizeof own);
    enum { NON_BLOCKING = 1 };
    CHECK_EQ(cuda.cudaStreamCreateWithFlags(&side, NON_BLOCKING), 0);
    CHECK_EQ(cuda.cudaEventCreateWithFlags(&event, 0), 0);
    if (rank == 0) {
        /* Its answer comes only after the synchronisation below. */
        CHECK_EQ(cuda.ncclRecv(to, 1, RANKS_INT32, 1, comm, side), 0);
        CHECK_EQ(cuda.cudaEventRecord(event, side), 0);
        CHECK_EQ(cuda.cudaStreamSynchronize(NULL), 0);
        CHECK_EQ(cuda.ncclSend(from, 1, RANKS_INT32, 1, comm, NULL), 0);
        CHECK_EQ(cuda.cudaStreamWaitEvent(NULL, event, 0), 0);
        CHECK_EQ(cuda.cudaStreamSynchronize(NULL), 0);
        CHECK_EQ(ranks_get(&got, to, sizeof got), 0);
        CHECK_EQ(got, 8);
    } else if (rank == 1) {
        CHECK_EQ(cuda.ncclRecv(to, 1, RANKS_INT32, 0, comm, NULL), 0);
        CHECK_EQ(ranks_get(&got, to, sizeof got), 0);
        CHECK_EQ(got, 7);
        CHECK_EQ(cuda.ncclSend(from, 1, RANKS_INT32, 0, comm, NULL), 0);
    }
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    cuda.cudaFree(from);
    cuda.cudaFree(to);
}

static void only_what_comes_before_is_waited_for(void)
{
    standin_load(SETTINGS);
    ranks_run(wait_for_one_stream);
}

static void split_in_two(int rank, void *comm)
{
    void *part = NULL;
    void *none = NULL;
    int part_rank = -1;
    int part_size = 0;
    const int64_t own = rank;
    int64_t got = -1;
    /* Odd and even ranks, the higher rank first. */
    CHECK_EQ(cuda.ncclCommSplit(comm, rank % 2, -rank, &part, NULL), 0);
    if (!CHECK(part != NULL)) {
        return;
    }
    CHECK_EQ(cuda.ncclCommCount(part, &part_size), 0);
    CHECK_EQ(cuda.ncclCommUserRank(part, &part_rank), 0);
    CHECK_EQ(part_size, 2);
    CHECK_EQ(part_rank, rank < 2 ? 1 : 0);
    void *const at = ranks_put(&own, sizeof own);
    CHECK_EQ(cuda.ncclAllReduce(at, at, 1, RANKS_INT64, RANKS_SUM, part, NULL), 0);
    CHECK_EQ(ranks_get(&got, at, sizeof got), 0);
    CHECK_EQ(got, rank % 2 == 0 ? 2 : 4);
    CHECK_EQ(cuda.ncclCommSplit(comm, rank == 0 ? 5 : -1, 0, &none, NULL), 0);
    CHECK((none != NULL) == (rank == 0));
    if (none != NULL) {
        CHECK_EQ(cuda.ncclCommDestroy(none), 0);
    }
    CHECK_EQ(cuda.ncclCommDestroy(part), 0);
    cuda.cudaFree(at);
}

static void communicators_are_split(void)
{
    standin_load(SETTINGS);
    ranks_run(split_in_two);
}

static void disagree(int rank, void *comm)
{
    void *const at = ranks_put(NULL, 4096);
    int error = 0;
    int status = rank == 2 ? cuda.ncclAllGather(at, at, 16, RANKS_FLOAT, comm, NULL)
                           : cuda.ncclAllReduce(at, at, 64, RANKS_FLOAT, RANKS_SUM, comm, NULL);
    if (status == 0) {
        status = cuda.cudaDeviceSynchronize();
    }
    CHECK(status != 0);
    CHECK_EQ(cuda.ncclCommGetAsyncError(comm, &error), 0);
    CHECK(error != 0);
    const char *const text = cuda.ncclGetLastError(comm);
    CHECK_CONTAINS(text, "AllReduce of 64 float32 (sum)");
    CHECK_CONTAINS(text, "rank 2 ");
    CHECK_CONTAINS(text, "AllGather of 16 float32");
    CHECK(cuda.ncclAllReduce(at, at, 1, RANKS_FLOAT, RANKS_SUM, comm, NULL) != 0);
    cuda.cudaFree(at);
}

static void ranks_that_disagree_are_told_both_sides(void)
{
    standin_load(SETTINGS);
    ranks_run(disagree);
}

static void leave_early(int rank, void *comm)
{
    void *const at = ranks_put(NULL, 4096);
    if (rank != 3) {
        CHECK_EQ(cuda.ncclAllReduce(at, at, 64, RANKS_FLOAT, RANKS_SUM, comm, NULL), 0);
        CHECK(cuda.cudaDeviceSynchronize() != 0);
        CHECK_CONTAINS(cuda.ncclGetLastError(comm), "rank 3 ");
        CHECK_CONTAINS(cuda.ncclGetLastError(comm), "destroyed its communicator after 0 calls");
    }
    cuda.cudaFree(at);
}

static void a_rank_that_left_is_not_waited_for(void)
{
    standin_load(SETTINGS);
    ranks_run(leave_early);
}

static void one_thread_has_all_ranks(void)
{
    void *comms[RANKS] = {NULL};
    void *places[RANKS] = {NULL};
    int64_t got = 0;
    standin_load(SETTINGS);
    REQUIRE(cuda.ncclCommInitAll(comms, RANKS, NULL) == 0);
    CHECK_EQ(cuda.ncclGroupStart(), 0);
    for (int i = 0; i < RANKS; i++) {
        const int64_t own = i + 1;
        cuda.cudaSetDevice(i);
        places[i] = ranks_put(&own, sizeof own);
        CHECK_EQ(
            cuda.ncclAllReduce(places[i], places[i], 1, RANKS_INT64, RANKS_PRODUCT, comms[i], NULL),
            0);
    }
    CHECK_EQ(cuda.ncclGroupEnd(), 0);
    for (int i = 0; i < RANKS; i++) {
        cuda.cudaSetDevice(i);
        CHECK_EQ(ranks_get(&got, places[i], sizeof got), 0);
        CHECK_EQ(got, 24);
        cuda.cudaFree(places[i]);
    }
    for (int i = 0; i < RANKS; i++) {
        CHECK_EQ(cuda.ncclCommDestroy(comms[i]), 0);
    }
    cuda.cudaSetDevice(0);
}

static void one_device_is_not_for_two_ranks(void)
{
    static const int devices[] = {0, 1, 1};
    void *comms[3] = {NULL};
    standin_load(SETTINGS);
    CHECK(cuda.ncclCommInitAll(comms, 3, devices) != 0);
}

static void a_group_says_when_it_is_full_and_forgets_what_is_aborted(void)
{
    enum { ROOM = 64, INVALID = 4 };
    void *comms[ROOM + 1] = {NULL};
    standin_load(SETTINGS);
    CHECK_EQ(cuda.ncclGroupStart(), 0);
    for (int i = 0; i <= ROOM; i++) {
        standin_nccl_id id;
        REQUIRE(cuda.ncclGetUniqueId(&id) == 0);
        CHECK_EQ(cuda.ncclCommInitRank(&comms[i], 2, id, 0), i < ROOM ? 0 : INVALID);
    }
    CHECK(strstr(cuda.ncclGetLastError(NULL), "one group") != NULL);
    for (int i = 0; i < ROOM; i++) {
        CHECK_EQ(cuda.ncclCommAbort(comms[i]), 0);
    }
    CHECK_EQ(cuda.ncclGroupEnd(), 0); /* nobody else will ever come */
}

static void many_ranks_meet_in_little_memory(void)
{
    enum { MANY = 256 };
    standin_nccl_id id;
    struct stat place;
    void *comm = NULL;
    standin_load(SETTINGS);
    REQUIRE(cuda.ncclGetUniqueId(&id) == 0);
    CHECK_EQ(cuda.ncclGroupStart(), 0);
    REQUIRE(cuda.ncclCommInitRank(&comm, MANY, id, 0) == 0);
    REQUIRE(stat(strchr(id.bytes, '/'), &place) == 0);
    CHECK(place.st_size < (off_t)STANDIN_MIB(40));
    CHECK_EQ(cuda.ncclCommAbort(comm), 0);
    CHECK_EQ(cuda.ncclGroupEnd(), 0);
}

static const check_test TESTS[] = {
    {"reductions_are_computed", reductions_are_computed},
    {"real_numbers_are_reduced", real_numbers_are_reduced},
    {"every_rank_gets_what_is_its_own", every_rank_gets_what_is_its_own},
    {"sends_reach_their_receivers", sends_reach_their_receivers},
    {"much_is_sent_in_pieces", much_is_sent_in_pieces},
    {"ranks_run_ahead_of_each_other", ranks_run_ahead_of_each_other},
    {"only_what_comes_before_is_waited_for", only_what_comes_before_is_waited_for},
    {"communicators_are_split", communicators_are_split},
    {"ranks_that_disagree_are_told_both_sides", ranks_that_disagree_are_told_both_sides},
    {"a_rank_that_left_is_not_waited_for", a_rank_that_left_is_not_waited_for},
    {"one_thread_has_all_ranks", one_thread_has_all_ranks},
    {"one_device_is_not_for_two_ranks", one_device_is_not_for_two_ranks},
    {"a_group_says_when_it_is_full_and_forgets_what_is_aborted",
     a_group_says_when_it_is_full_and_forgets_what_is_aborted},
    {"many_ranks_meet_in_little_memory", many_ranks_meet_in_little_memory},
};
CHECK_MAIN(TESTS)
