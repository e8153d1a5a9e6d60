/* SPDX-License-Identifier: MIT */
/**
 * Lets the n-th allocation of host memory fail. A test that is added with FAULTS is linked so that
 * malloc, calloc, realloc and aligned_alloc of the test and of the library pass through here; what
 * shared libraries allocate for themselves does not.
 */
#ifndef ALLOC_FAULT_H
#define ALLOC_FAULT_H

#include <allot/base.h>

/** Let the n-th allocation from now on fail, once; n = 1 is the next one. Counts all threads. */
void alloc_fault_arm(uint64_t nth);

/** Let nothing fail any more. Returns whether the armed failure took place. */
bool alloc_fault_disarm(void);

/**
 * Call `attempt` with allocation 1 failing, then 2, 3 ... until it runs through. Checks that each
 * failure comes out as ALLOT_STATUS_HOST_MEMORY and that the last attempt succeeds. The attempt
 * releases whatever it made, so that the leak checker sees what a failure forgot.
 *
 * @return How many allocations a whole run makes.
 */
uint64_t alloc_fault_each(allot_status (*attempt)(void *context), void *context);

#endif /* ALLOC_FAULT_H */
