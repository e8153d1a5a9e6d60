/* SPDX-License-Identifier: MIT */
/* PyTorch snapshots: what is written is read back the same. */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/sample_trace.h"
#include "support/trace_equal.h"

static void everything_comes_back(void)
{
    allot_trace *const trace = sample_trace(false);
    REQUIRE(trace != NULL);
    allot_trace *const back = trace_round_trip(trace, ALLOT_TRACE_FORMAT_TORCH_PICKLE);
    if (back != NULL) {
        CHECK(trace_equal(trace, back));
    }
    allot_trace_destroy(back);
    allot_trace_destroy(trace);
}

static void categories_come_back_and_totals_are_lost(void)
{
    allot_trace *const trace = sample_trace(true);
    REQUIRE(trace != NULL);
    allot_trace *const back = trace_round_trip(trace, ALLOT_TRACE_FORMAT_TORCH_PICKLE);
    if (back != NULL) {
        allot_events before;
        allot_events after;
        allot_trace_get_events(trace, 0, &before);
        allot_trace_get_events(back, 0, &after);
        CHECK(allot_trace_has(back, ALLOT_TRACE_HAS_CATEGORIES));
        CHECK(!allot_trace_has(back, ALLOT_TRACE_HAS_TOTALS));
        CHECK_EQ(after.count, before.count);
        CHECK(after.category != NULL &&
              memcmp(before.category, after.category, (size_t)before.count) == 0);
    }
    allot_trace_destroy(back);
    allot_trace_destroy(trace);
}

static void a_trace_without_addresses_is_refused(void)
{
    static const char TIMELINE[] = "[[1, 2, 512, 6]]";
    allot_trace *trace = NULL;
    REQUIRE_OK(allot_trace_read_memory(TIMELINE, sizeof TIMELINE - 1, "t", NULL, &trace));
    trace_buffer buffer = {.size = 0};
    const allot_sink sink = trace_buffer_sink(&buffer);
    CHECK_EQ(allot_trace_write(trace, ALLOT_TRACE_FORMAT_TORCH_PICKLE, NULL, &sink),
             ALLOT_STATUS_UNSUPPORTED);
    CHECK_CONTAINS(allot_error_detail(), "addresses");
    CHECK_EQ(buffer.size, 0);
    free(buffer.data);
    allot_trace_destroy(trace);
}

static void the_earliest_time_comes_back(void)
{
    static const char SNAPSHOT[] =
        "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 4096, "
        "\"size\": 512, \"stream\": 0, \"time_us\": -9223372036854775}]]}";
    allot_trace *trace = NULL;
    REQUIRE_OK(allot_trace_read_memory(SNAPSHOT, sizeof SNAPSHOT - 1, "t", NULL, &trace));
    allot_trace *const back = trace_round_trip(trace, ALLOT_TRACE_FORMAT_TORCH_PICKLE);
    if (back != NULL) {
        allot_events events;
        allot_trace_get_events(back, 0, &events);
        CHECK(events.count == 1 && events.time_ns[0] == INT64_C(-9223372036854775000));
    }
    allot_trace_destroy(back);
    allot_trace_destroy(trace);
}

static allot_status refuse(void *context, const void *data, size_t size)
{
    (void)context, (void)data, (void)size;
    return ALLOT_STATUS_IO;
}

static void a_failing_sink_ends_the_writing(void)
{
    const allot_sink sink = {.write = refuse};
    allot_trace *const trace = sample_trace(false);
    REQUIRE(trace != NULL);
    CHECK_EQ(allot_trace_write(trace, ALLOT_TRACE_FORMAT_TORCH_PICKLE, NULL, &sink),
             ALLOT_STATUS_IO);
    allot_trace_destroy(trace);
}

static const check_test TESTS[] = {
    {"everything_comes_back", everything_comes_back},
    {"categories_come_back_and_totals_are_lost", categories_come_back_and_totals_are_lost},
    {"a_trace_without_addresses_is_refused", a_trace_without_addresses_is_refused},
    {"the_earliest_time_comes_back", the_earliest_time_comes_back},
    {"a_failing_sink_ends_the_writing", a_failing_sink_ends_the_writing},
};
CHECK_MAIN(TESTS)
