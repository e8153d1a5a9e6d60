/* SPDX-License-Identifier: MIT */
/**
 * An open-addressing hash table from content to a 32-bit index. The content itself lies in arrays
 * of the owner, who compares; the table keeps 32 bits of the hash beside the index.
 */
#ifndef ALLOTI_TRACE_INTERN_H
#define ALLOTI_TRACE_INTERN_H

#include <allot/base.h>

typedef struct alloti_intern {
    struct alloti_intern_slot *slots;
    uint64_t mask; /**< Slots - 1; 0 while there are none. */
    uint64_t count;
} alloti_intern;

/** Whether entry `index` of the owner has the content that is looked for. */
typedef bool (*alloti_intern_equal)(const void *owner, uint32_t index, const void *key);

void alloti_intern_fini(alloti_intern *table);

/** Index of the entry with this hash and content, ALLOT_NONE if there is none. */
uint32_t alloti_intern_find(const alloti_intern *table, uint64_t hash, alloti_intern_equal equal,
                            const void *owner, const void *key);

/** Add an entry that find() did not find. */
ALLOT_NODISCARD allot_status alloti_intern_add(alloti_intern *table, uint64_t hash, uint32_t index);

#endif /* ALLOTI_TRACE_INTERN_H */
