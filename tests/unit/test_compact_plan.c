/* SPDX-License-Identifier: MIT */
/* Plans of compaction: what they promise, that they keep it, and what they do when the heap has
 * changed meanwhile. */
#include <allot/compact.h>
#include <string.h>

#include "compact/plan.h"
#include "heap/block.h"
#include "heap/move.h"
#include "support/alloc_fault.h"
#include "support/check.h"
#include "support/compact_scene.h"

static allot_compact_plan *plan_of(scene *s, const allot_compact_plan_options *options)
{
    allot_compact_plan *plan = NULL;
    if (CHECK_OK(allot_compact_plan_create(s->heap, options, &plan))) {
        CHECK_OK(allot_compact_plan_check(plan));
    }
    return plan;
}

static allot_compact_report run_plan(scene *s, const allot_compact_plan *plan)
{
    allot_compact_report report = {0};
    CHECK_OK(allot_compact_plan_run(s->heap, plan, NULL, &report));
    CHECK_OK(allot_heap_check(s->heap));
    return report;
}

/* ---- what is promised is kept ---- */

static void estimating_moves_nothing(void)
{
    scene s;
    allot_devptr before[16];
    allot_compact_forecast f;
    allot_block_info info;
    REQUIRE(scene_open_quarters(&s));
    for (uint32_t i = 0; i < s.count; i++) {
        CHECK_OK(allot_heap_get_block(s.heap, s.blocks[i].handle, &info));
        before[i] = info.ptr;
    }
    CHECK_OK(allot_compact_estimate(s.heap, NULL, &f));
    CHECK_EQ(f.segments_before, 4);
    CHECK_EQ(f.segments_after, 1);
    CHECK_EQ(f.releasable_before, 0);
    CHECK_EQ(f.releasable_after, 3 * SEGMENT);
    CHECK_EQ(f.largest_before, 3 * 256 * KIB);
    CHECK_EQ(f.largest_after, SEGMENT);
    CHECK_EQ(f.moves, 12);
    CHECK_EQ(f.bytes, 3 * MIB);
    CHECK_EQ(f.benefit, 3 * SEGMENT - 3 * MIB);
    CHECK(f.fragmentation_after < f.fragmentation_before);
    CHECK(f.time_ns > 0);
    for (uint32_t i = 0; i < s.count; i++) {
        CHECK_OK(allot_heap_get_block(s.heap, s.blocks[i].handle, &info));
        CHECK_EQ(info.ptr.address, before[i].address);
    }
    scene_close(&s);
}

static void the_weight_of_moved_bytes_counts(void)
{
    const allot_compact_plan_options dear = {.struct_size = sizeof dear, .weight = 10};
    const allot_compact_plan_options wrong = {.struct_size = sizeof wrong, .weight = -1};
    scene s;
    allot_compact_forecast f;
    REQUIRE(scene_open_quarters(&s));
    CHECK_OK(allot_compact_estimate(s.heap, &dear, &f));
    CHECK(f.benefit == (int64_t)(3 * SEGMENT) - (int64_t)(30 * MIB));
    CHECK_EQ(allot_compact_estimate(s.heap, &wrong, &f), ALLOT_STATUS_INVALID);
    scene_close(&s);
}

static void emptied_segments_go_back(void)
{
    scene s;
    REQUIRE(scene_open_quarters(&s));
    allot_compact_plan *const plan = plan_of(&s, NULL);
    const allot_compact_report report = run_plan(&s, plan);
    CHECK_EQ(report.moved, 12);
    CHECK_EQ(report.bytes, 3 * MIB);
    CHECK_EQ(report.skipped, 0);
    uint64_t released = 0;
    CHECK_OK(allot_heap_trim(s.heap, 0, &released));
    CHECK_EQ(released, 3 * SEGMENT);
    allot_compact_plan_destroy(plan);
    scene_close(&s);
}

static void one_segment_is_packed_downwards(void)
{
    allot_heap_options options = scene_segments();
    options.segment_size = options.limit = 4 * SEGMENT;
    scene s;
    allot_compact_forecast f;
    REQUIRE(scene_open(&s, &options));
    for (int i = 0; i < 64; i++) {
        CHECK(scene_get(&s, 256 * KIB));
    }
    for (uint32_t i = 64; i-- > 0;) {
        if (i % 2 != 0) {
            scene_drop(&s, i);
        }
    }
    allot_compact_plan *const plan = plan_of(&s, NULL);
    allot_compact_plan_get_forecast(plan, &f);
    CHECK_EQ(f.moves, 16);
    CHECK_EQ(f.largest_after, 2 * SEGMENT);
    (void)run_plan(&s, plan);
    CHECK(scene_get(&s, 2 * SEGMENT));
    allot_compact_plan_destroy(plan);
    scene_close(&s);
}

static void small_blocks_make_way_for_large_ones(void)
{
    const allot_heap_options options = scene_segments();
    scene s;
    REQUIRE(scene_open(&s, &options));
    /* First segment: holes of 768 and 764 KiB with a small block between; second: 1,280 KiB. */
    CHECK(scene_get(&s, 1536 * KIB));
    CHECK(scene_get(&s, 768 * KIB));
    CHECK(scene_get(&s, 4 * KIB));
    CHECK(scene_get(&s, 764 * KIB));
    CHECK(scene_get(&s, 1024 * KIB));
    CHECK(scene_get(&s, 1280 * KIB));
    scene_drop(&s, 3);
    scene_drop(&s, 1);
    allot_compact_plan *const plan = plan_of(&s, NULL);
    const allot_compact_report report = run_plan(&s, plan);
    CHECK_EQ(report.moved, 2);
    CHECK_EQ(report.bytes, 1284 * KIB);
    allot_compact_plan_destroy(plan);
    scene_close(&s);
}

static void room_is_made_as_planned(void)
{
    const allot_request request = {.struct_size = sizeof request, .size = 2 * MIB};
    const allot_request huge = {.struct_size = sizeof request, .size = 2 * SEGMENT};
    allot_compact_plan_options goal = {
        .struct_size = sizeof goal, .goal = ALLOT_COMPACT_GOAL_MAKE_ROOM, .request = &request};
    scene s;
    REQUIRE(scene_open_quarters(&s));
    allot_compact_plan *plan = plan_of(&s, &goal);
    CHECK_EQ(allot_compact_plan_count(plan), 2);
    (void)run_plan(&s, plan);
    allot_compact_plan_destroy(plan);
    plan = plan_of(&s, &goal);
    CHECK_EQ(allot_compact_plan_count(plan), 0);
    allot_compact_plan_destroy(plan);
    plan = NULL;
    goal.request = &huge;
    CHECK_EQ(allot_compact_plan_create(s.heap, &goal, &plan), ALLOT_STATUS_FRAGMENTED);
    goal.request = NULL;
    CHECK_EQ(allot_compact_plan_create(s.heap, &goal, &plan), ALLOT_STATUS_INVALID);
    CHECK(plan == NULL);
    scene_close(&s);
}

/* ---- budgets ---- */

static void budgets_hold(void)
{
    const allot_compact_plan_options bounds[] = {
        {.struct_size = sizeof bounds[0], .bytes_max = 2 * MIB},
        {.struct_size = sizeof bounds[0], .moves_max = 5},
        {.struct_size = sizeof bounds[0], .time_max_ns = 1},
    };
    static const uint64_t moves[] = {8, 4, 0};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        scene s;
        REQUIRE(scene_open_quarters(&s));
        allot_compact_plan *const plan = plan_of(&s, &bounds[i]);
        CHECK_EQ(allot_compact_plan_count(plan), moves[i]);
        CHECK_EQ(run_plan(&s, plan).moved, moves[i]);
        allot_compact_plan_destroy(plan);
        scene_close(&s);
    }
}

static void a_run_ends_when_its_time_is_up(void)
{
    const allot_compact_run_options brief = {.struct_size = sizeof brief, .time_max_ns = 1};
    scene s;
    allot_compact_report report;
    REQUIRE(scene_open_quarters(&s));
    allot_compact_plan *const plan = plan_of(&s, NULL);
    CHECK_OK(allot_compact_plan_run(s.heap, plan, &brief, &report));
    CHECK_EQ(report.moved + report.skipped, allot_compact_plan_count(plan));
    CHECK_EQ(report.why[ALLOT_COMPACT_SKIP_BUDGET], report.skipped);
    CHECK(report.skipped != 0);
    allot_compact_plan_destroy(plan);
    scene_close(&s);
}

static void no_move_is_begun_that_would_end_too_late(void)
{
    scene s;
    allot_compact_report report;
    REQUIRE(scene_open_quarters(&s));
    allot_compact_plan *const plan = plan_of(&s, NULL);
    plan->state.info.page = 0;
    plan->state.info.copy_latency_ns = 0;
    plan->state.info.copy_bytes_per_s = 1; /* three days a move */
    const uint64_t move_ns = 256 * KIB * UINT64_C(1000000000);
    const allot_compact_run_options options = {.struct_size = sizeof options,
                                               .time_max_ns = 3 * move_ns + move_ns / 2};
    CHECK_OK(allot_compact_plan_run(s.heap, plan, &options, &report));
    CHECK_EQ(report.moved, 3);
    CHECK_EQ(report.why[ALLOT_COMPACT_SKIP_BUDGET], allot_compact_plan_count(plan) - 3);
    allot_compact_plan_destroy(plan);
    scene_close(&s);
}

/* ---- the heap has changed meanwhile ---- */

static void another_block_at_the_same_place_is_not_moved(void)
{
    scene s;
    uint32_t index = 0;
    uint32_t ghost = 0;
    uint64_t word = 0;
    const allot_heap_options options = scene_segments();
    REQUIRE(scene_open(&s, &options));
    CHECK(scene_get(&s, 256 * KIB));
    const allot_handle old = s.blocks[0].handle;
    CHECK_OK(alloti_block_find(s.heap, old, &index, &word));
    const uint64_t address = heap_block_at(s.heap, index)->address;
    scene_drop(&s, 0);
    CHECK(scene_get(&s, 256 * KIB));
    CHECK_OK(alloti_block_find(s.heap, s.blocks[0].handle, &index, &word));
    CHECK_EQ(heap_block_at(s.heap, index)->address, address);
    CHECK_OK(alloti_heap_enter(s.heap));
    heap_ask ask = alloti_ask_like(s.heap, index, 256 * KIB);
    ask.arena = heap_block_at(s.heap, index)->arena;
    ask.size = ask.request.size;
    ask.align = s.heap->options.granule;
    CHECK_OK(alloti_block_take(s.heap, &ghost));
    CHECK_OK(alloti_place_in(s.heap, ask.arena, &ask, HEAP_BOUND_NONE));
    CHECK_EQ(alloti_block_carry(s.heap, old, ghost, &ask), ALLOT_STATUS_INVALID);
    CHECK_OK(heap_leave(s.heap, ALLOT_STATUS_OK));
    CHECK_EQ(heap_block_at(s.heap, index)->address, address);
    CHECK_OK(allot_heap_check(s.heap));
    scene_close(&s);
}

static uint32_t block_of(const scene *s, const allot_compact_plan *plan, uint64_t move)
{
    allot_compact_move m;
    allot_compact_plan_get_move(plan, move, &m);
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->blocks[i].handle.value == m.handle.value) {
            return i;
        }
    }
    CHECK(false);
    return 0;
}

static void what_changed_is_skipped_and_told(void)
{
    scene s;
    allot_devptr at;
    allot_stream side;
    allot_compact_move taken;
    REQUIRE(scene_open_quarters(&s));
    CHECK_OK(allot_device_stream_create(s.failing, &side));
    allot_compact_plan *const plan = plan_of(&s, NULL);
    const held pinned = s.blocks[block_of(&s, plan, 0)];
    CHECK_OK(allot_heap_pin(s.heap, pinned.handle, &at));
    CHECK_OK(allot_heap_use(s.heap, s.blocks[block_of(&s, plan, 1)].handle, side));
    held *const shrunk = &s.blocks[block_of(&s, plan, 2)];
    shrunk->size = 64 * KIB;
    CHECK_OK(allot_heap_resize(s.heap, shrunk->handle, shrunk->size));
    held *const grown = &s.blocks[block_of(&s, plan, 3)];
    CHECK_OK(allot_heap_resize(s.heap, grown->handle, 2 * MIB));
    CHECK_OK(allot_heap_resize(s.heap, grown->handle, grown->size));
    scene_drop(&s, block_of(&s, plan, 4));
    /* The lowest hole is the destination of some move. */
    CHECK(scene_get(&s, 256 * KIB));
    allot_compact_report report = run_plan(&s, plan);
    CHECK_EQ(report.why[ALLOT_COMPACT_SKIP_PINNED], 1);
    CHECK_EQ(report.why[ALLOT_COMPACT_SKIP_IN_USE], 1);
    CHECK_EQ(report.why[ALLOT_COMPACT_SKIP_RESIZED], 1);
    CHECK_EQ(report.why[ALLOT_COMPACT_SKIP_MOVED] + report.why[ALLOT_COMPACT_SKIP_RESIZED] +
                 report.why[ALLOT_COMPACT_SKIP_TAKEN],
             report.skipped - 3);
    CHECK_EQ(report.why[ALLOT_COMPACT_SKIP_FREED], 1);
    CHECK_EQ(report.moved + report.skipped, allot_compact_plan_count(plan));
    /* Once more: what was moved is elsewhere. */
    report = run_plan(&s, plan);
    CHECK_EQ(report.moved, 0);
    allot_compact_plan_get_move(plan, 0, &taken);
    CHECK_EQ(taken.handle.value, pinned.handle.value);
    CHECK_OK(allot_heap_unpin(s.heap, pinned.handle));
    CHECK_OK(allot_heap_end_stream(s.heap, side));
    CHECK_OK(allot_device_stream_destroy(s.failing, side));
    allot_compact_plan_destroy(plan);
    scene_close(&s);
}

static bool refuse_odd(void *context, const allot_compact_move *move)
{
    uint64_t *const calls = context;
    (void)move;
    return calls[0]++ % 2 == 0;
}

static void count_after(void *context, const allot_compact_move *move)
{
    uint64_t *const calls = context;
    calls[1] += move->size;
}

static void the_owner_may_refuse(void)
{
    uint64_t calls[2] = {0};
    const allot_compact_run_options options = {.struct_size = sizeof options,
                                               .before = refuse_odd,
                                               .after = count_after,
                                               .context = calls};
    scene s;
    allot_compact_report report;
    REQUIRE(scene_open_quarters(&s));
    allot_compact_plan *const plan = plan_of(&s, NULL);
    CHECK_OK(allot_compact_plan_run(s.heap, plan, &options, &report));
    CHECK_EQ(report.why[ALLOT_COMPACT_SKIP_VETOED], 6);
    CHECK_EQ(report.moved, 6);
    CHECK_EQ(calls[1], report.bytes);
    CHECK_STR(allot_compact_skip_text(ALLOT_COMPACT_SKIP_VETOED), "the caller's callback refused");
    CHECK_STR(allot_compact_skip_text(ALLOT_COMPACT_SKIP_COUNT), "unknown");
    allot_compact_plan_destroy(plan);
    scene_close(&s);
}

static void a_plan_is_for_one_heap(void)
{
    scene s;
    scene other;
    allot_compact_report report;
    REQUIRE(scene_open_quarters(&s));
    REQUIRE(scene_open_quarters(&other));
    allot_compact_plan *const plan = plan_of(&s, NULL);
    CHECK_EQ(allot_compact_plan_run(other.heap, plan, NULL, &report), ALLOT_STATUS_INVALID);
    CHECK_EQ(report.moved, 0);
    allot_compact_plan_destroy(plan);
    scene_close(&other);
    scene_close(&s);
}

/* ---- the simulator ---- */

static void the_simulator_finds_what_is_wrong(void)
{
    scene s;
    REQUIRE(scene_open_quarters(&s));
    allot_compact_plan *const plan = plan_of(&s, NULL);
    plan_move *const move = &plan->moves[3];
    const plan_move right = *move;
    move->to = plan->moves[2].to;
    CHECK_EQ(allot_compact_plan_check(plan), ALLOT_STATUS_MISMATCH);
    CHECK_CONTAINS(allot_error_detail(), "not free");
    *move = right;
    move->to = SEGMENT - 4 * KIB;
    CHECK_EQ(allot_compact_plan_check(plan), ALLOT_STATUS_MISMATCH);
    CHECK_CONTAINS(allot_error_detail(), "outside");
    *move = right;
    move->to += 1;
    CHECK_EQ(allot_compact_plan_check(plan), ALLOT_STATUS_MISMATCH);
    CHECK_CONTAINS(allot_error_detail(), "not aligned");
    *move = right;
    move->block = plan->moves[2].block;
    CHECK_EQ(allot_compact_plan_check(plan), ALLOT_STATUS_MISMATCH);
    CHECK_CONTAINS(allot_error_detail(), "not there");
    *move = right;
    plan->state.blocks[move->block].is_movable = false;
    CHECK_EQ(allot_compact_plan_check(plan), ALLOT_STATUS_MISMATCH);
    CHECK_CONTAINS(allot_error_detail(), "cannot be moved");
    plan->state.blocks[move->block].is_movable = true;
    CHECK_OK(allot_compact_plan_check(plan));
    allot_compact_plan_destroy(plan);
    scene_close(&s);
}

/* ---- random heaps ---- */

/** Blocks of all sizes come and go; some are pinned. */
static void churn(scene *s, allot_devptr *pins, uint32_t pin_count)
{
    for (int i = 0; i < 500; i++) {
        const unsigned octave = (unsigned)check_random_range(&s->random, 9, 20);
        if (!scene_get(
                s, check_random_range(&s->random, UINT64_C(1) << octave, UINT64_C(2) << octave)) &&
            s->count != 0) {
            scene_drop(s, (uint32_t)check_random_range(&s->random, 0, s->count - 1));
        }
    }
    for (uint32_t i = s->count; i-- > pin_count;) {
        if (check_random_range(&s->random, 0, 1) == 0) {
            scene_drop(s, i);
        }
    }
    for (uint32_t i = 0; i < pin_count && i < s->count; i++) {
        CHECK_OK(allot_heap_pin(s->heap, s->blocks[i].handle, &pins[i]));
    }
}

static void check_random_scene(const allot_heap_options *options, uint32_t pin_count,
                               uint64_t bytes_max)
{
    const allot_compact_plan_options goal = {.struct_size = sizeof goal, .bytes_max = bytes_max};
    scene s;
    allot_devptr pins[8];
    allot_compact_forecast f;
    allot_compact_forecast after;
    REQUIRE(scene_open(&s, options));
    for (int round = 0; round < 2; round++) {
        churn(&s, pins, pin_count);
        allot_compact_plan *const plan = plan_of(&s, &goal);
        allot_compact_plan_get_forecast(plan, &f);
        CHECK(bytes_max == 0 || f.bytes <= bytes_max);
        const allot_compact_report report = run_plan(&s, plan);
        CHECK_EQ(report.moved, f.moves);
        CHECK_EQ(report.bytes, f.bytes);
        CHECK_OK(allot_compact_estimate(s.heap, &goal, &after));
        CHECK_EQ(after.largest_before, f.largest_after);
        CHECK_EQ(after.releasable_before, f.releasable_after);
        CHECK_EQ(after.segments_before, f.segments_after);
        CHECK(f.segments_after <= f.segments_before);
        for (uint32_t i = 0; i < pin_count && i < s.count; i++) {
            CHECK_OK(allot_heap_unpin(s.heap, s.blocks[i].handle));
        }
        for (uint32_t i = 0; i < s.count; i++) {
            scene_check_bytes(&s, &s.blocks[i]);
        }
        allot_compact_plan_destroy(plan);
    }
    scene_close(&s);
}

static void random_heaps_end_as_foretold(void)
{
    static const allot_space_strategy strategies[] = {
        ALLOT_SPACE_STRATEGY_FIRST_FIT, ALLOT_SPACE_STRATEGY_BEST_FIT, ALLOT_SPACE_STRATEGY_TLSF,
        ALLOT_SPACE_STRATEGY_ADAPTIVE};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        for (int mode = ALLOT_HEAP_MODE_SEGMENTS; mode <= ALLOT_HEAP_MODE_VIRTUAL; mode++) {
            allot_heap_options options = scene_segments();
            options.mode = (allot_heap_mode)mode;
            options.strategy = strategies[i];
            check_random_scene(&options, 0, 0);
            check_random_scene(&options, 6, 0);
            check_random_scene(&options, 3, MIB);
            options.segment_size = options.limit;
            check_random_scene(&options, 2, 0);
        }
    }
}

static void debug_and_scrubbing_heaps_compact(void)
{
    allot_heap_options options = scene_segments();
    options.is_debug = true;
    check_random_scene(&options, 2, 0);
    options.is_debug = false;
    options.scrub = ALLOT_HEAP_SCRUB_FREE;
    check_random_scene(&options, 2, 0);
}

static bool get_aligned(scene *s, uint64_t align)
{
    const allot_request request = {.struct_size = sizeof request, .size = MIB, .align = align};
    held b = {.size = MIB, .pattern = (uint8_t)(s->count + 1)};
    allot_devptr at = {0};
    const allot_stream stream = {0};
    if (!CHECK_OK(allot_heap_alloc(s->heap, &request, &b.handle)) ||
        !CHECK_OK(allot_heap_pin(s->heap, b.handle, &at))) {
        return false;
    }
    CHECK_OK(allot_device_fill(s->device, stream, at, b.pattern, b.size));
    CHECK_OK(allot_heap_unpin(s->heap, b.handle));
    s->blocks[s->count++] = b;
    return true;
}

static void large_alignments_are_kept(void)
{
    const uint64_t align = 4 * MIB;
    scene s;
    allot_heap_options options = scene_segments();
    allot_compact_move move;
    allot_block_info info;
    options.segment_size = 8 * MIB;
    options.limit = 32 * MIB;
    REQUIRE(scene_open(&s, &options));
    /* One segment is full of blocks, two of them aligned; a third one makes another segment. */
    REQUIRE(get_aligned(&s, align) && get_aligned(&s, align));
    for (int i = 0; i < 6; i++) {
        CHECK(scene_get(&s, MIB));
    }
    REQUIRE(get_aligned(&s, align));
    const allot_handle last = s.blocks[8].handle;
    scene_drop(&s, 2); /* a hole that is not aligned */
    scene_drop(&s, 1);
    allot_compact_plan *const plan = plan_of(&s, NULL);
    REQUIRE(CHECK_EQ(allot_compact_plan_count(plan), 1));
    allot_compact_plan_get_move(plan, 0, &move);
    CHECK_EQ(move.handle.value, last.value);
    CHECK_EQ(move.to.address % align, 0);
    CHECK_EQ(run_plan(&s, plan).moved, 1);
    CHECK_OK(allot_heap_get_block(s.heap, last, &info));
    CHECK_EQ(info.ptr.address, move.to.address);
    allot_compact_plan_destroy(plan);
    scene_close(&s);
}

static void buddies_and_tiers_are_left_alone(void)
{
    static const allot_space_strategy strategies[] = {ALLOT_SPACE_STRATEGY_BUDDY,
                                                      ALLOT_SPACE_STRATEGY_TIERED};
    for (size_t i = 0; i < 2; i++) {
        allot_heap_options options = scene_segments();
        allot_devptr pins[1];
        scene s;
        options.strategy = strategies[i];
        REQUIRE(scene_open(&s, &options));
        churn(&s, pins, 0);
        allot_compact_plan *const plan = plan_of(&s, NULL);
        CHECK_EQ(allot_compact_plan_count(plan), 0);
        allot_compact_plan_destroy(plan);
        scene_close(&s);
    }
}

/* ---- failures ---- */

static void a_failed_move_loses_nothing(void)
{
    for (uint64_t n = 1; n <= 13; n++) {
        const allot_failing_options options = {.struct_size = sizeof options,
                                               .nth = n,
                                               .call_mask = UINT64_C(1) << ALLOT_DEVICE_CALL_COPY |
                                                            UINT64_C(1) << ALLOT_DEVICE_CALL_MOVE};
        scene s;
        allot_compact_report report;
        REQUIRE(scene_open_quarters(&s));
        allot_compact_plan *const plan = plan_of(&s, NULL);
        CHECK_OK(allot_failing_arm(s.failing, &options));
        const allot_status status = allot_compact_plan_run(s.heap, plan, NULL, &report);
        CHECK_EQ(status, n <= 12 ? ALLOT_STATUS_BACKEND : ALLOT_STATUS_OK);
        CHECK_EQ(report.moved, n - 1);
        CHECK_OK(allot_heap_check(s.heap));
        allot_compact_plan_destroy(plan);
        scene_close(&s);
    }
}

static allot_status plan_once(void *context)
{
    scene *const s = context;
    allot_compact_plan *plan = NULL;
    allot_status status = allot_compact_plan_create(s->heap, NULL, &plan);
    if (status == ALLOT_STATUS_OK) {
        status = allot_compact_plan_check(plan);
    }
    allot_compact_plan_destroy(plan);
    return status;
}

static void planning_survives_a_lack_of_host_memory(void)
{
    scene s;
    REQUIRE(scene_open_quarters(&s));
    CHECK(alloc_fault_each(plan_once, &s) > 10);
    scene_close(&s);
}

static const check_test tests[] = {
    {"estimating_moves_nothing", estimating_moves_nothing},
    {"the_weight_of_moved_bytes_counts", the_weight_of_moved_bytes_counts},
    {"emptied_segments_go_back", emptied_segments_go_back},
    {"one_segment_is_packed_downwards", one_segment_is_packed_downwards},
    {"small_blocks_make_way_for_large_ones", small_blocks_make_way_for_large_ones},
    {"room_is_made_as_planned", room_is_made_as_planned},
    {"budgets_hold", budgets_hold},
    {"a_run_ends_when_its_time_is_up", a_run_ends_when_its_time_is_up},
    {"no_move_is_begun_that_would_end_too_late", no_move_is_begun_that_would_end_too_late},
    {"another_block_at_the_same_place_is_not_moved", another_block_at_the_same_place_is_not_moved},
    {"what_changed_is_skipped_and_told", what_changed_is_skipped_and_told},
    {"the_owner_may_refuse", the_owner_may_refuse},
    {"a_plan_is_for_one_heap", a_plan_is_for_one_heap},
    {"the_simulator_finds_what_is_wrong", the_simulator_finds_what_is_wrong},
    {"random_heaps_end_as_foretold", random_heaps_end_as_foretold},
    {"debug_and_scrubbing_heaps_compact", debug_and_scrubbing_heaps_compact},
    {"large_alignments_are_kept", large_alignments_are_kept},
    {"buddies_and_tiers_are_left_alone", buddies_and_tiers_are_left_alone},
    {"a_failed_move_loses_nothing", a_failed_move_loses_nothing},
    {"planning_survives_a_lack_of_host_memory", planning_survives_a_lack_of_host_memory},
};

CHECK_MAIN(tests)
