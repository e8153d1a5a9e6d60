/* SPDX-License-Identifier: MIT */
/**
 * Host memory that CUDA knows: pinned, registered, managed. All of it is real memory; the ranges
 * are an array sorted by address, so that any address inside is found.
 *
 * Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_HOST_H
#define ALLOTI_STANDIN_HOST_H

#include <allot/base.h>

#include "standin/abi.h"

typedef enum host_kind {
    HOST_PINNED,     /**< Ours; page-aligned, from the system. */
    HOST_REGISTERED, /**< The program's. */
    HOST_MANAGED,    /**< Ours; device and host see it. */
} host_kind;

typedef struct host_range {
    uint64_t address;
    uint64_t size;
    uint32_t device; /**< Current at the call. */
    host_kind kind;
} host_range;

typedef struct host_state {
    host_range *ranges; /**< Sorted, disjoint. */
    uint64_t count;
    uint64_t capacity;
    uint64_t pinned; /**< Bytes now. */
    uint64_t pinned_peak;
    uint64_t managed;
    uint64_t managed_peak;
} host_state;

void host_fini(host_state *host);

/** Allocate pinned or managed memory; zeroed. */
cuda_status host_allocate(host_state *host, uint64_t size, uint32_t device, host_kind kind,
                          void **out);

/** Free what host_allocate() gave. CUDA_INVALID_VALUE if it did not. */
cuda_status host_free(host_state *host, const void *address, host_kind kind);

cuda_status host_register(host_state *host, const void *address, uint64_t size, uint32_t device);
cuda_status host_unregister(host_state *host, const void *address);

/** The range that holds an address, NULL for none. Borrowed: valid until the next change. */
const host_range *host_find(const host_state *host, uint64_t address);

/**
 * Zero a large piece of our own memory by giving its pages back; false if it is not ours or not
 * large, and nothing was done.
 */
bool host_clear(const host_state *host, void *address, uint64_t size);

#endif /* ALLOTI_STANDIN_HOST_H */
