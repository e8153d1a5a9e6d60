/* SPDX-License-Identifier: MIT */
#include "torchsim/rounding.h"

#include "core/size_math.h"
#include "torchsim/sim.h"

/** Divisions that apply to a size: sizes below 2 MiB use the first interval, from 32 GiB the last.
 */
static uint64_t divisions_for(const allot_torch_conf *conf, uint64_t size)
{
    const unsigned log = alloti_log2(size);
    unsigned index = log > 20 ? log - 20 : 0;
    if (index >= ALLOT_TORCH_INTERVALS) {
        index = ALLOT_TORCH_INTERVALS - 1;
    }
    return conf->roundup_power2_divisions[index];
}

/** Up to the next of `divisions` equal steps between two powers of two. */
static uint64_t round_to_division(uint64_t size, uint64_t divisions)
{
    if (alloti_is_pow2(size)) {
        return size;
    }
    const uint64_t floor = 1ull << alloti_log2(size);
    const uint64_t step = floor >> alloti_log2(divisions);
    if (step == 0) {
        return floor << 1;
    }
    const uint64_t down = alloti_align_down(size, step);
    return down == size ? size : down + step;
}

uint64_t alloti_torch_round(const allot_torch_conf *conf, uint64_t size)
{
    if (size < SIM_MIN_BLOCK) {
        return SIM_MIN_BLOCK;
    }
    const uint64_t divisions = divisions_for(conf, size);
    if (divisions > 1 && size > SIM_MIN_BLOCK * divisions) {
        return round_to_division(size, divisions);
    }
    uint64_t rounded = size;
    const bool fits = alloti_align_up(size, SIM_MIN_BLOCK, &rounded);
    return fits ? rounded : size;
}
