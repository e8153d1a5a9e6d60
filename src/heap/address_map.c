/* SPDX-License-Identifier: MIT */
#include "heap/address_map.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/mix.h"

enum { SLOTS_MIN = 64, SHARD_SHIFT = 60 };
_Static_assert(ADDRESS_SHARDS == 1 << (64 - SHARD_SHIFT), "the upper bits of the hash are a shard");

allot_status alloti_address_map_init(heap_address_map *map)
{
    for (int i = 0; i < ADDRESS_SHARDS; i++) {
        if (pthread_mutex_init(&map->shards[i].mutex, NULL) != 0) {
            while (i-- > 0) {
                pthread_mutex_destroy(&map->shards[i].mutex);
            }
            return alloti_fail(ALLOT_STATUS_HOST_MEMORY, "a lock could not be made");
        }
    }
    return ALLOT_STATUS_OK;
}

void alloti_address_map_fini(heap_address_map *map)
{
    for (int i = 0; i < ADDRESS_SHARDS; i++) {
        free(map->shards[i].keys);
        free(map->shards[i].values);
        pthread_mutex_destroy(&map->shards[i].mutex);
    }
}

static address_shard *shard_of(heap_address_map *map, uint64_t address)
{
    return &map->shards[alloti_mix64(address) >> SHARD_SHIFT];
}

/** Slot of an address, or the empty one where it belongs. The table has an empty slot. */
static uint64_t find_slot(const address_shard *shard, uint64_t address)
{
    uint64_t slot = alloti_mix64(address) & shard->mask;
    while (shard->values[slot] != 0 && shard->keys[slot] != address) {
        slot = (slot + 1) & shard->mask;
    }
    return slot;
}

static allot_status grow(address_shard *shard)
{
    const uint64_t slots = shard->mask == 0 ? SLOTS_MIN : 2 * (shard->mask + 1);
    address_shard fresh = {.keys = alloti_alloc_array(slots, sizeof *fresh.keys),
                           .values = alloti_calloc_array(slots, sizeof *fresh.values),
                           .mask = slots - 1};
    if (fresh.keys == NULL || fresh.values == NULL) {
        free(fresh.keys);
        free(fresh.values);
        return alloti_fail_memory(slots * (sizeof *fresh.keys + sizeof *fresh.values));
    }
    for (uint64_t i = 0; shard->mask != 0 && i <= shard->mask; i++) {
        if (shard->values[i] != 0) {
            const uint64_t slot = find_slot(&fresh, shard->keys[i]);
            fresh.keys[slot] = shard->keys[i];
            fresh.values[slot] = shard->values[i];
        }
    }
    free(shard->keys);
    free(shard->values);
    shard->keys = fresh.keys;
    shard->values = fresh.values;
    shard->mask = fresh.mask;
    return ALLOT_STATUS_OK;
}

allot_status alloti_address_map_set(heap_address_map *map, uint64_t address, allot_handle value)
{
    address_shard *const shard = shard_of(map, address);
    pthread_mutex_lock(&shard->mutex);
    allot_status status = ALLOT_STATUS_OK;
    if (shard->mask == 0 || 2 * shard->count > shard->mask) {
        status = grow(shard);
        /* A fuller table is slower, not wrong, as long as one slot stays empty. */
        status = shard->count < shard->mask ? ALLOT_STATUS_OK : status;
    }
    if (status == ALLOT_STATUS_OK) {
        const uint64_t slot = find_slot(shard, address);
        shard->count += shard->values[slot] == 0;
        shard->keys[slot] = address;
        shard->values[slot] = value.value;
    }
    pthread_mutex_unlock(&shard->mutex);
    return status;
}

allot_handle alloti_address_map_get(heap_address_map *map, uint64_t address)
{
    address_shard *const shard = shard_of(map, address);
    pthread_mutex_lock(&shard->mutex);
    const uint64_t value = shard->count == 0 ? 0 : shard->values[find_slot(shard, address)];
    pthread_mutex_unlock(&shard->mutex);
    return (allot_handle){value};
}

/** Empty a slot and move back what was pushed beyond it. */
static void empty_slot(address_shard *shard, uint64_t hole)
{
    for (uint64_t slot = (hole + 1) & shard->mask; shard->values[slot] != 0;
         slot = (slot + 1) & shard->mask) {
        const uint64_t home = alloti_mix64(shard->keys[slot]) & shard->mask;
        /* It may fill the hole unless its home lies cyclically in (hole, slot]. */
        if (((slot - home) & shard->mask) >= ((slot - hole) & shard->mask)) {
            shard->keys[hole] = shard->keys[slot];
            shard->values[hole] = shard->values[slot];
            hole = slot;
        }
    }
    shard->values[hole] = 0;
}

void alloti_address_map_remove(heap_address_map *map, uint64_t address)
{
    address_shard *const shard = shard_of(map, address);
    pthread_mutex_lock(&shard->mutex);
    if (shard->count != 0) {
        const uint64_t slot = find_slot(shard, address);
        if (shard->values[slot] != 0) {
            empty_slot(shard, slot);
            shard->count--;
        }
    }
    pthread_mutex_unlock(&shard->mutex);
}
