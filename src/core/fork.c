/* SPDX-License-Identifier: MIT */
#include "core/fork.h"

#include <pthread.h>
#include <stdatomic.h>

/* Counted by the handler that runs in each child. Relaxed: the child has one thread then. */
static _Atomic uint64_t generation;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void install(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

uint64_t alloti_fork_generation(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    return atomic_load_explicit(&generation, memory_order_relaxed);
}
