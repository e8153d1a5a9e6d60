/* SPDX-License-Identifier: MIT */
/* A real cuDNN is asked through the helper program: here a double of it with sizes by a formula. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cudnn_convolution.h"
#include "support/standin.h"

enum { MULTIPROCESSORS = 108, NOT_SUPPORTED = 3000, NONDETERMINISTIC = 4 };

static char log_path[] = "/tmp/allot-cudnn-XXXXXX";

static void load(void)
{
    static bool is_loaded;
    if (!is_loaded) {
        is_loaded = true;
        const int file = mkstemp(log_path);
        CHECK(file >= 0);
        close(file);
        setenv("CUDNN_DOUBLE_LOG", log_path, 1);
        /* The helper must not load the stand-in in its place. */
        setenv("LD_LIBRARY_PATH", ALLOT_STANDIN_DIR, 1);
    }
    standin_load("gpu:a100-80,cuda:13,oracle_wait:1,oracle:" CUDNN_DOUBLE);
}

/** How often the double was asked. */
static long questions(void)
{
    struct stat info;
    return stat(log_path, &info) == 0 ? (long)info.st_size : -1;
}

static void its_proposals_reach_the_program(void)
{
    load();
    const convolution_result result = convolve(4);
    const int64_t elements = convolution_elements(4);
    CHECK_EQ(result.status, 0);
    REQUIRE(result.count == 3);
    CHECK_EQ(result.workspace[0], elements + MULTIPROCESSORS);
    CHECK_EQ(result.workspace[1], elements / 2);
    CHECK_EQ(result.plan_status[2], NOT_SUPPORTED);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(result.engine[i], 100 + i);
        CHECK_EQ(result.note_count[i], i == 0 ? 1 : 0);
    }
    CHECK_EQ(result.note[0], NONDETERMINISTIC);
    CHECK_EQ(result.execute_status, 0);
}

static void the_same_question_is_asked_once(void)
{
    load();
    (void)convolve(5);
    const long before = questions();
    CHECK(before > 0);
    CHECK_EQ(convolve(5).workspace[0], convolution_elements(5) + MULTIPROCESSORS);
    CHECK_EQ(questions(), before);
    CHECK_EQ(convolve(6).workspace[0], convolution_elements(6) + MULTIPROCESSORS);
    CHECK_EQ(questions(), before + 1);
}

static void what_it_does_not_support_is_passed_on(void)
{
    load();
    CHECK_EQ(convolve(15).status, NOT_SUPPORTED);
}

/** One engine without a workspace: what is proposed where nothing is known. */
static void check_unknown(int64_t batch)
{
    const convolution_result result = convolve(batch);
    CHECK_EQ(result.status, 0);
    CHECK_EQ(result.count, 1);
    CHECK_EQ(result.plan_status[0], 0);
    CHECK_EQ(result.workspace[0], 0);
    CHECK_EQ(result.execute_status, 0);
}

static void its_own_troubles_are_no_answer(void)
{
    load();
    check_unknown(16);
    CHECK_EQ(convolve(7).workspace[0], convolution_elements(7) + MULTIPROCESSORS);
}

static void the_program_goes_on_when_it_crashes_or_hangs(void)
{
    load();
    check_unknown(13);
    const long before = questions();
    check_unknown(13); /* remembered: it does not crash twice */
    CHECK_EQ(questions(), before);
    CHECK_EQ(convolve(8).workspace[0], convolution_elements(8) + MULTIPROCESSORS);
    check_unknown(14);
    CHECK_EQ(convolve(9).workspace[0], convolution_elements(9) + MULTIPROCESSORS);
    unlink(log_path);
}

static const check_test TESTS[] = {
    {"its_proposals_reach_the_program", its_proposals_reach_the_program},
    {"the_same_question_is_asked_once", the_same_question_is_asked_once},
    {"what_it_does_not_support_is_passed_on", what_it_does_not_support_is_passed_on},
    {"its_own_troubles_are_no_answer", its_own_troubles_are_no_answer},
    {"the_program_goes_on_when_it_crashes_or_hangs", the_program_goes_on_when_it_crashes_or_hangs},
};
CHECK_MAIN(TESTS)
