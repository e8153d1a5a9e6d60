/* SPDX-License-Identifier: MIT */
/**
 * Whether device memory holds bytes.
 *
 * In a dry run it does not: nothing is committed, what is read is zero or what values.h knows. With
 * "bytes:real" each device address has a page of host memory at a fixed distance, where copies and
 * fills really happen; the device address itself stays inaccessible, so that host code that touches
 * it fails as on real hardware. Physical memory of the virtual memory calls is a memory file,
 * mapped at that distance wherever the program maps it. Tasks (task.h) move these bytes, when their
 * turn in a stream has come (queue.h).
 */
#ifndef ALLOTI_STANDIN_BYTES_H
#define ALLOTI_STANDIN_BYTES_H

#include <allot/base.h>

#include "standin/abi.h"
#include "standin/rule.h"

struct standin;

/** Back a new block with memory. */
cuda_status bytes_commit(struct standin *state, uint64_t address, uint64_t extent);

/** Let a block's memory go. */
void bytes_release(struct standin *state, uint64_t address, uint64_t extent);

/** A memory file for physical memory; -1 without real bytes or on failure. */
int bytes_file(const struct standin *state, uint64_t size);

/** Turn the memory of a block into such a file, with its bytes; -1 on failure. */
int bytes_share(struct standin *state, uint64_t address, uint64_t extent);

/** Map a file of another process; without real bytes nothing is done. */
cuda_status bytes_map_foreign(struct standin *state, uint64_t address, uint64_t extent,
                              long process, int file);

/** Map part of such a file at an address. */
cuda_status bytes_map(struct standin *state, uint64_t address, uint64_t size, int file,
                      uint64_t offset);

/**
 * Whether a device may use a range of device memory, that is: allocated or mapped throughout,
 * within one allocation, access granted. CUDA_INVALID_VALUE or, where access was not granted,
 * CUDA_ILLEGAL_ADDRESS; blames `where`, or the call that runs if it is NULL.
 */
cuda_status bytes_check(struct standin *state, uint32_t device, const rule_place *where,
                        uint64_t address, uint64_t size, bool is_write);

/**
 * Whether a range has memory behind it that a device may use: what remains to be asked when work
 * runs, since a pool's memory may by then have been freed and given to later work.
 */
cuda_status bytes_check_backing(struct standin *state, uint32_t device, const rule_place *where,
                                uint64_t address, uint64_t size, bool is_write);

/**
 * A copy at once, outside of all streams. Without real bytes: what a copy between any two places
 * changes on the host.
 */
void bytes_copy(struct standin *state, void *to, const void *from, uint64_t size);

/** Without real bytes: what setting every byte changes on the host. */
void bytes_set(struct standin *state, void *to, int value, uint64_t size);

#endif /* ALLOTI_STANDIN_BYTES_H */
