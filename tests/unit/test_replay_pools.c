/* SPDX-License-Identifier: MIT */
/* What a recording tells about private pools: how they were made, and when they are dropped. */
#include <allot/replay.h>

#include "support/check.h"
#include "trace/builder.h"

#define MIB (1ull << 20)
#define BASE 0x7f0000000000ull

enum { GRAPH = 1, MEMPOOL = 2 };

/** A recording in the making: events of one device and stream. */
typedef struct recording {
    alloti_builder *builder;
    uint32_t device;
    uint32_t stream;
    uint32_t pools[3]; /**< Default, a graph's, one that the program made. */
} recording;

static recording begin(void)
{
    static const allot_pool_id IDS[] = {{0, 0}, {1, 0}, {0, 1}};
    recording r = {.device = ALLOT_NONE};
    CHECK_OK(alloti_builder_create(&r.builder));
    CHECK_OK(alloti_builder_device(r.builder, ALLOT_MEMORY_DEVICE, 0, &r.device));
    CHECK_OK(alloti_builder_intern_stream(r.builder, 0, &r.stream));
    for (unsigned i = 0; i < 3; i++) {
        CHECK_OK(alloti_builder_intern_pool(r.builder, IDS[i], &r.pools[i]));
    }
    alloti_builder_set_trait(r.builder, ALLOT_TRACE_HAS_REQUESTED);
    alloti_builder_set_trait(r.builder, ALLOT_TRACE_HAS_ADDRESSES);
    return r;
}

static void add(recording *r, allot_event_kind kind, uint64_t offset, uint64_t size, unsigned pool)
{
    alloti_event event = ALLOTI_EVENT_INIT;
    event.kind = kind;
    event.addr = kind == ALLOT_EVENT_OOM ? offset : BASE + offset;
    event.size = size;
    event.stream = r->stream;
    event.pool = r->pools[pool];
    CHECK_OK(alloti_builder_add_event(r->builder, r->device, &event));
}

static void add_free(recording *r, uint64_t offset, uint64_t size, unsigned pool)
{
    add(r, ALLOT_EVENT_FREE_REQUESTED, offset, size, pool);
    add(r, ALLOT_EVENT_FREE_COMPLETED, offset, size, pool);
}

/** A segment of the final state with a block at its start, in use or not, and a rest. */
static void add_segment(recording *r, uint64_t offset, uint64_t size, uint64_t used, bool live,
                        unsigned pool)
{
    const allot_segment segment = {.address = BASE + offset,
                                   .total_size = size,
                                   .allocated_size = live ? used : 0,
                                   .active_size = live ? used : 0,
                                   .requested_size = live ? used : 0,
                                   .device = r->device,
                                   .stream = r->stream,
                                   .pool = r->pools[pool],
                                   .stack = ALLOT_NONE,
                                   .is_large = size > 2 * MIB};
    CHECK_OK(alloti_builder_add_segment(r->builder, &segment));
    const uint64_t sizes[] = {used, size - used};
    for (unsigned i = 0; i < 2 && sizes[i] > 0; i++) {
        const bool is_used = live && i == 0;
        const allot_block block = {.address = BASE + offset + (i == 0 ? 0 : used),
                                   .size = sizes[i],
                                   .requested_size = is_used ? sizes[i] : 0,
                                   .stack = ALLOT_NONE,
                                   .context = ALLOT_NONE,
                                   .metadata = ALLOT_NONE,
                                   .state = is_used ? ALLOT_BLOCK_ALLOCATED : ALLOT_BLOCK_INACTIVE};
        CHECK_OK(alloti_builder_add_block(r->builder, &block));
    }
}

/** End the recording and check it with a model under a limit. */
static allot_status check_with(recording *r, const char *model, uint64_t limit,
                               allot_replay_check_result *result)
{
    allot_trace *trace = NULL;
    allot_requests *requests = NULL;
    *result = (allot_replay_check_result){.struct_size = sizeof(*result)};
    CHECK_OK(alloti_builder_finish(r->builder, ALLOT_TRACE_FORMAT_TORCH_PICKLE, &trace));
    CHECK_OK(allot_requests_create(trace, ALLOT_NONE, &requests, NULL));
    const allot_replay_check_options options = {.struct_size = sizeof(options),
                                                .model = model,
                                                .limit = limit,
                                                .version = ALLOT_TORCH_VERSION_NEWEST};
    const allot_status status = allot_replay_check(requests, &options, result);
    allot_requests_destroy(requests);
    allot_trace_destroy(trace);
    return status;
}

static allot_status check_under(recording *r, uint64_t limit, allot_replay_check_result *result)
{
    return check_with(r, "torch", limit, result);
}

static void a_pool_that_never_splits_is_known_by_its_segments(void)
{
    recording r = begin();
    for (unsigned i = 0; i < 3; i++) {
        add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 2 * i * MIB, 2 * MIB, MEMPOOL);
        add(&r, ALLOT_EVENT_ALLOC, 2 * i * MIB, 1024, MEMPOOL);
        add_segment(&r, 2 * i * MIB, 2 * MIB, 2 * MIB, true, MEMPOOL);
    }
    allot_replay_check_result result;
    CHECK_OK(check_under(&r, 0, &result));
    CHECK_EQ(result.placement_equal, 3);
    CHECK_EQ(result.stats.allocated.now, 6 * MIB);
}

static void a_pool_that_never_splits_is_known_by_its_failures(void)
{
    recording r = begin();
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 0, 2 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_ALLOC, 0, 1024, MEMPOOL);
    add(&r, ALLOT_EVENT_OOM, 0, 1024, MEMPOOL);
    add_segment(&r, 0, 2 * MIB, 2 * MIB, true, MEMPOOL);
    allot_replay_check_result result;
    CHECK_OK(check_under(&r, 2 * MIB, &result));
    CHECK_EQ(result.oom_equal, 1);
}

/** After the release of the first segment the second says nothing about splits. */
static void a_pool_that_was_emptied_in_between_may_split(void)
{
    recording r = begin();
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 0, 2 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_ALLOC, 0, 1024, MEMPOOL);
    add_free(&r, 0, 1024, MEMPOOL);
    add(&r, ALLOT_EVENT_SEGMENT_FREE, 0, 2 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 2 * MIB, 2 * MIB, GRAPH);
    add(&r, ALLOT_EVENT_ALLOC, 2 * MIB, 1024, GRAPH);
    add_segment(&r, 2 * MIB, 2 * MIB, 1024, true, GRAPH);
    allot_replay_check_result result;
    CHECK_OK(check_under(&r, 0, &result));
    CHECK_EQ(result.stats.allocated.now, 1024);
}

static void a_dropped_pool_leaves_the_default_cache_alone(void)
{
    recording r = begin();
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 0, 30 * MIB, 0);
    add(&r, ALLOT_EVENT_ALLOC, 0, 30 * MIB, 0);
    add_free(&r, 0, 30 * MIB, 0);
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 30 * MIB, 40 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_ALLOC, 30 * MIB, 40 * MIB, MEMPOOL);
    add_free(&r, 30 * MIB, 40 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_SEGMENT_FREE, 30 * MIB, 40 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_ALLOC, 0, 30 * MIB, 0);
    add_segment(&r, 0, 30 * MIB, 30 * MIB, true, 0);
    allot_replay_check_result result;
    CHECK_OK(check_under(&r, 0, &result));
    CHECK_EQ(result.segment_free_equal, 1);
    CHECK_EQ(result.placement_equal, 3);
}

/** Pressure on the way to a request of a pool: its own oversize block goes, and what a pool without
 * uses holds. The pool of the request is in use. */
static void the_pool_of_the_next_request_is_in_use(void)
{
    recording r = begin();
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 0, 2 * MIB, GRAPH);
    add(&r, ALLOT_EVENT_ALLOC, 0, 1024, GRAPH);
    add_free(&r, 0, 1024, GRAPH);
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 2 * MIB, 60 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_ALLOC, 2 * MIB, 60 * MIB, MEMPOOL);
    add_free(&r, 2 * MIB, 60 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_SEGMENT_FREE, 2 * MIB, 60 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_SEGMENT_FREE, 0, 2 * MIB, GRAPH);
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 62 * MIB, 200 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_ALLOC, 62 * MIB, 200 * MIB, MEMPOOL);
    add_segment(&r, 62 * MIB, 200 * MIB, 200 * MIB, true, MEMPOOL);
    allot_replay_check_result result;
    CHECK_OK(check_with(&r, "torch:max_split_size_mb:21", 200 * MIB, &result));
    CHECK_EQ(result.segment_free_equal, 2);
    CHECK_EQ(result.placement_equal, 3);
}

/** Two pools without uses are given back in any order. */
static void unused_pools_are_released_in_any_order(void)
{
    recording r = begin();
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 0, 40 * MIB, GRAPH);
    add(&r, ALLOT_EVENT_ALLOC, 0, 40 * MIB, GRAPH);
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 40 * MIB, 30 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_ALLOC, 40 * MIB, 30 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 160 * MIB, 20 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_ALLOC, 160 * MIB, 20 * MIB, MEMPOOL);
    add_free(&r, 160 * MIB, 20 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_SEGMENT_FREE, 160 * MIB, 20 * MIB, MEMPOOL); /* It was dropped. */
    add_free(&r, 0, 40 * MIB, GRAPH);
    add_free(&r, 40 * MIB, 30 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_SEGMENT_FREE, 0, 40 * MIB, GRAPH);
    add(&r, ALLOT_EVENT_SEGMENT_FREE, 40 * MIB, 30 * MIB, MEMPOOL);
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 70 * MIB, 90 * MIB, 0);
    add(&r, ALLOT_EVENT_ALLOC, 70 * MIB, 90 * MIB, 0);
    add_segment(&r, 70 * MIB, 90 * MIB, 90 * MIB, true, 0);
    allot_replay_check_result result;
    CHECK_OK(check_under(&r, 100 * MIB, &result));
    CHECK_EQ(result.segment_free_equal, 3);
}

/** A request that fails with the default pool's cache full is one of a capture. */
static allot_status check_failure(unsigned pool)
{
    recording r = begin();
    add(&r, ALLOT_EVENT_SEGMENT_ALLOC, 0, 60 * MIB, 0);
    add(&r, ALLOT_EVENT_ALLOC, 0, 60 * MIB, 0);
    add_free(&r, 0, 60 * MIB, 0);
    add(&r, ALLOT_EVENT_OOM, 40 * MIB, 70 * MIB, pool);
    add_segment(&r, 0, 60 * MIB, 60 * MIB, false, 0);
    allot_replay_check_result result;
    return check_under(&r, 100 * MIB, &result);
}

static void a_graph_fails_without_a_release_and_a_mempool_does_not(void)
{
    CHECK_OK(check_failure(GRAPH));
    CHECK_EQ(check_failure(MEMPOOL), ALLOT_STATUS_MISMATCH);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
static const check_test TESTS[] = {
    TEST(a_pool_that_never_splits_is_known_by_its_segments),
    TEST(a_pool_that_never_splits_is_known_by_its_failures),
    TEST(a_pool_that_was_emptied_in_between_may_split),
    TEST(a_dropped_pool_leaves_the_default_cache_alone),
    TEST(the_pool_of_the_next_request_is_in_use),
    TEST(unused_pools_are_released_in_any_order),
    TEST(a_graph_fails_without_a_release_and_a_mempool_does_not),
};
CHECK_MAIN(TESTS)
