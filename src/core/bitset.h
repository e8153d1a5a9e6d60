/* SPDX-License-Identifier: MIT */
/**
 * A set of small integers that can say which member comes next. Bits in words, and above them words
 * that say which words are not empty, up to a single word: each question looks at one word a level,
 * at most six of them.
 */
#ifndef ALLOTI_CORE_BITSET_H
#define ALLOTI_CORE_BITSET_H

#include "core/status.h"

enum { ALLOTI_BITSET_LEVELS = 6 };

typedef struct alloti_bitset {
    uint64_t *words[ALLOTI_BITSET_LEVELS]; /**< Level 0 holds the members. */
    unsigned level_count;
    uint32_t size; /**< Members are below it. */
} alloti_bitset;

/** An empty set of numbers below `size`. */
ALLOT_NODISCARD allot_status alloti_bitset_init(alloti_bitset *set, uint32_t size);
void alloti_bitset_fini(alloti_bitset *set);

void alloti_bitset_add(alloti_bitset *set, uint32_t member);
void alloti_bitset_remove(alloti_bitset *set, uint32_t member);

/** Smallest member >= from, ALLOT_NONE if there is none. */
uint32_t alloti_bitset_next(const alloti_bitset *set, uint32_t from);
/** Largest member <= from, ALLOT_NONE if there is none. */
uint32_t alloti_bitset_previous(const alloti_bitset *set, uint32_t from);

#endif /* ALLOTI_CORE_BITSET_H */
