/* SPDX-License-Identifier: MIT */
/*
 * Sixteen threads at once, for the thread sanitizer. Run once per way of finishing work: what the
 * environment's STANDIN_SETTINGS adds.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/standin.h"

enum { THREADS = 16, ROUNDS = 200, SIZE = 4096 };

static bool has_bytes;

/** What each thread has of its own. */
typedef struct worker {
    uint64_t random;
    unsigned char mark;
    void *stream;
    void *event;
    unsigned char *pinned;
} worker;

static void count_call(void *calls)
{
    ++*(int *)calls;
}

static void copy_and_free(worker *own)
{
    void *memory = NULL;
    void *pooled = NULL;
    unsigned char value = own->mark;
    const size_t size = (size_t)check_random_range(&own->random, 1, 1 << 22);
    CHECK_EQ(cuda.cudaMalloc(&memory, size), 0);
    CHECK_EQ(cuda.cudaMallocAsync(&pooled, SIZE, own->stream), 0);
    CHECK_EQ(cuda.cudaMemcpyAsync(memory, &value, 1, 1, own->stream), 0);
    CHECK_EQ(cuda.cudaEventRecord(own->event, own->stream), 0);
    CHECK_EQ(cuda.cudaStreamWaitEvent(NULL, own->event, 0), 0);
    (void)cuda.cudaEventQuery(own->event);
    value = 0;
    CHECK_EQ(cuda.cudaMemcpyAsync(&value, memory, 1, 2, own->stream), 0);
    if (has_bytes) {
        CHECK_EQ(value, own->mark);
    }
    CHECK_EQ(cuda.cudaFreeAsync(pooled, own->stream), 0);
    CHECK_EQ(cuda.cudaFree(memory), 0);
}

static void map_and_unmap(worker *own, int device)
{
    const standin_properties properties = {.type = 1, .location = {1, device}};
    const standin_access access = {.location = {1, device}, .flags = 3};
    const size_t size = STANDIN_MIB(2);
    uint64_t address = 0;
    uint64_t handle = 0;
    CHECK_EQ(cuda.cuMemAddressReserve(&address, size, 0, 0, 0), 0);
    CHECK_EQ(cuda.cuMemCreate(&handle, size, &properties, 0), 0);
    CHECK_EQ(cuda.cuMemMap(address, size, 0, handle, 0), 0);
    CHECK_EQ(cuda.cuMemSetAccess(address, size, &access, 1), 0);
    CHECK_EQ(cuda.cuMemsetD8Async(address, own->mark, SIZE, own->stream), 0);
    CHECK_EQ(cuda.cuMemcpyAsync((uintptr_t)own->pinned, address, SIZE, own->stream), 0);
    CHECK_EQ(cuda.cudaStreamSynchronize(own->stream), 0);
    if (has_bytes) {
        CHECK_EQ(own->pinned[SIZE - 1], own->mark);
    }
    CHECK_EQ(cuda.cuMemUnmap(address, size), 0);
    CHECK_EQ(cuda.cuMemRelease(handle), 0);
    CHECK_EQ(cuda.cuMemAddressFree(address, size), 0);
}

static void capture_and_launch(worker *own)
{
    void *graph = NULL;
    void *exec = NULL;
    int calls = 0;
    CHECK_EQ(cuda.cudaStreamBeginCapture(own->stream, 0), 0);
    CHECK_EQ(cuda.cudaMemsetAsync(own->pinned, own->mark + 1, SIZE, own->stream), 0);
    CHECK_EQ(cuda.cudaLaunchHostFunc(own->stream, count_call, &calls), 0);
    CHECK_EQ(cuda.cudaStreamEndCapture(own->stream, &graph), 0);
    CHECK_EQ(cuda.cudaGraphInstantiate(&exec, graph, 0), 0);
    CHECK_EQ(cuda.cudaGraphDestroy(graph), 0);
    CHECK_EQ(cuda.cudaGraphLaunch(exec, own->stream), 0);
    CHECK_EQ(cuda.cudaStreamSynchronize(own->stream), 0);
    CHECK_EQ(calls, 1);
    CHECK_EQ(cuda.cudaGraphExecDestroy(exec), 0);
}

static void *run(void *number)
{
    const uintptr_t index = (uintptr_t)number;
    worker own = {.random = index + 1, .mark = (unsigned char)(index + 1)};
    CHECK_EQ(cuda.cudaSetDevice((int)(index % 2)), 0);
    CHECK_EQ(cuda.cudaStreamCreateWithFlags(&own.stream, (unsigned)(index / 2 % 2)), 0);
    CHECK_EQ(cuda.cudaEventCreateWithFlags(&own.event, 0), 0);
    CHECK_EQ(cuda.cudaHostAlloc((void **)&own.pinned, SIZE, 0), 0);
    for (int i = 0; i < ROUNDS; i++) {
        copy_and_free(&own);
        if (i % 4 == 0) {
            map_and_unmap(&own, (int)(index % 2));
        }
        if (i % 8 == 0) {
            capture_and_launch(&own);
        }
        if (i % 16 == 0) {
            CHECK_EQ(cuda.cudaMemsetAsync(own.pinned, 1, SIZE, (void *)2), 0);
            CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
        }
    }
    CHECK_EQ(cuda.cudaFreeHost(own.pinned), 0);
    CHECK_EQ(cuda.cudaStreamDestroy(own.stream), 0);
    CHECK_EQ(cuda.cudaEventDestroy(own.event), 0);
    return NULL;
}

static void threads_leave_nothing_behind(void)
{
    char settings[128];
    const char *const added = getenv("STANDIN_SETTINGS");
    snprintf(settings, sizeof settings, "devices:2,%s", added == NULL ? "events:sync" : added);
    standin_load(settings);
    has_bytes = strstr(settings, "bytes:real") != NULL;
    pthread_t threads[THREADS];
    size_t before[2] = {0};
    for (int i = 0; i < 2; i++) {
        cuda.cudaSetDevice(i);
        before[i] = standin_used();
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 2; i++) {
        cuda.cudaSetDevice(i);
        CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
        CHECK_EQ(standin_used(), before[i]);
        CHECK(cuda.allot_standin_check());
    }
    CHECK_EQ(cuda.allot_standin_rules_broken(), 0);
}

static const check_test TESTS[] = {
    {"threads_leave_nothing_behind", threads_leave_nothing_behind},
};
CHECK_MAIN(TESTS)
