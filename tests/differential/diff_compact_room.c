/* SPDX-License-Identifier: MIT */
/*
 * Making room on small heaps, against all windows and all ways of placing what lies in them
 * elsewhere. Places are found greedily: few requests may be refused that need not be, or cost more.
 */
#include <allot/compact.h>
#include <stdio.h>

#include "support/check.h"

#define UNIT UINT64_C(4096)

enum { UNITS = 24, BLOCKS_MAX = 8, HEAPS = 400, NONE = 255 };

/** One segment: the block at each unit. */
typedef struct board {
    allot_device *device;
    allot_heap *heap;
    allot_handle blocks[BLOCKS_MAX];
    uint32_t sizes[BLOCKS_MAX]; /**< In units; 0: freed. */
    bool is_pinned[BLOCKS_MAX];
    uint8_t at[UNITS]; /**< Block, or NONE. */
    uint64_t random;
} board;

/* ---- all ways ---- */

/** Whether the listed blocks fit into the free units outside of [begin, end). */
static bool fits(const board *b, const uint8_t *taken, const uint8_t *list, uint32_t count)
{
    if (count == 0) {
        return true;
    }
    const uint32_t size = b->sizes[list[0]];
    for (uint32_t at = 0; at + size <= UNITS; at++) {
        uint32_t free_units = 0;
        while (free_units < size && taken[at + free_units] == 0) {
            free_units++;
        }
        if (free_units < size) {
            continue;
        }
        uint8_t next[UNITS];
        for (uint32_t i = 0; i < UNITS; i++) {
            next[i] = taken[i] != 0 || (i >= at && i < at + size);
        }
        if (fits(b, next, list + 1, count - 1)) {
            return true;
        }
    }
    return false;
}

/** Units to move so that [begin, begin + size) is free; UNITS + 1: it cannot be. */
static uint32_t cost_of(const board *b, uint32_t begin, uint32_t size)
{
    uint8_t list[BLOCKS_MAX] = {NONE};
    uint8_t taken[UNITS];
    uint32_t count = 0;
    uint32_t cost = 0;
    for (uint32_t i = 0; i < UNITS; i++) {
        const bool is_inside = i >= begin && i < begin + size;
        taken[i] = is_inside || b->at[i] != NONE;
        if (is_inside && b->at[i] != NONE && (count == 0 || list[count - 1] != b->at[i])) {
            list[count++] = b->at[i];
            cost += b->sizes[b->at[i]];
            if (b->is_pinned[b->at[i]]) {
                return UNITS + 1;
            }
        }
    }
    return fits(b, taken, list, count) ? cost : UNITS + 1;
}

static uint32_t least_cost(const board *b, uint32_t size)
{
    uint32_t least = UNITS + 1;
    for (uint32_t begin = 0; begin + size <= UNITS; begin++) {
        const uint32_t cost = cost_of(b, begin, size);
        least = cost < least ? cost : least;
    }
    return least;
}

/* ---- heaps ---- */

static bool board_open(board *b, uint64_t seed)
{
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_SEGMENTS,
                                        .strategy = ALLOT_SPACE_STRATEGY_FIRST_FIT,
                                        .segment_size = UNITS * UNIT,
                                        .limit = UNITS * UNIT};
    *b = (board){.random = seed};
    return CHECK_OK(allot_device_open("host,memory:1MiB,granule:64KiB", &b->device)) &&
           CHECK_OK(allot_heap_create(b->device, &options, &b->heap));
}

static void board_close(board *b)
{
    CHECK_OK(allot_heap_check(b->heap));
    allot_heap_destroy(b->heap);
    allot_device_destroy(b->device);
}

/** Blocks and holes, from the begin to the end. */
static void board_fill(board *b)
{
    allot_handle holes[UNITS];
    uint32_t hole_count = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < UNITS; i++) {
        b->at[i] = NONE;
    }
    for (uint32_t i = 0; at < UNITS; i++) {
        const bool is_block = i % 2 == 0 && i / 2 < BLOCKS_MAX;
        uint32_t size = (uint32_t)check_random_range(&b->random, is_block ? 1 : 0, 5);
        size = size < UNITS - at ? size : UNITS - at;
        if (size == 0) {
            continue;
        }
        const allot_request request = {.struct_size = sizeof request, .size = size * UNIT};
        allot_handle handle = {0};
        allot_devptr address = {0};
        CHECK_OK(allot_heap_alloc(b->heap, &request, &handle));
        if (!is_block) {
            holes[hole_count++] = handle;
        } else {
            b->blocks[i / 2] = handle;
            b->sizes[i / 2] = size;
            b->is_pinned[i / 2] = check_random_range(&b->random, 0, 4) == 0;
            if (b->is_pinned[i / 2]) {
                CHECK_OK(allot_heap_pin(b->heap, handle, &address));
            }
        }
        for (uint32_t k = at; k < at + size; k++) {
            b->at[k] = is_block ? (uint8_t)(i / 2) : NONE;
        }
        at += size;
    }
    while (hole_count > 0) {
        CHECK_OK(allot_heap_free(b->heap, holes[--hole_count]));
    }
}

typedef struct tally {
    uint32_t found; /**< Requests that there is a way for. */
    uint32_t refused;
    uint32_t dearer;
} tally;

static void count(tally *t, allot_status status, uint64_t bytes, uint32_t least)
{
    CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_FRAGMENTED);
    if (least <= UNITS) {
        t->found++;
        t->refused += status != ALLOT_STATUS_OK;
        t->dearer += status == ALLOT_STATUS_OK && bytes > least * UNIT;
    }
}

/** Both ways of making room, from the same state: the plan only foretells. */
static void compare(board *b, uint32_t size, tally *planned, tally *made)
{
    const allot_request request = {.struct_size = sizeof request, .size = size * UNIT};
    const allot_compact_plan_options options = {
        .struct_size = sizeof options, .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = &request};
    allot_compact_forecast forecast = {0};
    uint64_t moved = 0;
    const uint32_t least = least_cost(b, size);
    const allot_status foretold = allot_compact_estimate(b->heap, &options, &forecast);
    count(planned, foretold, forecast.bytes, least);
    const allot_status status = allot_compact_make_room(b->heap, &request, &moved);
    count(made, status, moved, least);
}

static void check_tally(const tally *t)
{
    CHECK(t->found > HEAPS / 4);
    CHECK(t->refused <= t->found / 20);
    CHECK(t->dearer <= t->found / 10);
}

static void room_is_made_with_few_bytes(void)
{
    tally planned = {0};
    tally made = {0};
    for (uint64_t i = 0; i < HEAPS; i++) {
        board b;
        if (!board_open(&b, check_seed() + i)) {
            return;
        }
        board_fill(&b);
        compare(&b, (uint32_t)check_random_range(&b.random, 2, 10), &planned, &made);
        board_close(&b);
    }
    check_tally(&planned);
    check_tally(&made);
    printf("  of %u requests: refused %u planned, %u made; dearer %u planned, %u made\n",
           made.found, planned.refused, made.refused, planned.dearer, made.dearer);
}

static const check_test TESTS[] = {
    {"room_is_made_with_few_bytes", room_is_made_with_few_bytes},
};
CHECK_MAIN(TESTS)
