/* SPDX-License-Identifier: MIT */
/**
 * What all strategies share: the table of ranges and the operations on it.
 *
 * Ranges form a list by offset, without gaps:
 *
 *     [used 0][free 3][used 1][used 7][free 2] ... capacity
 *
 * A range is one record of 32 bytes, so that it never straddles two cache lines; what neighbours
 * ask of each other most, whether they are free, lies apart in one byte each (`marks`), which for
 * 300,000 ranges stays in the second-level cache. Ids are places in the table; unused places form a
 * list.
 *
 * A strategy keeps the free ranges in an index of its own and is asked through space_ops. Zones are
 * for strategies that keep apart what would otherwise be neighbours: free ranges merge only within
 * a zone, and not across the beginning of a chunk.
 *
 * Invariants: prev and next are inverse; offset + size is the next one's offset; two free
 * neighbours that could merge do not exist; sums are those of the list. allot_space_check() tests
 * them.
 */
#ifndef ALLOTI_SPACE_SPACE_H
#define ALLOTI_SPACE_SPACE_H

#include <allot/space.h>

#include "core/size_math.h"
#include "core/status.h"

/** links[] belongs to the strategy's index while the range is free. */
typedef struct space_range {
    uint64_t offset;
    uint64_t size;
    uint32_t prev; /**< By offset; ALLOT_NONE at the ends. */
    uint32_t next; /**< Of an unused place: the next unused one. */
    uint32_t links[2];
} space_range;

enum {
    MARK_USED = 1,
    MARK_FREE = 2,
    MARK_CHUNK = 4,      /**< A chunk begins here: never merged with what lies before. */
    MARK_ZONE_SHIFT = 4, /**< The zone is in the upper bits. */
};

typedef struct space_ops {
    /** Ranges that one alloc, free, resize or set_capacity enters at most. */
    uint32_t places;
    /** Free neighbours may stay apart: merging has rules of its own, which `check` tests. */
    bool has_own_merging;
    /** Make the index; the table is empty. */
    allot_status (*init)(allot_space *space, const allot_space_options *options);
    void (*fini)(allot_space *space);
    /** (optional) Room in the index for as many; default: it needs none. */
    allot_status (*reserve)(allot_space *space);
    /** Sizes that the strategy hands out; false on overflow. */
    bool (*round)(const allot_space *space, uint64_t size, uint64_t *out);
    /** A used range, or ALLOT_NONE. Room was reserved. */
    uint32_t (*alloc)(allot_space *space, uint64_t size, uint64_t align, uint32_t tag);
    void (*free)(allot_space *space, uint32_t id);
    /** To a rounded size; false if it cannot, and nothing has changed. */
    bool (*resize)(allot_space *space, uint32_t id, uint64_t size);
    /** Free ranges enter and leave the index, or change while they are in it: the list of ranges is
     * right when these are called, but for a range that is removed. */
    void (*add)(allot_space *space, uint32_t id);
    void (*remove)(allot_space *space, uint32_t id);
    void (*change)(allot_space *space, uint32_t id, uint64_t old_offset, uint64_t old_size);
    uint64_t (*largest)(const allot_space *space);
    /** (optional) Another capacity, in granules; default: the free range at the end changes. */
    allot_status (*set_capacity)(allot_space *space, uint64_t capacity);
    /** What is wrong with the index, which has to hold free_count ranges; NULL for nothing. */
    const char *(*check)(const allot_space *space);
} space_ops;

extern const space_ops alloti_first_fit_ops;
extern const space_ops alloti_best_fit_ops;
extern const space_ops alloti_buddy_ops;
extern const space_ops alloti_tlsf_ops;
extern const space_ops alloti_tiered_ops;
extern const space_ops alloti_adaptive_ops;

struct allot_space {
    const space_ops *ops;
    void *index; /**< The strategy's own. */
    allot_space_strategy strategy;
    unsigned granule_log2;
    uint64_t capacity;

    space_range *ranges;
    uint64_t ranges_capacity;
    uint8_t *marks;
    uint64_t marks_capacity;
    uint32_t count;        /**< Places that were ever used. */
    uint32_t unused;       /**< First of the list; ALLOT_NONE: none. */
    uint32_t unused_count; /**< In that list. */
    uint32_t first;        /**< ALLOT_NONE in a space of no capacity. */
    uint32_t last;

    uint64_t size_used;
    uint64_t size_used_peak;
    uint64_t offset_high_peak;
    uint64_t used_count;
    uint64_t free_count;
    uint64_t alloc_count;
    uint64_t failed_count;
};

static inline bool space_is_free(const allot_space *space, uint32_t id)
{
    return id != ALLOT_NONE && (space->marks[id] & MARK_FREE) != 0;
}

static inline bool space_is_used(const allot_space *space, uint32_t id)
{
    return id < space->count && (space->marks[id] & MARK_USED) != 0;
}

static inline unsigned space_zone(const allot_space *space, uint32_t id)
{
    return space->marks[id] >> MARK_ZONE_SHIFT;
}

/** Whether two neighbours, `right` after `left`, are free and may be one. */
static inline bool space_can_merge(const allot_space *space, uint32_t left, uint32_t right)
{
    if (left == ALLOT_NONE || right == ALLOT_NONE) {
        return false;
    }
    const unsigned both = space->marks[left] & space->marks[right];
    const unsigned differ = space->marks[left] ^ space->marks[right];
    return (both & MARK_FREE) != 0 && (differ >> MARK_ZONE_SHIFT) == 0 &&
           (space->marks[right] & MARK_CHUNK) == 0;
}

/** Whether a range can hold an aligned request, and where it then begins. */
static inline bool space_fits(const space_range *range, uint64_t size, uint64_t align,
                              uint64_t *offset)
{
    const uint64_t begin = (range->offset + align - 1) & ~(align - 1);
    *offset = begin;
    return begin - range->offset <= range->size && range->size - (begin - range->offset) >= size;
}

#endif /* ALLOTI_SPACE_SPACE_H */
