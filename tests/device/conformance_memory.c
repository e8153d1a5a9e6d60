/* SPDX-License-Identifier: MIT */
/* What a device says of itself, and plain allocations. */
#include "device/conformance.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)

static bool is_pow2(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

void info_is_sound(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_device_info *const info = &s.info;
    CHECK_EQ(info->struct_size, sizeof *info);
    CHECK(info->name[0] != '\0' && memchr(info->name, '\0', sizeof info->name) != NULL);
    CHECK(info->backend[0] != '\0' && memchr(info->backend, '\0', sizeof info->backend) != NULL);
    CHECK(info->memory_total >= MIB);
    CHECK(is_pow2(info->align) && info->align >= 16);
    CHECK(info->granule == 0 || (is_pow2(info->granule) && info->granule >= 4096));
    CHECK(info->page == 0 || is_pow2(info->page));
    CHECK(info->page != 0 || info->page_move_min == 0);
    CHECK(!info->is_host_accessible || info->has_bytes);
    subject_end(&s);
}

void memory_info_is_sound(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    uint64_t size_free = 0;
    uint64_t size_total = 0;
    CHECK_OK(allot_device_memory_info(s.device, &size_free, &size_total));
    CHECK_EQ(size_total, s.info.memory_total);
    CHECK(size_free > 0 && size_free <= size_total);
    subject_end(&s);
}

void the_clock_does_not_run_backwards(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    uint64_t last = allot_device_clock_ns(s.device);
    for (int i = 0; i < 100; i++) {
        const allot_devptr ptr = must_alloc(s.device, MIB);
        must_free(s.device, ptr, MIB);
        const uint64_t now = allot_device_clock_ns(s.device);
        CHECK(now >= last);
        last = now;
    }
    subject_end(&s);
}

void allocations_are_aligned_and_apart(void)
{
    enum { COUNT = 40 };
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    uint64_t state = check_seed();
    allot_devptr ptrs[COUNT];
    uint64_t sizes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        sizes[i] = check_random_range(&state, 1, MIB);
        ptrs[i] = must_alloc(s.device, sizes[i]);
        CHECK_EQ(ptrs[i].address % s.info.align, 0);
        for (size_t j = 0; j < i; j++) {
            CHECK(ptrs[i].address >= ptrs[j].address + sizes[j] ||
                  ptrs[j].address >= ptrs[i].address + sizes[i]);
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        must_free(s.device, ptrs[i], sizes[i]);
    }
    subject_end(&s);
}

void allocations_are_counted(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_devptr a = must_alloc(s.device, 1000);
    const allot_devptr b = must_alloc(s.device, MIB);
    allot_device_counts counts;
    allot_device_get_counts(s.device, &counts);
    CHECK_EQ(counts.struct_size, sizeof counts);
    CHECK_EQ(counts.calls[ALLOT_DEVICE_CALL_ALLOC], 2);
    CHECK_EQ(counts.failures[ALLOT_DEVICE_CALL_ALLOC], 0);
    CHECK_EQ(counts.size_allocated, 1000 + MIB);
    CHECK_EQ(counts.live_count, 2);
    must_free(s.device, a, 1000);
    allot_device_get_counts(s.device, &counts);
    CHECK_EQ(counts.calls[ALLOT_DEVICE_CALL_FREE], 1);
    CHECK_EQ(counts.size_allocated, MIB);
    CHECK_EQ(counts.live_count, 1);
    must_free(s.device, b, MIB);
    subject_end(&s);
}

void odd_sizes_can_be_allocated(void)
{
    static const uint64_t sizes[] = {1, 2, 511, 513, 4095, 4097, 3 * MIB + 1};
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const allot_devptr ptr = must_alloc(s.device, sizes[i]);
        write_pattern(&s, DEFAULT_STREAM, ptr, i, sizes[i]);
        CHECK(holds_pattern(&s, DEFAULT_STREAM, ptr, i, sizes[i]));
        must_free(s.device, ptr, sizes[i]);
    }
    subject_end(&s);
}

void wrong_sizes_are_refused(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    allot_devptr ptr = {42};
    CHECK_EQ(allot_device_alloc(s.device, 0, &ptr), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_alloc(s.device, s.info.memory_total + 1, &ptr),
             ALLOT_STATUS_DEVICE_MEMORY);
    CHECK(allot_error_detail()[0] != '\0');
    CHECK_EQ(allot_device_alloc(s.device, UINT64_C(1) << 62, &ptr), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_EQ(allot_device_alloc(s.device, UINT64_MAX, &ptr), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_EQ(ptr.address, 42);
    allot_device_counts counts;
    allot_device_get_counts(s.device, &counts);
    CHECK_EQ(counts.failures[ALLOT_DEVICE_CALL_ALLOC], 3);
    subject_end(&s);
}

void a_full_device_recovers(void)
{
    enum { COUNT_MAX = 64 };
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const uint64_t size = s.info.memory_total / 8;
    allot_devptr ptrs[COUNT_MAX];
    size_t count = 0;
    allot_status status = ALLOT_STATUS_OK;
    while (status == ALLOT_STATUS_OK && count < COUNT_MAX) {
        status = allot_device_alloc(s.device, size, &ptrs[count]);
        count += status == ALLOT_STATUS_OK;
    }
    CHECK_EQ(status, ALLOT_STATUS_DEVICE_MEMORY);
    REQUIRE(count > 0);
    must_free(s.device, ptrs[count - 1], size);
    ptrs[count - 1] = must_alloc(s.device, size);
    for (size_t i = 0; i < count; i++) {
        must_free(s.device, ptrs[i], size);
    }
    subject_end(&s);
}

void what_was_not_allocated_is_not_freed(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_devptr ptr = must_alloc(s.device, MIB);
    CHECK_EQ(allot_device_free(s.device, (allot_devptr){0}, MIB), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_free(s.device, offset_by(ptr, s.info.align), s.info.align),
             ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_device_free(s.device, (allot_devptr){UINT64_C(1) << 40}, MIB),
             ALLOT_STATUS_INVALID);
    CHECK(allot_error_detail()[0] != '\0');
    must_free(s.device, ptr, MIB);
    CHECK_EQ(allot_device_free(s.device, ptr, MIB), ALLOT_STATUS_INVALID);
    subject_end(&s);
}

void stream_ordered_allocations_work(void)
{
    subject s = subject_begin();
    REQUIRE(s.device != NULL);
    const allot_stream stream = must_create_stream(s.device);
    allot_devptr ptr = {9};
    CHECK_EQ(allot_device_alloc_async(s.device, stream, 0, &ptr), ALLOT_STATUS_INVALID);
    CHECK_EQ(ptr.address, 9);
    for (uint64_t i = 0; i < 20; i++) {
        REQUIRE_OK(allot_device_alloc_async(s.device, stream, MIB, &ptr));
        CHECK_EQ(ptr.address % s.info.align, 0);
        CHECK_OK(allot_device_fill(s.device, stream, ptr, (uint8_t)i, MIB));
        CHECK(holds_value(&s, stream, ptr, (uint8_t)i, MIB));
        CHECK_OK(allot_device_free_async(s.device, stream, ptr, MIB));
    }
    CHECK_OK(allot_device_stream_synchronize(s.device, stream));
    must_destroy_stream(s.device, stream);
    subject_end(&s);
}
