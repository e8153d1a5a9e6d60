/* SPDX-License-Identifier: MIT */
/**
 * Taking over the options that a caller gives: structs that begin with their size as the caller's
 * header knew it, so that a program and a library of different releases understand each other.
 */
#ifndef ALLOTI_CORE_OPTIONS_H
#define ALLOTI_CORE_OPTIONS_H

#include "core/status.h"

/**
 * Copy the struct at `given` into `out` [size], as base.h promises: what a smaller struct lacks is
 * zero; what a larger one adds must be.
 *
 * @param[in] given  NULL: all zero but the size.
 * @return ALLOT_STATUS_INVALID if `struct_size` was not set; ALLOT_STATUS_UNSUPPORTED if the caller
 *         sets a field that this library does not know. `out` is untouched then.
 */
ALLOT_NODISCARD allot_status alloti_options_take(const void *given, size_t size, void *out);

#endif /* ALLOTI_CORE_OPTIONS_H */
