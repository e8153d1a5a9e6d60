/* SPDX-License-Identifier: MIT */
/*
 * Mistakes that only show when the work runs: the context is lost, and every later call says so. In
 * strict mode the process is aborted at the place, which a child does here before anything is
 * loaded.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/standin.h"

enum { ILLEGAL_ADDRESS = 700, NOT_INITIALIZED = 3, TEXT = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void wait_for_lock(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

/** Run something in a child with these settings; its exit status, and what it said. */
static int in_child(const char *settings, int (*run)(void), char *text)
{
    int ends[2];
    if (!CHECK(pipe(ends) == 0)) {
        return -1;
    }
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        standin_load(settings);
        _exit(run());
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got = 0; (got = read(ends[0], text + length, TEXT - 1 - length)) > 0;) {
        length += (size_t)got;
    }
    text[length] = '\0';
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

static int unmap_too_early(void)
{
    const standin_properties properties = {.type = 1, .location = {1, 0}};
    const standin_access access = {.location = {1, 0}, .flags = 3};
    uint64_t address = 0;
    uint64_t handle = 0;
    void *stream = NULL;
    cuda.cuMemAddressReserve(&address, STANDIN_MIB(2), 0, 0, 0);
    cuda.cuMemCreate(&handle, STANDIN_MIB(2), &properties, 0);
    cuda.cuMemMap(address, STANDIN_MIB(2), 0, handle, 0);
    cuda.cuMemSetAccess(address, STANDIN_MIB(2), &access, 1);
    cuda.cudaStreamCreateWithFlags(&stream, 1);
    pthread_mutex_lock(&lock);
    cuda.cudaLaunchHostFunc(stream, wait_for_lock, NULL);
    cuda.cuMemsetD8Async(address, 1, 64, stream);
    const uint64_t before = cuda.allot_standin_rules_broken();
    int failed = cuda.cuMemUnmap(address, STANDIN_MIB(2)) != 0;
    failed |= cuda.allot_standin_rules_broken() != before + 1;
    pthread_mutex_unlock(&lock);
    failed |= cuda.cudaStreamSynchronize(stream) != ILLEGAL_ADDRESS;
    failed |= cuda.cudaDeviceSynchronize() != ILLEGAL_ADDRESS;
    failed |= cuda.cuMemAllocAsync(&address, 64, stream) != ILLEGAL_ADDRESS;
    failed |= cuda.cuMemAlloc_v2(&address, 64) != ILLEGAL_ADDRESS;
    return failed;
}

static void unmapping_under_pending_work_loses_the_context(void)
{
    char text[TEXT];
    CHECK_EQ(in_child("limit:64MiB,bytes:real", unmap_too_early, text), 0);
    CHECK_CONTAINS(text, "is unmapped while stream");
}

static int free_under_another_device(void)
{
    void *memory = NULL;
    void *stream = NULL;
    cuda.cudaMalloc(&memory, 64);
    cuda.cudaSetDevice(1);
    cuda.cudaStreamCreateWithFlags(&stream, 1);
    pthread_mutex_lock(&lock);
    cuda.cudaLaunchHostFunc(stream, wait_for_lock, NULL);
    cuda.cudaMemsetAsync(memory, 1, 64, stream);
    int failed = cuda.cudaFree(memory) != 0;
    pthread_mutex_unlock(&lock);
    failed |= cuda.cudaStreamSynchronize(stream) != ILLEGAL_ADDRESS;
    return failed;
}

static void freeing_under_another_devices_work_loses_the_context(void)
{
    char text[TEXT];
    CHECK_EQ(in_child("limit:64MiB,bytes:real,devices:2", free_under_another_device, text), 0);
    CHECK_CONTAINS(text, "of another device may use it");
}

static int copy_too_much(void)
{
    void *memory = NULL;
    char bytes[64] = {0};
    cuda.cudaMalloc(&memory, 32);
    return cuda.cudaMemcpy(memory, bytes, 64, 1);
}

static void strict_mode_aborts_and_says_where(void)
{
    char text[TEXT];
    const int status = in_child("limit:64MiB,bytes:real,strict:1", copy_too_much, text);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK_CONTAINS(text, "past the end of an allocation of 32 bytes");
    CHECK_CONTAINS(text, "test_standin_broken");
    CHECK_EQ(in_child("limit:64MiB,bytes:real", copy_too_much, text), 1 << 8);
}

static int use_after_fork(void)
{
    void *memory = NULL;
    cuda.cudaMalloc(&memory, 64);
    cuda.cudaMemset(memory, 1, 64);
    cuda.cudaDeviceSynchronize();
    const pid_t child = fork();
    if (child == 0) {
        _exit(cuda.cudaMemset(memory, 1, 64) == NOT_INITIALIZED ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status != 0 || cuda.cudaMemset(memory, 1, 64) != 0 || cuda.cudaFree(memory) != 0;
}

static void a_forked_child_is_told_that_cuda_is_gone(void)
{
    char text[TEXT];
    CHECK_EQ(in_child("limit:64MiB,bytes:real", use_after_fork, text), 0);
}

static const check_test TESTS[] = {
    {"unmapping_under_pending_work_loses_the_context",
     unmapping_under_pending_work_loses_the_context},
    {"freeing_under_another_devices_work_loses_the_context",
     freeing_under_another_devices_work_loses_the_context},
    {"strict_mode_aborts_and_says_where", strict_mode_aborts_and_says_where},
    {"a_forked_child_is_told_that_cuda_is_gone", a_forked_child_is_told_that_cuda_is_gone},
};
CHECK_MAIN(TESTS)
