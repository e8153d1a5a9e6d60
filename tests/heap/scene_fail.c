/* SPDX-License-Identifier: MIT */
/*
 * Each step of the scene is played with its first chance to fail taken, then its second, and so on
 * until there is none left. A step that gets by in spite of a failure ends that play; the next one
 * begins anew, one chance further.
 */
#include <stdio.h>

#include "scene.h"
#include "support/check.h"

bool scene_play(scene *s, size_t first, size_t end)
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

/** Adaptive pools of plain segments give some back before they ask for others. */
static scene_leaves leaves_of(const scene_setting *setting, const scene_step *step)
{
    const bool gives_back = setting->options.mode == ALLOT_HEAP_MODE_SEGMENTS &&
                            setting->options.strategy == ALLOT_SPACE_STRATEGY_ADAPTIVE;
    return gives_back && step->leaves == SCENE_AS_BEFORE ? SCENE_LESS_HELD : step->leaves;
}

/** Fail a step at chance *nth, *nth + 1 ... until it succeeds; whether there was a failure then.
 * *count is added to for each that made the step fail. */
static bool fail_step(scene *s, const scene_fault *fault, const scene_step *step,
                      scene_leaves leaves, uint64_t *nth, uint64_t *count)
{
    for (;; (*nth)++) {
        scene_snapshot before;
        scene_snapshot after;
        scene_take(s, &before);
        fault->arm(s, fault, *nth);
        const allot_status status = step->run(s);
        const bool is_hit = fault->disarm(s, fault);
        if (status == ALLOT_STATUS_OK) {
            scene_verify(s);
            return is_hit;
        }
        const bool is_right = CHECK(is_hit);
        ++*count;
        scene_take(s, &after);
        scene_compare(&before, &after, leaves);
        scene_verify(s);
        if (!is_right) {
            return false;
        }
    }
}

static void fail_one(const scene_setting *setting, const scene_fault *fault, size_t number,
                     uint64_t *count)
{
    const scene_step *const step = &SCENE_STEPS[number];
    bool is_hit = true;
    for (uint64_t nth = 1; is_hit; nth++) {
        const int before = check_failures();
        scene s;
        if (!scene_begin(&s, setting)) {
            return;
        }
        is_hit = scene_play(&s, 0, number) &&
                 fail_step(&s, fault, step, leaves_of(setting, step), &nth, count);
        if (check_failures() == before) {
            play_rest(&s, number + 1);
        }
        scene_verify(&s);
        scene_end(&s);
        if (check_failures() != before) {
            printf("step %s, chance %llu, mask %llx, status %d\n", step->name,
                   (unsigned long long)nth, (unsigned long long)fault->call_mask,
                   (int)fault->status);
            return;
        }
    }
}

uint64_t scene_fail_each_step(const scene_setting *setting, const scene_fault *fault)
{
    uint64_t count = 0;
    for (size_t i = 0; i < SCENE_STEP_COUNT; i++) {
        fail_one(setting, fault, i, &count);
    }
    return count;
}
