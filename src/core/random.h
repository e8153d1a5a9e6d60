/* SPDX-License-Identifier: MIT */
/** Numbers that look random and follow from a seed: splitmix64 (Steele, Lea, Flood, 2014). */
#ifndef ALLOTI_CORE_RANDOM_H
#define ALLOTI_CORE_RANDOM_H

#include "core/mix.h"

/** The next number; *state begins with the seed. */
static inline uint64_t alloti_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return alloti_mix64(*state);
}

#endif /* ALLOTI_CORE_RANDOM_H */
