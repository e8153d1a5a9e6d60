/* SPDX-License-Identifier: MIT */
/* What a plan gains: the free ranges before and after it. */
#include <stdlib.h>

#include "compact/plan.h"
#include "core/array.h"
#include "core/size_math.h"

/** A used range, or one without memory. */
typedef struct piece {
    uint64_t offset;
    uint64_t size;
    uint32_t area;
    bool is_wall;
} piece;

typedef struct figures {
    uint64_t size_free;
    uint64_t largest;
    uint64_t segments;
    uint64_t releasable;
} figures;

static int compare_pieces(const void *a, const void *b)
{
    const piece *const x = a;
    const piece *const y = b;
    if (x->area != y->area) {
        return x->area < y->area ? -1 : 1;
    }
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/** A free range. */
static void count_free(const compact_state *state, uint64_t begin, uint64_t end, figures *f)
{
    f->size_free += end - begin;
    f->largest = end - begin > f->largest ? end - begin : f->largest;
    if (state->is_virtual) {
        const uint64_t granule = state->info.granule;
        const uint64_t first = alloti_align_down(begin + granule - 1, granule);
        const uint64_t last = alloti_align_down(end, granule);
        f->releasable += last > first ? last - first : 0;
    }
}

static void count_area(const compact_state *state, uint32_t index, const piece *pieces,
                       uint64_t count, figures *f)
{
    const compact_area *const area = &state->areas[index];
    uint64_t at = 0;
    bool has_blocks = false;
    for (uint64_t i = 0; i < count; i++) {
        count_free(state, at, pieces[i].offset, f);
        at = pieces[i].offset + pieces[i].size;
        has_blocks = has_blocks || !pieces[i].is_wall;
    }
    count_free(state, at, area->capacity, f);
    f->segments += has_blocks ? 1 : 0;
    f->releasable += has_blocks || state->is_virtual ? 0 : area->held;
}

/** Areas that follow one another, and what lies in them. */
typedef struct part {
    uint32_t first;
    uint32_t end;
    uint32_t block_first;
    uint32_t block_count;
} part;

static part part_of(const compact_state *state, uint32_t first, uint32_t count)
{
    part p = {.first = first, .end = first + count};
    if (count != 0) {
        const compact_area *const last = &state->areas[first + count - 1];
        p.block_first = state->areas[first].first;
        p.block_count = last->first + last->count - p.block_first;
    }
    return p;
}

static void measure(const compact_state *state, const part *p, piece *pieces, figures *f)
{
    qsort(pieces, p->block_count, sizeof *pieces, compare_pieces);
    uint64_t begin = 0;
    *f = (figures){0};
    for (uint32_t a = p->first; a < p->end; a++) {
        uint64_t end = begin;
        while (end < p->block_count && pieces[end].area == a) {
            end++;
        }
        count_area(state, a, pieces + begin, end - begin, f);
        begin = end;
    }
}

/** Before and after the moves. */
static allot_status measure_both(const allot_compact_plan *plan, const part *p, figures *before,
                                 figures *after)
{
    piece *const pieces = alloti_alloc_array((uint64_t)p->block_count + 1, sizeof *pieces);
    if (pieces == NULL) {
        return alloti_fail_memory(p->block_count * sizeof *pieces);
    }
    for (uint32_t i = 0; i < p->block_count; i++) {
        const compact_block *const b = &plan->state.blocks[p->block_first + i];
        pieces[i] =
            (piece){.offset = b->offset, .size = b->size, .area = b->area, .is_wall = b->is_wall};
    }
    measure(&plan->state, p, pieces, before);
    for (uint32_t i = 0; i < p->block_count; i++) {
        const compact_block *const b = &plan->state.blocks[p->block_first + i];
        const compact_place *const place = &plan->places[p->block_first + i];
        pieces[i] = (piece){
            .offset = place->offset, .size = b->size, .area = place->area, .is_wall = b->is_wall};
    }
    measure(&plan->state, p, pieces, after);
    free(pieces);
    return ALLOT_STATUS_OK;
}

static double fragmentation(const figures *f)
{
    return f->size_free == 0 ? 0 : 1 - (double)f->largest / (double)f->size_free;
}

static uint64_t growth(uint64_t before, uint64_t after)
{
    return after > before ? after - before : 0;
}

static int64_t benefit(const allot_compact_plan *plan, const figures *before, const figures *after)
{
    const uint64_t released = growth(before->releasable, after->releasable);
    const uint64_t larger = growth(before->largest, after->largest);
    const double weight = plan->options.weight == 0 ? 1 : plan->options.weight;
    const double net =
        (double)(released > larger ? released : larger) - weight * (double)plan->bytes;
    return net > -9e18 ? (int64_t)net : INT64_MIN;
}

allot_status alloti_plan_is_worse(const allot_compact_plan *plan, uint32_t first, uint32_t count,
                                  bool *out)
{
    const part p = part_of(&plan->state, first, count);
    figures before;
    figures after;
    const allot_status status = measure_both(plan, &p, &before, &after);
    if (status == ALLOT_STATUS_OK) {
        *out = after.releasable < before.releasable ||
               (after.releasable == before.releasable && after.largest < before.largest);
    }
    return status;
}

allot_status alloti_plan_forecast(allot_compact_plan *plan)
{
    const compact_state *const state = &plan->state;
    const part all = part_of(state, 0, state->area_count);
    figures before;
    figures after;
    uint64_t size_movable = 0;
    const allot_status status = measure_both(plan, &all, &before, &after);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    for (uint32_t i = 0; i < state->block_count; i++) {
        size_movable += state->blocks[i].is_movable ? state->blocks[i].size : 0;
    }
    plan->forecast = (allot_compact_forecast){.struct_size = sizeof plan->forecast,
                                              .size_free = before.size_free,
                                              .largest_before = before.largest,
                                              .largest_after = after.largest,
                                              .fragmentation_before = fragmentation(&before),
                                              .fragmentation_after = fragmentation(&after),
                                              .segments_before = before.segments,
                                              .segments_after = after.segments,
                                              .releasable_before = before.releasable,
                                              .releasable_after = after.releasable,
                                              .bytes = plan->bytes,
                                              .moves = plan->made_count,
                                              .size_movable = size_movable,
                                              .time_ns = plan->cost_ns,
                                              .bytes_copied = plan->bytes_copied,
                                              .benefit = benefit(plan, &before, &after)};
    return ALLOT_STATUS_OK;
}
