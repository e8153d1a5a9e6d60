/* SPDX-License-Identifier: MIT */
#include "core/fork.h"

#include <pthread.h>

_Atomic uint64_t alloti_fork_count;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&alloti_fork_count, 1, memory_order_relaxed);
}

static void install(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

uint64_t alloti_fork_generation(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    return alloti_fork_generation_now();
}
