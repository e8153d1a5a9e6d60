/* SPDX-License-Identifier: MIT */
/**
 * Whether device memory holds bytes.
 *
 * In a dry run it does not: nothing is committed, what is read is zero or what values.h knows. With
 * "bytes:real" each device address has a page of host memory at a fixed distance, where copies and
 * fills really happen; the device address itself stays inaccessible, so that host code that touches
 * it fails as on real hardware. Physical memory of the virtual memory calls is a memory file,
 * mapped at that distance wherever the program maps it. Commands run as they are issued: true
 * asynchrony belongs here too, as a queue in front of these functions.
 */
#ifndef ALLOTI_STANDIN_BYTES_H
#define ALLOTI_STANDIN_BYTES_H

#include <allot/base.h>

#include "standin/abi.h"

struct standin;

/** Back a new block with memory. */
cuda_status bytes_commit(struct standin *state, uint64_t address, uint64_t extent);

/** Let a block's memory go. */
void bytes_release(struct standin *state, uint64_t address, uint64_t extent);

/** A memory file for physical memory; -1 without real bytes or on failure. */
int bytes_file(const struct standin *state, uint64_t size);

/** Map part of such a file at an address. */
cuda_status bytes_map(struct standin *state, uint64_t address, uint64_t size, int file,
                      uint64_t offset);

/**
 * Copy between any two places, device or host. Device ranges are checked against the blocks with
 * real bytes: CUDA_INVALID_VALUE or, where access was not granted, CUDA_ILLEGAL_ADDRESS.
 */
cuda_status bytes_copy(struct standin *state, void *to, const void *from, uint64_t size);

/** Set every byte. */
cuda_status bytes_set(struct standin *state, void *to, int value, uint64_t size);

#endif /* ALLOTI_STANDIN_BYTES_H */
