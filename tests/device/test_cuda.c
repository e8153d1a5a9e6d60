/* SPDX-License-Identifier: MIT */
/*
 * What the CUDA backend does beside what every device does, over whatever libcuda.so.1 is found:
 * the stand-in with real bytes where the environment puts it on the library path, a GPU otherwise;
 * skipped where there is neither.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <allot/device.h>
#include <allot/trace.h>

#include "support/alloc_fault.h"
#include "support/check.h"

enum { MIB = 1 << 20, PIECE = 256 };

/** A device, or NULL where there is none: the test has been skipped then. */
static allot_device *open_device(void)
{
    allot_device *device = NULL;
    allot_backend_probe_result found = {0};
    const allot_status status = allot_backend_probe(ALLOT_BACKEND_CUDA, &found);
    if (status != ALLOT_STATUS_OK && getenv("ALLOT_STANDIN") == NULL) {
        check_skip(found.reason);
        return NULL;
    }
    CHECK_OK(status);
    CHECK_OK(allot_device_open("cuda", &device));
    return device;
}

/** A function of the driver that is loaded, which the backend does not offer. */
static void find(const char *name, void *place)
{
    void *const symbol = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
    memcpy(place, &symbol, sizeof symbol);
}

static uint64_t free_memory(allot_device *device)
{
    uint64_t size_free = 0;
    uint64_t size_total = 0;
    CHECK_OK(allot_device_memory_info(device, &size_free, &size_total));
    CHECK(size_free <= size_total);
    return size_free;
}

/** All is free again: exactly on the stand-in; drivers of GPUs keep something for next time. */
static void check_all_free(allot_device *device, uint64_t before)
{
    const uint64_t slack = getenv("ALLOT_STANDIN") == NULL ? 64 * (uint64_t)MIB : 0;
    const uint64_t now = free_memory(device);
    if (now + slack < before) {
        CHECK_EQ(now, before);
    }
}

static void fill_pattern(uint8_t *bytes, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)check_random(&seed);
    }
}

static void the_device_says_what_it_is(void)
{
    allot_device *const device = open_device();
    if (device == NULL) {
        return;
    }
    allot_device_info info = {0};
    allot_device_get_info(device, &info);
    CHECK_STR(info.backend, "cuda");
    CHECK(info.name[0] != '\0');
    CHECK(info.memory_total > MIB && info.has_bytes && !info.is_host_accessible);
    CHECK_EQ(info.align, 256);
    CHECK(free_memory(device) <= info.memory_total);
    allot_device_destroy(device);
}

/** Swap two halves, piece by piece, in batches that are larger than what the driver gets at once.
 */
static void swap_halves(allot_device *device, allot_stream stream)
{
    enum { COUNT = 1200, SIZE = COUNT * PIECE };
    static allot_copy copies[COUNT];
    static uint8_t out[SIZE];
    static uint8_t in[SIZE];
    allot_devptr a = {0};
    allot_devptr b = {0};
    fill_pattern(out, sizeof out, 7);
    REQUIRE_OK(allot_device_alloc(device, SIZE, &a));
    REQUIRE_OK(allot_device_alloc(device, SIZE, &b));
    for (size_t i = 0; i < COUNT; i++) {
        const uint64_t to = (i + COUNT / 2) % COUNT * PIECE;
        copies[i] = (allot_copy){.dst = {b.address + to}, .src = {a.address + i * PIECE}, PIECE};
    }
    CHECK_OK(allot_device_write(device, stream, a, out, SIZE));
    CHECK_OK(allot_device_copy_batch(device, stream, copies, COUNT));
    CHECK_OK(allot_device_read(device, stream, in, b, SIZE));
    CHECK_OK(allot_device_stream_synchronize(device, stream));
    CHECK(memcmp(in, out + SIZE / 2, SIZE / 2) == 0);
    CHECK(memcmp(in + SIZE / 2, out, SIZE / 2) == 0);
    CHECK_OK(allot_device_free(device, a, SIZE));
    CHECK_OK(allot_device_free(device, b, SIZE));
}

static void batches_are_copied_on_any_stream(void)
{
    allot_device *const device = open_device();
    if (device == NULL) {
        return;
    }
    allot_stream stream = {0};
    swap_halves(device, stream);
    REQUIRE_OK(allot_device_stream_create(device, &stream));
    swap_halves(device, stream);
    CHECK_OK(allot_device_stream_destroy(device, stream));
    allot_device_destroy(device);
}

static void the_drivers_pool_follows_the_stream(void)
{
    allot_device *const device = open_device();
    if (device == NULL) {
        return;
    }
    static uint8_t in[PIECE];
    allot_stream stream = {0};
    REQUIRE_OK(allot_device_stream_create(device, &stream));
    for (unsigned round = 0; round < 4; round++) {
        allot_devptr a = {0};
        REQUIRE_OK(allot_device_alloc_async(device, stream, MIB, &a));
        CHECK_OK(allot_device_fill(device, stream, a, (uint8_t)(round + 1), MIB));
        CHECK_OK(allot_device_read(device, stream, in, a, sizeof in));
        CHECK_OK(allot_device_free_async(device, stream, a, MIB));
        CHECK_OK(allot_device_stream_synchronize(device, stream));
        CHECK_EQ(in[PIECE - 1], round + 1);
    }
    CHECK_OK(allot_device_stream_destroy(device, stream));
    allot_device_destroy(device);
}

static void a_trace_has_the_stream_of_each_segment(void)
{
    allot_device *const device = open_device();
    allot_device *tracing = NULL;
    allot_stream stream = {0};
    allot_devptr ptr = {0};
    allot_trace *trace = NULL;
    allot_events events = {0};
    if (device == NULL) {
        return;
    }
    REQUIRE_OK(allot_device_open_tracing(device, &tracing));
    CHECK_OK(allot_device_stream_create(tracing, &stream));
    CHECK_OK(allot_device_alloc_async(tracing, stream, MIB, &ptr));
    CHECK_OK(allot_device_stream_synchronize(tracing, stream));
    CHECK_OK(allot_device_free(tracing, ptr, MIB));
    REQUIRE_OK(allot_tracing_get_trace(tracing, &trace));
    allot_trace_get_events(trace, 0, &events);
    CHECK_EQ(events.count, 2);
    for (size_t i = 0; i < events.count; i++) {
        CHECK_EQ(allot_trace_stream(trace, events.stream[i]), stream.value);
    }
    allot_trace_destroy(trace);
    CHECK_OK(allot_device_stream_destroy(tracing, stream));
    allot_device_destroy(tracing);
    allot_device_destroy(device);
}

static void what_is_in_use_or_unknown_is_refused(void)
{
    allot_device *const device = open_device();
    if (device == NULL) {
        return;
    }
    allot_device_info info = {0};
    allot_device_get_info(device, &info);
    const uint64_t size = info.granule;
    allot_devptr base = {0};
    allot_devptr plain = {0};
    allot_memory a = {0};
    allot_memory b = {0};
    REQUIRE_OK(allot_device_alloc(device, PIECE, &plain));
    CHECK_EQ(allot_device_free(device, plain, 2 * PIECE), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_free(device, (allot_devptr){plain.address + 1}, PIECE),
             ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_free(device, plain, PIECE));
    CHECK_EQ(allot_device_free(device, plain, PIECE), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "no allocation of 256 bytes");
    if (size != 0) {
        REQUIRE_OK(allot_device_reserve(device, 2 * size, &base));
        REQUIRE_OK(allot_device_memory_create(device, size, &a));
        REQUIRE_OK(allot_device_memory_create(device, size, &b));
        const allot_devptr second = {base.address + size};
        REQUIRE_OK(allot_device_map(device, base, a, size));
        CHECK_EQ(allot_device_map(device, second, a, size), ALLOT_STATUS_BUSY);
        CHECK_EQ(allot_device_map(device, base, b, size), ALLOT_STATUS_BUSY);
        CHECK_EQ(allot_device_map(device, (allot_devptr){second.address + size}, b, size),
                 ALLOT_STATUS_INVALID);
        CHECK_EQ(allot_device_memory_release(device, a, size), ALLOT_STATUS_BUSY);
        CHECK_CONTAINS(allot_error_detail(), "is mapped");
        CHECK_EQ(allot_device_unreserve(device, base, 2 * size), ALLOT_STATUS_BUSY);
        CHECK_EQ(allot_device_unmap(device, second, size), ALLOT_STATUS_INVALID);
        CHECK_OK(allot_device_unmap(device, base, size));
        CHECK_OK(allot_device_memory_release(device, a, size));
        CHECK_EQ(allot_device_memory_release(device, a, size), ALLOT_STATUS_INVALID);
        CHECK_OK(allot_device_memory_release(device, b, size));
        CHECK_OK(allot_device_unreserve(device, base, 2 * size));
    }
    allot_device_destroy(device);
}

static void running_out_is_told_with_the_drivers_words(void)
{
    allot_device *const device = open_device();
    if (device == NULL) {
        return;
    }
    allot_device_info info = {0};
    allot_device_get_info(device, &info);
    const uint64_t before = free_memory(device);
    allot_devptr a = {0};
    allot_memory memory = {0};
    CHECK_EQ(allot_device_alloc(device, info.memory_total + MIB, &a), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_STR(allot_error_detail(), "cuMemAlloc: 2 (CUDA_ERROR_OUT_OF_MEMORY)");
    CHECK_EQ(a.address, 0);
    if (info.granule != 0) {
        const uint64_t size = (info.memory_total / info.granule + 1) * info.granule;
        CHECK_EQ(allot_device_memory_create(device, size, &memory), ALLOT_STATUS_DEVICE_MEMORY);
        CHECK_STR(allot_error_detail(), "cuMemCreate: 2 (CUDA_ERROR_OUT_OF_MEMORY)");
    }
    check_all_free(device, before);
    allot_device_destroy(device);
}

static void what_was_not_freed_goes_with_the_device(void)
{
    allot_device *const watcher = open_device();
    allot_device *device = NULL;
    if (watcher == NULL) {
        return;
    }
    allot_device_info info = {0};
    allot_device_get_info(watcher, &info);
    const uint64_t before = free_memory(watcher);
    allot_devptr at = {0};
    allot_memory memory = {0};
    REQUIRE_OK(allot_device_open("cuda:0", &device));
    REQUIRE_OK(allot_device_alloc(device, 128 * (uint64_t)MIB, &at));
    if (info.granule != 0) {
        REQUIRE_OK(allot_device_reserve(device, info.granule, &at));
        REQUIRE_OK(allot_device_memory_create(device, info.granule, &memory));
        REQUIRE_OK(allot_device_map(device, at, memory, info.granule));
        REQUIRE_OK(allot_device_memory_create(device, info.granule, &memory));
    }
    CHECK(free_memory(watcher) < before);
    allot_device_destroy(device);
    check_all_free(watcher, before);
    allot_device_destroy(watcher);
}

/** Nothing of a thread's context has changed after calls for a device that is not its own. */
static void *use_from_a_thread(void *context)
{
    allot_device *const device = context;
    int (*get_current)(void **) = NULL;
    void *current = NULL;
    allot_devptr a = {0};
    find("cuCtxGetCurrent", &get_current);
    CHECK_EQ(get_current(&current), 0);
    void *const before = current;
    CHECK_OK(allot_device_alloc(device, PIECE, &a));
    CHECK_OK(allot_device_free(device, a, PIECE));
    CHECK_EQ(allot_device_free(device, a, PIECE), ALLOT_STATUS_INVALID);
    CHECK_EQ(get_current(&current), 0);
    CHECK(current == before);
    return NULL;
}

static void a_thread_keeps_its_own_context(void)
{
    allot_device *const device = open_device();
    allot_device *other = NULL;
    allot_devptr a = {0};
    if (device == NULL) {
        return;
    }
    if (allot_device_open("cuda:1", &other) == ALLOT_STATUS_NOT_FOUND) {
        check_skip("there is one GPU only");
        allot_device_destroy(device);
        return;
    }
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, use_from_a_thread, i % 2 == 0 ? device : other) ==
                0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    const uint64_t before = free_memory(other);
    const uint64_t before_here = free_memory(device);
    REQUIRE_OK(allot_device_alloc(other, 128 * (uint64_t)MIB, &a));
    CHECK(free_memory(other) < before);
    CHECK_EQ(free_memory(device), before_here);
    CHECK_OK(allot_device_free(other, a, 128 * (uint64_t)MIB));
    allot_device_destroy(other);
    allot_device_destroy(device);
}

typedef void (*fail_fn)(uint64_t nth, int code);

static void memory_that_could_not_be_freed_is_still_allocated(void)
{
    allot_device *const device = open_device();
    if (device == NULL) {
        return;
    }
    fail_fn fail = NULL;
    find("allot_standin_fail", &fail);
    if (fail == NULL) {
        check_skip("only the stand-in fails on request");
        allot_device_destroy(device);
        return;
    }
    enum { LAUNCH_FAILED = 719 };
    allot_devptr a = {0};
    allot_stream stream = {0};
    allot_device_counts counts = {0};
    REQUIRE_OK(allot_device_stream_create(device, &stream));
    REQUIRE_OK(allot_device_alloc_async(device, stream, MIB, &a));
    fail(1, LAUNCH_FAILED);
    CHECK_EQ(allot_device_free_async(device, stream, a, MIB), ALLOT_STATUS_BACKEND);
    CHECK_STR(allot_error_detail(), "cuMemFreeAsync: 719 (CUDA_ERROR_LAUNCH_FAILED)");
    allot_device_get_counts(device, &counts);
    CHECK_EQ(counts.size_allocated, MIB);
    CHECK_OK(allot_device_free_async(device, stream, a, MIB));
    CHECK_EQ(allot_device_free_async(device, stream, a, MIB), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_stream_destroy(device, stream));
    allot_device_destroy(device);
}

/**
 * One of everything, given back whatever happens; the first failure. `context` is NULL or a
 * fail_fn, with which nothing fails any more from the moment when things are given back.
 */
static allot_status one_of_each(void *context)
{
    const fail_fn *const fail = context;
    allot_device *device = NULL;
    allot_device_info info = {0};
    allot_devptr plain = {0};
    allot_devptr pooled = {0};
    allot_devptr base = {0};
    allot_memory memory = {0};
    allot_stream stream = {0};
    allot_event event = {0};
    bool is_mapped = false;
    allot_status status = allot_device_open("cuda", &device);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_device_get_info(device, &info);
#define STEP(call) status = status != ALLOT_STATUS_OK ? status : (call)
    STEP(allot_device_stream_create(device, &stream));
    STEP(allot_device_event_create(device, &event));
    STEP(allot_device_alloc(device, MIB, &plain));
    STEP(allot_device_alloc_async(device, stream, MIB, &pooled));
    STEP(allot_device_reserve(device, info.granule, &base));
    STEP(allot_device_memory_create(device, info.granule, &memory));
    STEP(allot_device_map(device, base, memory, info.granule));
    is_mapped = status == ALLOT_STATUS_OK;
    STEP(allot_device_fill(device, stream, base, 1, info.granule));
    STEP(allot_device_copy(device, stream, plain, pooled, PIECE));
    STEP(allot_device_event_record(device, event, stream));
#undef STEP
    if (fail != NULL) {
        (*fail)(0, 0);
    }
    if (stream.value != 0) {
        CHECK_OK(allot_device_stream_synchronize(device, stream));
    }
    if (is_mapped) {
        CHECK_OK(allot_device_unmap(device, base, info.granule));
    }
    if (memory.value != 0) {
        CHECK_OK(allot_device_memory_release(device, memory, info.granule));
    }
    if (base.address != 0) {
        CHECK_OK(allot_device_unreserve(device, base, info.granule));
    }
    if (pooled.address != 0) {
        CHECK_OK(allot_device_free_async(device, stream, pooled, MIB));
    }
    if (plain.address != 0) {
        CHECK_OK(allot_device_free(device, plain, MIB));
    }
    if (event.value != 0) {
        CHECK_OK(allot_device_event_destroy(device, event));
    }
    if (stream.value != 0) {
        CHECK_OK(allot_device_stream_synchronize(device, stream));
        CHECK_OK(allot_device_stream_destroy(device, stream));
    }
    allot_device_counts counts = {0};
    allot_device_get_counts(device, &counts);
    CHECK_EQ(counts.live_count, 0);
    allot_device_destroy(device);
    return status;
}

static void every_failure_of_the_driver_leaves_nothing(void)
{
    allot_device *const watcher = open_device();
    if (watcher == NULL) {
        return;
    }
    static const struct {
        int code;
        allot_status status;
    } kinds[] = {{2, ALLOT_STATUS_DEVICE_MEMORY}, {719, ALLOT_STATUS_BACKEND}};
    enum { FEWEST = 9 };
    fail_fn fail = NULL;
    find("allot_standin_fail", &fail);
    if (fail == NULL) {
        check_skip("only the stand-in fails on request");
        allot_device_destroy(watcher);
        return;
    }
    const uint64_t before = free_memory(watcher);
    for (size_t kind = 0; kind < 2; kind++) {
        allot_status status = ALLOT_STATUS_BACKEND;
        uint64_t n = 1;
        for (; status != ALLOT_STATUS_OK; n++) {
            fail(n, kinds[kind].code);
            status = one_of_each(&fail);
            /* of a map or a reservation it is the process that ran out */
            CHECK(status == ALLOT_STATUS_OK || status == kinds[kind].status ||
                  (kind == 0 && status == ALLOT_STATUS_HOST_MEMORY));
            check_all_free(watcher, before);
        }
        CHECK(n > FEWEST);
    }
    allot_device_destroy(watcher);
}

static void every_failure_of_the_host_leaves_nothing(void)
{
    allot_device *const watcher = open_device();
    if (watcher == NULL) {
        return;
    }
    allot_device_info info = {0};
    allot_device_get_info(watcher, &info);
    if (info.granule == 0) {
        check_skip("this GPU has no virtual memory");
    } else {
        const uint64_t before = free_memory(watcher);
        CHECK(alloc_fault_each(one_of_each, NULL) >= 5);
        check_all_free(watcher, before);
    }
    allot_device_destroy(watcher);
}

static void no_rule_of_cuda_was_broken(void)
{
    uint64_t (*broken)(void) = NULL;
    find("allot_standin_rules_broken", &broken);
    if (broken == NULL) {
        check_skip("only the stand-in counts broken rules");
        return;
    }
    CHECK_EQ(broken(), 0);
}

static const check_test TESTS[] = {
    {"the_device_says_what_it_is", the_device_says_what_it_is},
    {"batches_are_copied_on_any_stream", batches_are_copied_on_any_stream},
    {"the_drivers_pool_follows_the_stream", the_drivers_pool_follows_the_stream},
    {"a_trace_has_the_stream_of_each_segment", a_trace_has_the_stream_of_each_segment},
    {"what_is_in_use_or_unknown_is_refused", what_is_in_use_or_unknown_is_refused},
    {"running_out_is_told_with_the_drivers_words", running_out_is_told_with_the_drivers_words},
    {"what_was_not_freed_goes_with_the_device", what_was_not_freed_goes_with_the_device},
    {"a_thread_keeps_its_own_context", a_thread_keeps_its_own_context},
    {"memory_that_could_not_be_freed_is_still_allocated",
     memory_that_could_not_be_freed_is_still_allocated},
    {"every_failure_of_the_driver_leaves_nothing", every_failure_of_the_driver_leaves_nothing},
    {"every_failure_of_the_host_leaves_nothing", every_failure_of_the_host_leaves_nothing},
    {"no_rule_of_cuda_was_broken", no_rule_of_cuda_was_broken},
};
CHECK_MAIN(TESTS)
