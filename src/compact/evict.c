/* SPDX-License-Identifier: MIT */
#include "compact/evict.h"

#include <stdlib.h>

#include "core/array.h"
#include "space/space.h"

/** A block of a window, and the place that was found for it. */
typedef struct evicted {
    uint32_t block;
    uint64_t size;
    allot_range range;
} evicted;

typedef struct eviction {
    allot_compact_plan *plan;
    compact_layout *layout;
    layout_window window;
    uint64_t size; /**< Of the request. */
    evicted *list;
    uint64_t capacity;
    uint64_t count;
    uint64_t placed; /**< Of them, so far. */
    uint64_t bytes;  /**< Of all moves that this makes necessary. */
    uint64_t extra;  /**< Number of these. */
    uint64_t cost_ns;
    uint32_t *aside; /**< Ranges in the window itself. */
    uint64_t aside_capacity;
    uint64_t aside_count;
} eviction;

/** A block has one move: one that was moved out of the way already stays. One that was brought in
 * from outside the layout may be brought elsewhere instead. */
static bool can_go(const void *context, uint32_t block)
{
    const allot_compact_plan *const plan = context;
    const compact_place *const place = &plan->places[block];
    return plan->state.blocks[block].is_movable &&
           (place->move == ALLOT_NONE || plan->moves[place->move].is_inbound);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static allot_status list_block(eviction *e, uint32_t index)
{
    const allot_compact_plan *const plan = e->plan;
    const compact_block *const block = &plan->state.blocks[index];
    const allot_status status =
        alloti_array_reserve(&e->list, &e->capacity, e->count + 1, sizeof *e->list);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    e->list[e->count++] = (evicted){.block = index, .size = block->size};
    if (plan->places[index].move == ALLOT_NONE) {
        e->bytes += block->size;
        e->extra++;
        e->cost_ns += alloti_plan_cost_ns(&plan->state.info, 0, 1, block->requested);
    }
    return ALLOT_STATUS_OK;
}

/** What is free of the request's place is kept aside, so that nothing else is placed there. */
static allot_status keep_aside(eviction *e, uint32_t id)
{
    const allot_space *const space = e->layout->space;
    const uint64_t begin = larger(range_offset(space, id), e->window.begin);
    const uint64_t end = smaller(range_end(space, id), e->window.begin + e->size);
    allot_range range;
    allot_status status =
        alloti_array_reserve(&e->aside, &e->aside_capacity, e->aside_count + 1, sizeof *e->aside);
    if (status != ALLOT_STATUS_OK || begin >= end) {
        return status;
    }
    status = alloti_space_take(e->layout->space, id, begin, end - begin, 0, &range);
    if (status == ALLOT_STATUS_OK) {
        e->aside[e->aside_count++] = range.id;
        status = alloti_layout_own(e->layout, &range, ALLOT_NONE, NULL);
    }
    return status;
}

/** List the blocks of the window, and keep aside what is free of it. */
static allot_status begin_eviction(eviction *e)
{
    const allot_space *const space = e->layout->space;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t id = e->window.first; id != e->window.end && status == ALLOT_STATUS_OK;) {
        const uint32_t next = space->ranges[id].next;
        status =
            space_is_free(space, id) ? keep_aside(e, id) : list_block(e, e->layout->owners[id]);
        id = next;
    }
    return status;
}

/** By falling size, then as they lie. */
static int compare_evicted(const void *a, const void *b)
{
    const evicted *const x = a;
    const evicted *const y = b;
    if (x->size != y->size) {
        return x->size > y->size ? -1 : 1;
    }
    return (x->block > y->block) - (x->block < y->block);
}

static allot_status find_places(eviction *e, bool *fits)
{
    allot_status status = ALLOT_STATUS_OK;
    if (e->count > 1) {
        qsort(e->list, e->count, sizeof *e->list, compare_evicted);
    }
    while (e->placed < e->count && status == ALLOT_STATUS_OK && *fits) {
        evicted *const next = &e->list[e->placed];
        const compact_block *const block = &e->plan->state.blocks[next->block];
        status = alloti_layout_place(e->layout, block->size, block->align, &next->range, fits);
        e->placed += status == ALLOT_STATUS_OK && *fits ? 1 : 0;
    }
    return status;
}

static allot_status free_aside(eviction *e)
{
    allot_status first = ALLOT_STATUS_OK;
    for (uint64_t i = 0; i < e->aside_count; i++) {
        const allot_status status = alloti_layout_free(e->layout, e->aside[i]);
        first = first == ALLOT_STATUS_OK ? status : first;
    }
    return first;
}

static allot_status forget_places(eviction *e)
{
    allot_status first = ALLOT_STATUS_OK;
    for (uint64_t i = 0; i < e->placed; i++) {
        const allot_status status = alloti_layout_free(e->layout, e->list[i].range.id);
        first = first == ALLOT_STATUS_OK ? status : first;
    }
    return first;
}

static allot_status move_out(eviction *e)
{
    allot_compact_plan *const plan = e->plan;
    for (uint64_t i = 0; i < e->count; i++) {
        const uint32_t block = e->list[i].block;
        compact_place *const place = &plan->places[block];
        const compact_place before = *place;
        allot_status status = alloti_layout_free(e->layout, before.range);
        if (status == ALLOT_STATUS_OK) {
            status = alloti_layout_own(e->layout, &e->list[i].range, block, place);
        }
        if (status == ALLOT_STATUS_OK) {
            status = alloti_plan_move(plan, block, &before);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

static allot_status evict(eviction *e, bool *fits)
{
    allot_status status = begin_eviction(e);
    if (status == ALLOT_STATUS_OK) {
        *fits = alloti_plan_affords(e->plan, e->bytes, e->extra, e->cost_ns);
        status = find_places(e, fits);
    }
    const allot_status freed = free_aside(e);
    status = status == ALLOT_STATUS_OK ? freed : status;
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return *fits ? move_out(e) : forget_places(e);
}

allot_status alloti_plan_evict(allot_compact_plan *plan, compact_layout *layout,
                               const evict_request *request, uint64_t *steps, uint64_t *at,
                               bool *fits)
{
    eviction e = {.plan = plan, .layout = layout, .size = request->size};
    if (request->is_move) {
        e.bytes = request->size;
        e.extra = 1;
        e.cost_ns = request->cost_ns;
    }
    *fits = *steps != 0 && alloti_layout_window(layout, request->size, request->align,
                                                request->cost_max, can_go, plan, steps, &e.window);
    if (!*fits) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status = evict(&e, fits);
    *at = e.window.begin;
    free(e.list);
    free(e.aside);
    return status;
}
