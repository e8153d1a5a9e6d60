/* SPDX-License-Identifier: MIT */
/**
 * A hash table from 64-bit numbers (addresses) to 32-bit indices. Entries are added and changed but
 * never removed: owners mark in their own arrays what is gone. Keys come from untrusted files, so
 * the hash is mixed well; probing is linear.
 */
#ifndef ALLOTI_CORE_MAP64_H
#define ALLOTI_CORE_MAP64_H

#include "core/status.h"

typedef struct alloti_map64 {
    uint64_t *keys;   /**< [mask + 1] */
    uint32_t *values; /**< [mask + 1]; ALLOT_NONE: the slot is empty. */
    uint64_t mask;    /**< Slots - 1; 0 while there are none. */
    uint64_t count;
} alloti_map64;

void alloti_map64_fini(alloti_map64 *map);

/** Value of a key, ALLOT_NONE if it is not there. */
uint32_t alloti_map64_get(const alloti_map64 *map, uint64_t key);

/** Set the value of a key; not ALLOT_NONE. */
ALLOT_NODISCARD allot_status alloti_map64_set(alloti_map64 *map, uint64_t key, uint32_t value);

#endif /* ALLOTI_CORE_MAP64_H */
