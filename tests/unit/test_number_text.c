/* SPDX-License-Identifier: MIT */
#include "core/number_text.h"

#include <inttypes.h>
#include <string.h>

#include "support/check.h"

static bool fixed(const char *text, unsigned decimals, int64_t *out)
{
    return alloti_number_fixed(text, strlen(text), decimals, out);
}

static void check_fixed(const char *text, unsigned decimals, int64_t expected)
{
    int64_t value = 42;
    CHECK(fixed(text, decimals, &value));
    CHECK_EQ(value, expected);
}

static void whole_numbers_are_read_to_the_limits(void)
{
    uint64_t u = 0;
    CHECK(alloti_number_u64("18446744073709551615", 20, &u));
    CHECK_EQ(u, UINT64_MAX);
    CHECK(!alloti_number_u64("18446744073709551616", 20, &u));
    CHECK(!alloti_number_u64("", 0, &u));
    CHECK(!alloti_number_u64("-1", 2, &u));
    CHECK(!alloti_number_u64("1 ", 2, &u));
    int64_t i = 0;
    CHECK(alloti_number_i64("-9223372036854775808", 20, &i));
    CHECK(i == INT64_MIN);
    CHECK(alloti_number_i64("9223372036854775807", 19, &i));
    CHECK(i == INT64_MAX);
    CHECK(!alloti_number_i64("9223372036854775808", 19, &i));
    CHECK(!alloti_number_i64("-", 1, &i));
}

static void hexadecimal_takes_a_prefix_or_none(void)
{
    uint64_t u = 0;
    CHECK(alloti_number_hex("0x7fABcd", 8, &u));
    CHECK_EQ(u, 0x7fabcd);
    CHECK(alloti_number_hex("2", 1, &u));
    CHECK_EQ(u, 2);
    CHECK(!alloti_number_hex("0x", 2, &u));
    CHECK(!alloti_number_hex("(nil)", 5, &u));
    CHECK_EQ(u, 2);
}

static void decimals_are_scaled_exactly(void)
{
    check_fixed("1623143566756.125", 3, INT64_C(1623143566756125));
    check_fixed("1623143566756", 3, INT64_C(1623143566756000));
    check_fixed("0.0019", 3, 1);
    check_fixed("-12.5", 3, -12500);
    check_fixed("1.5e3", 3, 1500000);
    check_fixed("25E-1", 0, 2);
    check_fixed("0e400", 9, 0);
    check_fixed("7", 0, 7);
}

static void decimals_out_of_range_or_malformed_are_refused(void)
{
    int64_t value = 7;
    CHECK(!fixed("", 3, &value));
    CHECK(!fixed(".", 3, &value));
    CHECK(!fixed("1.2.3", 3, &value));
    CHECK(!fixed("1e", 3, &value));
    CHECK(!fixed("1e9999", 3, &value));
    CHECK(!fixed("9223372036854775807", 3, &value));
    CHECK(!fixed("1x", 0, &value));
    CHECK_EQ(value, 7);
}

static const check_test TESTS[] = {
    {"whole_numbers_are_read_to_the_limits", whole_numbers_are_read_to_the_limits},
    {"hexadecimal_takes_a_prefix_or_none", hexadecimal_takes_a_prefix_or_none},
    {"decimals_are_scaled_exactly", decimals_are_scaled_exactly},
    {"decimals_out_of_range_or_malformed_are_refused",
     decimals_out_of_range_or_malformed_are_refused},
};
CHECK_MAIN(TESTS)
