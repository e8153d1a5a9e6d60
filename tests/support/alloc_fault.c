/* SPDX-License-Identifier: MIT */
#include "support/alloc_fault.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "support/check.h"

/* The linker's --wrap=malloc turns calls of malloc into __wrap_malloc and gives the original as
 * __real_malloc; the names are its, not ours. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

static atomic_uint_fast64_t left; /* allocations up to and including the one that fails; 0: none */
static atomic_bool is_hit;

static bool is_to_fail(void)
{
    uint_fast64_t now = atomic_load(&left);
    while (now != 0 && !atomic_compare_exchange_weak(&left, &now, now - 1)) {
    }
    if (now != 1) {
        return false;
    }
    atomic_store(&is_hit, true);
    return true;
}

void *__wrap_malloc(size_t size)
{
    return is_to_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_to_fail() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return is_to_fail() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return is_to_fail() ? NULL : __real_aligned_alloc(align, size);
}

void alloc_fault_arm(uint64_t nth)
{
    atomic_store(&is_hit, false);
    atomic_store(&left, nth);
}

bool alloc_fault_disarm(void)
{
    atomic_store(&left, 0);
    return atomic_load(&is_hit);
}

uint64_t alloc_fault_each(allot_status (*attempt)(void *context), void *context)
{
    for (uint64_t nth = 1;; nth++) {
        alloc_fault_arm(nth);
        const allot_status status = attempt(context);
        if (!alloc_fault_disarm()) {
            CHECK_OK(status);
            return nth - 1;
        }
        if (!CHECK_EQ(status, ALLOT_STATUS_HOST_MEMORY)) {
            return nth;
        }
    }
}
