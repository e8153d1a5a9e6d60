/* SPDX-License-Identifier: MIT */
#include "core/slot.h"

#include <stdlib.h>

#include "core/array.h"

enum { KIND_SHIFT = 56, GENERATION_SHIFT = 32, GENERATION_MASK = 0xffffff };

static uint64_t handle_of(uint8_t kind, uint32_t generation, uint32_t index)
{
    return (uint64_t)kind << KIND_SHIFT |
           (uint64_t)(generation & GENERATION_MASK) << GENERATION_SHIFT | (index + 1);
}

static uint32_t index_of(uint64_t handle)
{
    return (uint32_t)handle - 1;
}

uint64_t alloti_slots_add(alloti_slots *slots, uint8_t kind, void *object)
{
    uint32_t index = 0;
    if (slots->first_free != 0) {
        index = slots->first_free - 1;
        slots->first_free = slots->slots[index].next_free;
    } else {
        if (slots->count >= UINT32_MAX - 1 ||
            alloti_array_reserve(&slots->slots, &slots->capacity, slots->count + 1,
                                 sizeof *slots->slots) != ALLOT_STATUS_OK) {
            return 0;
        }
        index = (uint32_t)slots->count++;
        slots->slots[index] = (alloti_slot){0};
    }
    slots->slots[index].object = object;
    return handle_of(kind, slots->slots[index].generation, index);
}

void *alloti_slots_get(const alloti_slots *slots, uint8_t kind, uint64_t handle)
{
    const uint32_t index = index_of(handle);
    if (index >= slots->count) {
        return NULL;
    }
    const alloti_slot *const at = &slots->slots[index];
    return handle_of(kind, at->generation, index) == handle ? at->object : NULL;
}

void alloti_slots_remove(alloti_slots *slots, uint64_t handle)
{
    const uint32_t index = index_of(handle);
    alloti_slot *const at = &slots->slots[index];
    at->object = NULL;
    at->generation++;
    at->next_free = slots->first_free;
    slots->first_free = index + 1;
}

void alloti_slots_fini(alloti_slots *slots)
{
    free(slots->slots);
    *slots = (alloti_slots){0};
}
