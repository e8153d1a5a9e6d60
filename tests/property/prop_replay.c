/* SPDX-License-Identifier: MIT */
/* What the model did, written down as a trace, is what a check of that trace finds: whole traces,
 * traces that begin in the middle, with and without the limit. */
#include <allot/replay.h>

#include "support/check.h"
#include "support/torch_program.h"

#include <stdio.h>

enum { PROGRAM_COUNT = 150 };

static void print_program(const torch_program *program, uint32_t dropped)
{
    char text[ALLOT_TORCH_CONF_TEXT_MAX];
    printf("  seed %llu ops %u streams %u pools %u shares %d empties %d size_max %llu limit %llu "
           "fraction %g conf \"%s\" dropped %u\n",
           (unsigned long long)program->seed, program->operation_count, program->stream_count,
           program->pool_count, program->shares, program->empties,
           (unsigned long long)program->size_max, (unsigned long long)program->limit,
           program->fraction, allot_torch_conf_format(&program->conf, text), dropped);
}

/**
 * Record, then check; with_limit: the check is told the limit and the fraction. A difference is
 * allowed where the events leave the size of a block open; `unsure` counts those.
 */
static bool is_equal(const torch_program *program, uint32_t dropped, bool with_limit, int *unsure)
{
    allot_trace *trace = torch_program_record(program, dropped);
    if (trace == NULL) {
        return false;
    }
    allot_requests *requests = NULL;
    bool equal = CHECK_OK(allot_requests_create(trace, ALLOT_NONE, &requests, NULL));
    if (equal) {
        const allot_replay_check_options options = {.struct_size = sizeof(options),
                                                    .limit = with_limit ? program->limit : 0,
                                                    .fraction = with_limit ? program->fraction : 0};
        allot_replay_check_result result;
        allot_requests_info info;
        allot_requests_get_info(requests, &info);
        const allot_status status = allot_replay_check(requests, &options, &result);
        if (status == ALLOT_STATUS_MISMATCH && info.unsure_count > 0) {
            ++*unsure;
        } else {
            equal = CHECK_OK(status);
        }
    }
    allot_requests_destroy(requests);
    allot_trace_destroy(trace);
    if (!equal) {
        print_program(program, dropped);
    }
    return equal;
}

static void a_whole_trace_is_equal_under_its_limit(void)
{
    uint64_t state = check_seed();
    int unsure = 0;
    for (int i = 0; i < PROGRAM_COUNT; i++) {
        const torch_program program = torch_program_random(&state);
        REQUIRE(is_equal(&program, 0, true, &unsure));
    }
    CHECK_EQ(unsure, 0);
}

static void a_whole_trace_is_equal_with_the_refusals_it_shows(void)
{
    uint64_t state = check_seed() + 1;
    int unsure = 0;
    for (int i = 0; i < PROGRAM_COUNT; i++) {
        torch_program program = torch_program_random(&state);
        /* What a fraction refuses never reaches the driver, and the check is not told of it here.
         */
        program.conf.garbage_collection_threshold = 0;
        program.fraction = 0;
        REQUIRE(is_equal(&program, 0, false, &unsure));
    }
    CHECK_EQ(unsure, 0);
}

static void a_trace_that_begins_in_the_middle_is_equal(void)
{
    uint64_t state = check_seed() + 2;
    int unsure = 0;
    for (int i = 0; i < PROGRAM_COUNT; i++) {
        torch_program program = torch_program_random(&state);
        /* The ages of blocks cached before the trace are unknown. */
        program.conf.garbage_collection_threshold = 0;
        if (program.conf.expandable_segments) {
            /* Where a range begins is unknown if its first pages are not mapped: unmap nothing. */
            program.limit = 64ull << 30;
            program.fraction = 0;
            program.empties = false;
        }
        REQUIRE(is_equal(&program, ALLOT_NONE, true, &unsure));
    }
    CHECK(unsure < PROGRAM_COUNT / 10);
}

static const check_test TESTS[] = {
    {"a_whole_trace_is_equal_under_its_limit", a_whole_trace_is_equal_under_its_limit},
    {"a_whole_trace_is_equal_with_the_refusals_it_shows",
     a_whole_trace_is_equal_with_the_refusals_it_shows},
    {"a_trace_that_begins_in_the_middle_is_equal", a_trace_that_begins_in_the_middle_is_equal},
};
CHECK_MAIN(TESTS)
