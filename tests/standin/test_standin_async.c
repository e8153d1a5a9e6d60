/* SPDX-License-Identifier: MIT */
/*
 * With real bytes, work runs when its turn has come and not before: what a copy call waits for,
 * what orders streams, and what does not. A host function that waits holds a stream back, so that
 * nothing here depends on time.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "support/check.h"
#include "support/standin.h"

enum { NOT_READY = 600, NON_BLOCKING = 1, SIZE = 64 };
enum { TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3 };

static void load(void)
{
    standin_load("limit:256MiB,bytes:real");
}

/* A gate that holds the streams that reached it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_open;

static void set_gate(bool open)
{
    pthread_mutex_lock(&lock);
    is_open = open;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_at_gate(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!is_open) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void hold(void *stream)
{
    set_gate(false);
    CHECK_EQ(cuda.cudaLaunchHostFunc(stream, wait_at_gate, NULL), 0);
}

static void *stream(unsigned flags)
{
    void *made = NULL;
    CHECK_EQ(cuda.cudaStreamCreateWithFlags(&made, flags), 0);
    return made;
}

/** Device memory of SIZE bytes, all `value`. */
static unsigned char *memory(int value)
{
    void *made = NULL;
    CHECK_EQ(cuda.cudaMalloc(&made, SIZE), 0);
    CHECK_EQ(cuda.cudaMemset(made, value, SIZE), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    return made;
}

static unsigned char *pinned(void)
{
    void *made = NULL;
    CHECK_EQ(cuda.cudaHostAlloc(&made, SIZE, 0), 0);
    return made;
}

static void a_copy_into_pinned_memory_is_done_later(void)
{
    load();
    void *const s = stream(NON_BLOCKING);
    unsigned char *const device = memory(7);
    unsigned char *const host = pinned();
    hold(s);
    CHECK_EQ(cuda.cudaMemcpyAsync(host, device, SIZE, TO_HOST, s), 0);
    CHECK_EQ(host[0], 0); /* stale: nobody waited */
    CHECK_EQ(cuda.cudaStreamQuery(s), NOT_READY);
    set_gate(true);
    CHECK_EQ(cuda.cudaStreamSynchronize(s), 0);
    CHECK_EQ(host[0], 7);
    CHECK_EQ(cuda.cudaStreamQuery(s), 0);
    cuda.cudaFree(device);
    cuda.cudaFreeHost(host);
    cuda.cudaStreamDestroy(s);
}

static void pinned_memory_is_read_when_the_copy_runs_pageable_when_it_is_called(void)
{
    load();
    void *const s = stream(NON_BLOCKING);
    unsigned char *const a = memory(0);
    unsigned char *const b = memory(0);
    unsigned char *const in = pinned();
    unsigned char plain[SIZE];
    unsigned char out[SIZE];
    memset(in, 1, SIZE);
    memset(plain, 1, SIZE);
    hold(s);
    CHECK_EQ(cuda.cudaMemcpyAsync(a, in, SIZE, TO_DEVICE, s), 0);
    CHECK_EQ(cuda.cudaMemcpyAsync(b, plain, SIZE, TO_DEVICE, s), 0);
    CHECK_EQ(cuda.cudaStreamQuery(s), NOT_READY);
    memset(in, 2, SIZE); /* a mistake */
    memset(plain, 2, SIZE);
    set_gate(true);
    CHECK_EQ(cuda.cudaStreamSynchronize(s), 0);
    CHECK_EQ(cuda.cudaMemcpy(out, a, SIZE, TO_HOST), 0);
    CHECK_EQ(out[0], 2);
    CHECK_EQ(cuda.cudaMemcpy(out, b, SIZE, TO_HOST), 0);
    CHECK_EQ(out[0], 1);
    cuda.cudaFree(a);
    cuda.cudaFree(b);
    cuda.cudaFreeHost(in);
    cuda.cudaStreamDestroy(s);
}

/* Opens the gate once the main thread had time to wait for what is behind it. */
static void *open_gate(void *unused)
{
    (void)unused;
    set_gate(true);
    return NULL;
}

static void a_copy_into_plain_memory_waits(void)
{
    load();
    void *const s = stream(NON_BLOCKING);
    unsigned char *const device = memory(3);
    unsigned char out[SIZE] = {0};
    pthread_t thread;
    hold(s);
    CHECK_EQ(pthread_create(&thread, NULL, open_gate, NULL), 0);
    CHECK_EQ(cuda.cuMemcpyDtoHAsync_v2(out, (uintptr_t)device, SIZE, s), 0);
    CHECK_EQ(out[0], 3);
    CHECK_EQ(cuda.cudaStreamQuery(s), 0);
    pthread_join(thread, NULL);
    cuda.cudaFree(device);
    cuda.cudaStreamDestroy(s);
}

static void a_blocking_copy_between_devices_does_not_wait(void)
{
    load();
    unsigned char *const a = memory(1);
    unsigned char *const b = memory(2);
    hold(NULL);
    CHECK_EQ(cuda.cudaMemcpy(b, a, SIZE, ON_DEVICE), 0);
    CHECK_EQ(cuda.cudaMemset(a, 9, SIZE), 0);
    CHECK_EQ(cuda.cudaStreamQuery(NULL), NOT_READY);
    set_gate(true);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    cuda.cudaFree(a);
    cuda.cudaFree(b);
}

static void streams_run_past_each_other_until_an_event_orders_them(void)
{
    load();
    void *const a = stream(NON_BLOCKING);
    void *const b = stream(NON_BLOCKING);
    void *const e = standin_event();
    unsigned char *const device = memory(1);
    unsigned char *const early = pinned();
    unsigned char *const late = pinned();
    hold(a);
    CHECK_EQ(cuda.cuMemsetD8Async((uintptr_t)device, 5, SIZE, a), 0);
    CHECK_EQ(cuda.cuEventRecord(e, a), 0);
    CHECK_EQ(cuda.cuEventQuery(e), NOT_READY);
    CHECK_EQ(cuda.cudaMemcpyAsync(early, device, SIZE, TO_HOST, b), 0);
    CHECK_EQ(cuda.cudaStreamSynchronize(b), 0); /* b did not wait for a */
    CHECK_EQ(early[0], 1);
    CHECK_EQ(cuda.cuStreamWaitEvent(b, e, 0), 0);
    CHECK_EQ(cuda.cudaMemcpyAsync(late, device, SIZE, TO_HOST, b), 0);
    CHECK_EQ(cuda.cudaStreamQuery(b), NOT_READY);
    set_gate(true);
    CHECK_EQ(cuda.cuStreamSynchronize(b), 0);
    CHECK_EQ(late[0], 5);
    CHECK_EQ(cuda.cuEventSynchronize(e), 0);
    cuda.cudaFree(device);
    cuda.cudaFreeHost(early);
    cuda.cudaFreeHost(late);
    cuda.cudaStreamDestroy(a);
    cuda.cudaStreamDestroy(b);
    cuda.cudaEventDestroy(e);
}

static void the_default_stream_holds_blocking_streams_alone(void)
{
    load();
    void *const blocking = stream(0);
    void *const apart = stream(NON_BLOCKING);
    unsigned char *const device = memory(0);
    hold(NULL);
    CHECK_EQ(cuda.cudaMemsetAsync(device, 1, 1, blocking), 0);
    CHECK_EQ(cuda.cudaMemsetAsync(device + 1, 1, 1, apart), 0);
    CHECK_EQ(cuda.cudaStreamSynchronize(apart), 0);
    CHECK_EQ(cuda.cudaStreamQuery(blocking), NOT_READY);
    set_gate(true);
    CHECK_EQ(cuda.cudaStreamSynchronize(blocking), 0);
    hold(blocking); /* and the other way round */
    CHECK_EQ(cuda.cudaMemsetAsync(device, 2, 1, NULL), 0);
    CHECK_EQ(cuda.cudaStreamQuery(NULL), NOT_READY);
    CHECK_EQ(cuda.cudaStreamSynchronize(apart), 0);
    set_gate(true);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    cuda.cudaFree(device);
    cuda.cudaStreamDestroy(blocking);
    cuda.cudaStreamDestroy(apart);
}

static void *per_thread(void *device)
{
    void *const own = (void *)2; /* cudaStreamPerThread */
    CHECK_EQ(cuda.cudaMemsetAsync(device, 1, SIZE, own), 0);
    CHECK_EQ(cuda.cudaStreamSynchronize(own), 0); /* the main thread's is another, and is held */
    return NULL;
}

static void each_thread_has_a_default_stream_of_its_own(void)
{
    load();
    void *const own = (void *)2;
    unsigned char *const device = memory(0);
    pthread_t thread;
    hold(own);
    CHECK_EQ(pthread_create(&thread, NULL, per_thread, device), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(cuda.cudaStreamQuery(own), NOT_READY);
    CHECK_EQ(cuda.cudaMemsetAsync(device, 2, SIZE, NULL), 0); /* but the default stream waits */
    CHECK_EQ(cuda.cudaStreamQuery(NULL), NOT_READY);
    set_gate(true);
    CHECK_EQ(cuda.cudaFree(device), 0);
}

static void host_functions_run_in_their_place(void)
{
    load();
    void *const s = stream(NON_BLOCKING);
    unsigned char *const device = memory(4);
    unsigned char *const host = pinned();
    hold(s);
    CHECK_EQ(cuda.cudaMemcpyAsync(host, device, SIZE, TO_HOST, s), 0);
    set_gate(true);
    CHECK_EQ(cuda.cudaLaunchHostFunc(s, wait_at_gate, NULL), 0);
    CHECK_EQ(cuda.cudaStreamDestroy(s), 0); /* returns; the work goes on */
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    CHECK_EQ(host[0], 4);
    cuda.cudaFree(device);
    cuda.cudaFreeHost(host);
}

static void freeing_waits_for_the_device(void)
{
    load();
    void *const s = stream(NON_BLOCKING);
    unsigned char *const device = memory(6);
    unsigned char *const host = pinned();
    CHECK_EQ(cuda.cudaMemcpyAsync(host, device, SIZE, TO_HOST, s), 0);
    CHECK_EQ(cuda.cuMemFree_v2((uintptr_t)device), 0);
    CHECK_EQ(host[0], 6);
    CHECK_EQ(cuda.cudaStreamQuery(s), 0);
    cuda.cudaFreeHost(host);
    cuda.cudaStreamDestroy(s);
}

static void rows_and_wide_values_lie_where_they_should(void)
{
    load();
    unsigned char *const device = memory(0);
    unsigned char in[4][8];
    unsigned char out[SIZE] = {0};
    for (int i = 0; i < 4; i++) {
        memset(in[i], i + 1, 8);
    }
    CHECK_EQ(cuda.cudaMemcpy2DAsync(device, 16, in, 8, 5, 4, TO_DEVICE, NULL), 0);
    CHECK_EQ(cuda.cuMemsetD16Async((uintptr_t)device + 6, 0x0102, 2, NULL), 0);
    CHECK_EQ(cuda.cuMemsetD32Async((uintptr_t)device + 12, 0x01020304, 1, NULL), 0);
    CHECK_EQ(cuda.cudaMemcpy(out, device, SIZE, TO_HOST), 0);
    static const unsigned char row[16] = {1, 1, 1, 1, 1, 0, 2, 1, 2, 1, 0, 0, 4, 3, 2, 1};
    CHECK(memcmp(out, row, 16) == 0);
    for (int i = 1; i < 4; i++) {
        CHECK_EQ(out[16 * i + 4], i + 1);
        CHECK_EQ(out[16 * i + 5], 0);
    }
    cuda.cudaFree(device);
}

static void the_driver_copies_rectangles(void)
{
    load();
    typedef struct end {
        size_t x, y;
        int type;
        void *host;
        uint64_t device;
        void *array;
        size_t pitch;
    } end;
    struct {
        end from, to;
        size_t width, height;
    } what = {.width = 2, .height = 2};
    unsigned char *const device = memory(0);
    unsigned char in[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
    unsigned char out[SIZE];
    what.from = (end){.x = 1, .y = 1, .type = 1, .host = in, .pitch = 4};
    what.to = (end){.x = 3, .y = 1, .type = 2, .device = (uintptr_t)device, .pitch = 16};
    CHECK_EQ(cuda.cuMemcpy2DAsync_v2(&what, NULL), 0);
    CHECK_EQ(cuda.cudaMemcpy(out, device, SIZE, TO_HOST), 0);
    CHECK_EQ(out[16 + 3], 6);
    CHECK_EQ(out[16 + 4], 7);
    CHECK_EQ(out[32 + 3], 10);
    CHECK_EQ(out[32 + 4], 11);
    CHECK_EQ(out[16 + 5], 0);
    what.from.x = 3; /* one byte of the row is left */
    CHECK_EQ(cuda.cuMemcpy2DAsync_v2(&what, NULL), 1);
    what.from.type = 3; /* an array */
    CHECK_EQ(cuda.cuMemcpy2DAsync_v2(&what, NULL), 1);
    cuda.cudaFree(device);
}

static void the_driver_has_pools_of_its_own_name(void)
{
    load();
    const standin_properties properties = {.type = 1, .location = {1, 0}};
    void *const s = stream(NON_BLOCKING);
    void *pool = NULL;
    uint64_t address = 0;
    unsigned char *const host = pinned();
    CHECK_EQ(cuda.cuMemPoolCreate(&pool, &properties), 0);
    CHECK_EQ(cuda.cuMemAllocFromPoolAsync(&address, SIZE, pool, s), 0);
    CHECK_EQ(cuda.cuMemsetD8Async(address, 5, SIZE, s), 0);
    CHECK_EQ(cuda.cuMemcpyAsync((uintptr_t)host, address, SIZE, s), 0);
    CHECK_EQ(cuda.cuMemFreeAsync(address, s), 0);
    CHECK_EQ(cuda.cuMemPoolDestroy(pool), 0);
    CHECK_EQ(cuda.cuStreamSynchronize(s), 0);
    CHECK_EQ(host[SIZE - 1], 5);
    cuda.cudaFreeHost(host);
    cuda.cudaStreamDestroy(s);
}

static void copies_of_a_batch_read_their_sources_as_asked(void)
{
    load();
    void *const s = stream(NON_BLOCKING);
    unsigned char *const a = memory(0);
    unsigned char now[8];
    unsigned char later[8];
    unsigned char out[16] = {0};
    memset(now, 1, 8);
    memset(later, 1, 8);
    const uint64_t to[] = {(uintptr_t)a, (uintptr_t)a + 8};
    const uint64_t from[] = {(uintptr_t)now, (uintptr_t)later};
    const size_t sizes[] = {8, 8};
    const size_t firsts[] = {0, 1};
    const standin_copy_attributes attributes[] = {{.order = 2}, {.order = 1}};
    CHECK_EQ(cuda.cuMemcpyBatchAsync_v2(to, from, sizes, 2, attributes, firsts, 2, NULL), 1);
    CHECK_EQ(cuda.cuMemcpyBatchAsync_v2(to, from, sizes, 0, attributes, firsts, 2, s), 1);
    CHECK_EQ(cuda.cuMemcpyBatchAsync_v2(to, from, sizes, 1, attributes, firsts, 2, s), 1);
    hold(s);
    CHECK_EQ(cuda.cuMemcpyBatchAsync_v2(to, from, sizes, 2, attributes, firsts, 2, s), 0);
    memset(now, 2, 8);
    memset(later, 2, 8);
    set_gate(true);
    CHECK_EQ(cuda.cudaStreamSynchronize(s), 0);
    CHECK_EQ(cuda.cudaMemcpy(out, a, 16, TO_HOST), 0);
    CHECK_EQ(out[0], 1);
    CHECK_EQ(out[8], 2);
    cuda.cudaFree(a);
    cuda.cudaStreamDestroy(s);
    cuda.cudaGetLastError();
}

static void see_signals(void *seen)
{
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, seen), 0);
}

static void signals_of_the_process_are_left_to_the_program(void)
{
    load();
    sigset_t seen;
    sigset_t own;
    sigemptyset(&seen);
    CHECK_EQ(cuda.cudaLaunchHostFunc(NULL, see_signals, &seen), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    CHECK_EQ(sigismember(&seen, SIGINT), 1);
    CHECK_EQ(sigismember(&seen, SIGCHLD), 1);
    CHECK_EQ(sigismember(&seen, SIGSEGV), 0); /* of its own fault, which is explained */
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &own), 0);
    CHECK_EQ(sigismember(&own, SIGINT), 0);
}

static int calls;

static void count_call(void *unused)
{
    (void)unused;
    calls++;
}

static void a_graph_does_what_was_captured(void)
{
    load();
    void *const s = stream(NON_BLOCKING);
    unsigned char *const a = memory(0);
    unsigned char *const b = memory(0);
    unsigned char *const host = pinned();
    void *graph = NULL;
    void *exec = NULL;
    calls = 0;
    CHECK_EQ(cuda.cudaStreamBeginCapture(s, 0), 0);
    CHECK_EQ(cuda.cudaMemsetAsync(a, 8, SIZE, s), 0);
    CHECK_EQ(cuda.cudaMemcpyAsync(b, a, SIZE, ON_DEVICE, s), 0);
    CHECK_EQ(cuda.cudaMemcpyAsync(host, b, SIZE, TO_HOST, s), 0);
    CHECK_EQ(cuda.cudaLaunchHostFunc(s, count_call, NULL), 0);
    CHECK_EQ(cuda.cudaStreamEndCapture(s, &graph), 0);
    CHECK_EQ(cuda.cudaStreamSynchronize(s), 0);
    CHECK_EQ(host[0], 0); /* captured, not done */
    void *nodes[4] = {0};
    size_t count = 4;
    int type = -1;
    static const int types[] = {2, 1, 1, 3};
    CHECK_EQ(cuda.cudaGraphGetNodes(graph, nodes, &count), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(cuda.cudaGraphNodeGetType(nodes[i], &type), 0);
        CHECK_EQ(type, types[i]);
    }
    CHECK_EQ(cuda.cudaGraphInstantiate(&exec, graph, 0), 0);
    CHECK_EQ(cuda.cudaGraphDestroy(graph), 0);
    for (int i = 1; i <= 2; i++) {
        memset(host, 0, SIZE);
        CHECK_EQ(cuda.cuGraphLaunch(exec, s), 0);
        CHECK_EQ(cuda.cudaStreamSynchronize(s), 0);
        CHECK_EQ(host[SIZE - 1], 8);
        CHECK_EQ(calls, i);
    }
    CHECK_EQ(cuda.cudaGraphExecDestroy(exec), 0);
    cuda.cudaFree(a);
    cuda.cudaFree(b);
    cuda.cudaFreeHost(host);
    cuda.cudaStreamDestroy(s);
}

static void a_graph_made_by_hand_does_what_its_nodes_say(void)
{
    load();
    const struct {
        void *to;
        size_t pitch;
        unsigned value;
        unsigned unit;
        size_t width;
        size_t height;
    } fill = {memory(0), 0, 0x0505, 2, SIZE / 2, 1};
    const struct {
        void (*run)(void *);
        void *data;
    } call = {count_call, NULL};
    unsigned char *const host = pinned();
    void *graph = NULL;
    void *exec = NULL;
    void *first = NULL;
    void *second = NULL;
    void *third = NULL;
    calls = 0;
    CHECK_EQ(cuda.cudaGraphCreate(&graph, 0), 0);
    CHECK_EQ(cuda.cudaGraphAddMemsetNode(&first, graph, NULL, 0, &fill), 0);
    CHECK_EQ(cuda.cudaGraphAddMemcpyNode1D(&second, graph, &first, 1, host, fill.to, SIZE, 2), 0);
    CHECK_EQ(cuda.cudaGraphAddHostNode(&third, graph, &second, 1, &call), 0);
    CHECK_EQ(cuda.cudaGraphInstantiate(&exec, graph, 0), 0);
    CHECK_EQ(cuda.cudaGraphLaunch(exec, NULL), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    CHECK_EQ(host[SIZE - 1], 5);
    CHECK_EQ(calls, 1);
    cuda.cudaGraphExecDestroy(exec);
    cuda.cudaGraphDestroy(graph);
    cuda.cudaFree(fill.to);
    cuda.cudaFreeHost(host);
}

static const check_test TESTS[] = {
    {"a_copy_into_pinned_memory_is_done_later", a_copy_into_pinned_memory_is_done_later},
    {"pinned_memory_is_read_when_the_copy_runs_pageable_when_it_is_called",
     pinned_memory_is_read_when_the_copy_runs_pageable_when_it_is_called},
    {"a_copy_into_plain_memory_waits", a_copy_into_plain_memory_waits},
    {"a_blocking_copy_between_devices_does_not_wait",
     a_blocking_copy_between_devices_does_not_wait},
    {"streams_run_past_each_other_until_an_event_orders_them",
     streams_run_past_each_other_until_an_event_orders_them},
    {"the_default_stream_holds_blocking_streams_alone",
     the_default_stream_holds_blocking_streams_alone},
    {"each_thread_has_a_default_stream_of_its_own", each_thread_has_a_default_stream_of_its_own},
    {"host_functions_run_in_their_place", host_functions_run_in_their_place},
    {"freeing_waits_for_the_device", freeing_waits_for_the_device},
    {"rows_and_wide_values_lie_where_they_should", rows_and_wide_values_lie_where_they_should},
    {"the_driver_copies_rectangles", the_driver_copies_rectangles},
    {"the_driver_has_pools_of_its_own_name", the_driver_has_pools_of_its_own_name},
    {"copies_of_a_batch_read_their_sources_as_asked",
     copies_of_a_batch_read_their_sources_as_asked},
    {"signals_of_the_process_are_left_to_the_program",
     signals_of_the_process_are_left_to_the_program},
    {"a_graph_does_what_was_captured", a_graph_does_what_was_captured},
    {"a_graph_made_by_hand_does_what_its_nodes_say", a_graph_made_by_hand_does_what_its_nodes_say},
};
CHECK_MAIN(TESTS)
