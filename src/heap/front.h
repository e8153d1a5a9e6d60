/* SPDX-License-Identifier: MIT */
/**
 * The front cache of an arena: freed blocks that no other stream used, kept as they are for
 * requests of the same size on the same stream. They need the front's lock only, so that threads
 * with a stream each do not meet.
 */
#ifndef ALLOTI_HEAP_FRONT_H
#define ALLOTI_HEAP_FRONT_H

#include "heap/heap.h"

ALLOT_NODISCARD allot_status alloti_front_init(heap_front *front);
void alloti_front_fini(heap_front *front);

/**
 * Take a block of exactly this size out of an arena's front and hand it out, with `requested` bytes
 * and a new generation; ALLOT_NONE if there is none, or the arena is no longer the one of this pool
 * and stream.
 */
uint32_t alloti_front_pop(allot_heap *heap, uint32_t index, const allot_request *request,
                          uint64_t size, uint64_t bits);

/** Keep a block that was retired, if it suits: false if it does not, and nothing has changed. */
bool alloti_front_push(allot_heap *heap, uint32_t block);

/** Give everything in a front back to its segments; how many bytes that was. Under the heap's lock.
 */
uint64_t alloti_front_flush(allot_heap *heap, uint32_t index);

/** The same for all arenas. */
uint64_t alloti_front_flush_all(allot_heap *heap);

/** What fronts hold and handed out, added up. */
typedef struct front_sums {
    uint64_t bytes;
    uint64_t count;
    uint64_t requested; /**< Modulo 2^64, see heap_front. */
    uint64_t pop_count;
    uint64_t pop_bytes;
    uint64_t pop_requested;
} front_sums;

/** Add what the front of an arena holds, and what it handed out by sizes to `histogram` [64] unless
 * that is NULL. */
void alloti_front_add_up(allot_heap *heap, uint32_t arena, front_sums *sums, uint64_t *histogram);

/** Hold all fronts still, under the heap's lock. */
void alloti_front_lock_all(allot_heap *heap);
void alloti_front_unlock_all(allot_heap *heap);

#endif /* ALLOTI_HEAP_FRONT_H */
