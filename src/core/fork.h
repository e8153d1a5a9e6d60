/* SPDX-License-Identifier: MIT */
/**
 * Whether this process is the child of a fork(). What drives a device does not survive one: its
 * driver's state and threads stay with the parent.
 */
#ifndef ALLOTI_CORE_FORK_H
#define ALLOTI_CORE_FORK_H

#include <stdatomic.h>
#include <stdint.h>

/** Number of forks between the first process and this one. Remember it when something is made. */
uint64_t alloti_fork_generation(void);

/** The same for those who have called it before: counted by a handler that runs in each child. */
extern _Atomic uint64_t alloti_fork_count;

static inline uint64_t alloti_fork_generation_now(void)
{
    /* Relaxed: the child has one thread when it is counted. */
    return atomic_load_explicit(&alloti_fork_count, memory_order_relaxed);
}

#endif /* ALLOTI_CORE_FORK_H */
