/* SPDX-License-Identifier: MIT */
/* The moves of a plan and what they cost. */
#include <time.h>

#include "compact/plan.h"
#include "core/array.h"

/** Moving pages takes about as long for each piece of this size, or part of one. */
#define PIECE (UINT64_C(2) << 20)

uint64_t alloti_plan_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static uint64_t copy_ns(const allot_device_info *info, uint64_t size)
{
    const double ns = (double)size * 1e9 / (double)info->copy_bytes_per_s;
    return info->copy_latency_ns + (uint64_t)ns;
}

/*
 * Where pages can be moved, moving `page_move_min` bytes takes as long as copying them; a kernel or
 * driver works on whole tables of pages, so that a larger piece costs about the same.
 */
uint64_t alloti_plan_cost_ns(const allot_device_info *info, uint64_t from, uint64_t to,
                             uint64_t size)
{
    if (info->copy_bytes_per_s == 0) {
        return info->copy_latency_ns;
    }
    const uint64_t copied = copy_ns(info, size);
    if (info->page == 0 || ((from ^ to) & (info->page - 1)) != 0 || size < info->page_move_min ||
        size < info->page) {
        return copied;
    }
    const uint64_t edges = size - (size & ~(info->page - 1)) + (from & (info->page - 1));
    const uint64_t moved =
        (size + PIECE - 1) / PIECE * copy_ns(info, info->page_move_min) + copy_ns(info, edges);
    return moved < copied ? moved : copied;
}

bool alloti_plan_affords(const allot_compact_plan *plan, uint64_t bytes, uint64_t count,
                         uint64_t cost_ns)
{
    const allot_compact_plan_options *const options = &plan->options;
    if (options->bytes_max != 0 && plan->bytes + bytes > options->bytes_max) {
        return false;
    }
    if (options->moves_max != 0 && plan->made_count + count > options->moves_max) {
        return false;
    }
    return options->time_max_ns == 0 ||
           alloti_plan_now_ns() - plan->began_ns + plan->cost_ns + cost_ns <= options->time_max_ns;
}

bool alloti_plan_is_slide(const allot_compact_plan *plan, const plan_move *move)
{
    return move->from_area == move->to_area && move->to < move->from &&
           move->from - move->to < plan->state.blocks[move->block].size;
}

/** Time of copying in chunks, each so many times. */
static uint64_t chunks_ns(const allot_device_info *info, uint64_t size, uint64_t chunk,
                          uint64_t times)
{
    const uint64_t count = (size + chunk - 1) / chunk;
    return times * (copy_ns(info, size) + (count - 1) * info->copy_latency_ns);
}

uint64_t alloti_plan_slide_ns(const allot_device_info *info, uint64_t distance, uint64_t size,
                              uint64_t *stage)
{
    const uint64_t free = stage == NULL ? 0 : *stage;
    const uint64_t chunk = free < size ? free : size;
    if (stage != NULL) {
        *stage = 0;
    }
    if (distance >= size || info->copy_bytes_per_s == 0) {
        return info->copy_bytes_per_s == 0 ? info->copy_latency_ns : copy_ns(info, size);
    }
    const uint64_t direct = chunks_ns(info, size, distance, 1);
    if (chunk <= distance) {
        return direct;
    }
    const uint64_t staged = chunks_ns(info, size, chunk, 2);
    if (staged >= direct) {
        return direct;
    }
    *stage = chunk;
    return staged;
}

uint64_t alloti_plan_move_ns(const allot_compact_plan *plan, const plan_move *move)
{
    const compact_state *const state = &plan->state;
    if (alloti_plan_is_slide(plan, move)) {
        uint64_t stage = move->stage;
        return alloti_plan_slide_ns(&state->info, move->from - move->to,
                                    state->blocks[move->block].requested, &stage);
    }
    return alloti_plan_cost_ns(&state->info, state->areas[move->from_area].address + move->from,
                               state->areas[move->to_area].address + move->to,
                               state->blocks[move->block].requested);
}

/** A move counts, or no longer. */
static void count_move(allot_compact_plan *plan, const plan_move *move, bool is_more)
{
    const compact_block *const block = &plan->state.blocks[move->block];
    const uint64_t cost = alloti_plan_move_ns(plan, move);
    plan->made_count += is_more ? 1 : UINT64_MAX;
    plan->bytes += is_more ? block->size : -block->size;
    const uint64_t copied = move->stage == 0 ? block->size : 2 * block->size;
    plan->bytes_copied += is_more ? copied : -copied;
    plan->cost_ns += is_more ? cost : -cost;
}

allot_status alloti_plan_move(allot_compact_plan *plan, uint32_t block, const compact_place *before)
{
    const allot_status status = alloti_array_reserve(&plan->moves, &plan->moves_capacity,
                                                     plan->move_count + 1, sizeof *plan->moves);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    compact_place *const place = &plan->places[block];
    plan_move move = {.block = block,
                      .is_inbound = before->range == ALLOT_NONE,
                      .from_area = before->area,
                      .from = before->offset,
                      .previous = place->move};
    if (place->move != ALLOT_NONE && plan->moves[place->move].is_inbound) {
        plan_move *const old = &plan->moves[place->move];
        move = *old;
        count_move(plan, old, false);
        old->block = ALLOT_NONE;
    }
    move.to_area = place->area;
    move.to = place->offset;
    move.below = place->below;
    move.stage = place->stage;
    count_move(plan, &move, true);
    place->move = (uint32_t)plan->move_count;
    plan->moves[plan->move_count++] = move;
    return ALLOT_STATUS_OK;
}

void alloti_plan_unmove(allot_compact_plan *plan, uint32_t block)
{
    compact_place *const place = &plan->places[block];
    plan_move *const move = &plan->moves[place->move];
    count_move(plan, move, false);
    *place = (compact_place){
        .area = move->from_area,
        .offset = move->from,
        .range = ALLOT_NONE,
        .move = move->previous,
        .below = ALLOT_NONE,
    };
    move->block = ALLOT_NONE;
}

void alloti_plan_truncate(allot_compact_plan *plan, uint64_t count)
{
    while (plan->move_count > count) {
        const uint32_t block = plan->moves[plan->move_count - 1].block;
        if (block != ALLOT_NONE) {
            alloti_plan_unmove(plan, block);
        }
        plan->move_count--;
    }
}

void alloti_plan_conclude(allot_compact_plan *plan)
{
    for (uint64_t i = 0; i < plan->move_count; i++) {
        plan->moves[i].is_inbound = false;
    }
}

void alloti_plan_settle(allot_compact_plan *plan)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < plan->move_count; i++) {
        if (plan->moves[i].block != ALLOT_NONE) {
            plan->places[plan->moves[i].block].move = (uint32_t)kept;
            plan->moves[kept++] = plan->moves[i];
        }
    }
    plan->move_count = kept;
}
