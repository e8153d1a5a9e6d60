/* SPDX-License-Identifier: MIT */
/*
 * Packing an arena.
 *
 * Several segments: the fullest are kept, as many as the blocks need, and the others are emptied
 * into their holes; if a block is left over, one more is kept.
 *
 * Where all are needed, or there is one: the least full one is cut at an offset below which there
 * is just room enough, and what lies above goes into holes below. What is left over then goes down
 * as far as it can: everything between it and the cut is free by now.
 *
 * Blocks go by falling size, each to the smallest hole (best fit decreasing); where none is large
 * enough, the cheapest window is cleared for it (evict.h), or else the cheapest run of blocks
 * slides together (slide.h), if that moves less than the block has.
 */
#include <stdlib.h>

#include "compact/slide.h"
#include "core/array.h"
#include "core/size_math.h"
#include "space/space.h"

/** Attempts with one more segment each. */
enum { ATTEMPTS = 4 };
/** Ranges looked at for windows, for each range that there is: keeps planning near-linear. */
enum { STEPS_PER_RANGE = 12, STEPS_MIN = 1 << 14 };
/** The same for slides, which gain little where ranges are many. */
enum { SLIDE_STEPS_PER_RANGE = 2, SLIDE_STEPS_MIN = 3 << 14 };

/** Of what is free one of so many parts may be left between blocks: bringing the last of it
 * together would take moving most of them. */
enum { SLIDE_SHARE_LEFT = 8, SLIDE_ATTEMPTS = 6 };

/** An area of the arena. */
typedef struct candidate {
    uint32_t area;
    bool is_fixed; /**< Cannot be emptied. */
    uint64_t live;
} candidate;

/** A block that is to go. */
typedef struct leaver {
    uint64_t size;
    uint32_t block;
} leaver;

typedef struct pack {
    allot_compact_plan *plan;
    candidate *order;        /**< Areas with blocks: those to keep first. [order_count] */
    compact_region *regions; /**< [order_count] */
    leaver *leavers;         /**< [leaver_count] */
    uint32_t order_count;
    uint32_t leaver_count;
    uint64_t evict_steps; /**< Ranges that may still be looked at for windows, */
    uint64_t slide_steps; /**< and for slides. */
    uint64_t left_over;   /**< Of them, those for which there was no place. */
} pack;

static int compare_candidates(const void *a, const void *b)
{
    const candidate *const x = a;
    const candidate *const y = b;
    if (x->is_fixed != y->is_fixed) {
        return x->is_fixed ? -1 : 1;
    }
    if (x->live != y->live) {
        return x->live > y->live ? -1 : 1;
    }
    return (x->area > y->area) - (x->area < y->area);
}

static int compare_regions(const void *a, const void *b)
{
    const compact_region *const x = a;
    const compact_region *const y = b;
    return (x->area > y->area) - (x->area < y->area);
}

/** By falling size, then by rising address. */
static int compare_leavers(const void *a, const void *b)
{
    const leaver *const x = a;
    const leaver *const y = b;
    if (x->size != y->size) {
        return x->size > y->size ? -1 : 1;
    }
    return (x->block > y->block) - (x->block < y->block);
}

static const compact_area *area_at(const pack *p, uint32_t index)
{
    return &p->plan->state.areas[p->order[index].area];
}

static uint64_t usable(const compact_area *area)
{
    return area->capacity - area->size_fixed - area->size_wall;
}

/* ---- choosing ---- */

static allot_status init(pack *p, uint32_t first, uint32_t count)
{
    const compact_state *const state = &p->plan->state;
    uint64_t blocks = 1;
    p->order = alloti_alloc_array((uint64_t)count + 1, sizeof *p->order);
    p->regions = alloti_alloc_array((uint64_t)count + 1, sizeof *p->regions);
    for (uint32_t i = first; i < first + count; i++) {
        blocks += state->areas[i].count;
    }
    p->leavers = alloti_alloc_array(blocks, sizeof *p->leavers);
    if (p->order == NULL || p->regions == NULL || p->leavers == NULL) {
        return alloti_fail_memory(blocks * sizeof *p->leavers);
    }
    for (uint32_t i = first; i < first + count; i++) {
        const compact_area *const area = &state->areas[i];
        if (area->size_movable + area->size_fixed != 0) {
            p->order[p->order_count++] = (candidate){
                .area = i, .is_fixed = area->size_fixed != 0, .live = area->size_movable};
        }
    }
    qsort(p->order, p->order_count, sizeof *p->order, compare_candidates);
    return ALLOT_STATUS_OK;
}

static void fini(pack *p)
{
    free(p->order);
    free(p->regions);
    free(p->leavers);
}

/** Areas to keep at least: so that there is room for all blocks. */
static uint32_t count_needed(const pack *p)
{
    uint64_t total = 0;
    uint64_t room = 0;
    uint32_t needed = 0;
    for (uint32_t i = 0; i < p->order_count; i++) {
        total += area_at(p, i)->size_movable;
    }
    while (needed < p->order_count && (room < total || p->order[needed].is_fixed)) {
        room += usable(area_at(p, needed));
        needed++;
    }
    return needed;
}

/** Of the areas to be emptied, how many at the end of the order the budgets allow for. */
static uint32_t count_affordable(const pack *p, uint32_t kept)
{
    const compact_state *const state = &p->plan->state;
    uint64_t bytes = 0;
    uint64_t moves = 0;
    uint64_t cost_ns = 0;
    for (uint32_t i = p->order_count; i-- > kept;) {
        const compact_area *const area = area_at(p, i);
        for (uint32_t k = area->first; k < area->first + area->count; k++) {
            const compact_block *const block = &state->blocks[k];
            if (block->is_movable) {
                bytes += block->size;
                moves++;
                cost_ns += alloti_plan_cost_ns(&state->info, 0, 1, block->requested);
            }
        }
        if (!alloti_plan_affords(p->plan, bytes, moves, cost_ns)) {
            return p->order_count - 1 - i;
        }
    }
    return p->order_count - kept;
}

/** Keep the first areas of the order whole. */
static void keep(pack *p, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        p->regions[i] = (compact_region){.area = p->order[i].area, .end = area_at(p, i)->capacity};
    }
    qsort(p->regions, count, sizeof *p->regions, compare_regions);
}

/** Blocks of an area that end above an offset are to go. */
static void leave(pack *p, uint32_t index, uint64_t above)
{
    const compact_area *const area = area_at(p, index);
    for (uint32_t k = area->first; k < area->first + area->count; k++) {
        const compact_block *const block = &p->plan->state.blocks[k];
        if (block->is_movable && block->offset + block->size > above &&
            p->plan->places[k].move == ALLOT_NONE) {
            p->leavers[p->leaver_count++] = (leaver){.size = block->size, .block = k};
        }
    }
}

/* ---- into holes ---- */

static allot_status settle_in(pack *p, compact_layout *layout, uint32_t block,
                              const allot_range *range)
{
    compact_place *const place = &p->plan->places[block];
    const compact_place before = *place;
    const allot_status status = alloti_layout_own(layout, range, block, place);
    return status == ALLOT_STATUS_OK ? alloti_plan_move(p->plan, block, &before) : status;
}

static allot_status bring_in(pack *p, compact_layout *layout, uint32_t index)
{
    const compact_block *const block = &p->plan->state.blocks[index];
    const uint64_t cost_ns = alloti_plan_cost_ns(&p->plan->state.info, 0, 1, block->requested);
    allot_range range;
    bool fits = false;
    uint64_t at = 0;
    if (!alloti_plan_affords(p->plan, block->size, 1, cost_ns)) {
        p->left_over++;
        return ALLOT_STATUS_OK;
    }
    allot_status status = alloti_layout_place(layout, block->size, block->align, &range, &fits);
    if (status == ALLOT_STATUS_OK && !fits) {
        const evict_request request = {.size = block->size,
                                       .align = block->align,
                                       .cost_max = block->size,
                                       .is_move = true,
                                       .cost_ns = cost_ns};
        status = alloti_plan_evict(p->plan, layout, &request, &p->evict_steps, &at, &fits);
        if (status == ALLOT_STATUS_OK && !fits) {
            status = alloti_plan_slide(p->plan, layout, &request, &p->slide_steps, &at, &fits);
        }
        if (status == ALLOT_STATUS_OK && fits) {
            status = alloti_space_take(layout->space,
                                       alloti_space_find_free(layout->space, ALLOT_NONE, at), at,
                                       block->size, 0, &range);
        }
    }
    if (status == ALLOT_STATUS_OK && fits) {
        return settle_in(p, layout, index, &range);
    }
    p->left_over++;
    return status;
}

/** Bring all that leaves into the first `count` regions. */
static allot_status bring_all(pack *p, uint32_t count)
{
    compact_layout layout;
    p->left_over = 0;
    qsort(p->leavers, p->leaver_count, sizeof *p->leavers, compare_leavers);
    allot_status status = alloti_layout_init(&p->plan->state, p->plan->places, p->regions, count,
                                             ALLOT_SPACE_STRATEGY_BEST_FIT, &layout);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t ranges = layout.space->used_count + layout.space->free_count;
    p->evict_steps = STEPS_MIN + STEPS_PER_RANGE * ranges;
    p->slide_steps = SLIDE_STEPS_MIN + SLIDE_STEPS_PER_RANGE * ranges;
    for (uint32_t i = 0; i < p->leaver_count && status == ALLOT_STATUS_OK; i++) {
        status = bring_in(p, &layout, p->leavers[i].block);
    }
    alloti_layout_fini(&layout);
    return status;
}

/* ---- several segments ---- */

/** Blocks of areas that could not be emptied stay where they are. */
static void undo_half_emptied(pack *p, uint32_t kept)
{
    allot_compact_plan *const plan = p->plan;
    for (uint32_t i = kept; i < p->order_count; i++) {
        const compact_area *const area = area_at(p, i);
        bool is_empty = true;
        for (uint32_t k = area->first; k < area->first + area->count; k++) {
            is_empty = is_empty &&
                       (!plan->state.blocks[k].is_movable || plan->places[k].move != ALLOT_NONE);
        }
        for (uint32_t k = area->first; k < area->first + area->count && !is_empty; k++) {
            if (plan->places[k].move != ALLOT_NONE) {
                alloti_plan_unmove(plan, k);
            }
        }
    }
}

/** Keep `kept` areas, or a few more, and empty the others; *is_done if any is emptied. */
static allot_status empty_segments(pack *p, uint32_t kept, bool *is_done)
{
    allot_compact_plan *const plan = p->plan;
    const uint64_t begin = plan->move_count;
    const uint64_t moves_before = plan->made_count;
    const uint32_t end = kept + ATTEMPTS < p->order_count ? kept + ATTEMPTS : p->order_count;
    allot_status status = ALLOT_STATUS_OK;
    p->left_over = 1;
    for (uint32_t k = kept; k < end && p->left_over != 0 && status == ALLOT_STATUS_OK; k++) {
        alloti_plan_truncate(plan, begin);
        p->leaver_count = 0;
        keep(p, k);
        for (uint32_t i = k; i < p->order_count; i++) {
            leave(p, i, 0);
        }
        status = bring_all(p, k);
        kept = k;
    }
    if (status == ALLOT_STATUS_OK && p->left_over != 0) {
        undo_half_emptied(p, kept);
    }
    *is_done = plan->made_count != moves_before;
    return status;
}

/* ---- one segment ---- */

/** The offset below which an area has `need` usable bytes. */
static uint64_t offset_of(const pack *p, const compact_area *area, uint64_t need)
{
    uint64_t at = 0;
    for (uint32_t k = area->first; k < area->first + area->count; k++) {
        const compact_block *const block = &p->plan->state.blocks[k];
        if (block->is_movable) {
            continue;
        }
        if (block->offset - at >= need) {
            break;
        }
        need -= block->offset - at;
        at = block->offset + block->size;
    }
    return at + need < area->capacity ? at + need : area->capacity;
}

/** A cut beside the block that it would go through: of what is left of such a block below the cut
 * nothing would be free before it has left. */
static uint64_t beside_block(const pack *p, const compact_area *area, uint64_t cut)
{
    for (uint32_t k = area->first; k < area->first + area->count; k++) {
        const compact_block *const block = &p->plan->state.blocks[k];
        const uint64_t end = block->offset + block->size;
        if (end > cut) {
            return block->offset >= cut || !block->is_movable ? cut
                   : cut - block->offset < end - cut          ? block->offset
                                                              : end;
        }
    }
    return cut;
}

/** The lowest cut for which the budgets allow. */
static uint64_t affordable_cut(const pack *p, const compact_area *area)
{
    uint64_t bytes = 0;
    uint64_t moves = 0;
    uint64_t cost_ns = 0;
    for (uint32_t k = area->first + area->count; k-- > area->first;) {
        const compact_block *const block = &p->plan->state.blocks[k];
        if (!block->is_movable) {
            continue;
        }
        bytes += block->size;
        moves++;
        cost_ns += alloti_plan_cost_ns(&p->plan->state.info, 0, 1, block->requested);
        if (!alloti_plan_affords(p->plan, bytes, moves, cost_ns)) {
            return block->offset + block->size;
        }
    }
    return 0;
}

/** Move one block to the lowest place that there is. */
static allot_status bring_down(pack *p, compact_layout *layout, uint32_t index)
{
    const compact_block *const block = &p->plan->state.blocks[index];
    const uint32_t old = p->plan->places[index].range;
    const uint64_t cost_ns = alloti_plan_cost_ns(&p->plan->state.info, 0, 1, block->requested);
    allot_range range;
    bool fits = false;
    if (!alloti_plan_affords(p->plan, block->size, 1, cost_ns)) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = alloti_layout_place(layout, block->size, block->align, &range, &fits);
    if (status != ALLOT_STATUS_OK || !fits) {
        return status;
    }
    if (range.offset > range_offset(layout->space, old)) {
        return alloti_layout_free(layout, range.id);
    }
    status = alloti_layout_free(layout, old);
    return status == ALLOT_STATUS_OK ? settle_in(p, layout, index, &range) : status;
}

static int compare_by_block(const void *a, const void *b)
{
    const leaver *const x = a;
    const leaver *const y = b;
    return (x->block > y->block) - (x->block < y->block);
}

/** What is left over goes down, the lowest first. */
static allot_status bring_down_rest(pack *p)
{
    allot_compact_plan *const plan = p->plan;
    compact_layout layout;
    keep(p, p->order_count);
    allot_status status = alloti_layout_init(&plan->state, plan->places, p->regions, p->order_count,
                                             ALLOT_SPACE_STRATEGY_FIRST_FIT, &layout);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    /* Blocks of an area are numbered by offset. */
    qsort(p->leavers, p->leaver_count, sizeof *p->leavers, compare_by_block);
    for (uint32_t i = 0; i < p->leaver_count && status == ALLOT_STATUS_OK; i++) {
        if (plan->places[p->leavers[i].block].move == ALLOT_NONE) {
            status = bring_down(p, &layout, p->leavers[i].block);
        }
    }
    alloti_layout_fini(&layout);
    return status;
}

/** Slide until `size` free bytes lie together, or less of what is missing if the budgets do not
 * allow for that. */
static allot_status slide_together(pack *p, compact_layout *layout, uint64_t size)
{
    const uint64_t largest = allot_space_largest_free(layout->space);
    allot_status status = ALLOT_STATUS_OK;
    bool fits = false;
    for (int i = 0; i < SLIDE_ATTEMPTS && size > largest && !fits && status == ALLOT_STATUS_OK;
         i++) {
        const evict_request request = {
            .size = size, .align = p->plan->state.granule, .cost_max = UINT64_MAX};
        uint64_t steps = UINT64_MAX;
        uint64_t at = 0;
        status = alloti_plan_slide(p->plan, layout, &request, &steps, &at, &fits);
        size = alloti_align_down(largest + (size - largest) / 2, p->plan->state.granule);
    }
    return status;
}

/** Where much is still free between blocks that no hole was large enough for: they slide. */
static allot_status slide_rest(pack *p)
{
    allot_compact_plan *const plan = p->plan;
    compact_layout layout;
    keep(p, p->order_count);
    alloti_plan_conclude(plan);
    allot_status status = alloti_layout_init(&plan->state, plan->places, p->regions, p->order_count,
                                             ALLOT_SPACE_STRATEGY_BEST_FIT, &layout);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t most = alloti_plan_slidable(plan, &layout);
    status = slide_together(p, &layout,
                            alloti_align_down(most - most / SLIDE_SHARE_LEFT, plan->state.granule));
    alloti_layout_fini(&layout);
    return status;
}

static allot_status cut_last(pack *p)
{
    const uint32_t last = p->order_count - 1;
    const compact_area *const area = area_at(p, last);
    uint64_t need = 0;
    uint64_t room = 0;
    for (uint32_t i = 0; i < p->order_count; i++) {
        need += area_at(p, i)->size_movable;
        room += i == last ? 0 : usable(area_at(p, i));
    }
    const uint64_t wanted =
        beside_block(p, area, offset_of(p, area, need > room ? need - room : 0));
    const uint64_t affordable = affordable_cut(p, area);
    const uint64_t cut = wanted > affordable ? wanted : affordable;
    p->leaver_count = 0;
    keep(p, p->order_count);
    for (uint32_t i = 0; i < p->order_count; i++) {
        p->regions[i].end = p->regions[i].area == p->order[last].area ? cut : p->regions[i].end;
    }
    leave(p, last, cut);
    allot_status status = bring_all(p, p->order_count);
    if (status == ALLOT_STATUS_OK && p->left_over != 0) {
        status = bring_down_rest(p);
    }
    return status == ALLOT_STATUS_OK ? slide_rest(p) : status;
}

/* ---- the goal ---- */

static allot_status pack_arena(pack *p)
{
    const uint32_t needed = count_needed(p);
    const uint32_t kept = p->order_count - count_affordable(p, needed);
    bool is_done = false;
    const allot_status status =
        kept < p->order_count ? empty_segments(p, kept, &is_done) : ALLOT_STATUS_OK;
    return status == ALLOT_STATUS_OK && !is_done ? cut_last(p) : status;
}

allot_status alloti_plan_pack(allot_compact_plan *plan, uint32_t first, uint32_t count)
{
    pack p = {.plan = plan};
    allot_status status = init(&p, first, count);
    if (status == ALLOT_STATUS_OK && p.order_count != 0) {
        status = pack_arena(&p);
    }
    fini(&p);
    return status;
}
