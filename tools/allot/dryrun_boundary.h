/* SPDX-License-Identifier: MIT */
/**
 * The last whole number that is good, where all up to it are and none beyond it is. Each test costs
 * a run, so a guess of the answer is tested first and searched around, in steps that double;
 * without one, or once the answer lies between two tests near the guess, the interval is halved.
 *
 * A good number may lie below the bad ones (a batch size) or above them (a limit).
 */
#ifndef CLI_DRYRUN_BOUNDARY_H
#define CLI_DRYRUN_BOUNDARY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dryrun_boundary {
    int64_t good; /**< Tested or known to be so; or just outside of what is asked about. */
    int64_t bad;
    int64_t step;     /**< From good or bad towards the other; 0: halve. */
    bool is_step;     /**< The pending test is such a step. */
    bool is_forward;  /**< From good towards bad. */
    uint32_t guesses; /**< Guesses strictly inside the interval that were tested. */
} dryrun_boundary;

dryrun_boundary dryrun_boundary_init(int64_t good, int64_t bad);

/** Whether nothing lies between good and bad. */
bool dryrun_boundary_is_found(const dryrun_boundary *b);

/** What to test next, between good and bad; not once it is found. `guess`: the last good one. */
int64_t dryrun_boundary_next(dryrun_boundary *b, const int64_t *guess);

/** The result of the test. */
void dryrun_boundary_put(dryrun_boundary *b, int64_t tested, bool is_good);

#endif /* CLI_DRYRUN_BOUNDARY_H */
