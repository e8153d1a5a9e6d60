/* SPDX-License-Identifier: MIT */
/**
 * A few comparisons at once: which of up to 32 numbers that lie side by side fulfil a condition,
 * one bit each. Compilers make wide operations of most loops of constant length, but not of one
 * that collects bits; where every processor has an instruction for that it is asked for by name.
 * `count` is a constant where these are called, and a multiple of 4.
 */
#ifndef ALLOTI_CORE_LANES_H
#define ALLOTI_CORE_LANES_H

#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/** Bit i: values[i] > value. */
static inline uint32_t alloti_lanes_above(const int32_t *values, uint32_t count, int32_t value)
{
    uint32_t bits = 0;
#if defined(__SSE2__)
    const __m128i all = _mm_set1_epi32(value);
    for (uint32_t i = 0; i < count; i += 4) {
        const __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(values + i));
        bits |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpgt_epi32(four, all))) << i;
    }
#else
    for (uint32_t i = 0; i < count; i++) {
        bits |= (uint32_t)(values[i] > value) << i;
    }
#endif
    return bits;
}

/** Bit i: values[i] == value. */
static inline uint32_t alloti_lanes_equal(const uint32_t *values, uint32_t count, uint32_t value)
{
    uint32_t bits = 0;
#if defined(__SSE2__)
    const __m128i all = _mm_set1_epi32((int32_t)value);
    for (uint32_t i = 0; i < count; i += 4) {
        const __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(values + i));
        bits |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, all))) << i;
    }
#else
    for (uint32_t i = 0; i < count; i++) {
        bits |= (uint32_t)(values[i] == value) << i;
    }
#endif
    return bits;
}

#endif /* ALLOTI_CORE_LANES_H */
