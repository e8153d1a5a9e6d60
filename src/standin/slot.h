/* SPDX-License-Identifier: MIT */
/**
 * Handles that programs hold for our objects: a number made of a kind, a generation and a place in
 * a table, never an address. A handle that is used after its object was destroyed names a
 * generation that is over, and one of another kind or made up names none: both are told from live
 * ones without reading memory that may be gone.
 *
 * Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_SLOT_H
#define ALLOTI_STANDIN_SLOT_H

#include <allot/base.h>

/** First byte of a handle: which table it belongs to. */
typedef enum slot_kind {
    SLOT_EVENT = 'e',
    SLOT_POOL = 'p',
    SLOT_GRAPH = 'g',
    SLOT_EXEC = 'x',
} slot_kind;

typedef struct slot_entry {
    void *object;        /**< NULL: free. */
    uint32_t generation; /**< Counts what lay here; wraps after 2^24. */
    uint32_t next_free;  /**< While free: index + 1 of the next one; 0: the last. */
} slot_entry;

typedef struct slot_table {
    slot_entry *slots;
    uint64_t count;
    uint64_t capacity;
    uint32_t first_free; /**< Index + 1; 0: none. */
} slot_table;

/** Enter an object; NULL without host memory. */
void *slot_add(slot_table *table, slot_kind kind, void *object);

/** The object of a live handle of this kind, else NULL. */
void *slot_get(const slot_table *table, slot_kind kind, const void *handle);

/** Forget the object of a live handle. */
void slot_remove(slot_table *table, const void *handle);

void slot_fini(slot_table *table);

#endif /* ALLOTI_STANDIN_SLOT_H */
