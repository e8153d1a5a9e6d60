/* SPDX-License-Identifier: MIT */
#include "compact/slide.h"

#include "core/size_math.h"
#include "space/space.h"

/** No block slides in more chunks: the heap is locked until the last one was asked for. */
enum { CHUNKS_MAX = 512 };

/** Ranges that follow one another, the first one free. */
typedef struct stretch {
    uint32_t first;
    uint32_t last;
    uint64_t free;  /**< Bytes. */
    uint64_t slack; /**< Bytes that alignments may take of them. */
    uint64_t used;  /**< Bytes of blocks, */
    uint64_t count; /**< and how many they are. */
} stretch;

static uint64_t slack_of(const compact_state *state, uint64_t align)
{
    return align > state->granule ? align - state->granule : 0;
}

static bool is_far_enough(uint64_t distance, uint64_t size)
{
    return distance >= size / CHUNKS_MAX;
}

/** Whether a stretch cannot go on over a range. */
static bool is_barrier(const allot_compact_plan *plan, const compact_layout *layout, uint32_t range,
                       const stretch *s)
{
    if (space_is_free(layout->space, range)) {
        return false;
    }
    const uint32_t block = layout->owners[range];
    return s->free == 0 || block == ALLOT_NONE || !plan->state.blocks[block].is_movable ||
           !is_far_enough(s->free, range_size(layout->space, range));
}

/** A range joins or leaves a stretch. */
static void count_range(const allot_compact_plan *plan, const compact_layout *layout,
                        uint32_t range, bool joins, stretch *s)
{
    const uint64_t size = range_size(layout->space, range);
    if (space_is_free(layout->space, range)) {
        s->free += joins ? size : -size;
        return;
    }
    const uint64_t align = plan->state.blocks[layout->owners[range]].align;
    const uint64_t slack = slack_of(&plan->state, align);
    s->used += joins ? size : -size;
    s->slack += joins ? slack : -slack;
    s->count += joins ? 1 : UINT64_MAX;
}

/** Whether a stretch does as well without its first range: blocks there would stay where they
 * are. */
static bool can_shorten(const compact_layout *layout, const stretch *s, uint64_t need)
{
    return !space_is_free(layout->space, s->first) ||
           s->free - range_size(layout->space, s->first) >= need + s->slack;
}

/* Two ends run over the ranges, as in alloti_layout_window(). */
static bool find_stretch(const allot_compact_plan *plan, const compact_layout *layout,
                         const evict_request *request, uint64_t *steps, stretch *best)
{
    const allot_space *const space = layout->space;
    const uint64_t need = request->size + slack_of(&plan->state, request->align);
    stretch s = {.first = space->first};
    best->used = request->cost_max;
    bool is_found = false;
    for (uint32_t at = space->first; at != ALLOT_NONE; at = space->ranges[at].next) {
        *steps -= *steps == 0 ? 0 : 1;
        if (is_barrier(plan, layout, at, &s)) {
            s = (stretch){.first = space->ranges[at].next};
            continue;
        }
        s.last = at;
        count_range(plan, layout, at, true, &s);
        while (s.first != space->ranges[at].next && can_shorten(layout, &s, need)) {
            count_range(plan, layout, s.first, false, &s);
            s.first = space->ranges[s.first].next;
        }
        if (s.free >= need + s.slack && s.used < best->used) {
            *best = s;
            is_found = true;
        }
    }
    return is_found;
}

uint64_t alloti_plan_slidable(const allot_compact_plan *plan, const compact_layout *layout)
{
    const allot_space *const space = layout->space;
    uint64_t most = 0;
    stretch s = {0};
    for (uint32_t at = space->first; at != ALLOT_NONE; at = space->ranges[at].next) {
        if (is_barrier(plan, layout, at, &s)) {
            s = (stretch){0};
            continue;
        }
        count_range(plan, layout, at, true, &s);
        const uint64_t gain = s.free > s.slack ? s.free - s.slack : 0;
        most = gain > most ? gain : most;
    }
    return most;
}

/** Predict the time of sliding a stretch, each block by the free bytes below it; false if one
 * slides by too little. */
static bool predict(const allot_compact_plan *plan, const compact_layout *layout, const stretch *s,
                    uint64_t *cost_ns)
{
    const allot_space *const space = layout->space;
    uint64_t distance = 0;
    bool is_far = true;
    *cost_ns = 0;
    for (uint32_t id = s->first; id != space->ranges[s->last].next && is_far;
         id = space->ranges[id].next) {
        if (space_is_free(space, id)) {
            distance += range_size(space, id);
        } else {
            const compact_block *const block = &plan->state.blocks[layout->owners[id]];
            is_far = is_far_enough(distance, block->size);
            *cost_ns += alloti_plan_slide_ns(&plan->state.info, distance, block->requested, NULL);
        }
    }
    return is_far;
}

static allot_status slide_block(allot_compact_plan *plan, compact_layout *layout, uint32_t range,
                                uint64_t to)
{
    const uint32_t block = layout->owners[range];
    compact_place *const place = &plan->places[block];
    const compact_place before = *place;
    const allot_status status = alloti_space_reserve_slide(layout->space, range, to);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t stage = allot_space_largest_free(layout->space);
    (void)alloti_plan_slide_ns(&plan->state.info, range_offset(layout->space, range) - to,
                               plan->state.blocks[block].requested, &stage);
    alloti_space_slide(layout->space, range, to);
    const allot_range now = {.id = range, .offset = to, .size = range_size(layout->space, range)};
    const allot_status owned = alloti_layout_own(layout, &now, block, place);
    if (owned != ALLOT_STATUS_OK) {
        return owned;
    }
    /* One that comes from outside goes straight to its new place. */
    if (before.move == ALLOT_NONE || !plan->moves[before.move].is_inbound) {
        place->stage = stage;
    }
    return alloti_plan_move(plan, block, &before);
}

/** Slide the blocks of a stretch; *end is where they end then. */
static allot_status slide_down(allot_compact_plan *plan, compact_layout *layout, const stretch *s,
                               uint64_t *end)
{
    const allot_space *const space = layout->space;
    const uint64_t stop = range_end(space, s->last);
    uint32_t id = space->ranges[s->first].next;
    allot_status status = ALLOT_STATUS_OK;
    *end = range_offset(space, s->first);
    while (id != ALLOT_NONE && range_offset(space, id) < stop && status == ALLOT_STATUS_OK) {
        if (!space_is_free(space, id)) {
            const uint64_t align = plan->state.blocks[layout->owners[id]].align;
            const uint64_t to = alloti_align_down(*end + align - 1, align);
            *end = to + range_size(space, id);
            if (to < range_offset(space, id)) {
                status = slide_block(plan, layout, id, to);
            }
        }
        id = space->ranges[id].next;
    }
    return status;
}

allot_status alloti_plan_slide(allot_compact_plan *plan, compact_layout *layout,
                               const evict_request *request, uint64_t *steps, uint64_t *at,
                               bool *fits)
{
    stretch s = {0};
    uint64_t end = 0;
    uint64_t cost_ns = 0;
    *fits = *steps != 0 && find_stretch(plan, layout, request, steps, &s) &&
            predict(plan, layout, &s, &cost_ns) &&
            alloti_plan_affords(plan, s.used + (request->is_move ? request->size : 0),
                                s.count + (request->is_move ? 1 : 0), cost_ns + request->cost_ns);
    if (!*fits) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status = slide_down(plan, layout, &s, &end);
    *at = alloti_align_down(end + request->align - 1, request->align);
    return status;
}
