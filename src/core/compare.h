/* SPDX-License-Identifier: MIT */
/** Orders for qsort(): below, equal or above 0. */
#ifndef ALLOTI_CORE_COMPARE_H
#define ALLOTI_CORE_COMPARE_H

#include <stdint.h>

/** Of two numbers. */
static inline int alloti_order(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

/** Of two uint64_t in an array, the smaller one first. */
static inline int alloti_compare_u64(const void *left, const void *right)
{
    return alloti_order(*(const uint64_t *)left, *(const uint64_t *)right);
}

/** Of two uint32_t in an array, the smaller one first. */
static inline int alloti_compare_u32(const void *left, const void *right)
{
    return alloti_order(*(const uint32_t *)left, *(const uint32_t *)right);
}

#endif /* ALLOTI_CORE_COMPARE_H */
