/* SPDX-License-Identifier: MIT */
#include "standin/address.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/array.h"
#include "core/size_math.h"

#define SPAN_MAX (UINT64_C(32) << 40)
#define SPAN_BYTES (UINT64_C(1) << 40) /* with real bytes the range is needed twice */
#define SPAN_MIN (UINT64_C(16) << 30)
/* Far from where programs, their heaps and shared objects are put on 64-bit Linux. */
#define PLACE UINT64_C(0x200000000000)

static void *reserve(uint64_t place, uint64_t size, int protection)
{
    void *const got = mmap((void *)(uintptr_t)place, (size_t)size, protection,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return got == MAP_FAILED ? NULL : got;
}

static allot_status insert(address_space *space, uint64_t at, address_range range)
{
    const allot_status status = alloti_array_reserve(&space->free, &space->free_capacity,
                                                     space->free_count + 1, sizeof *space->free);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    memmove(space->free + at + 1, space->free + at,
            (size_t)(space->free_count - at) * sizeof *space->free);
    space->free[at] = range;
    space->free_count++;
    return ALLOT_STATUS_OK;
}

static void erase(address_space *space, uint64_t at)
{
    space->free_count--;
    memmove(space->free + at, space->free + at + 1,
            (size_t)(space->free_count - at) * sizeof *space->free);
}

/** Index of the first free range that ends above `address`. */
static uint64_t lower_bound(const address_space *space, uint64_t address)
{
    uint64_t low = 0;
    uint64_t high = space->free_count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (space->free[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/**
 * Reserve the range of device addresses, and as much again behind it where bytes stand behind them:
 * one mapping, because what is left of the address space (ulimit -v, sanitizers) may hold one part
 * and not the other.
 */
static uint64_t reserve_range(uint64_t *span, uint64_t parts)
{
    uint64_t begin = 0;
    for (; begin == 0 && *span >= SPAN_MIN; *span /= 2) {
        void *const got = reserve(PLACE, *span * parts + STANDIN_GRANULE, PROT_NONE);
        if (got != NULL && alloti_align_up((uintptr_t)got, STANDIN_GRANULE, &begin)) {
            break;
        }
    }
    return begin;
}

allot_status address_space_init(address_space *space, bool is_upward, bool has_bytes)
{
    uint64_t span = has_bytes ? SPAN_BYTES : SPAN_MAX;
    const uint64_t begin = reserve_range(&span, has_bytes ? 2 : 1);
    if (begin == 0) {
        return alloti_fail(ALLOT_STATUS_HOST_MEMORY,
                           "no address space for device memory (ulimit -v?)");
    }
    *space = (address_space){.begin = begin,
                             .end = begin + span,
                             .next = begin,
                             .alias = has_bytes ? span : 0,
                             .is_upward = is_upward};
    space->owners =
        reserve(0, span / STANDIN_GRANULE * sizeof *space->owners, PROT_READ | PROT_WRITE);
    if (space->owners == NULL) {
        return alloti_fail_memory(span / STANDIN_GRANULE * sizeof *space->owners);
    }
    return insert(space, 0, (address_range){space->begin, space->end});
}

void address_space_fini(address_space *space)
{
    const uint64_t span = space->end - space->begin;
    munmap((void *)(uintptr_t)space->begin, (size_t)(span + space->alias));
    munmap(space->owners, (size_t)(span / STANDIN_GRANULE * sizeof *space->owners));
    free(space->free);
    *space = (address_space){0};
}

/** Cut [begin, end) out of the free range at an index. */
static allot_status cut(address_space *space, uint64_t at, uint64_t begin, uint64_t end)
{
    const address_range whole = space->free[at];
    if (whole.begin < begin && end < whole.end) {
        const allot_status status = insert(space, at + 1, (address_range){end, whole.end});
        if (status == ALLOT_STATUS_OK) {
            space->free[at].end = begin;
        }
        return status;
    }
    if (whole.begin < begin) {
        space->free[at].end = begin;
    } else if (end < whole.end) {
        space->free[at].begin = end;
    } else {
        erase(space, at);
    }
    return ALLOT_STATUS_OK;
}

allot_status address_take(address_space *space, uint64_t size, uint64_t align, uint64_t *out)
{
    for (uint64_t i = space->is_upward ? lower_bound(space, space->next) : 0; i < space->free_count;
         i++) {
        uint64_t begin = space->free[i].begin;
        if (space->is_upward && begin < space->next) {
            begin = space->next;
        }
        if (!alloti_align_up(begin, align, &begin) || begin > space->free[i].end ||
            space->free[i].end - begin < size) {
            continue;
        }
        const allot_status status = cut(space, i, begin, begin + size);
        if (status == ALLOT_STATUS_OK) {
            space->next = begin + size > space->next ? begin + size : space->next;
            *out = begin;
        }
        return status;
    }
    return alloti_fail(ALLOT_STATUS_DEVICE_MEMORY, "the address range for device memory is full");
}

allot_status address_take_highest(address_space *space, uint64_t size, uint64_t align,
                                  uint64_t *out)
{
    for (uint64_t i = space->free_count; i-- > 0;) {
        const address_range range = space->free[i];
        if (range.end - range.begin < align || range.end - range.begin - align < size) {
            continue;
        }
        const uint64_t begin = alloti_align_down(range.end - size, align);
        const allot_status status = cut(space, i, begin, begin + size);
        if (status == ALLOT_STATUS_OK) {
            *out = begin;
        }
        return status;
    }
    return alloti_fail(ALLOT_STATUS_DEVICE_MEMORY, "the address range for device memory is full");
}

bool address_take_at(address_space *space, uint64_t address, uint64_t size)
{
    const uint64_t at = lower_bound(space, address);
    if (address % STANDIN_GRANULE != 0 || at == space->free_count ||
        space->free[at].begin > address || space->free[at].end - address < size) {
        return false;
    }
    if (cut(space, at, address, address + size) != ALLOT_STATUS_OK) {
        return false;
    }
    space->next = address + size > space->next ? address + size : space->next;
    return true;
}

allot_status address_give(address_space *space, uint64_t address, uint64_t size)
{
    const uint64_t end = address + size;
    const uint64_t at = lower_bound(space, address);
    const bool joins_left = at > 0 && space->free[at - 1].end == address;
    const bool joins_right = at < space->free_count && space->free[at].begin == end;
    if (joins_left && joins_right) {
        space->free[at - 1].end = space->free[at].end;
        erase(space, at);
    } else if (joins_left) {
        space->free[at - 1].end = end;
    } else if (joins_right) {
        space->free[at].begin = address;
    } else {
        return insert(space, at, (address_range){address, end});
    }
    return ALLOT_STATUS_OK;
}

void address_set_owner(address_space *space, uint64_t address, uint64_t size, uint32_t owner)
{
    const uint64_t first = (address - space->begin) / STANDIN_GRANULE;
    const uint64_t count = size / STANDIN_GRANULE;
    for (uint64_t i = 0; i < count; i++) {
        space->owners[first + i] = owner + 1; /* ALLOT_NONE wraps to 0, which fresh pages hold */
    }
}

uint32_t address_owner(const address_space *space, uint64_t address)
{
    if (!address_is_inside(space, address)) {
        return ALLOT_NONE;
    }
    return space->owners[(address - space->begin) / STANDIN_GRANULE] - 1;
}

bool address_space_check(const address_space *space)
{
    uint64_t last = 0;
    for (uint64_t i = 0; i < space->free_count; i++) {
        const address_range range = space->free[i];
        if (range.begin >= range.end || range.begin < space->begin || range.end > space->end ||
            (i > 0 && range.begin <= last)) {
            return false;
        }
        last = range.end;
    }
    return true;
}
