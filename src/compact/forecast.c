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

static void measure(const compact_state *state, piece *pieces, figures *f)
{
    qsort(pieces, state->block_count, sizeof *pieces, compare_pieces);
    uint64_t begin = 0;
    *f = (figures){0};
    for (uint32_t a = 0; a < state->area_count; a++) {
        uint64_t end = begin;
        while (end < state->block_count && pieces[end].area == a) {
            end++;
        }
        count_area(state, a, pieces + begin, end - begin, f);
        begin = end;
    }
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

allot_status alloti_plan_forecast(allot_compact_plan *plan)
{
    const compact_state *const state = &plan->state;
    figures before;
    figures after;
    uint64_t size_movable = 0;
    piece *const pieces = alloti_alloc_array((uint64_t)state->block_count + 1, sizeof *pieces);
    if (pieces == NULL) {
        return alloti_fail_memory(state->block_count * sizeof *pieces);
    }
    for (uint32_t i = 0; i < state->block_count; i++) {
        const compact_block *const b = &state->blocks[i];
        pieces[i] =
            (piece){.offset = b->offset, .size = b->size, .area = b->area, .is_wall = b->is_wall};
        size_movable += b->is_movable ? b->size : 0;
    }
    measure(state, pieces, &before);
    for (uint32_t i = 0; i < state->block_count; i++) {
        pieces[i] = (piece){.offset = plan->places[i].offset,
                            .size = state->blocks[i].size,
                            .area = plan->places[i].area,
                            .is_wall = state->blocks[i].is_wall};
    }
    measure(state, pieces, &after);
    free(pieces);
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
