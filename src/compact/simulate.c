/* SPDX-License-Identifier: MIT */
/*
 * Makes the moves of a plan on the state that it was made of, in a tree of what is used by address,
 * and knows of plans only what a move is: a block, from, to.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "compact/plan.h"
#include "core/array.h"
#include "core/tree.h"

/** Where a block is by now. */
typedef struct spot {
    uint32_t area;
    uint64_t offset;
} spot;

typedef struct simulation {
    const compact_state *state;
    spot *spots;             /**< [block_count] */
    alloti_tree_node *nodes; /**< [block_count] */
    alloti_tree tree;
} simulation;

static int compare_spots(const spot *x, const spot *y)
{
    if (x->area != y->area) {
        return x->area < y->area ? -1 : 1;
    }
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int compare(const void *owner, uint32_t a, uint32_t b)
{
    const simulation *const s = owner;
    return compare_spots(&s->spots[a], &s->spots[b]);
}

static int compare_key(const void *owner, const void *key, uint32_t item)
{
    const simulation *const s = owner;
    return compare_spots(key, &s->spots[item]);
}

static alloti_tree_host host_of(simulation *s)
{
    return (alloti_tree_host){.nodes = s->nodes, .owner = s, .compare = compare};
}

static allot_status init(simulation *s, const compact_state *state)
{
    *s = (simulation){.state = state, .tree = ALLOTI_TREE_INIT};
    s->spots = alloti_alloc_array((uint64_t)state->block_count + 1, sizeof *s->spots);
    s->nodes = alloti_calloc_array((uint64_t)state->block_count + 1, sizeof *s->nodes);
    if (s->spots == NULL || s->nodes == NULL) {
        return alloti_fail_memory(state->block_count * sizeof *s->spots);
    }
    for (uint32_t i = 0; i < state->block_count; i++) {
        const alloti_tree_host host = host_of(s);
        s->spots[i] = (spot){.area = state->blocks[i].area, .offset = state->blocks[i].offset};
        alloti_tree_insert(&s->tree, &host, i);
    }
    return ALLOT_STATUS_OK;
}

static void fini(simulation *s)
{
    free(s->spots);
    free(s->nodes);
}

/** Whether [offset, offset + size) of an area overlaps no block. */
static bool is_clear(simulation *s, const spot *at, uint64_t size)
{
    const alloti_tree_host host = host_of(s);
    const uint32_t next = alloti_tree_lower_bound(&s->tree, &host, at, compare_key);
    const uint32_t before = next == ALLOT_NONE ? alloti_tree_last(&s->tree, s->nodes)
                                               : alloti_tree_prev(s->nodes, next);
    if (next != ALLOT_NONE && s->spots[next].area == at->area &&
        s->spots[next].offset - at->offset < size) {
        return false;
    }
    return before == ALLOT_NONE || s->spots[before].area != at->area ||
           at->offset - s->spots[before].offset >= s->state->blocks[before].size;
}

/** What is wrong with a move now; NULL for nothing, and it is made. */
static const char *make_move(simulation *s, const plan_move *move)
{
    if (move->block >= s->state->block_count || move->to_area >= s->state->area_count) {
        return "there is no such block or segment";
    }
    const compact_block *const block = &s->state->blocks[move->block];
    const compact_area *const area = &s->state->areas[move->to_area];
    const spot from = {.area = move->from_area, .offset = move->from};
    const spot to = {.area = move->to_area, .offset = move->to};
    if (!block->is_movable) {
        return "the block cannot be moved";
    }
    if (compare_spots(&from, &s->spots[move->block]) != 0) {
        return "the block is not there";
    }
    if (area->arena != s->state->areas[block->area].arena) {
        return "the destination is of another stream or pool";
    }
    if (to.offset > area->capacity || block->size > area->capacity - to.offset) {
        return "the destination is outside of its segment";
    }
    if (((area->address + to.offset) & (block->align - 1)) != 0) {
        return "the destination is not aligned";
    }
    if (to.area == from.area && to.offset >= from.offset && to.offset - from.offset < block->size) {
        return "the destination is not free of the block itself, which slides downwards only";
    }
    const alloti_tree_host host = host_of(s);
    alloti_tree_remove(&s->tree, &host, move->block);
    const bool is_free = is_clear(s, &to, block->size);
    s->spots[move->block] = is_free ? to : from;
    alloti_tree_insert(&s->tree, &host, move->block);
    return is_free ? NULL : "the destination is not free";
}

allot_status alloti_plan_simulate(const allot_compact_plan *plan)
{
    simulation s;
    allot_status status = init(&s, &plan->state);
    for (uint64_t i = 0; i < plan->move_count && status == ALLOT_STATUS_OK; i++) {
        const plan_move *const move = &plan->moves[i];
        const char *const wrong = make_move(&s, move);
        if (wrong != NULL) {
            status = alloti_fail(ALLOT_STATUS_MISMATCH,
                                 "move %" PRIu64 " of block %" PRIu32 " to segment %" PRIu32
                                 ", offset %" PRIu64 ": %s",
                                 i, move->block, move->to_area, move->to, wrong);
        }
    }
    fini(&s);
    return status;
}
