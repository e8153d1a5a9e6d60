/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "support/check.h"
#include "support/read_text.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream\n"
#define RMM ALLOT_TRACE_FORMAT_RMM_CSV

static const int64_t HOUR_NS = INT64_C(3600000000000);

static void a_log_with_a_header_is_read(void)
{
    allot_trace *const trace = read_text(HEADER "4711,10:00:00.000001,allocate,0x7f00,1000,0\n"
                                                "4711,10:00:00.500000,allocate,0x7F40,24,0x1\r\n"
                                                "4712,10:00:01.000000,free,0x7f00,1000,7fee10\n",
                                         RMM);
    REQUIRE(trace != NULL);
    const allot_events e = read_events(trace, 0);
    REQUIRE(e.count == 3);
    CHECK_EQ(allot_trace_get_device(trace, 0)->memory, ALLOT_MEMORY_DEVICE);
    CHECK_EQ(e.kind[0], ALLOT_EVENT_ALLOC);
    CHECK_EQ(e.addr[0], 0x7f00);
    CHECK_EQ(e.size[0], 1000);
    CHECK_EQ(e.time_ns[0], 10 * HOUR_NS + 1000);
    CHECK_EQ(e.addr[1], 0x7f40);
    CHECK_EQ(e.time_ns[1], 10 * HOUR_NS + 500000000);
    CHECK_EQ(allot_trace_stream(trace, e.stream[1]), 1);
    CHECK_EQ(e.kind[2], ALLOT_EVENT_FREE_COMPLETED);
    CHECK_EQ(allot_trace_stream(trace, e.stream[2]), 0x7fee10);
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_ADDRESSES));
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_REQUESTED));
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_TIMES));
    allot_trace_destroy(trace);
}

static void rows_are_found_among_other_output(void)
{
    allot_trace *const trace =
        read_text("23/01/01 10:00:00 INFO Executor: starting, with, some, commas, here\n"
                  "17,10:00:00.000001,allocate,0x100,64,0x0\n"
                  "\n"
                  "INFO gpu 18,10:00:00:000002,deallocate,0x100,64,0x0\n"
                  "bye\n",
                  RMM);
    REQUIRE(trace != NULL);
    const allot_events e = read_events(trace, 0);
    REQUIRE(e.count == 2);
    CHECK_EQ(e.kind[1], ALLOT_EVENT_FREE_COMPLETED);
    CHECK_EQ(e.time_ns[1], 10 * HOUR_NS + 2000);
    allot_trace_destroy(trace);
}

static void a_failure_is_an_out_of_memory(void)
{
    allot_trace *const trace = read_text(HEADER "1,10:00:00.0,allocate failure,(nil),4096,0x0\n"
                                                "1,10:00:00.1,allocate failure,0x0,8192,0x0\n",
                                         RMM);
    REQUIRE(trace != NULL);
    const allot_events e = read_events(trace, 0);
    REQUIRE(e.count == 2);
    CHECK_EQ(e.kind[0], ALLOT_EVENT_OOM);
    CHECK_EQ(e.addr[0], 0);
    CHECK_EQ(e.size[0], 4096);
    CHECK_EQ(e.kind[1], ALLOT_EVENT_OOM);
    allot_trace_destroy(trace);
}

static void the_clock_passes_midnight(void)
{
    allot_trace *const trace = read_text(HEADER "1,23:59:59.900000,allocate,0x1,1,0\n"
                                                "1,00:00:00.100000,allocate,0x2,1,0\n"
                                                "2,23:59:59.950000,allocate,0x3,1,0\n"
                                                "1,00:00:00.200000,allocate,0x4,1,0\n"
                                                "1,23:00:00.000000,free,0x4,1,0\n"
                                                "1,01:00:00.000000,free,0x3,1,0\n",
                                         RMM);
    REQUIRE(trace != NULL);
    const allot_events e = read_events(trace, 0);
    REQUIRE(e.count == 6);
    CHECK_EQ(e.time_ns[1], 24 * HOUR_NS + 100000000);
    CHECK_EQ(e.time_ns[2], 24 * HOUR_NS - 50000000); /* written late by another thread */
    CHECK_EQ(e.time_ns[3], 24 * HOUR_NS + 200000000);
    CHECK_EQ(e.time_ns[5] % (24 * HOUR_NS), HOUR_NS);
    CHECK(e.time_ns[5] > e.time_ns[3]);
    allot_trace_destroy(trace);
}

static void times_since_the_epoch_come_in_any_unit(void)
{
    allot_trace *const trace = read_text(HEADER "1,1700000000.25,allocate,0x1,1,0\n"
                                                "1,1700000000250,allocate,0x2,1,0\n"
                                                "1,1700000000250000,allocate,0x3,1,0\n"
                                                "1,1700000000250000000,allocate,0x4,1,0\n",
                                         RMM);
    REQUIRE(trace != NULL);
    const allot_events e = read_events(trace, 0);
    REQUIRE(e.count == 4);
    for (uint64_t i = 0; i < e.count; i++) {
        CHECK_EQ(e.time_ns[i], INT64_C(1700000000250000000));
    }
    allot_trace_destroy(trace);
}

static void errors_name_the_line(void)
{
    check_refused(HEADER "1,10:00:00.0,allocate,0x1,1\n", RMM, "line 2 (byte 39): a row of six");
    check_refused(HEADER "1,10:00:00.0,grab,0x1,1,0\n", RMM, "unknown action \"grab\"");
    check_refused(HEADER "1,10:61:00.0,free,0x1,1,0\n", RMM, "a time HH:MM:SS.us was expected");
    check_refused(HEADER "1,10:00:00.0,free,xyz,1,0\n", RMM, "pointer or (nil) was expected");
    check_refused(HEADER "1,10:00:00.0,free,0x1,-1,0\n", RMM, "a size in bytes was expected");
    check_refused(HEADER "1,10:00:00.0,free,0x1,1,s\n", RMM, "hexadecimal stream was expected");
    check_refused(HEADER "x,10:00:00.0,free,0x1,1,0\n", RMM, "a thread number was expected");
    check_refused("1,10:00:00.0,free,0x1,1,s\n", RMM, "line 1 (byte 0): a hexadecimal stream");
    check_refused(HEADER, RMM, "line 1: the log holds no allocation");
    check_refused("nothing here\n", RMM, "the log holds no allocation");
}

static const check_test TESTS[] = {
    {"a_log_with_a_header_is_read", a_log_with_a_header_is_read},
    {"rows_are_found_among_other_output", rows_are_found_among_other_output},
    {"a_failure_is_an_out_of_memory", a_failure_is_an_out_of_memory},
    {"the_clock_passes_midnight", the_clock_passes_midnight},
    {"times_since_the_epoch_come_in_any_unit", times_since_the_epoch_come_in_any_unit},
    {"errors_name_the_line", errors_name_the_line},
};
CHECK_MAIN(TESTS)
