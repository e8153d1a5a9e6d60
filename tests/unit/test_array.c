/* SPDX-License-Identifier: MIT */
#include "core/array.h"

#include <stdlib.h>

#include "support/alloc_fault.h"
#include "support/check.h"

static void grows_by_half_and_keeps_the_items(void)
{
    uint32_t *items = NULL;
    uint64_t capacity = 0;
    uint64_t moves = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        const uint64_t before = capacity;
        REQUIRE_OK(alloti_array_reserve(&items, &capacity, i + 1u, sizeof *items));
        items[i] = i;
        if (capacity != before) {
            moves++;
            CHECK(before == 0 || capacity >= before + before / 2);
        }
    }
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK_EQ(items[i], i);
    }
    CHECK(moves < 20);
    free(items);
}

static void what_fits_already_changes_nothing(void)
{
    uint8_t *items = NULL;
    uint64_t capacity = 0;
    REQUIRE_OK(alloti_array_reserve(&items, &capacity, 1, 1));
    const uint8_t *const before = items;
    const uint64_t room = capacity;
    CHECK_OK(alloti_array_reserve(&items, &capacity, room, 1));
    CHECK(items == before);
    CHECK_EQ(capacity, room);
    free(items);
}

static void a_size_that_overflows_is_refused(void)
{
    uint64_t *items = NULL;
    uint64_t capacity = 0;
    CHECK_EQ(alloti_array_reserve(&items, &capacity, UINT64_MAX / 2, sizeof *items),
             ALLOT_STATUS_HOST_MEMORY);
    CHECK(items == NULL);
    CHECK_EQ(capacity, 0);
    CHECK(alloti_alloc_array(UINT64_MAX / 2, 8) == NULL);
    CHECK(alloti_calloc_array(UINT64_MAX / 2, 8) == NULL);
}

static void no_bytes_are_no_array(void)
{
    CHECK(alloti_alloc_array(0, 8) == NULL);
    CHECK(alloti_alloc_array(8, 0) == NULL);
    CHECK(alloti_calloc_array(0, 8) == NULL);
}

static void zeroed_arrays_are_zero(void)
{
    uint64_t *const items = alloti_calloc_array(100, sizeof *items);
    REQUIRE(items != NULL);
    for (size_t i = 0; i < 100; i++) {
        CHECK_EQ(items[i], 0);
    }
    free(items);
}

static void a_failed_growth_leaves_the_array_as_it_was(void)
{
    uint32_t *items = NULL;
    uint64_t capacity = 0;
    REQUIRE_OK(alloti_array_reserve(&items, &capacity, 1, sizeof *items));
    items[0] = 42;
    const uint64_t before = capacity;
    alloc_fault_arm(1);
    const allot_status status = alloti_array_reserve(&items, &capacity, before + 1, sizeof *items);
    CHECK(alloc_fault_disarm());
    CHECK_EQ(status, ALLOT_STATUS_HOST_MEMORY);
    CHECK_EQ(capacity, before);
    CHECK_EQ(items[0], 42);
    free(items);
}

static const check_test TESTS[] = {
    {"grows_by_half_and_keeps_the_items", grows_by_half_and_keeps_the_items},
    {"what_fits_already_changes_nothing", what_fits_already_changes_nothing},
    {"a_size_that_overflows_is_refused", a_size_that_overflows_is_refused},
    {"no_bytes_are_no_array", no_bytes_are_no_array},
    {"zeroed_arrays_are_zero", zeroed_arrays_are_zero},
    {"a_failed_growth_leaves_the_array_as_it_was", a_failed_growth_leaves_the_array_as_it_was},
};
CHECK_MAIN(TESTS)
