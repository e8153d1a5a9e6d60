/* SPDX-License-Identifier: MIT */
/**
 * Figures over time, as allot_stat. Counted from several threads at once; relaxed, since nothing
 * else depends on them. A peak is exact as long as one thread counts at a time.
 */
#ifndef ALLOTI_HEAP_METER_H
#define ALLOTI_HEAP_METER_H

#include <allot/heap.h>
#include <stdatomic.h>

typedef struct heap_meter {
    _Atomic uint64_t current;
    _Atomic uint64_t allocated;
    _Atomic uint64_t peak;
} heap_meter;

/** One meter for each of ALLOT_HEAP_STAT_LIST. */
typedef struct heap_meters {
#define HEAP_METER_MEMBER(name, text) heap_meter name;
    ALLOT_HEAP_STAT_LIST(HEAP_METER_MEMBER)
#undef HEAP_METER_MEMBER
} heap_meters;

static inline void heap_meter_add(heap_meter *meter, uint64_t by)
{
    const uint64_t now = atomic_fetch_add_explicit(&meter->current, by, memory_order_relaxed) + by;
    atomic_fetch_add_explicit(&meter->allocated, by, memory_order_relaxed);
    uint64_t peak = atomic_load_explicit(&meter->peak, memory_order_relaxed);
    while (now > peak &&
           !atomic_compare_exchange_weak_explicit(&meter->peak, &peak, now, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

static inline void heap_meter_sub(heap_meter *meter, uint64_t by)
{
    atomic_fetch_sub_explicit(&meter->current, by, memory_order_relaxed);
}

static inline uint64_t heap_meter_get(const heap_meter *meter)
{
    return atomic_load_explicit(&meter->current, memory_order_relaxed);
}

#endif /* ALLOTI_HEAP_METER_H */
