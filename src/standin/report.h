/* SPDX-License-Identifier: MIT */
/**
 * What the stand-in has to confess when the process ends: calls answered by guess, functions that
 * were looked up and are missing, what was read from the device, memory at its peak. Counting is
 * lock-free, since stubs are called from anywhere.
 */
#ifndef ALLOTI_STANDIN_REPORT_H
#define ALLOTI_STANDIN_REPORT_H

#include <allot/base.h>
#include <stdatomic.h>

/** One function that is answered by guess: a static of its stub. */
typedef struct report_guess {
    const char *name;
    atomic_uint_least64_t calls;
    struct report_guess *next; /**< In the list of those that were called. */
} report_guess;

/** Count a call; false in strict mode, in which the call must fail. */
bool report_guess_call(report_guess *guess);

/** Count a look-up of a function that does not exist here. */
void report_missing(const char *name);

/**
 * Note that the code at `address` asks for tables that only a CUDA runtime asks for: a runtime that
 * is built into the program or into a library of it, whose calls never reach the stand-in.
 */
void report_own_runtime(const void *address);

/** Write the report if the settings name a file. Called when the process ends. */
void report_write(void);

/** The same for a process that is about to end without running exit handlers. */
__attribute__((visibility("default"))) void allot_standin_write_report(void);

#endif /* ALLOTI_STANDIN_REPORT_H */
