/* SPDX-License-Identifier: MIT */
/* When a compactor begins by itself: marks, gain, pauses, and the thread. */
#include <allot/compactor.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/compact_scene.h"

#define NS_PER_S UINT64_C(1000000000)

typedef struct fixture {
    scene s;
    allot_compactor *compactor;
} fixture;

static bool open_quarters(fixture *f)
{
    return scene_open_quarters(&f->s) &&
           CHECK_OK(allot_compactor_create(f->s.heap, NULL, &f->compactor));
}

static void close_fixture(fixture *f)
{
    allot_compactor_destroy(f->compactor);
    scene_close(&f->s);
}

static void set(fixture *f, double high, double low, double weight, uint64_t gain_min)
{
    const allot_compactor_policy policy = {.struct_size = sizeof policy,
                                           .fragmentation_high = high,
                                           .fragmentation_low = low,
                                           .weight = weight,
                                           .gain_min = gain_min,
                                           .pause_ns = 3600 * NS_PER_S};
    CHECK_OK(allot_compactor_set_policy(f->compactor, &policy));
}

static uint64_t poll(fixture *f)
{
    uint64_t id = 77;
    CHECK_OK(allot_compactor_poll(f->compactor, &id));
    return id;
}

static double fragmentation(fixture *f)
{
    allot_heap_stats stats = {0};
    CHECK_OK(allot_heap_get_stats(f->s.heap, &stats));
    return stats.fragmentation;
}

static void nothing_begins_without_a_policy(void)
{
    fixture f;
    REQUIRE(open_quarters(&f));
    CHECK_EQ(poll(&f), 0);
    set(&f, 0.1, 0, 0, 0);
    CHECK_OK(allot_compactor_set_policy(f.compactor, NULL));
    CHECK_EQ(poll(&f), 0);
    close_fixture(&f);
}

static void a_task_begins_above_the_mark_and_ends_at_the_lower(void)
{
    fixture f;
    REQUIRE(open_quarters(&f));
    /* 48 free ranges in four segments: the largest is a sixteenth of what is free. */
    CHECK(fragmentation(&f) > 0.9);
    set(&f, 0.99, 0, 0, 0);
    CHECK_EQ(poll(&f), 0);
    set(&f, 0.9, 0.7, 0, 0);
    const uint64_t id = poll(&f);
    CHECK(id != 0);
    CHECK_EQ(poll(&f), 0); /* there is one */
    CHECK_OK(allot_compactor_step(f.compactor, NULL, NULL));
    allot_compactor_task task = {0};
    CHECK_OK(allot_compactor_get_task(f.compactor, id, &task));
    CHECK_EQ(task.state, ALLOT_COMPACTOR_STATE_REACHED);
    CHECK(fragmentation(&f) <= 0.7);
    CHECK(task.moved < 12);
    /* Between the marks nothing begins. */
    CHECK_EQ(poll(&f), 0);
    /* Above it the next one does, at once, as this one had reached its aim. */
    set(&f, fragmentation(&f) / 2, 0, 0, 0);
    CHECK(poll(&f) != 0);
    close_fixture(&f);
}

static void what_does_not_pay_waits(void)
{
    fixture f;
    REQUIRE(open_quarters(&f));
    set(&f, 0.5, 0, 100, 0);
    CHECK_EQ(poll(&f), 0);
    set(&f, 0.5, 0, 0, 4 * SEGMENT);
    CHECK_EQ(poll(&f), 0);
    set(&f, 0.5, 0, 0, SEGMENT);
    CHECK(poll(&f) != 0);
    close_fixture(&f);
}

static void after_a_failure_there_is_a_pause(void)
{
    fixture f;
    REQUIRE(open_quarters(&f));
    set(&f, 0.5, 0, 0, 0);
    const uint64_t id = poll(&f);
    CHECK_OK(allot_compactor_cancel(f.compactor, id));
    CHECK_EQ(poll(&f), 0);
    close_fixture(&f);
}

typedef struct poller {
    fixture *f;
    _Atomic int *waiting;
    uint64_t id;
} poller;

static void *poll_at_once(void *context)
{
    poller *const p = context;
    atomic_fetch_sub(p->waiting, 1);
    while (atomic_load(p->waiting) > 0) {
    }
    CHECK_OK(allot_compactor_poll(p->f->compactor, &p->id));
    return NULL;
}

static void threads_that_poll_at_once_add_one_task(void)
{
    enum { ROUNDS = 100 };
    fixture f;
    REQUIRE(open_quarters(&f));
    for (int round = 0; round < ROUNDS; round++) {
        set(&f, 0.5, 0.4, 0, 0);
        _Atomic int waiting = 2;
        poller pollers[2] = {{.f = &f, .waiting = &waiting}, {.f = &f, .waiting = &waiting}};
        pthread_t other;
        REQUIRE(pthread_create(&other, NULL, poll_at_once, &pollers[1]) == 0);
        (void)poll_at_once(&pollers[0]);
        CHECK_EQ(pthread_join(other, NULL), 0);
        CHECK((pollers[0].id == 0) != (pollers[1].id == 0));
        CHECK_OK(allot_compactor_cancel(f.compactor, pollers[0].id + pollers[1].id));
        /* A look after the end, without a policy: what follows begins anew. */
        CHECK_OK(allot_compactor_set_policy(f.compactor, NULL));
        CHECK_EQ(poll(&f), 0);
    }
    close_fixture(&f);
}

static void wrong_policies_are_refused(void)
{
    const allot_compactor_policy wrong[] = {
        {.struct_size = sizeof wrong[0], .fragmentation_high = 1.5},
        {.struct_size = sizeof wrong[0], .fragmentation_high = -0.5},
        {.struct_size = sizeof wrong[0], .fragmentation_high = 0.5, .fragmentation_low = 0.6},
        {.struct_size = sizeof wrong[0], .fragmentation_high = 0.5, .weight = -1},
    };
    fixture f;
    REQUIRE(open_quarters(&f));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(allot_compactor_set_policy(f.compactor, &wrong[i]), ALLOT_STATUS_INVALID);
    }
    close_fixture(&f);
}

/* ---- in the background ---- */

static void wait_a_while(void)
{
    const struct timespec time = {.tv_nsec = 2000000};
    (void)nanosleep(&time, NULL);
}

static void an_idle_heap_is_compacted(void)
{
    const allot_compactor_thread_options options = {.struct_size = sizeof options,
                                                    .idle_ns = 1000000};
    fixture f;
    REQUIRE(open_quarters(&f));
    set(&f, 0.8, 0.7, 0, 0);
    CHECK_OK(allot_compactor_start(f.compactor, &options));
    CHECK_EQ(allot_compactor_start(f.compactor, &options), ALLOT_STATUS_BUSY);
    for (int i = 0; i < 5000 && fragmentation(&f) > 0.7; i++) {
        wait_a_while();
    }
    CHECK(fragmentation(&f) <= 0.7);
    allot_compactor_stop(f.compactor);
    allot_compactor_stop(f.compactor);
    CHECK_OK(allot_compactor_start(f.compactor, NULL));
    close_fixture(&f); /* stops it */
}

/** A task, and a thread that begins it after an hour without a call; the task's number. */
static uint64_t start_patient(fixture *f)
{
    const allot_compactor_thread_options options = {.struct_size = sizeof options,
                                                    .idle_ns = 3600 * NS_PER_S};
    const allot_compactor_task_options full = {.struct_size = sizeof full};
    uint64_t id = 0;
    CHECK_OK(allot_compactor_add(f->compactor, &full, &id));
    CHECK_OK(allot_compactor_start(f->compactor, &options));
    return id;
}

static void a_busy_heap_is_left_alone(void)
{
    fixture f;
    REQUIRE(open_quarters(&f));
    const uint64_t id = start_patient(&f);
    wait_a_while();
    allot_compactor_task task = {0};
    CHECK_OK(allot_compactor_get_task(f.compactor, id, &task));
    CHECK_EQ(task.state, ALLOT_COMPACTOR_STATE_QUEUED);
    close_fixture(&f);
}

/** Calls that did not say that there was a fork; the compactor is destroyed. */
static int be_child(fixture *f, uint64_t id)
{
    const allot_compactor_task_options full = {.struct_size = sizeof full};
    allot_compactor_task task;
    uint64_t added = 0;
    const allot_status answers[] = {
        allot_compactor_add(f->compactor, &full, &added),
        allot_compactor_cancel(f->compactor, id),
        allot_compactor_get_task(f->compactor, id, &task),
        allot_compactor_set_policy(f->compactor, NULL),
        allot_compactor_poll(f->compactor, NULL),
        allot_compactor_step(f->compactor, NULL, NULL),
        allot_compactor_start(f->compactor, NULL),
    };
    int others = 0;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        others += answers[i] != ALLOT_STATUS_FORKED;
    }
    allot_compactor_pause(f->compactor);
    allot_compactor_stop(f->compactor);
    allot_compactor_destroy(f->compactor);
    return others;
}

/** The child of a fork waits for no thread, which it does not have. */
static void a_child_is_told_and_the_thread_goes_on(void)
{
    enum { PATIENCE_S = 20 };
    fixture f;
    REQUIRE(open_quarters(&f));
    const uint64_t id = start_patient(&f);
    wait_a_while(); /* it sleeps by now */
    fflush(stdout);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        (void)alarm(PATIENCE_S);
        _exit(be_child(&f, id));
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    CHECK_OK(allot_compactor_step(f.compactor, NULL, NULL));
    close_fixture(&f);
}

static const check_test tests[] = {
    {"nothing_begins_without_a_policy", nothing_begins_without_a_policy},
    {"a_task_begins_above_the_mark_and_ends_at_the_lower",
     a_task_begins_above_the_mark_and_ends_at_the_lower},
    {"what_does_not_pay_waits", what_does_not_pay_waits},
    {"after_a_failure_there_is_a_pause", after_a_failure_there_is_a_pause},
    {"threads_that_poll_at_once_add_one_task", threads_that_poll_at_once_add_one_task},
    {"wrong_policies_are_refused", wrong_policies_are_refused},
    {"an_idle_heap_is_compacted", an_idle_heap_is_compacted},
    {"a_busy_heap_is_left_alone", a_busy_heap_is_left_alone},
    {"a_child_is_told_and_the_thread_goes_on", a_child_is_told_and_the_thread_goes_on},
};

CHECK_MAIN(tests)
