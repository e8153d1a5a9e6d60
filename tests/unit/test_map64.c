/* SPDX-License-Identifier: MIT */
#include "core/map64.h"

#include "support/check.h"

static void an_empty_map_has_nothing(void)
{
    alloti_map64 map = {0};
    CHECK_EQ(alloti_map64_get(&map, 0), ALLOT_NONE);
    alloti_map64_fini(&map);
}

static void keys_are_found_after_growing(void)
{
    enum { COUNT = 10000 };
    alloti_map64 map = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        REQUIRE_OK(alloti_map64_set(&map, UINT64_C(512) * i, i));
    }
    CHECK_EQ(map.count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK_EQ(alloti_map64_get(&map, UINT64_C(512) * i), i);
        CHECK_EQ(alloti_map64_get(&map, UINT64_C(512) * i + 1), ALLOT_NONE);
    }
    alloti_map64_fini(&map);
}

static void a_key_is_set_again_in_place(void)
{
    alloti_map64 map = {0};
    CHECK_OK(alloti_map64_set(&map, UINT64_MAX, 1));
    CHECK_OK(alloti_map64_set(&map, UINT64_MAX, 2));
    CHECK_EQ(map.count, 1);
    CHECK_EQ(alloti_map64_get(&map, UINT64_MAX), 2);
    alloti_map64_fini(&map);
}

static const check_test TESTS[] = {
    {"an_empty_map_has_nothing", an_empty_map_has_nothing},
    {"keys_are_found_after_growing", keys_are_found_after_growing},
    {"a_key_is_set_again_in_place", a_key_is_set_again_in_place},
};

CHECK_MAIN(TESTS)
