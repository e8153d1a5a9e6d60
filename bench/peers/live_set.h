/* SPDX-License-Identifier: MIT */
/**
 * The ranges that are in use, to see whether two of them overlap: a sorted array, as simple as can
 * be, since it judges allocators.
 */
#ifndef BENCH_PEERS_LIVE_SET_H
#define BENCH_PEERS_LIVE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct live_range {
    uint64_t begin, end;
} live_range;

/** Zero-initialised, it is empty; free(ranges) releases it. */
typedef struct live_set {
    live_range *ranges; /**< [count] By rising begin. */
    size_t count, capacity;
} live_set;

/**
 * Add a range. False if it overlaps one that is there, which is left in *other, or if memory is
 * short: *other is empty then. Nothing is added in either case.
 */
bool live_set_add(live_set *set, live_range range, live_range *other);

/** Remove the range that begins there; false if there is none. */
bool live_set_remove(live_set *set, uint64_t begin);

#endif /* BENCH_PEERS_LIVE_SET_H */
