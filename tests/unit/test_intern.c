/* SPDX-License-Identifier: MIT */
#include "trace/intern.h"

#include "support/alloc_fault.h"
#include "support/check.h"

enum { COUNT = 20000 };

static uint64_t values[COUNT];

static bool value_equal(const void *owner, uint32_t index, const void *key)
{
    const uint64_t *const held = owner;
    const uint64_t *const wanted = key;
    return held[index] == *wanted;
}

static uint32_t find(const alloti_intern *table, uint64_t hash, uint64_t value)
{
    return alloti_intern_find(table, hash, value_equal, values, &value);
}

static void an_empty_table_finds_nothing(void)
{
    const alloti_intern table = {0};
    CHECK_EQ(find(&table, 1, 1), ALLOT_NONE);
}

/* Adds COUNT values whose hashes keep only `mask` of their bits; fewer bits, more collisions. */
static void fill(uint64_t hash_mask, uint32_t count)
{
    alloti_intern table = {0};
    uint64_t state = check_seed();
    for (uint32_t i = 0; i < count; i++) {
        values[i] = check_random(&state);
        CHECK_EQ(find(&table, values[i] & hash_mask, values[i]), ALLOT_NONE);
        REQUIRE_OK(alloti_intern_add(&table, values[i] & hash_mask, i));
    }
    CHECK_EQ(table.count, count);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ(find(&table, values[i] & hash_mask, values[i]), i);
    }
    CHECK_EQ(find(&table, 5 & hash_mask, 5), ALLOT_NONE);
    alloti_intern_fini(&table);
    CHECK(table.slots == NULL);
}

static void what_was_added_is_found_while_it_grows(void)
{
    fill(UINT64_MAX, COUNT);
}

static void equal_hashes_are_told_apart_by_content(void)
{
    fill(0, 300);
    fill(7, 1000);
    fill(~UINT64_C(0xffffffff), 300); /* the 32 bits that are kept are all equal */
}

static allot_status add_many(void *context)
{
    (void)context;
    alloti_intern table = {0};
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < 1000 && status == ALLOT_STATUS_OK; i++) {
        values[i] = i;
        status = alloti_intern_add(&table, i, i);
        if (status != ALLOT_STATUS_OK) {
            /* What was there before the failure is still found. */
            CHECK(i == 0 || find(&table, i - 1, i - 1) == i - 1);
            CHECK_EQ(find(&table, i, i), ALLOT_NONE);
            CHECK_EQ(table.count, i);
        }
    }
    alloti_intern_fini(&table);
    return status;
}

static void a_failed_growth_loses_nothing(void)
{
    CHECK(alloc_fault_each(add_many, NULL) >= 4);
}

static const check_test TESTS[] = {
    {"an_empty_table_finds_nothing", an_empty_table_finds_nothing},
    {"what_was_added_is_found_while_it_grows", what_was_added_is_found_while_it_grows},
    {"equal_hashes_are_told_apart_by_content", equal_hashes_are_told_apart_by_content},
    {"a_failed_growth_loses_nothing", a_failed_growth_loses_nothing},
};
CHECK_MAIN(TESTS)
