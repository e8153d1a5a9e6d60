/* SPDX-License-Identifier: MIT */
/* What users of other allocators have reported about memory that is there and not used, and about
 * limits and options, as the behaviour that is right. */
#include <string.h>

#include "small_heap.h"
#include "support/check.h"

/* ---- reuse ---- */

static void no_more_is_given_back_than_a_request_needs(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_heap_pool_options options = {.struct_size = sizeof options};
    static const uint64_t SIZES[] = {8, 3, 5, 2}; /* MiB */
    allot_heap_pool pool = {0};
    allot_handle blocks[4];
    CHECK_OK(allot_heap_pool_create(h.heap, &options, &pool));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(small_try(&h, (allot_request){.size = SIZES[i] * MIB, .pool = pool}, &blocks[i]));
    }
    for (int i = 0; i < 4; i++) {
        small_free(&h, blocks[i]);
    }
    small_close_limit(&h);
    (void)small_alloc(&h, 4 * MIB, 0);
    /* The smallest one that suffices went, the others are still cached. */
    CHECK_EQ(small_held(&h), (18 - 5 + 4) * MIB);
    CHECK_EQ(small_stats(&h).num_device_free, 1);
    small_close(&h);
}

static void what_idle_streams_have_cached_is_used_by_others(void)
{
    for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
        small_heap h =
            small_open((allot_heap_options){.mode = (allot_heap_mode)mode, .limit = 24 * MIB});
        for (int stream = 0; stream < SMALL_STREAMS; stream++) {
            const allot_handle block = small_alloc(&h, 20 * MIB, stream);
            small_free(&h, block);
        }
        CHECK(small_held(&h) <= 24 * MIB);
        CHECK_EQ(small_stats(&h).num_ooms, 0);
        small_close(&h);
    }
}

static void neighbours_that_streams_freed_are_one_range(void)
{
    small_heap h = small_open((allot_heap_options){0});
    allot_handle blocks[8];
    for (int i = 0; i < 8; i++) {
        blocks[i] = small_alloc(&h, 128 * KIB, 0);
        CHECK_OK(allot_heap_use(h.heap, blocks[i], h.streams[1 + i % 2]));
    }
    for (int i = 0; i < 8; i++) {
        small_free(&h, blocks[i]);
    }
    small_close_limit(&h);
    (void)small_alloc(&h, 1 * MIB, 0);
    CHECK_EQ(small_held(&h), 1 * MIB);
    small_close(&h);
}

static void a_slow_stream_holds_up_nothing_but_its_own_blocks(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle slow = small_alloc(&h, 100 * KIB, 0);
    const allot_handle quick = small_alloc(&h, 100 * KIB, 0);
    CHECK_OK(allot_heap_use(h.heap, slow, h.streams[1]));
    CHECK_OK(allot_heap_use(h.heap, quick, h.streams[2]));
    small_busy(&h, 1);
    small_free(&h, slow);
    small_free(&h, quick);
    CHECK_OK(allot_heap_collect(h.heap));
    CHECK_EQ(small_stats(&h).active_bytes.current, 100 * KIB);
    CHECK_EQ(small_stats(&h).num_sync_all_streams, 0);
    small_close(&h);
}

static void a_block_is_free_at_a_definite_point_after_its_last_use(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle block = small_alloc(&h, 100 * KIB, 0);
    CHECK_OK(allot_heap_use(h.heap, block, h.streams[1]));
    CHECK_OK(allot_simulated_run(h.device, h.streams[1], 1000));
    small_free(&h, block);
    small_busy(&h, 1); /* what is queued after the free does not hold it */
    CHECK_OK(allot_simulated_advance(h.device, 1000000));
    CHECK_OK(allot_heap_collect(h.heap));
    CHECK_EQ(small_stats(&h).active_bytes.current, 0);
    small_close(&h);
}

static void growth_falls_back_to_what_is_needed(void)
{
    small_heap h = small_open((allot_heap_options){.segment_size = 32 * MIB});
    (void)small_alloc(&h, 40 * MIB, 0);
    (void)small_alloc(&h, 10 * MIB, 0); /* no 32 MiB are left */
    (void)small_alloc(&h, 14 * MIB, 0);
    CHECK_EQ(small_held(&h), 64 * MIB);
    small_close(&h);
}

static void two_halves_fit_into_a_whole(void)
{
    small_heap h = small_open((allot_heap_options){.segment_size = 64 * MIB});
    (void)small_alloc(&h, 32 * MIB, 0);
    (void)small_alloc(&h, 32 * MIB, 0);
    CHECK_EQ(small_held(&h), 64 * MIB);
    small_close(&h);
}

static void trimming_stops_at_its_target(void)
{
    for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
        small_heap h = small_open((allot_heap_options){.mode = (allot_heap_mode)mode});
        allot_handle blocks[8];
        for (int i = 0; i < 8; i++) {
            blocks[i] = small_alloc(&h, 1 * MIB, 0);
        }
        for (int i = 0; i < 8; i++) {
            small_free(&h, blocks[i]);
        }
        CHECK_EQ(small_held(&h), 8 * MIB); /* nothing goes by itself */
        uint64_t released = 0;
        CHECK_OK(allot_heap_trim(h.heap, 3 * MIB, &released));
        CHECK_EQ(released, 5 * MIB);
        CHECK_EQ(small_held(&h), 3 * MIB);
        CHECK_OK(allot_heap_trim(h.heap, 3 * MIB, &released));
        CHECK_EQ(released, 0);
        small_close(&h);
    }
}

static void at_a_limit_what_is_cached_is_freed_before_a_refusal(void)
{
    for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
        small_heap h =
            small_open((allot_heap_options){.mode = (allot_heap_mode)mode, .limit = 8 * MIB});
        for (uint64_t size = 1; size <= 8; size++) {
            const allot_handle block = small_alloc(&h, size * MIB, (int)size % SMALL_STREAMS);
            small_free(&h, block);
        }
        CHECK_EQ(small_stats(&h).num_ooms, 0);
        small_close(&h);
    }
}

/* ---- limits and options ---- */

static void a_soft_limit_works_with_no_other_limit_set(void)
{
    small_heap h = small_open((allot_heap_options){.limit_soft = 1 * MIB});
    allot_handle block = {0};
    CHECK_OK(
        small_try(&h, (allot_request){.size = 900 * KIB, .flags = ALLOT_BLOCK_CACHED}, &block));
    (void)small_alloc(&h, 900 * KIB, 0);
    CHECK(small_is_dropped(&h, block));
    CHECK_EQ(small_held(&h), 1 * MIB);
    CHECK_OK(allot_heap_set_limit_soft(h.heap, 0));
    (void)small_alloc(&h, 900 * KIB, 0);
    CHECK_EQ(small_held(&h), 2 * MIB);
    small_close(&h);
}

static void every_value_of_every_option_works_with_every_other(void)
{
    for (unsigned i = 0; i < 3 * 3 * 2 * 2 * (ALLOT_SPACE_STRATEGY_ADAPTIVE + 1); i++) {
        const allot_heap_options options = {.mode = (allot_heap_mode)(i % 3),
                                            .scrub = (allot_heap_scrub)(i / 3 % 3),
                                            .is_debug = i / 9 % 2 != 0,
                                            .front_size = i / 18 % 2 != 0 ? 64 * KIB : 0,
                                            .strategy = (allot_space_strategy)(i / 36),
                                            .limit = 32 * MIB,
                                            .limit_fraction = 0.25,
                                            .limit_soft = 2 * MIB};
        small_heap h = small_open(options);
        const allot_handle a = small_alloc(&h, 300 * KIB, 0);
        const allot_handle b = small_alloc(&h, 5000, 1);
        small_free(&h, a);
        small_free(&h, b);
        (void)small_alloc(&h, 300 * KIB, 0);
        small_close(&h);
    }
}

static void a_limit_is_kept_before_the_device_is_asked(void)
{
    for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
        small_heap h =
            small_open((allot_heap_options){.mode = (allot_heap_mode)mode, .limit = 2 * MIB});
        const allot_heap_pool_options options = {.struct_size = sizeof options, .limit = 1 * MIB};
        allot_heap_pool pool = {0};
        allot_handle block = {0};
        CHECK_OK(allot_heap_pool_create(h.heap, &options, &pool));
        CHECK_OK(small_try(&h, (allot_request){.size = 1 * MIB, .pool = pool}, &block));
        const uint64_t asked = small_calls(&h, ALLOT_DEVICE_CALL_ALLOC) +
                               small_calls(&h, ALLOT_DEVICE_CALL_MEMORY_CREATE);
        allot_handle none = {0};
        CHECK_EQ(small_try(&h, (allot_request){.size = 1, .pool = pool}, &none),
                 ALLOT_STATUS_BUDGET);
        CHECK_EQ(small_try(&h, (allot_request){.size = 1 * MIB + 1}, &none), ALLOT_STATUS_BUDGET);
        CHECK_EQ(small_calls(&h, ALLOT_DEVICE_CALL_ALLOC) +
                     small_calls(&h, ALLOT_DEVICE_CALL_MEMORY_CREATE),
                 asked);
        (void)small_alloc(&h, 1 * MIB, 0);
        small_close(&h);
    }
}

static void a_refusal_names_the_limit_that_a_fraction_stands_for(void)
{
    small_heap h = small_open((allot_heap_options){.limit_fraction = 0.25});
    allot_handle none = {0};
    CHECK_EQ(small_try(&h, (allot_request){.size = 17 * MIB}, &none), ALLOT_STATUS_BUDGET);
    CHECK_CONTAINS(allot_error_detail(), "limit 16.0 MiB");
    small_close(&h);
}

static void free_memory_of_a_private_pool_goes_back_before_a_refusal(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_heap_pool_options options = {.struct_size = sizeof options};
    allot_heap_pool pool = {0};
    allot_handle block = {0};
    CHECK_OK(allot_heap_pool_create(h.heap, &options, &pool));
    CHECK_OK(small_try(&h, (allot_request){.size = 40 * MIB, .pool = pool}, &block));
    small_free(&h, block);
    (void)small_alloc(&h, 60 * MIB, 0); /* of 64 MiB */
    CHECK_EQ(small_held(&h), 60 * MIB);
    small_close(&h);
}

static const check_test tests[] = {
    {"no_more_is_given_back_than_a_request_needs", no_more_is_given_back_than_a_request_needs},
    {"what_idle_streams_have_cached_is_used_by_others",
     what_idle_streams_have_cached_is_used_by_others},
    {"neighbours_that_streams_freed_are_one_range", neighbours_that_streams_freed_are_one_range},
    {"a_slow_stream_holds_up_nothing_but_its_own_blocks",
     a_slow_stream_holds_up_nothing_but_its_own_blocks},
    {"a_block_is_free_at_a_definite_point_after_its_last_use",
     a_block_is_free_at_a_definite_point_after_its_last_use},
    {"growth_falls_back_to_what_is_needed", growth_falls_back_to_what_is_needed},
    {"two_halves_fit_into_a_whole", two_halves_fit_into_a_whole},
    {"trimming_stops_at_its_target", trimming_stops_at_its_target},
    {"at_a_limit_what_is_cached_is_freed_before_a_refusal",
     at_a_limit_what_is_cached_is_freed_before_a_refusal},
    {"a_soft_limit_works_with_no_other_limit_set", a_soft_limit_works_with_no_other_limit_set},
    {"every_value_of_every_option_works_with_every_other",
     every_value_of_every_option_works_with_every_other},
    {"a_limit_is_kept_before_the_device_is_asked", a_limit_is_kept_before_the_device_is_asked},
    {"a_refusal_names_the_limit_that_a_fraction_stands_for",
     a_refusal_names_the_limit_that_a_fraction_stands_for},
    {"free_memory_of_a_private_pool_goes_back_before_a_refusal",
     free_memory_of_a_private_pool_goes_back_before_a_refusal},
};

CHECK_MAIN(tests)
