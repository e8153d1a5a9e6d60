/* SPDX-License-Identifier: MIT */
/**
 * Plain allocations of less than a granule: they share granules, as cudaMalloc's do on real
 * hardware, where many small allocations take 2 MiB of the device together. The unit of 512 bytes
 * is what addresses of small allocations are seen to be multiples of (256 is documented); that
 * every size below a granule is shared, and lowest free units first, is a guess.
 *
 *     granule:  | a a a | b | free ... | c c | free |      4096 units, a bit and an owner each
 *
 * Granules with room are a list for each device; a request looks at a few of them only.
 *
 * Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_SMALL_H
#define ALLOTI_STANDIN_SMALL_H

#include <allot/base.h>

#include "standin/abi.h"
#include "standin/address.h"
#include "standin/config.h"

struct standin;

enum { SMALL_UNIT = 512, SMALL_UNITS = (int)(STANDIN_GRANULE / SMALL_UNIT), SMALL_WORDS = 64 };

typedef struct small_granule {
    uint64_t address; /**< 0: the entry is free. */
    uint64_t taken[SMALL_WORDS];
    uint64_t starts[SMALL_WORDS]; /**< Units that a block begins with. */
    uint32_t taken_count;
    uint32_t largest; /**< No run of more free units is here. */
    uint32_t device;
    uint32_t next; /**< In the list of those with room, or of free entries: index + 1; 0: none. */
    uint32_t previous;
    uint32_t owners[SMALL_UNITS]; /**< Of each start, the block. Pages not touched cost nothing. */
} small_granule;

typedef struct small_state {
    small_granule **granules;
    uint64_t count;
    uint64_t capacity;
    uint32_t free;                      /**< First free entry: index + 1; 0: none. */
    uint32_t open[STANDIN_DEVICES_MAX]; /**< First of each list with room, likewise. */
} small_state;

/** Allocate less than a granule; charges the device for a granule when none has room. */
cuda_status small_allocate(struct standin *state, uint32_t device, uint64_t size,
                           uint64_t *address);

/** Free the block of this index; gives the granule back with its last one. */
void small_free(struct standin *state, uint32_t index);

/** Block that holds an address of granule `owner`; ALLOT_NONE for none. */
uint32_t small_find(const struct standin *state, uint32_t owner, uint64_t address);

#endif /* ALLOTI_STANDIN_SMALL_H */
