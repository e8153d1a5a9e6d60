/* SPDX-License-Identifier: MIT */
#include "core/table.h"

#include <stdlib.h>

#include "support/alloc_fault.h"
#include "support/check.h"

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

static void grows_and_keeps_the_items(void)
{
    uint64_t *items = NULL;
    uint64_t capacity = 0;
    for (uint64_t i = 0; i < 500000; i++) { /* across the size where pages become huge */
        REQUIRE_OK(alloti_table_reserve(&items, &capacity, i + 1, sizeof *items));
        REQUIRE(capacity > i && (uintptr_t)items % LINE == 0);
        items[i] = i;
    }
    for (uint64_t i = 0; i < 500000; i++) {
        REQUIRE(items[i] == i);
    }
    CHECK_EQ((uintptr_t)items % HUGE_PAGE, 0);
    free(items);
}

static void what_fits_already_changes_nothing(void)
{
    uint8_t *items = NULL;
    uint64_t capacity = 0;
    REQUIRE_OK(alloti_table_reserve(&items, &capacity, 1, 1));
    const uint8_t *const before = items;
    const uint64_t room = capacity;
    CHECK_OK(alloti_table_reserve(&items, &capacity, room, 1));
    CHECK(items == before);
    CHECK_EQ(capacity, room);
    free(items);
}

static void a_size_that_overflows_is_refused(void)
{
    uint64_t *items = NULL;
    uint64_t capacity = 0;
    CHECK_EQ(alloti_table_reserve(&items, &capacity, UINT64_MAX / 2, sizeof *items),
             ALLOT_STATUS_HOST_MEMORY);
    CHECK_EQ(alloti_table_reserve(&items, &capacity, UINT64_MAX / 8, sizeof *items),
             ALLOT_STATUS_HOST_MEMORY);
    CHECK(items == NULL);
    CHECK_EQ(capacity, 0);
}

static void without_memory_nothing_changes(void)
{
    uint32_t *items = NULL;
    uint64_t capacity = 0;
    REQUIRE_OK(alloti_table_reserve(&items, &capacity, 1, sizeof *items));
    const uint32_t *const before = items;
    const uint64_t room = capacity;
    items[0] = 7;
    alloc_fault_arm(1);
    CHECK_EQ(alloti_table_reserve(&items, &capacity, room + 1, sizeof *items),
             ALLOT_STATUS_HOST_MEMORY);
    CHECK(alloc_fault_disarm());
    CHECK(items == before);
    CHECK_EQ(capacity, room);
    CHECK_EQ(items[0], 7);
    free(items);
}

static const check_test TESTS[] = {
    {"grows_and_keeps_the_items", grows_and_keeps_the_items},
    {"what_fits_already_changes_nothing", what_fits_already_changes_nothing},
    {"a_size_that_overflows_is_refused", a_size_that_overflows_is_refused},
    {"without_memory_nothing_changes", without_memory_nothing_changes},
};

CHECK_MAIN(TESTS)
