/* SPDX-License-Identifier: MIT */
/**
 * Lists of free ranges by class: what TLSF and buddies share.
 *
 * The lists are rings through heads that lie in front of the ranges in one array of links, so that
 * adding and removing have no case in which something is not there: with a few ranges per class
 * such a branch goes either way, and a wrong guess costs as much as the rest. The links lie apart
 * from the ranges because unlinking touches three ranges' links and nothing else of them.
 */
#ifndef ALLOTI_SPACE_FREE_LISTS_H
#define ALLOTI_SPACE_FREE_LISTS_H

#include <stdlib.h>

#include "core/table.h"
#include "space/space.h"

typedef struct free_link {
    uint32_t prev;
    uint32_t next;
} free_link;

typedef struct free_lists {
    free_link *links; /**< [head_count + ranges] */
    uint64_t capacity;
    uint32_t head_count;
} free_lists;

/** Room for the links of `ranges` ranges. ALLOT_STATUS_HOST_MEMORY. */
ALLOT_NODISCARD static inline allot_status free_lists_reserve(free_lists *lists, uint64_t ranges)
{
    const uint64_t need = lists->head_count + ranges;
    return need <= lists->capacity
               ? ALLOT_STATUS_OK
               : alloti_table_reserve(&lists->links, &lists->capacity, need, sizeof *lists->links);
}

ALLOT_NODISCARD static inline allot_status free_lists_init(free_lists *lists, uint32_t head_count)
{
    *lists = (free_lists){.head_count = head_count};
    const allot_status status = free_lists_reserve(lists, 1);
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < head_count; i++) {
        lists->links[i] = (free_link){i, i};
    }
    return status;
}

static inline void free_lists_fini(free_lists *lists)
{
    free(lists->links);
}

/** First range of a list, ALLOT_NONE if it is empty. */
static inline uint32_t free_lists_first(const free_lists *lists, uint32_t head)
{
    const uint32_t next = lists->links[head].next;
    return next == head ? ALLOT_NONE : next - lists->head_count;
}

/** The range after another in a list, ALLOT_NONE after the last. */
static inline uint32_t free_lists_next(const free_lists *lists, uint32_t range)
{
    const uint32_t next = lists->links[lists->head_count + range].next;
    return next < lists->head_count ? ALLOT_NONE : next - lists->head_count;
}

static inline void free_lists_add(free_lists *lists, uint32_t head, uint32_t range)
{
    const uint32_t own = lists->head_count + range;
    const uint32_t next = lists->links[head].next;
    lists->links[own] = (free_link){.prev = head, .next = next};
    lists->links[next].prev = own;
    lists->links[head].next = own;
}

/** Take a range out of its list; whether that is now empty. */
static inline bool free_lists_remove(free_lists *lists, uint32_t range)
{
    const free_link own = lists->links[lists->head_count + range];
    lists->links[own.prev].next = own.next;
    lists->links[own.next].prev = own.prev;
    return own.prev == own.next && own.prev < lists->head_count;
}

/** Whether a list is a ring of free ranges; adds their number. */
static inline bool free_lists_check(const free_lists *lists, const allot_space *space,
                                    uint32_t head, uint64_t *count)
{
    uint32_t at = head;
    uint64_t steps = 0;
    do {
        const uint32_t next = lists->links[at].next;
        if (lists->links[next].prev != at || steps++ > space->free_count ||
            (next >= lists->head_count ? !space_is_free(space, next - lists->head_count)
                                       : next != head)) {
            return false;
        }
        at = next;
    } while (at != head);
    *count += steps - 1;
    return true;
}

#endif /* ALLOTI_SPACE_FREE_LISTS_H */
