/* SPDX-License-Identifier: MIT */
#include "core/array.h"

#include <stdlib.h>
#include <string.h>

#include "core/size_math.h"

enum { CAPACITY_MIN = 16 };

allot_status alloti_array_reserve(void *data, uint64_t *capacity, uint64_t need, size_t item_size)
{
    if (need <= *capacity) {
        return ALLOT_STATUS_OK;
    }
    uint64_t grown = *capacity + *capacity / 2;
    if (grown < need) {
        grown = need;
    }
    if (grown < CAPACITY_MIN) {
        grown = CAPACITY_MIN;
    }
    uint64_t bytes = 0;
    if (!alloti_mul(grown, item_size, &bytes) || bytes > SIZE_MAX) {
        return alloti_fail_memory(UINT64_MAX);
    }
    void *old = NULL;
    memcpy(&old, data, sizeof old);
    void *const fresh = realloc(old, (size_t)bytes);
    if (fresh == NULL) {
        return alloti_fail_memory(bytes);
    }
    memcpy(data, &fresh, sizeof fresh);
    *capacity = grown;
    /* cppcheck-suppress memleak ; the owner has it: it went through memcpy */
    return ALLOT_STATUS_OK;
}

void *alloti_alloc_array(uint64_t count, size_t size)
{
    uint64_t bytes = 0;
    if (!alloti_mul(count, size, &bytes) || bytes > SIZE_MAX || bytes == 0) {
        return NULL;
    }
    return malloc((size_t)bytes);
}

void *alloti_calloc_array(uint64_t count, size_t size)
{
    uint64_t bytes = 0;
    if (!alloti_mul(count, size, &bytes) || bytes > SIZE_MAX || bytes == 0) {
        return NULL;
    }
    return calloc(1, (size_t)bytes);
}
