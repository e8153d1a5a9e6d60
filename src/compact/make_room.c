/* SPDX-License-Identifier: MIT */
/*
 * Making room for one request: the cheapest window (window.h) is cleared by moving its blocks to
 * free ranges outside. Where a block would be placed in the window itself, that place is kept aside
 * until the window is clear, so that the next attempt goes elsewhere.
 */
#include <allot/compact.h>
#include <stdlib.h>

#include "compact/window.h"
#include "core/array.h"
#include "core/options.h"
#include "core/size_math.h"
#include "heap/alloc.h"
#include "heap/arena.h"
#include "heap/block.h"
#include "heap/front.h"
#include "heap/move.h"
#include "heap/pending.h"
#include "heap/place.h"
#include "heap/pool.h"
#include "space/space.h"

/** Windows that are tried for one request. */
enum { WINDOWS_MAX = 8 };

/** A place that nothing is to be put to for now. */
typedef struct aside {
    uint32_t segment;
    allot_range range;
} aside;

/** A request that room is made for. */
typedef struct room {
    allot_heap *heap;
    uint32_t arena;
    uint64_t size;
    uint64_t align;
    uint64_t moved;
    uint64_t floor; /**< Windows up to this cost could not be cleared. */
    bool keeps_off; /**< Blocks go only to where there is memory. */
    aside *aside;   /**< Places that are kept. [aside_count] */
    uint64_t aside_count;
    uint64_t aside_capacity;
} room;

/* ---- planning ---- */

/** The cheapest window of the arena. */
static allot_status find_window(const room *r, compact_window *out)
{
    const heap_arena *const arena = r->heap->arenas[r->arena];
    compact_map map = {0};
    allot_status status = ALLOT_STATUS_OK;
    out->cost = UINT64_MAX;
    for (uint32_t i = 0; i < arena->count && status == ALLOT_STATUS_OK; i++) {
        const uint32_t segment = arena->segments[i];
        if ((r->heap->segments[segment].address & (r->align - 1)) != 0) {
            continue;
        }
        status = alloti_compact_read(r->heap, segment, &map);
        if (status == ALLOT_STATUS_OK) {
            alloti_compact_find(&map, segment, r->size, r->align, r->floor, out);
        }
    }
    alloti_compact_map_fini(&map);
    return status;
}

/* ---- moving ---- */

static bool is_inside(const compact_window *window, uint32_t segment, const allot_range *range)
{
    return segment == window->segment && range->offset < window->end &&
           range->offset + range->size > window->begin;
}

static allot_status reserve_aside(room *r)
{
    return alloti_array_reserve(&r->aside, &r->aside_capacity, r->aside_count + 1,
                                sizeof *r->aside);
}

/** Keep the parts of a segment aside that no memory is mapped to. */
static allot_status keep_off(room *r, uint32_t segment, compact_map *map)
{
    allot_status status = alloti_compact_read(r->heap, segment, map);
    for (uint64_t i = 0; i < map->count && status == ALLOT_STATUS_OK; i++) {
        const compact_item *const item = &map->items[i];
        if (item->block != ALLOT_NONE || !item->is_fixed) {
            continue;
        }
        aside next = {.segment = segment};
        status = reserve_aside(r);
        if (status == ALLOT_STATUS_OK) {
            status = alloti_segment_take(r->heap, segment, ALLOT_NONE, item->offset, item->size, 0,
                                         &next.range);
        }
        if (status == ALLOT_STATUS_OK) {
            r->aside[r->aside_count++] = next;
        }
    }
    return status;
}

static allot_status keep_off_all(room *r)
{
    const heap_arena *const arena = r->heap->arenas[r->arena];
    compact_map map = {0};
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < arena->count && status == ALLOT_STATUS_OK; i++) {
        if (space_can_take(r->heap->segments[arena->segments[i]].space)) {
            status = keep_off(r, arena->segments[i], &map);
        }
    }
    alloti_compact_map_fini(&map);
    return status;
}

/** A place for a block outside the window, in what the heap holds. */
static allot_status place_outside(room *r, const compact_window *window, heap_ask *ask)
{
    for (;;) {
        allot_status status = reserve_aside(r);
        if (status == ALLOT_STATUS_OK) {
            status = alloti_place_in(r->heap, r->arena, ask, HEAP_BOUND_NONE);
        }
        if (status != ALLOT_STATUS_OK || !is_inside(window, ask->segment, &ask->range)) {
            return status;
        }
        r->aside[r->aside_count++] = (aside){ask->segment, ask->range};
    }
}

/** Move one block out of the window. */
static allot_status move_out(room *r, const compact_window *window, uint32_t index)
{
    allot_heap *const heap = r->heap;
    heap_sight seen;
    uint32_t ghost = 0;
    if (!alloti_block_look(heap, index, false, &seen)) {
        return alloti_fail(ALLOT_STATUS_BUSY, "a block was pinned meanwhile");
    }
    allot_status status = alloti_block_take(heap, &ghost);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap_ask ask = seen.like;
    status = alloti_ask_measure(heap, heap->arenas[ask.arena]->pool, &ask);
    if (status == ALLOT_STATUS_OK) {
        status = place_outside(r, window, &ask);
    }
    if (status != ALLOT_STATUS_OK) {
        alloti_block_put(heap, ghost);
        return heap_is_no_room(status) ? alloti_fail(ALLOT_STATUS_FRAGMENTED,
                                                     "there is no place for a block in the way")
                                       : status;
    }
    status = alloti_block_carry(heap, seen.handle, ghost, &ask);
    r->moved += status == ALLOT_STATUS_OK ? seen.like.size : 0;
    return alloti_compact_is_changed(status)
               ? alloti_fail(ALLOT_STATUS_FRAGMENTED, "a block was pinned or freed meanwhile")
               : status;
}

/** The largest first: where that finds no place, nothing was moved in vain. */
static int compare_sizes(const void *a, const void *b)
{
    const compact_item *const x = a;
    const compact_item *const y = b;
    if (x->size != y->size) {
        return x->size > y->size ? -1 : 1;
    }
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static allot_status clear_window(room *r, const compact_window *window)
{
    compact_map map = {0};
    allot_status status = alloti_compact_read(r->heap, window->segment, &map);
    if (status == ALLOT_STATUS_OK && r->keeps_off) {
        status = keep_off_all(r);
    }
    if (map.count > 1) {
        qsort(map.items, map.count, sizeof *map.items, compare_sizes);
    }
    for (uint64_t i = 0; i < map.count && status == ALLOT_STATUS_OK; i++) {
        const compact_item *const item = &map.items[i];
        const allot_range range = {.offset = item->offset, .size = item->size};
        if (item->block != ALLOT_NONE && is_inside(window, window->segment, &range)) {
            status = move_out(r, window, item->block);
        }
    }
    alloti_compact_map_fini(&map);
    return status;
}

/** Give the places that were kept aside back. */
static allot_status end_aside(room *r)
{
    allot_status first = ALLOT_STATUS_OK;
    for (uint64_t i = 0; i < r->aside_count; i++) {
        const aside *const kept = &r->aside[i];
        const allot_status status =
            alloti_segment_give_back(r->heap, kept->segment, kept->range.id, kept->range.size);
        first = first == ALLOT_STATUS_OK ? status : first;
    }
    r->aside_count = 0;
    return first;
}

static allot_status try_room(room *r, double cost_max)
{
    compact_window window;
    allot_status status = find_window(r, &window);
    if (status != ALLOT_STATUS_OK || window.cost == 0) {
        return status;
    }
    if (window.cost == UINT64_MAX ||
        (cost_max > 0 && (double)(r->moved + window.cost) > cost_max * (double)r->size)) {
        return alloti_fail(ALLOT_STATUS_FRAGMENTED,
                           "no range can be cleared of blocks that may move");
    }
    r->floor = window.cost;
    status = clear_window(r, &window);
    const allot_status ended = end_aside(r);
    return status == ALLOT_STATUS_OK ? ended : status;
}

/** The cheapest windows, until one is clear: what lies in one may find no place elsewhere. */
static allot_status try_windows(room *r, double cost_max)
{
    allot_status status = ALLOT_STATUS_FRAGMENTED;
    uint64_t tried = UINT64_MAX;
    r->floor = 0;
    for (int i = 0; i < WINDOWS_MAX && status == ALLOT_STATUS_FRAGMENTED && tried != r->floor;
         i++) {
        tried = r->floor;
        status = try_room(r, cost_max);
    }
    return status;
}

/*
 * A space knows nothing of granules, and may offer addresses without memory again and again while
 * there is memory elsewhere: then these are kept off.
 */
static allot_status make_room(room *r, double cost_max)
{
    allot_status status = try_windows(r, cost_max);
    if (status == ALLOT_STATUS_FRAGMENTED && r->heap->is_virtual) {
        r->keeps_off = true;
        status = try_windows(r, cost_max);
    }
    free(r->aside);
    return status;
}

/* ---- calls ---- */

/** The rung of the ladder. */
static allot_status rung(allot_heap *heap, uint32_t arena, uint64_t size, uint64_t align)
{
    room r = {.heap = heap, .arena = arena, .size = size, .align = align};
    const allot_status status = make_room(&r, heap->compact_cost_max);
    return status;
}

allot_status allot_compact_attach(allot_heap *heap, const allot_compact_options *options)
{
    allot_compact_options taken;
    allot_status status = alloti_options_take(options, sizeof taken, &taken);
    if (status == ALLOT_STATUS_OK && !(taken.cost_max >= 0)) {
        status = alloti_fail(ALLOT_STATUS_INVALID, "a cost of %g: 0 or more", taken.cost_max);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_heap_enter(heap);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap->compact = rung;
    heap->compact_cost_max = taken.cost_max;
    return heap_leave(heap, status);
}

/** Bring free granules together, which moves no byte: the request is placed, and its range is free
 * again then, with its memory. */
static allot_status lend_room(allot_heap *heap, const heap_ask *ask)
{
    heap_ask tried = *ask;
    const allot_status status = alloti_place_growing(heap, &tried, HEAP_BOUND_LENT);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_place_end(heap, &tried, true);
    return alloti_segment_give_back(heap, tried.segment, tried.range.id, tried.range.size);
}

static allot_status make_room_for(allot_heap *heap, const allot_request *request, uint64_t *moved)
{
    heap_ask ask = {.request = *request, .fresh = ALLOT_NONE};
    uint32_t pool = 0;
    allot_status status = alloti_pool_find(heap, request->pool, &pool);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_ask_measure(heap, pool, &ask);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_arena_get(heap, pool, request->stream, &ask.arena);
    }
    if (status == ALLOT_STATUS_OK) {
        (void)alloti_front_flush_all(heap);
        status = alloti_pending_collect(heap);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    room r = {.heap = heap, .arena = ask.arena, .size = ask.size, .align = ask.align};
    status = heap->is_virtual ? lend_room(heap, &ask) : ALLOT_STATUS_FRAGMENTED;
    if (heap_is_no_room(status)) {
        status = make_room(&r, 0);
    }
    if (moved != NULL) {
        *moved = r.moved;
    }
    return status;
}

allot_status allot_compact_make_room(allot_heap *heap, const allot_request *request,
                                     uint64_t *moved)
{
    allot_request taken;
    allot_status status = alloti_options_take(request, sizeof taken, &taken);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_request_check(&taken, false);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_heap_enter(heap);
    }
    return status == ALLOT_STATUS_OK ? heap_leave(heap, make_room_for(heap, &taken, moved))
                                     : status;
}
