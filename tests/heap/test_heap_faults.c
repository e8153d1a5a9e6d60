/* SPDX-License-Identifier: MIT */
/* A device that fails at any call: the heap is as before, and the call succeeds when it is made
 * again. */
#include <stdio.h>

#include "scene.h"
#include "support/check.h"

#define ALL_CALLS UINT64_MAX

static void arm(scene *s, const scene_fault *fault, uint64_t nth)
{
    const allot_failing_options options = {.struct_size = sizeof options,
                                           .nth = nth,
                                           .call_mask = fault->call_mask,
                                           .status = fault->status,
                                           .event_delay = fault->event_delay,
                                           .seed = fault->seed};
    CHECK_OK(allot_failing_arm(s->device, &options));
}

static bool disarm(scene *s, const scene_fault *fault)
{
    const bool is_hit = allot_failing_failed_count(s->device) != 0;
    arm(s, fault, 0);
    return is_hit;
}

/** With the first so many kinds of failures. */
static void fail_each_call(const scene_setting *setting, size_t kinds)
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
        const scene_fault fault = {.arm = arm,
                                   .disarm = disarm,
                                   .call_mask = KINDS[i].call_mask,
                                   .status = KINDS[i].status,
                                   .event_delay = setting->event_delay,
                                   .seed = setting->seed};
        CHECK(scene_fail_each_step(setting, &fault) > 15);
    }
}

static void fail_each_call_in(const char *device, allot_heap_mode mode, size_t kinds)
{
    fail_each_call(&(scene_setting){.device = device, .options = {.mode = mode}}, kinds);
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
    scene_setting setting = {.device = "host,memory:64MiB,granule:256KiB",
                             .options = {.mode = ALLOT_HEAP_MODE_VIRTUAL, .is_debug = true}};
    fail_each_call(&setting, 1);
    setting.options.is_debug = false;
    setting.options.scrub = ALLOT_HEAP_SCRUB_REUSE;
    fail_each_call(&setting, 1);
    setting.options.mode = ALLOT_HEAP_MODE_SEGMENTS;
    setting.options.scrub = ALLOT_HEAP_SCRUB_FREE;
    fail_each_call(&setting, 1);
}

static void late_events_change_nothing_about_that(void)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        scene_setting setting = {.device = "simulated,memory:64MiB,granule:256KiB",
                                 .event_delay = 6,
                                 .seed = check_seed() + seed};
        fail_each_call(&setting, 1);
        setting.options.mode = ALLOT_HEAP_MODE_SEGMENTS;
        fail_each_call(&setting, 1);
    }
}

static void fronts_and_other_placements_change_nothing_about_that(void)
{
    scene_setting setting = {.device = "simulated,memory:64MiB,granule:256KiB",
                             .options = {.front_size = 1 * MIB}};
    for (int i = 0; i <= ALLOT_SPACE_STRATEGY_ADAPTIVE; i++) {
        setting.options.strategy = (allot_space_strategy)i;
        fail_each_call(&setting, 1);
    }
    setting.options.mode = ALLOT_HEAP_MODE_SEGMENTS;
    fail_each_call(&setting, 1);
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
            const scene_setting setting = {.device = "simulated,memory:64MiB,granule:256KiB",
                                           .options = {.mode = (allot_heap_mode)mode}};
            const scene_fault fault = {.call_mask = ALL_CALLS, .status = ALLOT_STATUS_BACKEND};
            scene s;
            if (!scene_begin(&s, &setting)) {
                return;
            }
            (void)scene_play(&s, 0, 18);
            arm(&s, &fault, nth);
            allot_heap_destroy(s.heap);
            is_hit = disarm(&s, &fault);
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
