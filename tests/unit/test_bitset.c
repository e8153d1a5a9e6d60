/* SPDX-License-Identifier: MIT */
/* Sets of small integers against an array of booleans. */
#include "core/bitset.h"

#include <stdlib.h>

#include "support/check.h"

static uint32_t slow_next(const bool *has, uint32_t size, uint32_t from)
{
    for (uint32_t i = from; i < size; i++) {
        if (has[i]) {
            return i;
        }
    }
    return ALLOT_NONE;
}

static uint32_t slow_previous(const bool *has, uint32_t size, uint32_t from)
{
    for (uint32_t i = from < size ? from + 1 : size; i-- > 0;) {
        if (has[i]) {
            return i;
        }
    }
    return ALLOT_NONE;
}

static void try_size(uint32_t size)
{
    uint64_t random = check_seed() + size;
    alloti_bitset set;
    REQUIRE_OK(alloti_bitset_init(&set, size));
    bool *const has = calloc(size + 1, sizeof *has);
    REQUIRE(has != NULL);
    for (uint32_t i = 0; i < 600 && size != 0; i++) {
        const uint32_t member = (uint32_t)check_random_range(&random, 0, size - 1);
        const bool wants = check_random_range(&random, 0, 1) == 0;
        if (wants) {
            alloti_bitset_add(&set, member);
        } else {
            alloti_bitset_remove(&set, member);
        }
        has[member] = wants;
        const uint32_t from = (uint32_t)check_random_range(&random, 0, size + 2);
        CHECK_EQ(alloti_bitset_next(&set, member) == member, wants);
        CHECK_EQ(alloti_bitset_next(&set, from), slow_next(has, size, from));
        CHECK_EQ(alloti_bitset_previous(&set, from), slow_previous(has, size, from));
    }
    free(has);
    alloti_bitset_fini(&set);
}

static void questions_are_answered_as_by_an_array(void)
{
    static const uint32_t SIZES[] = {0, 1, 63, 64, 65, 4095, 4096, 4097, 70000, 262144};
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        try_size(SIZES[i]);
    }
}

static void an_empty_set_has_no_members(void)
{
    alloti_bitset set;
    REQUIRE_OK(alloti_bitset_init(&set, 0));
    CHECK_EQ(alloti_bitset_next(&set, 0), ALLOT_NONE);
    CHECK_EQ(alloti_bitset_previous(&set, 5), ALLOT_NONE);
    alloti_bitset_fini(&set);
}

static const check_test TESTS[] = {
    {"questions_are_answered_as_by_an_array", questions_are_answered_as_by_an_array},
    {"an_empty_set_has_no_members", an_empty_set_has_no_members},
};

CHECK_MAIN(TESTS)
