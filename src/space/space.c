/* SPDX-License-Identifier: MIT */
/* The calls of <allot/space.h>: checks of arguments, sums, and asking the strategy. */
#include "space/ranges.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/options.h"
#include "core/table.h"

#define CAPACITY_MAX (UINT64_C(1) << 63)

enum { GRANULE_DEFAULT = 256 };

static const char *const NAMES[] = {
#define SPACE_STRATEGY_NAME(name, value, spelling) [value] = (spelling),
    ALLOT_SPACE_STRATEGY_LIST(SPACE_STRATEGY_NAME)
#undef SPACE_STRATEGY_NAME
};

enum { STRATEGY_COUNT = sizeof NAMES / sizeof NAMES[0] };

static const space_ops *const OPS[] = {
    [ALLOT_SPACE_STRATEGY_FIRST_FIT] = &alloti_first_fit_ops,
    [ALLOT_SPACE_STRATEGY_BEST_FIT] = &alloti_best_fit_ops,
    [ALLOT_SPACE_STRATEGY_BUDDY] = &alloti_buddy_ops,
    [ALLOT_SPACE_STRATEGY_TLSF] = &alloti_tlsf_ops,
    [ALLOT_SPACE_STRATEGY_TIERED] = &alloti_tiered_ops,
    [ALLOT_SPACE_STRATEGY_ADAPTIVE] = &alloti_adaptive_ops,
};
_Static_assert(sizeof OPS / sizeof OPS[0] == STRATEGY_COUNT, "each strategy has its operations");

const char *allot_space_strategy_name(allot_space_strategy strategy)
{
    return (unsigned)strategy < STRATEGY_COUNT ? NAMES[strategy] : "unknown";
}

allot_status allot_space_strategy_parse(const char *text, allot_space_strategy *out)
{
    char all[256];
    size_t length = 0;
    for (unsigned i = 0; i < STRATEGY_COUNT; i++) {
        if (strcmp(text, NAMES[i]) == 0) {
            *out = (allot_space_strategy)i;
            return ALLOT_STATUS_OK;
        }
        length += (size_t)snprintf(all + length, sizeof all - length, " %s", NAMES[i]);
    }
    return alloti_fail(ALLOT_STATUS_NOT_FOUND, "strategy \"%s\": there are%s", text, all);
}

/* ---- creating ---- */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t rooms(const allot_space *space)
{
    const uint64_t both = smaller(space->ranges_capacity, space->marks_capacity);
    const uint64_t homes = space->homes == NULL ? both : smaller(both, space->homes_capacity);
    return space->uppers == NULL ? homes : smaller(homes, space->uppers_capacity);
}

static allot_status grow_table(allot_space *space)
{
    const uint64_t need = (uint64_t)space->count + space->ops->places;
    if (need >= ALLOT_NONE) {
        return alloti_fail(ALLOT_STATUS_HOST_MEMORY, "a space has at most 2^32 - 1 ranges");
    }
    allot_status status =
        alloti_table_reserve(&space->ranges, &space->ranges_capacity, need, sizeof *space->ranges);
    if (status == ALLOT_STATUS_OK) {
        status =
            alloti_table_reserve(&space->marks, &space->marks_capacity, need, sizeof *space->marks);
    }
    if (status == ALLOT_STATUS_OK && space->uppers != NULL) {
        status = alloti_table_reserve(&space->uppers, &space->uppers_capacity, need,
                                      sizeof *space->uppers);
    }
    if (status == ALLOT_STATUS_OK && space->ops->has_homes) {
        status =
            alloti_table_reserve(&space->homes, &space->homes_capacity, need, sizeof *space->homes);
    }
    if (status == ALLOT_STATUS_OK && space->ops->reserve_ranges != NULL) {
        status = space->ops->reserve_ranges(space, space->ranges_capacity);
    }
    if (status == ALLOT_STATUS_OK) {
        space->room = rooms(space);
    }
    return status;
}

/** Begin to keep upper halves if a capacity, in bytes, has 2^32 granules or more. */
static allot_status reserve_uppers(allot_space *space, uint64_t capacity)
{
    if (capacity >> space->granule_log2 <= UINT32_MAX || space->uppers != NULL) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status = alloti_table_reserve(&space->uppers, &space->uppers_capacity,
                                                     space->room, sizeof *space->uppers);
    if (status == ALLOT_STATUS_OK) {
        memset(space->uppers, 0, (size_t)space->uppers_capacity * sizeof *space->uppers);
    }
    return status;
}

/** Room for what one call enters, so that nothing can fail once something has changed. */
static inline allot_status reserve(allot_space *space)
{
    const uint32_t places = space->ops->places;
    if (space->unused_count < places && space->count + (uint64_t)places > space->room) {
        const allot_status status = grow_table(space);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return space->ops->reserve == NULL ? ALLOT_STATUS_OK : space->ops->reserve(space);
}

static allot_status init(allot_space *space, uint64_t capacity, const allot_space_options *options)
{
    const uint64_t granule = options->granule == 0 ? GRANULE_DEFAULT : options->granule;
    if (!alloti_is_pow2(granule) || granule > CAPACITY_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "granule %" PRIu64 ": not a power of two",
                           granule);
    }
    if ((unsigned)options->strategy >= STRATEGY_COUNT) {
        return alloti_fail(ALLOT_STATUS_INVALID, "strategy %d: there are 0 to %d",
                           (int)options->strategy, STRATEGY_COUNT - 1);
    }
    space->strategy = options->strategy;
    space->ops = OPS[options->strategy];
    space->granule_log2 = alloti_log2(granule);
    space->first = space->last = space->unused = ALLOT_NONE;
    const allot_status status = space->ops->init(space, options);
    return status == ALLOT_STATUS_OK ? allot_space_set_capacity(space, capacity) : status;
}

allot_status allot_space_create(uint64_t capacity, const allot_space_options *options,
                                allot_space **out)
{
    allot_space_options taken;
    allot_status status = alloti_options_take(options, sizeof taken, &taken);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_space *const space = calloc(1, sizeof *space);
    if (space == NULL) {
        return alloti_fail_memory(sizeof *space);
    }
    status = init(space, capacity, &taken);
    if (status != ALLOT_STATUS_OK) {
        allot_space_destroy(space);
        return status;
    }
    *out = space;
    return ALLOT_STATUS_OK;
}

void allot_space_destroy(allot_space *space)
{
    if (space == NULL) {
        return;
    }
    if (space->index != NULL) {
        space->ops->fini(space);
    }
    free(space->ranges);
    free(space->marks);
    free(space->uppers);
    free(space->homes);
    free(space);
}

/* ---- placing ---- */

static uint64_t size_free(const allot_space *space)
{
    return space->capacity - space->size_used;
}

static allot_status refuse(allot_space *space, uint64_t size, uint64_t align)
{
    space->failed_count++;
    const bool is_fragmented = size <= size_free(space);
    return alloti_fail(is_fragmented ? ALLOT_STATUS_FRAGMENTED : ALLOT_STATUS_DEVICE_MEMORY,
                       "asked %" PRIu64 " bytes aligned to %" PRIu64 ": %" PRIu64 " of %" PRIu64
                       " are free, the largest range has %" PRIu64,
                       size, align, size_free(space), space->capacity,
                       allot_space_largest_free(space));
}

static inline bool round_up(const allot_space *space, uint64_t size, uint64_t *out)
{
    return space->ops->round == NULL ? range_round(space, size, out)
                                     : space->ops->round(space, size, out);
}

static void count_used(allot_space *space, uint32_t id)
{
    space->size_used += range_size(space, id);
    const uint64_t end = range_end(space, id);
    if (space->size_used > space->size_used_peak) {
        space->size_used_peak = space->size_used;
    }
    if (end > space->offset_high_peak) {
        space->offset_high_peak = end;
    }
}

/** A range was made used: it is counted. */
static allot_range begin_use(allot_space *space, uint32_t id)
{
    space->used_count++;
    space->alloc_count++;
    count_used(space, id);
    return (allot_range){.offset = range_offset(space, id),
                         .size = range_size(space, id),
                         .id = id,
                         .is_free = false};
}

static allot_range view(const allot_space *space, uint32_t id)
{
    return (allot_range){.offset = range_offset(space, id),
                         .size = range_size(space, id),
                         .id = id,
                         .is_free = (space->marks[id] & MARK_FREE) != 0};
}

allot_status allot_space_alloc(allot_space *space, uint64_t size, uint64_t align, uint32_t tag,
                               allot_range *out)
{
    const uint64_t granule = UINT64_C(1) << space->granule_log2;
    uint64_t rounded = 0;
    if (size == 0 || (align & (align - 1)) != 0) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "asked %" PRIu64 " bytes aligned to %" PRIu64
                           ": sizes begin at 1, alignments are powers of two",
                           size, align);
    }
    const allot_status status = reserve(space);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t aligned = align < granule ? granule : align;
    if (!round_up(space, size, &rounded) || rounded > size_free(space)) {
        return refuse(space, size, aligned);
    }
    const uint32_t id = space->ops->alloc(space, rounded, aligned, tag);
    if (id == ALLOT_NONE) {
        return refuse(space, size, aligned);
    }
    *out = begin_use(space, id);
    return ALLOT_STATUS_OK;
}

uint32_t alloti_space_find_free(const allot_space *space, uint32_t near, uint64_t offset)
{
    const bool is_near = space_is_used(space, near) && range_offset(space, near) <= offset;
    uint32_t id = is_near ? near : space->first;
    if (space->ops->find != NULL) {
        id = space->ops->find(space, offset);
    } else {
        while (id != ALLOT_NONE && range_end(space, id) <= offset) {
            id = space->ranges[id].next;
        }
    }
    return space_is_free(space, id) && range_end(space, id) > offset ? id : ALLOT_NONE;
}

static bool lies_in(const allot_space *space, uint32_t id, uint64_t offset, uint64_t size)
{
    return space_is_free(space, id) && offset >= range_offset(space, id) &&
           size <= range_size(space, id) &&
           offset - range_offset(space, id) <= range_size(space, id) - size;
}

allot_status alloti_space_take(allot_space *space, uint32_t id, uint64_t offset, uint64_t size,
                               uint32_t tag, allot_range *out)
{
    if (!space_can_take(space)) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "ranges of %s have places of their own",
                           allot_space_strategy_name(space->strategy));
    }
    if (!lies_in(space, id, offset, size)) {
        return alloti_fail(ALLOT_STATUS_FRAGMENTED, "%" PRIu64 " bytes at %" PRIu64 " are not free",
                           size, offset);
    }
    const allot_status status = reserve(space);
    if (status == ALLOT_STATUS_OK) {
        *out = begin_use(space, space->ops->take(space, id, offset, size, tag));
    }
    return status;
}

allot_status alloti_space_reserve_slide(allot_space *space, uint32_t id, uint64_t offset)
{
    const uint32_t before = space->ranges[id].prev;
    if (!space_can_take(space)) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "ranges of %s have places of their own",
                           allot_space_strategy_name(space->strategy));
    }
    if (offset >= range_offset(space, id) ||
        !lies_in(space, before, offset, range_offset(space, id) - offset)) {
        return alloti_fail(ALLOT_STATUS_FRAGMENTED,
                           "what is between %" PRIu64 " and a range at %" PRIu64 " is not free",
                           offset, range_offset(space, id));
    }
    return reserve(space);
}

/* The range takes over what is before it, then gives up as much at its end: at no time is there a
 * place in the list that is neither used nor free. */
void alloti_space_slide(allot_space *space, uint32_t id, uint64_t offset)
{
    const uint64_t size = range_size(space, id);
    const uint64_t distance = range_offset(space, id) - offset;
    const uint32_t front =
        space->ops->take(space, space->ranges[id].prev, offset, distance, /*tag*/ 0);
    space->marks[id] |= space->marks[front] & MARK_CHUNK;
    range_set_offset(space, id, offset);
    range_set_size(space, id, size + distance);
    range_drop(space, front);
    (void)space->ops->resize(space, id, size);
}

static allot_status refuse_id(uint32_t id)
{
    return alloti_fail(ALLOT_STATUS_INVALID, "no used range has the id %" PRIu32, id);
}

allot_status allot_space_free(allot_space *space, uint32_t id)
{
    if (!space_is_used(space, id)) {
        return refuse_id(id);
    }
    const allot_status status = reserve(space);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    space->used_count--;
    space->size_used -= range_size(space, id);
    space->ops->free(space, id);
    return ALLOT_STATUS_OK;
}

allot_status allot_space_resize(allot_space *space, uint32_t id, uint64_t size)
{
    uint64_t rounded = 0;
    if (!space_is_used(space, id)) {
        return refuse_id(id);
    }
    if (size == 0) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a range has at least one byte");
    }
    const allot_status status = reserve(space);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t old = range_size(space, id);
    if (!round_up(space, size, &rounded) || !space->ops->resize(space, id, rounded)) {
        return alloti_fail(ALLOT_STATUS_FRAGMENTED,
                           "range %" PRIu32 " of %" PRIu64 " bytes cannot have %" PRIu64
                           " where it is",
                           id, old, size);
    }
    space->size_used -= old;
    count_used(space, id);
    return ALLOT_STATUS_OK;
}

/* ---- capacity ---- */

static void grow(allot_space *space, uint64_t capacity)
{
    /* A used range at the end, freed at once: so it merges as any other. */
    const uint32_t id = range_insert(space, space->last, ALLOT_NONE, space->capacity,
                                     capacity - space->capacity, MARK_USED);
    if (space->homes != NULL) {
        space->homes[id] = ALLOT_NONE;
    }
    space->capacity = capacity;
    (void)range_merge(space->ops, space, id);
}

/** End of the highest used range. */
static uint64_t used_end(const allot_space *space)
{
    uint64_t end = space->capacity;
    for (uint32_t id = space->last; space_is_free(space, id); id = space->ranges[id].prev) {
        end = range_offset(space, id);
    }
    return end;
}

/** Cut off what lies above; there are several free ranges where zones keep them apart. */
static void shrink(allot_space *space, uint64_t capacity)
{
    while (space->last != ALLOT_NONE && range_offset(space, space->last) >= capacity) {
        const uint32_t last = space->last;
        space->ops->remove(space, last);
        range_drop(space, last);
        space->free_count--;
    }
    space->capacity = capacity;
    if (space->last != ALLOT_NONE) {
        const uint64_t offset = range_offset(space, space->last);
        const uint64_t old_size = range_size(space, space->last);
        if (capacity - offset != old_size) {
            range_set_size(space, space->last, capacity - offset);
            space->ops->change(space, space->last, offset, old_size);
        }
    }
}

allot_status allot_space_set_capacity(allot_space *space, uint64_t capacity)
{
    if (capacity > CAPACITY_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID, "capacity %" PRIu64 ": above 2^63", capacity);
    }
    allot_status status = reserve(space);
    if (status == ALLOT_STATUS_OK) {
        status = reserve_uppers(space, capacity);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t rounded = alloti_align_down(capacity, UINT64_C(1) << space->granule_log2);
    if (rounded == space->capacity) {
        return ALLOT_STATUS_OK;
    }
    if (space->ops->set_capacity != NULL) {
        return space->ops->set_capacity(space, rounded);
    }
    if (rounded > space->capacity) {
        grow(space, rounded);
        return ALLOT_STATUS_OK;
    }
    if (used_end(space) > rounded) {
        return alloti_fail(ALLOT_STATUS_BUSY, "capacity %" PRIu64 ": a used range ends above it",
                           capacity);
    }
    shrink(space, rounded);
    return ALLOT_STATUS_OK;
}

/* ---- looking ---- */

allot_status allot_space_get(const allot_space *space, uint32_t id, allot_range *out)
{
    if (!space_is_used(space, id)) {
        return refuse_id(id);
    }
    *out = view(space, id);
    return ALLOT_STATUS_OK;
}

bool allot_space_next(const allot_space *space, uint32_t *at, allot_range *out)
{
    const uint32_t id = *at == ALLOT_NONE ? space->first : space->ranges[*at].next;
    if (id == ALLOT_NONE) {
        return false;
    }
    *at = id;
    *out = view(space, id);
    return true;
}

uint64_t allot_space_largest_free(const allot_space *space)
{
    return space->ops->largest(space);
}

void allot_space_get_stats(const allot_space *space, allot_space_stats *out)
{
    *out = (allot_space_stats){.struct_size = sizeof *out,
                               .capacity = space->capacity,
                               .size_used = space->size_used,
                               .size_used_peak = space->size_used_peak,
                               .size_free = size_free(space),
                               .size_free_largest = allot_space_largest_free(space),
                               .offset_high_peak = space->offset_high_peak,
                               .used_count = space->used_count,
                               .free_count = space->free_count,
                               .alloc_count = space->alloc_count,
                               .failed_count = space->failed_count};
    allot_range range;
    for (uint32_t at = ALLOT_NONE; allot_space_next(space, &at, &range);) {
        (range.is_free ? out->free_histogram : out->used_histogram)[alloti_log2(range.size)]++;
        if (!range.is_free) {
            out->offset_high = range.offset + range.size;
        }
    }
    if (out->size_free != 0) {
        out->fragmentation = 1 - (double)out->size_free_largest / (double)out->size_free;
    }
}
