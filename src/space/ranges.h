/* SPDX-License-Identifier: MIT */
/**
 * Operations on the table of ranges: entering, dropping, cutting, merging. Inline and given the
 * strategy's operations as an argument, so that in each strategy's file the compiler sees which
 * functions are called: at 30 ns per request a call through a pointer shows.
 */
#ifndef ALLOTI_SPACE_RANGES_H
#define ALLOTI_SPACE_RANGES_H

#include "space/space.h"

/**
 * Enter a range between two neighbours (ALLOT_NONE: at the ends). They are only written to, which
 * does not wait for the memory that they lie in.
 */
static inline uint32_t range_insert(allot_space *space, uint32_t prev, uint32_t next,
                                    uint64_t offset, uint64_t size, uint8_t mark)
{
    uint32_t id = space->unused;
    if (id != ALLOT_NONE) {
        space->unused = space->ranges[id].next;
        space->unused_count--;
    } else {
        id = space->count++;
    }
    space_range *const range = &space->ranges[id];
    range_set_offset(space, id, offset);
    range_set_size(space, id, size);
    range->prev = prev;
    range->next = next;
    space->marks[id] = mark;
    *(prev == ALLOT_NONE ? &space->first : &space->ranges[prev].next) = id;
    *(next == ALLOT_NONE ? &space->last : &space->ranges[next].prev) = id;
    return id;
}

/** Where a new range may belong in the index, which the index will verify: where another is. */
static inline void range_take_home(const space_ops *ops, allot_space *space, uint32_t id,
                                   uint32_t from)
{
    if (ops->has_homes) {
        space->homes[id] = space->homes[from];
    }
}

/** Take a range out of the list; its neighbours must have taken over its bytes. */
static inline void range_drop(allot_space *space, uint32_t id)
{
    const uint32_t prev = space->ranges[id].prev;
    const uint32_t next = space->ranges[id].next;
    *(prev == ALLOT_NONE ? &space->first : &space->ranges[prev].next) = next;
    *(next == ALLOT_NONE ? &space->last : &space->ranges[next].prev) = prev;
    space->marks[id] = 0;
    space->ranges[id].next = space->unused;
    space->unused = id;
    space->unused_count++;
}

static inline uint8_t zone_mark(const allot_space *space, uint32_t id)
{
    return (uint8_t)(space->marks[id] & (0xffu << MARK_ZONE_SHIFT));
}

/**
 * Make [offset, offset + size) of a free range used, with its index kept right, and what is left
 * before and after it free.
 */
static inline uint32_t range_carve(const space_ops *ops, allot_space *space, uint32_t id,
                                   uint64_t offset, uint64_t size)
{
    const uint64_t old_offset = range_offset(space, id);
    const uint64_t old_size = range_size(space, id);
    const uint64_t front = offset - old_offset;
    const uint64_t back = old_size - front - size;
    const uint8_t zone = zone_mark(space, id);
    uint32_t used = id;
    if (front == 0 && back == 0) {
        ops->remove(space, id);
        space->marks[id] = (uint8_t)((space->marks[id] & ~MARK_FREE) | MARK_USED);
        space->free_count--;
    } else if (front == 0) {
        /* What is left stays the free range, at its place in the index. */
        const uint8_t chunk = space->marks[id] & MARK_CHUNK;
        used = range_insert(space, space->ranges[id].prev, id, offset, size,
                            (uint8_t)(zone | MARK_USED | chunk));
        range_take_home(ops, space, used, id);
        space->marks[id] = (uint8_t)(space->marks[id] & ~MARK_CHUNK);
        range_set_offset(space, id, offset + size);
        range_set_size(space, id, back);
        ops->change(space, id, old_offset, old_size);
    } else {
        used = range_insert(space, id, space->ranges[id].next, offset, size,
                            (uint8_t)(zone | MARK_USED));
        range_take_home(ops, space, used, id);
        range_set_size(space, id, front);
        ops->change(space, id, old_offset, old_size);
        if (back != 0) {
            const uint32_t rest = range_insert(space, used, space->ranges[used].next, offset + size,
                                               back, (uint8_t)(zone | MARK_FREE));
            range_take_home(ops, space, rest, id);
            ops->add(space, rest);
            space->free_count++;
        }
    }
    return used;
}

/** Have fetched what may be asked of a neighbour next. */
static inline void range_prefetch(const space_ops *ops, const allot_space *space, uint32_t id)
{
    const uint32_t place = id == ALLOT_NONE ? 0 : id;
    __builtin_prefetch(&space->ranges[place]);
    if (ops->has_homes) {
        __builtin_prefetch(&space->homes[place]);
    }
}

/** Make a used range free, merged with its neighbours; returns what it is part of now. */
static inline uint32_t range_merge(const space_ops *ops, allot_space *space, uint32_t id)
{
    space->marks[id] = (uint8_t)((space->marks[id] & ~MARK_USED) | MARK_FREE);
    space_range *const range = &space->ranges[id];
    const uint32_t prev = range->prev;
    const uint32_t next = range->next;
    range_prefetch(ops, space, prev);
    range_prefetch(ops, space, next);
    const bool with_prev = space_can_merge(space, prev, id);
    const bool with_next = space_can_merge(space, id, next);
    if (with_prev) {
        const uint64_t old_size = range_size(space, prev);
        uint64_t more = range_size(space, id);
        if (with_next) {
            ops->remove(space, next);
            more += range_size(space, next);
            range_drop(space, next);
            space->free_count--;
        }
        range_drop(space, id);
        range_set_size(space, prev, old_size + more);
        ops->change(space, prev, range_offset(space, prev), old_size);
        return prev;
    }
    if (with_next) {
        const uint64_t old_offset = range_offset(space, next);
        const uint64_t old_size = range_size(space, next);
        range_set_offset(space, next, range_offset(space, id));
        range_set_size(space, next, old_size + range_size(space, id));
        space->marks[next] |= space->marks[id] & MARK_CHUNK;
        range_drop(space, id);
        ops->change(space, next, old_offset, old_size);
        return next;
    }
    ops->add(space, id);
    space->free_count++;
    return id;
}

/** To granules, as most strategies do. */
static inline bool range_round(const allot_space *space, uint64_t size, uint64_t *out)
{
    return alloti_align_up(size, UINT64_C(1) << space->granule_log2, out);
}

/** Whether the free range after a used one is of the same chunk. */
static inline bool has_free_after(const allot_space *space, uint32_t id)
{
    const uint32_t next = space->ranges[id].next;
    return space_is_free(space, next) && space_zone(space, id) == space_zone(space, next) &&
           (space->marks[next] & MARK_CHUNK) == 0;
}

static inline void cut_end(const space_ops *ops, allot_space *space, uint32_t id, uint64_t size)
{
    const uint64_t cut = range_size(space, id) - size;
    const uint64_t at = range_offset(space, id) + size;
    const uint32_t next = space->ranges[id].next;
    range_set_size(space, id, size);
    if (has_free_after(space, id)) {
        const uint64_t old_offset = range_offset(space, next);
        const uint64_t old_size = range_size(space, next);
        range_set_offset(space, next, at);
        range_set_size(space, next, old_size + cut);
        ops->change(space, next, old_offset, old_size);
        return;
    }
    const uint32_t rest =
        range_insert(space, id, next, at, cut, (uint8_t)(zone_mark(space, id) | MARK_FREE));
    range_take_home(ops, space, rest, id);
    ops->add(space, rest);
    space->free_count++;
}

/** Change a used range's size at its end. The ops->resize of most strategies. */
static inline bool range_resize(const space_ops *ops, allot_space *space, uint32_t id,
                                uint64_t size)
{
    const uint64_t old = range_size(space, id);
    if (size < old) {
        cut_end(ops, space, id, size);
    } else if (size > old) {
        const uint32_t next = space->ranges[id].next;
        const uint64_t more = size - old;
        if (!has_free_after(space, id) || range_size(space, next) < more) {
            return false;
        }
        const uint32_t taken = range_carve(ops, space, next, range_offset(space, next), more);
        range_set_size(space, id, size);
        range_drop(space, taken);
    }
    return true;
}

#endif /* ALLOTI_SPACE_RANGES_H */
