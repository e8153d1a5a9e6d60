/* SPDX-License-Identifier: MIT */
/*
 * What the OpenCL backend does beside what every device does, over whatever is installed; skipped
 * where there is none.
 */
#include <stdlib.h>
#include <string.h>

#include <allot/device.h>

#include "support/alloc_fault.h"
#include "support/check.h"

enum { MIB = 1 << 20, PIECE = 1000 };
static const char *const TEXT = "opencl,memory:64MiB";

/** A device, or NULL where there is none: the test has been skipped then. */
static allot_device *open_device(void)
{
    allot_device *device = NULL;
    allot_backend_probe_result found = {0};
    const char *const sanitizer = getenv("ALLOT_SANITIZE");
    if (sanitizer != NULL && strcmp(sanitizer, "thread") == 0) {
        check_skip("the threads of an OpenCL driver are not instrumented: ThreadSanitizer would "
                   "report what they do in order as races");
        return NULL;
    }
    if (allot_backend_probe(ALLOT_BACKEND_OPENCL, &found) != ALLOT_STATUS_OK) {
        check_skip(found.reason);
        return NULL;
    }
    CHECK(found.device_count > 0);
    CHECK_OK(allot_device_open(TEXT, &device));
    return device;
}

static uint64_t free_memory(allot_device *device)
{
    uint64_t size_free = 0;
    uint64_t size_total = 0;
    CHECK_OK(allot_device_memory_info(device, &size_free, &size_total));
    CHECK_EQ(size_total, 64 * (uint64_t)MIB);
    return size_free;
}

static void the_device_says_what_it_is(void)
{
    allot_device *const device = open_device();
    if (device == NULL) {
        return;
    }
    allot_device_info info = {0};
    allot_devptr at = {0};
    allot_device_get_info(device, &info);
    CHECK_STR(info.backend, "opencl");
    CHECK(info.name[0] != '\0' && info.has_bytes);
    CHECK_EQ(info.memory_total, 64 * MIB);
    CHECK_EQ(info.granule, 0);
    CHECK_EQ(allot_device_reserve(device, 2 * MIB, &at), ALLOT_STATUS_UNSUPPORTED);
    CHECK_CONTAINS(allot_error_detail(), "has no virtual memory");
    allot_device_destroy(device);
}

static void handles_end_with_their_object(void)
{
    allot_device *const device = open_device();
    if (device == NULL) {
        return;
    }
    allot_stream stream = {0};
    allot_event event = {0};
    REQUIRE_OK(allot_device_stream_create(device, &stream));
    REQUIRE_OK(allot_device_event_create(device, &event));
    CHECK_OK(allot_device_event_query(device, event));
    CHECK_OK(allot_device_event_synchronize(device, event));
    CHECK_OK(allot_device_stream_wait(device, stream, event));
    CHECK_OK(allot_device_event_destroy(device, event));
    CHECK_EQ(allot_device_event_query(device, event), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_event_record(device, event, stream), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "there is no event");
    CHECK_OK(allot_device_stream_destroy(device, stream));
    CHECK_EQ(allot_device_stream_synchronize(device, stream), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "there is no stream");
    allot_device_destroy(device);
}

static void the_limit_holds_and_what_is_unknown_is_refused(void)
{
    allot_device *const device = open_device();
    if (device == NULL) {
        return;
    }
    allot_devptr a = {0};
    allot_devptr b = {0};
    REQUIRE_OK(allot_device_alloc(device, 40 * MIB, &a));
    CHECK_EQ(allot_device_alloc(device, 25 * MIB, &b), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_CONTAINS(allot_error_detail(), "asked for 25.0 MiB, free 24.0 MiB of 64.0 MiB");
    CHECK_OK(allot_device_alloc(device, 24 * MIB, &b));
    CHECK_EQ(free_memory(device), 0);
    CHECK_EQ(allot_device_free(device, b, 23 * MIB), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_free(device, (allot_devptr){b.address + 1}, 24 * MIB),
             ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_free(device, b, 24 * MIB));
    CHECK_EQ(allot_device_free(device, b, 24 * MIB), ALLOT_STATUS_INVALID);
    CHECK_EQ(free_memory(device), 24 * MIB);
    allot_device_destroy(device); /* with `a` */
}

/** One of everything, given back whatever happens; the first failure. */
static allot_status one_of_each(void *context)
{
    (void)context;
    allot_device *device = NULL;
    allot_devptr plain = {0};
    allot_stream stream = {0};
    allot_event event = {0};
    allot_status status = allot_device_open(TEXT, &device);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
#define STEP(call) status = status != ALLOT_STATUS_OK ? status : (call)
    STEP(allot_device_stream_create(device, &stream));
    STEP(allot_device_event_create(device, &event));
    STEP(allot_device_alloc(device, MIB, &plain));
    STEP(allot_device_fill(device, stream, plain, 1, MIB));
    STEP(allot_device_event_record(device, event, stream));
    STEP(allot_device_event_synchronize(device, event));
#undef STEP
    if (plain.address != 0) {
        CHECK_OK(allot_device_free(device, plain, MIB));
    }
    CHECK_EQ(free_memory(device), 64 * MIB);
    allot_device_destroy(device); /* with stream and event */
    return status;
}

static void every_failure_of_the_host_leaves_nothing(void)
{
    allot_device *const device = open_device();
    if (device != NULL) {
        CHECK(alloc_fault_each(one_of_each, NULL) >= 5);
        allot_device_destroy(device);
    }
}

static const check_test TESTS[] = {
    {"the_device_says_what_it_is", the_device_says_what_it_is},
    {"handles_end_with_their_object", handles_end_with_their_object},
    {"the_limit_holds_and_what_is_unknown_is_refused",
     the_limit_holds_and_what_is_unknown_is_refused},
    {"every_failure_of_the_host_leaves_nothing", every_failure_of_the_host_leaves_nothing},
};
CHECK_MAIN(TESTS)
