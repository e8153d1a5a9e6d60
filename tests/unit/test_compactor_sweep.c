/* SPDX-License-Identifier: MIT */
/* Compaction without a plan: that it ends, whatever lies in the way, and with which state. */
#include <allot/compactor.h>

#include "support/check.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

enum { BLOCKS_MAX = 6000, STEPS_MAX = 20000 };

typedef struct fixture {
    allot_device *device;
    allot_heap *heap;
    allot_compactor *compactor;
    allot_handle blocks[BLOCKS_MAX];
    uint32_t count;
} fixture;

static fixture f;

/** Time for one piece, and for no plan. */
static const allot_compactor_budget NO_TIME = {.struct_size = sizeof NO_TIME, .time_ns = 1};

static bool open_fixture(const char *device, const allot_heap_options *options)
{
    f = (fixture){0};
    return CHECK_OK(allot_device_open(device, &f.device)) &&
           CHECK_OK(allot_heap_create(f.device, options, &f.heap)) &&
           CHECK_OK(allot_compactor_create(f.heap, NULL, &f.compactor));
}

static void close_fixture(void)
{
    for (uint32_t i = 0; i < f.count; i++) {
        if (f.blocks[i].value != 0) {
            CHECK_OK(allot_heap_free(f.heap, f.blocks[i]));
        }
    }
    CHECK_OK(allot_heap_check(f.heap));
    allot_compactor_destroy(f.compactor);
    allot_heap_destroy(f.heap);
    allot_device_destroy(f.device);
}

static void get_blocks(uint32_t count, uint64_t size)
{
    const allot_request request = {.struct_size = sizeof request, .size = size};
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(allot_heap_alloc(f.heap, &request, &f.blocks[f.count++]));
    }
}

static void drop(uint32_t i)
{
    CHECK_OK(allot_heap_free(f.heap, f.blocks[i]));
    f.blocks[i].value = 0;
}

static uint64_t add(const allot_compactor_task_options *options)
{
    uint64_t id = 0;
    CHECK_OK(allot_compactor_add(f.compactor, options, &id));
    return id;
}

static allot_compactor_task task_of(uint64_t id)
{
    allot_compactor_task task = {0};
    CHECK_OK(allot_compactor_get_task(f.compactor, id, &task));
    return task;
}

static allot_compactor_task finish(uint64_t id, const allot_compactor_budget *budget)
{
    for (int i = 0; i < STEPS_MAX && !allot_compactor_state_is_end(task_of(id).state); i++) {
        CHECK_OK(allot_compactor_step(f.compactor, budget, NULL));
    }
    return task_of(id);
}

/** The last range that a piece looks at may be free, or a block that stays. */
static void it_ends_where_thousands_of_blocks_stay(void)
{
    const allot_heap_options options = {
        .struct_size = sizeof options, .mode = ALLOT_HEAP_MODE_SEGMENTS, .segment_size = 8 * MIB};
    const allot_compactor_task_options large = {.struct_size = sizeof large,
                                                .largest_min = 7 * MIB};
    for (uint32_t last = BLOCKS_MAX - 2; last < BLOCKS_MAX; last++) {
        REQUIRE(open_fixture("host,memory:64MiB", &options));
        get_blocks(BLOCKS_MAX, KIB);
        uint64_t pinned = 0;
        for (uint32_t i = 0; i < BLOCKS_MAX; i++) {
            allot_devptr at = {0};
            if (i < last && (last - i) % 2 == 1) {
                drop(i);
            } else {
                CHECK_OK(allot_heap_pin(f.heap, f.blocks[i], &at));
                pinned += KIB;
            }
        }
        const allot_compactor_task task = finish(add(&large), &NO_TIME);
        CHECK_EQ(task.state, ALLOT_COMPACTOR_STATE_BLOCKED);
        CHECK_EQ(task.size_blocked, pinned);
        for (uint32_t i = 0; i < BLOCKS_MAX; i++) {
            if (f.blocks[i].value != 0) {
                CHECK_OK(allot_heap_unpin(f.heap, f.blocks[i]));
            }
        }
        close_fixture();
    }
}

/** A move that is too long for the rest of a step waits; it does not use up the task's bytes. */
static void what_does_not_fit_into_a_step_waits_for_the_next(void)
{
    const allot_heap_options options = {
        .struct_size = sizeof options, .mode = ALLOT_HEAP_MODE_SEGMENTS, .segment_size = 4 * GIB};
    const allot_compactor_task_options bounded = {.struct_size = sizeof bounded,
                                                  .bytes_max = 8 * GIB};
    const allot_compactor_budget short_time = {.struct_size = sizeof short_time,
                                               .time_ns = 1000000};
    REQUIRE(open_fixture("simulated,gpu:T4", &options));
    get_blocks(8, GIB);
    const uint32_t dropped[] = {0, 2, 5, 7};
    for (int i = 0; i < 4; i++) {
        drop(dropped[i]);
    }
    const uint64_t id = add(&bounded);
    CHECK_OK(allot_compactor_step(f.compactor, &NO_TIME, NULL));
    const allot_compactor_task task = finish(id, &short_time);
    CHECK_EQ(task.state, ALLOT_COMPACTOR_STATE_SETTLED);
    CHECK_EQ(task.plans, 0);
    CHECK_EQ(task.moved, 2);
    close_fixture();
}

/** Before it is late: moving so much takes longer than half of what is left. */
static void a_deadline_is_near_by_what_there_is_to_move(void)
{
    const allot_heap_options options = {
        .struct_size = sizeof options, .mode = ALLOT_HEAP_MODE_SEGMENTS, .segment_size = 4 * GIB};
    const allot_compactor_task_options high = {.struct_size = sizeof high, .priority = 5};
    allot_compactor_task_options soon = {.struct_size = sizeof soon};
    REQUIRE(open_fixture("simulated,gpu:T4", &options));
    get_blocks(8, GIB);
    for (uint32_t i = 0; i < 8; i += 2) {
        drop(i);
    }
    const allot_compactor_task first = task_of(add(&soon));
    CHECK(first.time_left_ns > 0);
    CHECK_OK(allot_compactor_cancel(f.compactor, first.id));
    const uint64_t high_id = add(&high);
    soon.deadline_ns = first.time_left_ns + first.time_left_ns / 2;
    const uint64_t soon_id = add(&soon);
    CHECK_OK(allot_compactor_step(f.compactor, &NO_TIME, NULL));
    CHECK_EQ(task_of(soon_id).state, ALLOT_COMPACTOR_STATE_RUNNING);
    CHECK_EQ(task_of(high_id).state, ALLOT_COMPACTOR_STATE_QUEUED);
    CHECK_OK(allot_compactor_cancel(f.compactor, soon_id));
    close_fixture();
}

/** Blocks that were freed and wait at hand for their stream are in nobody's way. */
static void blocks_at_hand_are_given_back(void)
{
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_SEGMENTS,
                                        .segment_size = 4 * MIB,
                                        .front_size = 8 * MIB};
    const allot_compactor_task_options large = {.struct_size = sizeof large,
                                                .largest_min = 4 * MIB};
    REQUIRE(open_fixture("host,memory:64MiB", &options));
    get_blocks(32, 256 * KIB);
    for (uint32_t i = 0; i < 32; i++) {
        if (i % 4 != 0) {
            drop(i);
        }
    }
    const allot_compactor_task task = finish(add(&large), &NO_TIME);
    CHECK_EQ(task.state, ALLOT_COMPACTOR_STATE_REACHED);
    CHECK_EQ(task.moved, 4);
    close_fixture();
}

static const check_test tests[] = {
    {"it_ends_where_thousands_of_blocks_stay", it_ends_where_thousands_of_blocks_stay},
    {"what_does_not_fit_into_a_step_waits_for_the_next",
     what_does_not_fit_into_a_step_waits_for_the_next},
    {"a_deadline_is_near_by_what_there_is_to_move", a_deadline_is_near_by_what_there_is_to_move},
    {"blocks_at_hand_are_given_back", blocks_at_hand_are_given_back},
};

CHECK_MAIN(tests)
