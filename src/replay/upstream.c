/* SPDX-License-Identifier: MIT */
#include "replay/upstream.h"

#include <assert.h>

#include "core/size_math.h"

bool alloti_upstream_take(alloti_upstream *up, uint64_t size, uint64_t *address)
{
    assert(size > 0);
    uint64_t reserved = 0;
    uint64_t step = 0;
    uint64_t next = 0;
    const bool counts = alloti_add(up->reserved, size, &reserved) &&
                        alloti_align_up(size, ALLOTI_UPSTREAM_ALIGN, &step) &&
                        alloti_add(up->next, step, &next);
    if (!counts || reserved > up->limit) {
        return false;
    }
    *address = up->next;
    up->next = next;
    up->reserved = reserved;
    up->take_count++;
    up->bytes_taken += size;
    return true;
}

void alloti_upstream_give(alloti_upstream *up, uint64_t size)
{
    assert(size <= up->reserved);
    up->reserved -= size;
    up->give_count++;
    up->bytes_given += size;
}
