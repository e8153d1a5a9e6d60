/* SPDX-License-Identifier: MIT */
/* Where the program waits for other ranks: as a wait for the GPU, with an end and with reasons. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "standin/nccl_exchange.h"
#include "standin/nccl_op.h"

/* Nanoseconds; the last two: between looks at whether the others live, until the first word. */
static const uint64_t SLEEP_MIN = 20000;
static const uint64_t SLEEP_MAX = 1000000;
static const uint64_t LOOK_EVERY = 50000000;
static const uint64_t PATIENCE = UINT64_C(20000000000);

typedef struct wait_clock {
    uint64_t start;
    uint64_t looked;
    uint64_t sleep;
    bool has_spoken;
} wait_clock;

static uint64_t now(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static wait_clock clock_begin(void)
{
    const uint64_t start = now();
    return (wait_clock){.start = start, .looked = start, .sleep = SLEEP_MIN};
}

static void clock_sleep(wait_clock *clock)
{
    const struct timespec time = {.tv_nsec = (long)clock->sleep};
    (void)nanosleep(&time, NULL);
    clock->sleep = clock->sleep * 2 < SLEEP_MAX ? clock->sleep * 2 : SLEEP_MAX;
}

/** Whether it is time to look whether the others live. */
static bool clock_looks(wait_clock *clock)
{
    const uint64_t time = now();
    if (time - clock->looked < LOOK_EVERY) {
        return false;
    }
    clock->looked = time;
    return true;
}

static bool clock_is_over(const wait_clock *clock)
{
    const uint64_t limit = standin_settings()->wait;
    return limit != 0 && now() - clock->start > limit * UINT64_C(1000000000);
}

static bool clock_speaks(wait_clock *clock)
{
    if (clock->has_spoken || now() - clock->start < PATIENCE) {
        return false;
    }
    clock->has_spoken = true;
    return true;
}

/* ---- naming the ranks that are waited for ---- */

typedef bool (*is_wanted)(const nccl_comm *comm, unsigned rank);

static bool is_absent(const nccl_comm *comm, unsigned rank)
{
    return segment_state_of(comm->segment, rank) == SEGMENT_ABSENT;
}

static bool is_silent(const nccl_comm *comm, unsigned rank)
{
    return comm->in[rank].first != NULL || comm->out[rank].first != NULL;
}

/** "ranks 1, 2 (12 calls so far)" */
static void name_ranks(const nccl_comm *comm, is_wanted wanted, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < (unsigned)comm->size && length + 48 < size; i++) {
        if (wanted(comm, i)) {
            length += (size_t)snprintf(text + length, size - length, "%s%u",
                                       length == 0 ? "rank " : ", ", i);
            if (!is_absent(comm, i)) {
                length += (size_t)snprintf(text + length, size - length, " (%" PRIu64 " calls)",
                                           segment_calls_of(comm->segment, i));
            }
        }
    }
}

static void fail_late(nccl_comm *comm, const nccl_op *op)
{
    char ranks[256];
    char call[160];
    name_ranks(comm, is_silent, ranks, sizeof ranks);
    record_describe(&op->record, call, sizeof call);
    exchange_fail(comm, NCCL_REMOTE, "rank %d of %d waited %" PRIu64 " s in %s for %s", comm->rank,
                  comm->size, standin_settings()->wait, call, ranks);
}

/* ---- joining ---- */

/** Each rank needs a GPU of its own. */
static void check_devices(nccl_comm *comm)
{
    for (unsigned i = 0; i < (unsigned)comm->size; i++) {
        for (unsigned k = i + 1; k < (unsigned)comm->size && comm->error == NCCL_OK; k++) {
            if (segment_device_of(comm->segment, i) == segment_device_of(comm->segment, k)) {
                exchange_fail(comm, NCCL_USAGE,
                              "ranks %u and %u both use GPU %u, and NCCL takes one GPU for each "
                              "rank: torch.cuda.set_device(LOCAL_RANK), allot dryrun --gpus %d",
                              i, k, segment_device_of(comm->segment, i), comm->size);
            }
        }
    }
}

/** One look at whether all have come; true if the wait is over, one way or the other. */
static bool join_step(nccl_comm *comm, wait_clock *clock)
{
    char ranks[256];
    if (segment_is_complete(comm->segment)) {
        check_devices(comm);
        return true;
    }
    name_ranks(comm, is_absent, ranks, sizeof ranks);
    if (clock_is_over(clock)) {
        exchange_fail(
            comm, NCCL_REMOTE,
            "rank %d of %d waited %" PRIu64 " s for %s to make a communicator; to run one "
            "rank without the others: allot dryrun --world %d --rank %d",
            comm->rank, comm->size, standin_settings()->wait, ranks, comm->size, comm->rank);
        segment_unlink(comm->segment);
        return true;
    }
    if (clock_speaks(clock)) {
        fprintf(stderr, "allot: NCCL: rank %d of %d waits for %s to make a communicator\n",
                comm->rank, comm->size, ranks);
    }
    return exchange_adopt_fault(comm);
}

nccl_status exchange_join(nccl_comm *comm)
{
    wait_clock clock = clock_begin();
    for (;;) {
        exchange_lock();
        const bool is_over = join_step(comm, &clock);
        const nccl_status status = comm->error;
        exchange_unlock();
        if (is_over) {
            return status;
        }
        clock_sleep(&clock);
    }
}

/* ---- waiting for calls ---- */

typedef bool (*is_needed)(const nccl_op *op, const void *what);

static const nccl_op *find_needed(is_needed needed, const void *what)
{
    for (const nccl_comm *comm = exchange_first(); comm != NULL; comm = comm->next) {
        for (const nccl_op *op = comm->first; op != NULL; op = op->next) {
            if (needed(op, what)) {
                return op;
            }
        }
    }
    return NULL;
}

/** Move on; true if nothing is waited for any more. */
static bool wait_step(is_needed needed, const void *what, wait_clock *clock)
{
    exchange_progress();
    if (clock_looks(clock)) {
        exchange_check_ranks();
    }
    const nccl_op *const op = find_needed(needed, what);
    if (op == NULL) {
        return true;
    }
    nccl_comm *const comm = op->comm;
    if (clock_is_over(clock)) {
        fail_late(comm, op);
    } else if (clock_speaks(clock)) {
        char ranks[256];
        name_ranks(comm, is_silent, ranks, sizeof ranks);
        fprintf(stderr, "allot: NCCL: rank %d of %d waits for %s\n", comm->rank, comm->size, ranks);
    }
    return false;
}

/** Wait until no call is under way that is needed. The error of a communicator that broke. */
static nccl_status settle(is_needed needed, const void *what)
{
    if (exchange_is_idle()) {
        return NCCL_OK;
    }
    wait_clock clock = clock_begin();
    for (;;) {
        exchange_lock();
        const bool is_over = wait_step(needed, what, &clock);
        const nccl_status status = exchange_tell(standin_this_thread()->device);
        exchange_unlock();
        if (status != NCCL_OK || is_over) {
            return status;
        }
        clock_sleep(&clock);
    }
}

static bool is_of_comm(const nccl_op *op, const void *what)
{
    return op->comm == what;
}

nccl_status exchange_flush(nccl_comm *comm)
{
    const nccl_status status = settle(is_of_comm, comm);
    const nccl_status own = exchange_error(comm);
    return own != NCCL_OK ? own : status;
}

static cuda_status as_cuda(nccl_status status)
{
    return status == NCCL_OK ? CUDA_OK : CUDA_LAUNCH_FAILURE;
}

static bool is_on_device(const nccl_op *op, const void *what)
{
    const uint32_t *const device = what;
    return op->host == NULL && op->device == *device;
}

cuda_status nccl_wait_device(uint32_t device)
{
    return as_cuda(settle(is_on_device, &device));
}

static bool is_before_clock(const nccl_op *op, const void *what)
{
    const stream_clock *const clock = what;
    return op->host == NULL && op->slot < clock->count && clock->numbers[op->slot] >= op->number;
}

/** Wait for what comes before a point; taken first, since the program may move it meanwhile. */
static cuda_status wait_point(const stream_point *point, standin *state)
{
    stream_point copy = {0};
    const cuda_status copied = point_copy(&copy, point);
    standin_close(state);
    const nccl_status status =
        copied == CUDA_OK ? settle(is_before_clock, &copy.clock) : NCCL_SYSTEM;
    point_fini(&copy);
    return as_cuda(status);
}

cuda_status nccl_wait_stream(void *handle)
{
    if (exchange_is_idle()) {
        return CUDA_OK;
    }
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    if (stream_get(state, handle, &stream) != CUDA_OK || stream->capture != NULL) {
        standin_close(state);
        return CUDA_OK; /* the call itself says so */
    }
    return wait_point(&stream->now, state);
}

cuda_status nccl_wait_event(void *handle)
{
    if (exchange_is_idle()) {
        return CUDA_OK;
    }
    standin *const state = standin_open();
    const standin_event *const event = event_get(state, handle);
    if (event == NULL) {
        standin_close(state);
        return CUDA_OK;
    }
    return wait_point(&event->at, state);
}

typedef struct copy_ranges {
    uint64_t from;
    uint64_t to;
    uint64_t size;
} copy_ranges;

static bool overlaps(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

static bool is_copied(const nccl_op *op, const void *what)
{
    const copy_ranges *const ranges = what;
    const uint64_t size = op_result_size(op);
    return op->host == NULL && op_has_values(size) &&
           (overlaps(op->to, size, ranges->from, ranges->size) ||
            overlaps(op->to, size, ranges->to, ranges->size));
}

cuda_status nccl_wait_copy(const void *to, const void *from, uint64_t size)
{
    const copy_ranges ranges = {(uintptr_t)from, (uintptr_t)to, size};
    return as_cuda(settle(is_copied, &ranges));
}

void nccl_nudge(void)
{
    if (!exchange_is_idle()) {
        exchange_lock();
        exchange_progress();
        exchange_unlock();
    }
}
