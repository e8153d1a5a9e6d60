/* SPDX-License-Identifier: MIT */
/*
 * First fit from both ends, told apart by what was seen. Requests of one power of two and one tag
 * are a kind; each kind knows how long its ranges lived, counted in requests. A kind whose ranges
 * go clearly sooner than those of the space as a whole is placed from the high end, every other
 * from the low end, so that what stays is not strewn among what goes.
 *
 * "Clearly" is a factor of four in the mean of the logarithm. Where sizes and lifetimes have
 * nothing to do with each other no kind stands out, and this is first fit.
 *
 * Invariant: of a used range, origins[] has the request that made it.
 */
#include <stdlib.h>

#include "core/table.h"
#include "space/first_fit.h"
#include "space/ranges.h"

enum {
    KINDS_LOG2 = 10,
    KINDS = 1 << KINDS_LOG2,
    SCALE = 256,          /**< Logarithms are kept in 1/256. */
    SAMPLES_MIN = 8,      /**< Before that a kind is not judged. */
    WEIGHT_LOG2 = 4,      /**< A new sample counts 1/16 in a kind's mean, */
    WEIGHT_ALL_LOG2 = 10, /**< 1/1024 in that of all. */
    FACTOR_LOG2 = 2,      /**< Four times sooner. */
};

typedef struct lifetime {
    int32_t mean; /**< Of log2(requests), times SCALE. */
    uint32_t samples;
} lifetime;

/** Where a used range comes from. */
typedef struct origin {
    uint32_t request; /**< Its number. */
    uint32_t kind;
} origin;

typedef struct adaptive_index {
    range_index by_offset;
    origin *origins; /**< [range] */
    uint64_t origins_capacity;
    lifetime all;
    lifetime kinds[KINDS];
} adaptive_index;

static allot_status init(allot_space *space, const allot_space_options *options)
{
    (void)options;
    adaptive_index *const index = calloc(1, sizeof *index);
    if (index == NULL) {
        return alloti_fail_memory(sizeof *index);
    }
    alloti_range_index_init(&index->by_offset);
    space->index = index;
    return ALLOT_STATUS_OK;
}

static void fini(allot_space *space)
{
    adaptive_index *const index = space->index;
    alloti_range_index_fini(&index->by_offset);
    free(index->origins);
    free(index);
}

static range_index *tree_of(const allot_space *space)
{
    adaptive_index *const index = space->index;
    return &index->by_offset;
}

static allot_status reserve(allot_space *space)
{
    return alloti_range_index_reserve(tree_of(space), 2);
}

static allot_status reserve_ranges(allot_space *space, uint64_t count)
{
    adaptive_index *const index = space->index;
    return alloti_table_reserve(&index->origins, &index->origins_capacity, count,
                                sizeof *index->origins);
}

/** Fibonacci hashing (Knuth, The Art of Computer Programming, vol. 3, 6.4). */
static uint32_t kind_of(uint64_t size, uint32_t tag)
{
    const uint64_t key = (uint64_t)tag << 6 | alloti_log2(size);
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> (64 - KINDS_LOG2));
}

/** Logarithm of a lifetime, times SCALE, linear between powers of two. */
static int32_t scaled_log2(uint32_t requests)
{
    const uint64_t value = (uint64_t)requests + 1;
    const unsigned whole = alloti_log2(value);
    const uint64_t rest = value - (UINT64_C(1) << whole);
    return (int32_t)(whole * SCALE) + (int32_t)(rest * SCALE >> whole);
}

static void learn(lifetime *l, int32_t sample, unsigned weight_log2)
{
    l->mean += l->samples == 0 ? sample : (sample - l->mean) / (1 << weight_log2);
    l->samples += l->samples < UINT32_MAX ? 1 : 0;
}

static bool goes_soon(const adaptive_index *index, uint32_t kind)
{
    const lifetime *const own = &index->kinds[kind];
    return own->samples >= SAMPLES_MIN && own->mean + FACTOR_LOG2 * SCALE <= index->all.mean;
}

/** Use of a place that was found begins. */
static uint32_t take_at(allot_space *space, uint32_t found, uint64_t offset, uint64_t size,
                        uint32_t tag)
{
    adaptive_index *const index = space->index;
    const uint32_t id = range_carve(&alloti_adaptive_ops, space, found, offset, size);
    index->origins[id] =
        (origin){.request = (uint32_t)space->alloc_count, .kind = kind_of(size, tag)};
    return id;
}

static uint32_t find(const allot_space *space, uint64_t offset)
{
    return alloti_range_index_highest(tree_of(space), space, offset + 1, 1);
}

static uint32_t alloc(allot_space *space, uint64_t size, uint64_t align, uint32_t tag)
{
    adaptive_index *const index = space->index;
    const uint32_t kind = kind_of(size, tag);
    uint64_t offset = 0;
    const uint32_t found = goes_soon(index, kind)
                               ? first_fit_highest(&index->by_offset, space, size, align, &offset)
                               : first_fit_lowest(&index->by_offset, space, size, align, &offset);
    return found == ALLOT_NONE ? ALLOT_NONE : take_at(space, found, offset, size, tag);
}

static void release(allot_space *space, uint32_t id)
{
    adaptive_index *const index = space->index;
    const origin from = index->origins[id];
    const uint32_t lived = (uint32_t)space->alloc_count - from.request;
    const int32_t sample = scaled_log2(lived);
    learn(&index->kinds[from.kind], sample, WEIGHT_LOG2);
    learn(&index->all, sample, WEIGHT_ALL_LOG2);
    (void)range_merge(&alloti_adaptive_ops, space, id);
}

static void add(allot_space *space, uint32_t id)
{
    alloti_range_index_insert(tree_of(space), space, id);
}

static void take(allot_space *space, uint32_t id)
{
    alloti_range_index_remove(tree_of(space), space, id);
}

static void change(allot_space *space, uint32_t id, uint64_t old_offset, uint64_t old_size)
{
    (void)old_offset;
    (void)old_size;
    alloti_range_index_change(tree_of(space), space, id);
}

static bool resize(allot_space *space, uint32_t id, uint64_t size)
{
    return range_resize(&alloti_adaptive_ops, space, id, size);
}

static uint64_t largest(const allot_space *space)
{
    return alloti_range_index_largest(tree_of(space), space);
}

static const char *check(const allot_space *space)
{
    return alloti_range_index_check(tree_of(space), space, space->free_count)
               ? NULL
               : "the tree by address is wrong";
}

const space_ops alloti_adaptive_ops = {
    .has_homes = true,
    .places = 2,
    .init = init,
    .fini = fini,
    .reserve = reserve,
    .reserve_ranges = reserve_ranges,
    .alloc = alloc,
    .take = take_at,
    .find = find,
    .free = release,
    .resize = resize,
    .add = add,
    .remove = take,
    .change = change,
    .largest = largest,
    .check = check,
};
