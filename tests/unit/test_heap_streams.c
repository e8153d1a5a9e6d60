/* SPDX-License-Identifier: MIT */
/* Streams and pools of a heap that come and go. */
#include <allot/heap.h>

#include "support/check.h"

typedef struct fixture {
    allot_device *device;
    allot_heap *heap;
} fixture;

static void begin(fixture *f, allot_heap_options options)
{
    options.struct_size = sizeof options;
    *f = (fixture){0};
    REQUIRE_OK(allot_device_open("simulated,memory:256MiB", &f->device));
    REQUIRE_OK(allot_heap_create(f->device, &options, &f->heap));
}

static void end(fixture *f)
{
    CHECK_OK(allot_heap_check(f->heap));
    allot_heap_destroy(f->heap);
    allot_device_destroy(f->device);
}

static allot_status alloc(fixture *f, uint64_t size, allot_stream stream, allot_heap_pool pool,
                          allot_handle *out)
{
    const allot_request request = {
        .struct_size = sizeof request, .size = size, .stream = stream, .pool = pool};
    return allot_heap_alloc(f->heap, &request, out);
}

/** More streams one after the other than a heap knows at once. */
static void places_of_ended_streams_are_used_anew(void)
{
    enum { STREAMS = 5000 };
    fixture f;
    begin(&f, (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS});
    for (int i = 0; i < STREAMS; i++) {
        allot_stream stream = {0};
        allot_handle handle = {0};
        REQUIRE_OK(allot_device_stream_create(f.device, &stream));
        REQUIRE_OK(alloc(&f, 4096, stream, (allot_heap_pool){0}, &handle));
        REQUIRE_OK(allot_heap_free(f.heap, handle));
        REQUIRE_OK(allot_heap_end_stream(f.heap, stream));
        REQUIRE_OK(allot_device_stream_destroy(f.device, stream));
    }
    end(&f);
}

/** What a stream leaves behind counts for the default stream. */
static void end_with_block(allot_heap_mode mode)
{
    const allot_stream none = {0};
    fixture f;
    allot_stream stream = {0};
    allot_handle handle = {0};
    allot_heap_stats stats;
    allot_heap_stats of_stream;
    begin(&f, (allot_heap_options){.mode = mode, .segment_size = 1 << 20});
    REQUIRE_OK(allot_device_stream_create(f.device, &stream));
    CHECK_OK(alloc(&f, 4096, stream, (allot_heap_pool){0}, &handle));
    CHECK_OK(allot_heap_end_stream(f.heap, stream));
    CHECK_OK(allot_device_stream_destroy(f.device, stream));
    CHECK_OK(allot_heap_get_stats(f.heap, &stats));
    CHECK_OK(allot_heap_get_stream_stats(f.heap, none, &of_stream));
    CHECK_EQ(of_stream.reserved_bytes.current, stats.reserved_bytes.current);
    CHECK_EQ(of_stream.segment.current, stats.segment.current);
    CHECK_EQ(of_stream.inactive_split_bytes.current, stats.inactive_split_bytes.current);
    CHECK_OK(allot_heap_free(f.heap, handle));
    CHECK_OK(allot_heap_trim(f.heap, 0, NULL));
    CHECK_OK(allot_heap_get_stream_stats(f.heap, none, &of_stream));
    CHECK_EQ(of_stream.reserved_bytes.current, 0);
    CHECK_EQ(of_stream.segment.current, 0);
    CHECK_EQ(of_stream.inactive_split.current, 0);
    end(&f);
}

static void segments_of_an_ended_stream_count_for_the_default_stream(void)
{
    end_with_block(ALLOT_HEAP_MODE_SEGMENTS);
    end_with_block(ALLOT_HEAP_MODE_VIRTUAL);
}

static void a_block_outlives_its_stream_and_the_front_of_it(void)
{
    fixture f;
    allot_stream stream = {0};
    allot_handle handles[2] = {{0}};
    allot_heap_stats stats;
    begin(&f, (allot_heap_options){.front_size = 1 << 20});
    REQUIRE_OK(allot_device_stream_create(f.device, &stream));
    CHECK_OK(alloc(&f, 4096, stream, (allot_heap_pool){0}, &handles[0]));
    CHECK_OK(alloc(&f, 4096, stream, (allot_heap_pool){0}, &handles[1]));
    CHECK_OK(allot_heap_free(f.heap, handles[0]));
    CHECK_OK(allot_heap_end_stream(f.heap, stream));
    CHECK_OK(allot_device_stream_destroy(f.device, stream));
    CHECK_OK(allot_heap_get_stats(f.heap, &stats));
    CHECK_EQ(stats.front_bytes, 0);
    CHECK_OK(allot_heap_free(f.heap, handles[1]));
    CHECK_OK(allot_heap_trim(f.heap, 0, NULL));
    CHECK_OK(allot_heap_get_stats(f.heap, &stats));
    CHECK_EQ(stats.reserved_bytes.current, 0);
    end(&f);
}

/** Memory of a pool that a request of the default pool was given stays as long as that block. */
static void a_pool_with_a_block_of_the_default_pool_is_busy(void)
{
    const allot_stream none = {0};
    const allot_heap_pool_options options = {.struct_size = sizeof options,
                                             .is_shared_on_oom = true};
    fixture f;
    allot_heap_pool pool = {0};
    allot_handle own[2] = {{0}};
    allot_handle guest = {0};
    begin(&f, (allot_heap_options){
                  .mode = ALLOT_HEAP_MODE_SEGMENTS, .segment_size = 1 << 20, .limit = 1 << 20});
    CHECK_OK(allot_heap_pool_create(f.heap, &options, &pool));
    /* A block of the pool keeps the segment, so that the rung before cannot take it. */
    CHECK_OK(alloc(&f, 4096, none, pool, &own[0]));
    CHECK_OK(alloc(&f, 4096, none, (allot_heap_pool){0}, &guest));
    CHECK_OK(allot_heap_free(f.heap, own[0]));
    CHECK_EQ(allot_heap_pool_destroy(f.heap, pool), ALLOT_STATUS_BUSY);
    CHECK_OK(allot_heap_check(f.heap));
    CHECK_OK(alloc(&f, 4096, none, pool, &own[1])); /* the pool is as it was */
    CHECK_OK(allot_heap_free(f.heap, own[1]));
    CHECK_OK(allot_heap_free(f.heap, guest));
    CHECK_OK(allot_heap_pool_destroy(f.heap, pool));
    end(&f);
}

/** Room for the block's growth is there only once the block itself is dropped: it is gone then, and
 * not pinned. */
static void growth_that_drops_the_block_itself_says_so(void)
{
    fixture f;
    allot_handle handles[2] = {{0}};
    allot_handle wall = {0};
    const allot_request temporary = {
        .struct_size = sizeof temporary, .size = 300 << 10, .flags = ALLOT_BLOCK_TEMPORARY};
    begin(&f, (allot_heap_options){
                  .mode = ALLOT_HEAP_MODE_SEGMENTS, .segment_size = 1 << 20, .limit = 1 << 20});
    CHECK_OK(allot_heap_alloc(f.heap, &temporary, &handles[0]));
    CHECK_OK(alloc(&f, 4096, (allot_stream){0}, (allot_heap_pool){0}, &wall));
    CHECK_OK(allot_heap_alloc(f.heap, &temporary, &handles[1]));
    /* 420 KiB are free at the end, 720 without the second block, which is dropped after the first.
     */
    CHECK_EQ(allot_heap_resize(f.heap, handles[0], 500 << 10), ALLOT_STATUS_NOT_FOUND);
    CHECK_OK(allot_heap_check(f.heap));
    CHECK_OK(allot_heap_use(f.heap, handles[0], (allot_stream){9})); /* nothing is to wait for */
    CHECK_OK(allot_heap_free(f.heap, handles[0]));
    CHECK_OK(allot_heap_free(f.heap, handles[1]));
    CHECK_OK(allot_heap_free(f.heap, wall));
    end(&f);
}

static const check_test tests[] = {
    {"places_of_ended_streams_are_used_anew", places_of_ended_streams_are_used_anew},
    {"segments_of_an_ended_stream_count_for_the_default_stream",
     segments_of_an_ended_stream_count_for_the_default_stream},
    {"a_block_outlives_its_stream_and_the_front_of_it",
     a_block_outlives_its_stream_and_the_front_of_it},
    {"a_pool_with_a_block_of_the_default_pool_is_busy",
     a_pool_with_a_block_of_the_default_pool_is_busy},
    {"growth_that_drops_the_block_itself_says_so", growth_that_drops_the_block_itself_says_so},
};

CHECK_MAIN(tests)
