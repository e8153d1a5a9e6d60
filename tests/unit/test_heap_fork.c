/* SPDX-License-Identifier: MIT */
/*
 * A heap after fork(): in the child every call says so and none reaches the device, which would
 * belong to both; destroying it there frees host memory only. The parent goes on.
 */
#include <allot/heap.h>
#include <allot/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

typedef struct family {
    allot_device *device;
    allot_heap *heap;
    allot_handle handle;
    allot_devptr ptr;
    allot_heap_pool pool;
    int leaks;
} family;

static void count_leak(void *context, const allot_block_info *block)
{
    (void)block;
    ((family *)context)->leaks++;
}

static bool visit(void *context, const allot_block_info *block)
{
    (void)block;
    ++*(int *)context;
    return true;
}

/** Calls that did not say that there was a fork. */
static int count_other_answers(family *f)
{
    allot_heap *const heap = f->heap;
    const allot_request request = {.struct_size = sizeof request, .size = 1024};
    const allot_heap_pool_options pool_options = {.struct_size = sizeof pool_options};
    allot_handle handle = {0};
    allot_devptr ptr = {0};
    allot_heap_pool pool = {0};
    allot_block_info info;
    allot_heap_failure failure;
    allot_heap_stats stats;
    struct allot_trace *trace = NULL;
    int visited = 0;
    const allot_status answers[] = {
        allot_heap_alloc(heap, &request, &handle),
        allot_heap_alloc_pointer(heap, &request, &ptr),
        allot_heap_free(heap, f->handle),
        allot_heap_free_pointer(heap, f->ptr),
        allot_heap_pin(heap, f->handle, &ptr),
        allot_heap_unpin(heap, f->handle),
        allot_heap_use(heap, f->handle, (allot_stream){0}),
        allot_heap_use_pointer(heap, f->ptr, (allot_stream){0}),
        allot_heap_resize(heap, f->handle, 4096),
        allot_heap_get_block(heap, f->handle, &info),
        allot_heap_find(heap, f->ptr, &handle),
        allot_heap_walk(heap, visit, &visited),
        allot_heap_pool_create(heap, &pool_options, &pool),
        allot_heap_pool_destroy(heap, f->pool),
        allot_heap_set_limit(heap, 1 << 20),
        allot_heap_set_limit_fraction(heap, 0.5),
        allot_heap_set_limit_soft(heap, 1 << 20),
        allot_heap_trim(heap, 0, NULL),
        allot_heap_collect(heap),
        allot_heap_end_stream(heap, (allot_stream){77}),
        allot_heap_get_failure(heap, &failure),
        allot_heap_get_stats(heap, &stats),
        allot_heap_get_stream_stats(heap, (allot_stream){0}, &stats),
        allot_heap_get_pool_stats(heap, f->pool, &stats),
        allot_heap_reset_peaks(heap),
        allot_heap_get_trace(heap, &trace),
        allot_heap_record(heap, 100),
        allot_heap_check(heap),
    };
    int others = visited;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (answers[i] != ALLOT_STATUS_FORKED) {
            check_equal_u64(answers[i], ALLOT_STATUS_FORKED, __FILE__, (int)i, "answer", "FORKED");
            others++;
        }
    }
    return others;
}

/** All that was ever asked of a device. */
static uint64_t count_calls(const allot_device *device)
{
    allot_device_counts counts;
    uint64_t sum = 0;
    allot_device_get_counts(device, &counts);
    for (int i = 0; i < ALLOT_DEVICE_CALL_COUNT; i++) {
        sum += counts.calls[i] + counts.failures[i];
    }
    return sum;
}

static int be_child(family *f)
{
    const uint64_t before = count_calls(f->device);
    int wrong = count_other_answers(f);
    allot_heap_destroy(f->heap);
    wrong += count_calls(f->device) != before;
    wrong += f->leaks;
    allot_device_destroy(f->device);
    return wrong;
}

static void make(family *f, const char *device)
{
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .front_size = 1 << 20,
                                        .leak = count_leak,
                                        .leak_context = f};
    const allot_request request = {.struct_size = sizeof request, .size = 1024};
    const allot_heap_pool_options pool = {.struct_size = sizeof pool};
    allot_handle in_front = {0};
    *f = (family){0};
    REQUIRE_OK(allot_device_open(device, &f->device));
    REQUIRE_OK(allot_heap_create(f->device, &options, &f->heap));
    REQUIRE_OK(allot_heap_alloc(f->heap, &request, &f->handle));
    REQUIRE_OK(allot_heap_alloc_pointer(f->heap, &request, &f->ptr));
    REQUIRE_OK(allot_heap_pool_create(f->heap, &pool, &f->pool));
    REQUIRE_OK(allot_heap_alloc(f->heap, &request, &in_front));
    REQUIRE_OK(allot_heap_free(f->heap, in_front));
}

/** The parent's heap is as it was. */
static void go_on(family *f)
{
    allot_devptr at = {0};
    CHECK_OK(allot_heap_check(f->heap));
    CHECK_OK(allot_heap_pin(f->heap, f->handle, &at));
    CHECK_OK(allot_heap_unpin(f->heap, f->handle));
    CHECK_OK(allot_heap_free(f->heap, f->handle));
    CHECK_OK(allot_heap_free_pointer(f->heap, f->ptr));
    allot_heap_destroy(f->heap);
    CHECK_EQ(f->leaks, 0);
    allot_device_destroy(f->device);
}

static void run(const char *device)
{
    static family f;
    make(&f, device);
    fflush(stdout);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        /* exit(), so that a leak checker looks as well. */
        exit(be_child(&f));
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    go_on(&f);
}

static void a_child_is_told_and_the_parent_goes_on(void)
{
    run("null");
}

static void memory_of_the_host_stays_the_parents(void)
{
    run("host,memory:64MiB");
}

static const check_test tests[] = {
    {"a_child_is_told_and_the_parent_goes_on", a_child_is_told_and_the_parent_goes_on},
    {"memory_of_the_host_stays_the_parents", memory_of_the_host_stays_the_parents},
};

CHECK_MAIN(tests)
