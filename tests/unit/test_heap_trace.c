/* SPDX-License-Identifier: MIT */
/* What a heap says of itself: as a trace, in events, in statistics. */
#include <allot/heap.h>
#include <allot/trace.h>
#include <string.h>

#include "support/check.h"
#include "support/trace_equal.h"

#define MIB (UINT64_C(1) << 20)

typedef struct scene {
    allot_device *device;
    allot_heap *heap;
    allot_stream side;
} scene;

static bool open_scene(scene *s, allot_heap_mode mode)
{
    const allot_heap_options options = {
        .struct_size = sizeof options, .mode = mode, .segment_size = 8 * MIB};
    *s = (scene){0};
    return CHECK_OK(allot_device_open("simulated,memory:256MiB", &s->device)) &&
           CHECK_OK(allot_device_stream_create(s->device, &s->side)) &&
           CHECK_OK(allot_heap_create(s->device, &options, &s->heap));
}

static void close_scene(scene *s)
{
    allot_heap_destroy(s->heap);
    CHECK_OK(allot_device_stream_destroy(s->device, s->side));
    allot_device_destroy(s->device);
}

static allot_devptr get(scene *s, uint64_t size, uint32_t tag)
{
    const allot_request request = {.struct_size = sizeof request, .size = size, .tag = tag};
    allot_devptr ptr = {0};
    CHECK_OK(allot_heap_alloc_pointer(s->heap, &request, &ptr));
    return ptr;
}

/** The heap as a trace, which also survives as a PyTorch snapshot. */
static allot_trace *trace_of(scene *s)
{
    allot_trace *trace = NULL;
    if (CHECK_OK(allot_heap_get_trace(s->heap, &trace))) {
        allot_trace *const back = trace_round_trip(trace, ALLOT_TRACE_FORMAT_TORCH_PICKLE);
        CHECK(back != NULL && trace_segments_equal(trace, back));
        allot_trace_destroy(back);
    }
    return trace;
}

static const allot_segment *only_segment(const allot_trace *trace)
{
    uint32_t count = 0;
    const allot_segment *const segments = allot_trace_segments(trace, &count);
    CHECK_EQ(count, 1);
    return count == 0 ? NULL : segments;
}

static void a_segment_lists_its_blocks(void)
{
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    const allot_devptr first = get(&s, 1000, 7);
    const allot_devptr second = get(&s, 2 * MIB, 0);
    CHECK_OK(allot_heap_use_pointer(s.heap, second, s.side));
    CHECK_OK(allot_simulated_run(s.device, s.side, UINT64_C(1000000000)));
    CHECK_OK(allot_heap_free_pointer(s.heap, second));
    allot_trace *const trace = trace_of(&s);
    REQUIRE(trace != NULL);
    const allot_segment *const segment = only_segment(trace);
    REQUIRE(segment != NULL);
    CHECK_EQ(segment->address, first.address);
    CHECK_EQ(segment->total_size, 8 * MIB);
    CHECK_EQ(segment->allocated_size, 1024);
    CHECK_EQ(segment->active_size, 1024 + 2 * MIB);
    CHECK_EQ(segment->block_count, 3);
    uint32_t count = 0;
    const allot_block *const blocks = allot_trace_blocks(trace, &count);
    REQUIRE(count == 3);
    CHECK_EQ(blocks[0].state, ALLOT_BLOCK_ALLOCATED);
    CHECK_EQ(blocks[0].requested_size, 1000);
    CHECK_STR(allot_trace_string(trace, blocks[0].metadata, NULL), "tag 7");
    CHECK_EQ(blocks[1].state, ALLOT_BLOCK_PENDING_FREE);
    CHECK_EQ(blocks[1].address, second.address);
    CHECK_EQ(blocks[2].state, ALLOT_BLOCK_INACTIVE);
    CHECK_EQ(blocks[2].size, 8 * MIB - 2 * MIB - 1024);
    allot_trace_destroy(trace);
    close_scene(&s);
}

static void what_is_mapped_side_by_side_is_a_segment(void)
{
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_VIRTUAL));
    allot_devptr parts[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = get(&s, 4 * MIB, 0);
    }
    CHECK_OK(allot_heap_free_pointer(s.heap, parts[1]));
    CHECK_OK(allot_heap_trim(s.heap, 0, NULL));
    allot_trace *const trace = trace_of(&s);
    REQUIRE(trace != NULL);
    uint32_t count = 0;
    const allot_segment *const segments = allot_trace_segments(trace, &count);
    CHECK_EQ(count, 2);
    for (uint32_t i = 0; i < count && i < 2; i++) {
        CHECK_EQ(segments[i].address, parts[2 * i].address);
        CHECK_EQ(segments[i].total_size, 4 * MIB);
        CHECK_EQ(segments[i].block_count, 1);
        CHECK(segments[i].is_expandable);
    }
    allot_trace_destroy(trace);
    close_scene(&s);
}

static void check_kinds(const allot_trace *trace, const allot_event_kind *kinds, uint64_t count)
{
    allot_events events;
    allot_trace_get_events(trace, 0, &events);
    CHECK_EQ(events.count, count);
    for (uint64_t i = 0; i < count && i < events.count; i++) {
        CHECK_STR(allot_event_kind_name((allot_event_kind)events.kind[i]),
                  allot_event_kind_name(kinds[i]));
    }
}

static void events_are_recorded_in_order(void)
{
    static const allot_event_kind KINDS[] = {
        ALLOT_EVENT_SEGMENT_ALLOC,  ALLOT_EVENT_ALLOC,          ALLOT_EVENT_ALLOC,
        ALLOT_EVENT_FREE_REQUESTED, ALLOT_EVENT_FREE_COMPLETED, ALLOT_EVENT_FREE_REQUESTED,
        ALLOT_EVENT_FREE_COMPLETED, ALLOT_EVENT_SEGMENT_FREE,   ALLOT_EVENT_OOM,
    };
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    CHECK_OK(allot_heap_record(s.heap, 100));
    const allot_devptr first = get(&s, MIB, 3);
    const allot_devptr second = get(&s, MIB, 0);
    CHECK_OK(allot_heap_use_pointer(s.heap, second, s.side));
    CHECK_OK(allot_heap_free_pointer(s.heap, first));
    CHECK_OK(allot_simulated_run(s.device, s.side, UINT64_C(1000000000)));
    CHECK_OK(allot_heap_free_pointer(s.heap, second));
    CHECK_OK(allot_device_stream_synchronize(s.device, s.side));
    CHECK_OK(allot_heap_trim(s.heap, 0, NULL));
    const allot_request huge = {.struct_size = sizeof huge, .size = UINT64_C(1) << 40};
    allot_handle none;
    CHECK_EQ(allot_heap_alloc(s.heap, &huge, &none), ALLOT_STATUS_DEVICE_MEMORY);
    allot_trace *const trace = trace_of(&s);
    REQUIRE(trace != NULL);
    check_kinds(trace, KINDS, sizeof KINDS / sizeof KINDS[0]);
    allot_trace_destroy(trace);
    close_scene(&s);
}

static void only_the_last_events_are_kept(void)
{
    static const allot_event_kind KINDS[] = {ALLOT_EVENT_ALLOC, ALLOT_EVENT_FREE_REQUESTED,
                                             ALLOT_EVENT_FREE_COMPLETED};
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    CHECK_OK(allot_heap_record(s.heap, 3));
    allot_devptr last = {0};
    for (int i = 1; i <= 5; i++) {
        last = get(&s, (uint64_t)i * 4096, (uint32_t)i);
        CHECK_OK(allot_heap_free_pointer(s.heap, last));
    }
    allot_trace *trace = trace_of(&s);
    REQUIRE(trace != NULL);
    check_kinds(trace, KINDS, 3);
    allot_events events;
    allot_trace_get_events(trace, 0, &events);
    CHECK_EQ(events.size[0], 5 * 4096);
    CHECK_EQ(events.addr[0], last.address);
    allot_trace_destroy(trace);
    CHECK_OK(allot_heap_record(s.heap, 0));
    trace = trace_of(&s);
    REQUIRE(trace != NULL);
    check_kinds(trace, KINDS, 0);
    allot_trace_destroy(trace);
    close_scene(&s);
}

static void an_empty_heap_is_an_empty_trace(void)
{
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_AUTO));
    allot_trace *trace = NULL;
    REQUIRE_OK(allot_heap_get_trace(s.heap, &trace));
    CHECK_EQ(allot_trace_device_count(trace), 1);
    uint32_t count = 1;
    (void)allot_trace_segments(trace, &count);
    CHECK_EQ(count, 0);
    allot_trace_destroy(trace);
    close_scene(&s);
}

/* ---- statistics ---- */

static void check_stat(const allot_stat *stat, uint64_t current, uint64_t peak, uint64_t allocated)
{
    CHECK_EQ(stat->current, current);
    CHECK_EQ(stat->peak, peak);
    CHECK_EQ(stat->allocated, allocated);
    CHECK_EQ(stat->freed, allocated - current);
}

static void statistics_count_what_happened(void)
{
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    const allot_devptr first = get(&s, 1000, 0);
    const allot_devptr second = get(&s, MIB, 0);
    CHECK_OK(allot_heap_free_pointer(s.heap, second));
    allot_heap_stats stats;
    REQUIRE_OK(allot_heap_get_stats(s.heap, &stats));
    check_stat(&stats.allocation, 1, 2, 2);
    check_stat(&stats.allocated_bytes, 1024, 1024 + MIB, 1024 + MIB);
    check_stat(&stats.requested_bytes, 1000, 1000 + MIB, 1000 + MIB);
    check_stat(&stats.active_bytes, 1024, 1024 + MIB, 1024 + MIB);
    check_stat(&stats.reserved_bytes, 8 * MIB, 8 * MIB, 8 * MIB);
    check_stat(&stats.segment, 1, 1, 1);
    CHECK_EQ(stats.inactive_split.current, 1);
    CHECK_EQ(stats.inactive_split_bytes.current, 8 * MIB - 1024);
    CHECK_EQ(stats.size_histogram[9], 1);
    CHECK_EQ(stats.size_histogram[20], 1);
    CHECK_EQ(stats.num_device_alloc, 1);
    CHECK_OK(allot_heap_reset_peaks(s.heap));
    CHECK_OK(allot_heap_free_pointer(s.heap, first));
    REQUIRE_OK(allot_heap_get_stats(s.heap, &stats));
    CHECK_EQ(stats.allocated_bytes.peak, 1024);
    CHECK_EQ(stats.inactive_split_bytes.current, 0);
    CHECK_OK(allot_heap_trim(s.heap, 0, NULL));
    REQUIRE_OK(allot_heap_get_stats(s.heap, &stats));
    check_stat(&stats.reserved_bytes, 0, 8 * MIB, 8 * MIB);
    CHECK_EQ(stats.num_device_free, 1);
    close_scene(&s);
}

static void statistics_of_streams_and_pools_add_up(void)
{
    scene s;
    REQUIRE(open_scene(&s, ALLOT_HEAP_MODE_SEGMENTS));
    const allot_heap_pool_options options = {.struct_size = sizeof options};
    allot_heap_pool pool;
    REQUIRE_OK(allot_heap_pool_create(s.heap, &options, &pool));
    const allot_request requests[] = {
        {.struct_size = sizeof(allot_request), .size = MIB},
        {.struct_size = sizeof(allot_request), .size = 2 * MIB, .stream = s.side},
        {.struct_size = sizeof(allot_request), .size = 3 * MIB, .stream = s.side, .pool = pool},
    };
    allot_handle handles[3];
    for (int i = 0; i < 3; i++) {
        CHECK_OK(allot_heap_alloc(s.heap, &requests[i], &handles[i]));
    }
    allot_heap_stats stats;
    CHECK_OK(allot_heap_get_stats(s.heap, &stats));
    CHECK_EQ(stats.allocated_bytes.current, 6 * MIB);
    CHECK_OK(allot_heap_get_stream_stats(s.heap, s.side, &stats));
    CHECK_EQ(stats.allocated_bytes.current, 5 * MIB);
    /* In the default pool it shares the segment of the default stream, which is idle. */
    CHECK_EQ(stats.reserved_bytes.current, 8 * MIB);
    CHECK_OK(allot_heap_get_pool_stats(s.heap, pool, &stats));
    CHECK_EQ(stats.allocated_bytes.current, 3 * MIB);
    CHECK_EQ(stats.reserved_bytes.current, 8 * MIB);
    CHECK_EQ(allot_heap_get_stream_stats(s.heap, (allot_stream){99}, &stats),
             ALLOT_STATUS_NOT_FOUND);
    CHECK_EQ(allot_heap_get_pool_stats(s.heap, (allot_heap_pool){99}, &stats),
             ALLOT_STATUS_INVALID);
    close_scene(&s);
}

static const check_test tests[] = {
    {"a_segment_lists_its_blocks", a_segment_lists_its_blocks},
    {"what_is_mapped_side_by_side_is_a_segment", what_is_mapped_side_by_side_is_a_segment},
    {"events_are_recorded_in_order", events_are_recorded_in_order},
    {"only_the_last_events_are_kept", only_the_last_events_are_kept},
    {"an_empty_heap_is_an_empty_trace", an_empty_heap_is_an_empty_trace},
    {"statistics_count_what_happened", statistics_count_what_happened},
    {"statistics_of_streams_and_pools_add_up", statistics_of_streams_and_pools_add_up},
};

CHECK_MAIN(tests)
