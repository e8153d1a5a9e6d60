/* SPDX-License-Identifier: MIT */
/* Running a plan: each move is looked at again under the heap's lock, and made or skipped. */
#include "compact/run.h"

#include "compact/window.h"
#include "core/options.h"
#include "heap/alloc.h"
#include "heap/block.h"
#include "heap/granules.h"
#include "heap/move.h"

typedef struct run {
    allot_heap *heap;
    const allot_compact_plan *plan;
    allot_compact_run_options options;
    allot_compact_report report;
} run;

static const char *const SKIP_TEXTS[] = {
#define SKIP_TEXT(name, text) text,
    ALLOT_COMPACT_SKIP_LIST(SKIP_TEXT)
#undef SKIP_TEXT
};

const char *allot_compact_skip_text(allot_compact_skip skip)
{
    return (unsigned)skip < ALLOT_COMPACT_SKIP_COUNT ? SKIP_TEXTS[skip] : "unknown";
}

/* ---- looking ---- */

/** Why a block cannot be moved as planned; ALLOT_COMPACT_SKIP_COUNT: it can. */
static allot_compact_skip look_at_block(const run *r, const plan_move *move, heap_sight *seen)
{
    allot_heap *const heap = r->heap;
    uint32_t index = 0;
    const compact_block *const planned = &r->plan->state.blocks[move->block];
    const compact_area *const area = &r->plan->state.areas[move->from_area];
    uint64_t word = 0;
    if (alloti_block_find(heap, planned->handle, &index, &word) != ALLOT_STATUS_OK ||
        (word & (BLOCK_LIVE | BLOCK_DROPPED)) != BLOCK_LIVE) {
        return ALLOT_COMPACT_SKIP_FREED;
    }
    if (((word >> BLOCK_PIN_SHIFT) & BLOCK_PINS_MAX) != 0) {
        return ALLOT_COMPACT_SKIP_PINNED;
    }
    if (!alloti_block_look(heap, index, r->options.waits, seen)) {
        return ALLOT_COMPACT_SKIP_IN_USE;
    }
    if (seen->handle.value != planned->handle.value) {
        return ALLOT_COMPACT_SKIP_FREED;
    }
    if (seen->like.segment != area->segment ||
        seen->address != area->address + move->from + seen->like.lead) {
        return ALLOT_COMPACT_SKIP_MOVED;
    }
    return seen->like.size == planned->size && seen->like.request.size == planned->requested
               ? ALLOT_COMPACT_SKIP_COUNT
               : ALLOT_COMPACT_SKIP_RESIZED;
}

/** Whether the segment that a block is to go to is still the one that was planned with. */
static bool is_same_segment(const run *r, const compact_area *area, uint32_t arena)
{
    const heap_segment *const segment = &r->heap->segments[area->segment];
    return segment->space != NULL && segment->address == area->address && segment->arena == arena;
}

/** The range of the block that lay below the destination when that was planned; ALLOT_NONE if it
 * does not lie in that segment. */
static uint32_t range_below(const run *r, const plan_move *move)
{
    uint32_t index = 0;
    uint64_t word = 0;
    if (move->below == ALLOT_NONE ||
        alloti_block_find(r->heap, r->plan->state.blocks[move->below].handle, &index, &word) !=
            ALLOT_STATUS_OK) {
        return ALLOT_NONE;
    }
    const heap_block *const below = heap_block_at(r->heap, index);
    return below->segment == r->plan->state.areas[move->to_area].segment ? below->range
                                                                         : ALLOT_NONE;
}

/** The place that was planned. ALLOT_STATUS_FRAGMENTED and the like if it cannot be had. */
static allot_status take_place(const run *r, const plan_move *move, heap_ask *ask)
{
    allot_heap *const heap = r->heap;
    const compact_block *const planned = &r->plan->state.blocks[move->block];
    const uint32_t segment = r->plan->state.areas[move->to_area].segment;
    allot_status status = alloti_segment_take(heap, segment, range_below(r, move), move->to,
                                              planned->size, ask->request.tag, &ask->range);
    if (status != ALLOT_STATUS_OK || !heap->is_virtual) {
        return status;
    }
    status =
        alloti_granules_commit(heap, segment, ask->range.offset, ask->range.size, HEAP_BOUND_NONE);
    if (status != ALLOT_STATUS_OK) {
        const allot_status undone =
            alloti_segment_give_back(heap, segment, ask->range.id, ask->range.size);
        status = undone == ALLOT_STATUS_OK ? status : undone;
    }
    return status;
}

static bool is_no_room(allot_status status)
{
    return status == ALLOT_STATUS_FRAGMENTED || status == ALLOT_STATUS_BUDGET ||
           status == ALLOT_STATUS_UNSUPPORTED;
}

/* ---- moving ---- */

/** Why a move that failed is skipped; ALLOT_COMPACT_SKIP_COUNT: its failure is told. */
static allot_compact_skip skip_of(allot_status status)
{
    if (alloti_compact_is_changed(status)) {
        return status == ALLOT_STATUS_BUSY ? ALLOT_COMPACT_SKIP_PINNED : ALLOT_COMPACT_SKIP_FREED;
    }
    return is_no_room(status) ? ALLOT_COMPACT_SKIP_TAKEN : ALLOT_COMPACT_SKIP_COUNT;
}

/** Bring a block to the place that was planned. Under the lock. */
static allot_status carry(const run *r, const plan_move *move, const heap_sight *seen)
{
    uint32_t ghost = 0;
    allot_status status = alloti_block_take(r->heap, &ghost);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    heap_ask ask = seen->like;
    ask.segment = r->plan->state.areas[move->to_area].segment;
    status = take_place(r, move, &ask);
    if (status != ALLOT_STATUS_OK) {
        alloti_block_put(r->heap, ghost);
        return status;
    }
    return alloti_block_carry(r->heap, seen->handle, ghost, &ask);
}

/** Make a move. Under the lock. */
static allot_status make_move(const run *r, const plan_move *move, allot_compact_skip *skip)
{
    heap_sight seen;
    *skip = look_at_block(r, move, &seen);
    if (*skip != ALLOT_COMPACT_SKIP_COUNT) {
        return ALLOT_STATUS_OK;
    }
    if (!is_same_segment(r, &r->plan->state.areas[move->to_area], seen.like.arena)) {
        *skip = ALLOT_COMPACT_SKIP_TAKEN;
        return ALLOT_STATUS_OK;
    }
    const allot_status status =
        alloti_plan_is_slide(r->plan, move)
            ? alloti_block_slide(r->heap, seen.handle, move->to, move->stage)
            : carry(r, move, &seen);
    *skip = status == ALLOT_STATUS_OK ? ALLOT_COMPACT_SKIP_COUNT : skip_of(status);
    return *skip == ALLOT_COMPACT_SKIP_COUNT ? status : ALLOT_STATUS_OK;
}

static void count_skip(run *r, allot_compact_skip skip)
{
    r->report.skipped++;
    r->report.why[skip]++;
}

static allot_status step(run *r, uint64_t index)
{
    const allot_compact_run_options *const options = &r->options;
    allot_compact_skip skip = ALLOT_COMPACT_SKIP_COUNT;
    allot_compact_move move;
    allot_compact_plan_get_move(r->plan, index, &move);
    if (options->before != NULL && !options->before(options->context, &move)) {
        count_skip(r, ALLOT_COMPACT_SKIP_VETOED);
        return ALLOT_STATUS_OK;
    }
    allot_status status = alloti_heap_enter(r->heap);
    if (status == ALLOT_STATUS_OK) {
        status = heap_leave(r->heap, make_move(r, &r->plan->moves[index], &skip));
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (skip != ALLOT_COMPACT_SKIP_COUNT) {
        count_skip(r, skip);
        return ALLOT_STATUS_OK;
    }
    r->report.moved++;
    r->report.bytes += move.size;
    if (options->after != NULL) {
        options->after(options->context, &move);
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_compact_run_move(allot_heap *heap, const allot_compact_plan *plan,
                                     uint64_t index, const allot_compact_run_options *options,
                                     allot_compact_report *report)
{
    run r = {.heap = heap, .plan = plan, .options = *options, .report = *report};
    const allot_status status = step(&r, index);
    *report = r.report;
    return status;
}

static allot_status run_all(run *r)
{
    const uint64_t begin = alloti_plan_now_ns();
    const uint64_t time_max = r->options.time_max_ns;
    uint64_t predicted = 0;
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 0; i < r->plan->move_count && status == ALLOT_STATUS_OK; i++) {
        /* A device that copies on its own is behind the host's clock. */
        const uint64_t elapsed = alloti_plan_now_ns() - begin;
        const uint64_t spent = elapsed > predicted ? elapsed : predicted;
        const uint64_t next = alloti_plan_move_ns(r->plan, &r->plan->moves[i]);
        if (time_max != 0 && (spent >= time_max || next > time_max - spent)) {
            r->report.why[ALLOT_COMPACT_SKIP_BUDGET] = r->plan->move_count - i;
            r->report.skipped += r->plan->move_count - i;
            break;
        }
        const uint64_t moved = r->report.moved;
        status = step(r, i);
        predicted += r->report.moved != moved ? next : 0;
    }
    r->report.time_ns = alloti_plan_now_ns() - begin;
    return status;
}

allot_status allot_compact_plan_run(allot_heap *heap, const allot_compact_plan *plan,
                                    const allot_compact_run_options *options,
                                    allot_compact_report *report)
{
    run r = {.heap = heap, .plan = plan, .report = {.struct_size = sizeof r.report}};
    allot_status status = alloti_options_take(options, sizeof r.options, &r.options);
    if (status == ALLOT_STATUS_OK && plan->heap != heap) {
        status = alloti_fail(ALLOT_STATUS_INVALID, "the plan is of another heap");
    }
    if (status == ALLOT_STATUS_OK) {
        status = run_all(&r);
    }
    if (report != NULL) {
        *report = r.report;
    }
    return status;
}
