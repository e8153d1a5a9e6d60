/* SPDX-License-Identifier: MIT */
/* Compaction by plans and in steps: nothing that was written before is lost, and what was foretold
 * is what comes about. */
#include <allot/compactor.h>

#include "device/heap_suite.h"

enum { PIECES = 48, PINNED = 5, USED = 6 };

/** Blocks of a stream: of these some are free again, one is pinned, another stream uses one. */
typedef struct field {
    scene s;
    allot_handle blocks[PIECES]; /**< 0: freed. */
    allot_devptr pinned;
    uint64_t size; /**< Of each. */
    uint64_t after_count;
    uint64_t veto_count;
    bool vetoes;
} field;

static void write_block(field *f, int i)
{
    const allot_devptr at = must_pin(&f->s, f->blocks[i]);
    write_pattern(&f->s.device, f->s.streams[1], at, (uint64_t)i + 1, f->size);
    must_unpin(&f->s, f->blocks[i]);
}

static bool is_whole(field *f, int i)
{
    const allot_devptr at = must_pin(&f->s, f->blocks[i]);
    const bool is_equal =
        holds_pattern(&f->s.device, f->s.streams[1], at, (uint64_t)i + 1, f->size);
    must_unpin(&f->s, f->blocks[i]);
    return is_equal;
}

static allot_devptr address_of(field *f, allot_handle handle)
{
    allot_block_info info = {.size = 0};
    CHECK_OK(allot_heap_get_block(f->s.heap, handle, &info));
    return info.ptr;
}

/** Two of three blocks are freed, so that most segments can be emptied. */
static bool field_open(field *f, allot_heap_mode mode)
{
    *f = (field){.s = scene_begin((allot_heap_options){
                     .mode = mode, .segment_size = 4 * MIB, .reserve_size = 64 * MIB}),
                 .size = 500 * KIB};
    if (f->s.heap == NULL) {
        return false;
    }
    for (int i = 0; i < PIECES; i++) {
        f->blocks[i] = must_get(&f->s, f->size, f->s.streams[1]);
        write_block(f, i);
    }
    for (int i = 0; i < PIECES; i++) {
        if (i % 3 != 0 && i != PINNED && i != USED) {
            CHECK_OK(allot_heap_free(f->s.heap, f->blocks[i]));
            f->blocks[i].value = 0;
        }
    }
    f->pinned = must_pin(&f->s, f->blocks[PINNED]);
    CHECK_OK(allot_heap_use(f->s.heap, f->blocks[USED], f->s.streams[2]));
    return true;
}

static void check_field(field *f)
{
    CHECK_OK(allot_heap_check(f->s.heap));
    CHECK_EQ(address_of(f, f->blocks[PINNED]).address, f->pinned.address);
    for (int i = 0; i < PIECES; i++) {
        CHECK(f->blocks[i].value == 0 || is_whole(f, i));
    }
}

static void field_close(field *f)
{
    check_field(f);
    must_unpin(&f->s, f->blocks[PINNED]);
    for (int i = 0; i < PIECES; i++) {
        if (f->blocks[i].value != 0) {
            CHECK_OK(allot_heap_free(f->s.heap, f->blocks[i]));
        }
    }
    scene_end(&f->s);
}

/** So that what was freed is free for good. */
static void make_quiet(scene *s)
{
    for (int i = 0; i < SCENE_STREAMS; i++) {
        CHECK_OK(allot_device_stream_synchronize(s->device.device, s->streams[i]));
    }
    CHECK_OK(allot_heap_collect(s->heap));
}

static allot_compact_plan *must_plan(scene *s, const allot_compact_plan_options *options)
{
    allot_compact_plan *plan = NULL;
    CHECK_OK(allot_compact_plan_create(s->heap, options, &plan));
    CHECK_OK(allot_compact_plan_check(plan));
    return plan;
}

/* ---- tests ---- */

static void plan_and_run(allot_heap_mode mode)
{
    field f;
    allot_compact_forecast estimate = {0};
    allot_compact_forecast forecast = {0};
    allot_compact_forecast now = {0};
    allot_compact_report report = {0};
    REQUIRE(field_open(&f, mode));
    make_quiet(&f.s);
    CHECK_OK(allot_compact_estimate(f.s.heap, NULL, &estimate));
    allot_compact_plan *const plan = must_plan(&f.s, NULL);
    allot_compact_plan_get_forecast(plan, &forecast);
    CHECK(forecast.moves > 0);
    CHECK_EQ(estimate.moves, forecast.moves);
    CHECK_EQ(estimate.bytes, forecast.bytes);
    CHECK_EQ(estimate.largest_after, forecast.largest_after);
    CHECK_EQ(estimate.releasable_after, forecast.releasable_after);
    CHECK_OK(allot_compact_plan_run(f.s.heap, plan, NULL, &report));
    CHECK_EQ(report.moved, forecast.moves);
    CHECK_EQ(report.bytes, forecast.bytes);
    CHECK_EQ(report.skipped, 0);
    check_field(&f);
    CHECK_OK(allot_compact_estimate(f.s.heap, NULL, &now));
    CHECK_EQ(now.largest_before, forecast.largest_after);
    CHECK_EQ(now.segments_before, forecast.segments_after);
    CHECK_EQ(now.releasable_before, forecast.releasable_after);
    CHECK_OK(allot_compact_plan_run(f.s.heap, plan, NULL, &report));
    CHECK_EQ(report.moved, 0);
    field_close(&f);
    allot_compact_plan_destroy(plan); /* outlives its heap */
}

void plans_come_about_as_foretold(void)
{
    each_mode(plan_and_run);
}

static bool refuse_odd(void *context, const allot_compact_move *move)
{
    field *const f = context;
    CHECK_EQ(address_of(f, move->handle).address, move->from.address);
    const bool is_refused = f->vetoes && move->handle.value % 2 == 1;
    f->veto_count += is_refused;
    return !is_refused;
}

static void look_after(void *context, const allot_compact_move *move)
{
    field *const f = context;
    CHECK_EQ(address_of(f, move->handle).address, move->to.address);
    for (int i = 0; i < PIECES; i++) {
        CHECK(f->blocks[i].value != move->handle.value || is_whole(f, i));
    }
    f->after_count++;
}

static void watch(allot_heap_mode mode)
{
    field f;
    allot_compact_report report = {0};
    REQUIRE(field_open(&f, mode));
    make_quiet(&f.s);
    f.vetoes = true;
    const allot_compact_run_options options = {
        .struct_size = sizeof options, .before = refuse_odd, .after = look_after, .context = &f};
    allot_compact_plan *const plan = must_plan(&f.s, NULL);
    CHECK_OK(allot_compact_plan_run(f.s.heap, plan, &options, &report));
    CHECK_EQ(report.moved, f.after_count);
    CHECK_EQ(report.why[ALLOT_COMPACT_SKIP_VETOED], f.veto_count);
    CHECK(f.veto_count > 0);
    CHECK_EQ(report.moved + report.skipped, allot_compact_plan_count(plan));
    allot_compact_plan_destroy(plan);
    f.vetoes = false;
    allot_compact_plan *const rest = must_plan(&f.s, NULL);
    CHECK_OK(allot_compact_plan_run(f.s.heap, rest, &options, &report));
    CHECK_EQ(report.moved, allot_compact_plan_count(rest));
    allot_compact_plan_destroy(rest);
    field_close(&f);
}

void each_move_can_be_watched_and_refused(void)
{
    each_mode(watch);
}

/** Blocks are freed, pinned, resized and used between plan and run. */
static void change_before_run(allot_heap_mode mode)
{
    field f;
    allot_compact_report report = {0};
    REQUIRE(field_open(&f, mode));
    make_quiet(&f.s);
    allot_compact_plan *const plan = must_plan(&f.s, NULL);
    const uint64_t count = allot_compact_plan_count(plan);
    REQUIRE(CHECK(count >= 4));
    allot_compact_move moves[4];
    for (uint64_t i = 0; i < 4; i++) {
        allot_compact_plan_get_move(plan, i, &moves[i]);
    }
    for (int i = 0; i < PIECES; i++) {
        f.blocks[i].value = f.blocks[i].value == moves[0].handle.value ? 0 : f.blocks[i].value;
    }
    CHECK_OK(allot_heap_free(f.s.heap, moves[0].handle));
    const allot_devptr pinned = must_pin(&f.s, moves[1].handle);
    CHECK_OK(allot_heap_use(f.s.heap, moves[2].handle, f.s.streams[2]));
    CHECK_OK(allot_heap_resize(f.s.heap, moves[3].handle, f.size + 1));
    CHECK_OK(allot_compact_plan_check(plan));
    CHECK_OK(allot_compact_plan_run(f.s.heap, plan, NULL, &report));
    CHECK_EQ(report.moved + report.skipped, count);
    CHECK(report.why[ALLOT_COMPACT_SKIP_FREED] >= 1);
    CHECK(report.why[ALLOT_COMPACT_SKIP_PINNED] >= 1);
    CHECK(report.why[ALLOT_COMPACT_SKIP_IN_USE] >= 1);
    CHECK(report.why[ALLOT_COMPACT_SKIP_RESIZED] + report.why[ALLOT_COMPACT_SKIP_MOVED] >= 1);
    CHECK_EQ(address_of(&f, moves[1].handle).address, pinned.address);
    must_unpin(&f.s, moves[1].handle);
    allot_compact_plan_destroy(plan);
    field_close(&f);
}

void plans_meet_a_heap_that_changed(void)
{
    each_mode(change_before_run);
}

static uint64_t count_overlaps(const allot_compact_plan *plan)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < allot_compact_plan_count(plan); i++) {
        allot_compact_move move;
        allot_compact_plan_get_move(plan, i, &move);
        found +=
            move.to.address < move.from.address && move.to.address + move.size > move.from.address;
    }
    return found;
}

/** Room that there is only where two holes are brought together: what lies between them is larger
 * than either, so that each block overlaps the place that it goes to. */
static void slide(allot_heap_mode mode)
{
    enum { COUNT = 4 };
    const uint64_t size = 3 * MIB;
    scene s = scene_begin((allot_heap_options){
        .mode = mode, .segment_size = 16 * MIB, .reserve_size = 64 * MIB, .limit = 16 * MIB});
    REQUIRE(s.heap != NULL);
    const allot_stream stream = s.streams[1];
    allot_handle blocks[COUNT];
    const allot_handle first = must_get(&s, MIB + 64 * KIB, stream);
    allot_handle second = {0};
    for (unsigned i = 0; i < COUNT; i++) {
        second = i == COUNT / 2 ? must_get(&s, MIB, stream) : second;
        blocks[i] = must_get(&s, size, stream);
        write_pattern(&s.device, stream, must_pin(&s, blocks[i]), i, size);
        must_unpin(&s, blocks[i]);
    }
    CHECK_OK(allot_heap_free(s.heap, first));
    CHECK_OK(allot_heap_free(s.heap, second));
    make_quiet(&s);
    const allot_request request = request_of(2 * MIB, stream);
    const allot_compact_plan_options options = {
        .struct_size = sizeof options, .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = &request};
    allot_compact_plan *const plan = must_plan(&s, &options);
    REQUIRE(plan != NULL);
    allot_compact_report report = {0};
    CHECK_EQ(count_overlaps(plan), COUNT / 2);
    CHECK_OK(allot_compact_plan_run(s.heap, plan, NULL, &report));
    CHECK_EQ(report.moved, allot_compact_plan_count(plan));
    allot_compact_plan_destroy(plan);
    const allot_handle large = must_get(&s, 2 * MIB, stream);
    set_block(&s, large, 0xFF, 2 * MIB, stream);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(holds_pattern(&s.device, stream, must_pin(&s, blocks[i]), i, size));
        must_unpin(&s, blocks[i]);
        CHECK_OK(allot_heap_free(s.heap, blocks[i]));
    }
    CHECK_OK(allot_heap_free(s.heap, large));
    scene_end(&s);
}

void blocks_that_overlap_their_places_keep_their_bytes(void)
{
    each_mode(slide);
}

/** Steps of one move, each while work is queued. */
static void make_steps(allot_heap_mode mode)
{
    field f;
    allot_compactor *compactor = NULL;
    uint64_t id = 0;
    const allot_compactor_task_options task = {.struct_size = sizeof task};
    const allot_compactor_budget budget = {.struct_size = sizeof budget, .moves = 1};
    allot_compactor_step_report report = {.tasks_left = 1};
    REQUIRE(field_open(&f, mode));
    REQUIRE_OK(allot_compactor_create(f.s.heap, NULL, &compactor));
    CHECK_OK(allot_compactor_add(compactor, &task, &id));
    uint64_t moved = 0;
    for (int i = 0; i < 4 * PIECES && report.tasks_left != 0; i++) {
        CHECK_OK(allot_compactor_step(compactor, &budget, &report));
        CHECK(report.moved <= 1);
        moved += report.moved;
        write_block(&f, PINNED);
        write_block(&f, 3 * (i % (PIECES / 3)));
    }
    CHECK_EQ(report.tasks_left, 0);
    CHECK(moved > 0);
    allot_compactor_destroy(compactor);
    field_close(&f);
}

void steps_keep_bytes_of_queued_work(void)
{
    each_mode(make_steps);
}

static void hold_budgets(allot_heap_mode mode)
{
    field f;
    allot_compact_forecast forecast = {0};
    REQUIRE(field_open(&f, mode));
    make_quiet(&f.s);
    allot_compact_plan_options options = {.struct_size = sizeof options, .moves_max = 2};
    CHECK_OK(allot_compact_estimate(f.s.heap, &options, &forecast));
    CHECK(forecast.moves <= 2);
    options = (allot_compact_plan_options){.struct_size = sizeof options,
                                           .bytes_max = 3 * f.size + 2 * KIB};
    CHECK_OK(allot_compact_estimate(f.s.heap, &options, &forecast));
    CHECK(forecast.bytes <= options.bytes_max);
    options = (allot_compact_plan_options){.struct_size = sizeof options, .time_max_ns = 1};
    CHECK_OK(allot_compact_estimate(f.s.heap, &options, &forecast));
    CHECK_EQ(forecast.moves, 0);
    const allot_request request = request_of(3 * MIB, f.s.streams[1]);
    options = (allot_compact_plan_options){
        .struct_size = sizeof options, .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = &request};
    allot_compact_plan *const plan = must_plan(&f.s, &options);
    CHECK_OK(allot_compact_plan_run(f.s.heap, plan, NULL, NULL));
    allot_compact_plan_destroy(plan);
    CHECK_OK(allot_compact_estimate(f.s.heap, &options, &forecast));
    CHECK_EQ(forecast.bytes, 0);
    field_close(&f);
}

void plans_stay_within_their_budgets(void)
{
    each_mode(hold_budgets);
}
