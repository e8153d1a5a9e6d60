/* SPDX-License-Identifier: MIT */
/**
 * Signals that end a dry run: the program ends first, then what is known is printed, the temporary
 * folders are removed, and only then does the command end, by the same signal.
 */
#ifndef CLI_DRYRUN_SIGNAL_H
#define CLI_DRYRUN_SIGNAL_H

#include <stdbool.h>
#include <sys/types.h>

/** Catch the signals from here on. Not thread-safe, as all of this. */
void dryrun_signal_init(void);

/** fork(); the child gets the signals that are sent to this process. */
pid_t dryrun_signal_fork(void);

/** That child has ended. */
void dryrun_signal_end(void);

/** Whether one was caught: no further run begins. */
bool dryrun_signal_is_caught(void);

/** End by the signal that was caught; returns if there was none. */
void dryrun_signal_raise(void);

#endif /* CLI_DRYRUN_SIGNAL_H */
