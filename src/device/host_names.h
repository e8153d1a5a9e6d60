/* SPDX-License-Identifier: MIT */
/**
 * Numbers that stand for live objects (streams, events, memories): an index into arrays of the
 * owner, and how often that index was given out, so that a number that was used up is recognised.
 * Not thread-safe: the owner locks.
 */
#ifndef ALLOTI_DEVICE_HOST_NAMES_H
#define ALLOTI_DEVICE_HOST_NAMES_H

#include "core/status.h"

typedef struct host_name {
    uint32_t generation; /**< Odd while the index is in use. */
    uint32_t next_free;
} host_name;

typedef struct host_names {
    host_name *items; /**< [count] */
    uint64_t count;
    uint64_t capacity;
    uint32_t first_free; /**< Index + 1; 0: none. */
} host_names;

void alloti_host_names_fini(host_names *names);

/** A number that is not in use; never 0. ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD allot_status alloti_host_names_add(host_names *names, uint64_t *name);

/** Index of a number; ALLOT_NONE if it is not in use. */
uint32_t alloti_host_names_find(const host_names *names, uint64_t name);

/** A number is used up; it was in use. */
void alloti_host_names_remove(host_names *names, uint64_t name);

#endif /* ALLOTI_DEVICE_HOST_NAMES_H */
