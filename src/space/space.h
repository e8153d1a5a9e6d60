/* SPDX-License-Identifier: MIT */
/**
 * What all strategies share: the table of ranges and the operations on it.
 *
 * Ranges form a list by offset, without gaps:
 *
 *     [used 0][free 3][used 1][used 7][free 2] ... capacity
 *
 * A range is one record of 16 bytes, four to a cache line, because at 300,000 ranges a release
 * waits for memory and for little else. So offset and size are counted in granules and have 32
 * bits; in a space of more granules (1 TiB, if they have 256 bytes) their upper halves lie in a
 * table of their own, `uppers`, which is NULL in all others. What neighbours ask of each other
 * most, whether they are free, lies apart in one byte each (`marks`), which stays in the
 * second-level cache. Ids are places in the table; unused places form a list.
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
#include "space/lifetimes.h"

/** What of a range is read at random: see range_offset() and range_size(). */
typedef struct space_range {
    uint32_t offset; /**< Granules, the lower half. */
    uint32_t size;
    uint32_t prev; /**< By offset; ALLOT_NONE at the ends. */
    uint32_t next; /**< Of an unused place: the next unused one. */
} space_range;

/** The upper halves. */
typedef struct space_upper {
    uint32_t offset;
    uint32_t size;
} space_upper;

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
    /** Ranges remember a place in the index, in `homes`. */
    bool has_homes;
    /** Make the index; the table is empty. */
    allot_status (*init)(allot_space *space, const allot_space_options *options);
    void (*fini)(allot_space *space);
    /** (optional) Room in the index for what one call enters; default: it needs none. */
    allot_status (*reserve)(allot_space *space);
    /** (optional) Room for so many ranges in tables of the index; default: it has none. */
    allot_status (*reserve_ranges)(allot_space *space, uint64_t count);
    /** (optional) Sizes that the strategy hands out; false on overflow. Default: whole granules. */
    bool (*round)(const allot_space *space, uint64_t size, uint64_t *out);
    /** A used range, or ALLOT_NONE. Room was reserved. */
    uint32_t (*alloc)(allot_space *space, uint64_t size, uint64_t align, uint32_t tag);
    /** (optional) Make [offset, offset + size) of a free range used; default: ranges cannot begin
     * anywhere. */
    uint32_t (*take)(allot_space *space, uint32_t id, uint64_t offset, uint64_t size, uint32_t tag);
    /** (optional) The free range in which a byte lies; default: all are looked through, from one
     * that is near. */
    uint32_t (*find)(const allot_space *space, uint64_t offset);
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
    space_upper *uppers; /**< NULL while the capacity is below 2^32 granules. */
    uint64_t uppers_capacity;
    uint32_t *homes; /**< The index's own; NULL unless ops->has_homes. Of used ranges: a guess. */
    uint64_t homes_capacity;
    uint64_t room;   /**< Ranges that all of these tables, and those of the index, have room for. */
    uint32_t count;  /**< Places that were ever used. */
    uint32_t unused; /**< First of the list; ALLOT_NONE: none. */
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

/** Bytes. */
static inline uint64_t range_offset(const allot_space *space, uint32_t id)
{
    const uint64_t upper = space->uppers == NULL ? 0 : (uint64_t)space->uppers[id].offset << 32;
    return (upper | space->ranges[id].offset) << space->granule_log2;
}

static inline uint64_t range_size(const allot_space *space, uint32_t id)
{
    const uint64_t upper = space->uppers == NULL ? 0 : (uint64_t)space->uppers[id].size << 32;
    return (upper | space->ranges[id].size) << space->granule_log2;
}

static inline uint64_t range_end(const allot_space *space, uint32_t id)
{
    return range_offset(space, id) + range_size(space, id);
}

static inline void range_set_offset(allot_space *space, uint32_t id, uint64_t offset)
{
    const uint64_t granules = offset >> space->granule_log2;
    space->ranges[id].offset = (uint32_t)granules;
    if (space->uppers != NULL) {
        space->uppers[id].offset = (uint32_t)(granules >> 32);
    }
}

static inline void range_set_size(allot_space *space, uint32_t id, uint64_t size)
{
    const uint64_t granules = size >> space->granule_log2;
    space->ranges[id].size = (uint32_t)granules;
    if (space->uppers != NULL) {
        space->uppers[id].size = (uint32_t)(granules >> 32);
    }
}

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
static inline bool space_fits(const allot_space *space, uint32_t id, uint64_t size, uint64_t align,
                              uint64_t *offset)
{
    const uint64_t begin = (range_offset(space, id) + align - 1) & ~(align - 1);
    const uint64_t front = begin - range_offset(space, id);
    *offset = begin;
    return front <= range_size(space, id) && range_size(space, id) - front >= size;
}

/**
 * The free range in which a byte lies; ALLOT_NONE if it is used or not in the space.
 *
 * @param[in] near  A range from which to look upwards, where it is one that is in use and lies
 *                  below; ALLOT_NONE: none. O(ranges in between); without it O(log n) for first fit
 *                  and adaptive, else O(n).
 */
uint32_t alloti_space_find_free(const allot_space *space, uint32_t near, uint64_t offset);

/**
 * As allot_space_alloc(), at a place that is given.
 *
 * @param[in] id  The free range, from alloti_space_find_free().
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_FRAGMENTED if the place is not in it;
 *         ALLOT_STATUS_UNSUPPORTED for strategies whose ranges cannot begin anywhere (buddy,
 *         tiered); ALLOT_STATUS_HOST_MEMORY.
 */
ALLOT_NODISCARD allot_status alloti_space_take(allot_space *space, uint32_t id, uint64_t offset,
                                               uint64_t size, uint32_t tag, allot_range *out);

/**
 * Whether a used range could begin at a lower offset, in the free memory before it, and room for
 * that in tables.
 *
 * @return ALLOT_STATUS_OK, and alloti_space_slide() cannot fail until the next call that changes
 *         the space; ALLOT_STATUS_FRAGMENTED; ALLOT_STATUS_UNSUPPORTED; ALLOT_STATUS_HOST_MEMORY.
 */
ALLOT_NODISCARD allot_status alloti_space_reserve_slide(allot_space *space, uint32_t id,
                                                        uint64_t offset);

/** Let a used range begin there; its id and size stay. */
void alloti_space_slide(allot_space *space, uint32_t id, uint64_t offset);

/** Let a new adaptive space go by what others learn, instead of learning itself. */
void alloti_adaptive_follow(allot_space *space, const alloti_lifetimes *lifetimes);

/** Whether alloti_space_take() is supported. */
static inline bool space_can_take(const allot_space *space)
{
    return space->ops->take != NULL;
}

#endif /* ALLOTI_SPACE_SPACE_H */
