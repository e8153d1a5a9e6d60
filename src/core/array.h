/* SPDX-License-Identifier: MIT */
/**
 * Growable arrays. The owner keeps pointer, count and capacity as plain fields of its own struct;
 * growing is by half, checked, and leaves everything as it was on failure.
 */
#ifndef ALLOTI_CORE_ARRAY_H
#define ALLOTI_CORE_ARRAY_H

#include "core/status.h"

/**
 * Make room for `need` items of `item_size` bytes in the array at *data (a pointer to the owner's
 * pointer). *capacity counts items. ALLOT_STATUS_HOST_MEMORY on failure.
 */
ALLOT_NODISCARD allot_status alloti_array_reserve(void *data, uint64_t *capacity, uint64_t need,
                                                  size_t item_size);

/** malloc(count * size) with an overflow check; NULL on failure or for no bytes. */
void *alloti_alloc_array(uint64_t count, size_t size);

/** The same, zeroed. */
void *alloti_calloc_array(uint64_t count, size_t size);

#endif /* ALLOTI_CORE_ARRAY_H */
