/* SPDX-License-Identifier: MIT */
/* torch.profiler's memory timelines. */
#include <string.h>

#include "support/check.h"
#include "support/read_text.h"

#define TIMELINE ALLOT_TRACE_FORMAT_TIMELINE

static void actions_become_events_of_their_category(void)
{
    allot_trace *const trace = read_text("[[-1, 1, 1000, 6], [50, 2, 512, 0],\n"
                                         " [60, 3, -512, 0], [60, 3, 512, 4], [70, 4, -512, 4]]",
                                         TIMELINE);
    REQUIRE(trace != NULL);
    const allot_events e = read_events(trace, 0);
    REQUIRE(e.count == 5);
    CHECK_EQ(e.time_ns[0], ALLOT_TIME_NONE);
    CHECK_EQ(e.category[0], ALLOT_CATEGORY_PARAMETER);
    CHECK_EQ(e.kind[1], ALLOT_EVENT_ALLOC);
    CHECK_EQ(e.time_ns[1], 50);
    CHECK_EQ(e.category[1], ALLOT_CATEGORY_UNKNOWN);
    CHECK_EQ(e.kind[2], ALLOT_EVENT_FREE_COMPLETED);
    CHECK_EQ(e.category[2], ALLOT_CATEGORY_UNKNOWN);
    CHECK_EQ(e.kind[3], ALLOT_EVENT_ALLOC);
    CHECK_EQ(e.category[3], ALLOT_CATEGORY_GRADIENT);
    CHECK_EQ(e.kind[4], ALLOT_EVENT_FREE_COMPLETED);
    CHECK_EQ(sum_events(&e), 1000);
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_CATEGORIES));
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_ADDRESSES));
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_REQUESTED));
    allot_trace_destroy(trace);
}

static void errors_name_the_byte(void)
{
    check_refused("[]", TIMELINE, "byte 2: the timeline has no rows");
    check_refused("{}", TIMELINE, "byte 1: a list of rows was expected");
    check_refused("[[1, 2, 3]]", TIMELINE, "byte 10: a row [time, action 1 to 4, bytes");
    check_refused("[[1, 5, 3, 0]]", TIMELINE, "byte 13: a row");
    check_refused("[[1, 2, -3, 0]]", TIMELINE, "byte 14: a row");
    check_refused("[[1, 4, 3, 0]]", TIMELINE, "byte 13: a row");
    check_refused("[[1, 2, 3, 8]]", TIMELINE, "category 0 to 7");
    check_refused("[[1, 2, 3, 4, 5]]", TIMELINE, "export to a name that ends in .raw.json.gz");
    check_refused("[[1, 2, 0.5, 4]]", TIMELINE, "byte 11: \"\" must be a whole number");
    check_refused("[[1, 2, 3, 4]", TIMELINE, "byte 13: the file ends inside the JSON text");
}

static void a_recorded_timeline_adds_up(void)
{
    const char *const path = check_data("snapshots/t2_memory_timeline.raw.gz");
    if (path == NULL) {
        check_skip("the shared data is not there");
        return;
    }
    allot_trace *trace = NULL;
    REQUIRE_OK(allot_trace_read(path, NULL, &trace));
    const allot_events e = read_events(trace, 0);
    CHECK_EQ(e.count, 16845);
    CHECK_EQ(sum_events(&e), 332060904);
    uint64_t parameters = 0;
    for (uint64_t i = 0; i < e.count; i++) {
        parameters += e.category[i] == ALLOT_CATEGORY_PARAMETER;
    }
    CHECK_EQ(parameters, 805 + 770 + 725);
    allot_trace_destroy(trace);
}

static const check_test TESTS[] = {
    {"actions_become_events_of_their_category", actions_become_events_of_their_category},
    {"errors_name_the_byte", errors_name_the_byte},
    {"a_recorded_timeline_adds_up", a_recorded_timeline_adds_up},
};
CHECK_MAIN(TESTS)
