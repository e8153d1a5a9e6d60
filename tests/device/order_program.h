/* SPDX-License-Identifier: MIT */
/**
 * Random programs that find a heap which gives memory away too early.
 *
 * Several streams are given long chains of fills and copies on blocks, each block is freed at once,
 * and its memory is asked for again, on the same and on other streams. Nobody waits. Whenever a
 * block holds a known value, pieces of it are copied, on the stream that uses it, to a log outside
 * of the heap. In the end the log is read: a piece with another value was written to by a later
 * owner before an earlier one was done, or the other way round.
 */
#ifndef ORDER_PROGRAM_H
#define ORDER_PROGRAM_H

#include <allot/heap.h>

typedef struct order_options {
    allot_heap_options heap;
    bool compacts;
    uint64_t seed;
    uint32_t steps;
} order_options;

/**
 * Run a program and release all that it used; what fails fails the test.
 *
 * @param[in] device  For the program's own work.
 * @param[in] under   What the heap is made over: `device`, or a wrapper over it.
 * @return Pieces of the log that hold another value than they should; 0 without bytes.
 */
uint64_t order_run(allot_device *device, allot_device *under, const order_options *options);

#endif /* ORDER_PROGRAM_H */
