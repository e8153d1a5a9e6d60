/* SPDX-License-Identifier: MIT */
/*
 * Each rung of the ladder in a situation where it, and none before it, is what saves a request; and
 * what is told of a request that none saves.
 */
#include <string.h>

#include "heap/heap.h"
#include "small_heap.h"
#include "support/check.h"

/** A refusal on purpose, to read what was tried. */
static allot_heap_failure refuse(small_heap *h, allot_request request, allot_status as)
{
    allot_handle none = {0};
    allot_heap_failure failure = {0};
    CHECK_EQ(small_try(h, request, &none), as);
    CHECK_EQ(none.value, 0);
    CHECK_OK(allot_heap_get_failure(h->heap, &failure));
    CHECK_EQ(failure.status, as);
    CHECK_EQ(failure.request.size, request.size);
    return failure;
}

static void search_finds_what_its_own_stream_freed(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle first = small_alloc(&h, 700 * KIB, 1);
    const uint64_t address = small_address(&h, first);
    small_busy(&h, 1);
    small_free(&h, first);
    small_close_limit(&h);
    const allot_handle second = small_alloc(&h, 700 * KIB, 1);
    CHECK_EQ(small_address(&h, second), address);
    CHECK_EQ(small_calls(&h, ALLOT_DEVICE_CALL_EVENT_RECORD), 0);
    small_close(&h);
}

static void collect_finds_what_streams_are_done_with(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle first = small_alloc(&h, 700 * KIB, 0);
    CHECK_OK(allot_heap_use(h.heap, first, h.streams[1]));
    small_busy(&h, 1);
    small_free(&h, first);
    CHECK_EQ(small_stats(&h).active.current, 1);
    CHECK_EQ(small_stats(&h).allocation.current, 0);
    small_close_limit(&h);
    small_finish(&h, 1);
    (void)small_alloc(&h, 700 * KIB, 0);
    CHECK_EQ(small_stats(&h).num_sync_all_streams, 0);
    CHECK_EQ(small_held(&h), 1 * MIB);
    small_close(&h);
}

static void share_takes_memory_of_an_idle_stream(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle first = small_alloc(&h, 700 * KIB, 1);
    small_free(&h, first);
    small_close_limit(&h);
    (void)small_alloc(&h, 700 * KIB, 2);
    CHECK_EQ(small_calls(&h, ALLOT_DEVICE_CALL_STREAM_WAIT), 0);
    CHECK_EQ(small_stats(&h).num_sync_all_streams, 0);
    CHECK_EQ(small_stats(&h).num_device_alloc, 1);
    small_close(&h);
}

static void share_does_not_take_memory_of_a_busy_stream(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle first = small_alloc(&h, 700 * KIB, 1);
    small_busy(&h, 1);
    small_free(&h, first);
    (void)small_alloc(&h, 700 * KIB, 2);
    CHECK_EQ(small_stats(&h).num_device_alloc, 2); /* it grew instead */
    small_close(&h);
}

static allot_handle alloc_like(small_heap *h, uint64_t size, uint32_t flags, int32_t priority)
{
    allot_handle handle = {0};
    CHECK_OK(
        small_try(h, (allot_request){.size = size, .flags = flags, .priority = priority}, &handle));
    return handle;
}

static void up_to_the_soft_limit_nothing_is_dropped(void)
{
    small_heap h = small_open((allot_heap_options){.limit_soft = 2 * MIB});
    const allot_handle dropped = alloc_like(&h, 800 * KIB, ALLOT_BLOCK_TEMPORARY, 0);
    (void)small_alloc(&h, 800 * KIB, 0);
    CHECK(!small_is_dropped(&h, dropped));
    CHECK_EQ(small_held(&h), 2 * MIB);
    (void)small_alloc(&h, 800 * KIB, 0);
    CHECK(small_is_dropped(&h, dropped));
    CHECK_EQ(small_held(&h), 2 * MIB);
    (void)small_alloc(&h, 800 * KIB, 0); /* nothing is left to drop: GROW goes beyond it */
    CHECK_EQ(small_held(&h), 3 * MIB);
    CHECK_OK(allot_heap_free(h.heap, dropped));
    small_close(&h);
}

static void temporary_blocks_are_dropped_before_cached_ones(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle cached = alloc_like(&h, 400 * KIB, ALLOT_BLOCK_CACHED, -5);
    const allot_handle temporary = alloc_like(&h, 400 * KIB, ALLOT_BLOCK_TEMPORARY, 5);
    small_close_limit(&h);
    (void)small_alloc(&h, 400 * KIB, 0);
    CHECK(small_is_dropped(&h, temporary));
    CHECK(!small_is_dropped(&h, cached));
    (void)small_alloc(&h, 400 * KIB, 0);
    CHECK(small_is_dropped(&h, cached));
    small_close(&h);
}

static void blocks_are_dropped_by_priority_then_by_when_they_were_used(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle high = alloc_like(&h, 200 * KIB, ALLOT_BLOCK_CACHED, 1);
    const allot_handle older = alloc_like(&h, 200 * KIB, ALLOT_BLOCK_CACHED, 0);
    const allot_handle newer = alloc_like(&h, 200 * KIB, ALLOT_BLOCK_CACHED, 0);
    const allot_handle pinned = alloc_like(&h, 200 * KIB, ALLOT_BLOCK_CACHED, -1);
    allot_devptr ptr = {0};
    (void)small_alloc(&h, 224 * KIB, 0);
    CHECK_OK(allot_heap_pin(h.heap, pinned, &ptr));
    CHECK_OK(allot_heap_pin(h.heap, newer, &ptr));
    CHECK_OK(allot_heap_unpin(h.heap, newer));
    CHECK_OK(allot_heap_pin(h.heap, older, &ptr)); /* it is the newer one now */
    CHECK_OK(allot_heap_unpin(h.heap, older));
    small_close_limit(&h);
    (void)small_alloc(&h, 200 * KIB, 0);
    CHECK(small_is_dropped(&h, newer));
    (void)small_alloc(&h, 200 * KIB, 0);
    CHECK(small_is_dropped(&h, older));
    CHECK(!small_is_dropped(&h, high));
    (void)small_alloc(&h, 200 * KIB, 0);
    CHECK(small_is_dropped(&h, high));
    (void)refuse(&h, (allot_request){.size = 200 * KIB}, ALLOT_STATUS_BUDGET);
    CHECK_OK(allot_heap_unpin(h.heap, pinned));
    (void)small_alloc(&h, 200 * KIB, 0);
    CHECK(small_is_dropped(&h, pinned));
    small_close(&h);
}

static void no_more_is_dropped_than_is_needed_on_another_stream(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle first = alloc_like(&h, 500 * KIB, ALLOT_BLOCK_TEMPORARY, 0);
    const allot_handle second = alloc_like(&h, 500 * KIB, ALLOT_BLOCK_TEMPORARY, 1);
    small_close_limit(&h);
    (void)small_alloc(&h, 500 * KIB, 1);
    CHECK(small_is_dropped(&h, first));
    CHECK(!small_is_dropped(&h, second));
    small_close(&h);
}

static allot_heap_pool make_pool(small_heap *h, allot_heap_pool_options options)
{
    allot_heap_pool pool = {0};
    options.struct_size = sizeof options;
    CHECK_OK(allot_heap_pool_create(h->heap, &options, &pool));
    return pool;
}

static allot_handle alloc_in(small_heap *h, allot_heap_pool pool, uint64_t size, int stream)
{
    allot_handle handle = {0};
    CHECK_OK(small_try(h, (allot_request){.size = size, .pool = pool, .stream = h->streams[stream]},
                       &handle));
    return handle;
}

static void trim_turns_free_segments_of_a_pool_into_others(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_heap_pool pool = make_pool(&h, (allot_heap_pool_options){0});
    small_free(&h, alloc_in(&h, pool, 900 * KIB, 1));
    CHECK_EQ(small_held(&h), 1 * MIB);
    small_close_limit(&h);
    (void)small_alloc(&h, 900 * KIB, 0);
    CHECK_EQ(small_held(&h), 1 * MIB);
    CHECK_EQ(small_stats(&h).num_device_free, 1);
    CHECK_EQ(small_stats(&h).num_alloc_retries, 1);
    small_close(&h);
}

static void wait_takes_memory_of_a_busy_stream_after_its_work(void)
{
    small_heap h = small_open((allot_heap_options){0});
    (void)small_alloc(&h, 100 * KIB, 1); /* keeps the segment from being trimmed */
    const allot_handle first = small_alloc(&h, 700 * KIB, 1);
    small_busy(&h, 1);
    small_free(&h, first);
    small_close_limit(&h);
    (void)small_alloc(&h, 700 * KIB, 2);
    CHECK_EQ(small_calls(&h, ALLOT_DEVICE_CALL_STREAM_WAIT), 1); /* the device waits */
    CHECK_EQ(small_stats(&h).num_sync_all_streams, 0);           /* the host does not */
    CHECK_EQ(small_held(&h), 1 * MIB);
    small_close(&h);
}

static void wait_waits_for_streams_that_use_freed_blocks(void)
{
    small_heap h = small_open((allot_heap_options){0});
    (void)small_alloc(&h, 100 * KIB, 0);
    const allot_handle first = small_alloc(&h, 700 * KIB, 0);
    CHECK_OK(allot_heap_use(h.heap, first, h.streams[1]));
    small_busy(&h, 1);
    small_free(&h, first);
    small_close_limit(&h);
    (void)small_alloc(&h, 700 * KIB, 0);
    CHECK_EQ(small_stats(&h).num_sync_all_streams, 1);
    small_close(&h);
}

static void pools_that_are_shared_take_what_fits_nowhere_else(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_heap_pool hidden = make_pool(&h, (allot_heap_pool_options){0});
    const allot_heap_pool shared =
        make_pool(&h, (allot_heap_pool_options){.is_shared_on_oom = true});
    (void)alloc_in(&h, hidden, 100 * KIB, 0);
    (void)alloc_in(&h, shared, 500 * KIB, 0);
    small_close_limit(&h);
    const allot_handle guest = small_alloc(&h, 500 * KIB, 0);
    CHECK_EQ(small_held(&h), 2 * MIB);
    /* A private pool takes no part, and its own requests go nowhere else. */
    const allot_heap_failure failure =
        refuse(&h, (allot_request){.size = 500 * KIB}, ALLOT_STATUS_BUDGET);
    CHECK_EQ(failure.size_free, (1024 - 100 + 24) * KIB);
    CHECK_EQ(failure.size_free_elsewhere, failure.size_free);
    CHECK_CONTAINS(allot_error_detail(), "948.0 KiB are free, 948.0 KiB of it in other pools");
    small_free(&h, guest);
    (void)refuse(&h, (allot_request){.size = 1000 * KIB, .pool = hidden}, ALLOT_STATUS_BUDGET);
    small_close(&h);
}

/* ---- pressure ---- */

typedef struct pressure {
    allot_handle victims[2];
    uint32_t victim_count;
    uint32_t calls;
    uint64_t needed;
    bool answers;
    bool allocates;
    allot_handle got;
} pressure;

static bool press(void *context, allot_heap *heap, uint64_t needed)
{
    pressure *const p = context;
    p->calls++;
    p->needed = needed;
    if (p->allocates) {
        /* Any call is allowed here. */
        const allot_request request = {.struct_size = sizeof request, .size = 1 * KIB};
        CHECK_OK(allot_heap_alloc(heap, &request, &p->got));
        CHECK_OK(allot_heap_check(heap));
        p->allocates = false;
    }
    if (p->victim_count != 0) {
        CHECK_OK(allot_heap_free(heap, p->victims[--p->victim_count]));
        return true;
    }
    return p->answers;
}

static void pressure_frees_until_the_request_fits(void)
{
    pressure p = {0};
    small_heap h = small_open((allot_heap_options){.pressure = press, .pressure_context = &p});
    p.victims[1] = small_alloc(&h, 500 * KIB, 0);
    p.victims[0] = small_alloc(&h, 500 * KIB, 0);
    small_close_limit(&h);
    p.victim_count = 2;
    (void)small_alloc(&h, 1000 * KIB, 0);
    CHECK_EQ(p.calls, 2);
    CHECK_EQ(p.needed, 1000 * KIB);
    CHECK_EQ(small_held(&h), 1 * MIB);
    small_close(&h);
}

static void pressure_may_allocate(void)
{
    pressure p = {.allocates = true};
    small_heap h = small_open((allot_heap_options){.pressure = press, .pressure_context = &p});
    (void)small_alloc(&h, 1000 * KIB, 0);
    small_close_limit(&h);
    const allot_heap_failure failure =
        refuse(&h, (allot_request){.size = 500 * KIB}, ALLOT_STATUS_BUDGET);
    CHECK_EQ(failure.tried[ALLOT_RUNG_PRESSURE], 1);
    CHECK(p.got.value != 0);
    small_free(&h, p.got);
    small_close(&h);
}

static void pressure_that_always_says_yes_comes_to_an_end(void)
{
    pressure p = {.answers = true};
    small_heap h = small_open((allot_heap_options){.pressure = press, .pressure_context = &p});
    (void)small_alloc(&h, 1000 * KIB, 0);
    small_close_limit(&h);
    const allot_heap_failure failure =
        refuse(&h, (allot_request){.size = 500 * KIB}, ALLOT_STATUS_BUDGET);
    CHECK_EQ(failure.tried[ALLOT_RUNG_PRESSURE], p.calls);
    CHECK_EQ(failure.tried[ALLOT_RUNG_SEARCH], p.calls);
    CHECK(p.calls > 1 && p.calls < 1000);
    small_close(&h);
}

static void pressure_is_told_once_when_the_soft_limit_is_crossed(void)
{
    pressure p = {0};
    small_heap h = small_open(
        (allot_heap_options){.pressure = press, .pressure_context = &p, .limit_soft = 2 * MIB});
    allot_handle blocks[4];
    for (int i = 0; i < 4; i++) {
        blocks[i] = small_alloc(&h, 1 * MIB, 0);
        CHECK_EQ(p.calls, i < 2 ? 0 : 1);
    }
    CHECK_EQ(p.needed, 0);
    for (int i = 0; i < 4; i++) {
        small_free(&h, blocks[i]);
    }
    CHECK_OK(allot_heap_trim(h.heap, 0, NULL));
    for (int i = 0; i < 4; i++) {
        (void)small_alloc(&h, 1 * MIB, 0);
    }
    CHECK_EQ(p.calls, 2);
    small_close(&h);
}

/* ---- refusals ---- */

static void a_refusal_tells_what_each_rung_did(void)
{
    small_heap h = small_open((allot_heap_options){0});
    (void)small_alloc(&h, 300 * KIB, 0);
    const allot_handle pending = small_alloc(&h, 100 * KIB, 0);
    (void)small_alloc(&h, 100 * KIB, 0);
    const allot_handle temporary = alloc_like(&h, 200 * KIB, ALLOT_BLOCK_TEMPORARY, 0);
    (void)small_alloc(&h, 324 * KIB, 0);
    CHECK_OK(allot_heap_use(h.heap, pending, h.streams[1]));
    small_free(&h, pending);
    small_close_limit(&h);
    const allot_heap_failure failure =
        refuse(&h, (allot_request){.size = 300 * KIB}, ALLOT_STATUS_FRAGMENTED);
    for (int i = 0; i < ALLOT_RUNG_COUNT; i++) {
        CHECK_EQ(failure.tried[i], 1);
        const bool gains = i == ALLOT_RUNG_COLLECT || i == ALLOT_RUNG_DROP_TEMPORARY;
        CHECK_EQ(failure.gained[i] != 0, gains);
    }
    CHECK_EQ(failure.gained[ALLOT_RUNG_COLLECT], 100 * KIB);
    CHECK_EQ(failure.gained[ALLOT_RUNG_DROP_TEMPORARY], 200 * KIB);
    CHECK_EQ(failure.size_reserved, 1 * MIB);
    CHECK_EQ(failure.size_free, 300 * KIB);
    CHECK_EQ(failure.size_free_largest, 200 * KIB);
    CHECK_EQ(failure.size_allocated, (1024 - 300) * KIB);
    CHECK_EQ(failure.limit, 1 * MIB);
    CHECK(small_is_dropped(&h, temporary));
    (void)refuse(&h, (allot_request){.size = 300 * KIB}, ALLOT_STATUS_FRAGMENTED);
    CHECK_CONTAINS(allot_error_detail(), "asked 300.0 KiB");
    CHECK_CONTAINS(allot_error_detail(), "300.0 KiB are free");
    CHECK_CONTAINS(allot_error_detail(), "ranges of at most 200.0 KiB");
    CHECK_CONTAINS(allot_error_detail(), "limit 1.0 MiB");
    CHECK_EQ(small_stats(&h).num_ooms, 2);
    small_close(&h);
}

static void a_refusal_says_device_where_no_limit_is_in_the_way(void)
{
    small_heap h = small_open((allot_heap_options){0});
    (void)small_alloc(&h, 60 * MIB, 0);
    const allot_heap_failure failure =
        refuse(&h, (allot_request){.size = 5 * MIB}, ALLOT_STATUS_DEVICE_MEMORY);
    CHECK_EQ(failure.limit, 0);
    CHECK(failure.device_free <= 4 * MIB);
    (void)small_alloc(&h, 3 * MIB, 0); /* and works on */
    small_close(&h);
}

static void what_no_limit_allows_costs_nobody_anything(void)
{
    small_heap h = small_open((allot_heap_options){.limit = 4 * MIB});
    const allot_heap_pool pool = make_pool(&h, (allot_heap_pool_options){.limit = 2 * MIB});
    const allot_handle temporary = alloc_like(&h, 500 * KIB, ALLOT_BLOCK_TEMPORARY, 0);
    small_free(&h, small_alloc(&h, 800 * KIB, 1));
    const uint64_t held = small_held(&h);
    (void)refuse(&h, (allot_request){.size = 4 * MIB + 1}, ALLOT_STATUS_BUDGET);
    CHECK_CONTAINS(allot_error_detail(), "limit 4.0 MiB");
    const allot_heap_failure failure =
        refuse(&h, (allot_request){.size = 2 * MIB + 1, .pool = pool}, ALLOT_STATUS_BUDGET);
    CHECK_EQ(failure.limit_pool, 2 * MIB);
    CHECK_EQ(failure.tried[ALLOT_RUNG_DROP_TEMPORARY], 0);
    CHECK_CONTAINS(allot_error_detail(), "limit of the pool 2.0 MiB");
    CHECK(!small_is_dropped(&h, temporary));
    CHECK_EQ(small_held(&h), held);
    small_close(&h);
}

static void rungs_have_names_and_texts(void)
{
    for (int i = 0; i < ALLOT_RUNG_COUNT; i++) {
        CHECK(strcmp(allot_rung_name((allot_rung)i), "unknown") != 0);
        CHECK(strlen(allot_rung_text((allot_rung)i)) > 5);
    }
    CHECK_STR(allot_rung_name(ALLOT_RUNG_COUNT), "unknown");
    CHECK_STR(allot_rung_text(ALLOT_RUNG_COUNT), "unknown");
}

/* ---- rungs of other areas ---- */

static allot_status make_room(allot_heap *heap, uint32_t arena, uint64_t size, uint64_t align)
{
    (void)heap, (void)arena, (void)size, (void)align;
    return ALLOT_STATUS_BACKEND;
}

static void a_rung_that_breaks_ends_the_climb(void)
{
    small_heap h = small_open((allot_heap_options){0});
    (void)small_alloc(&h, 1000 * KIB, 0);
    small_close_limit(&h);
    allot_handle none = {0};
    h.heap->compact = make_room;
    CHECK_EQ(small_try(&h, (allot_request){.size = 500 * KIB}, &none), ALLOT_STATUS_BACKEND);
    h.heap->compact = NULL;
    h.heap->spill = make_room;
    CHECK_EQ(small_try(&h, (allot_request){.size = 500 * KIB}, &none), ALLOT_STATUS_BACKEND);
    h.heap->spill = NULL;
    CHECK_EQ(none.value, 0);
    small_close(&h);
}

static const check_test tests[] = {
    {"search_finds_what_its_own_stream_freed", search_finds_what_its_own_stream_freed},
    {"collect_finds_what_streams_are_done_with", collect_finds_what_streams_are_done_with},
    {"share_takes_memory_of_an_idle_stream", share_takes_memory_of_an_idle_stream},
    {"share_does_not_take_memory_of_a_busy_stream", share_does_not_take_memory_of_a_busy_stream},
    {"up_to_the_soft_limit_nothing_is_dropped", up_to_the_soft_limit_nothing_is_dropped},
    {"temporary_blocks_are_dropped_before_cached_ones",
     temporary_blocks_are_dropped_before_cached_ones},
    {"blocks_are_dropped_by_priority_then_by_when_they_were_used",
     blocks_are_dropped_by_priority_then_by_when_they_were_used},
    {"no_more_is_dropped_than_is_needed_on_another_stream",
     no_more_is_dropped_than_is_needed_on_another_stream},
    {"trim_turns_free_segments_of_a_pool_into_others",
     trim_turns_free_segments_of_a_pool_into_others},
    {"wait_takes_memory_of_a_busy_stream_after_its_work",
     wait_takes_memory_of_a_busy_stream_after_its_work},
    {"wait_waits_for_streams_that_use_freed_blocks", wait_waits_for_streams_that_use_freed_blocks},
    {"pools_that_are_shared_take_what_fits_nowhere_else",
     pools_that_are_shared_take_what_fits_nowhere_else},
    {"pressure_frees_until_the_request_fits", pressure_frees_until_the_request_fits},
    {"pressure_may_allocate", pressure_may_allocate},
    {"pressure_that_always_says_yes_comes_to_an_end",
     pressure_that_always_says_yes_comes_to_an_end},
    {"pressure_is_told_once_when_the_soft_limit_is_crossed",
     pressure_is_told_once_when_the_soft_limit_is_crossed},
    {"a_refusal_tells_what_each_rung_did", a_refusal_tells_what_each_rung_did},
    {"a_refusal_says_device_where_no_limit_is_in_the_way",
     a_refusal_says_device_where_no_limit_is_in_the_way},
    {"what_no_limit_allows_costs_nobody_anything", what_no_limit_allows_costs_nobody_anything},
    {"rungs_have_names_and_texts", rungs_have_names_and_texts},
    {"a_rung_that_breaks_ends_the_climb", a_rung_that_breaks_ends_the_climb},
};

CHECK_MAIN(tests)
