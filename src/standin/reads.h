/* SPDX-License-Identifier: MIT */
/**
 * Reads from the device. In a dry run their values are unknown and answered with zeros, so every
 * result that depends on one is approximate: they are counted and, for small ones, remembered with
 * the Python line. A loop that waits for a value which never comes is ended: so many one-byte reads
 * without any allocation are an error.
 */
#ifndef ALLOTI_STANDIN_READS_H
#define ALLOTI_STANDIN_READS_H

#include <allot/base.h>

#include "standin/abi.h"

enum { READ_LINES_MAX = 64, READ_LINE_SIZE = 256 };

typedef struct read_line {
    char text[READ_LINE_SIZE]; /**< "train.py:42" */
    uint64_t count;
    uint64_t size; /**< Bytes of the last one. */
} read_line;

typedef struct read_counts {
    uint64_t reads;
    uint64_t bytes;
    uint64_t small;  /**< Of up to 8 bytes: values the program acts on. */
    bool is_stopped; /**< The guard ended a loop. */
    uint32_t line_count;
    read_line lines[READ_LINES_MAX];
} read_counts;

/**
 * A read of `size` bytes into `to` happened. Called without the process's lock, since it may ask
 * Python for the line. CUDA_LAUNCH_FAILURE if the guard ends the program's loop.
 */
cuda_status read_note(void *to, uint64_t size, uint64_t allocations);

/** The counts so far. Borrowed; stable once the process ends. */
const read_counts *read_counts_get(void);

#endif /* ALLOTI_STANDIN_READS_H */
