/* SPDX-License-Identifier: MIT */
/**
 * Whether this process is the child of a fork(). What drives a device does not survive one: its
 * driver's state and threads stay with the parent.
 */
#ifndef ALLOTI_CORE_FORK_H
#define ALLOTI_CORE_FORK_H

#include <stdbool.h>
#include <stdint.h>

/** Number of forks between the first process and this one. Remember it when something is made. */
uint64_t alloti_fork_generation(void);

#endif /* ALLOTI_CORE_FORK_H */
