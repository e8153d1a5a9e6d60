/* SPDX-License-Identifier: MIT */
#include "compact/layout.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/size_math.h"
#include "heap/place.h"
#include "space/space.h"

/** What lies in a layout when it is made. */
typedef struct entry {
    uint64_t offset;
    uint64_t size;
    uint32_t block;
} entry;

static int compare_entries(const void *a, const void *b)
{
    const entry *const x = a;
    const entry *const y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* ---- making ---- */

/** Where areas begin; returns the capacity of them all. */
static uint64_t set_bases(const compact_state *state, compact_layout *layout)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < layout->region_count; i++) {
        const compact_region *const region = &layout->regions[i];
        const uint64_t rest = state->areas[region->area].address & (state->phase - 1);
        layout->bases[i] =
            alloti_align_down(end + state->granule + state->phase - 1, state->phase) + rest;
        end = layout->bases[i] + region->end;
    }
    return end;
}

/** Entries of one region; returns how many. */
static uint64_t list_region(const compact_state *state, const compact_place *places,
                            const uint32_t *blocks, uint32_t count, const compact_region *region,
                            uint64_t base, entry *out)
{
    uint64_t listed = 0;
    for (uint32_t i = 0; i < count; i++) {
        const compact_block *const block = &state->blocks[blocks[i]];
        const uint64_t offset = places[blocks[i]].offset;
        uint64_t size = block->size;
        if (offset >= region->end || (block->is_movable && offset + size > region->end)) {
            continue;
        }
        size = size < region->end - offset ? size : region->end - offset;
        out[listed++] = (entry){.offset = base + offset, .size = size, .block = blocks[i]};
    }
    return listed;
}

/** Blocks by the area that they are in now: those of area `a` are [starts[a], starts[a + 1]). */
static allot_status sort_by_area(const compact_state *state, const compact_place *places,
                                 uint32_t **starts, uint32_t **blocks)
{
    *starts = alloti_calloc_array((uint64_t)state->area_count + 2, sizeof **starts);
    *blocks = alloti_alloc_array((uint64_t)state->block_count + 1, sizeof **blocks);
    if (*starts == NULL || *blocks == NULL) {
        return alloti_fail_memory((uint64_t)state->block_count * sizeof **blocks);
    }
    for (uint32_t i = 0; i < state->block_count; i++) {
        (*starts)[places[i].area + 2]++;
    }
    for (uint32_t a = 2; a <= state->area_count; a++) {
        (*starts)[a] += (*starts)[a - 1];
    }
    for (uint32_t i = 0; i < state->block_count; i++) {
        (*blocks)[(*starts)[places[i].area + 1]++] = i;
    }
    return ALLOT_STATUS_OK;
}

static allot_status add_entry(compact_layout *layout, const entry *e, compact_place *places)
{
    allot_range range;
    allot_status status =
        alloti_space_take(layout->space, layout->space->last, e->offset, e->size, 0, &range);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_layout_own(layout, &range, e->block,
                                   e->block == ALLOT_NONE ? NULL : &places[e->block]);
    }
    return status;
}

static allot_status fill(const compact_state *state, compact_layout *layout, entry *entries,
                         const uint32_t *starts, const uint32_t *blocks, compact_place *places)
{
    uint64_t end = 0;
    for (uint32_t r = 0; r < layout->region_count; r++) {
        const compact_region *const region = &layout->regions[r];
        const uint64_t base = layout->bases[r];
        const uint32_t first = starts[region->area];
        const entry gap = {.offset = end, .size = base - end, .block = ALLOT_NONE};
        const uint64_t count = list_region(state, places, blocks + first,
                                           starts[region->area + 1] - first, region, base, entries);
        qsort(entries, count, sizeof *entries, compare_entries);
        allot_status status = add_entry(layout, &gap, places);
        for (uint64_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
            status = add_entry(layout, &entries[i], places);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        end = base + region->end;
    }
    return ALLOT_STATUS_OK;
}

static allot_status make(const compact_state *state, compact_place *places,
                         allot_space_strategy strategy, compact_layout *layout)
{
    uint32_t *starts = NULL;
    uint32_t *blocks = NULL;
    entry *const entries = alloti_alloc_array((uint64_t)state->block_count + 1, sizeof *entries);
    layout->bases = alloti_alloc_array((uint64_t)layout->region_count + 1, sizeof *layout->bases);
    allot_status status = entries == NULL || layout->bases == NULL
                              ? alloti_fail_memory((uint64_t)state->block_count * sizeof *entries)
                              : sort_by_area(state, places, &starts, &blocks);
    if (status == ALLOT_STATUS_OK) {
        const allot_space_options options = {
            .struct_size = sizeof options, .strategy = strategy, .granule = state->granule};
        status = allot_space_create(set_bases(state, layout), &options, &layout->space);
    }
    if (status == ALLOT_STATUS_OK) {
        for (uint32_t i = 0; i < state->block_count; i++) {
            places[i].range = ALLOT_NONE;
        }
        status = fill(state, layout, entries, starts, blocks, places);
    }
    free(entries);
    free(starts);
    free(blocks);
    return status;
}

allot_status alloti_layout_init(const compact_state *state, compact_place *places,
                                const compact_region *regions, uint32_t region_count,
                                allot_space_strategy strategy, compact_layout *out)
{
    compact_layout layout = {.regions = regions, .region_count = region_count};
    const allot_status status = make(state, places, strategy, &layout);
    if (status != ALLOT_STATUS_OK) {
        alloti_layout_fini(&layout);
        return status;
    }
    *out = layout;
    return ALLOT_STATUS_OK;
}

void alloti_layout_fini(compact_layout *layout)
{
    allot_space_destroy(layout->space);
    free(layout->bases);
    free(layout->owners);
}

/* ---- placing ---- */

/** The region in which an offset of the space lies. */
static uint32_t region_of(const compact_layout *layout, uint64_t offset)
{
    uint32_t low = 0;
    uint32_t high = layout->region_count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        *(layout->bases[middle] <= offset ? &low : &high) = middle;
    }
    return low;
}

/** The block below a range, free memory between left out. */
static uint32_t block_below(const compact_layout *layout, uint32_t range)
{
    uint32_t id = layout->space->ranges[range].prev;
    if (space_is_free(layout->space, id)) {
        id = layout->space->ranges[id].prev;
    }
    return id == ALLOT_NONE ? ALLOT_NONE : layout->owners[id];
}

allot_status alloti_layout_own(compact_layout *layout, const allot_range *range, uint32_t block,
                               compact_place *place)
{
    const allot_status status = alloti_array_reserve(&layout->owners, &layout->owners_capacity,
                                                     layout->space->count, sizeof *layout->owners);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    layout->owners[range->id] = block;
    if (place != NULL) {
        place->below = block_below(layout, range->id);
        place->stage = 0;
        const uint32_t region = region_of(layout, range->offset);
        place->area = layout->regions[region].area;
        place->offset = range->offset - layout->bases[region];
        place->range = range->id;
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_layout_place(compact_layout *layout, uint64_t size, uint64_t align,
                                 allot_range *out, bool *fits)
{
    *fits = false;
    if (allot_space_largest_free(layout->space) < size) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status = allot_space_alloc(layout->space, size, align, 0, out);
    *fits = status == ALLOT_STATUS_OK;
    if (*fits) {
        return alloti_layout_own(layout, out, ALLOT_NONE, NULL);
    }
    return heap_is_no_room(status) ? ALLOT_STATUS_OK : status;
}

allot_status alloti_layout_free(compact_layout *layout, uint32_t range)
{
    return allot_space_free(layout->space, range);
}

/* ---- windows ---- */

/** Whether a window may go over a range, and what it costs. */
static bool is_passable(const compact_layout *layout, uint32_t range,
                        bool (*can_go)(const void *context, uint32_t block), const void *context,
                        uint64_t *cost)
{
    if (space_is_free(layout->space, range)) {
        *cost = 0;
        return true;
    }
    const uint32_t block = layout->owners[range];
    *cost = range_size(layout->space, range);
    return block != ALLOT_NONE && can_go(context, block);
}

/*
 * Two ends run over the ranges; `first` is always behind the last range that cannot be passed, and
 * is the last one from which the window up to the other end is long enough.
 */
bool alloti_layout_window(const compact_layout *layout, uint64_t size, uint64_t align,
                          uint64_t cost_max, bool (*can_go)(const void *context, uint32_t block),
                          const void *context, uint64_t *steps, layout_window *out)
{
    const allot_space *const space = layout->space;
    uint32_t first = space->first;
    uint64_t cost = 0;
    out->cost = cost_max;
    bool is_found = false;
    for (uint32_t at = space->first; at != ALLOT_NONE; at = space->ranges[at].next) {
        uint64_t here = 0;
        *steps -= *steps == 0 ? 0 : 1;
        if (!is_passable(layout, at, can_go, context, &here)) {
            first = space->ranges[at].next;
            cost = 0;
            continue;
        }
        cost += here;
        for (;;) {
            const uint64_t begin = (range_offset(space, first) + align - 1) & ~(align - 1);
            const uint64_t end = range_end(space, at);
            if (end < begin || end - begin < size) {
                break;
            }
            if (cost < out->cost) {
                *out = (layout_window){
                    .first = first, .end = space->ranges[at].next, .begin = begin, .cost = cost};
                is_found = true;
            }
            cost -= space_is_free(space, first) ? 0 : range_size(space, first);
            if (first == at) {
                first = space->ranges[at].next;
                break;
            }
            first = space->ranges[first].next;
        }
    }
    return is_found;
}
