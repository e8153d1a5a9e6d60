/* SPDX-License-Identifier: MIT */
/* What an adaptive pool of plain segments spares or gives back early is missed by no request. Each
 * situation is made with a pool that does not learn too: there it always was so. */
#include <allot/compact.h>

#include <stdio.h>

#include "small_heap.h"
#include "support/check.h"

static const allot_space_strategy STRATEGIES[] = {ALLOT_SPACE_STRATEGY_FIRST_FIT,
                                                  ALLOT_SPACE_STRATEGY_ADAPTIVE};
enum { STRATEGY_COUNT = 2 };

static small_heap open_with(int i)
{
    printf("  %s\n", allot_space_strategy_name(STRATEGIES[i]));
    return small_open((allot_heap_options){.strategy = STRATEGIES[i], .segment_size = 1 * MIB});
}

static allot_handle alloc_flags(small_heap *h, uint64_t size, uint32_t flags)
{
    allot_handle handle = {0};
    CHECK_OK(small_try(h, (allot_request){.size = size, .flags = flags}, &handle));
    return handle;
}

/** 40 MiB are held, the limit is lower, and 20 MiB of it become free and idle. */
static void above_the_limit_what_is_held_is_used(void)
{
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        small_heap h = open_with(i);
        (void)small_alloc(&h, 20 * MIB, 0);
        const allot_handle large = small_alloc(&h, 20 * MIB, 0);
        CHECK_EQ(allot_heap_set_limit(h.heap, 10 * MIB), ALLOT_STATUS_BUDGET);
        small_free(&h, large);
        (void)small_alloc(&h, 2 * MIB, 0);
        small_close(&h);
    }
}

/** 20 MiB are free, and the request alone is above the limit. */
static void above_any_limit_what_is_held_is_used(void)
{
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        small_heap h = open_with(i);
        const allot_handle large = small_alloc(&h, 20 * MIB, 0);
        CHECK_EQ(allot_heap_set_limit(h.heap, 1 * MIB), ALLOT_STATUS_BUDGET);
        small_busy(&h, 0);
        small_free(&h, large);
        (void)small_alloc(&h, 2 * MIB, 0);
        small_close(&h);
    }
}

/** As in the first, and the memory becomes free only after a wait. */
static void what_was_waited_for_is_used(void)
{
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        small_heap h = open_with(i);
        (void)small_alloc(&h, 20 * MIB, 0);
        const allot_handle large = small_alloc(&h, 20 * MIB, 0);
        CHECK_OK(allot_heap_use(h.heap, large, h.streams[1]));
        small_busy(&h, 1);
        CHECK_EQ(allot_heap_set_limit(h.heap, 10 * MIB), ALLOT_STATUS_BUDGET);
        small_free(&h, large);
        (void)small_alloc(&h, 2 * MIB, 0);
        small_close(&h);
    }
}

static void above_the_soft_limit_nothing_is_dropped_while_memory_is_free(void)
{
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        small_heap h = open_with(i);
        const allot_handle temporary = alloc_flags(&h, 2 * MIB, ALLOT_BLOCK_TEMPORARY);
        (void)small_alloc(&h, 20 * MIB, 0);
        const allot_handle large = small_alloc(&h, 20 * MIB, 0);
        CHECK_OK(allot_heap_set_limit_soft(h.heap, 10 * MIB));
        small_free(&h, large);
        (void)small_alloc(&h, 2 * MIB, 0);
        CHECK(!small_is_dropped(&h, temporary));
        small_close(&h);
    }
}

static void no_more_is_dropped_than_a_request_needs(void)
{
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        small_heap h = open_with(i);
        allot_handle temporary[3];
        for (int j = 0; j < 3; j++) {
            temporary[j] = alloc_flags(&h, 20 * MIB, ALLOT_BLOCK_TEMPORARY);
        }
        const allot_handle cached = alloc_flags(&h, 2 * MIB, ALLOT_BLOCK_CACHED);
        small_close_limit(&h);
        (void)small_alloc(&h, 2 * MIB, 0);
        int dropped = 0;
        for (int j = 0; j < 3; j++) {
            dropped += small_is_dropped(&h, temporary[j]);
        }
        CHECK_EQ(dropped, 1);
        CHECK(!small_is_dropped(&h, cached));
        small_close(&h);
    }
}

/** A block of 10 MiB in 40 MiB, and 20 MiB without blocks, where it can go. */
static void what_is_free_takes_in_what_has_to_move(void)
{
    const allot_compact_options options = {.struct_size = sizeof options, .cost_max = 100};
    for (int is_busy = 0; is_busy < 2; is_busy++) {
        for (int i = 0; i < STRATEGY_COUNT; i++) {
            small_heap h = open_with(i);
            CHECK_OK(allot_compact_attach(h.heap, &options));
            const allot_handle other = small_alloc(&h, 20 * MIB, 0);
            CHECK_OK(allot_heap_resize(h.heap, small_alloc(&h, 40 * MIB, 0), 10 * MIB));
            if (is_busy != 0) {
                small_busy(&h, 0);
            }
            small_free(&h, other);
            small_close_limit(&h);
            (void)small_alloc(&h, 35 * MIB, 0);
            small_close(&h);
        }
    }
}

/** A heap over a device whose calls of one kind fail, 20 MiB of which are held and free, or may be
 * used by queued work still. It gives a block. */
static void ask_while_calls_fail(int i, allot_device_call call, uint64_t size, bool is_busy)
{
    const allot_failing_options none = {.struct_size = sizeof none};
    const allot_failing_options all = {.struct_size = sizeof all,
                                       .every = 1,
                                       .call_mask = UINT64_C(1) << call,
                                       .status = ALLOT_STATUS_BACKEND};
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_SEGMENTS,
                                        .segment_size = 1 * MIB,
                                        .strategy = STRATEGIES[i]};
    allot_request request = {.struct_size = sizeof request, .size = 20 * MIB};
    allot_device *inner = NULL;
    allot_device *device = NULL;
    allot_heap *heap = NULL;
    allot_handle block = {0};
    printf("  %s, %s\n", allot_space_strategy_name(STRATEGIES[i]), allot_device_call_name(call));
    CHECK_OK(allot_device_open("simulated,memory:64MiB,granule:256KiB", &inner));
    CHECK_OK(allot_device_open_failing(inner, &none, &device));
    CHECK_OK(allot_heap_create(device, &options, &heap));
    CHECK_OK(allot_heap_alloc(heap, &request, &block));
    if (is_busy) {
        CHECK_OK(allot_simulated_run(inner, request.stream, UINT64_C(1000000000)));
    }
    CHECK_OK(allot_heap_free(heap, block));
    CHECK_OK(allot_failing_arm(device, &all));
    request.size = size;
    CHECK_OK(allot_heap_alloc(heap, &request, &block));
    CHECK_OK(allot_failing_arm(device, &none));
    CHECK_OK(allot_heap_check(heap));
    allot_heap_destroy(heap);
    allot_device_destroy(device);
    allot_device_destroy(inner);
}

/** What is idle is not given up for a segment that cannot be had: a request of 1 MiB has room in
 * the 20 MiB, and one of its own would need 32 MiB more for its alignment. */
static void what_is_idle_stays_where_an_aligned_segment_is_above_the_limit(void)
{
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        small_heap h = open_with(i);
        allot_handle block = small_alloc(&h, 20 * MIB, 0);
        const uint64_t address = small_address(&h, block);
        small_free(&h, block);
        CHECK_OK(allot_heap_set_limit(h.heap, 22 * MIB));
        REQUIRE(address % (32 * MIB) == 0);
        CHECK_OK(small_try(&h, (allot_request){.size = 1 * MIB, .align = 32 * MIB}, &block));
        small_close(&h);
    }
}

/** Giving back early is of use, but no request needs it. */
static void a_failure_to_give_back_early_refuses_nothing(void)
{
    static const allot_device_call CALLS[] = {ALLOT_DEVICE_CALL_EVENT_RECORD,
                                              ALLOT_DEVICE_CALL_FREE};
    for (size_t i = 0; i < STRATEGY_COUNT * sizeof CALLS / sizeof CALLS[0]; i++) {
        ask_while_calls_fail((int)(i % STRATEGY_COUNT), CALLS[i / STRATEGY_COUNT], 24 * MIB, false);
    }
}

/** A new segment is of use, but no request needs it that has room in what is spared. */
static void a_failure_to_grow_refuses_nothing(void)
{
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        ask_while_calls_fail(i, ALLOT_DEVICE_CALL_ALLOC, 2 * MIB, true);
    }
}

static const check_test TESTS[] = {
    {"above_the_limit_what_is_held_is_used", above_the_limit_what_is_held_is_used},
    {"above_any_limit_what_is_held_is_used", above_any_limit_what_is_held_is_used},
    {"what_was_waited_for_is_used", what_was_waited_for_is_used},
    {"above_the_soft_limit_nothing_is_dropped_while_memory_is_free",
     above_the_soft_limit_nothing_is_dropped_while_memory_is_free},
    {"no_more_is_dropped_than_a_request_needs", no_more_is_dropped_than_a_request_needs},
    {"what_is_free_takes_in_what_has_to_move", what_is_free_takes_in_what_has_to_move},
    {"what_is_idle_stays_where_an_aligned_segment_is_above_the_limit",
     what_is_idle_stays_where_an_aligned_segment_is_above_the_limit},
    {"a_failure_to_grow_refuses_nothing", a_failure_to_grow_refuses_nothing},
    {"a_failure_to_give_back_early_refuses_nothing", a_failure_to_give_back_early_refuses_nothing},
};
CHECK_MAIN(TESTS)
