/* SPDX-License-Identifier: MIT */
/**
 * From the addresses of pointers to their handles, for several threads: shards with a lock each, in
 * each a table with open addressing, linear probing and removal by moving back (Knuth, volume 3,
 * 6.4, algorithm R), so that no marks of removed entries pile up. Handles, since the place of a
 * block may be another's by the time that an address was looked up.
 */
#ifndef ALLOTI_HEAP_ADDRESS_MAP_H
#define ALLOTI_HEAP_ADDRESS_MAP_H

#include <allot/heap.h>
#include <pthread.h>

#include "core/status.h"

enum { ADDRESS_SHARDS = 16 };

typedef struct address_shard {
    pthread_mutex_t mutex; /**< Guards what follows. */
    uint64_t *keys;        /**< [mask + 1] */
    uint64_t *values;      /**< [mask + 1]; 0: the slot is empty. */
    uint64_t mask;         /**< Slots - 1; 0 while there are none. */
    uint64_t count;
} address_shard;

typedef struct heap_address_map {
    address_shard shards[ADDRESS_SHARDS];
} heap_address_map;

/** Zeroed memory becomes an empty map. ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_address_map_init(heap_address_map *map);
void alloti_address_map_fini(heap_address_map *map);

/** Set the handle of an address; ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_address_map_set(heap_address_map *map, uint64_t address,
                                                    allot_handle value);

/** Handle of an address, 0 if it is not there. */
allot_handle alloti_address_map_get(heap_address_map *map, uint64_t address);

/** Take an address out, if it is there. */
void alloti_address_map_remove(heap_address_map *map, uint64_t address);

#endif /* ALLOTI_HEAP_ADDRESS_MAP_H */
