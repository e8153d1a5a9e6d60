/* SPDX-License-Identifier: MIT */
/**
 * What came of starting a vendor's driver, which is tried once per process: drivers cannot be
 * started twice, and a second look at a machine without one costs nothing. None survives fork().
 *
 * The backend has a pthread_once_t beside its outcome; what that runs begins the outcome, starts
 * the driver and ends the outcome. Zero-initialised at first.
 */
#ifndef ALLOTI_DEVICE_DRIVER_OUTCOME_H
#define ALLOTI_DEVICE_DRIVER_OUTCOME_H

#include "core/status.h"

typedef struct driver_outcome {
    bool is_begun;
    bool is_ended;
    uint64_t fork_generation; /**< When it was begun. */
    allot_status status;
    char reason[256]; /**< Of a failure. */
} driver_outcome;

/**
 * The driver is about to be started; false where it must not be: in a child that was forked while a
 * thread of its parent did this, where pthread_once() begins anew.
 */
ALLOT_NODISCARD bool alloti_driver_begin(driver_outcome *outcome);

/** Keep what came of it, a failure with its detail text. */
void alloti_driver_end(driver_outcome *outcome, allot_status status);

/** What it was; ALLOT_STATUS_FORKED in a child of the process that started the driver. `name` is
 * how the driver is called there. */
ALLOT_NODISCARD allot_status alloti_driver_check(const driver_outcome *outcome, const char *name);

#endif /* ALLOTI_DEVICE_DRIVER_OUTCOME_H */
