/* SPDX-License-Identifier: MIT */
/* Every allocation of host memory on the way from a trace to a report may fail. */
#include <allot/report.h>

#include "support/alloc_fault.h"
#include "support/check.h"
#include "support/sample_trace.h"

static allot_status discard(void *context, const void *data, size_t size)
{
    (void)context, (void)data, (void)size;
    return ALLOT_STATUS_OK;
}

static allot_status inspect(void *context)
{
    const allot_sink sink = {.write = discard};
    return allot_report_inspect(context, ALLOT_NONE, NULL, &sink);
}

static allot_status explain(void *context)
{
    const allot_sink sink = {.write = discard};
    allot_history *history = NULL;
    uint32_t event = 0;
    allot_status status = allot_history_create(context, 0, NULL, &history);
    if (status == ALLOT_STATUS_OK) {
        status = allot_history_find(history, "oom", &event);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_report_explain(history, event, ALLOT_GROUP_LINE, NULL, &sink, NULL);
    }
    allot_history_destroy(history);
    return status;
}

static allot_status leaks_and_diff(void *context)
{
    const allot_sink sink = {.write = discard};
    allot_history *history = NULL;
    allot_lines *lines = NULL;
    allot_leaks leaks = {0};
    allot_diff diff = {0};
    allot_status status = allot_history_create(context, 0, NULL, &history);
    if (status == ALLOT_STATUS_OK) {
        status = allot_lines_create(context, NULL, &lines);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_leaks_init(history, lines, NULL, &leaks);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_report_leaks(history, &leaks, lines, NULL, &sink);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_diff_init(history, history, NULL, &diff);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_report_diff(&diff, NULL, &sink);
    }
    allot_diff_fini(&diff);
    allot_leaks_fini(&leaks);
    allot_lines_destroy(lines);
    allot_history_destroy(history);
    return status;
}

static allot_status rank(void *context)
{
    static const char *const NAMES[] = {"0", "1"};
    const allot_sink sink = {.write = discard};
    allot_history *history = NULL;
    allot_ranks ranks = {0};
    allot_status status = allot_history_create(context, 0, NULL, &history);
    if (status == ALLOT_STATUS_OK) {
        const allot_history *const both[] = {history, history};
        status = allot_ranks_init(both, NAMES, 2, &ranks);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_report_ranks(&ranks, NULL, &sink);
    }
    allot_ranks_fini(&ranks);
    allot_history_destroy(history);
    return status;
}

static void every_failure_is_reported_and_forgets_nothing(void)
{
    /* cppcheck-suppress uninitvar ; a misreading: the array is initialised here */
    allot_status (*const attempts[])(void *) = {inspect, explain, leaks_and_diff, rank};
    allot_trace *const trace = sample_trace(true);
    REQUIRE(trace != NULL);
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        CHECK(alloc_fault_each(attempts[i], trace) > 10);
    }
    allot_trace_destroy(trace);
}

static const check_test TESTS[] = {
    {"every_failure_is_reported_and_forgets_nothing",
     every_failure_is_reported_and_forgets_nothing},
};

CHECK_MAIN(TESTS)
