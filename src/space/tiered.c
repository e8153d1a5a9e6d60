/* SPDX-License-Identifier: MIT */
/*
 * Tiers of sizes, each a zone of its own. A tier takes chunks from zone 0, where large requests are
 * placed and everything begins, and gives a chunk back when nothing in it is used. So small ranges
 * lie together, and what is left of a large range is not eaten up by them. Chunks of one tier are
 * one index: first fit fills the lowest and lets the highest run empty.
 *
 * A request for which neither its tier nor a new chunk has room is placed in zone 0.
 *
 * Invariants: a chunk begins with MARK_CHUNK and ends where the zone changes or another chunk
 * begins; no chunk is free as a whole.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "space/first_fit.h"
#include "space/ranges.h"

static const uint64_t SIZES_DEFAULT[] = {UINT64_C(64) << 10, UINT64_C(1) << 20, UINT64_C(16) << 20};

enum { CHUNK_FACTOR_DEFAULT = 16, SIZES_DEFAULT_COUNT = 3 };

typedef struct tiers {
    uint32_t count;                         /**< Without zone 0. */
    uint64_t sizes[ALLOT_SPACE_TIERS_MAX];  /**< [zone] Largest request; [0] is not used. */
    uint64_t chunks[ALLOT_SPACE_TIERS_MAX]; /**< [zone] Bytes of a chunk. */
    range_index zones[ALLOT_SPACE_TIERS_MAX];
} tiers;

static allot_status set_tiers(allot_space *space, tiers *t, const allot_space_options *options)
{
    const bool is_default = options->tier_sizes[0] == 0;
    const uint64_t factor =
        options->chunk_factor == 0 ? CHUNK_FACTOR_DEFAULT : options->chunk_factor;
    const uint32_t given = is_default ? SIZES_DEFAULT_COUNT : ALLOT_SPACE_TIERS_MAX - 1;
    for (uint32_t i = 0; i < given; i++) {
        const uint64_t size = is_default ? SIZES_DEFAULT[i] : options->tier_sizes[i];
        if (size == 0 && !is_default) {
            break;
        }
        uint64_t rounded = 0;
        uint64_t chunk = 0;
        if (!range_round(space, size, &rounded) || !alloti_mul(rounded, factor, &chunk) ||
            rounded <= t->sizes[t->count]) {
            return alloti_fail(ALLOT_STATUS_INVALID,
                               "tier %" PRIu32 " of %" PRIu64 " bytes: sizes rise", i, size);
        }
        t->count++;
        t->sizes[t->count] = rounded;
        t->chunks[t->count] = chunk;
    }
    return ALLOT_STATUS_OK;
}

static allot_status init(allot_space *space, const allot_space_options *options)
{
    tiers *const t = calloc(1, sizeof *t);
    if (t == NULL) {
        return alloti_fail_memory(sizeof *t);
    }
    for (uint32_t i = 0; i < ALLOT_SPACE_TIERS_MAX; i++) {
        alloti_range_index_init(&t->zones[i]);
    }
    space->index = t;
    return set_tiers(space, t, options);
}

static void fini(allot_space *space)
{
    tiers *const t = space->index;
    for (uint32_t i = 0; i < ALLOT_SPACE_TIERS_MAX; i++) {
        alloti_range_index_fini(&t->zones[i]);
    }
    free(t);
}

static allot_status reserve(allot_space *space)
{
    tiers *const t = space->index;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i <= t->count; i++) {
        status = alloti_range_index_reserve(&t->zones[i], 2);
    }
    return status;
}

static range_index *index_of(const allot_space *space, uint32_t id)
{
    tiers *const t = space->index;
    return &t->zones[space_zone(space, id)];
}

/** The lowest aligned place in a zone, made used; ALLOT_NONE if there is none. */
static uint32_t place_in(allot_space *space, uint32_t zone, uint64_t size, uint64_t align)
{
    const tiers *const t = space->index;
    uint64_t offset = 0;
    const uint32_t id = first_fit_lowest(&t->zones[zone], space, size, align, &offset);
    return id == ALLOT_NONE ? ALLOT_NONE : range_carve(&alloti_tiered_ops, space, id, offset, size);
}

/** Whether a chunk holds an aligned range wherever it begins. */
static bool can_hold(const allot_space *space, uint32_t zone, uint64_t size, uint64_t align)
{
    const tiers *const t = space->index;
    const uint64_t granule = UINT64_C(1) << space->granule_log2;
    return t->chunks[zone] - size >= align - granule;
}

/** Add a free chunk to a tier; false if zone 0 has none. */
static bool take_chunk(allot_space *space, uint32_t zone)
{
    const tiers *const t = space->index;
    const uint64_t granule = UINT64_C(1) << space->granule_log2;
    const uint32_t id = place_in(space, 0, t->chunks[zone], granule);
    if (id == ALLOT_NONE) {
        return false;
    }
    space->marks[id] = (uint8_t)(MARK_FREE | MARK_CHUNK | zone << MARK_ZONE_SHIFT);
    alloti_range_index_insert(index_of(space, id), space, id);
    space->free_count++;
    return true;
}

static uint32_t alloc(allot_space *space, uint64_t size, uint64_t align, uint32_t tag)
{
    (void)tag;
    const tiers *const t = space->index;
    uint32_t zone = 1;
    while (zone <= t->count && size > t->sizes[zone]) {
        zone++;
    }
    uint32_t id = ALLOT_NONE;
    if (zone <= t->count && align <= t->sizes[zone]) {
        id = place_in(space, zone, size, align);
        if (id == ALLOT_NONE && can_hold(space, zone, size, align) && take_chunk(space, zone)) {
            id = place_in(space, zone, size, align);
        }
    }
    return id == ALLOT_NONE ? place_in(space, 0, size, align) : id;
}

/** Whether a free range is all of a chunk. */
static bool is_chunk(const allot_space *space, uint32_t id)
{
    const uint32_t next = space->ranges[id].next;
    return space_zone(space, id) != 0 && (space->marks[id] & MARK_CHUNK) != 0 &&
           (next == ALLOT_NONE || space_zone(space, next) != space_zone(space, id) ||
            (space->marks[next] & MARK_CHUNK) != 0);
}

static void release(allot_space *space, uint32_t id)
{
    const uint32_t merged = range_merge(&alloti_tiered_ops, space, id);
    if (is_chunk(space, merged)) {
        alloti_range_index_remove(index_of(space, merged), space, merged);
        space->free_count--;
        space->marks[merged] = MARK_USED;
        (void)range_merge(&alloti_tiered_ops, space, merged);
    }
}

static void add(allot_space *space, uint32_t id)
{
    alloti_range_index_insert(index_of(space, id), space, id);
}

static void take(allot_space *space, uint32_t id)
{
    alloti_range_index_remove(index_of(space, id), space, id);
}

static void change(allot_space *space, uint32_t id, uint64_t old_offset, uint64_t old_size)
{
    (void)old_offset;
    (void)old_size;
    alloti_range_index_change(index_of(space, id), space, id);
}

static bool resize(allot_space *space, uint32_t id, uint64_t size)
{
    return range_resize(&alloti_tiered_ops, space, id, size);
}

static uint64_t largest(const allot_space *space)
{
    const tiers *const t = space->index;
    uint64_t size = 0;
    for (uint32_t i = 0; i <= t->count; i++) {
        const uint64_t own = alloti_range_index_largest(&t->zones[i], space);
        size = own > size ? own : size;
    }
    return size;
}

static const char *check(const allot_space *space)
{
    const tiers *const t = space->index;
    uint64_t counts[ALLOT_SPACE_TIERS_MAX] = {0};
    for (uint32_t id = space->first; id != ALLOT_NONE; id = space->ranges[id].next) {
        const unsigned zone = space_zone(space, id);
        if (zone > t->count) {
            return "a range is in a tier that is not there";
        }
        if (space_is_free(space, id)) {
            counts[zone]++;
            if (is_chunk(space, id)) {
                return "a chunk is free as a whole";
            }
        }
    }
    for (uint32_t i = 0; i <= t->count; i++) {
        if (!alloti_range_index_check(&t->zones[i], space, counts[i])) {
            return "the tree of a tier is wrong";
        }
    }
    return NULL;
}

const space_ops alloti_tiered_ops = {
    .has_homes = true,
    .places = 4,
    .init = init,
    .fini = fini,
    .reserve = reserve,
    .alloc = alloc,
    .free = release,
    .resize = resize,
    .add = add,
    .remove = take,
    .change = change,
    .largest = largest,
    .check = check,
};
