/* SPDX-License-Identifier: MIT */
/**
 * Reads from the device. In a dry run their values are unknown and answered with zeros, booleans by
 * rule (answer.h), so every result that depends on one is approximate: they are counted and, for
 * small ones, remembered with the Python line. A loop that waits for a value which never comes is
 * ended: so many small reads, with hardly a kernel and without any allocation of device memory in
 * between, are an error.
 */
#ifndef ALLOTI_STANDIN_READS_H
#define ALLOTI_STANDIN_READS_H

#include <allot/base.h>

#include "standin/abi.h"

enum { READ_LINES_MAX = 64, READ_LINE_SIZE = 256 };

/** What a small read is good for. */
typedef enum read_kind {
    READ_VALUE,   /**< Most often only printed. */
    READ_BOOLEAN, /**< One byte: the program decides by it. */
    READ_SIZE     /**< A count of selected elements, a length or another integer: may be a size. */
} read_kind;

typedef struct read_line {
    char text[READ_LINE_SIZE]; /**< "train.py:42" */
    read_kind kind;
    uint64_t count;
} read_line;

typedef struct read_counts {
    uint64_t reads;
    uint64_t bytes;
    uint64_t small;                     /**< Of up to 8 bytes. */
    uint64_t questions;                 /**< Of one byte. */
    bool is_stopped;                    /**< The guard ended a loop. */
    char last_question[READ_LINE_SIZE]; /**< Line of the last boolean, "" if it is not known. */
    uint32_t line_count;
    read_line lines[READ_LINES_MAX];
} read_counts;

/** What the Python side says that a read on this thread is for. */
typedef enum read_purpose {
    READ_FOR_UNKNOWN,
    READ_FOR_FLOAT,
    READ_FOR_INTEGER, /**< May become a size. */
    READ_FOR_PRINT    /**< PyTorch makes a text of a tensor. */
} read_purpose;

/** What is known of a read. */
typedef struct read_facts {
    uint64_t size;
    uint64_t allocations; /**< Of device memory, by the process so far. */
    uint64_t launches;    /**< The same for kernels. */
    const void *kernel;   /**< Function of the last kernel on the stream, NULL for none. */
} read_facts;

/**
 * A read into `to` happened, whose value is not known. Called without the process's lock, since it
 * may ask Python for the line. CUDA_LAUNCH_FAILURE if the guard ends the program's loop, or strict
 * mode refuses a size.
 */
cuda_status read_note(void *to, const read_facts *facts);

/** The counts so far. Borrowed; stable once the process ends. */
const read_counts *read_counts_get(void);

#endif /* ALLOTI_STANDIN_READS_H */
