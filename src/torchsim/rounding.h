/* SPDX-License-Identifier: MIT */
/** From the bytes asked for to the bytes of a block, before any split. */
#ifndef ALLOTI_TORCHSIM_ROUNDING_H
#define ALLOTI_TORCHSIM_ROUNDING_H

#include <allot/torchsim.h>

/**
 * Rounded size of a request: 512 bytes at least, a multiple of 512, or the next step of
 * roundup_power2_divisions. A size that would overflow stays as it is.
 */
uint64_t alloti_torch_round(const allot_torch_conf *conf, uint64_t size);

#endif /* ALLOTI_TORCHSIM_ROUNDING_H */
