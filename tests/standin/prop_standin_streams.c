/* SPDX-License-Identifier: MIT */
/*
 * Random programs of stream operations on real bytes against a sequential model: what is issued
 * first happens first. A program that orders its streams wherever they touch the same memory must
 * end as the model does, however the work is put off; one that does not must differ at least once.
 *
 * The generator orders in the plainest way: it remembers, for each buffer, the stream that used it
 * last, and makes the next one wait for an event of that stream, or for the host.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/standin.h"

enum {
    NON_BLOCKING = 1,
    STREAMS = 5, /* the default stream, two blocking ones, two that are not */
    BUFFERS = 6, /* half on the device, half pinned on the host */
    SIZE = 2048,
    PROGRAMS = 30,
    STEPS = 60,
};

typedef struct program {
    uint64_t random;
    bool is_ordered;
    void *streams[STREAMS];
    void *event;
    unsigned char *buffers[BUFFERS];
    unsigned char model[BUFFERS][SIZE];
    int last[BUFFERS]; /* the stream that used it last, -1 for none */
    unsigned wrong_reads;
} program;

static void load(void)
{
    standin_load("limit:256MiB,bytes:real,delay:11,devices:1");
}

static bool is_device(int buffer)
{
    return buffer < BUFFERS / 2;
}

static void begin(program *p, uint64_t seed, bool is_ordered)
{
    *p = (program){.random = seed, .is_ordered = is_ordered};
    for (int i = 1; i < STREAMS; i++) {
        CHECK_EQ(cuda.cudaStreamCreateWithFlags(&p->streams[i], i > 2 ? NON_BLOCKING : 0), 0);
    }
    CHECK_EQ(cuda.cudaEventCreateWithFlags(&p->event, 0), 0);
    for (int i = 0; i < BUFFERS; i++) {
        void *made = NULL;
        CHECK_EQ(is_device(i) ? cuda.cudaMalloc(&made, SIZE) : cuda.cudaHostAlloc(&made, SIZE, 0),
                 0);
        p->buffers[i] = made;
        p->last[i] = -1;
        if (is_device(i)) {
            CHECK_EQ(cuda.cudaMemset(made, 0, SIZE), 0);
        }
    }
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
}

/** True if the buffers are as the model has them. */
static bool end(program *p)
{
    bool is_equal = p->wrong_reads == 0;
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    for (int i = 0; i < BUFFERS; i++) {
        unsigned char got[SIZE];
        CHECK_EQ(cuda.cudaMemcpy(got, p->buffers[i], SIZE, 4), 0);
        is_equal = is_equal && memcmp(got, p->model[i], SIZE) == 0;
        CHECK_EQ(is_device(i) ? cuda.cudaFree(p->buffers[i]) : cuda.cudaFreeHost(p->buffers[i]), 0);
    }
    for (int i = 1; i < STREAMS; i++) {
        CHECK_EQ(cuda.cudaStreamDestroy(p->streams[i]), 0);
    }
    CHECK_EQ(cuda.cudaEventDestroy(p->event), 0);
    return is_equal;
}

static int pick(program *p, int count)
{
    return (int)check_random_range(&p->random, 0, (uint64_t)count - 1);
}

/** The stream may use the buffer from here on. */
static void order(program *p, int stream, int buffer)
{
    const int before = p->last[buffer];
    p->last[buffer] = stream;
    if (!p->is_ordered || before < 0 || before == stream) {
        return;
    }
    if (pick(p, 4) == 0) {
        CHECK_EQ(cuda.cudaStreamSynchronize(p->streams[before]), 0);
        return;
    }
    CHECK_EQ(cuda.cudaEventRecord(p->event, p->streams[before]), 0);
    CHECK_EQ(cuda.cudaStreamWaitEvent(p->streams[stream], p->event, 0), 0);
}

static void fill(program *p)
{
    const int stream = pick(p, STREAMS);
    const int to = pick(p, BUFFERS);
    const size_t at = (size_t)pick(p, SIZE);
    const size_t size = (size_t)pick(p, SIZE - (int)at) + 1;
    const int value = pick(p, 256);
    order(p, stream, to);
    CHECK_EQ(cuda.cudaMemsetAsync(p->buffers[to] + at, value, size, p->streams[stream]), 0);
    memset(p->model[to] + at, value, size);
}

static void copy(program *p)
{
    const int stream = pick(p, STREAMS);
    const int to = pick(p, BUFFERS);
    const int from = (to + 1 + pick(p, BUFFERS - 1)) % BUFFERS;
    const size_t at = (size_t)pick(p, SIZE);
    const size_t size = (size_t)pick(p, SIZE - (int)at) + 1;
    order(p, stream, to);
    order(p, stream, from);
    CHECK_EQ(cuda.cudaMemcpyAsync(p->buffers[to] + at, p->buffers[from] + at, size, 4,
                                  p->streams[stream]),
             0);
    memcpy(p->model[to] + at, p->model[from] + at, size);
}

/** From plain memory, which may change at once. */
static void send(program *p)
{
    const int stream = pick(p, STREAMS);
    const int to = pick(p, BUFFERS / 2);
    unsigned char bytes[SIZE];
    const int value = pick(p, 256);
    memset(bytes, value, SIZE);
    order(p, stream, to);
    CHECK_EQ(cuda.cudaMemcpyAsync(p->buffers[to], bytes, SIZE, 1, p->streams[stream]), 0);
    memset(p->model[to], value, SIZE);
    memset(bytes, value + 1, SIZE);
}

/** Into plain memory, which waits. */
static void receive(program *p)
{
    const int stream = pick(p, STREAMS);
    const int from = pick(p, BUFFERS / 2);
    unsigned char bytes[SIZE];
    order(p, stream, from);
    CHECK_EQ(cuda.cudaMemcpyAsync(bytes, p->buffers[from], SIZE, 2, p->streams[stream]), 0);
    p->wrong_reads += memcmp(bytes, p->model[from], SIZE) == 0 ? 0 : 1;
}

/** Through memory that a pool gives for the time being. */
static void detour(program *p)
{
    const int stream = pick(p, STREAMS);
    const int to = pick(p, BUFFERS);
    const int from = (to + 1 + pick(p, BUFFERS - 1)) % BUFFERS;
    void *const s = p->streams[stream];
    void *place = NULL;
    order(p, stream, to);
    order(p, stream, from);
    CHECK_EQ(cuda.cudaMallocAsync(&place, SIZE, s), 0);
    CHECK_EQ(cuda.cudaMemcpyAsync(place, p->buffers[from], SIZE, 4, s), 0);
    CHECK_EQ(cuda.cudaMemcpyAsync(p->buffers[to], place, SIZE, 4, s), 0);
    CHECK_EQ(cuda.cudaFreeAsync(place, s), 0);
    memcpy(p->model[to], p->model[from], SIZE);
}

/** The same as a graph, whose two halves may come in any order. */
static void captured(program *p)
{
    const int stream = 1 + pick(p, STREAMS - 1);
    const int to = pick(p, BUFFERS);
    const int from = (to + 1 + pick(p, BUFFERS - 1)) % BUFFERS;
    void *const s = p->streams[stream];
    void *graph = NULL;
    void *exec = NULL;
    order(p, stream, to);
    order(p, stream, from);
    CHECK_EQ(cuda.cudaStreamBeginCapture(s, 0), 0);
    CHECK_EQ(cuda.cudaMemsetAsync(p->buffers[from], 7, SIZE / 2, s), 0);
    CHECK_EQ(cuda.cudaMemcpyAsync(p->buffers[to], p->buffers[from], SIZE, 4, s), 0);
    CHECK_EQ(cuda.cudaStreamEndCapture(s, &graph), 0);
    CHECK_EQ(cuda.cudaGraphInstantiate(&exec, graph, 0), 0);
    CHECK_EQ(cuda.cudaGraphLaunch(exec, s), 0);
    CHECK_EQ(cuda.cudaGraphExecDestroy(exec), 0);
    CHECK_EQ(cuda.cudaGraphDestroy(graph), 0);
    memset(p->model[from], 7, SIZE / 2);
    memcpy(p->model[to], p->model[from], SIZE);
}

static bool run(uint64_t seed, bool is_ordered)
{
    static void (*const steps[])(program *) = {fill, copy, copy, send, receive, detour, captured};
    static program p;
    begin(&p, seed, is_ordered);
    for (int i = 0; i < STEPS; i++) {
        steps[pick(&p, sizeof steps / sizeof steps[0])](&p);
    }
    return end(&p);
}

static void ordered_programs_end_as_if_sequential(void)
{
    load();
    const uint64_t broken = cuda.allot_standin_rules_broken();
    for (uint64_t i = 0; i < PROGRAMS; i++) {
        if (!CHECK(run(check_seed() + i, true))) {
            fprintf(stderr, "seed %" PRIu64 " differs\n", check_seed() + i);
        }
    }
    CHECK_EQ(cuda.allot_standin_rules_broken(), broken);
}

static void programs_that_forget_to_wait_differ(void)
{
    load();
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    check_skip("the races of these programs are what the thread sanitizer reports");
    return;
#endif
#endif
    unsigned differ = 0;
    for (uint64_t i = 0; i < PROGRAMS; i++) {
        differ += run(check_seed() + i, false) ? 0 : 1;
    }
    CHECK(differ > 0);
    printf("%u of %u unordered programs differ\n", differ, (unsigned)PROGRAMS);
}

static const check_test TESTS[] = {
    {"ordered_programs_end_as_if_sequential", ordered_programs_end_as_if_sequential},
    {"programs_that_forget_to_wait_differ", programs_that_forget_to_wait_differ},
};
CHECK_MAIN(TESTS)
