/* SPDX-License-Identifier: MIT */
#include "trace/intern.h"

#include <stdlib.h>

#include "core/array.h"

struct alloti_intern_slot {
    uint32_t hash;
    uint32_t index; /**< ALLOT_NONE: empty. */
};

enum { SLOTS_MIN = 64 };

void alloti_intern_fini(alloti_intern *table)
{
    free(table->slots);
    *table = (alloti_intern){0};
}

uint32_t alloti_intern_find(const alloti_intern *table, uint64_t hash, alloti_intern_equal equal,
                            const void *owner, const void *key)
{
    if (table->slots == NULL) {
        return ALLOT_NONE;
    }
    const uint32_t low = (uint32_t)hash;
    for (uint64_t i = low & table->mask;; i = (i + 1) & table->mask) {
        const struct alloti_intern_slot *const slot = &table->slots[i];
        if (slot->index == ALLOT_NONE) {
            return ALLOT_NONE;
        }
        if (slot->hash == low && equal(owner, slot->index, key)) {
            return slot->index;
        }
    }
}

static void put(struct alloti_intern_slot *slots, uint64_t mask, uint32_t hash, uint32_t index)
{
    uint64_t i = hash & mask;
    while (slots[i].index != ALLOT_NONE) {
        i = (i + 1) & mask;
    }
    slots[i] = (struct alloti_intern_slot){.hash = hash, .index = index};
}

static allot_status grow(alloti_intern *table)
{
    const uint64_t old = table->slots == NULL ? 0 : table->mask + 1;
    const uint64_t size = old == 0 ? SLOTS_MIN : old * 2;
    struct alloti_intern_slot *const slots = alloti_alloc_array(size, sizeof *slots);
    if (slots == NULL) {
        return alloti_fail_memory(size * sizeof *slots);
    }
    for (uint64_t i = 0; i < size; i++) {
        slots[i].index = ALLOT_NONE;
    }
    for (uint64_t i = 0; i < old; i++) {
        if (table->slots[i].index != ALLOT_NONE) {
            put(slots, size - 1, table->slots[i].hash, table->slots[i].index);
        }
    }
    free(table->slots);
    table->slots = slots;
    table->mask = size - 1;
    return ALLOT_STATUS_OK;
}

allot_status alloti_intern_add(alloti_intern *table, uint64_t hash, uint32_t index)
{
    const uint64_t size = table->slots == NULL ? 0 : table->mask + 1;
    if (size == 0 || table->count >= size / 4 * 3) {
        const allot_status status = grow(table);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    put(table->slots, table->mask, (uint32_t)hash, index);
    table->count++;
    return ALLOT_STATUS_OK;
}
