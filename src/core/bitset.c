/* SPDX-License-Identifier: MIT */
#include "core/bitset.h"

#include <assert.h>
#include <stdlib.h>

#include "core/array.h"

enum { WORD_BITS = 64, WORD_SHIFT = 6 };

static uint64_t bit_of(uint32_t member)
{
    return UINT64_C(1) << (member % WORD_BITS);
}

allot_status alloti_bitset_init(alloti_bitset *set, uint32_t size)
{
    *set = (alloti_bitset){.size = size};
    uint64_t count = size;
    do {
        count = (count + WORD_BITS - 1) / WORD_BITS;
        count = count == 0 ? 1 : count;
        uint64_t *const words = alloti_calloc_array(count, sizeof *words);
        if (words == NULL) {
            alloti_bitset_fini(set);
            return alloti_fail_memory(count * sizeof *words);
        }
        set->words[set->level_count++] = words;
    } while (count > 1);
    return ALLOT_STATUS_OK;
}

void alloti_bitset_fini(alloti_bitset *set)
{
    for (unsigned level = 0; level < set->level_count; level++) {
        free(set->words[level]);
    }
    *set = (alloti_bitset){0};
}

void alloti_bitset_add(alloti_bitset *set, uint32_t member)
{
    assert(member < set->size);
    for (unsigned level = 0; level < set->level_count; level++, member >>= WORD_SHIFT) {
        set->words[level][member >> WORD_SHIFT] |= bit_of(member);
    }
}

void alloti_bitset_remove(alloti_bitset *set, uint32_t member)
{
    assert(member < set->size);
    for (unsigned level = 0; level < set->level_count; level++, member >>= WORD_SHIFT) {
        uint64_t *const word = &set->words[level][member >> WORD_SHIFT];
        *word &= ~bit_of(member);
        if (*word != 0) {
            return;
        }
    }
}

uint32_t alloti_bitset_next(const alloti_bitset *set, uint32_t from)
{
    if (from >= set->size) {
        return ALLOT_NONE;
    }
    uint64_t at = from;
    uint64_t size = set->size;
    for (unsigned level = 0; level < set->level_count && at < size; level++) {
        const uint64_t rest = set->words[level][at / WORD_BITS] & (UINT64_MAX << (at % WORD_BITS));
        if (rest != 0) {
            at = at / WORD_BITS * WORD_BITS + (unsigned)__builtin_ctzll(rest);
            while (level > 0) {
                level--;
                at = at * WORD_BITS + (unsigned)__builtin_ctzll(set->words[level][at]);
            }
            return (uint32_t)at;
        }
        at = at / WORD_BITS + 1;
        size = (size + WORD_BITS - 1) / WORD_BITS;
    }
    return ALLOT_NONE;
}

uint32_t alloti_bitset_previous(const alloti_bitset *set, uint32_t from)
{
    if (set->size == 0) {
        return ALLOT_NONE;
    }
    uint64_t at = from < set->size ? from : set->size - 1;
    for (unsigned level = 0; level < set->level_count; level++) {
        const uint64_t mask = UINT64_MAX >> (WORD_BITS - 1 - at % WORD_BITS);
        const uint64_t rest = set->words[level][at / WORD_BITS] & mask;
        if (rest != 0) {
            at = at / WORD_BITS * WORD_BITS + 63u - (unsigned)__builtin_clzll(rest);
            while (level > 0) {
                level--;
                at = at * WORD_BITS + 63u - (unsigned)__builtin_clzll(set->words[level][at]);
            }
            return (uint32_t)at;
        }
        if (at < WORD_BITS) {
            return ALLOT_NONE;
        }
        at = at / WORD_BITS - 1;
    }
    return ALLOT_NONE;
}
