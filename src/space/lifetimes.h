/* SPDX-License-Identifier: MIT */
/**
 * How long ranges live, learned from those that went: the mean of the logarithm of their lifetimes,
 * counted in requests, of each kind of request and of all. A kind is a power of two and a tag, such
 * as the call site; two that share a place are one (1,024 places).
 */
#ifndef ALLOTI_SPACE_LIFETIMES_H
#define ALLOTI_SPACE_LIFETIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/size_math.h"

enum {
    LIFETIME_SCALE = 256,          /**< Logarithms are kept in 1/256. */
    LIFETIME_WEIGHT_LOG2 = 4,      /**< A new sample counts 1/16 in a kind's mean, */
    LIFETIME_WEIGHT_ALL_LOG2 = 10, /**< 1/1024 in that of all. */
    LIFETIME_KINDS_LOG2 = 10,
    LIFETIME_KINDS = 1 << LIFETIME_KINDS_LOG2,
};

typedef struct lifetime {
    int32_t mean; /**< Of log2(requests), times LIFETIME_SCALE. */
    uint32_t samples;
} lifetime;

typedef struct alloti_lifetimes {
    uint32_t clock; /**< Requests so far, modulo 2^32. */
    lifetime all;
    lifetime kinds[LIFETIME_KINDS];
} alloti_lifetimes;

/** Place of a key in a table of LIFETIME_KINDS. Fibonacci hashing (Knuth, The Art of Computer
 * Programming, vol. 3, 6.4). */
static inline uint32_t lifetime_place(uint64_t key)
{
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> (64 - LIFETIME_KINDS_LOG2));
}

static inline uint32_t lifetime_kind(uint64_t size, uint32_t tag)
{
    return lifetime_place((uint64_t)tag << 6 | alloti_log2(size));
}

/** Something took so many requests: it counts 1 / 2^weight_log2 in the mean. */
static inline void lifetime_learn(lifetime *l, uint32_t requests, unsigned weight_log2)
{
    /* The logarithm, linear between powers of two. */
    const uint64_t value = (uint64_t)requests + 1;
    const unsigned whole = alloti_log2(value);
    const uint64_t rest = value - (UINT64_C(1) << whole);
    const int32_t sample =
        (int32_t)(whole * LIFETIME_SCALE) + (int32_t)(rest * LIFETIME_SCALE >> whole);
    l->mean += l->samples == 0 ? sample : (sample - l->mean) / (1 << weight_log2);
    l->samples += l->samples < UINT32_MAX ? 1 : 0;
}

/** A range of a kind lived so long. */
static inline void lifetimes_learn(alloti_lifetimes *l, uint32_t kind, uint32_t requests)
{
    lifetime_learn(&l->kinds[kind], requests, LIFETIME_WEIGHT_LOG2);
    lifetime_learn(&l->all, requests, LIFETIME_WEIGHT_ALL_LOG2);
}

/** Whether one takes at most 1 / 2^factor_log2 of the time that another takes. */
static inline bool lifetime_is_shorter(const lifetime *l, const lifetime *than,
                                       unsigned factor_log2)
{
    return l->mean + (int32_t)factor_log2 * LIFETIME_SCALE <= than->mean;
}

#endif /* ALLOTI_SPACE_LIFETIMES_H */
