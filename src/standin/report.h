/* SPDX-License-Identifier: MIT */
/**
 * What the stand-in has to confess when the process ends: calls answered by guess, functions that
 * were looked up and are missing, what was read from the device, memory at its peak. Counting is
 * lock-free, since stubs are called from anywhere.
 */
#ifndef ALLOTI_STANDIN_REPORT_H
#define ALLOTI_STANDIN_REPORT_H

#include <allot/workspace.h>
#include <stdatomic.h>

/** One function that is answered by guess: a static of its stub. */
typedef struct report_guess {
    const char *name;
    atomic_uint_least64_t calls;
    struct report_guess *next; /**< In the list of those that were called. */
} report_guess;

/** Count a call; false in strict mode, in which the call must fail. */
bool report_guess_call(report_guess *guess);

/** How a size that real hardware would tell came about. */
typedef enum report_basis {
    REPORT_EXACT,   /**< As real hardware answers. */
    REPORT_TABLE,   /**< From the user's table of workspaces. */
    REPORT_LIBRARY, /**< Told by the real library. */
    REPORT_RULE,    /**< By a rule that is documented, or an assumption that is stated. */
    REPORT_UNKNOWN, /**< Not known; what was answered is too little as a rule. */
    REPORT_BASIS_COUNT
} report_basis;

/** One kind of size: a static of the function that answers it. */
typedef struct report_size {
    const char *name;
    const char *source;        /**< Where the rule comes from; NULL for none. */
    allot_workspace workspace; /**< Entry of the table that would set it. */
    bool is_taken;             /**< Of the device, not told to the program. */
    atomic_uint_least64_t calls[REPORT_BASIS_COUNT];
    atomic_uint_least64_t largest[REPORT_BASIS_COUNT]; /**< Bytes. */
    atomic_uint_least64_t most[REPORT_BASIS_COUNT];    /**< Bytes it may be at most by the rule. */
    atomic_bool is_listed;
    struct report_size *next; /**< In the list of those that were asked for. */
} report_size;

/**
 * Count an answer of `bytes`, which may be up to `most` on real hardware. false in strict mode if
 * nothing is known of it: the call must fail.
 */
bool report_size_call(report_size *size, report_basis basis, uint64_t bytes, uint64_t most);

/**
 * The answer of the user's table, counted; else *bytes stays and the call counts as `otherwise`,
 * with what it may be at most.
 */
bool report_size_by_table(report_size *size, report_basis otherwise, uint64_t *bytes,
                          uint64_t most);

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
