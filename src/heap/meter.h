/* SPDX-License-Identifier: MIT */
/**
 * Figures over time, as allot_stat. Guarded by the heap's lock. What passes through a front cache
 * is not counted here but in the front: to the meters a block in a front is handed out still.
 */
#ifndef ALLOTI_HEAP_METER_H
#define ALLOTI_HEAP_METER_H

#include <allot/heap.h>

typedef struct heap_meter {
    uint64_t current;
    uint64_t allocated;
    uint64_t peak;
} heap_meter;

/** One meter for each of ALLOT_HEAP_STAT_LIST. */
typedef struct heap_meters {
#define HEAP_METER_MEMBER(name, text) heap_meter name;
    ALLOT_HEAP_STAT_LIST(HEAP_METER_MEMBER)
#undef HEAP_METER_MEMBER
} heap_meters;

static inline void heap_meter_add(heap_meter *meter, uint64_t by)
{
    meter->current += by;
    meter->allocated += by;
    meter->peak = meter->current > meter->peak ? meter->current : meter->peak;
}

static inline void heap_meter_sub(heap_meter *meter, uint64_t by)
{
    meter->current -= by;
}

#endif /* ALLOTI_HEAP_METER_H */
