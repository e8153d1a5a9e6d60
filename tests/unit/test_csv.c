/* SPDX-License-Identifier: MIT */
/* Events as CSV: what it can hold comes back exactly; errors name the line. */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/sample_trace.h"
#include "support/trace_equal.h"

/* Only device 0 of the sample has events; CSV knows no other. */
static void check_events(const allot_trace *trace, const allot_trace *back)
{
    allot_events a;
    allot_events b;
    CHECK_EQ(allot_trace_device_count(back), 1);
    allot_trace_get_events(trace, 0, &a);
    allot_trace_get_events(back, 0, &b);
    CHECK_EQ(a.count, b.count);
    for (uint64_t i = 0; i < a.count; i++) {
        CHECK_EQ(a.kind[i], b.kind[i]);
        CHECK_EQ(a.addr[i], b.addr[i]);
        CHECK_EQ(a.size[i], b.size[i]);
        CHECK_EQ(a.time_ns[i], b.time_ns[i]);
    }
}

static void awkward_texts_come_back(void)
{
    allot_trace *const trace = sample_trace(true);
    REQUIRE(trace != NULL);
    allot_trace *const back = trace_round_trip(trace, ALLOT_TRACE_FORMAT_CSV);
    REQUIRE(back != NULL);
    check_events(trace, back);
    /* Once the empty device is gone, a second round must change nothing at all. */
    allot_trace *const again = trace_round_trip(back, ALLOT_TRACE_FORMAT_CSV);
    if (again != NULL) {
        CHECK(trace_equal(back, again));
    }
    allot_events events;
    allot_trace_get_events(back, 0, &events);
    CHECK_STR(allot_trace_string(back, events.metadata[2], NULL), "kept, \"so\"\nlong");
    CHECK_STR(allot_trace_string(back, events.metadata[3], NULL), "");
    CHECK_EQ(events.metadata[4], ALLOT_NONE);
    uint32_t count = 0;
    const uint32_t *const frames = allot_trace_stack(back, events.stack[0], &count);
    REQUIRE(count == 2);
    CHECK_STR(allot_trace_string(back, allot_trace_frame(back, frames[0])->filename, NULL),
              "C:\\model\\net.py");
    CHECK_STR(allot_trace_string(back, allot_trace_frame(back, frames[1])->name, NULL),
              "main; \"quoted\", |odd|");
    allot_trace_stack(back, events.stack[3], &count);
    CHECK(count == 0 && events.stack[3] != ALLOT_NONE);
    allot_trace_destroy(again);
    allot_trace_destroy(back);
    allot_trace_destroy(trace);
}

static void recorded_events_come_back(void)
{
    const char *const path = check_data("oracle/finetune_11gib_oom.pickle.gz");
    if (path == NULL) {
        check_skip("the shared data is not there");
        return;
    }
    allot_trace *trace = NULL;
    REQUIRE_OK(allot_trace_read(path, NULL, &trace));
    allot_trace *const back = trace_round_trip(trace, ALLOT_TRACE_FORMAT_CSV);
    if (back != NULL) {
        CHECK(trace_events_equal(trace, back, false));
    }
    allot_trace_destroy(back);
    allot_trace_destroy(trace);
}

static allot_status read_text(const char *text, allot_trace **trace)
{
    const allot_trace_read_options options = {.struct_size = sizeof options,
                                              .format = ALLOT_TRACE_FORMAT_CSV};
    return allot_trace_read_memory(text, strlen(text), "t.csv", &options, trace);
}

static void columns_may_stand_in_any_order(void)
{
    allot_trace *trace = NULL;
    REQUIRE_OK(read_text("stream,event,size_rounded,device\r\n"
                         "7,alloc,512,cpu:3\r\n"
                         "7,free_completed,512,cpu:3",
                         &trace));
    CHECK_EQ(allot_trace_get_device(trace, 0)->memory, ALLOT_MEMORY_CPU);
    CHECK_EQ(allot_trace_get_device(trace, 0)->index, 3);
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_ADDRESSES));
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_REQUESTED));
    allot_events events;
    allot_trace_get_events(trace, 0, &events);
    CHECK_EQ(events.count, 2);
    CHECK_EQ(allot_trace_stream(trace, events.stream[1]), 7);
    allot_trace_destroy(trace);
}

static void check_refused(const char *text, const char *message)
{
    allot_trace *trace = NULL;
    CHECK_EQ(read_text(text, &trace), ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), "t.csv: line ");
    CHECK_CONTAINS(allot_error_detail(), message);
}

#define HEADER "device,event,size_requested,stream,pool,stack\n"

static void errors_name_the_line(void)
{
    check_refused("device,event,stream\n", "line 1 (byte 0): the columns");
    check_refused("device,event,shape\n", "\"shape\" is unknown");
    check_refused("device,event,device\n", "\"device\" is unknown or stands there twice");
    check_refused(HEADER, "the table has no rows");
    check_refused(HEADER "gpu:0,alloc,1,0,\n", "line 2 (byte 46): 6 fields were expected");
    check_refused(HEADER "gpu:0,alloc,1,0,,\ngpu:0,malloc,1,0,,\n", "line 3");
    check_refused(HEADER "gpu0,alloc,1,0,,\n", "gpu:N, pinned:N or cpu:N was expected");
    check_refused(HEADER "gpu:0,alloc,-1,0,,\n", "\"size_requested\": a number");
    check_refused(HEADER "gpu:0,alloc,1,0,5,\n", "two numbers N:M");
    check_refused(HEADER "gpu:0,alloc,1,0,,\"f|x.py\"\n", "name|file|line");
    check_refused(HEADER "gpu:0,alloc,1,0,,\"f|x.py|one\"\n", "a line number");
    check_refused(HEADER "gpu:0,alloc,1,0,,\"f\n", "a quote is not closed");
    check_refused(HEADER "gpu:0,al\"loc,1,0,,\n", "a quote is not closed or stands inside");
}

static const check_test TESTS[] = {
    {"awkward_texts_come_back", awkward_texts_come_back},
    {"recorded_events_come_back", recorded_events_come_back},
    {"columns_may_stand_in_any_order", columns_may_stand_in_any_order},
    {"errors_name_the_line", errors_name_the_line},
};
CHECK_MAIN(TESTS)
