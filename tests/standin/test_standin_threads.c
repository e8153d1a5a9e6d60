/* SPDX-License-Identifier: MIT */
/* Sixteen threads at once, with work that is finished at synchronisation; for the thread sanitizer.
 */
#include <pthread.h>

#include "support/check.h"
#include "support/standin.h"

enum { THREADS = 16, ROUNDS = 300 };

static void *run(void *number)
{
    const uintptr_t own = (uintptr_t)number;
    uint64_t random = own + 1;
    void *stream = NULL;
    void *event = NULL;
    CHECK_EQ(cuda.cudaSetDevice((int)(own % 2)), 0);
    CHECK_EQ(cuda.cudaStreamCreateWithFlags(&stream, (unsigned)(own % 2)), 0);
    CHECK_EQ(cuda.cudaEventCreateWithFlags(&event, 0), 0);
    for (int i = 0; i < ROUNDS; i++) {
        void *memory = NULL;
        void *pooled = NULL;
        uint64_t value = own;
        CHECK_EQ(cuda.cudaMalloc(&memory, (size_t)check_random_range(&random, 1, 1 << 22)), 0);
        CHECK_EQ(cuda.cudaMallocAsync(&pooled, 4096, stream), 0);
        CHECK_EQ(cuda.cudaMemcpyAsync(memory, &value, 1, 1, stream), 0);
        CHECK_EQ(cuda.cudaEventRecord(event, stream), 0);
        CHECK_EQ(cuda.cudaStreamWaitEvent(NULL, event, 0), 0);
        (void)cuda.cudaEventQuery(event);
        CHECK_EQ(cuda.cudaMemcpyAsync(&value, memory, 1, 2, stream), 0);
        CHECK_EQ(cuda.cudaFreeAsync(pooled, stream), 0);
        if (i % 16 == 0) {
            CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
        }
        CHECK_EQ(cuda.cudaFree(memory), 0);
    }
    CHECK_EQ(cuda.cudaStreamDestroy(stream), 0);
    CHECK_EQ(cuda.cudaEventDestroy(event), 0);
    return NULL;
}

static void threads_leave_nothing_behind(void)
{
    standin_load("events:sync,devices:2");
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
    }
}

static const check_test TESTS[] = {
    {"threads_leave_nothing_behind", threads_leave_nothing_behind},
};
CHECK_MAIN(TESTS)
