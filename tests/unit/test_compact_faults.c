/* SPDX-License-Identifier: MIT */
/* Every call of the device, and every allocation of host memory, that a compaction makes fails
 * once: the heap holds, no byte is lost, and the same call made again goes through. */
#include <allot/compactor.h>

#include "support/alloc_fault.h"
#include "support/check.h"
#include "support/compact_scene.h"

static const allot_request large = {.struct_size = sizeof large, .size = 3 * MIB};

/* ---- what is done ---- */

static allot_status run_plan(scene *s, const allot_compact_plan_options *options)
{
    allot_compact_plan *plan = NULL;
    allot_status status = allot_compact_plan_create(s->heap, options, &plan);
    if (status == ALLOT_STATUS_OK) {
        status = allot_compact_plan_run(s->heap, plan, NULL, NULL);
    }
    allot_compact_plan_destroy(plan);
    return status;
}

static allot_status pack(scene *s)
{
    return run_plan(s, NULL);
}

static allot_status plan_room(scene *s)
{
    const allot_compact_plan_options options = {
        .struct_size = sizeof options, .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = &large};
    return run_plan(s, &options);
}

static allot_status make_room(scene *s)
{
    return allot_compact_make_room(s->heap, &large, NULL);
}

/** By the ladder. */
static allot_status ask(scene *s)
{
    allot_handle handle = {0};
    allot_status status = allot_compact_attach(s->heap, NULL);
    if (status == ALLOT_STATUS_OK) {
        status = allot_heap_alloc(s->heap, &large, &handle);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_heap_free(s->heap, handle);
    }
    return status;
}

static allot_status step(scene *s)
{
    const allot_compactor_task_options task = {.struct_size = sizeof task};
    allot_compactor *compactor = NULL;
    uint64_t id = 0;
    allot_compactor_task end = {.struct_size = sizeof end};
    allot_status status = allot_compactor_create(s->heap, NULL, &compactor);
    if (status == ALLOT_STATUS_OK) {
        status = allot_compactor_add(compactor, &task, &id);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_compactor_step(compactor, NULL, NULL);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_compactor_get_task(compactor, id, &end);
    }
    allot_compactor_destroy(compactor);
    return status == ALLOT_STATUS_OK && end.state == ALLOT_COMPACTOR_STATE_FAILED ? end.status
                                                                                  : status;
}

static allot_status pack_and_trim(scene *s)
{
    const allot_status status = run_plan(s, NULL);
    return status == ALLOT_STATUS_OK ? allot_heap_trim(s->heap, 0, NULL) : status;
}

typedef allot_status (*act_fn)(scene *s);

static const act_fn ACTS[] = {pack, plan_room, make_room, ask, step, pack_and_trim};

/* ---- the heap ---- */

/** Full of blocks of 256 KiB, of which one in four stays; the heap may hold no more. */
static bool open_full(scene *s, allot_heap_mode mode)
{
    allot_heap_options options = scene_segments();
    options.mode = mode;
    options.reserve_size = 64 * MIB;
    options.limit = 4 * SEGMENT;
    if (!scene_open(s, &options)) {
        return false;
    }
    while (scene_get(s, 256 * KIB)) {
    }
    for (uint32_t i = s->count; i-- > 0;) {
        if (i % 4 != 0) {
            scene_drop(s, i);
        }
    }
    return CHECK(s->count > 8);
}

static void check_scene(scene *s)
{
    CHECK_OK(allot_heap_check(s->heap));
    for (uint32_t i = 0; i < s->count; i++) {
        scene_check_bytes(s, &s->blocks[i]);
    }
}

/* ---- devices that fail ---- */

/** Whether the n-th call of the device failed. */
static bool fail_call(act_fn act, allot_heap_mode mode, uint64_t n, allot_status code)
{
    const allot_failing_options options = {
        .struct_size = sizeof options, .nth = n, .call_mask = UINT64_MAX, .status = code};
    const allot_failing_options none = {.struct_size = sizeof none};
    scene s;
    if (!open_full(&s, mode)) {
        return false;
    }
    CHECK_OK(allot_failing_arm(s.failing, &options));
    const allot_status status = act(&s);
    const bool has_failed = allot_failing_failed_count(s.failing) != 0;
    CHECK_OK(allot_failing_arm(s.failing, &none));
    CHECK(status == ALLOT_STATUS_OK ||
          (has_failed && (status == ALLOT_STATUS_BACKEND || status == ALLOT_STATUS_FRAGMENTED ||
                          status == ALLOT_STATUS_DEVICE_MEMORY)));
    check_scene(&s);
    CHECK_OK(act(&s));
    check_scene(&s);
    scene_close(&s);
    return has_failed;
}

static void every_call_of_the_device_may_fail(void)
{
    static const allot_status codes[] = {ALLOT_STATUS_BACKEND, ALLOT_STATUS_DEVICE_MEMORY};
    for (size_t i = 0; i < sizeof ACTS / sizeof ACTS[0]; i++) {
        for (int k = 0; k < 4; k++) {
            const allot_heap_mode mode = k < 2 ? ALLOT_HEAP_MODE_SEGMENTS : ALLOT_HEAP_MODE_VIRTUAL;
            uint64_t n = 1;
            while (check_failures() == 0 && fail_call(ACTS[i], mode, n, codes[k % 2])) {
                n++;
            }
            CHECK(n > 3);
        }
    }
}

/* ---- a lack of host memory ---- */

/** Whether the n-th allocation failed. */
static bool fail_allocation(act_fn act, allot_heap_mode mode, uint64_t n)
{
    scene s;
    if (!open_full(&s, mode)) {
        return false;
    }
    alloc_fault_arm(n);
    const allot_status status = act(&s);
    const bool has_failed = alloc_fault_disarm();
    CHECK(status == ALLOT_STATUS_OK || (has_failed && status == ALLOT_STATUS_HOST_MEMORY));
    check_scene(&s);
    CHECK_OK(act(&s));
    scene_close(&s);
    return has_failed;
}

static void every_allocation_may_fail(void)
{
    for (size_t i = 0; i < sizeof ACTS / sizeof ACTS[0]; i++) {
        for (int k = 0; k < 2; k++) {
            const allot_heap_mode mode =
                k == 0 ? ALLOT_HEAP_MODE_SEGMENTS : ALLOT_HEAP_MODE_VIRTUAL;
            uint64_t n = 1;
            while (check_failures() == 0 && fail_allocation(ACTS[i], mode, n)) {
                n++;
            }
            CHECK(n > 1);
        }
    }
}

static const check_test TESTS[] = {
    {"every_call_of_the_device_may_fail", every_call_of_the_device_may_fail},
    {"every_allocation_may_fail", every_allocation_may_fail},
};
CHECK_MAIN(TESTS)
