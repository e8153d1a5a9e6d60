/* SPDX-License-Identifier: MIT */
/* Compaction in steps: budgets, tasks and their order, with and without plans, and that nothing is
 * lost when a step fails or the heap changes in between. */
#include <allot/compactor.h>

#include "support/alloc_fault.h"
#include "support/check.h"
#include "support/compact_scene.h"

#define FOREVER (UINT64_C(1) << 62)

enum { STEPS_MAX = 2000 };

/** Time for a move but not for a plan. */
static const allot_compactor_budget NO_TIME = {.struct_size = sizeof NO_TIME, .time_ns = 1};

typedef struct fixture {
    scene s;
    allot_compactor *compactor;
} fixture;

static bool open_on(fixture *f, uint64_t aging_ns)
{
    const allot_compactor_options options = {.struct_size = sizeof options, .aging_ns = aging_ns};
    return CHECK_OK(allot_compactor_create(f->s.heap, &options, &f->compactor));
}

static bool open_quarters(fixture *f)
{
    return scene_open_quarters(&f->s) && open_on(f, 0);
}

static void close_fixture(fixture *f)
{
    allot_compactor_destroy(f->compactor);
    scene_close(&f->s);
}

static uint64_t add(fixture *f, const allot_compactor_task_options *options)
{
    static const allot_compactor_task_options full = {.struct_size = sizeof full};
    uint64_t id = 0;
    CHECK_OK(allot_compactor_add(f->compactor, options == NULL ? &full : options, &id));
    return id;
}

static allot_compactor_step_report step(fixture *f, const allot_compactor_budget *budget)
{
    allot_compactor_step_report report = {0};
    CHECK_OK(allot_compactor_step(f->compactor, budget, &report));
    CHECK_OK(allot_heap_check(f->s.heap));
    return report;
}

static allot_compactor_task task_of(fixture *f, uint64_t id)
{
    allot_compactor_task task = {0};
    CHECK_OK(allot_compactor_get_task(f->compactor, id, &task));
    return task;
}

static uint64_t segments_used(fixture *f)
{
    allot_compact_forecast forecast = {0};
    CHECK_OK(allot_compact_estimate(f->s.heap, NULL, &forecast));
    return forecast.segments_before;
}

/** Steps until the task is over; returns how many. */
static uint64_t finish(fixture *f, uint64_t id, const allot_compactor_budget *budget)
{
    uint64_t steps = 0;
    while (!allot_compactor_state_is_end(task_of(f, id).state) && steps < STEPS_MAX) {
        (void)step(f, budget);
        steps++;
    }
    CHECK(steps < STEPS_MAX);
    return steps;
}

/* ---- budgets ---- */

static void a_step_makes_as_many_moves_as_it_may(void)
{
    const allot_compactor_budget five = {.struct_size = sizeof five, .moves = 5};
    fixture f;
    REQUIRE(open_quarters(&f));
    const uint64_t id = add(&f, NULL);
    CHECK_EQ(step(&f, &five).moved, 5);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_RUNNING);
    CHECK_EQ(task_of(&f, id).moves_left, 7);
    CHECK_EQ(task_of(&f, id).bytes_left, 7 * 256 * KIB);
    CHECK_EQ(step(&f, &five).moved, 5);
    const allot_compactor_step_report last = step(&f, &five);
    CHECK_EQ(last.moved, 2);
    CHECK_EQ(last.tasks_left, 0);
    const allot_compactor_task task = task_of(&f, id);
    CHECK_EQ(task.state, ALLOT_COMPACTOR_STATE_SETTLED);
    CHECK_EQ(task.moved, 12);
    CHECK_EQ(task.bytes, 3 * MIB);
    CHECK_EQ(task.plans, 1);
    CHECK_EQ(segments_used(&f), 1);
    CHECK_EQ(step(&f, NULL).moved, 0);
    close_fixture(&f);
}

static void a_step_moves_as_many_bytes_as_it_may(void)
{
    const allot_compactor_budget budget = {.struct_size = sizeof budget, .bytes = 600 * KIB};
    const allot_compactor_budget small = {.struct_size = sizeof small, .bytes = KIB};
    fixture f;
    REQUIRE(open_quarters(&f));
    (void)add(&f, NULL);
    CHECK_EQ(step(&f, &budget).bytes, 512 * KIB);
    CHECK_EQ(step(&f, &budget).bytes, 512 * KIB);
    /* What is larger than any step is moved by itself. */
    CHECK_EQ(step(&f, &small).bytes, 256 * KIB);
    close_fixture(&f);
}

static void without_time_to_plan_blocks_are_moved_one_by_one(void)
{
    fixture f;
    REQUIRE(open_quarters(&f));
    const uint64_t id = add(&f, NULL);
    while (!allot_compactor_state_is_end(task_of(&f, id).state)) {
        CHECK(step(&f, &NO_TIME).moved <= 1);
    }
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_SETTLED);
    CHECK_EQ(task_of(&f, id).plans, 0);
    CHECK_EQ(task_of(&f, id).moved, 12);
    CHECK_EQ(segments_used(&f), 1);
    close_fixture(&f);
}

static void one_segment_is_swept_downwards(void)
{
    allot_heap_options options = scene_segments();
    options.limit = SEGMENT;
    fixture f;
    REQUIRE(scene_open(&f.s, &options) && open_on(&f, 0));
    for (int i = 0; i < 16; i++) {
        CHECK(scene_get(&f.s, 256 * KIB));
    }
    for (uint32_t i = 16; i-- > 0;) {
        if (i % 2 == 0) {
            scene_drop(&f.s, i);
        }
    }
    const uint64_t id = add(&f, NULL);
    (void)finish(&f, id, &NO_TIME);
    CHECK_EQ(task_of(&f, id).moved, 4);
    CHECK(scene_get(&f.s, 2 * MIB));
    close_fixture(&f);
}

static void a_task_ends_with_its_budget(void)
{
    const allot_compactor_task_options three = {.struct_size = sizeof three, .moves_max = 3};
    const allot_compactor_task_options bytes = {.struct_size = sizeof bytes,
                                                .bytes_max = 300 * KIB};
    const allot_compactor_task_options little = {.struct_size = sizeof little, .bytes_max = KIB};
    const allot_compactor_task_options enough = {.struct_size = sizeof enough, .moves_max = 1000};
    const allot_request request = {.struct_size = sizeof request, .size = 2 * MIB};
    const allot_compactor_task_options room = {.struct_size = sizeof room,
                                               .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM,
                                               .request = &request,
                                               .bytes_max = KIB};
    fixture f;
    REQUIRE(open_quarters(&f));
    uint64_t id = add(&f, &room);
    (void)finish(&f, id, NULL);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_BUDGET);
    CHECK_EQ(task_of(&f, id).moved, 0);
    id = add(&f, &three);
    (void)finish(&f, id, NULL);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_BUDGET);
    CHECK(task_of(&f, id).moved <= 3);
    id = add(&f, &three);
    (void)finish(&f, id, &NO_TIME);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_BUDGET);
    CHECK_EQ(task_of(&f, id).moved, 3);
    id = add(&f, &bytes);
    (void)finish(&f, id, &NO_TIME);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_BUDGET);
    CHECK_EQ(task_of(&f, id).bytes, 256 * KIB);
    id = add(&f, &little);
    (void)finish(&f, id, NULL);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_BUDGET);
    id = add(&f, &enough);
    (void)finish(&f, id, NULL);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_SETTLED);
    close_fixture(&f);
}

/* ---- aims ---- */

static void a_task_stops_when_its_aim_is_reached(void)
{
    const allot_compactor_task_options large = {.struct_size = sizeof large,
                                                .largest_min = SEGMENT};
    const allot_compactor_task_options low = {.struct_size = sizeof low, .fragmentation_max = 0.9};
    fixture f;
    REQUIRE(open_quarters(&f));
    uint64_t id = add(&f, &low);
    (void)finish(&f, id, NULL);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_REACHED);
    id = add(&f, &large);
    (void)finish(&f, id, &NO_TIME);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_REACHED);
    CHECK(task_of(&f, id).moved < 12);
    CHECK(scene_get(&f.s, SEGMENT));
    close_fixture(&f);
}

static void what_cannot_be_reached_is_told(void)
{
    const allot_compactor_task_options large = {.struct_size = sizeof large,
                                                .largest_min = 2 * SEGMENT};
    fixture f;
    allot_devptr pins[16];
    REQUIRE(open_quarters(&f));
    for (uint32_t i = 0; i < f.s.count; i++) {
        CHECK_OK(allot_heap_pin(f.s.heap, f.s.blocks[i].handle, &pins[i]));
    }
    for (int by_plan = 0; by_plan < 2; by_plan++) {
        const uint64_t id = add(&f, &large);
        (void)finish(&f, id, by_plan ? NULL : &NO_TIME);
        CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_BLOCKED);
        CHECK_EQ(task_of(&f, id).size_blocked, 4 * MIB);
        CHECK_EQ(task_of(&f, id).moved, 0);
    }
    for (uint32_t i = 0; i < f.s.count; i++) {
        CHECK_OK(allot_heap_unpin(f.s.heap, f.s.blocks[i].handle));
    }
    const uint64_t id = add(&f, &large);
    (void)finish(&f, id, NULL);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_SETTLED);
    close_fixture(&f);
}

static void what_does_not_pay_is_left(void)
{
    const allot_compactor_task_options dear = {.struct_size = sizeof dear, .weight = 100};
    fixture f;
    REQUIRE(open_quarters(&f));
    uint64_t id = add(&f, &dear);
    (void)finish(&f, id, NULL);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_NOT_WORTH);
    CHECK_EQ(task_of(&f, id).moved, 0);
    CHECK_EQ(segments_used(&f), 4);
    close_fixture(&f);
}

static void room_is_made_in_steps(void)
{
    const allot_request request = {.struct_size = sizeof request, .size = 2 * MIB};
    const allot_request huge = {.struct_size = sizeof huge, .size = 2 * SEGMENT};
    const allot_compactor_task_options room = {
        .struct_size = sizeof room, .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = &request};
    const allot_compactor_task_options never = {
        .struct_size = sizeof never, .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = &huge};
    fixture f;
    REQUIRE(open_quarters(&f));
    uint64_t id = add(&f, &room);
    (void)finish(&f, id, &NO_TIME);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_REACHED);
    CHECK(task_of(&f, id).moved <= 2);
    id = add(&f, &never);
    (void)finish(&f, id, &NO_TIME);
    CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_BLOCKED);
    close_fixture(&f);
}

/* ---- tasks ---- */

static void wrong_tasks_are_refused(void)
{
    const allot_request nothing = {.struct_size = sizeof nothing};
    const allot_compactor_task_options wrong[] = {
        {.struct_size = sizeof wrong[0], .goal = (allot_compact_goal)7},
        {.struct_size = sizeof wrong[0], .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM},
        {.struct_size = sizeof wrong[0], .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = &nothing},
        {.struct_size = sizeof wrong[0], .fragmentation_max = 1.5},
        {.struct_size = sizeof wrong[0], .weight = -1},
        {.struct_size = 0},
    };
    fixture f;
    uint64_t id = 77;
    allot_compactor_task task;
    REQUIRE(open_quarters(&f));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(allot_compactor_add(f.compactor, &wrong[i], &id), ALLOT_STATUS_INVALID);
    }
    CHECK_EQ(id, 77);
    CHECK_EQ(allot_compactor_get_task(f.compactor, 77, &task), ALLOT_STATUS_NOT_FOUND);
    CHECK_EQ(allot_compactor_cancel(f.compactor, 77), ALLOT_STATUS_NOT_FOUND);
    close_fixture(&f);
}

static void tasks_are_paused_and_cancelled(void)
{
    const allot_compactor_budget one = {.struct_size = sizeof one, .moves = 1};
    fixture f;
    REQUIRE(open_quarters(&f));
    for (int by_plan = 0; by_plan < 2; by_plan++) {
        const uint64_t id = add(&f, NULL);
        CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_QUEUED);
        for (int i = 0; i < 40 && task_of(&f, id).moved == 0; i++) {
            (void)step(&f, by_plan ? &one : &NO_TIME);
        }
        CHECK_EQ(task_of(&f, id).moved, 1);
        allot_compactor_pause(f.compactor);
        CHECK(step(&f, NULL).is_paused);
        CHECK_EQ(task_of(&f, id).moved, 1);
        CHECK_OK(allot_compactor_cancel(f.compactor, id));
        CHECK_OK(allot_compactor_cancel(f.compactor, id));
        allot_compactor_resume(f.compactor);
        CHECK_EQ(step(&f, NULL).tasks_left, 0);
        CHECK_EQ(task_of(&f, id).state, ALLOT_COMPACTOR_STATE_CANCELLED);
        CHECK_EQ(task_of(&f, id).moved, 1);
    }
    (void)add(&f, NULL); /* destroyed with its task */
    (void)step(&f, &one);
    close_fixture(&f);
}

static void the_oldest_tasks_that_are_over_are_forgotten(void)
{
    fixture f;
    allot_compactor_task task;
    REQUIRE(open_quarters(&f));
    const uint64_t first = add(&f, NULL);
    for (int i = 0; i < 70; i++) {
        (void)add(&f, NULL);
    }
    (void)step(&f, NULL);
    CHECK_EQ(allot_compactor_get_task(f.compactor, first, &task), ALLOT_STATUS_NOT_FOUND);
    CHECK_OK(allot_compactor_get_task(f.compactor, first + 70, &task));
    close_fixture(&f);
}

/** Not those that were added last, and with no step in between as well. */
static void those_that_ended_last_are_known(void)
{
    const allot_compactor_task_options high = {.struct_size = sizeof high, .priority = 5};
    fixture f;
    allot_compactor_task task;
    REQUIRE(scene_open_quarters(&f.s) && open_on(&f, FOREVER));
    const uint64_t low_id = add(&f, NULL);
    uint64_t id = 0;
    for (int i = 0; i < 70; i++) {
        id = add(&f, &high);
    }
    (void)step(&f, NULL);
    CHECK_EQ(task_of(&f, low_id).state, ALLOT_COMPACTOR_STATE_SETTLED);
    CHECK_EQ(allot_compactor_get_task(f.compactor, low_id + 1, &task), ALLOT_STATUS_NOT_FOUND);
    CHECK_OK(allot_compactor_get_task(f.compactor, id, &task));
    for (int i = 0; i < 70; i++) {
        CHECK_OK(allot_compactor_cancel(f.compactor, add(&f, NULL)));
    }
    CHECK_EQ(allot_compactor_get_task(f.compactor, id, &task), ALLOT_STATUS_NOT_FOUND);
    CHECK_EQ(task_of(&f, id + 70).state, ALLOT_COMPACTOR_STATE_CANCELLED);
    close_fixture(&f);
}

static void the_higher_priority_comes_first(void)
{
    const allot_compactor_task_options high = {.struct_size = sizeof high, .priority = 5};
    const allot_compactor_budget one = {.struct_size = sizeof one, .moves = 1};
    fixture f;
    REQUIRE(scene_open_quarters(&f.s) && open_on(&f, FOREVER));
    const uint64_t low_id = add(&f, NULL);
    const uint64_t high_id = add(&f, &high);
    CHECK_EQ(step(&f, &one).moved, 1);
    CHECK_EQ(task_of(&f, high_id).moved, 1);
    CHECK_EQ(task_of(&f, low_id).moved, 0);
    close_fixture(&f);
}

static void a_task_that_waited_long_comes_first(void)
{
    const allot_compactor_task_options high = {.struct_size = sizeof high, .priority = 5};
    const allot_compactor_budget one = {.struct_size = sizeof one, .moves = 1};
    fixture f;
    REQUIRE(scene_open_quarters(&f.s) && open_on(&f, 1));
    const uint64_t low_id = add(&f, NULL);
    while (task_of(&f, low_id).priority_now < 1000) {
    }
    const uint64_t high_id = add(&f, &high);
    CHECK(task_of(&f, low_id).priority_now > task_of(&f, high_id).priority_now);
    /* However many of the higher priority keep coming, it ends. */
    for (int i = 0; i < 12; i++) {
        (void)step(&f, &one);
        (void)add(&f, &high);
    }
    CHECK_EQ(task_of(&f, low_id).moved, 12);
    close_fixture(&f);
}

static void a_near_deadline_comes_first(void)
{
    const allot_compactor_task_options high = {.struct_size = sizeof high, .priority = 5};
    const allot_compactor_task_options soon = {.struct_size = sizeof soon, .deadline_ns = 1};
    const allot_compactor_task_options late = {.struct_size = sizeof late, .deadline_ns = FOREVER};
    const allot_compactor_budget one = {.struct_size = sizeof one, .moves = 1};
    fixture f;
    REQUIRE(scene_open_quarters(&f.s) && open_on(&f, FOREVER));
    const uint64_t high_id = add(&f, &high);
    const uint64_t late_id = add(&f, &late);
    const uint64_t soon_id = add(&f, &soon);
    (void)step(&f, &one);
    CHECK_EQ(task_of(&f, soon_id).moved, 1);
    CHECK_EQ(task_of(&f, high_id).moved, 0);
    CHECK(task_of(&f, soon_id).is_late);
    CHECK(!task_of(&f, late_id).is_late);
    close_fixture(&f);
}

/* ---- what happens in between ---- */

/** Something of what a program does. */
static void change(scene *s)
{
    allot_devptr at;
    const uint32_t any =
        s->count == 0 ? 0 : (uint32_t)check_random_range(&s->random, 0, s->count - 1);
    switch (check_random_range(&s->random, 0, 3)) {
    case 0:
        (void)scene_get(s, check_random_range(&s->random, 1, 300 * KIB));
        break;
    case 1:
        if (s->count > 4) {
            scene_drop(s, any);
        }
        break;
    default:
        if (s->count != 0) {
            CHECK_OK(allot_heap_pin(s->heap, s->blocks[any].handle, &at));
            CHECK_OK(allot_heap_unpin(s->heap, s->blocks[any].handle));
            scene_check_bytes(s, &s->blocks[any]);
        }
        break;
    }
}

static void steps_go_on_while_the_heap_changes(void)
{
    const allot_compactor_budget few = {.struct_size = sizeof few, .moves = 2};
    for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
        for (int by_plan = 0; by_plan < 2; by_plan++) {
            allot_heap_options options = scene_segments();
            options.mode = (allot_heap_mode)mode;
            fixture f;
            REQUIRE(scene_open(&f.s, &options) && open_on(&f, 0));
            for (int i = 0; i < 120; i++) {
                (void)scene_get(&f.s, check_random_range(&f.s.random, 1, 400 * KIB));
            }
            for (int round = 0; round < 4; round++) {
                const uint64_t id = add(&f, NULL);
                for (int i = 0; i < 60; i++) {
                    change(&f.s);
                    (void)step(&f, by_plan ? &few : &NO_TIME);
                }
                (void)finish(&f, id, by_plan ? NULL : &NO_TIME);
                CHECK(task_of(&f, id).plans <= 65);
                for (uint32_t i = 0; i < f.s.count; i++) {
                    scene_check_bytes(&f.s, &f.s.blocks[i]);
                }
            }
            close_fixture(&f);
        }
    }
}

/* ---- what fails ---- */

static void a_failed_move_ends_its_task_and_loses_nothing(void)
{
    for (uint64_t n = 1; n <= 13; n++) {
        for (int by_plan = 0; by_plan < 2; by_plan++) {
            const allot_failing_options options = {.struct_size = sizeof options,
                                                   .nth = n,
                                                   .call_mask =
                                                       UINT64_C(1) << ALLOT_DEVICE_CALL_COPY |
                                                       UINT64_C(1) << ALLOT_DEVICE_CALL_MOVE};
            fixture f;
            REQUIRE(open_quarters(&f));
            const uint64_t id = add(&f, NULL);
            CHECK_OK(allot_failing_arm(f.s.failing, &options));
            (void)finish(&f, id, by_plan ? NULL : &NO_TIME);
            CHECK_EQ(task_of(&f, id).state,
                     n <= 12 ? ALLOT_COMPACTOR_STATE_FAILED : ALLOT_COMPACTOR_STATE_SETTLED);
            CHECK_EQ(task_of(&f, id).status, n <= 12 ? ALLOT_STATUS_BACKEND : ALLOT_STATUS_OK);
            CHECK_EQ(task_of(&f, id).moved, n - 1);
            const uint64_t again = add(&f, NULL);
            (void)finish(&f, again, NULL);
            CHECK_EQ(segments_used(&f), 1);
            close_fixture(&f);
        }
    }
}

static allot_status run_once(void *context)
{
    fixture *const f = context;
    const allot_compactor_task_options full = {.struct_size = sizeof full};
    allot_compactor *compactor = NULL;
    uint64_t id = 0;
    allot_status status = allot_compactor_create(f->s.heap, NULL, &compactor);
    for (int by_plan = 0; by_plan < 2 && status == ALLOT_STATUS_OK; by_plan++) {
        status = allot_compactor_add(compactor, &full, &id);
        allot_compactor_task task = {0};
        while (status == ALLOT_STATUS_OK && !allot_compactor_state_is_end(task.state)) {
            status = allot_compactor_step(compactor, by_plan ? NULL : &NO_TIME, NULL);
            if (status == ALLOT_STATUS_OK) {
                status = allot_compactor_get_task(compactor, id, &task);
            }
        }
        status = status == ALLOT_STATUS_OK ? task.status : status;
    }
    allot_compactor_destroy(compactor);
    return status;
}

static void a_lack_of_host_memory_is_survived(void)
{
    fixture f;
    REQUIRE(scene_open_quarters(&f.s));
    CHECK(alloc_fault_each(run_once, &f) > 10);
    scene_close(&f.s);
}

static const check_test tests[] = {
    {"a_step_makes_as_many_moves_as_it_may", a_step_makes_as_many_moves_as_it_may},
    {"a_step_moves_as_many_bytes_as_it_may", a_step_moves_as_many_bytes_as_it_may},
    {"without_time_to_plan_blocks_are_moved_one_by_one",
     without_time_to_plan_blocks_are_moved_one_by_one},
    {"one_segment_is_swept_downwards", one_segment_is_swept_downwards},
    {"a_task_ends_with_its_budget", a_task_ends_with_its_budget},
    {"a_task_stops_when_its_aim_is_reached", a_task_stops_when_its_aim_is_reached},
    {"what_cannot_be_reached_is_told", what_cannot_be_reached_is_told},
    {"what_does_not_pay_is_left", what_does_not_pay_is_left},
    {"room_is_made_in_steps", room_is_made_in_steps},
    {"wrong_tasks_are_refused", wrong_tasks_are_refused},
    {"tasks_are_paused_and_cancelled", tasks_are_paused_and_cancelled},
    {"the_oldest_tasks_that_are_over_are_forgotten", the_oldest_tasks_that_are_over_are_forgotten},
    {"those_that_ended_last_are_known", those_that_ended_last_are_known},
    {"the_higher_priority_comes_first", the_higher_priority_comes_first},
    {"a_task_that_waited_long_comes_first", a_task_that_waited_long_comes_first},
    {"a_near_deadline_comes_first", a_near_deadline_comes_first},
    {"steps_go_on_while_the_heap_changes", steps_go_on_while_the_heap_changes},
    {"a_failed_move_ends_its_task_and_loses_nothing",
     a_failed_move_ends_its_task_and_loses_nothing},
    {"a_lack_of_host_memory_is_survived", a_lack_of_host_memory_is_survived},
};

CHECK_MAIN(tests)
