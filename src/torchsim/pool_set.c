/* SPDX-License-Identifier: MIT */
#include "torchsim/pool_set.h"

#include "core/array.h"
#include "core/size_math.h"

#include <string.h>

/** 2^64 divided by the golden ratio, as Fibonacci hashing has it. */
static const uint64_t FIBONACCI = 11400714819323198485ull;

enum { SLOTS_FIRST = 4 };

/** The slot that a pool would have in an empty table. */
static uint64_t slot_of(const sim_pool_set *set, const sim_pool_entry *entry)
{
    return entry->number == 0 ? UINT64_MAX
                              : entry->number * FIBONACCI >> (64 - alloti_log2(set->slots));
}

/** Put an entry behind all of the first `count` that have its slot or one before. */
static void place(sim_pool_set *set, uint64_t count, sim_pool_entry entry)
{
    uint64_t at = count;
    while (at > 0 && slot_of(set, &set->entries[at - 1]) > slot_of(set, &entry)) {
        set->entries[at] = set->entries[at - 1];
        at--;
    }
    set->entries[at] = entry;
}

allot_status alloti_pool_set_reserve(sim_pool_set *set, uint64_t count)
{
    return alloti_array_reserve(&set->entries, &set->capacity, count, sizeof(*set->entries));
}

void alloti_pool_set_add(sim_pool_set *set, uint32_t pool, uint64_t number)
{
    if (2 * (set->count + 1) > set->slots) {
        set->slots = set->slots == 0 ? SLOTS_FIRST : 2 * set->slots;
        for (uint64_t i = 1; i < set->count; i++) {
            place(set, i, set->entries[i]);
        }
    }
    place(set, set->count++, (sim_pool_entry){.number = number, .pool = pool});
}

void alloti_pool_set_remove(sim_pool_set *set, uint32_t pool)
{
    for (uint64_t i = 0; i < set->count; i++) {
        if (set->entries[i].pool == pool) {
            set->count--;
            memmove(&set->entries[i], &set->entries[i + 1],
                    (size_t)(set->count - i) * sizeof(*set->entries));
            return;
        }
    }
}
