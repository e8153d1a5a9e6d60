/* SPDX-License-Identifier: MIT */
/* Options from programs that were built with an older or a newer header. */
#include "core/options.h"

#include <allot/advise.h>
#include <allot/compare.h>
#include <allot/html.h>
#include <allot/replay.h>
#include <allot/report.h>
#include <allot/torchsim.h>
#include <string.h>

#include "support/check.h"
#include "support/trace_maker.h"

typedef struct settings {
    size_t struct_size;
    uint64_t first;
    uint64_t second;
} settings;

typedef struct settings_newer {
    settings known;
    uint64_t third;
} settings_newer;

static void no_options_are_all_zero(void)
{
    settings out = {.first = 7, .second = 7};
    CHECK_OK(alloti_options_take(NULL, sizeof out, &out));
    CHECK_EQ(out.struct_size, sizeof out);
    CHECK_EQ(out.first, 0);
    CHECK_EQ(out.second, 0);
}

static void an_older_struct_leaves_the_rest_zero(void)
{
    /* What lies behind the struct of that caller is none of the library's business. */
    const settings given = {.struct_size = offsetof(settings, second), .first = 5, .second = 6};
    settings out = {.second = 7};
    CHECK_OK(alloti_options_take(&given, sizeof out, &out));
    CHECK_EQ(out.struct_size, sizeof out);
    CHECK_EQ(out.first, 5);
    CHECK_EQ(out.second, 0);
}

static void a_newer_struct_may_add_zeros_only(void)
{
    settings_newer given = {.known = {.struct_size = sizeof given, .first = 5, .second = 6}};
    settings out = {0};
    CHECK_OK(alloti_options_take(&given, sizeof out, &out));
    CHECK_EQ(out.struct_size, sizeof out);
    CHECK_EQ(out.second, 6);
    given.third = 1;
    out.first = 9;
    CHECK_EQ(alloti_options_take(&given, sizeof out, &out), ALLOT_STATUS_UNSUPPORTED);
    CHECK_EQ(out.first, 9);
}

static void a_size_that_was_not_set_is_refused(void)
{
    settings given = {.first = 5};
    settings out = {.first = 9};
    CHECK_EQ(alloti_options_take(&given, sizeof out, &out), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "struct_size is 0");
    given.struct_size = SIZE_MAX;
    CHECK_EQ(alloti_options_take(&given, sizeof out, &out), ALLOT_STATUS_INVALID);
    CHECK_EQ(out.first, 9);
}

static allot_status ignore(void *context, const void *data, size_t size)
{
    (void)context, (void)data, (void)size;
    return ALLOT_STATUS_OK;
}

/* Every call that takes options asks for their size. */
static void every_call_refuses_options_without_a_size(void)
{
    trace_maker m = maker_begin();
    maker_segment(&m, MAKER_BASE, 2 * MIB, 512);
    maker_block(&m, MAKER_BASE, 512, 512, ALLOT_BLOCK_ALLOCATED);
    maker_block(&m, MAKER_BASE + 512, 2 * MIB - 512, 0, ALLOT_BLOCK_INACTIVE);
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 2 * MIB);
    maker_alloc(&m, MAKER_BASE, 512);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    REQUIRE(history != NULL);
    const allot_sink sink = {.write = ignore};
    allot_lines *lines = NULL;
    allot_requests *requests = NULL;
    allot_torchsim *sim = NULL;
    REQUIRE_OK(allot_lines_create(trace, NULL, &lines));
    REQUIRE_OK(allot_requests_create(trace, 0, &requests, NULL));
    REQUIRE_OK(allot_torchsim_create(NULL, &sim));

    allot_trace *no_trace = NULL;
    allot_history *no_history = NULL;
    allot_lines *no_lines = NULL;
    allot_leaks no_leaks;
    allot_diff no_diff;
    allot_advice *no_advice = NULL;
    allot_replay_check_result no_check;
    allot_replay_result *no_result = NULL;
    allot_torchsim *no_sim = NULL;
    uint32_t no_pool = 0;
    const allot_report_options report = {.width = 80};
    const allot_status got[] = {
        allot_trace_read("x", &(allot_trace_read_options){0}, &no_trace),
        allot_trace_read_memory("[]", 2, "x", &(allot_trace_read_options){0}, &no_trace),
        allot_trace_write(trace, ALLOT_TRACE_FORMAT_CSV, &(allot_trace_write_options){0}, &sink),
        allot_history_create(trace, 0, &(allot_history_options){0}, &no_history),
        allot_lines_create(trace, &(allot_lines_options){0}, &no_lines),
        allot_leaks_init(history, lines, &(allot_leaks_options){0}, &no_leaks),
        allot_diff_init(history, history, &(allot_diff_options){0}, &no_diff),
        allot_advise(trace, 0, &(allot_advise_options){0}, &no_advice),
        allot_replay_check(requests, &(allot_replay_check_options){0}, &no_check),
        allot_replay_run(requests, &(allot_replay_options){0}, &no_result),
        allot_torchsim_create(&(allot_torchsim_options){0}, &no_sim),
        allot_torchsim_pool_create(sim, &(allot_torch_pool_options){0}, &no_pool),
        allot_report_inspect(trace, 0, &report, &sink),
        allot_report_explain(history, 0, ALLOT_GROUP_LINE, &report, &sink, NULL),
        allot_html_inspect(history, &(allot_html_options){0}, &sink),
        allot_html_explain(history, 0, &(allot_html_options){0}, &sink),
    };
    for (size_t i = 0; i < sizeof got / sizeof got[0]; i++) {
        CHECK_EQ(got[i], ALLOT_STATUS_INVALID);
    }
    allot_torchsim_destroy(sim);
    allot_requests_destroy(requests);
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

static const check_test TESTS[] = {
    {"no_options_are_all_zero", no_options_are_all_zero},
    {"an_older_struct_leaves_the_rest_zero", an_older_struct_leaves_the_rest_zero},
    {"a_newer_struct_may_add_zeros_only", a_newer_struct_may_add_zeros_only},
    {"a_size_that_was_not_set_is_refused", a_size_that_was_not_set_is_refused},
    {"every_call_refuses_options_without_a_size", every_call_refuses_options_without_a_size},
};
CHECK_MAIN(TESTS)
