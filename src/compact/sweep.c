/* SPDX-License-Identifier: MIT */
#include "compact/sweep.h"

#include "compact/plan.h"
#include "compact/window.h"
#include "heap/block.h"
#include "heap/front.h"
#include "heap/move.h"
#include "heap/segment.h"
#include "space/space.h"

enum {
    LOOKS_MAX = 4096,     /**< Ranges looked at in one piece, and on to the next block. */
    EVACUATE_MAX = 16384, /**< Ranges of a segment that is looked through before it is emptied. */
    RESTARTS_MAX = 4,
};

/* ---- which segment ---- */

static const heap_segment *segment_at(const allot_heap *heap, const compact_sweep *sweep)
{
    if (sweep->segment == ALLOT_NONE) {
        return NULL;
    }
    const heap_segment *const segment = &heap->segments[sweep->segment];
    return segment->space != NULL && segment->address == sweep->address &&
                   segment->arena == sweep->arena
               ? segment
               : NULL;
}

static void leave_segment(compact_sweep *sweep)
{
    sweep->segment = ALLOT_NONE;
    sweep->count = sweep->at = 0;
    sweep->restarts = 0;
    sweep->is_last = false;
}

static void begin_direction(const allot_heap *heap, compact_sweep *sweep, bool is_downward)
{
    leave_segment(sweep);
    sweep->is_downward = is_downward;
    sweep->left = heap->arenas[sweep->arena]->count;
    sweep->last_active = 0;
    sweep->last_segment = ALLOT_NONE;
}

/** The next segment by active bytes, those without blocks left out; ALLOT_NONE if there is none. */
static uint32_t next_segment(const allot_heap *heap, const compact_sweep *sweep)
{
    const heap_arena *const arena = heap->arenas[sweep->arena];
    uint32_t best = ALLOT_NONE;
    for (uint32_t i = 0; i < arena->count; i++) {
        const uint32_t index = arena->segments[i];
        const uint64_t active = heap->segments[index].active;
        const bool is_after = sweep->last_segment == ALLOT_NONE || active > sweep->last_active ||
                              (active == sweep->last_active && index > sweep->last_segment);
        if (active != 0 && is_after &&
            (best == ALLOT_NONE || active < heap->segments[best].active ||
             (active == heap->segments[best].active && index < best))) {
            best = index;
        }
    }
    return best;
}

/** Whether fuller segments have room for all of a segment's blocks, and it has none that stay. */
static bool can_be_emptied(const allot_heap *heap, const compact_sweep *sweep, uint32_t index,
                           double weight)
{
    const heap_arena *const arena = heap->arenas[sweep->arena];
    const heap_segment *const segment = &heap->segments[index];
    uint64_t room = 0;
    for (uint32_t i = 0; i < arena->count; i++) {
        const heap_segment *const other = &heap->segments[arena->segments[i]];
        room += arena->segments[i] != index && other->active >= segment->active
                    ? other->held - other->active
                    : 0;
    }
    if (room < segment->active || (double)segment->active * weight > (double)segment->held ||
        (uint64_t)segment->space->used_count + segment->space->free_count > EVACUATE_MAX) {
        return false;
    }
    const allot_space *const space = segment->space;
    for (uint32_t id = space->first; id != ALLOT_NONE; id = space->ranges[id].next) {
        if (!space_is_free(space, id) &&
            (segment->owners[id] == ALLOT_NONE ||
             !alloti_compact_can_move(heap_block_at(heap, segment->owners[id])))) {
            return false;
        }
    }
    return true;
}

static void choose_segment(const allot_heap *heap, compact_sweep *sweep, double weight)
{
    const uint32_t index = next_segment(heap, sweep);
    sweep->left = index == ALLOT_NONE ? 0 : sweep->left - 1;
    if (index == ALLOT_NONE) {
        return;
    }
    sweep->last_segment = index;
    sweep->last_active = heap->segments[index].active;
    if (sweep->is_downward || can_be_emptied(heap, sweep, index, weight)) {
        sweep->segment = index;
        sweep->address = heap->segments[index].address;
    }
}

/** On to the next segment, direction or arena. */
static void advance(allot_heap *heap, compact_sweep *sweep, double weight)
{
    const uint32_t arena_count = atomic_load_explicit(&heap->arena_count, memory_order_acquire);
    leave_segment(sweep);
    if (sweep->left > 0) {
        choose_segment(heap, sweep, weight);
    } else if (sweep->is_begun && !sweep->is_downward) {
        begin_direction(heap, sweep, true);
    } else {
        sweep->arena += sweep->is_begun ? 1 : 0;
        sweep->is_begun = true;
        sweep->is_done = sweep->arena >= arena_count;
        if (!sweep->is_done) {
            (void)alloti_front_flush(heap, sweep->arena);
            begin_direction(heap, sweep, false);
        }
    }
}

/* ---- which blocks ---- */

/** The block of a handle if it lies in the segment still; NULL if not. */
static heap_block *block_in(const allot_heap *heap, const compact_sweep *sweep, allot_handle handle,
                            uint32_t *index)
{
    uint64_t word = 0;
    if (alloti_block_find(heap, handle, index, &word) != ALLOT_STATUS_OK) {
        return NULL;
    }
    heap_block *const block = heap_block_at(heap, *index);
    return block->segment == sweep->segment ? block : NULL;
}

/** Look up the blocks below the last one known. */
static void look_up(const allot_heap *heap, compact_sweep *sweep)
{
    const heap_segment *const segment = segment_at(heap, sweep);
    const allot_space *const space = segment->space;
    uint32_t id = space->last;
    uint32_t index = 0;
    if (sweep->count != 0) {
        const allot_handle anchor = sweep->batch[sweep->count - 1];
        const heap_block *const block = block_in(heap, sweep, anchor, &index);
        sweep->restarts += block == NULL;
        id = block == NULL ? space->last : space->ranges[block->range].prev;
        sweep->batch[0] = anchor;
        sweep->count = block == NULL ? 0 : 1;
    }
    sweep->at = 0;
    bool can_go_on = true;
    for (uint32_t looks = 0; id != ALLOT_NONE && can_go_on; looks++) {
        const uint32_t owner = space_is_free(space, id) ? ALLOT_NONE : segment->owners[id];
        if (owner != ALLOT_NONE) {
            const heap_block *const block = heap_block_at(heap, owner);
            const bool can_move = alloti_compact_can_move(block);
            sweep->size_blocked += can_move ? 0 : block->size;
            /* The look ends at a block, to go on from: one that cannot be moved is kept for that.
             */
            if (can_move || looks >= LOOKS_MAX) {
                sweep->batch[sweep->count++] = alloti_block_handle(heap, owner);
                can_go_on = looks < LOOKS_MAX && sweep->count < SWEEP_BATCH;
            }
        }
        id = space->ranges[id].prev;
    }
    sweep->is_last = id == ALLOT_NONE || sweep->restarts > RESTARTS_MAX;
}

/* ---- moving ---- */

/** Give back a place that was found. */
static allot_status give_back(allot_heap *heap, const heap_ask *ask)
{
    const allot_status status =
        alloti_segment_give_back(heap, ask->segment, ask->range.id, ask->range.size);
    alloti_place_end(heap, ask, false);
    return status;
}

/** A place below in the segment. ALLOT_STATUS_FRAGMENTED and the like if there is none. */
static allot_status place_lower(allot_heap *heap, const compact_sweep *sweep, heap_ask *ask)
{
    const heap_segment *const segment = &heap->segments[sweep->segment];
    const uint64_t offset = range_offset(segment->space, ask->range.id);
    if ((segment->address & (ask->align - 1)) != 0) {
        return ALLOT_STATUS_FRAGMENTED;
    }
    allot_status status = alloti_place_in_segment(heap, sweep->segment, ask, HEAP_BOUND_NONE);
    if (status == ALLOT_STATUS_OK && ask->range.offset > offset) {
        status = give_back(heap, ask);
        status = status == ALLOT_STATUS_OK ? ALLOT_STATUS_FRAGMENTED : status;
    }
    return status;
}

/** A place in a segment that has at least as much in use. */
static allot_status place_elsewhere(allot_heap *heap, const compact_sweep *sweep, heap_ask *ask)
{
    const heap_arena *const arena = heap->arenas[sweep->arena];
    for (uint32_t i = 0; i < arena->count; i++) {
        const uint32_t index = arena->segments[i];
        const heap_segment *const segment = &heap->segments[index];
        if (index == sweep->segment || arena->largest[i] < ask->size ||
            segment->active < heap->segments[sweep->segment].active ||
            (segment->address & (ask->align - 1)) != 0) {
            continue;
        }
        const allot_status status = alloti_place_in_segment(heap, index, ask, HEAP_BOUND_NONE);
        if (!heap_is_no_room(status)) {
            return status;
        }
    }
    return ALLOT_STATUS_FRAGMENTED;
}

/** A place for a block; ALLOT_STATUS_FRAGMENTED and the like if there is none. */
static allot_status place(allot_heap *heap, compact_sweep *sweep, heap_ask *ask)
{
    return sweep->is_downward ? place_lower(heap, sweep, ask) : place_elsewhere(heap, sweep, ask);
}

/** Move a block if there is a place for it. */
static allot_status move_block(allot_heap *heap, compact_sweep *sweep, const heap_sight *seen,
                               sweep_piece *piece)
{
    heap_ask ask = seen->like;
    uint32_t ghost = 0;
    allot_status status = alloti_block_take(heap, &ghost);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = place(heap, sweep, &ask);
    if (status != ALLOT_STATUS_OK) {
        alloti_block_put(heap, ghost);
        if (heap_is_no_room(status) && !sweep->is_downward) {
            leave_segment(sweep); /* it cannot be emptied after all */
        }
        return heap_is_no_room(status) ? ALLOT_STATUS_OK : status;
    }
    const uint64_t to = heap->segments[ask.segment].address + ask.range.offset;
    const uint64_t cost = alloti_plan_cost_ns(&heap->info, seen->address, to, ask.request.size);
    if (cost > piece->time_max_ns) {
        piece->refused = ask.size;
        alloti_block_put(heap, ghost);
        return give_back(heap, &ask);
    }
    status = alloti_block_carry(heap, seen->handle, ghost, &ask);
    if (status == ALLOT_STATUS_OK) {
        piece->moved = 1;
        piece->bytes = ask.size;
    } else if (alloti_compact_is_changed(status)) {
        piece->skipped = 1;
        status = ALLOT_STATUS_OK;
    }
    return status;
}

/** The next block of the batch. */
static allot_status move_next(allot_heap *heap, compact_sweep *sweep, sweep_piece *piece)
{
    uint32_t index = 0;
    heap_sight seen;
    const heap_block *const block = block_in(heap, sweep, sweep->batch[sweep->at], &index);
    allot_status status = ALLOT_STATUS_OK;
    if (block == NULL || !alloti_block_look(heap, index, false, &seen)) {
        piece->skipped = block != NULL;
    } else if (seen.like.size > piece->bytes_max) {
        piece->refused = seen.like.size;
    } else {
        status = move_block(heap, sweep, &seen, piece);
    }
    sweep->at += piece->refused != 0 || sweep->count == 0 ? 0 : 1; /* none: the segment was left */
    return status;
}

static allot_status piece_of(allot_heap *heap, compact_sweep *sweep, sweep_piece *piece)
{
    if (sweep->is_begun && segment_at(heap, sweep) != NULL) {
        if (sweep->at + 1 < sweep->count || (sweep->is_last && sweep->at < sweep->count)) {
            return move_next(heap, sweep, piece);
        }
        if (!sweep->is_last) {
            look_up(heap, sweep);
            return ALLOT_STATUS_OK;
        }
    }
    advance(heap, sweep, piece->weight);
    return ALLOT_STATUS_OK;
}

allot_status alloti_sweep_piece(allot_heap *heap, compact_sweep *sweep, sweep_piece *piece)
{
    const allot_status status = alloti_heap_enter(heap);
    return status == ALLOT_STATUS_OK ? heap_leave(heap, piece_of(heap, sweep, piece)) : status;
}
