/* SPDX-License-Identifier: MIT */
/* Compaction of blocks that other streams use: they are left alone, or waited for. */
#include <allot/compact.h>

#include "support/check.h"
#include "support/compact_scene.h"

/** The four segments of scene_open_quarters(), all of whose blocks another stream uses. Events are
 * reached late. */
typedef struct used_scene {
    scene s;
    allot_stream side;
} used_scene;

static allot_failing_options late(void)
{
    return (allot_failing_options){.struct_size = sizeof(allot_failing_options),
                                   .event_delay = 1000};
}

static void use_all(used_scene *u)
{
    for (uint32_t i = 0; i < u->s.count; i++) {
        CHECK_OK(allot_heap_use(u->s.heap, u->s.blocks[i].handle, u->side));
    }
}

static bool open_used(used_scene *u)
{
    const allot_failing_options delayed = late();
    if (!scene_open_quarters(&u->s) ||
        !CHECK_OK(allot_device_stream_create(u->s.failing, &u->side)) ||
        !CHECK_OK(allot_failing_arm(u->s.failing, &delayed))) {
        return false;
    }
    use_all(u);
    return true;
}

static void close_used(used_scene *u)
{
    CHECK_OK(allot_heap_check(u->s.heap));
    CHECK_OK(allot_heap_end_stream(u->s.heap, u->side));
    CHECK_OK(allot_device_stream_destroy(u->s.failing, u->side));
    scene_close(&u->s);
}

static uint64_t waits_of(const used_scene *u)
{
    allot_device_counts counts;
    allot_device_get_counts(u->s.device, &counts);
    return counts.calls[ALLOT_DEVICE_CALL_STREAM_WAIT];
}

static allot_compact_plan *plan_of(used_scene *u, bool waits)
{
    const allot_compact_plan_options options = {.struct_size = sizeof options, .waits = waits};
    allot_compact_plan *plan = NULL;
    if (CHECK_OK(allot_compact_plan_create(u->s.heap, &options, &plan))) {
        CHECK_OK(allot_compact_plan_check(plan));
    }
    return plan;
}

static allot_compact_report run_plan(used_scene *u, const allot_compact_plan *plan, bool waits)
{
    const allot_compact_run_options options = {.struct_size = sizeof options, .waits = waits};
    allot_compact_report report = {0};
    CHECK_OK(allot_compact_plan_run(u->s.heap, plan, &options, &report));
    CHECK_OK(allot_heap_check(u->s.heap));
    return report;
}

static void what_other_streams_use_stays(void)
{
    used_scene u;
    REQUIRE(open_used(&u));
    allot_compact_plan *plan = plan_of(&u, false);
    CHECK_EQ(allot_compact_plan_count(plan), 0);
    allot_compact_plan_destroy(plan);
    plan = plan_of(&u, true);
    CHECK_EQ(allot_compact_plan_count(plan), 12);
    const allot_compact_report report = run_plan(&u, plan, false);
    CHECK_EQ(report.moved, 0);
    CHECK_EQ(report.why[ALLOT_COMPACT_SKIP_IN_USE], 12);
    allot_compact_plan_destroy(plan);
    close_used(&u);
}

static void or_is_waited_for(void)
{
    used_scene u;
    REQUIRE(open_used(&u));
    allot_compact_plan *const plan = plan_of(&u, true);
    const uint64_t before = waits_of(&u);
    const allot_compact_report report = run_plan(&u, plan, true);
    CHECK_EQ(report.moved, 12);
    CHECK(waits_of(&u) > before);
    allot_compact_plan_destroy(plan);
    close_used(&u);
}

static void what_is_used_later_waits_for_the_move(void)
{
    used_scene u;
    REQUIRE(open_used(&u));
    uint64_t before = waits_of(&u);
    use_all(&u);
    CHECK_EQ(waits_of(&u), before);
    allot_compact_plan *const plan = plan_of(&u, true);
    CHECK_EQ(run_plan(&u, plan, true).moved, 12);
    before = waits_of(&u);
    use_all(&u);
    CHECK(waits_of(&u) > before);
    allot_compact_plan_destroy(plan);
    close_used(&u);
}

/** The n-th call that orders streams, or copies, fails; whether there was one. */
static bool check_failure(uint64_t n)
{
    const allot_compact_run_options options = {.struct_size = sizeof options, .waits = true};
    const allot_failing_options delayed = late();
    allot_failing_options failing = late();
    used_scene u;
    if (!CHECK(open_used(&u))) {
        return false;
    }
    allot_compact_plan *const plan = plan_of(&u, true);
    failing.nth = n;
    failing.call_mask = UINT64_C(1) << ALLOT_DEVICE_CALL_STREAM_WAIT |
                        UINT64_C(1) << ALLOT_DEVICE_CALL_EVENT_RECORD |
                        UINT64_C(1) << ALLOT_DEVICE_CALL_COPY;
    CHECK_OK(allot_failing_arm(u.s.failing, &failing));
    const allot_status status = allot_compact_plan_run(u.s.heap, plan, &options, NULL);
    CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_BACKEND);
    CHECK_OK(allot_failing_arm(u.s.failing, &delayed));
    CHECK_OK(allot_heap_check(u.s.heap));
    allot_compact_plan_destroy(plan);
    close_used(&u);
    return status != ALLOT_STATUS_OK;
}

static void a_wait_that_fails_loses_nothing(void)
{
    uint64_t n = 1;
    while (check_failure(n)) {
        n++;
    }
    CHECK(n > 24);
}

static const check_test tests[] = {
    {"what_other_streams_use_stays", what_other_streams_use_stays},
    {"or_is_waited_for", or_is_waited_for},
    {"what_is_used_later_waits_for_the_move", what_is_used_later_waits_for_the_move},
    {"a_wait_that_fails_loses_nothing", a_wait_that_fails_loses_nothing},
};

CHECK_MAIN(tests)
