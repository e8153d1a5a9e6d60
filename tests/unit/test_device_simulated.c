/* SPDX-License-Identifier: MIT */
/* Simulated devices: sizes and times of a GPU, and the same times for the same calls. */
#include <allot/device.h>
#include <allot/gpu.h>
#include <string.h>

#include "support/alloc_fault.h"
#include "support/check.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static const allot_stream DEFAULT_STREAM = {0};

static allot_device *open_device(const char *text)
{
    allot_device *device = NULL;
    CHECK_OK(allot_device_open(text, &device));
    return device;
}

static allot_devptr alloc(allot_device *device, uint64_t size)
{
    allot_devptr ptr = {0};
    CHECK_OK(allot_device_alloc(device, size, &ptr));
    return ptr;
}

static allot_event record(allot_device *device, allot_stream stream)
{
    allot_event event = {0};
    CHECK_OK(allot_device_event_create(device, &event));
    CHECK_OK(allot_device_event_record(device, event, stream));
    return event;
}

static void a_profile_gives_name_and_memory(void)
{
    allot_gpu gpu;
    REQUIRE_OK(allot_gpu_find("t4", &gpu));
    allot_device *const device = open_device("simulated,gpu:T4");
    REQUIRE(device != NULL);
    allot_device_info info;
    allot_device_get_info(device, &info);
    CHECK_CONTAINS(info.name, gpu.name);
    CHECK_STR(info.backend, "simulated");
    CHECK_EQ(info.memory_total, gpu.memory_total);
    CHECK_EQ(info.granule, 2 * MIB);
    CHECK(!info.has_bytes && !info.is_host_accessible);
    uint64_t size_free = 0;
    uint64_t size_total = 0;
    CHECK_OK(allot_device_memory_info(device, &size_free, &size_total));
    CHECK_EQ(size_total - size_free, allot_gpu_context(&gpu, 13));
    allot_device_destroy(device);
}

static void settings_change_memory_and_granule(void)
{
    allot_device *const device = open_device("simulated:0,memory:1GiB,granule:64KiB");
    REQUIRE(device != NULL);
    allot_device_info info;
    allot_device_get_info(device, &info);
    CHECK_EQ(info.memory_total, GIB);
    CHECK_EQ(info.granule, 64 << 10);
    uint64_t size_free = 0;
    uint64_t size_total = 0;
    CHECK_OK(allot_device_memory_info(device, &size_free, &size_total));
    CHECK_EQ(size_free, GIB);
    allot_device_destroy(device);
}

static void wrong_settings_are_refused(void)
{
    allot_device *device = NULL;
    CHECK_EQ(allot_device_open("simulated,gpu:voodoo2", &device), ALLOT_STATUS_NOT_FOUND);
    CHECK_EQ(allot_device_open("simulated:1", &device), ALLOT_STATUS_NOT_FOUND);
    CHECK_CONTAINS(allot_error_detail(), "simulated has 1, counted from 0");
    CHECK_EQ(allot_device_open("null,granule:3KiB", &device), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "power of two");
    CHECK_EQ(allot_device_open("null,granule:256", &device), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_open("null,granule:128TiB", &device), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "want a power of two of 512 bytes to 64 TiB");
    CHECK(device == NULL);
}

static void the_memory_is_limited(void)
{
    allot_device *const device = open_device("simulated,memory:8MiB");
    REQUIRE(device != NULL);
    const allot_devptr first = alloc(device, 6 * MIB);
    allot_devptr other = {7};
    CHECK_EQ(allot_device_alloc(device, 3 * MIB, &other), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_CONTAINS(allot_error_detail(), "asked for 3.0 MiB, free 2.0 MiB of 8.0 MiB");
    CHECK_EQ(other.address, 7);
    allot_memory memory = {0};
    CHECK_EQ(allot_device_memory_create(device, 4 * MIB, &memory), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_OK(allot_device_free(device, first, 6 * MIB));
    CHECK_OK(allot_device_memory_create(device, 8 * MIB, &memory));
    CHECK_EQ(allot_device_alloc(device, 1, &other), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_OK(allot_device_memory_release(device, memory, 8 * MIB));
    allot_device_destroy(device);
}

static void addresses_are_given_again(void)
{
    allot_device *const device = open_device("simulated");
    REQUIRE(device != NULL);
    const allot_devptr first = alloc(device, 1);
    const allot_devptr second = alloc(device, 1000);
    CHECK_EQ(second.address, first.address + 512);
    CHECK_OK(allot_device_free(device, first, 1));
    CHECK_EQ(alloc(device, 100).address, first.address);
    CHECK_EQ(alloc(device, 100).address, second.address + 1024);
    allot_device_destroy(device);
}

static void streams_are_busy_until_the_clock_says_so(void)
{
    allot_device *const device = open_device("null");
    REQUIRE(device != NULL);
    allot_stream stream = {0};
    CHECK_OK(allot_device_stream_create(device, &stream));
    CHECK_OK(allot_simulated_run(device, stream, 1000));
    const allot_event event = record(device, stream);
    const allot_event other = record(device, DEFAULT_STREAM);
    CHECK_EQ(allot_device_event_query(device, event), ALLOT_STATUS_BUSY);
    CHECK_OK(allot_device_event_query(device, other));
    CHECK_OK(allot_simulated_advance(device, 999));
    CHECK_EQ(allot_device_event_query(device, event), ALLOT_STATUS_BUSY);
    CHECK_OK(allot_simulated_advance(device, 1));
    CHECK_OK(allot_device_event_query(device, event));
    CHECK_EQ(allot_device_clock_ns(device), 1000);
    allot_device_destroy(device);
}

static void waiting_moves_the_clock(void)
{
    allot_device *const device = open_device("null");
    REQUIRE(device != NULL);
    allot_stream a = {0};
    allot_stream b = {0};
    CHECK_OK(allot_device_stream_create(device, &a));
    CHECK_OK(allot_device_stream_create(device, &b));
    CHECK_OK(allot_simulated_run(device, a, 1000));
    CHECK_OK(allot_simulated_run(device, b, 300));
    const allot_event event = record(device, a);
    CHECK_OK(allot_device_stream_wait(device, b, event));
    CHECK_OK(allot_simulated_run(device, b, 50));
    CHECK_OK(allot_device_event_synchronize(device, event));
    CHECK_EQ(allot_device_clock_ns(device), 1000);
    CHECK_OK(allot_device_stream_synchronize(device, b));
    CHECK_EQ(allot_device_clock_ns(device), 1050);
    CHECK_OK(allot_simulated_run(device, a, UINT64_MAX));
    CHECK_OK(allot_simulated_run(device, a, UINT64_MAX));
    CHECK_OK(allot_device_stream_synchronize(device, a));
    CHECK_EQ(allot_device_clock_ns(device), UINT64_MAX);
    allot_device_destroy(device);
}

static void a_free_waits_for_all_streams(void)
{
    allot_device *const device = open_device("null");
    REQUIRE(device != NULL);
    const allot_devptr ptr = alloc(device, MIB);
    allot_stream stream = {0};
    CHECK_OK(allot_device_stream_create(device, &stream));
    CHECK_OK(allot_simulated_run(device, stream, 700));
    CHECK_OK(allot_device_stream_destroy(device, stream));
    CHECK_OK(allot_device_free(device, ptr, MIB));
    CHECK_EQ(allot_device_clock_ns(device), 700);
    allot_device_destroy(device);
}

static void copies_take_time_by_size(void)
{
    allot_device *const device = open_device("simulated,gpu:a100-80");
    REQUIRE(device != NULL);
    allot_device_info info;
    allot_device_get_info(device, &info);
    const allot_devptr from = alloc(device, 2 * GIB);
    const allot_devptr to = alloc(device, 2 * GIB);
    const uint64_t begin = allot_device_clock_ns(device);
    CHECK_OK(allot_device_copy(device, DEFAULT_STREAM, to, from, GIB));
    CHECK(allot_device_clock_ns(device) - begin < 100000);
    CHECK_OK(allot_device_stream_synchronize(device, DEFAULT_STREAM));
    const uint64_t took = allot_device_clock_ns(device) - begin;
    const uint64_t moving = (uint64_t)((double)GIB * 1e9 / (double)info.copy_bytes_per_s);
    CHECK(took > moving && took < moving + 100000);
    allot_device_counts counts;
    allot_device_get_counts(device, &counts);
    CHECK_EQ(counts.size_copied, GIB);
    allot_device_destroy(device);
}

static void only_memory_that_is_there_is_used(void)
{
    allot_device *const device = open_device("simulated");
    REQUIRE(device != NULL);
    const allot_devptr ptr = alloc(device, MIB);
    const allot_devptr next = alloc(device, MIB);
    allot_devptr range = {0};
    allot_memory memory = {0};
    uint8_t bytes[16] = {0};
    CHECK_OK(allot_device_reserve(device, 4 * MIB, &range));
    CHECK_OK(allot_device_memory_create(device, 2 * MIB, &memory));
    CHECK_OK(allot_device_map(device, range, memory, 2 * MIB));
    const allot_devptr unmapped = {range.address + 2 * MIB};
    const allot_devptr half = {range.address + 2 * MIB - 8};
    const allot_devptr nowhere = {1 << 20};
    CHECK_EQ(allot_device_fill(device, DEFAULT_STREAM, ptr, 1, MIB + 1), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "not all of the 1048577 bytes");
    CHECK_EQ(allot_device_fill(device, DEFAULT_STREAM, unmapped, 1, 1), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_write(device, DEFAULT_STREAM, half, bytes, 16), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_read(device, DEFAULT_STREAM, bytes, half, 16), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_copy(device, DEFAULT_STREAM, nowhere, ptr, 16), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_copy(device, DEFAULT_STREAM, ptr, nowhere, 16), ALLOT_STATUS_INVALID);
    const allot_copy batch[2] = {{next, ptr, 16}, {range, unmapped, 16}};
    CHECK_EQ(allot_device_copy_batch(device, DEFAULT_STREAM, batch, 2), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_free(device, next, MIB));
    CHECK_EQ(allot_device_copy(device, DEFAULT_STREAM, next, ptr, 16), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_device_copy(device, DEFAULT_STREAM, range, ptr, MIB));
    CHECK_EQ(allot_device_fill(device, (allot_stream){99}, ptr, 1, 1), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_event_query(device, (allot_event){99}), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_simulated_run(device, (allot_stream){99}, 1), ALLOT_STATUS_INVALID);
    allot_device_destroy(device);
}

static void a_refused_call_takes_no_time_for_its_size(void)
{
    allot_device *const device = open_device("simulated,memory:4GiB");
    REQUIRE(device != NULL);
    allot_devptr ptr = {0};
    const uint64_t begin = allot_device_clock_ns(device);
    CHECK_EQ(allot_device_alloc(device, 1024 * GIB, &ptr), ALLOT_STATUS_DEVICE_MEMORY);
    const uint64_t refused = allot_device_clock_ns(device) - begin;
    CHECK(refused > 0);
    CHECK_OK(allot_device_alloc(device, 2 * GIB, &ptr));
    CHECK(allot_device_clock_ns(device) - begin > 2 * refused);
    allot_device_destroy(device);
}

/** A little of everything; returns what the clock shows then. */
static uint64_t play(void)
{
    allot_device *const device = open_device("simulated,gpu:rtx4090");
    allot_stream stream = {0};
    allot_devptr range = {0};
    allot_memory memory = {0};
    CHECK_OK(allot_device_stream_create(device, &stream));
    CHECK_OK(allot_device_reserve(device, 64 * MIB, &range));
    CHECK_OK(allot_device_memory_create(device, 6 * MIB, &memory));
    CHECK_OK(allot_device_map(device, range, memory, 6 * MIB));
    const allot_devptr ptr = alloc(device, 3 * MIB + 5);
    CHECK_OK(allot_device_copy(device, stream, range, ptr, 3 * MIB));
    CHECK_OK(allot_device_fill(device, DEFAULT_STREAM, range, 1, 6 * MIB));
    const allot_event event = record(device, stream);
    while (allot_device_event_query(device, event) == ALLOT_STATUS_BUSY) {
    }
    CHECK_OK(allot_device_free(device, ptr, 3 * MIB + 5));
    const uint64_t now = allot_device_clock_ns(device);
    allot_device_destroy(device);
    return now;
}

static void the_same_calls_take_the_same_time(void)
{
    const uint64_t first = play();
    CHECK(first > 0);
    CHECK_EQ(play(), first);
}

static void null_calls_take_no_time(void)
{
    allot_device *const device = open_device("null");
    REQUIRE(device != NULL);
    const allot_devptr from = alloc(device, GIB);
    const allot_devptr to = alloc(device, GIB);
    CHECK_OK(allot_device_copy(device, DEFAULT_STREAM, to, from, GIB));
    CHECK_OK(allot_device_stream_synchronize(device, DEFAULT_STREAM));
    CHECK_OK(allot_device_free(device, to, GIB));
    CHECK_EQ(allot_device_clock_ns(device), 0);
    allot_device_destroy(device);
}

static allot_status open_and_use(void *context)
{
    allot_device *device = NULL;
    allot_devptr range = {0};
    allot_memory memory = {0};
    allot_stream stream = {0};
    allot_event event = {0};
    allot_devptr ptr = {0};
    allot_status status = allot_device_open(context, &device);
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_alloc(device, MIB, &ptr);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_reserve(device, 4 * MIB, &range);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_memory_create(device, 4 * MIB, &memory);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_map(device, range, memory, 4 * MIB);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_stream_create(device, &stream);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_device_event_create(device, &event);
    }
    allot_device_destroy(device);
    return status;
}

static void every_lack_of_host_memory_is_told(void)
{
    char simulated[] = "simulated";
    char null[] = "null";
    CHECK(alloc_fault_each(open_and_use, simulated) > 5);
    CHECK(alloc_fault_each(open_and_use, null) > 5);
}

static const check_test TESTS[] = {
    {"a_profile_gives_name_and_memory", a_profile_gives_name_and_memory},
    {"settings_change_memory_and_granule", settings_change_memory_and_granule},
    {"wrong_settings_are_refused", wrong_settings_are_refused},
    {"the_memory_is_limited", the_memory_is_limited},
    {"addresses_are_given_again", addresses_are_given_again},
    {"streams_are_busy_until_the_clock_says_so", streams_are_busy_until_the_clock_says_so},
    {"waiting_moves_the_clock", waiting_moves_the_clock},
    {"a_free_waits_for_all_streams", a_free_waits_for_all_streams},
    {"copies_take_time_by_size", copies_take_time_by_size},
    {"only_memory_that_is_there_is_used", only_memory_that_is_there_is_used},
    {"a_refused_call_takes_no_time_for_its_size", a_refused_call_takes_no_time_for_its_size},
    {"the_same_calls_take_the_same_time", the_same_calls_take_the_same_time},
    {"null_calls_take_no_time", null_calls_take_no_time},
    {"every_lack_of_host_memory_is_told", every_lack_of_host_memory_is_told},
};

CHECK_MAIN(TESTS)
