/* SPDX-License-Identifier: MIT */
/* Leaks, differences between two traces, ranks. */
#include <allot/compare.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/trace_maker.h"

enum { STEPS = 10 };

static const maker_frame STATE = {"/app/train.py", "setup", 5};
static const maker_frame BATCH = {"/app/train.py", "step", 20};
static const maker_frame KEPT = {"/app/train.py", "step", 30};

/*
 * A training loop: state at first, a batch in every step that is freed again, and `kept` bytes that
 * a step never frees. Steps are annotated if `is_annotated`.
 */
static allot_history *train(uint64_t kept, bool is_annotated, allot_trace **trace)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 400 * MIB);
    maker_stack(&m, &STATE, 1);
    maker_alloc(&m, MAKER_BASE, 50 * MIB);
    for (uint64_t i = 0; i < STEPS; i++) {
        maker_stack(&m, &BATCH, 1);
        maker_alloc(&m, MAKER_BASE + 50 * MIB, 20 * MIB);
        if (kept != 0) {
            maker_stack(&m, &KEPT, 1);
            maker_alloc(&m, MAKER_BASE + (70 + 10 * i) * MIB, kept);
        }
        maker_free(&m, MAKER_BASE + 50 * MIB, 20 * MIB);
        if (is_annotated) {
            maker_annotation(&m, "Optimizer.step#SGD.step");
        }
    }
    return maker_finish(&m, trace);
}

static void find_leaks(const allot_history *history, const allot_trace *trace,
                       const allot_leaks_options *options, allot_leaks *leaks, allot_lines **lines)
{
    CHECK_OK(allot_lines_create(trace, NULL, lines));
    CHECK_OK(allot_leaks_init(history, *lines, options, leaks));
}

static void what_a_step_keeps_is_a_leak(void)
{
    allot_trace *trace = NULL;
    allot_history *const history = train(2 * MIB, true, &trace);
    allot_lines *lines = NULL;
    allot_leaks leaks = {0};
    find_leaks(history, trace, NULL, &leaks, &lines);
    CHECK_EQ(leaks.source, ALLOT_STEPS_ANNOTATIONS);
    CHECK_EQ(leaks.step_count + leaks.warmup_count, STEPS);
    CHECK_EQ(leaks.leak_count, 1);
    REQUIRE(leaks.count >= 1);
    CHECK_STR(allot_lines_text(lines, leaks.items[0].line), "train.py:30 (step)");
    CHECK_EQ(leaks.items[0].size_per_step, 2 * MIB);
    CHECK_EQ(leaks.items[0].grown_steps, leaks.step_count);
    CHECK_EQ(leaks.items[0].size, STEPS * 2 * MIB);
    CHECK_EQ(leaks.items[0].count, STEPS);
    allot_leaks_fini(&leaks);
    const allot_leaks_options coarse = {.struct_size = sizeof coarse, .size_min = 3 * MIB};
    CHECK_OK(allot_leaks_init(history, lines, &coarse, &leaks));
    CHECK_EQ(leaks.leak_count, 0);
    allot_leaks_fini(&leaks);
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

static void a_loop_that_frees_what_it_takes_has_no_leak(void)
{
    allot_trace *trace = NULL;
    allot_history *const history = train(0, true, &trace);
    allot_lines *lines = NULL;
    allot_leaks leaks = {0};
    find_leaks(history, trace, NULL, &leaks, &lines);
    CHECK_EQ(leaks.leak_count, 0);
    /* The state of the start stays, and is no leak. */
    CHECK_EQ(leaks.count, 1);
    CHECK_EQ(leaks.items[0].size, 50 * MIB);
    allot_leaks_fini(&leaks);
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

static void steps_are_found_by_their_rhythm(void)
{
    allot_trace *trace = NULL;
    allot_history *const history = train(1 * MIB, false, &trace);
    allot_lines *lines = NULL;
    allot_leaks leaks = {0};
    find_leaks(history, trace, NULL, &leaks, &lines);
    CHECK_EQ(leaks.source, ALLOT_STEPS_RHYTHM);
    /* The layers of one pass have a rhythm too: it shows growth, and proves no leak. */
    CHECK_EQ(leaks.growing_count, 1);
    CHECK_EQ(leaks.leak_count, 0);
    CHECK(leaks.items[0].is_growing && !leaks.items[0].is_leak);
    CHECK_EQ(leaks.items[0].size_per_step, 1 * MIB);
    allot_leaks_fini(&leaks);
    const allot_leaks_options given = {.struct_size = sizeof given, .step_count = 5};
    CHECK_OK(allot_leaks_init(history, lines, &given, &leaks));
    CHECK_EQ(leaks.source, ALLOT_STEPS_GIVEN);
    CHECK_EQ(leaks.step_count + leaks.warmup_count, 5);
    CHECK_EQ(leaks.leak_count, 1);
    allot_leaks_fini(&leaks);
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

/*
 * A buffer that is replaced in each of `steps` steps by one of the same requested size, in a block
 * that ends at another allocation: the rest between the two grows, too small to be split off.
 */
static allot_history *replace(uint64_t steps, uint64_t kept, allot_trace **trace)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 400 * MIB);
    for (uint64_t i = 0; i < steps; i++) {
        const uint64_t here = MAKER_BASE + i * 23 * MIB;
        const uint64_t next = here + 20 * MIB + i * 64 * 1024;
        maker_stack(&m, &STATE, 1);
        maker_alloc(&m, next, 2 * MIB);
        maker_stack(&m, &BATCH, 1);
        maker_alloc(&m, here, 20 * MIB);
        if (i != 0) {
            maker_free(&m, here - 23 * MIB, 20 * MIB);
            maker_free(&m, next - 23 * MIB - 64 * 1024, 2 * MIB);
        }
        if (kept != 0) {
            maker_stack(&m, &KEPT, 1);
            maker_alloc(&m, MAKER_BASE + (300 + 5 * i) * MIB, kept);
        }
        maker_annotation(&m, "Optimizer.step#SGD.step");
    }
    return maker_finish(&m, trace);
}

static void the_rest_of_a_block_that_is_too_small_to_split_is_no_growth(void)
{
    allot_trace *trace = NULL;
    allot_history *const history = replace(STEPS, 0, &trace);
    allot_allocations table;
    allot_history_get_allocations(history, &table);
    CHECK_EQ(table.requested[table.count - 1], 20 * MIB);
    CHECK_EQ(table.size[table.count - 1], 20 * MIB + (STEPS - 1) * 64 * 1024);
    allot_lines *lines = NULL;
    allot_leaks leaks = {0};
    find_leaks(history, trace, NULL, &leaks, &lines);
    CHECK(leaks.is_judged);
    CHECK_EQ(leaks.growing_count, 0);
    CHECK_EQ(leaks.leak_count, 0);
    allot_leaks_fini(&leaks);
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

static void a_few_steps_prove_no_leak(void)
{
    static const struct {
        uint64_t steps;
        uint32_t warmup;
        bool is_judged;
    } CASES[] = {{1, 1, false}, {3, 1, false}, {4, 1, false}, {5, 1, true}, {6, 2, true}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        allot_trace *trace = NULL;
        allot_history *const history = replace(CASES[i].steps, 1 * MIB, &trace);
        allot_lines *lines = NULL;
        allot_leaks leaks = {0};
        find_leaks(history, trace, NULL, &leaks, &lines);
        CHECK_EQ(leaks.warmup_count, CASES[i].warmup);
        CHECK_EQ(leaks.step_count + leaks.warmup_count, CASES[i].steps);
        CHECK_EQ(leaks.is_judged, CASES[i].is_judged);
        CHECK_EQ(leaks.leak_count, CASES[i].is_judged ? 1 : 0);
        allot_leaks_fini(&leaks);
        allot_lines_destroy(lines);
        maker_end(history, trace);
    }
}

static void a_trace_without_events_has_no_steps(void)
{
    trace_maker m = maker_begin();
    maker_segment(&m, MAKER_BASE, 20 * MIB, 0);
    maker_block(&m, MAKER_BASE, 20 * MIB, 0, ALLOT_BLOCK_INACTIVE);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_lines *lines = NULL;
    allot_leaks leaks = {0};
    find_leaks(history, trace, NULL, &leaks, &lines);
    CHECK_EQ(leaks.source, ALLOT_STEPS_NONE);
    CHECK_EQ(leaks.count, 0);
    allot_leaks_fini(&leaks);
    const allot_leaks_options given = {.struct_size = sizeof given, .step_count = 5};
    CHECK_OK(allot_leaks_init(history, lines, &given, &leaks));
    CHECK_EQ(leaks.step_count, 0);
    allot_leaks_fini(&leaks);
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

static void a_diff_pairs_lines_and_judges_the_peak(void)
{
    allot_trace *trace_a = NULL;
    allot_trace *trace_b = NULL;
    allot_history *const a = train(1 * MIB, true, &trace_a);
    allot_history *const b = train(2 * MIB, true, &trace_b);
    const allot_diff_options options = {
        .struct_size = sizeof options, .name_a = "before", .name_b = "after"};
    allot_diff diff;
    REQUIRE_OK(allot_diff_init(a, b, &options, &diff));
    CHECK(diff.is_worse);
    CHECK_STR(diff.a.name, "before");
    CHECK_EQ(diff.b.peak[ALLOT_MEASURE_ALLOCATED].size - diff.a.peak[ALLOT_MEASURE_ALLOCATED].size,
             STEPS * MIB);
    REQUIRE(diff.lines.count == 3);
    CHECK_STR(diff.lines.items[0].label, "train.py:30 (step)");
    CHECK_EQ(diff.lines.items[0].size_a, STEPS * MIB);
    CHECK_EQ(diff.lines.items[0].size_b, 2 * STEPS * MIB);
    CHECK_EQ(diff.lines.items[2].size_a, diff.lines.items[2].size_b);
    allot_diff_fini(&diff);
    REQUIRE_OK(allot_diff_init(b, a, NULL, &diff));
    CHECK(!diff.is_worse);
    allot_diff_fini(&diff);
    const allot_diff_options tolerant = {.struct_size = sizeof tolerant, .tolerance = 0.5};
    REQUIRE_OK(allot_diff_init(a, b, &tolerant, &diff));
    CHECK(!diff.is_worse);
    allot_diff_fini(&diff);
    maker_end(a, trace_a);
    maker_end(b, trace_b);
}

/* A run that takes `size`, and stops at an out-of-memory or goes on. */
static allot_history *stop(uint64_t size, bool stops, allot_trace **trace)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 100 * MIB);
    maker_stack(&m, &STATE, 1);
    maker_alloc(&m, MAKER_BASE, size);
    maker_event(&m, ALLOT_EVENT_OOM, 0, 200 * MIB);
    maker_free(&m, MAKER_BASE, size);
    if (!stops) {
        maker_alloc(&m, MAKER_BASE, size);
    }
    return maker_finish(&m, trace);
}

static void a_run_that_stopped_is_not_better_than_one_that_went_on(void)
{
    allot_trace *traces[2] = {NULL};
    allot_history *const stopped = stop(10 * MIB, true, &traces[0]);
    allot_history *const whole = stop(50 * MIB, false, &traces[1]);
    allot_diff diff;
    REQUIRE_OK(allot_diff_init(stopped, whole, NULL, &diff));
    CHECK(diff.a.is_unfinished && !diff.b.is_unfinished);
    CHECK(!diff.is_worse);
    allot_diff_fini(&diff);
    REQUIRE_OK(allot_diff_init(whole, stopped, NULL, &diff));
    CHECK(diff.is_worse);
    allot_diff_fini(&diff);
    REQUIRE_OK(allot_diff_init(stopped, stopped, NULL, &diff));
    CHECK(!diff.is_worse);
    allot_diff_fini(&diff);
    maker_end(stopped, traces[0]);
    maker_end(whole, traces[1]);
}

static allot_history *setting_trace(const char *value, allot_trace **trace)
{
    trace_maker m = maker_begin();
    allot_setting setting = {.type = ALLOT_SETTING_STRING};
    CHECK_OK(alloti_builder_intern_string(m.builder, "conf", 4, &setting.key));
    if (value != NULL) {
        CHECK_OK(alloti_builder_intern_string(m.builder, value, strlen(value), &setting.string));
        CHECK_OK(alloti_builder_add_setting(m.builder, &setting));
    }
    return maker_finish(&m, trace);
}

static void a_diff_lists_settings_that_differ_or_are_missing(void)
{
    allot_trace *traces[3] = {NULL};
    allot_history *const x = setting_trace("x", &traces[0]);
    allot_history *const y = setting_trace("y", &traces[1]);
    allot_history *const none = setting_trace(NULL, &traces[2]);
    allot_diff diff;
    REQUIRE_OK(allot_diff_init(x, y, NULL, &diff));
    CHECK_EQ(diff.setting_count, 1);
    CHECK_STR(diff.settings[0].value_a, "\"x\"");
    CHECK_STR(diff.settings[0].value_b, "\"y\"");
    allot_diff_fini(&diff);
    REQUIRE_OK(allot_diff_init(none, y, NULL, &diff));
    CHECK_EQ(diff.setting_count, 1);
    CHECK(diff.settings[0].value_a == NULL);
    allot_diff_fini(&diff);
    REQUIRE_OK(allot_diff_init(x, x, NULL, &diff));
    CHECK_EQ(diff.setting_count, 0);
    allot_diff_fini(&diff);
    maker_end(x, traces[0]);
    maker_end(y, traces[1]);
    maker_end(none, traces[2]);
}

static void a_rank_that_needs_more_stands_out(void)
{
    enum { RANKS = 5 };
    allot_trace *traces[RANKS] = {NULL};
    allot_history *histories[RANKS] = {NULL};
    static const char *const NAMES[RANKS] = {"0", "1", "2", "3", "4"};
    for (uint32_t i = 0; i < RANKS; i++) {
        histories[i] = train(i == 3 ? 9 * MIB : 1 * MIB, true, &traces[i]);
    }
    allot_ranks ranks;
    REQUIRE_OK(allot_ranks_init((const allot_history *const *)histories, NAMES, RANKS, &ranks));
    CHECK_EQ(ranks.outlier_count, 1);
    CHECK(ranks.items[3].is_outlier);
    CHECK_EQ(ranks.median_peak,
             histories[0] == NULL ? 0
                                  : allot_history_peak(histories[0], ALLOT_MEASURE_ALLOCATED).size);
    allot_ranks_fini(&ranks);
    REQUIRE_OK(allot_ranks_init((const allot_history *const *)histories, NAMES, 3, &ranks));
    CHECK_EQ(ranks.outlier_count, 0);
    allot_ranks_fini(&ranks);
    CHECK_EQ(allot_ranks_init(NULL, NULL, 0, &ranks), ALLOT_STATUS_INVALID);
    for (uint32_t i = 0; i < RANKS; i++) {
        maker_end(histories[i], traces[i]);
    }
}

static void a_rank_that_only_reserves_more_stands_out(void)
{
    enum { RANKS = 3 };
    allot_trace *traces[RANKS] = {NULL};
    allot_history *histories[RANKS] = {NULL};
    static const char *const NAMES[RANKS] = {"0", "1", "2"};
    for (uint32_t i = 0; i < RANKS; i++) {
        trace_maker m = maker_begin();
        maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, i == 1 ? 400 * MIB : 100 * MIB);
        maker_alloc(&m, MAKER_BASE, 50 * MIB);
        histories[i] = maker_finish(&m, &traces[i]);
    }
    allot_ranks ranks;
    REQUIRE_OK(allot_ranks_init((const allot_history *const *)histories, NAMES, RANKS, &ranks));
    CHECK_EQ(ranks.outlier_count, 1);
    CHECK(ranks.items[1].is_outlier && ranks.items[1].is_reserved_outlier);
    CHECK(!ranks.items[1].is_allocated_outlier);
    CHECK_EQ(ranks.median_reserved, 100 * MIB);
    CHECK_EQ(ranks.deviation_reserved, 0);
    allot_ranks_fini(&ranks);
    for (uint32_t i = 0; i < RANKS; i++) {
        maker_end(histories[i], traces[i]);
    }
}

static void the_recorded_training_run_has_no_leak(void)
{
    const char *const path = check_data("oracle/finetune_80gib.pickle.gz");
    if (path == NULL) {
        check_skip("the recorded data is not there");
        return;
    }
    allot_trace *trace = NULL;
    allot_history *history = NULL;
    allot_lines *lines = NULL;
    allot_leaks leaks = {0};
    REQUIRE_OK(allot_trace_read(path, NULL, &trace));
    REQUIRE_OK(allot_history_create(trace, 0, NULL, &history));
    find_leaks(history, trace, NULL, &leaks, &lines);
    CHECK_EQ(leaks.source, ALLOT_STEPS_ANNOTATIONS);
    CHECK_EQ(leaks.step_count + leaks.warmup_count, 14);
    CHECK_EQ(leaks.leak_count, 0);
    allot_leaks_fini(&leaks);
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

static const check_test TESTS[] = {
    {"what_a_step_keeps_is_a_leak", what_a_step_keeps_is_a_leak},
    {"a_loop_that_frees_what_it_takes_has_no_leak", a_loop_that_frees_what_it_takes_has_no_leak},
    {"steps_are_found_by_their_rhythm", steps_are_found_by_their_rhythm},
    {"the_rest_of_a_block_that_is_too_small_to_split_is_no_growth",
     the_rest_of_a_block_that_is_too_small_to_split_is_no_growth},
    {"a_few_steps_prove_no_leak", a_few_steps_prove_no_leak},
    {"a_trace_without_events_has_no_steps", a_trace_without_events_has_no_steps},
    {"a_diff_pairs_lines_and_judges_the_peak", a_diff_pairs_lines_and_judges_the_peak},
    {"a_diff_lists_settings_that_differ_or_are_missing",
     a_diff_lists_settings_that_differ_or_are_missing},
    {"a_run_that_stopped_is_not_better_than_one_that_went_on",
     a_run_that_stopped_is_not_better_than_one_that_went_on},
    {"a_rank_that_needs_more_stands_out", a_rank_that_needs_more_stands_out},
    {"a_rank_that_only_reserves_more_stands_out", a_rank_that_only_reserves_more_stands_out},
    {"the_recorded_training_run_has_no_leak", the_recorded_training_run_has_no_leak},
};

CHECK_MAIN(TESTS)
