/* SPDX-License-Identifier: MIT */
/*
 * A device that fails at any call: the heap is as before, and the call succeeds when it is made
 * again. Each step of the scene is played with its first call of the device failing, then its
 * second, and so on until no failure takes place. A step that gets by in spite of a failure ends
 * that play; the next one begins anew, one call further.
 */
#include <stdio.h>

#include "scene.h"
#include "support/check.h"

#define ALL_CALLS UINT64_MAX

/** What fails. */
typedef struct plan {
    scene_setting setting;
    uint64_t call_mask;
    allot_status status;
} plan;

static allot_failing_options options_of(const plan *p, uint64_t nth)
{
    return (allot_failing_options){.struct_size = sizeof(allot_failing_options),
                                   .nth = nth,
                                   .call_mask = p->call_mask,
                                   .status = p->status,
                                   .event_delay = p->setting.event_delay,
                                   .seed = p->setting.seed};
}

static void arm(const scene *s, const plan *p, uint64_t nth)
{
    const allot_failing_options options = options_of(p, nth);
    CHECK_OK(allot_failing_arm(s->device, &options));
}

static bool play(scene *s, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        if (!CHECK_OK(SCENE_STEPS[i].run(s))) {
            printf("in step %s\n", SCENE_STEPS[i].name);
            return false;
        }
    }
    return true;
}

/** What comes after a failure that a step got by: where its block lies elsewhere, one that was made
 * to fit may not. */
static void play_rest(scene *s, size_t first)
{
    for (size_t i = first; i < SCENE_STEP_COUNT; i++) {
        const allot_status status = SCENE_STEPS[i].run(s);
        if (status != ALLOT_STATUS_BUDGET && status != ALLOT_STATUS_FRAGMENTED) {
            CHECK_OK(status);
        }
    }
}

/** Fail a step at call *nth, *nth + 1 ... until it succeeds; whether a call of it failed then. */
static bool fail_step(scene *s, const plan *p, const scene_step *step, uint64_t *nth)
{
    for (;; (*nth)++) {
        scene_snapshot before;
        scene_snapshot after;
        scene_take(s, &before);
        arm(s, p, *nth);
        const allot_status status = step->run(s);
        const bool is_hit = allot_failing_failed_count(s->device) != 0;
        arm(s, p, 0);
        if (status == ALLOT_STATUS_OK) {
            scene_verify(s);
            return is_hit;
        }
        bool is_right = CHECK(is_hit);
        scene_take(s, &after);
        scene_compare(&before, &after, step->leaves);
        scene_verify(s);
        if (!is_right) {
            return false;
        }
    }
}

/** Play the scene with every call of one step failing in turn. */
static void fail_each_call_of(const plan *p, size_t number)
{
    const scene_step *const step = &SCENE_STEPS[number];
    bool is_hit = true;
    for (uint64_t nth = 1; is_hit; nth++) {
        const int before = check_failures();
        scene s;
        if (!scene_begin(&s, &p->setting)) {
            return;
        }
        is_hit = play(&s, 0, number) && fail_step(&s, p, step, &nth);
        if (check_failures() == before) {
            play_rest(&s, number + 1);
        }
        scene_verify(&s);
        scene_end(&s);
        if (check_failures() != before) {
            printf("step %s, call %llu of mask %llx as status %d\n", step->name,
                   (unsigned long long)nth, (unsigned long long)p->call_mask, (int)p->status);
            return;
        }
    }
}

/** With the first so many kinds of failures. */
static void fail_each_call(plan p, size_t kinds)
{
    static const struct {
        uint64_t call_mask;
        allot_status status;
    } KINDS[] = {
        {ALL_CALLS, ALLOT_STATUS_BACKEND},
        {0, ALLOT_STATUS_OK},
        {ALL_CALLS, ALLOT_STATUS_DEVICE_MEMORY},
        {ALL_CALLS, ALLOT_STATUS_HOST_MEMORY},
    };
    for (size_t i = 0; i < kinds; i++) {
        p.call_mask = KINDS[i].call_mask;
        p.status = KINDS[i].status;
        for (size_t step = 0; step < SCENE_STEP_COUNT; step++) {
            fail_each_call_of(&p, step);
        }
    }
}

static void fail_each_call_in(const char *device, allot_heap_mode mode, size_t kinds)
{
    fail_each_call((plan){.setting = {.device = device, .options = {.mode = mode}}}, kinds);
}

static void segments_of_a_simulated_device_stay_as_they_were(void)
{
    fail_each_call_in("simulated,memory:64MiB,granule:256KiB", ALLOT_HEAP_MODE_SEGMENTS, 4);
}

static void granules_of_a_simulated_device_stay_as_they_were(void)
{
    fail_each_call_in("simulated,memory:64MiB,granule:256KiB", ALLOT_HEAP_MODE_VIRTUAL, 4);
}

static void segments_of_the_host_stay_as_they_were(void)
{
    fail_each_call_in("host,memory:64MiB,granule:256KiB", ALLOT_HEAP_MODE_SEGMENTS, 2);
}

static void granules_of_the_host_stay_as_they_were(void)
{
    fail_each_call_in("host,memory:64MiB,granule:256KiB", ALLOT_HEAP_MODE_VIRTUAL, 2);
}

/** Red zones, poison and scrubbing add calls that can fail. */
static void poisoned_and_scrubbed_blocks_stay_as_they_were(void)
{
    plan p = {.setting = {.device = "host,memory:64MiB,granule:256KiB",
                          .options = {.mode = ALLOT_HEAP_MODE_VIRTUAL, .is_debug = true}}};
    fail_each_call(p, 1);
    p.setting.options =
        (allot_heap_options){.mode = ALLOT_HEAP_MODE_SEGMENTS, .scrub = ALLOT_HEAP_SCRUB_FREE};
    fail_each_call(p, 1);
    p.setting.options.scrub = ALLOT_HEAP_SCRUB_REUSE;
    fail_each_call(p, 1);
}

static void late_events_change_nothing_about_that(void)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        plan p = {.setting = {.device = "simulated,memory:64MiB,granule:256KiB",
                              .event_delay = 6,
                              .seed = check_seed() + seed}};
        fail_each_call(p, 1);
        p.setting.options.mode = ALLOT_HEAP_MODE_SEGMENTS;
        fail_each_call(p, 1);
    }
}

static void fronts_and_other_placements_change_nothing_about_that(void)
{
    for (int i = 0; i <= ALLOT_SPACE_STRATEGY_ADAPTIVE; i++) {
        fail_each_call((plan){.setting = {.device = "simulated,memory:64MiB,granule:256KiB",
                                          .options = {.strategy = (allot_space_strategy)i,
                                                      .front_size = 1 * MIB}}},
                       1);
    }
}

/** Every so manieth call fails, several within one call of the heap at that. */
static void fail_every(const scene_setting *setting, uint64_t every)
{
    scene s;
    if (!scene_begin(&s, setting)) {
        return;
    }
    for (size_t i = 0; i < SCENE_STEP_COUNT; i++) {
        const allot_failing_options options = {.struct_size = sizeof options,
                                               .every = every,
                                               .call_mask = ALL_CALLS,
                                               .status = ALLOT_STATUS_BACKEND};
        CHECK_OK(allot_failing_arm(s.device, &options));
        allot_status status = ALLOT_STATUS_BACKEND;
        for (int attempt = 0; attempt < 4 && status != ALLOT_STATUS_OK; attempt++) {
            status = SCENE_STEPS[i].run(&s);
        }
        CHECK_OK(allot_failing_arm(s.device, NULL));
        CHECK_OK(allot_heap_check(s.heap));
        if (status != ALLOT_STATUS_OK) {
            CHECK_OK(SCENE_STEPS[i].run(&s));
        }
        scene_verify(&s);
    }
    scene_end(&s);
}

static void a_device_that_fails_often_loses_nothing(void)
{
    for (uint64_t every = 1; every < 12; every++) {
        const int before = check_failures();
        for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
            scene_setting setting = {.device = "simulated,memory:64MiB,granule:256KiB",
                                     .options = {.mode = (allot_heap_mode)mode}};
            fail_every(&setting, every);
            setting.device = "host,memory:64MiB,granule:256KiB";
            fail_every(&setting, every);
        }
        if (check_failures() != before) {
            printf("every %llu calls\n", (unsigned long long)every);
        }
    }
}

/** The heap is destroyed while each call of that fails in turn. */
static void destroying_gives_back_what_was_refused_once(void)
{
    bool is_hit = true;
    for (uint64_t nth = 1; is_hit; nth++) {
        for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
            const plan p = {.setting = {.device = "simulated,memory:64MiB,granule:256KiB",
                                        .options = {.mode = (allot_heap_mode)mode}},
                            .call_mask = ALL_CALLS,
                            .status = ALLOT_STATUS_BACKEND};
            scene s;
            if (!scene_begin(&s, &p.setting)) {
                return;
            }
            (void)play(&s, 0, 18);
            arm(&s, &p, nth);
            allot_heap_destroy(s.heap);
            is_hit = allot_failing_failed_count(s.device) != 0;
            arm(&s, &p, 0);
            s.heap = NULL;
            scene_end(&s);
        }
    }
}

static const check_test tests[] = {
    {"segments_of_a_simulated_device_stay_as_they_were",
     segments_of_a_simulated_device_stay_as_they_were},
    {"granules_of_a_simulated_device_stay_as_they_were",
     granules_of_a_simulated_device_stay_as_they_were},
    {"segments_of_the_host_stay_as_they_were", segments_of_the_host_stay_as_they_were},
    {"granules_of_the_host_stay_as_they_were", granules_of_the_host_stay_as_they_were},
    {"poisoned_and_scrubbed_blocks_stay_as_they_were",
     poisoned_and_scrubbed_blocks_stay_as_they_were},
    {"late_events_change_nothing_about_that", late_events_change_nothing_about_that},
    {"fronts_and_other_placements_change_nothing_about_that",
     fronts_and_other_placements_change_nothing_about_that},
    {"a_device_that_fails_often_loses_nothing", a_device_that_fails_often_loses_nothing},
    {"destroying_gives_back_what_was_refused_once", destroying_gives_back_what_was_refused_once},
};

CHECK_MAIN(tests)
