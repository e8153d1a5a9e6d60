/* SPDX-License-Identifier: MIT */
/**
 * A set of private pools in the order in which PyTorch visits it.
 *
 * PyTorch keeps such sets in a hash table with open addressing: Fibonacci hashing of the pool's
 * number, robin-hood insertion, at most half full, twice the size when it would be fuller, never
 * smaller. A visit goes by slot, so pools come in the order of the slots they would have, and those
 * that would have the same in the order they came to the table. (Open addressing and robin-hood
 * hashing: Celis, Larson, Munro, 1985.)
 */
#ifndef ALLOTI_TORCHSIM_POOL_SET_H
#define ALLOTI_TORCHSIM_POOL_SET_H

#include <allot/base.h>

#include <stdint.h>

typedef struct sim_pool_set {
    struct sim_pool_entry *entries; /**< [count] In the order of a visit. */
    uint64_t count;
    uint64_t capacity;
    uint64_t slots; /**< Of the table; 0 before the first pool. */
} sim_pool_set;

typedef struct sim_pool_entry {
    uint64_t number; /**< What PyTorch hashes; 0: not known, behind all others. */
    uint32_t pool;
} sim_pool_entry;

/** Make room for `count` pools, so that adding cannot fail. ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_pool_set_reserve(sim_pool_set *set, uint64_t count);
/** Add a pool that is not in the set. O(count). */
void alloti_pool_set_add(sim_pool_set *set, uint32_t pool, uint64_t number);
/** Take a pool out; nothing if it is not in the set. O(count). */
void alloti_pool_set_remove(sim_pool_set *set, uint32_t pool);

#endif /* ALLOTI_TORCHSIM_POOL_SET_H */
