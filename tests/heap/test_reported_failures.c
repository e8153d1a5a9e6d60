/* SPDX-License-Identifier: MIT */
/* What users of other allocators have reported as wrong after a failure, a free or a move, as the
 * behaviour that is right. */
#include <string.h>

#include "heap/heap.h"
#include "small_heap.h"
#include "support/check.h"

#define CALL_BIT(name) (UINT64_C(1) << ALLOT_DEVICE_CALL_##name)

/* ---- a device that fails once ---- */

typedef struct broken {
    allot_device *inner;
    allot_device *device;
    allot_heap *heap;
} broken;

static broken open_broken(const char *device, allot_heap_options options)
{
    broken b = {0};
    options.struct_size = sizeof options;
    options.segment_size = 1 * MIB;
    options.reserve_size = 16 * MIB;
    CHECK_OK(allot_device_open(device, &b.inner));
    CHECK_OK(allot_device_open_failing(b.inner, NULL, &b.device));
    CHECK_OK(allot_heap_create(b.device, &options, &b.heap));
    return b;
}

static void close_broken(broken *b)
{
    CHECK_OK(allot_heap_check(b->heap));
    allot_heap_destroy(b->heap);
    allot_device_counts counts;
    allot_device_get_counts(b->device, &counts);
    CHECK_EQ(counts.live_count, 0);
    allot_device_destroy(b->device);
    allot_device_destroy(b->inner);
}

static void break_call(const broken *b, uint64_t call_mask, uint64_t nth, allot_status status)
{
    const allot_failing_options options = {
        .struct_size = sizeof options, .nth = nth, .call_mask = call_mask, .status = status};
    CHECK_OK(allot_failing_arm(b->device, &options));
}

static allot_status ask(const broken *b, uint64_t size, allot_devptr *out)
{
    const allot_request request = {.struct_size = sizeof request, .size = size};
    return allot_heap_alloc_pointer(b->heap, &request, out);
}

static uint64_t created(const broken *b)
{
    allot_device_counts counts;
    allot_device_get_counts(b->device, &counts);
    return counts.size_created;
}

static void a_mapping_that_fails_halfway_takes_back_its_own_granules_only(void)
{
    broken b = open_broken("host,memory:64MiB,granule:256KiB",
                           (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL});
    allot_devptr kept = {0};
    REQUIRE_OK(ask(&b, 1 * MIB, &kept));
    CHECK_OK(allot_device_fill(b.device, (allot_stream){0}, kept, 0x5a, 1 * MIB));
    for (uint64_t nth = 1; nth <= 8; nth++) {
        allot_devptr none = {0};
        break_call(&b, CALL_BIT(MAP), nth, ALLOT_STATUS_BACKEND);
        CHECK_EQ(ask(&b, 2 * MIB, &none), ALLOT_STATUS_BACKEND);
        CHECK_CONTAINS(allot_error_detail(), "map failed on request"); /* the device's reason */
        CHECK_EQ(none.address, 0);
        CHECK_EQ(created(&b), 1 * MIB);
        CHECK_OK(allot_heap_check(b.heap));
    }
    break_call(&b, 0, 0, ALLOT_STATUS_OK);
    static uint8_t bytes[1024 * 1024];
    CHECK_OK(allot_device_read(b.device, (allot_stream){0}, bytes, kept, sizeof bytes));
    CHECK_OK(allot_device_stream_synchronize(b.device, (allot_stream){0}));
    CHECK_EQ(bytes[0], 0x5a);
    CHECK_EQ(bytes[sizeof bytes - 1], 0x5a);
    /* The granules that were taken back serve the next request. */
    allot_devptr next = {0};
    CHECK_OK(ask(&b, 2 * MIB, &next));
    CHECK_OK(allot_device_fill(b.device, (allot_stream){0}, next, 0xa5, 2 * MIB));
    close_broken(&b);
}

static void memory_that_runs_out_halfway_is_all_given_back(void)
{
    broken b = open_broken("simulated,memory:64MiB,granule:256KiB",
                           (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL});
    for (uint64_t nth = 1; nth <= 8; nth++) {
        allot_devptr none = {0};
        const allot_failing_options options = {
            .struct_size = sizeof options, .nth = nth, .call_mask = CALL_BIT(MEMORY_CREATE)};
        CHECK_OK(allot_failing_arm(b.device, &options));
        const allot_status status = ask(&b, 2 * MIB, &none);
        if (status == ALLOT_STATUS_OK) { /* a later rung got it */
            CHECK_OK(allot_heap_free_pointer(b.heap, none));
            CHECK_OK(allot_heap_trim(b.heap, 0, NULL));
        } else {
            CHECK_EQ(status, ALLOT_STATUS_DEVICE_MEMORY);
        }
        CHECK_EQ(created(&b), 0);
        CHECK_OK(allot_heap_check(b.heap));
    }
    close_broken(&b);
}

static void a_granule_that_was_not_taken_back_is_not_lost(void)
{
    broken b = open_broken("simulated,memory:64MiB,granule:256KiB",
                           (allot_heap_options){.mode = ALLOT_HEAP_MODE_VIRTUAL});
    allot_devptr ptr = {0};
    /* Mapping fails, and so does everything that could undo the granules before it. */
    const allot_failing_options options = {.struct_size = sizeof options,
                                           .every = 4,
                                           .call_mask = CALL_BIT(MAP) | CALL_BIT(UNMAP) |
                                                        CALL_BIT(MEMORY_RELEASE),
                                           .status = ALLOT_STATUS_BACKEND};
    CHECK_OK(allot_failing_arm(b.device, &options));
    CHECK_EQ(ask(&b, 2 * MIB, &ptr), ALLOT_STATUS_BACKEND);
    CHECK_OK(allot_failing_arm(b.device, NULL));
    CHECK_OK(allot_heap_check(b.heap));
    CHECK_OK(allot_heap_trim(b.heap, 0, NULL));
    CHECK_EQ(created(&b), 0);
    CHECK_OK(ask(&b, 2 * MIB, &ptr));
    CHECK_EQ(created(&b), 2 * MIB);
    close_broken(&b);
}

static void a_pool_whose_requests_failed_is_given_back(void)
{
    broken b = open_broken("simulated,memory:64MiB", (allot_heap_options){0});
    const allot_heap_pool_options options = {.struct_size = sizeof options};
    for (uint64_t nth = 1; nth <= 3; nth++) {
        allot_heap_pool pool = {0};
        allot_handle handle = {0};
        CHECK_OK(allot_heap_pool_create(b.heap, &options, &pool));
        break_call(&b, 0, nth, ALLOT_STATUS_BACKEND);
        const allot_request request = {.struct_size = sizeof request, .size = 1, .pool = pool};
        CHECK_EQ(allot_heap_alloc(b.heap, &request, &handle), ALLOT_STATUS_BACKEND);
        CHECK_OK(allot_heap_pool_destroy(b.heap, pool));
        CHECK_EQ(created(&b), 0);
    }
    close_broken(&b);
}

/* ---- search again, and no waiting for ever ---- */

static void what_a_wait_made_free_is_searched_before_the_device_is_asked(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle block = small_alloc(&h, 900 * KIB, 0);
    CHECK_OK(allot_heap_use(h.heap, block, h.streams[1]));
    small_busy(&h, 1);
    small_free(&h, block);
    (void)small_alloc(&h, 63 * MIB, 2); /* the device has nothing more */
    const uint64_t asked = small_calls(&h, ALLOT_DEVICE_CALL_ALLOC);
    const uint64_t before = small_stats(&h).num_device_free;
    (void)small_alloc(&h, 900 * KIB, 0);
    CHECK_EQ(small_stats(&h).num_device_free, before);
    CHECK(small_calls(&h, ALLOT_DEVICE_CALL_ALLOC) - asked <= 4); /* before the wait */
    CHECK_EQ(small_stats(&h).reserved_bytes.current, 64 * MIB);
    small_close(&h);
}

static void a_refusal_waits_for_each_stream_a_few_times_at_most(void)
{
    small_heap h = small_open((allot_heap_options){0});
    for (int i = 0; i < 50; i++) {
        const allot_handle block = small_alloc(&h, 100 * KIB, 0);
        CHECK_OK(allot_heap_use(h.heap, block, h.streams[1 + i % 3]));
        small_free(&h, block);
    }
    small_busy(&h, 1);
    allot_handle none = {0};
    CHECK_EQ(small_try(&h, (allot_request){.size = 65 * MIB}, &none), ALLOT_STATUS_DEVICE_MEMORY);
    CHECK(small_calls(&h, ALLOT_DEVICE_CALL_STREAM_SYNCHRONIZE) < 20);
    small_close(&h);
}

static void a_destroyed_pool_gives_nothing_when_all_else_is_used(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_heap_pool_options options = {.struct_size = sizeof options,
                                             .is_shared_on_oom = true};
    allot_heap_pool pool = {0};
    allot_handle block = {0};
    CHECK_OK(allot_heap_pool_create(h.heap, &options, &pool));
    CHECK_OK(small_try(&h, (allot_request){.size = 100 * KIB, .pool = pool}, &block));
    small_free(&h, block);
    CHECK_OK(allot_heap_pool_destroy(h.heap, pool));
    (void)small_alloc(&h, 1 * MIB, 0);
    small_close_limit(&h);
    CHECK_EQ(small_try(&h, (allot_request){.size = 1}, &block), ALLOT_STATUS_BUDGET);
    CHECK_EQ(small_try(&h, (allot_request){.size = 1, .pool = pool}, &block), ALLOT_STATUS_INVALID);
    small_close(&h);
}

/* ---- cycles ---- */

static void cycles_of_filling_and_giving_back_end_where_they_began(void)
{
    for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
        small_heap h = small_open((allot_heap_options){.mode = (allot_heap_mode)mode});
        const allot_handle weights = small_alloc(&h, 2 * MIB, 0);
        const uint64_t held = small_held(&h);
        uint64_t size_free = 0;
        uint64_t free_first = 0;
        uint64_t total = 0;
        for (int i = 0; i < 50; i++) {
            const allot_handle a = small_alloc(&h, 5 * MIB, i % 3);
            const allot_handle b = small_alloc(&h, 300 * KIB, (i + 1) % 3);
            small_free(&h, a);
            small_free(&h, b);
            CHECK_OK(allot_heap_trim(h.heap, 0, NULL));
            CHECK_EQ(small_held(&h), held);
            CHECK_OK(allot_device_memory_info(h.device, &size_free, &total));
            free_first = i == 0 ? size_free : free_first;
            CHECK_EQ(size_free, free_first);
            allot_block_info info;
            CHECK_OK(allot_heap_get_block(h.heap, weights, &info));
            CHECK_EQ(info.size, 2 * MIB);
        }
        small_close(&h);
    }
}

static void blocks_above_a_segment_come_back_however_often(void)
{
    small_heap h = small_open((allot_heap_options){0});
    for (int i = 0; i < 100; i++) {
        const allot_handle block = small_alloc(&h, 8 * MIB, 0);
        small_free(&h, block);
        CHECK_EQ(small_stats(&h).allocated_bytes.current, 0);
        if (i % 2 == 0) {
            CHECK_OK(allot_heap_trim(h.heap, 0, NULL));
            CHECK_EQ(small_held(&h), 0);
        }
        CHECK(small_held(&h) <= 8 * MIB);
    }
    small_close(&h);
}

static void nothing_is_released_twice(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle block = small_alloc(&h, 2 * MIB, 0);
    small_free(&h, block);
    CHECK_OK(allot_heap_trim(h.heap, 0, NULL));
    const uint64_t released = small_calls(&h, ALLOT_DEVICE_CALL_FREE);
    CHECK_EQ(allot_heap_free(h.heap, block), ALLOT_STATUS_INVALID);
    CHECK_OK(allot_heap_trim(h.heap, 0, NULL));
    CHECK_EQ(small_calls(&h, ALLOT_DEVICE_CALL_FREE), released);
    small_close(&h);
}

/* ---- streams ---- */

static void memory_goes_back_after_the_work_on_it(void)
{
    for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
        small_heap h = small_open((allot_heap_options){.mode = (allot_heap_mode)mode});
        const allot_handle block = small_alloc(&h, 2 * MIB, 1);
        small_busy(&h, 1);
        small_free(&h, block);
        allot_event end = {0};
        CHECK_OK(allot_device_event_create(h.device, &end));
        CHECK_OK(allot_device_event_record(h.device, end, h.streams[1]));
        CHECK_EQ(allot_device_event_query(h.device, end), ALLOT_STATUS_BUSY);
        CHECK_OK(allot_heap_trim(h.heap, 0, NULL));
        CHECK_EQ(small_held(&h), 0);
        CHECK_OK(allot_device_event_query(h.device, end)); /* trimming waited for it */
        CHECK_OK(allot_device_event_destroy(h.device, end));
        small_close(&h);
    }
}

static void a_block_is_freed_wherever_its_memory_went(void)
{
    small_heap h = small_open((allot_heap_options){0});
    allot_handle blocks[3];
    for (int i = 0; i < 3; i++) {
        blocks[i] = small_alloc(&h, 300 * KIB, i + 1);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_OK(allot_heap_end_stream(h.heap, h.streams[i + 1]));
        CHECK_OK(allot_heap_check(h.heap));
    }
    for (int i = 0; i < 3; i++) {
        small_free(&h, blocks[i]);
    }
    CHECK_OK(allot_heap_trim(h.heap, 0, NULL));
    CHECK_EQ(small_held(&h), 0);
    small_close(&h);
}

static void figures_change_when_a_free_is_done_not_when_it_is_asked_for(void)
{
    small_heap h = small_open((allot_heap_options){0});
    const allot_handle block = small_alloc(&h, 100 * KIB, 0);
    CHECK_OK(allot_heap_use(h.heap, block, h.streams[1]));
    small_busy(&h, 1);
    small_free(&h, block);
    CHECK_OK(allot_heap_collect(h.heap));
    allot_heap_stats stats = small_stats(&h);
    CHECK_EQ(stats.allocated_bytes.current, 0);
    CHECK_EQ(stats.active_bytes.current, 100 * KIB);
    CHECK_EQ(stats.active.current, 1);
    small_finish(&h, 1);
    CHECK_OK(allot_heap_collect(h.heap));
    stats = small_stats(&h);
    CHECK_EQ(stats.active_bytes.current, 0);
    CHECK_EQ(stats.active.current, 0);
    small_close(&h);
}

/* ---- sizes, alignments, bytes ---- */

static void what_is_kept_at_hand_is_never_too_small(void)
{
    small_heap h = small_open((allot_heap_options){.front_size = 1 * MIB});
    uint64_t random = check_seed();
    for (int i = 0; i < 500; i++) {
        const uint64_t size = check_random_range(&random, 1, 20 * KIB);
        const allot_handle block = small_alloc(&h, size, 0);
        allot_block_info info;
        CHECK_OK(allot_heap_get_block(h.heap, block, &info));
        CHECK(info.size >= size);
        CHECK_EQ(info.size_requested, size);
        small_free(&h, block);
    }
    CHECK(small_stats(&h).front_bytes > 0);
    small_close(&h);
}

static void a_moved_block_keeps_its_bytes_and_its_alignment(void)
{
    broken b = open_broken("host,memory:64MiB,granule:256KiB", (allot_heap_options){0});
    allot_handle block = {0};
    allot_handle wall = {0};
    allot_devptr ptr = {0};
    static uint8_t bytes[200 * 1024];
    static uint8_t seen[sizeof bytes];
    const allot_stream stream = {0};
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    }
    allot_request request = {
        .struct_size = sizeof request, .size = sizeof bytes, .align = 128 * KIB};
    REQUIRE_OK(allot_heap_alloc(b.heap, &request, &block));
    CHECK_OK(allot_heap_pin(b.heap, block, &ptr));
    CHECK_OK(allot_device_write(b.device, stream, ptr, bytes, sizeof bytes));
    CHECK_OK(allot_heap_unpin(b.heap, block));
    request = (allot_request){.struct_size = sizeof request, .size = 1};
    for (uint64_t size = 2 * sizeof bytes; size < 16 * sizeof bytes; size *= 2) {
        const uint64_t before = ptr.address;
        REQUIRE_OK(allot_heap_alloc(b.heap, &request, &wall)); /* behind the block */
        REQUIRE_OK(allot_heap_resize(b.heap, block, size));
        CHECK_OK(allot_heap_pin(b.heap, block, &ptr));
        CHECK(size > 2 * sizeof bytes || ptr.address != before);
        CHECK_EQ(ptr.address % (128 * KIB), 0);
        CHECK_OK(allot_device_read(b.device, stream, seen, ptr, sizeof seen));
        CHECK_OK(allot_device_stream_synchronize(b.device, stream));
        CHECK_EQ(memcmp(seen, bytes, sizeof bytes), 0);
        CHECK_OK(allot_heap_unpin(b.heap, block));
    }
    close_broken(&b);
}

typedef struct extent {
    uint64_t begin;
    uint64_t end;
} extent;

typedef struct extents {
    extent at[256];
    uint32_t count;
} extents;

static bool note_extent(void *context, const allot_block_info *block)
{
    extents *const all = context;
    all->at[all->count++] =
        (extent){.begin = block->ptr.address, .end = block->ptr.address + block->size};
    return all->count < 256;
}

static void check_no_overlap(small_heap *h)
{
    static extents all;
    all.count = 0;
    CHECK_OK(allot_heap_walk(h->heap, note_extent, &all));
    uint64_t overlaps = 0;
    for (uint32_t i = 0; i < all.count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            overlaps += all.at[i].begin < all.at[j].end && all.at[j].begin < all.at[i].end;
        }
    }
    CHECK_EQ(overlaps, 0);
}

static void small_sizes_of_every_placement_never_overlap(void)
{
    for (int strategy = 0; strategy <= ALLOT_SPACE_STRATEGY_ADAPTIVE; strategy++) {
        small_heap h = small_open((allot_heap_options){
            .strategy = (allot_space_strategy)strategy, .granule = 1, .limit = 1 * MIB});
        allot_handle blocks[150];
        for (uint64_t i = 0; i < 150; i++) {
            /* Both sides of every power of two up to 4 KiB, and what lies between. */
            const uint64_t size = (UINT64_C(1) << (i % 13)) + i % 3 - (i % 13 == 0 ? 0 : 1);
            const allot_request request = {.struct_size = sizeof request, .size = size};
            REQUIRE_OK(allot_heap_alloc(h.heap, &request, &blocks[i]));
        }
        check_no_overlap(&h);
        for (uint64_t i = 0; i < 150; i += 2) {
            CHECK_OK(allot_heap_free(h.heap, blocks[i]));
        }
        for (uint64_t i = 0; i < 150; i += 2) {
            const allot_request request = {.struct_size = sizeof request, .size = 1 + i * 7 % 300};
            REQUIRE_OK(allot_heap_alloc(h.heap, &request, &blocks[i]));
        }
        check_no_overlap(&h);
        small_close(&h);
    }
}

static void all_of_a_limit_is_given_out_in_one_piece_or_in_many(void)
{
    for (int strategy = 0; strategy <= ALLOT_SPACE_STRATEGY_ADAPTIVE; strategy++) {
        small_heap h = small_open((allot_heap_options){.strategy = (allot_space_strategy)strategy,
                                                       .segment_size = 64 * MIB});
        const allot_handle all = small_alloc(&h, 64 * MIB, 0);
        small_free(&h, all);
        (void)small_alloc(&h, 32 * MIB, 0);
        (void)small_alloc(&h, 16 * MIB, 0);
        (void)small_alloc(&h, 16 * MIB, 0);
        CHECK_EQ(small_stats(&h).allocated_bytes.current, 64 * MIB);
        small_close(&h);
    }
}

static const check_test tests[] = {
    {"a_mapping_that_fails_halfway_takes_back_its_own_granules_only",
     a_mapping_that_fails_halfway_takes_back_its_own_granules_only},
    {"memory_that_runs_out_halfway_is_all_given_back",
     memory_that_runs_out_halfway_is_all_given_back},
    {"a_granule_that_was_not_taken_back_is_not_lost",
     a_granule_that_was_not_taken_back_is_not_lost},
    {"a_pool_whose_requests_failed_is_given_back", a_pool_whose_requests_failed_is_given_back},
    {"what_a_wait_made_free_is_searched_before_the_device_is_asked",
     what_a_wait_made_free_is_searched_before_the_device_is_asked},
    {"a_refusal_waits_for_each_stream_a_few_times_at_most",
     a_refusal_waits_for_each_stream_a_few_times_at_most},
    {"a_destroyed_pool_gives_nothing_when_all_else_is_used",
     a_destroyed_pool_gives_nothing_when_all_else_is_used},
    {"cycles_of_filling_and_giving_back_end_where_they_began",
     cycles_of_filling_and_giving_back_end_where_they_began},
    {"blocks_above_a_segment_come_back_however_often",
     blocks_above_a_segment_come_back_however_often},
    {"nothing_is_released_twice", nothing_is_released_twice},
    {"memory_goes_back_after_the_work_on_it", memory_goes_back_after_the_work_on_it},
    {"a_block_is_freed_wherever_its_memory_went", a_block_is_freed_wherever_its_memory_went},
    {"figures_change_when_a_free_is_done_not_when_it_is_asked_for",
     figures_change_when_a_free_is_done_not_when_it_is_asked_for},
    {"what_is_kept_at_hand_is_never_too_small", what_is_kept_at_hand_is_never_too_small},
    {"a_moved_block_keeps_its_bytes_and_its_alignment",
     a_moved_block_keeps_its_bytes_and_its_alignment},
    {"small_sizes_of_every_placement_never_overlap", small_sizes_of_every_placement_never_overlap},
    {"all_of_a_limit_is_given_out_in_one_piece_or_in_many",
     all_of_a_limit_is_given_out_in_one_piece_or_in_many},
};

CHECK_MAIN(tests)
