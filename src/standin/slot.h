/* SPDX-License-Identifier: MIT */
/**
 * Handles of the stand-in, which are pointers to programs; what they are made of stands in
 * core/slot.h. Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_SLOT_H
#define ALLOTI_STANDIN_SLOT_H

#include "core/slot.h"

/** First byte of a handle: which table it belongs to. */
typedef enum slot_kind {
    SLOT_EVENT = 'e',
    SLOT_POOL = 'p',
    SLOT_GRAPH = 'g',
    SLOT_EXEC = 'x',
} slot_kind;

/** Enter an object; NULL without host memory. */
static inline void *slot_add(alloti_slots *table, slot_kind kind, void *object)
{
    return (void *)(uintptr_t)alloti_slots_add(table, (uint8_t)kind, object);
}

/** The object of a live handle of this kind, else NULL. */
static inline void *slot_get(const alloti_slots *table, slot_kind kind, const void *handle)
{
    return alloti_slots_get(table, (uint8_t)kind, (uintptr_t)handle);
}

/** Forget the object of a live handle. */
static inline void slot_remove(alloti_slots *table, const void *handle)
{
    alloti_slots_remove(table, (uintptr_t)handle);
}

#endif /* ALLOTI_STANDIN_SLOT_H */
