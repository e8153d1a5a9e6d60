/* SPDX-License-Identifier: MIT */
/*
 * Buddies (Knowlton, "A fast storage allocator", CACM 1965): every range is a power of two of
 * granules and lies at a multiple of its size. Two free ranges that were once cut from one are
 * merged again. The buddy is the neighbour on the side that the offset tells, so it is found in the
 * list of ranges and not by its address.
 *
 * A capacity that is no power of two is covered by the largest powers that fit, from the left.
 * Invariants: heads[order] is a list of the free ranges of 2^order granules (links as in tlsf.c),
 * its bit is set exactly if it has a head.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "space/free_lists.h"
#include "space/ranges.h"

enum { ORDERS = 64 };

typedef struct buddy_index {
    uint64_t orders;  /**< Bit: the list is not empty. */
    free_lists lists; /**< [order] */
} buddy_index;

static allot_status init(allot_space *space, const allot_space_options *options)
{
    (void)options;
    buddy_index *const index = calloc(1, sizeof *index);
    if (index == NULL) {
        return alloti_fail_memory(sizeof *index);
    }
    space->index = index;
    return free_lists_init(&index->lists, ORDERS);
}

static void fini(allot_space *space)
{
    buddy_index *const index = space->index;
    free_lists_fini(&index->lists);
    free(index);
}

static allot_status reserve_ranges(allot_space *space, uint64_t count)
{
    buddy_index *const index = space->index;
    return free_lists_reserve(&index->lists, count);
}

static unsigned order_of(const allot_space *space, uint64_t size)
{
    return alloti_log2(size) - space->granule_log2;
}

static bool round_up(const allot_space *space, uint64_t size, uint64_t *out)
{
    const uint64_t granule = UINT64_C(1) << space->granule_log2;
    if (size > UINT64_C(1) << 63) {
        return false;
    }
    *out = size <= granule ? granule : UINT64_C(2) << alloti_log2(size - 1);
    return true;
}

static void add(allot_space *space, uint32_t id)
{
    buddy_index *const index = space->index;
    const unsigned order = order_of(space, range_size(space, id));
    free_lists_add(&index->lists, order, id);
    index->orders |= UINT64_C(1) << order;
    space->free_count++;
}

static void take(allot_space *space, uint32_t id)
{
    buddy_index *const index = space->index;
    const unsigned order = order_of(space, range_size(space, id));
    const uint64_t is_empty = free_lists_remove(&index->lists, id);
    index->orders &= ~(is_empty << order);
    space->free_count--;
}

/** Halve a range that is in no list until it has this size; the upper halves become free. */
static void halve(allot_space *space, uint32_t id, uint64_t size)
{
    while (range_size(space, id) > size) {
        const uint64_t half = range_size(space, id) / 2;
        range_set_size(space, id, half);
        const uint32_t upper = range_insert(space, id, space->ranges[id].next,
                                            range_offset(space, id) + half, half, MARK_FREE);
        add(space, upper);
    }
}

static uint32_t alloc(allot_space *space, uint64_t size, uint64_t align, uint32_t tag)
{
    (void)tag;
    const buddy_index *const index = space->index;
    const uint64_t need = size > align ? size : align; /* which makes it aligned */
    const uint64_t orders = index->orders & (UINT64_MAX << order_of(space, need));
    if (orders == 0) {
        return ALLOT_NONE;
    }
    const uint32_t id = free_lists_first(&index->lists, (unsigned)__builtin_ctzll(orders));
    take(space, id);
    space->marks[id] = MARK_USED;
    halve(space, id, size);
    return id;
}

/** The other half of the range that this one was cut from, if it is free and whole. */
static uint32_t free_buddy(const allot_space *space, uint32_t id)
{
    const space_range *const range = &space->ranges[id];
    const uint64_t size = range_size(space, id);
    const bool is_upper = (range_offset(space, id) & size) != 0;
    const uint32_t buddy = is_upper ? range->prev : range->next;
    return space_is_free(space, buddy) && range_size(space, buddy) == size ? buddy : ALLOT_NONE;
}

static void release(allot_space *space, uint32_t id)
{
    uint32_t buddy = ALLOT_NONE;
    while ((buddy = free_buddy(space, id)) != ALLOT_NONE) {
        const bool is_upper = range_offset(space, buddy) < range_offset(space, id);
        const uint32_t lower = is_upper ? buddy : id;
        const uint32_t upper = is_upper ? id : buddy;
        take(space, buddy);
        range_set_size(space, lower, 2 * range_size(space, lower));
        range_drop(space, upper);
        id = lower;
    }
    space->marks[id] = MARK_FREE;
    add(space, id);
}

static bool resize(allot_space *space, uint32_t id, uint64_t size)
{
    /* Growing merges with the upper buddy, again and again: first see whether all of them are
     * there. */
    uint32_t next = space->ranges[id].next;
    for (uint64_t have = range_size(space, id); have < size; have *= 2) {
        if ((range_offset(space, id) & have) != 0 || !space_is_free(space, next) ||
            range_size(space, next) != have) {
            return false;
        }
        next = space->ranges[next].next;
    }
    while (range_size(space, id) < size) {
        next = space->ranges[id].next;
        take(space, next);
        range_set_size(space, id, 2 * range_size(space, id));
        range_drop(space, next);
    }
    halve(space, id, size);
    return true;
}

/** Largest power of two that may begin at `offset` and end at or below `end`. */
static uint64_t power_at(uint64_t offset, uint64_t end)
{
    const uint64_t room = UINT64_C(1) << alloti_log2(end - offset);
    const uint64_t aligned = offset & (~offset + 1);
    return offset == 0 || room < aligned ? room : aligned;
}

static allot_status set_capacity(allot_space *space, uint64_t capacity)
{
    uint64_t low = space->capacity;
    for (uint32_t id = space->last; id != ALLOT_NONE && low > capacity;
         id = space->ranges[id].prev) {
        low = range_offset(space, id);
        if (!space_is_free(space, id)) {
            return alloti_fail(ALLOT_STATUS_BUSY,
                               "capacity %" PRIu64 ": a used range ends above it", capacity);
        }
    }
    while (space->last != ALLOT_NONE && range_offset(space, space->last) >= low &&
           low < space->capacity) {
        const uint32_t last = space->last;
        space->capacity = range_offset(space, last);
        take(space, last);
        range_drop(space, last);
    }
    while (space->capacity < capacity) {
        const uint64_t size = power_at(space->capacity, capacity);
        const uint32_t id =
            range_insert(space, space->last, ALLOT_NONE, space->capacity, size, MARK_USED);
        space->capacity += size;
        release(space, id);
    }
    return ALLOT_STATUS_OK;
}

static uint64_t largest(const allot_space *space)
{
    const buddy_index *const index = space->index;
    return index->orders == 0 ? 0
                              : UINT64_C(1) << (alloti_log2(index->orders) + space->granule_log2);
}

static const char *check(const allot_space *space)
{
    const buddy_index *const index = space->index;
    uint64_t count = 0;
    for (unsigned order = 0; order < ORDERS; order++) {
        uint32_t id = free_lists_first(&index->lists, order);
        if (((index->orders >> order) & 1) != (id != ALLOT_NONE)) {
            return "a bit of an order is wrong";
        }
        if (!free_lists_check(&index->lists, space, order, &count)) {
            return "a list is no ring of free ranges";
        }
        for (; id != ALLOT_NONE; id = free_lists_next(&index->lists, id)) {
            if (order_of(space, range_size(space, id)) != order) {
                return "a range is in the list of another order";
            }
            if (free_buddy(space, id) != ALLOT_NONE) {
                return "two free buddies were not merged";
            }
        }
    }
    for (uint32_t id = space->first; id != ALLOT_NONE; id = space->ranges[id].next) {
        const uint64_t size = range_size(space, id);
        if (!alloti_is_pow2(size) || (range_offset(space, id) & (size - 1)) != 0) {
            return "a range is no power of two or not at a multiple of it";
        }
    }
    return count == space->free_count ? NULL : "the lists lack a free range";
}

const space_ops alloti_buddy_ops = {
    .places = ORDERS,
    .has_own_merging = true,
    .init = init,
    .fini = fini,
    .reserve_ranges = reserve_ranges,
    .round = round_up,
    .alloc = alloc,
    .free = release,
    .resize = resize,
    .add = add,
    .remove = take,
    .change = NULL,
    .largest = largest,
    .set_capacity = set_capacity,
    .check = check,
};
