/* SPDX-License-Identifier: MIT */
#include "core/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/size_math.h"

enum {
    CAPACITY_MIN = 16,
    LINE = 64,
    HUGE_PAGE = 2 << 20,      /**< Of x86-64, and of AArch64 with pages of 4 KiB. */
    HUGE_MIN = HUGE_PAGE / 2, /**< From here on a table is whole huge pages. */
};

/** Memory that begins at a cache line or a huge page; *bytes becomes what it really has. */
static void *alloc_aligned(uint64_t *bytes)
{
    const size_t align = *bytes < HUGE_MIN ? LINE : HUGE_PAGE;
    uint64_t whole = 0;
    if (!alloti_align_up(*bytes, align, &whole) || whole > SIZE_MAX) {
        return NULL;
    }
    void *const fresh = aligned_alloc(align, (size_t)whole);
#ifdef MADV_HUGEPAGE
    if (fresh != NULL && align == HUGE_PAGE) {
        (void)madvise(fresh, (size_t)whole, MADV_HUGEPAGE); /* refused: ordinary pages */
    }
#endif
    *bytes = whole;
    return fresh;
}

allot_status alloti_table_reserve(void *data, uint64_t *capacity, uint64_t need, size_t item_size)
{
    if (need <= *capacity) {
        return ALLOT_STATUS_OK;
    }
    uint64_t grown = 2 * *capacity;
    grown = grown < need ? need : grown;
    grown = grown < CAPACITY_MIN ? CAPACITY_MIN : grown;
    uint64_t bytes = 0;
    if (!alloti_mul(grown, item_size, &bytes)) {
        return alloti_fail_memory(UINT64_MAX);
    }
    void *const fresh = alloc_aligned(&bytes);
    if (fresh == NULL) {
        return alloti_fail_memory(bytes);
    }
    void *old = NULL;
    memcpy(&old, data, sizeof old);
    if (old != NULL) {
        memcpy(fresh, old, (size_t)(*capacity * item_size));
        free(old);
    }
    memcpy(data, &fresh, sizeof fresh);
    *capacity = bytes / item_size;
    /* cppcheck-suppress memleak ; the owner has it: it went through memcpy */
    return ALLOT_STATUS_OK;
}
