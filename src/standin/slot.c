/* SPDX-License-Identifier: MIT */
#include "standin/slot.h"

#include <stdlib.h>

#include "core/array.h"

enum { KIND_SHIFT = 56, GENERATION_SHIFT = 32, GENERATION_MASK = 0xffffff };

static void *handle_of(slot_kind kind, uint32_t generation, uint32_t index)
{
    return (void *)(uintptr_t)((uint64_t)kind << KIND_SHIFT |
                               (uint64_t)(generation & GENERATION_MASK) << GENERATION_SHIFT |
                               (index + 1));
}

static uint32_t index_of(const void *handle)
{
    return (uint32_t)(uintptr_t)handle - 1;
}

void *slot_add(slot_table *table, slot_kind kind, void *object)
{
    uint32_t index = 0;
    if (table->first_free != 0) {
        index = table->first_free - 1;
        table->first_free = table->slots[index].next_free;
    } else {
        if (table->count >= UINT32_MAX - 1 ||
            alloti_array_reserve(&table->slots, &table->capacity, table->count + 1,
                                 sizeof *table->slots) != ALLOT_STATUS_OK) {
            return NULL;
        }
        index = (uint32_t)table->count++;
        table->slots[index] = (slot_entry){0};
    }
    table->slots[index].object = object;
    return handle_of(kind, table->slots[index].generation, index);
}

void *slot_get(const slot_table *table, slot_kind kind, const void *handle)
{
    const uint32_t index = index_of(handle);
    if (index >= table->count) {
        return NULL;
    }
    const slot_entry *const at = &table->slots[index];
    return handle_of(kind, at->generation, index) == handle ? at->object : NULL;
}

void slot_remove(slot_table *table, const void *handle)
{
    const uint32_t index = index_of(handle);
    slot_entry *const at = &table->slots[index];
    at->object = NULL;
    at->generation++;
    at->next_free = table->first_free;
    table->first_free = index + 1;
}

void slot_fini(slot_table *table)
{
    free(table->slots);
    *table = (slot_table){0};
}
