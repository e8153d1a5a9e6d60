/* SPDX-License-Identifier: MIT */
/** Arithmetic on sizes that says when it would overflow. Check first, then round. */
#ifndef ALLOTI_CORE_SIZE_MATH_H
#define ALLOTI_CORE_SIZE_MATH_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/** *out = a + b; false (out untouched) on overflow. */
static inline bool alloti_add(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a > UINT64_MAX - b) {
        return false;
    }
    *out = a + b;
    return true;
}

/** *out = a * b; false (out untouched) on overflow. */
static inline bool alloti_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b != 0 && a > UINT64_MAX / b) {
        return false;
    }
    *out = a * b;
    return true;
}

static inline bool alloti_is_pow2(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/** Largest multiple of `align` (a power of two) that is <= value. */
static inline uint64_t alloti_align_down(uint64_t value, uint64_t align)
{
    assert(alloti_is_pow2(align));
    return value & ~(align - 1);
}

/** Smallest multiple of `align` (a power of two) that is >= value; false on overflow. */
static inline bool alloti_align_up(uint64_t value, uint64_t align, uint64_t *out)
{
    uint64_t sum = 0;
    if (!alloti_add(value, align - 1, &sum)) {
        return false;
    }
    *out = alloti_align_down(sum, align);
    return true;
}

/** Smallest multiple of `step` (any number above 0) that is >= value; false on overflow. */
static inline bool alloti_round_up(uint64_t value, uint64_t step, uint64_t *out)
{
    const uint64_t rest = value % step;
    return alloti_add(value, rest == 0 ? 0 : step - rest, out);
}

/** Whole bytes of a number, cut: 0 below 0 and for NaN, UINT64_MAX from 2^64 on. */
static inline uint64_t alloti_to_u64(double value)
{
    if (!(value > 0)) {
        return 0;
    }
    return value < 18446744073709551616.0 ? (uint64_t)value : UINT64_MAX;
}

/** Floor of the logarithm to base 2; value > 0. */
static inline unsigned alloti_log2(uint64_t value)
{
    assert(value != 0);
    return 63u - (unsigned)__builtin_clzll(value);
}

#endif /* ALLOTI_CORE_SIZE_MATH_H */
