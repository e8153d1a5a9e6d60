/* SPDX-License-Identifier: MIT */
#include "core/workers.h"

#include <pthread.h>

#include "core/status.h"
#include "support/check.h"

enum { JOBS = 500 };

typedef struct board {
    atomic_uint runs[JOBS];
    uint64_t fail_from; /* jobs from here on fail */
    pthread_t caller;
    bool told_elsewhere;
    uint64_t told_last;
    uint64_t tells;
    uint64_t cancel_after; /* tells; 0: never */
} board;

static allot_status job(void *context, uint64_t index, const atomic_bool *is_ended)
{
    (void)is_ended;
    board *const b = context;
    atomic_fetch_add(&b->runs[index], 1);
    return index >= b->fail_from
               ? alloti_fail(ALLOT_STATUS_BUSY, "job %llu", (unsigned long long)index)
               : ALLOT_STATUS_OK;
}

static bool told(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage;
    board *const b = context;
    b->told_elsewhere = b->told_elsewhere || pthread_equal(pthread_self(), b->caller) == 0;
    CHECK(done <= total);
    CHECK(done >= b->told_last);
    b->told_last = done;
    b->tells++;
    return b->cancel_after == 0 || b->tells < b->cancel_after;
}

static void every_job_runs_once_with_any_number_of_threads(void)
{
    for (uint32_t threads = 0; threads <= 7; threads++) {
        static board b;
        b = (board){.fail_from = UINT64_MAX, .caller = pthread_self()};
        alloti_workers workers = {.thread_count = threads,
                                  .total = JOBS,
                                  .progress = {.report = told, .context = &b, .stage = "x"}};
        CHECK_OK(alloti_workers_run(&workers, JOBS, job, &b));
        for (int i = 0; i < JOBS; i++) {
            CHECK_EQ(atomic_load(&b.runs[i]), 1);
        }
        CHECK(!b.told_elsewhere);
        CHECK_EQ(workers.done, JOBS);
    }
}

static void a_call_after_a_failed_one_runs_its_jobs(void)
{
    static board b;
    b = (board){.fail_from = 0};
    alloti_workers workers = {.thread_count = 2};
    CHECK_EQ(alloti_workers_run(&workers, 3, job, &b), ALLOT_STATUS_BUSY);
    b = (board){.fail_from = UINT64_MAX};
    CHECK_OK(alloti_workers_run(&workers, 3, job, &b));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(atomic_load(&b.runs[i]), 1);
    }
}

static void the_first_failure_comes_back_with_its_text(void)
{
    static board b;
    b = (board){.fail_from = 0};
    alloti_workers workers = {.thread_count = 1};
    CHECK_EQ(alloti_workers_run(&workers, JOBS, job, &b), ALLOT_STATUS_BUSY);
    CHECK_STR(allot_error_detail(), "job 0");
    CHECK_EQ(atomic_load(&b.runs[1]), 0);
}

/** Runs until the others want it no more. */
static allot_status endless(void *context, uint64_t index, const atomic_bool *is_ended)
{
    (void)context;
    (void)index;
    while (!atomic_load_explicit(is_ended, memory_order_relaxed)) {
    }
    return alloti_fail(ALLOT_STATUS_CANCELLED, "a replay was cancelled");
}

static void cancelling_ends_running_jobs(void)
{
    static board b;
    b = (board){.caller = pthread_self(), .cancel_after = 2};
    alloti_workers workers = {.thread_count = 2,
                              .progress = {.report = told, .context = &b, .stage = "x"}};
    CHECK_EQ(alloti_workers_run(&workers, 2, endless, &b), ALLOT_STATUS_CANCELLED);
    CHECK_EQ(b.tells, 2);
}

static void no_jobs_need_no_threads(void)
{
    alloti_workers workers = {.thread_count = 1};
    CHECK_OK(alloti_workers_run(&workers, 0, job, NULL));
}

static const check_test TESTS[] = {
    {"every_job_runs_once_with_any_number_of_threads",
     every_job_runs_once_with_any_number_of_threads},
    {"a_call_after_a_failed_one_runs_its_jobs", a_call_after_a_failed_one_runs_its_jobs},
    {"the_first_failure_comes_back_with_its_text", the_first_failure_comes_back_with_its_text},
    {"cancelling_ends_running_jobs", cancelling_ends_running_jobs},
    {"no_jobs_need_no_threads", no_jobs_need_no_threads},
};
CHECK_MAIN(TESTS)
