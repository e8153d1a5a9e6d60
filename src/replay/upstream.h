/* SPDX-License-Identifier: MIT */
/**
 * The driver as the comparison models see it: grants ranges at ascending addresses, none twice, up
 * to a limit, and counts what it was asked.
 */
#ifndef ALLOTI_REPLAY_UPSTREAM_H
#define ALLOTI_REPLAY_UPSTREAM_H

#include <stdbool.h>
#include <stdint.h>

/** Ranges begin at multiples of this, as those of cudaMalloc for large sizes do. */
#define ALLOTI_UPSTREAM_ALIGN (UINT64_C(2) << 20)

typedef struct alloti_upstream {
    uint64_t limit;    /**< Bytes it can give; UINT64_MAX for no limit. */
    uint64_t reserved; /**< Bytes given and not returned. */
    uint64_t next;     /**< Next address, a multiple of ALLOTI_UPSTREAM_ALIGN. */
    uint64_t take_count;
    uint64_t give_count;
    uint64_t bytes_taken;
    uint64_t bytes_given;
} alloti_upstream;

/** Address of the first range: a multiple of every granule in use. */
#define ALLOTI_UPSTREAM_START UINT64_C(0x7f0000000000)

/** Take `size` bytes above 0; false, with nothing changed, if there is no room. */
bool alloti_upstream_take(alloti_upstream *up, uint64_t size, uint64_t *address);

/** Give back `size` bytes in one call. */
void alloti_upstream_give(alloti_upstream *up, uint64_t size);

#endif /* ALLOTI_REPLAY_UPSTREAM_H */
