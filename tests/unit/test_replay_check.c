/* SPDX-License-Identifier: MIT */
/* Recordings whose check went wrong once, shrunk. */
#include <allot/replay.h>

#include "support/check.h"
#include "support/sim_trace.h"

#define MIB (1ull << 20)

static allot_status check_trace(const allot_trace *trace, uint64_t limit)
{
    allot_requests *requests = NULL;
    CHECK_OK(allot_requests_create(trace, ALLOT_NONE, &requests, NULL));
    const allot_replay_check_options options = {
        .struct_size = sizeof(options), .limit = limit, .version = ALLOT_TORCH_VERSION_NEWEST};
    allot_replay_check_result result = {.struct_size = sizeof(result)};
    const allot_status status = allot_replay_check(requests, &options, &result);
    allot_requests_destroy(requests);
    return status;
}

/** No stretch has room for the last but one request, so a second range is reserved; the device
 * refuses its pages, and after the release the first range serves. */
static void a_range_reserved_in_vain_does_not_hide_another(void)
{
    static const uint64_t SIZES[] = {246177043, 249667560, 15298266,  9124904, 1054054419,
                                     3997473,   152762677, 149185308, 1049439};
    sim_trace *sim = sim_trace_begin("expandable_segments:True,max_split_size_mb:256", 2000 * MIB);
    uint32_t blocks[sizeof(SIZES) / sizeof(SIZES[0])];
    for (uint32_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
        blocks[i] = sim_trace_alloc(sim, SIZES[i], i);
    }
    sim_trace_free(sim, blocks[4]);
    sim_trace_free(sim, blocks[1]);
    sim_trace_free(sim, blocks[0]);
    sim_trace_alloc(sim, 30471864, 20);
    sim_trace_alloc(sim, 458799707, 21);
    sim_trace_alloc(sim, 210752211, 22);
    allot_trace *trace = sim_trace_end(sim);
    CHECK_OK(check_trace(trace, 2000 * MIB));
    allot_trace_destroy(trace);
}

/** Frees that complete right before a failure: not there for the search, they came of its wait. */
static void check_waited_for(uint32_t shared_count)
{
    sim_trace *sim = sim_trace_begin("", 60 * MIB);
    uint32_t blocks[3];
    for (uint32_t i = 0; i < 3; i++) {
        blocks[i] = sim_trace_alloc(sim, 6 * MIB, i);
    }
    sim_trace_alloc(sim, 40 * MIB, 3);
    for (uint32_t i = 0; i < shared_count; i++) {
        sim_trace_free_shared(sim, blocks[i]);
    }
    CHECK_EQ(sim_trace_alloc(sim, 6 * MIB, 4), ALLOT_NONE);
    sim_trace_alloc(sim, 6 * MIB, 5);
    allot_trace *trace = sim_trace_end(sim);
    CHECK_OK(check_trace(trace, 60 * MIB));
    allot_trace_destroy(trace);
}

static void a_free_may_complete_on_the_way_to_a_failure(void)
{
    check_waited_for(1);
    check_waited_for(2);
}

/** Pages for a part of the request are mapped after the release, but a fraction of 200 MiB had to
 * hold the whole of it beside the 180 MiB held: not a release of the program's own. */
static void a_fraction_counts_the_whole_request_in_a_range(void)
{
    enum { SMALL_COUNT = 40 };
    sim_trace *sim =
        sim_trace_begin("expandable_segments:True,per_process_memory_fraction:0.5", 400 * MIB);
    uint32_t small[SMALL_COUNT];
    sim_trace_alloc(sim, 145 * MIB, 0); /* 160 MiB of pages. */
    for (uint32_t i = 0; i < SMALL_COUNT; i++) {
        small[i] = sim_trace_alloc(sim, MIB, 1);
    }
    for (uint32_t i = 20; i < SMALL_COUNT; i++) {
        sim_trace_free(sim, small[i]);
    }
    sim_trace_empty_cache(sim);
    for (uint32_t i = 10; i < 20; i++) {
        sim_trace_free(sim, small[i]);
    }
    CHECK(sim_trace_alloc(sim, 30 * MIB, 2) != ALLOT_NONE);
    allot_trace *trace = sim_trace_end(sim);
    allot_requests *requests = NULL;
    CHECK_OK(allot_requests_create(trace, ALLOT_NONE, &requests, NULL));
    allot_requests_info info = {.struct_size = sizeof(info)};
    allot_requests_get_info(requests, &info);
    CHECK_EQ(info.empty_cache_count, 1);
    CHECK_EQ(info.pressure_count, 1);
    CHECK_OK(check_trace(trace, 400 * MIB));
    allot_requests_destroy(requests);
    allot_trace_destroy(trace);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
static const check_test TESTS[] = {
    TEST(a_range_reserved_in_vain_does_not_hide_another),
    TEST(a_free_may_complete_on_the_way_to_a_failure),
    TEST(a_fraction_counts_the_whole_request_in_a_range),
};
CHECK_MAIN(TESTS)
