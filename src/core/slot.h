/* SPDX-License-Identifier: MIT */
/**
 * Handles that programs hold for our objects: a number made of a kind, a generation and a place in
 * a table, never an address. A handle that is used after its object was destroyed names a
 * generation that is over, and one of another kind or made up names none: both are told from live
 * ones without reading memory that may be gone.
 *
 * Not thread-safe: guarded by the owner's lock.
 */
#ifndef ALLOTI_CORE_SLOT_H
#define ALLOTI_CORE_SLOT_H

#include <allot/base.h>

typedef struct alloti_slot {
    void *object;        /**< NULL: free. */
    uint32_t generation; /**< Counts what lay here; wraps after 2^24. */
    uint32_t next_free;  /**< While free: index + 1 of the next one; 0: the last. */
} alloti_slot;

/** Empty when zero-initialised. */
typedef struct alloti_slots {
    alloti_slot *slots; /**< [count]; those with an object are in use. */
    uint64_t count;
    uint64_t capacity;
    uint32_t first_free; /**< Index + 1; 0: none. */
} alloti_slots;

/**
 * Enter an object, which is not NULL.
 *
 * @param[in] kind  First byte of the handle: which table it belongs to.
 * @return Its handle; 0 without host memory.
 */
uint64_t alloti_slots_add(alloti_slots *slots, uint8_t kind, void *object);

/** The object of a live handle of this kind, else NULL. */
void *alloti_slots_get(const alloti_slots *slots, uint8_t kind, uint64_t handle);

/** Forget the object of a live handle. */
void alloti_slots_remove(alloti_slots *slots, uint64_t handle);

/** Release the table, not the objects. */
void alloti_slots_fini(alloti_slots *slots);

#endif /* ALLOTI_CORE_SLOT_H */
