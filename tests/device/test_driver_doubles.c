/* SPDX-License-Identifier: MIT */
/*
 * What is said of a driver that is absent, too old, incomplete or without a device; one form a run,
 * as the environment says.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <allot/device.h>

#include "support/check.h"

static allot_backend backend(void)
{
    const char *const name = getenv("BACKEND");
    unsigned i = 0;
    while (i < ALLOT_BACKEND_COUNT &&
           (name == NULL || strcmp(allot_backend_name((allot_backend)i), name) != 0)) {
        i++;
    }
    return (allot_backend)i;
}

/** Whether this run has a double of CUDA that can be used. */
static bool has_cuda(void)
{
    return backend() == ALLOT_BACKEND_CUDA && strcmp(getenv("EXPECTED_STATUS"), "OK") == 0;
}

static void the_reason_is_told(void)
{
    const char *const status_name = getenv("EXPECTED_STATUS");
    const char *const text = getenv("EXPECTED_TEXT");
    REQUIRE(status_name != NULL && text != NULL);
    allot_backend_probe_result found = {0};
    allot_device *device = NULL;
    CHECK_STR(allot_status_name(allot_backend_probe(backend(), &found)), status_name);
    CHECK_CONTAINS(found.reason, text);
    const allot_status status = allot_device_open(allot_backend_name(backend()), &device);
    CHECK_STR(allot_status_name(status), status_name);
    CHECK((device != NULL) == (status == ALLOT_STATUS_OK));
    if (status != ALLOT_STATUS_OK) {
        CHECK_EQ(found.device_count, 0);
        CHECK_CONTAINS(allot_error_detail(), text);
    }
    allot_device_destroy(device);
}

/** With a driver that has the least that is needed. */
static void what_a_driver_lacks_is_not_offered(void)
{
    allot_device *device = NULL;
    allot_device_info info = {0};
    allot_devptr base = {0};
    if (!has_cuda() || strstr(getenv("EXPECTED_TEXT"), "CUDA 11.0") == NULL) {
        return;
    }
    REQUIRE_OK(allot_device_open("cuda", &device));
    allot_device_get_info(device, &info);
    CHECK_EQ(info.granule, 0);
    CHECK(!info.has_async_alloc && !info.has_batch_copy);
    CHECK_EQ(allot_device_reserve(device, 1 << 21, &base), ALLOT_STATUS_UNSUPPORTED);
    allot_device_destroy(device);
}

/** A name that is too long is cut. */
static void a_long_name_is_cut(void)
{
    allot_device *device = NULL;
    allot_device_info info = {0};
    if (backend() != ALLOT_BACKEND_OPENCL || strcmp(getenv("EXPECTED_STATUS"), "OK") != 0) {
        return;
    }
    REQUIRE_OK(allot_device_open("opencl", &device));
    allot_device_get_info(device, &info);
    CHECK_EQ(strlen(info.name), ALLOT_DEVICE_NAME_MAX - 1);
    allot_device_destroy(device);
}

/** In the form of CUDA 12.8, or one by one where the driver has no batches or refuses them. */
static void batches_copy_all_whatever_the_driver_has(void)
{
    enum { COUNT = 1200 };
    static uint64_t from[COUNT];
    static uint64_t to[COUNT];
    static allot_copy copies[COUNT];
    static const allot_stream stream = {16};
    const char *const expected = getenv("EXPECTED_BATCHES");
    allot_device *device = NULL;
    if (!has_cuda()) {
        return;
    }
    REQUIRE_OK(allot_device_open("cuda", &device));
    for (size_t i = 0; i < COUNT; i++) {
        from[i] = i + 1;
        copies[i] = (allot_copy){{(uintptr_t)&to[COUNT - 1 - i]}, {(uintptr_t)&from[i]}, 8};
    }
    CHECK_OK(allot_device_copy_batch(device, stream, copies, COUNT));
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(to[i], COUNT - i);
    }
    if (expected != NULL) {
        const unsigned *const batches = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "double_batches");
        REQUIRE(batches != NULL);
        CHECK_EQ(*batches, strtoul(expected, NULL, 10));
    }
    allot_device_destroy(device);
}

/** A driver does not survive fork(): the child is told so, and closes what it inherited. */
static void a_child_process_is_refused(void)
{
    allot_device *device = NULL;
    allot_device *other = NULL;
    allot_devptr at = {0};
    if (!has_cuda()) {
        return;
    }
    REQUIRE_OK(allot_device_open("cuda", &device));
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const bool is_refused = allot_device_alloc(device, 1, &at) == ALLOT_STATUS_FORKED &&
                                allot_device_open("cuda", &other) == ALLOT_STATUS_FORKED &&
                                strstr(allot_error_detail(), "before fork()") != NULL;
        allot_device_destroy(device);
        _exit(is_refused ? 0 : 1);
    }
    int ended = -1;
    CHECK(waitpid(child, &ended, 0) == child);
    CHECK_EQ(ended, 0);
    allot_device_destroy(device);
}

static const check_test TESTS[] = {
    {"the_reason_is_told", the_reason_is_told},
    {"what_a_driver_lacks_is_not_offered", what_a_driver_lacks_is_not_offered},
    {"a_long_name_is_cut", a_long_name_is_cut},
    {"batches_copy_all_whatever_the_driver_has", batches_copy_all_whatever_the_driver_has},
    {"a_child_process_is_refused", a_child_process_is_refused},
};
CHECK_MAIN(TESTS)
