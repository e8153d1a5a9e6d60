/* SPDX-License-Identifier: MIT */
/* Making plans, and looking at them. */
#include "compact/plan.h"

#include <stdlib.h>

#include "core/array.h"
#include "core/options.h"
#include "heap/alloc.h"
#include "heap/arena.h"
#include "heap/front.h"
#include "heap/pending.h"
#include "heap/pool.h"

/** The request of MAKE_ROOM, as the heap would place it. */
typedef struct wanted {
    uint32_t arena;
    uint64_t size;
    uint64_t align;
} wanted;

/* ---- reading ---- */

static allot_status take_options(const allot_compact_plan_options *given,
                                 allot_compact_plan_options *out, allot_request *request)
{
    const allot_status status = alloti_options_take(given, sizeof *out, out);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (!(out->weight >= 0)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a weight of %g: 0 or more", out->weight);
    }
    if (out->goal == ALLOT_COMPACT_GOAL_FULL) {
        return ALLOT_STATUS_OK;
    }
    if (out->goal != ALLOT_COMPACT_GOAL_MAKE_ROOM || out->request == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "goal %d: to be full, or to make room with a request", (int)out->goal);
    }
    const allot_status taken = alloti_options_take(out->request, sizeof *request, request);
    if (taken != ALLOT_STATUS_OK) {
        return taken;
    }
    if (request->align > COMPACT_ALIGN_MAX) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "plans keep alignments up to 1 GiB; allot_compact_make_room() has no "
                           "such bound");
    }
    return alloti_request_check(request, false);
}

static allot_status find_wanted(allot_heap *heap, const allot_request *request, wanted *out)
{
    heap_ask ask = {.request = *request};
    uint32_t pool = 0;
    allot_status status = alloti_pool_find(heap, request->pool, &pool);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_ask_measure(heap, pool, &ask);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_arena_get(heap, pool, request->stream, &out->arena);
    }
    out->size = ask.size;
    out->align = ask.align;
    return status;
}

/** Under the lock. */
static allot_status read_heap(allot_heap *heap, allot_compact_plan *plan,
                              const allot_request *request, wanted *want)
{
    const bool has_request = plan->options.goal == ALLOT_COMPACT_GOAL_MAKE_ROOM;
    allot_status status = has_request ? find_wanted(heap, request, want) : ALLOT_STATUS_OK;
    if (status == ALLOT_STATUS_OK) {
        (void)alloti_front_flush_all(heap);
        status = alloti_pending_collect(heap);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_compact_state_read(heap, plan->options.waits, &plan->state);
    }
    if (status == ALLOT_STATUS_OK && want->align > plan->state.phase) {
        plan->state.phase = want->align;
    }
    return status;
}

/* ---- planning ---- */

static allot_status init_places(allot_compact_plan *plan)
{
    const compact_state *const state = &plan->state;
    plan->places = alloti_alloc_array((uint64_t)state->block_count + 1, sizeof *plan->places);
    if (plan->places == NULL) {
        return alloti_fail_memory(state->block_count * sizeof *plan->places);
    }
    for (uint32_t i = 0; i < state->block_count; i++) {
        plan->places[i] = (compact_place){.area = state->blocks[i].area,
                                          .offset = state->blocks[i].offset,
                                          .range = ALLOT_NONE,
                                          .move = ALLOT_NONE,
                                          .below = ALLOT_NONE};
    }
    return ALLOT_STATUS_OK;
}

/** Areas of one arena, from `first` on. */
static uint32_t count_areas(const compact_state *state, uint32_t first)
{
    uint32_t end = first;
    while (end < state->area_count && state->areas[end].arena == state->areas[first].arena) {
        end++;
    }
    return end - first;
}

/** Pack an arena, unless that leaves it worse off: within a budget, or around blocks that stay, not
 * every move can be followed by the one that it was meant for. */
static allot_status pack_arena(allot_compact_plan *plan, uint32_t first, uint32_t count)
{
    const uint64_t begin = plan->move_count;
    bool is_worse = false;
    allot_status status = alloti_plan_pack(plan, first, count);
    if (status == ALLOT_STATUS_OK && plan->move_count != begin) {
        status = alloti_plan_is_worse(plan, first, count, &is_worse);
    }
    if (is_worse) {
        alloti_plan_truncate(plan, begin);
    }
    return status;
}

static allot_status plan_full(allot_compact_plan *plan)
{
    const compact_state *const state = &plan->state;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t first = 0; first < state->area_count && status == ALLOT_STATUS_OK;) {
        const uint32_t count = count_areas(state, first);
        status = pack_arena(plan, first, count);
        first += count;
    }
    return status;
}

static allot_status plan_room(allot_compact_plan *plan, const wanted *want)
{
    const compact_state *const state = &plan->state;
    uint32_t first = 0;
    while (first < state->area_count && state->areas[first].arena != want->arena) {
        first++;
    }
    const uint32_t count = first < state->area_count ? count_areas(state, first) : 0;
    return alloti_plan_make_room(plan, first, count, want->size, want->align);
}

static allot_status make_plan(allot_heap *heap, const allot_compact_plan_options *options,
                              allot_compact_plan *plan)
{
    allot_request request;
    wanted want = {0};
    plan->began_ns = alloti_plan_now_ns();
    plan->heap = heap;
    allot_status status = take_options(options, &plan->options, &request);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_heap_enter(heap);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = heap_leave(heap, read_heap(heap, plan, &request, &want));
    if (status == ALLOT_STATUS_OK) {
        status = init_places(plan);
    }
    if (status == ALLOT_STATUS_OK) {
        status = plan->options.goal == ALLOT_COMPACT_GOAL_FULL ? plan_full(plan)
                                                               : plan_room(plan, &want);
    }
    if (status == ALLOT_STATUS_OK) {
        alloti_plan_settle(plan);
        status = alloti_plan_forecast(plan);
    }
    plan->options.request = NULL;
    plan->forecast.planning_ns = alloti_plan_now_ns() - plan->began_ns;
    return status;
}

/* ---- calls ---- */

allot_status allot_compact_plan_create(allot_heap *heap, const allot_compact_plan_options *options,
                                       allot_compact_plan **out)
{
    allot_compact_plan *const plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        return alloti_fail_memory(sizeof *plan);
    }
    const allot_status status = make_plan(heap, options, plan);
    if (status != ALLOT_STATUS_OK) {
        allot_compact_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return ALLOT_STATUS_OK;
}

void allot_compact_plan_destroy(allot_compact_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    alloti_compact_state_fini(&plan->state);
    free(plan->places);
    free(plan->moves);
    free(plan);
}

allot_status allot_compact_estimate(allot_heap *heap, const allot_compact_plan_options *options,
                                    allot_compact_forecast *out)
{
    allot_compact_plan *plan = NULL;
    const allot_status status = allot_compact_plan_create(heap, options, &plan);
    if (status == ALLOT_STATUS_OK) {
        *out = plan->forecast;
        allot_compact_plan_destroy(plan);
    }
    return status;
}

void allot_compact_plan_get_forecast(const allot_compact_plan *plan, allot_compact_forecast *out)
{
    *out = plan->forecast;
}

uint64_t allot_compact_plan_count(const allot_compact_plan *plan)
{
    return plan->move_count;
}

void allot_compact_plan_get_move(const allot_compact_plan *plan, uint64_t index,
                                 allot_compact_move *out)
{
    const plan_move *const move = &plan->moves[index];
    const compact_block *const block = &plan->state.blocks[move->block];
    *out = (allot_compact_move){.handle = block->handle,
                                .from = {plan->state.areas[move->from_area].address + move->from},
                                .to = {plan->state.areas[move->to_area].address + move->to},
                                .size = block->size};
}

allot_status allot_compact_plan_check(const allot_compact_plan *plan)
{
    return alloti_plan_simulate(plan);
}
