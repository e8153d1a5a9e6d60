/* SPDX-License-Identifier: MIT */
#include <allot/base.h>

#include "core/size_text.h"
#include "support/check.h"

static void check_format(uint64_t bytes, const char *expected)
{
    char text[ALLOT_SIZE_TEXT_MAX];
    CHECK_STR(allot_size_format(bytes, text), expected);
}

static void sizes_are_written_in_powers_of_1024(void)
{
    check_format(0, "0 B");
    check_format(1023, "1023 B");
    check_format(1536, "1.5 KiB");
    check_format(20u << 20, "20.0 MiB");
    check_format(UINT64_C(11264) << 20, "11.00 GiB");
    check_format(1048575, "1.0 MiB");
    check_format(UINT64_MAX, "16.00 EiB");
}

static void check_parse(const char *text, uint64_t expected)
{
    uint64_t bytes = 0;
    CHECK_OK(allot_size_parse(text, &bytes));
    CHECK_EQ(bytes, expected);
}

static void sizes_are_read_with_and_without_units(void)
{
    check_parse("0", 0);
    check_parse("8000MiB", UINT64_C(8000) << 20);
    check_parse("24 GiB", UINT64_C(24) << 30);
    check_parse("1.5g", UINT64_C(3) << 29);
    check_parse("2TB", UINT64_C(2) << 40);
    check_parse("512b", 512);
    check_parse("18446744073709551615", UINT64_MAX);
}

static void wrong_sizes_are_refused_with_a_position(void)
{
    uint64_t bytes = 7;
    CHECK_EQ(allot_size_parse("", &bytes), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "character 1");
    CHECK_EQ(allot_size_parse("12Q", &bytes), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "character 3");
    CHECK_EQ(allot_size_parse("12GiBs", &bytes), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "character 6");
    CHECK_EQ(allot_size_parse("-1", &bytes), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_size_parse("18446744073709551616", &bytes), ALLOT_STATUS_INVALID);
    CHECK_EQ(allot_size_parse("17179869184GiB", &bytes), ALLOT_STATUS_INVALID);
    CHECK_EQ(bytes, 7);
}

static void counts_agree_with_their_noun(void)
{
    CHECK_STR(alloti_count(0, "step").text, "0 steps");
    CHECK_STR(alloti_count(1, "step").text, "1 step");
    CHECK_STR(alloti_count(2, "step").text, "2 steps");
}

static const check_test TESTS[] = {
    {"sizes_are_written_in_powers_of_1024", sizes_are_written_in_powers_of_1024},
    {"sizes_are_read_with_and_without_units", sizes_are_read_with_and_without_units},
    {"wrong_sizes_are_refused_with_a_position", wrong_sizes_are_refused_with_a_position},
    {"counts_agree_with_their_noun", counts_agree_with_their_noun},
};
CHECK_MAIN(TESTS)
