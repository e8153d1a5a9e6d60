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

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
static const check_test TESTS[] = {
    TEST(a_range_reserved_in_vain_does_not_hide_another),
    TEST(a_free_may_complete_on_the_way_to_a_failure),
};
CHECK_MAIN(TESTS)
