/* SPDX-License-Identifier: MIT */
/* Sliding: blocks move down by less than their own length where no hole is large enough for them,
 * and lose nothing, whatever fails on the way. */
#include <allot/compact.h>
#include <string.h>

#include "compact/plan.h"
#include "heap/heap.h"
#include "heap/move.h"
#include "support/check.h"
#include "support/compact_scene.h"

/* In mode VIRTUAL as many as fill whole granules, with and without a rest of six holes. */
enum { COUNT = 12, COUNT_VIRTUAL = 64, COUNT_VIRTUAL_REST = 42, EDGE = 512 };

#define LARGE (256 * KIB)
#define SMALL (32 * KIB)

static const allot_stream default_stream = {0};

/** What a block has between its first and last bytes: every part of it differs. */
static void make_bytes(const held *b, uint8_t *bytes, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(b->handle.value * 37 + i * 31 + (i >> 8) * 7 + (i >> 16));
    }
}

static void write_bytes(scene *s)
{
    static uint8_t bytes[LARGE];
    for (uint32_t i = 0; i < s->count; i++) {
        const held *const b = &s->blocks[i];
        const uint64_t size = b->size - 2 * EDGE;
        allot_devptr at;
        make_bytes(b, bytes, size);
        CHECK_OK(allot_heap_pin(s->heap, b->handle, &at));
        at.address += EDGE;
        CHECK_OK(allot_device_write(s->device, default_stream, at, bytes, size));
        CHECK_OK(allot_device_stream_synchronize(s->device, default_stream));
        CHECK_OK(allot_heap_unpin(s->heap, b->handle));
    }
}

static void check_bytes(scene *s)
{
    static uint8_t bytes[2][LARGE];
    for (uint32_t i = 0; i < s->count; i++) {
        const held *const b = &s->blocks[i];
        const uint64_t size = b->size - 2 * EDGE;
        allot_devptr at;
        make_bytes(b, bytes[0], size);
        CHECK_OK(allot_heap_pin(s->heap, b->handle, &at));
        at.address += EDGE;
        CHECK_OK(allot_device_read(s->device, default_stream, bytes[1], at, size));
        CHECK_OK(allot_device_stream_synchronize(s->device, default_stream));
        CHECK_OK(allot_heap_unpin(s->heap, b->handle));
        CHECK_EQ(memcmp(bytes[0], bytes[1], size), 0);
    }
}

/** One segment with a block of 256 KiB behind each hole of 32 KiB, and no other free memory but
 * `rest` at its end. */
static bool open_holes(scene *s, const allot_heap_options *base, uint64_t rest)
{
    allot_heap_options options = *base;
    const int count = options.mode != ALLOT_HEAP_MODE_VIRTUAL ? COUNT
                      : rest == 0                             ? COUNT_VIRTUAL
                                                              : COUNT_VIRTUAL_REST;
    options.segment_size = (uint64_t)count * (LARGE + SMALL) + rest;
    options.limit = options.segment_size;
    if (!scene_open(s, &options)) {
        return false;
    }
    const uint64_t zones = 2 * s->heap->red_zone;
    for (int i = 0; i < 2 * count; i++) {
        CHECK(scene_get(s, (i % 2 == 0 ? SMALL : LARGE) - zones));
    }
    for (uint32_t i = s->count; i-- > 0;) {
        if (s->blocks[i].size <= SMALL) {
            scene_drop(s, i);
        }
    }
    write_bytes(s);
    return true;
}

/** All is well, and nothing is left. */
static void close_holes(scene *s)
{
    CHECK_OK(allot_heap_check(s->heap));
    check_bytes(s);
    scene_close(s);
}

static allot_heap_options segments(void)
{
    allot_heap_options options = scene_segments();
    options.mode = ALLOT_HEAP_MODE_SEGMENTS;
    return options;
}

static allot_compact_plan *plan_of(scene *s, const allot_compact_plan_options *options)
{
    allot_compact_plan *plan = NULL;
    if (CHECK_OK(allot_compact_plan_create(s->heap, options, &plan))) {
        CHECK_OK(allot_compact_plan_check(plan));
    }
    return plan;
}

static uint64_t slides_of(const allot_compact_plan *plan)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < plan->move_count; i++) {
        count += alloti_plan_is_slide(plan, &plan->moves[i]);
    }
    return count;
}

/* ---- what is gained ---- */

static void check_full(const allot_heap_options *options)
{
    scene s;
    allot_compact_forecast f;
    allot_compact_forecast after;
    allot_compact_report report;
    REQUIRE(open_holes(&s, options, 0));
    allot_compact_plan *const plan = plan_of(&s, NULL);
    allot_compact_plan_get_forecast(plan, &f);
    CHECK(slides_of(plan) > 0);
    CHECK(f.largest_after * 8 >= f.size_free * 7);
    CHECK_OK(allot_compact_plan_run(s.heap, plan, NULL, &report));
    CHECK_OK(allot_heap_check(s.heap));
    CHECK_EQ(report.moved, f.moves);
    CHECK_EQ(report.bytes, f.bytes);
    CHECK_OK(allot_compact_estimate(s.heap, NULL, &after));
    CHECK_EQ(after.largest_before, f.largest_after);
    allot_compact_plan_destroy(plan);
    close_holes(&s);
}

static void small_holes_come_together(void)
{
    static const allot_space_strategy strategies[] = {
        ALLOT_SPACE_STRATEGY_FIRST_FIT, ALLOT_SPACE_STRATEGY_BEST_FIT, ALLOT_SPACE_STRATEGY_TLSF,
        ALLOT_SPACE_STRATEGY_ADAPTIVE};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        allot_heap_options options = segments();
        options.strategy = strategies[i];
        if (strategies[i] != ALLOT_SPACE_STRATEGY_ADAPTIVE) { /* which chooses its own segments */
            check_full(&options);
        }
        options.mode = ALLOT_HEAP_MODE_VIRTUAL;
        check_full(&options);
    }
}

static void debug_and_scrubbing_heaps_slide(void)
{
    allot_heap_options options = segments();
    options.scrub = ALLOT_HEAP_SCRUB_FREE;
    check_full(&options);
    options.scrub = ALLOT_HEAP_SCRUB_REUSE;
    check_full(&options);
    options.scrub = ALLOT_HEAP_SCRUB_NEVER;
    options.is_debug = true;
    check_full(&options);
}

static void a_request_gets_room_between_blocks(void)
{
    const allot_request request = {.struct_size = sizeof request, .size = 3 * SMALL};
    const allot_compact_plan_options goal = {
        .struct_size = sizeof goal, .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = &request};
    const allot_heap_options options = segments();
    scene s;
    allot_handle handle;
    REQUIRE(open_holes(&s, &options, 0));
    allot_compact_plan *const plan = plan_of(&s, &goal);
    CHECK_EQ(allot_compact_plan_count(plan), 2);
    CHECK_EQ(slides_of(plan), 2);
    CHECK_OK(allot_compact_plan_run(s.heap, plan, NULL, NULL));
    CHECK_OK(allot_heap_alloc(s.heap, &request, &handle));
    CHECK_OK(allot_heap_free(s.heap, handle));
    allot_compact_plan_destroy(plan);
    close_holes(&s);
}

static void what_is_pinned_is_not_slid_over(void)
{
    const allot_heap_options options = segments();
    scene s;
    allot_devptr at;
    allot_compact_forecast f;
    allot_block_info info;
    REQUIRE(open_holes(&s, &options, 0));
    const allot_handle middle = s.blocks[COUNT / 2].handle;
    CHECK_OK(allot_heap_pin(s.heap, middle, &at));
    allot_compact_plan *const plan = plan_of(&s, NULL);
    allot_compact_plan_get_forecast(plan, &f);
    CHECK(f.largest_after > f.largest_before);
    CHECK(f.largest_after < f.size_free);
    CHECK_OK(allot_compact_plan_run(s.heap, plan, NULL, NULL));
    CHECK_OK(allot_heap_get_block(s.heap, middle, &info));
    CHECK_EQ(info.ptr.address, at.address);
    CHECK_OK(allot_heap_unpin(s.heap, middle));
    allot_compact_plan_destroy(plan);
    close_holes(&s);
}

static void budgets_bound_slides(void)
{
    const allot_compact_plan_options few = {.struct_size = sizeof few, .moves_max = 3};
    const allot_heap_options options = segments();
    scene s;
    allot_compact_forecast f;
    REQUIRE(open_holes(&s, &options, 0));
    CHECK_OK(allot_compact_estimate(s.heap, &few, &f));
    CHECK(f.moves > 0);
    CHECK(f.moves <= 3);
    CHECK(f.largest_after > f.largest_before);
    close_holes(&s);
}

/* [free 512][2 MiB][free 512]: it would take 4096 copies. */
static void a_large_block_does_not_slide_by_a_little(void)
{
    allot_heap_options options = segments();
    scene s;
    options.segment_size = options.limit = 2 * MIB + 1024;
    REQUIRE(scene_open(&s, &options));
    CHECK(scene_get(&s, 512));
    CHECK(scene_get(&s, 2 * MIB));
    scene_drop(&s, 0);
    allot_compact_plan *const plan = plan_of(&s, NULL);
    CHECK_EQ(allot_compact_plan_count(plan), 0);
    allot_compact_plan_destroy(plan);
    scene_close(&s);
}

static void slides_wait_for_other_streams_if_asked(void)
{
    const allot_compact_plan_options goal = {.struct_size = sizeof goal, .waits = true};
    const allot_compact_run_options run = {.struct_size = sizeof run, .waits = true};
    const allot_heap_options options = segments();
    scene s;
    allot_stream side;
    allot_compact_report report;
    REQUIRE(open_holes(&s, &options, 0));
    CHECK_OK(allot_device_stream_create(s.failing, &side));
    for (uint32_t i = 0; i < s.count; i++) {
        CHECK_OK(allot_heap_use(s.heap, s.blocks[i].handle, side));
    }
    allot_compact_plan *const plan = plan_of(&s, &goal);
    CHECK(slides_of(plan) > 0);
    CHECK_OK(allot_compact_plan_run(s.heap, plan, &run, &report));
    CHECK_EQ(report.skipped, 0);
    CHECK_EQ(report.moved, allot_compact_plan_count(plan));
    CHECK_OK(allot_heap_end_stream(s.heap, side));
    CHECK_OK(allot_device_stream_destroy(s.failing, side));
    allot_compact_plan_destroy(plan);
    close_holes(&s);
}

/* ---- chunks ---- */

static uint64_t copied_bytes(const scene *s)
{
    allot_device_counts counts;
    allot_device_get_counts(s->device, &counts);
    return counts.size_copied;
}

/** The block at the highest address. */
static allot_handle highest(scene *s)
{
    allot_block_info info;
    allot_block_info best = {0};
    for (uint32_t i = 0; i < s->count; i++) {
        CHECK_OK(allot_heap_get_block(s->heap, s->blocks[i].handle, &info));
        best = info.ptr.address > best.ptr.address ? info : best;
    }
    return best.handle;
}

/** A scene whose slides go through a stage: each copy takes a second, so few large ones are better.
 * The last block is pinned, so that the free memory above it stays. */
static bool open_staged(scene *s, allot_heap_mode mode, allot_compact_plan **plan)
{
    const allot_request request = {.struct_size = sizeof request, .size = 10 * SMALL};
    const allot_compact_plan_options goal = {
        .struct_size = sizeof goal, .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = &request};
    allot_heap_options options = segments();
    allot_devptr at;
    options.mode = mode;
    if (!open_holes(s, &options, 6 * SMALL) ||
        !CHECK_OK(allot_heap_pin(s->heap, highest(s), &at))) {
        return false;
    }
    s->heap->info.copy_latency_ns = 1000000000;
    s->heap->info.copy_bytes_per_s = UINT64_C(1) << 40;
    *plan = plan_of(s, &goal);
    return true;
}

static void many_small_chunks_go_through_a_stage(void)
{
    for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
        scene s;
        allot_compact_forecast f;
        allot_compact_report report;
        allot_compact_plan *plan = NULL;
        REQUIRE(open_staged(&s, (allot_heap_mode)mode, &plan));
        allot_compact_plan_get_forecast(plan, &f);
        CHECK_EQ(plan->moves[0].stage, 6 * SMALL);
        CHECK(f.bytes_copied > f.bytes);
        const uint64_t before = copied_bytes(&s);
        CHECK_OK(allot_compact_plan_run(s.heap, plan, NULL, &report));
        CHECK_EQ(report.moved, f.moves);
        CHECK_EQ(copied_bytes(&s) - before, f.bytes_copied);
        CHECK_OK(allot_heap_unpin(s.heap, highest(&s)));
        allot_compact_plan_destroy(plan);
        close_holes(&s);
    }
}

static void a_stage_that_is_gone_is_done_without(void)
{
    scene s;
    allot_compact_report report;
    allot_compact_plan *plan = NULL;
    REQUIRE(open_staged(&s, ALLOT_HEAP_MODE_SEGMENTS, &plan));
    const allot_handle last = highest(&s);
    CHECK(scene_get(&s, 6 * SMALL));
    write_bytes(&s);
    CHECK_OK(allot_compact_plan_run(s.heap, plan, NULL, &report));
    CHECK_EQ(report.skipped, 0);
    CHECK_OK(allot_heap_unpin(s.heap, last));
    allot_compact_plan_destroy(plan);
    close_holes(&s);
}

/* ---- failures ---- */

static allot_failing_options failing(uint64_t nth, uint64_t every)
{
    return (allot_failing_options){.struct_size = sizeof(allot_failing_options),
                                   .nth = nth,
                                   .every = every,
                                   .call_mask = UINT64_C(1) << ALLOT_DEVICE_CALL_COPY};
}

/** The n-th copy fails; whether there was one. */
static bool check_failure(bool is_staged, uint64_t n)
{
    const allot_failing_options once = failing(n, 0);
    const allot_failing_options never = failing(0, 0);
    const allot_heap_options options = segments();
    scene s;
    allot_compact_report report;
    allot_compact_plan *plan = NULL;
    if (is_staged) {
        CHECK(open_staged(&s, ALLOT_HEAP_MODE_SEGMENTS, &plan));
    } else {
        CHECK(open_holes(&s, &options, 0));
        plan = plan_of(&s, NULL);
    }
    CHECK_OK(allot_failing_arm(s.failing, &once));
    const allot_status status = allot_compact_plan_run(s.heap, plan, NULL, &report);
    CHECK(status == ALLOT_STATUS_OK || status == ALLOT_STATUS_BACKEND);
    CHECK_OK(allot_failing_arm(s.failing, &never));
    CHECK_OK(allot_heap_check(s.heap));
    check_bytes(&s);
    /* What is left of it can be done still. */
    CHECK_OK(allot_compact_plan_run(s.heap, plan, NULL, NULL));
    if (is_staged) {
        CHECK_OK(allot_heap_unpin(s.heap, highest(&s)));
    }
    allot_compact_plan_destroy(plan);
    close_holes(&s);
    return status != ALLOT_STATUS_OK;
}

static void a_slide_that_fails_is_undone(void)
{
    for (int is_staged = 0; is_staged < 2; is_staged++) {
        uint64_t n = 1;
        while (check_failure(is_staged != 0, n)) {
            n++;
        }
        CHECK(n > COUNT);
    }
}

/* The third chunk does not come down. Of those before it the second comes back, the first does not,
 * which is the fifth copy. */
static void a_block_that_cannot_be_put_back_is_lost_and_told(void)
{
    const allot_heap_options options = segments();
    const allot_failing_options never = failing(0, 0);
    const allot_failing_options third = failing(3, 5);
    scene s;
    allot_devptr at;
    allot_compact_move move;
    REQUIRE(open_holes(&s, &options, 0));
    allot_compact_plan *const plan = plan_of(&s, NULL);
    allot_compact_plan_get_move(plan, 0, &move);
    CHECK_OK(allot_failing_arm(s.failing, &third));
    const allot_status status = allot_compact_plan_run(s.heap, plan, NULL, NULL);
    CHECK_EQ(status, ALLOT_STATUS_BACKEND);
    CHECK_CONTAINS(allot_error_detail(), "is lost");
    CHECK_OK(allot_failing_arm(s.failing, &never));
    CHECK_OK(allot_heap_check(s.heap));
    uint32_t lost = 0;
    while (lost < s.count && s.blocks[lost].handle.value != move.handle.value) {
        lost++;
    }
    REQUIRE(lost < s.count);
    CHECK_EQ(allot_heap_pin(s.heap, move.handle, &at), ALLOT_STATUS_NOT_FOUND);
    scene_drop(&s, lost);
    allot_compact_plan_destroy(plan);
    close_holes(&s);
}

static void the_simulator_knows_slides(void)
{
    const allot_heap_options options = segments();
    scene s;
    REQUIRE(open_holes(&s, &options, 0));
    allot_compact_plan *const plan = plan_of(&s, NULL);
    plan_move *const move = &plan->moves[1];
    const plan_move right = *move;
    move->to -= SMALL;
    CHECK_EQ(allot_compact_plan_check(plan), ALLOT_STATUS_MISMATCH);
    CHECK_CONTAINS(allot_error_detail(), "not free");
    *move = right;
    move->to = move->from + SMALL;
    CHECK_EQ(allot_compact_plan_check(plan), ALLOT_STATUS_MISMATCH);
    CHECK_CONTAINS(allot_error_detail(), "downwards only");
    *move = right;
    CHECK_OK(allot_compact_plan_check(plan));
    allot_compact_plan_destroy(plan);
    close_holes(&s);
}

static const check_test tests[] = {
    {"small_holes_come_together", small_holes_come_together},
    {"debug_and_scrubbing_heaps_slide", debug_and_scrubbing_heaps_slide},
    {"a_request_gets_room_between_blocks", a_request_gets_room_between_blocks},
    {"what_is_pinned_is_not_slid_over", what_is_pinned_is_not_slid_over},
    {"budgets_bound_slides", budgets_bound_slides},
    {"a_large_block_does_not_slide_by_a_little", a_large_block_does_not_slide_by_a_little},
    {"slides_wait_for_other_streams_if_asked", slides_wait_for_other_streams_if_asked},
    {"many_small_chunks_go_through_a_stage", many_small_chunks_go_through_a_stage},
    {"a_stage_that_is_gone_is_done_without", a_stage_that_is_gone_is_done_without},
    {"a_slide_that_fails_is_undone", a_slide_that_fails_is_undone},
    {"a_block_that_cannot_be_put_back_is_lost_and_told",
     a_block_that_cannot_be_put_back_is_lost_and_told},
    {"the_simulator_knows_slides", the_simulator_knows_slides},
};

CHECK_MAIN(tests)
