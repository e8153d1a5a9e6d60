/* SPDX-License-Identifier: MIT */
#include "core/map64.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/mix.h"

enum { SLOTS_MIN = 64 };

void alloti_map64_fini(alloti_map64 *map)
{
    free(map->keys);
    free(map->values);
    *map = (alloti_map64){0};
}

/* Slot of the key, or the empty one where it belongs. */
static uint64_t find_slot(const alloti_map64 *map, uint64_t key)
{
    uint64_t slot = alloti_mix64(key) & map->mask;
    while (map->values[slot] != ALLOT_NONE && map->keys[slot] != key) {
        slot = (slot + 1) & map->mask;
    }
    return slot;
}

uint32_t alloti_map64_get(const alloti_map64 *map, uint64_t key)
{
    return map->count == 0 ? ALLOT_NONE : map->values[find_slot(map, key)];
}

static allot_status grow(alloti_map64 *map)
{
    const uint64_t slots = map->mask == 0 ? SLOTS_MIN : 2 * (map->mask + 1);
    alloti_map64 fresh = {.keys = alloti_alloc_array(slots, sizeof *fresh.keys),
                          .values = alloti_alloc_array(slots, sizeof *fresh.values),
                          .mask = slots - 1};
    if (fresh.keys == NULL || fresh.values == NULL) {
        alloti_map64_fini(&fresh);
        return alloti_fail_memory(slots * (sizeof *fresh.keys + sizeof *fresh.values));
    }
    memset(fresh.values, 0xff, (size_t)slots * sizeof *fresh.values);
    for (uint64_t i = 0; map->mask != 0 && i <= map->mask; i++) {
        if (map->values[i] != ALLOT_NONE) {
            const uint64_t slot = find_slot(&fresh, map->keys[i]);
            fresh.keys[slot] = map->keys[i];
            fresh.values[slot] = map->values[i];
        }
    }
    free(map->keys);
    free(map->values);
    map->keys = fresh.keys;
    map->values = fresh.values;
    map->mask = fresh.mask;
    return ALLOT_STATUS_OK;
}

allot_status alloti_map64_set(alloti_map64 *map, uint64_t key, uint32_t value)
{
    if (map->mask == 0 || 2 * map->count > map->mask) {
        const allot_status status = grow(map);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    const uint64_t slot = find_slot(map, key);
    map->count += map->values[slot] == ALLOT_NONE;
    map->keys[slot] = key;
    map->values[slot] = value;
    return ALLOT_STATUS_OK;
}
