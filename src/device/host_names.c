/* SPDX-License-Identifier: MIT */
#include "device/host_names.h"

#include <assert.h>
#include <stdlib.h>

#include "core/array.h"

/* Generation above, index below. */
enum { INDEX_BITS = 32 };

void alloti_host_names_fini(host_names *names)
{
    free(names->items);
    *names = (host_names){0};
}

allot_status alloti_host_names_add(host_names *names, uint64_t *name)
{
    if (names->first_free == 0) {
        if (names->count == ALLOT_NONE) {
            return alloti_fail(ALLOT_STATUS_HOST_MEMORY, "there are 2^32 of them already");
        }
        const allot_status status = alloti_array_reserve(&names->items, &names->capacity,
                                                         names->count + 1, sizeof *names->items);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        names->items[names->count] = (host_name){0};
        names->count++;
        names->first_free = (uint32_t)names->count;
    }
    const uint32_t index = names->first_free - 1;
    host_name *const item = &names->items[index];
    names->first_free = item->next_free;
    item->generation++;
    *name = (uint64_t)item->generation << INDEX_BITS | index;
    return ALLOT_STATUS_OK;
}

uint32_t alloti_host_names_find(const host_names *names, uint64_t name)
{
    const uint32_t index = (uint32_t)name;
    const uint32_t generation = (uint32_t)(name >> INDEX_BITS);
    return index < names->count && generation % 2 == 1 &&
                   names->items[index].generation == generation
               ? index
               : ALLOT_NONE;
}

void alloti_host_names_remove(host_names *names, uint64_t name)
{
    const uint32_t index = (uint32_t)name;
    assert(alloti_host_names_find(names, name) == index);
    names->items[index].generation++;
    names->items[index].next_free = names->first_free;
    names->first_free = index + 1;
}
