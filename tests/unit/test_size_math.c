/* SPDX-License-Identifier: MIT */
#include "core/size_math.h"

#include <math.h>

#include "support/check.h"

static void sums_stop_at_the_largest_number(void)
{
    uint64_t out = 7;
    CHECK(alloti_add(UINT64_MAX - 1, 1, &out));
    CHECK_EQ(out, UINT64_MAX);
    out = 7;
    CHECK(!alloti_add(UINT64_MAX, 1, &out));
    CHECK(!alloti_add(1, UINT64_MAX, &out));
    CHECK_EQ(out, 7);
}

static void products_stop_at_the_largest_number(void)
{
    uint64_t out = 7;
    CHECK(alloti_mul(UINT32_MAX, UINT64_C(1) << 32, &out));
    CHECK_EQ(out, UINT64_C(0xffffffff00000000));
    CHECK(alloti_mul(UINT64_MAX, 0, &out));
    CHECK_EQ(out, 0);
    CHECK(alloti_mul(0, UINT64_MAX, &out));
    CHECK_EQ(out, 0);
    out = 7;
    CHECK(!alloti_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &out));
    CHECK(!alloti_mul(UINT64_MAX / 3 + 1, 3, &out));
    CHECK_EQ(out, 7);
}

static void numbers_with_a_point_stop_at_both_ends(void)
{
    CHECK_EQ(alloti_to_u64(-1.0), 0);
    CHECK_EQ(alloti_to_u64(NAN), 0);
    CHECK_EQ(alloti_to_u64(1.9), 1);
    CHECK_EQ(alloti_to_u64(9223372036854775808.0), UINT64_C(1) << 63);
    CHECK_EQ(alloti_to_u64((double)UINT64_MAX), UINT64_MAX);
    CHECK_EQ(alloti_to_u64(INFINITY), UINT64_MAX);
}

static void alignment_rounds_to_multiples(void)
{
    uint64_t out = 0;
    CHECK_EQ(alloti_align_down(1023, 512), 512);
    CHECK_EQ(alloti_align_down(UINT64_MAX, UINT64_C(1) << 63), UINT64_C(1) << 63);
    CHECK(alloti_align_up(0, 512, &out));
    CHECK_EQ(out, 0);
    CHECK(alloti_align_up(1, 512, &out));
    CHECK_EQ(out, 512);
    CHECK(alloti_align_up(512, 512, &out));
    CHECK_EQ(out, 512);
    CHECK(alloti_align_up(77, 1, &out));
    CHECK_EQ(out, 77);
    out = 7;
    CHECK(!alloti_align_up(UINT64_MAX - 510, 512, &out));
    CHECK_EQ(out, 7);
}

static void rounding_takes_any_step(void)
{
    uint64_t out = 0;
    CHECK(alloti_round_up(10, 3, &out));
    CHECK_EQ(out, 12);
    CHECK(alloti_round_up(12, 3, &out));
    CHECK_EQ(out, 12);
    CHECK(alloti_round_up(UINT64_MAX, 3, &out)); /* 2^64 - 1 is a multiple of 3 */
    CHECK_EQ(out, UINT64_MAX);
    out = 7;
    CHECK(!alloti_round_up(UINT64_MAX - 1, 4, &out));
    CHECK_EQ(out, 7);
}

static void powers_of_two_and_their_logarithms(void)
{
    CHECK(!alloti_is_pow2(0));
    for (unsigned bit = 0; bit < 64; bit++) {
        const uint64_t value = UINT64_C(1) << bit;
        CHECK(alloti_is_pow2(value));
        CHECK_EQ(alloti_log2(value), bit);
        CHECK_EQ(alloti_log2(value | 1), bit);
        if (bit > 0) {
            CHECK(!alloti_is_pow2(value | 1));
            CHECK_EQ(alloti_log2(value - 1), bit - 1);
        }
    }
}

/* The same by 128-bit arithmetic, which cannot overflow. */
static void random_numbers_agree_with_wide_arithmetic(void)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t state = check_seed();
    for (int i = 0; i < 20000; i++) {
        const uint64_t a = check_random(&state) >> check_random_range(&state, 0, 63);
        const uint64_t b = check_random(&state) >> check_random_range(&state, 0, 63);
        const uint64_t align = UINT64_C(1) << check_random_range(&state, 0, 63);
        const wide sum = (wide)a + b;
        const wide product = (wide)a * b;
        const wide aligned = ((wide)a + align - 1) / align * align;
        uint64_t out = 0;
        CHECK_EQ(alloti_add(a, b, &out), sum <= UINT64_MAX);
        CHECK(sum > UINT64_MAX || out == sum);
        CHECK_EQ(alloti_mul(a, b, &out), product <= UINT64_MAX);
        CHECK(product > UINT64_MAX || out == product);
        CHECK_EQ(alloti_align_up(a, align, &out), aligned <= UINT64_MAX);
        CHECK(aligned > UINT64_MAX || out == aligned);
        CHECK_EQ(alloti_round_up(a, b | 1, &out),
                 ((wide)a + (b | 1) - 1) / (b | 1) * (b | 1) <= UINT64_MAX);
    }
}

static const check_test TESTS[] = {
    {"sums_stop_at_the_largest_number", sums_stop_at_the_largest_number},
    {"products_stop_at_the_largest_number", products_stop_at_the_largest_number},
    {"numbers_with_a_point_stop_at_both_ends", numbers_with_a_point_stop_at_both_ends},
    {"alignment_rounds_to_multiples", alignment_rounds_to_multiples},
    {"rounding_takes_any_step", rounding_takes_any_step},
    {"powers_of_two_and_their_logarithms", powers_of_two_and_their_logarithms},
    {"random_numbers_agree_with_wide_arithmetic", random_numbers_agree_with_wide_arithmetic},
};
CHECK_MAIN(TESTS)
