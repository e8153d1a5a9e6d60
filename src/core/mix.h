/* SPDX-License-Identifier: MIT */
#ifndef ALLOTI_CORE_MIX_H
#define ALLOTI_CORE_MIX_H

#include <stdint.h>

/** Spread a number over 64 bits: the finaliser of splitmix64 (Steele, Lea, Flood, 2014). */
static inline uint64_t alloti_mix64(uint64_t key)
{
    key = (key ^ (key >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    key = (key ^ (key >> 27)) * UINT64_C(0x94d049bb133111eb);
    return key ^ (key >> 31);
}

#endif /* ALLOTI_CORE_MIX_H */
