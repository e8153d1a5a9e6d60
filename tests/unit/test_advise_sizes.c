/* SPDX-License-Identifier: MIT */
/* Thresholds and intervals that come from a program's own sizes. */
#include "advise/sizes.h"
#include "support/check.h"
#include "support/sim_trace.h"

#define MIB(n) ((uint64_t)(n) << 20)

/** A recording that asks once for each size. */
static void collect(const uint64_t *requests, uint32_t count, uint64_t limit, alloti_sizes *out)
{
    sim_trace *const sim = sim_trace_begin("", limit);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t block = sim_trace_alloc(sim, requests[i], 1);
        if (block != ALLOT_NONE) {
            sim_trace_free(sim, block);
        }
    }
    allot_trace *const trace = sim_trace_end(sim);
    CHECK_OK(alloti_sizes_init(out, trace, 0));
    allot_trace_destroy(trace);
}

static void equal_mib_are_one_class_and_small_sizes_none(void)
{
    const uint64_t requests[] = {MIB(30) - 5, 1000, MIB(30), MIB(19), MIB(30) + 1, MIB(20)};
    alloti_sizes sizes;
    collect(requests, 6, 0, &sizes);
    REQUIRE(CHECK_EQ(sizes.large_count, 3));
    CHECK_EQ(sizes.large[0].mib, 20);
    CHECK_EQ(sizes.large[1].mib, 30);
    CHECK_EQ(sizes.large[1].count, 2);
    CHECK_EQ(sizes.large[2].mib, 31);
    /* The threshold lets its class be split and is the least that PyTorch takes for the first. */
    CHECK_EQ(alloti_sizes_threshold_mib(&sizes, 0), ALLOTI_MAX_SPLIT_MIB_MIN);
    CHECK_EQ(alloti_sizes_threshold_mib(&sizes, 1), 31);
    alloti_sizes_fini(&sizes);
}

static void a_failed_request_counts(void)
{
    const uint64_t requests[] = {MIB(40), MIB(900)};
    alloti_sizes sizes;
    collect(requests, 2, MIB(100), &sizes);
    REQUIRE(CHECK_EQ(sizes.large_count, 2));
    CHECK_EQ(sizes.large[1].mib, 900);
    alloti_sizes_fini(&sizes);
}

static void the_spread_has_both_ends_and_rises(void)
{
    enum { SIZES = 100, MOST = 7 };
    uint64_t requests[SIZES];
    for (uint32_t i = 0; i < SIZES; i++) {
        requests[i] = MIB(21 + i);
    }
    alloti_sizes sizes;
    collect(requests, SIZES, 0, &sizes);
    uint32_t chosen[MOST];
    const uint32_t count = alloti_sizes_spread(&sizes, MOST, chosen);
    REQUIRE(CHECK_EQ(count, MOST));
    CHECK_EQ(chosen[0], 0);
    CHECK_EQ(chosen[count - 1], SIZES - 1);
    for (uint32_t i = 1; i < count; i++) {
        CHECK(chosen[i] > chosen[i - 1]);
    }
    alloti_sizes_fini(&sizes);
}

static void few_sizes_are_all_chosen(void)
{
    const uint64_t requests[] = {MIB(25), MIB(50)};
    alloti_sizes sizes;
    collect(requests, 2, 0, &sizes);
    uint32_t chosen[12];
    CHECK_EQ(alloti_sizes_spread(&sizes, 12, chosen), 2);
    alloti_sizes_fini(&sizes);
}

static void intervals_come_by_falling_bytes(void)
{
    const uint64_t requests[] = {MIB(5), MIB(100), MIB(3), 2000};
    alloti_sizes sizes;
    collect(requests, 4, 0, &sizes);
    uint32_t intervals[8];
    REQUIRE(CHECK_EQ(alloti_sizes_intervals(&sizes, 8, intervals), 4));
    CHECK_EQ(intervals[0], 6); /* [64, 128) MiB */
    CHECK_EQ(intervals[1], 2);
    CHECK_EQ(intervals[2], 1);
    CHECK_EQ(intervals[3], 0);
    CHECK_EQ(alloti_sizes_intervals(&sizes, 2, intervals), 2);
    alloti_sizes_fini(&sizes);
}

static const check_test TESTS[] = {
    {"equal_mib_are_one_class_and_small_sizes_none", equal_mib_are_one_class_and_small_sizes_none},
    {"a_failed_request_counts", a_failed_request_counts},
    {"the_spread_has_both_ends_and_rises", the_spread_has_both_ends_and_rises},
    {"few_sizes_are_all_chosen", few_sizes_are_all_chosen},
    {"intervals_come_by_falling_bytes", intervals_come_by_falling_bytes},
};
CHECK_MAIN(TESTS)
