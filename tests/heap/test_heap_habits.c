/* SPDX-License-Identifier: MIT */
/* Adaptive pools of plain segments: how long segments are, which stay whole, which go back. */
#include "small_heap.h"
#include "support/check.h"

static small_heap open_with(allot_space_strategy strategy, uint64_t segment_size)
{
    return small_open((allot_heap_options){.strategy = strategy, .segment_size = segment_size});
}

static small_heap open_adaptive(void)
{
    return open_with(ALLOT_SPACE_STRATEGY_ADAPTIVE, 1 * MIB);
}

static allot_handle alloc_tagged(small_heap *h, uint64_t size, uint32_t tag)
{
    allot_handle handle = {0};
    CHECK_OK(small_try(h, (allot_request){.size = size, .tag = tag}, &handle));
    return handle;
}

/** A segment of 20 MiB without blocks, whose stream may be using it still. */
static void make_empty(small_heap *h)
{
    const allot_handle large = small_alloc(h, 20 * MIB, 0);
    small_busy(h, 0);
    small_free(h, large);
    CHECK_EQ(small_held(h), 20 * MIB);
}

/** Bytes held for so many requests of one size, in segments of 64 MiB, besides those of another. */
static uint64_t held_by_equals(allot_space_strategy strategy, uint64_t other, uint64_t size,
                               int count)
{
    const allot_heap_options options = {
        .struct_size = sizeof options, .mode = ALLOT_HEAP_MODE_SEGMENTS, .strategy = strategy};
    small_heap h = {0};
    CHECK_OK(allot_device_open("simulated,memory:4GiB", &h.device));
    CHECK_OK(allot_heap_create(h.device, &options, &h.heap));
    (void)small_alloc(&h, other, 0);
    for (int i = 0; i < count; i++) {
        (void)small_alloc(&h, size, 0);
    }
    const uint64_t held = small_held(&h);
    CHECK_EQ(small_calls(&h, ALLOT_DEVICE_CALL_FREE), 0);
    allot_heap_destroy(h.heap);
    allot_device_destroy(h.device);
    return held - other;
}

static void a_size_that_comes_again_gets_segments_without_a_rest(void)
{
    const allot_space_strategy adaptive = ALLOT_SPACE_STRATEGY_ADAPTIVE;
    CHECK_EQ(held_by_equals(adaptive, 1024 * MIB, 30 * MIB, 2), 64 * MIB);
    CHECK_EQ(held_by_equals(adaptive, 1024 * MIB, 30 * MIB, 4), 124 * MIB);
    CHECK_EQ(held_by_equals(adaptive, 1024 * MIB, 30 * MIB, 6), 184 * MIB);
    CHECK_EQ(held_by_equals(ALLOT_SPACE_STRATEGY_BEST_FIT, 1024 * MIB, 30 * MIB, 6), 192 * MIB);
    /* Rounded up to 2 MiB, with room for one that is small. */
    CHECK_EQ(held_by_equals(adaptive, 1024 * MIB, 35 * MIB, 3), 136 * MIB);
    CHECK_EQ(held_by_equals(adaptive, 1024 * MIB, 65 * MIB, 3), 198 * MIB);
}

static void segments_of_a_small_pool_are_small(void)
{
    const allot_space_strategy adaptive = ALLOT_SPACE_STRATEGY_ADAPTIVE;
    CHECK_EQ(held_by_equals(adaptive, 16 * MIB, 100 * KIB, 1), 4 * MIB);
    CHECK_EQ(held_by_equals(adaptive, 64 * MIB, 100 * KIB, 1), 16 * MIB);
    CHECK_EQ(held_by_equals(adaptive, 64 * MIB, 17 * MIB, 1), 18 * MIB);
    CHECK_EQ(held_by_equals(adaptive, 1024 * MIB, 9 * MIB, 1), 64 * MIB);
    CHECK_EQ(held_by_equals(ALLOT_SPACE_STRATEGY_BEST_FIT, 64 * MIB, 100 * KIB, 1), 64 * MIB);
}

static uint64_t held_after_another_size(small_heap *h)
{
    small_free(h, small_alloc(h, 20 * MIB, 0));
    (void)small_alloc(h, 24 * MIB, 0);
    const uint64_t held = small_held(h);
    small_close(h);
    return held;
}

static void what_is_idle_goes_back_before_the_pool_grows(void)
{
    small_heap h = open_adaptive();
    CHECK_EQ(held_after_another_size(&h), 24 * MIB);
    h = open_with(ALLOT_SPACE_STRATEGY_FIRST_FIT, 1 * MIB);
    CHECK_EQ(held_after_another_size(&h), 44 * MIB);
}

static void little_that_is_idle_stays(void)
{
    small_heap h = open_adaptive();
    (void)small_alloc(&h, 40 * MIB, 0);
    small_free(&h, small_alloc(&h, 1 * MIB, 0));
    (void)small_alloc(&h, 2 * MIB, 0);
    CHECK_EQ(small_held(&h), 43 * MIB);
    CHECK_EQ(small_calls(&h, ALLOT_DEVICE_CALL_FREE), 0);
    small_close(&h);
}

static void what_a_stream_may_use_stays_and_nobody_waits(void)
{
    small_heap h = open_adaptive();
    make_empty(&h);
    (void)small_alloc(&h, 24 * MIB, 0);
    CHECK_EQ(small_held(&h), 44 * MIB);
    CHECK_EQ(small_stats(&h).num_sync_all_streams, 0);
    small_finish(&h, 0);
    (void)small_alloc(&h, 21 * MIB, 0);
    CHECK_EQ(small_held(&h), 45 * MIB);
    CHECK_EQ(small_stats(&h).num_sync_all_streams, 0);
    small_close(&h);
}

static void what_is_idle_in_other_pools_stays_there(void)
{
    const allot_heap_pool_options options = {.struct_size = sizeof options,
                                             .strategy = ALLOT_SPACE_STRATEGY_ADAPTIVE};
    small_heap h = open_adaptive();
    allot_heap_pool pool;
    allot_handle other = {0};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(allot_heap_pool_create(h.heap, &options, &pool));
        CHECK_OK(small_try(&h, (allot_request){.size = 20 * MIB, .pool = pool}, &other));
        small_free(&h, other);
        const allot_handle own = small_alloc(&h, 8 * MIB, 0);
        CHECK_EQ(small_held(&h), 28 * MIB);
        small_free(&h, own);
        CHECK_OK(allot_heap_trim(h.heap, 20 * MIB, NULL));
        CHECK_OK(allot_heap_pool_destroy(h.heap, pool));
    }
    small_close(&h);
}

static void an_idle_segment_of_an_ended_stream_goes_too(void)
{
    small_heap h = open_adaptive();
    small_free(&h, small_alloc(&h, 20 * MIB, 1));
    CHECK_OK(allot_heap_end_stream(h.heap, h.streams[1]));
    (void)small_alloc(&h, 24 * MIB, 0);
    (void)small_alloc(&h, 1 * MIB, 2);
    CHECK(small_held(&h) <= 45 * MIB);
    small_free(&h, small_alloc(&h, 10 * MIB, 2));
    CHECK_OK(allot_heap_collect(h.heap));
    (void)small_alloc(&h, 11 * MIB, 2);
    CHECK_EQ(small_held(&h), 36 * MIB);
    small_close(&h);
}

static void a_large_segment_stays_whole_for_requests_of_its_size(void)
{
    small_heap h = open_adaptive();
    make_empty(&h);
    (void)small_alloc(&h, 2 * MIB, 0);
    CHECK_EQ(small_held(&h), 22 * MIB);
    (void)small_alloc(&h, 14 * MIB, 0); /* not much smaller */
    CHECK_EQ(small_held(&h), 22 * MIB);
    (void)small_alloc(&h, 2 * MIB, 0); /* has blocks now */
    CHECK_EQ(small_held(&h), 22 * MIB);
    small_close(&h);
}

static void a_large_segment_is_used_where_nothing_else_is_left(void)
{
    small_heap h = open_adaptive();
    make_empty(&h);
    small_close_limit(&h);
    (void)small_alloc(&h, 2 * MIB, 0);
    CHECK_EQ(small_held(&h), 20 * MIB);
    CHECK_EQ(small_stats(&h).num_sync_all_streams, 0);
    small_close(&h);
}

static void nothing_is_dropped_while_a_segment_is_spared(void)
{
    small_heap h = open_adaptive();
    allot_handle temporary = {0};
    CHECK_OK(small_try(&h, (allot_request){.size = 2 * MIB, .flags = ALLOT_BLOCK_TEMPORARY},
                       &temporary));
    const allot_handle large = small_alloc(&h, 20 * MIB, 0);
    small_busy(&h, 0);
    small_free(&h, large);
    small_close_limit(&h);
    (void)small_alloc(&h, 2 * MIB, 0);
    CHECK(!small_is_dropped(&h, temporary));
    CHECK_EQ(small_held(&h), 22 * MIB);
    small_close(&h);
}

/** Requests of 20 MiB come every forty requests; those of tag 7 in between go at once. */
static void learn_a_period(small_heap *h)
{
    for (int round = 0; round < 20; round++) {
        small_free(h, alloc_tagged(h, 20 * MIB, 0));
        for (int i = 0; i < 40; i++) {
            small_free(h, alloc_tagged(h, 2 * MIB, 7));
        }
    }
    small_free(h, alloc_tagged(h, 20 * MIB, 0));
    CHECK_EQ(small_held(h), 20 * MIB);
}

static void what_goes_before_a_large_segment_is_asked_for_may_lie_in_it(void)
{
    small_heap h = open_adaptive();
    learn_a_period(&h);
    const uint64_t calls = small_calls(&h, ALLOT_DEVICE_CALL_ALLOC);
    (void)alloc_tagged(&h, 2 * MIB, 7);
    (void)alloc_tagged(&h, 2 * MIB, 7);
    CHECK_EQ(small_held(&h), 20 * MIB);
    CHECK_EQ(small_calls(&h, ALLOT_DEVICE_CALL_ALLOC), calls);
    small_close(&h);
    /* Nothing is known of others: the large segment is given for one of their size. */
    h = open_adaptive();
    learn_a_period(&h);
    (void)alloc_tagged(&h, 2 * MIB, 8);
    CHECK_EQ(small_held(&h), 2 * MIB);
    small_close(&h);
}

/** What one stream does says nothing about another one. */
static void streams_are_learned_apart(void)
{
    small_heap h = open_adaptive();
    learn_a_period(&h);
    allot_handle other = {0};
    CHECK_OK(
        small_try(&h, (allot_request){.size = 2 * MIB, .tag = 7, .stream = h.streams[1]}, &other));
    CHECK_EQ(small_held(&h), 2 * MIB);
    small_close(&h);
}

/** Sizes have classes down to a byte. */
static void segments_of_a_few_bytes_are_learned_too(void)
{
    for (uint64_t size = 1; size <= 8; size *= 2) {
        small_heap h = small_open((allot_heap_options){
            .strategy = ALLOT_SPACE_STRATEGY_ADAPTIVE, .granule = 1, .segment_size = size});
        small_free(&h, small_alloc(&h, 1, 0));
        (void)small_alloc(&h, 3, 0);
        small_close(&h);
    }
}

static const check_test TESTS[] = {
    {"a_size_that_comes_again_gets_segments_without_a_rest",
     a_size_that_comes_again_gets_segments_without_a_rest},
    {"segments_of_a_small_pool_are_small", segments_of_a_small_pool_are_small},
    {"what_is_idle_goes_back_before_the_pool_grows", what_is_idle_goes_back_before_the_pool_grows},
    {"little_that_is_idle_stays", little_that_is_idle_stays},
    {"what_a_stream_may_use_stays_and_nobody_waits", what_a_stream_may_use_stays_and_nobody_waits},
    {"what_is_idle_in_other_pools_stays_there", what_is_idle_in_other_pools_stays_there},
    {"an_idle_segment_of_an_ended_stream_goes_too", an_idle_segment_of_an_ended_stream_goes_too},
    {"a_large_segment_stays_whole_for_requests_of_its_size",
     a_large_segment_stays_whole_for_requests_of_its_size},
    {"a_large_segment_is_used_where_nothing_else_is_left",
     a_large_segment_is_used_where_nothing_else_is_left},
    {"nothing_is_dropped_while_a_segment_is_spared", nothing_is_dropped_while_a_segment_is_spared},
    {"what_goes_before_a_large_segment_is_asked_for_may_lie_in_it",
     what_goes_before_a_large_segment_is_asked_for_may_lie_in_it},
    {"streams_are_learned_apart", streams_are_learned_apart},
    {"segments_of_a_few_bytes_are_learned_too", segments_of_a_few_bytes_are_learned_too},
};
CHECK_MAIN(TESTS)
