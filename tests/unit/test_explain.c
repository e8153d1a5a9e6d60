/* SPDX-License-Identifier: MIT */
/* Categories, groups and the anatomy of an out-of-memory, on made-up and on recorded traces. */
#include <allot/compare.h>
#include <allot/explain.h>
#include <string.h>

#include "support/check.h"
#include "support/trace_maker.h"

static const maker_frame TRAIN = {"/app/train.py", "main", 10};

static void groups_sum_live_blocks_by_line(void)
{
    trace_maker m = maker_begin();
    const maker_frame other = {"/app/train.py", "main", 20};
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 40 * MIB);
    maker_stack(&m, &TRAIN, 1);
    maker_alloc(&m, MAKER_BASE, 4 * MIB);
    maker_alloc(&m, MAKER_BASE + 4 * MIB, 2 * MIB);
    maker_stack(&m, &other, 1);
    maker_alloc(&m, MAKER_BASE + 6 * MIB, 10 * MIB);
    maker_alloc(&m, MAKER_BASE + 16 * MIB, 8 * MIB);
    maker_free(&m, MAKER_BASE + 16 * MIB, 8 * MIB);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_lines *lines = NULL;
    allot_moment *moment = NULL;
    allot_groups groups = {0};
    REQUIRE_OK(allot_lines_create(trace, NULL, &lines));
    REQUIRE_OK(allot_history_at(history, 6, &moment));
    REQUIRE_OK(allot_groups_init(moment, ALLOT_GROUP_LINE, lines, NULL, &groups));
    CHECK_EQ(groups.count, 2);
    CHECK_STR(allot_lines_text(lines, groups.items[0].key), "train.py:20 (main)");
    CHECK_EQ(groups.items[0].size, 10 * MIB);
    CHECK_EQ(groups.items[1].size, 6 * MIB);
    CHECK_EQ(groups.items[1].count, 2);
    CHECK_EQ(groups.items[1].example, 0);
    CHECK_EQ((uint64_t)(groups.items[0].share * 1000), 625);
    allot_groups_fini(&groups);
    CHECK_EQ(allot_groups_init(moment, ALLOT_GROUP_LINE, NULL, NULL, &groups),
             ALLOT_STATUS_INVALID);
    allot_moment_destroy(moment);
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

static void every_grouping_has_a_spelling(void)
{
    for (int by = 0; by <= ALLOT_GROUP_POOL; by++) {
        allot_group_by parsed = ALLOT_GROUP_LINE;
        CHECK_OK(allot_group_parse(allot_group_name((allot_group_by)by), &parsed));
        CHECK_EQ(parsed, by);
    }
    allot_group_by parsed = ALLOT_GROUP_LINE;
    CHECK_EQ(allot_group_parse("lines", &parsed), ALLOT_STATUS_INVALID);
}

/* ---- out of memory ---- */

typedef struct failure {
    allot_trace *trace;
    allot_history *history;
    allot_lines *lines;
    allot_moment *moment;
    allot_oom oom;
} failure;

static void explain_last_event(trace_maker *m, failure *f)
{
    f->history = maker_finish(m, &f->trace);
    uint32_t at = 0;
    CHECK_OK(allot_history_find(f->history, "oom", &at));
    CHECK_OK(allot_lines_create(f->trace, NULL, &f->lines));
    CHECK_OK(allot_history_at(f->history, at, &f->moment));
    CHECK_OK(allot_oom_init(f->moment, f->lines, &f->oom));
}

static void forget(failure *f)
{
    allot_oom_fini(&f->oom);
    allot_moment_destroy(f->moment);
    allot_lines_destroy(f->lines);
    maker_end(f->history, f->trace);
}

static void a_small_block_between_two_free_ranges_is_named(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 100 * MIB);
    maker_alloc(&m, MAKER_BASE, 49 * MIB);
    maker_stack(&m, &TRAIN, 1);
    maker_alloc(&m, MAKER_BASE + 49 * MIB, 2 * MIB);
    maker_stack(&m, NULL, 0);
    maker_alloc(&m, MAKER_BASE + 51 * MIB, 30 * MIB);
    maker_free(&m, MAKER_BASE, 49 * MIB);
    maker_free(&m, MAKER_BASE + 51 * MIB, 30 * MIB);
    maker_event(&m, ALLOT_EVENT_OOM, 1 * MIB, 90 * MIB);
    failure f;
    explain_last_event(&m, &f);
    CHECK_EQ(f.oom.verdict, ALLOT_OOM_FRAGMENTED);
    CHECK_EQ(f.oom.usable_free, 98 * MIB);
    CHECK_EQ(f.oom.usable_largest, 49 * MIB);
    CHECK_EQ(f.oom.pin_needed, 1);
    CHECK_EQ(f.oom.pins[0].live_size, 2 * MIB);
    CHECK_EQ(f.oom.pin_line_count, 1);
    CHECK_STR(allot_lines_text(f.lines, f.oom.pin_lines[0].line), "train.py:10 (main)");
    CHECK_EQ(f.oom.pin_lines[0].kept_size, f.oom.pins[0].free_size);
    CHECK_EQ(f.oom.compacted_largest, 99 * MIB);
    CHECK_EQ(f.oom.expandable_largest, 81 * MIB);
    forget(&f);
}

static void too_little_memory_is_exhausted(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 100 * MIB);
    maker_alloc(&m, MAKER_BASE, 90 * MIB);
    maker_event(&m, ALLOT_EVENT_OOM, 1 * MIB, 50 * MIB);
    failure f;
    explain_last_event(&m, &f);
    CHECK_EQ(f.oom.verdict, ALLOT_OOM_EXHAUSTED);
    CHECK_EQ(f.oom.pin_line_count == 0 || f.oom.pin_needed <= 1, true);
    allot_oom_set_device_total(&f.oom, 400 * MIB);
    CHECK_EQ(f.oom.outside, 299 * MIB);
    CHECK_EQ(f.oom.verdict, ALLOT_OOM_OUTSIDE);
    allot_oom_set_device_total(&f.oom, 102 * MIB);
    CHECK_EQ(f.oom.verdict, ALLOT_OOM_EXHAUSTED);
    forget(&f);
}

static void a_range_of_another_stream_is_separated(void)
{
    trace_maker m = maker_begin();
    const uint32_t main_stream = m.stream;
    CHECK_OK(alloti_builder_intern_stream(m.builder, 77, &m.stream));
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 100 * MIB);
    maker_alloc(&m, MAKER_BASE, 10 * MIB);
    m.stream = main_stream;
    maker_event(&m, ALLOT_EVENT_OOM, 1 * MIB, 50 * MIB);
    failure f;
    explain_last_event(&m, &f);
    CHECK_EQ(f.oom.verdict, ALLOT_OOM_SEPARATED);
    CHECK_EQ(f.oom.other_stream_free, 90 * MIB);
    CHECK_EQ(f.oom.usable_free, 0);
    forget(&f);
}

static void a_private_pool_keeps_its_ranges(void)
{
    trace_maker m = maker_begin();
    CHECK_OK(alloti_builder_intern_pool(m.builder, (allot_pool_id){0, 3}, &m.pool));
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 100 * MIB);
    maker_alloc(&m, MAKER_BASE, 10 * MIB);
    m.pool = ALLOT_NONE;
    maker_event(&m, ALLOT_EVENT_OOM, 1 * MIB, 50 * MIB);
    failure f;
    explain_last_event(&m, &f);
    CHECK_EQ(f.oom.verdict, ALLOT_OOM_SEPARATED);
    CHECK_EQ(f.oom.other_pool_free, 90 * MIB);
    forget(&f);
}

static void a_limit_of_the_process_is_noticed(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 100 * MIB);
    maker_alloc(&m, MAKER_BASE, 90 * MIB);
    maker_event(&m, ALLOT_EVENT_OOM, 900 * MIB, 50 * MIB);
    failure f;
    explain_last_event(&m, &f);
    CHECK(f.oom.is_capped);
    CHECK_EQ(f.oom.verdict, ALLOT_OOM_EXHAUSTED);
    forget(&f);
}

static void an_event_that_is_no_oom_is_refused(void)
{
    trace_maker m = maker_begin();
    maker_alloc(&m, MAKER_BASE, 512);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_moment *moment = NULL;
    allot_lines *lines = NULL;
    allot_oom oom;
    REQUIRE_OK(allot_lines_create(trace, NULL, &lines));
    REQUIRE_OK(allot_history_at(history, 0, &moment));
    CHECK_EQ(allot_oom_init(moment, lines, &oom), ALLOT_STATUS_INVALID);
    allot_moment_destroy(moment);
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

/* ---- recorded ---- */

static allot_history *open_recorded(const char *relative, allot_trace **trace)
{
    const char *const path = check_data(relative);
    if (path == NULL) {
        check_skip("the recorded data is not there");
        return NULL;
    }
    allot_history *history = NULL;
    if (CHECK_OK(allot_trace_read(path, NULL, trace))) {
        CHECK_OK(allot_history_create(*trace, allot_trace_main_device(*trace), NULL, &history));
    }
    return history;
}

/* Requested bytes of a category that live at an event. */
static uint64_t requested_of(const allot_history *history, const allot_categories *categories,
                             uint32_t event, allot_category category)
{
    allot_moment *moment = NULL;
    allot_allocations table;
    allot_history_get_allocations(history, &table);
    uint64_t sum = 0;
    if (CHECK_OK(allot_history_at(history, event, &moment))) {
        uint32_t count = 0;
        const uint32_t *const rows = allot_moment_allocations(moment, &count);
        for (uint32_t i = 0; i < count; i++) {
            sum += allot_categories_all(categories)[rows[i]] == category ? table.requested[rows[i]]
                                                                         : 0;
        }
    }
    allot_moment_destroy(moment);
    return sum;
}

/* Parameters of the recorded decoder: 12 layers of width 768, 50,257 tokens, 2,048 positions. */
static uint64_t parameter_bytes(void)
{
    const uint64_t d = 768;
    const uint64_t norm = 2 * d;
    const uint64_t block =
        2 * norm + (3 * d * d + 3 * d) + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d);
    return 4 * (50257 * d + 2048 * d + 12 * block + norm + 50257 * d);
}

static void inferred_categories_add_up_to_the_models_arithmetic(void)
{
    static const char *const FILES[] = {"oracle/finetune_80gib.pickle.gz",
                                        "oracle/finetune_expandable_11gib.pickle.gz",
                                        "oracle/finetune_11gib_oom.pickle.gz"};
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        allot_trace *trace = NULL;
        allot_history *const history = open_recorded(FILES[i], &trace);
        if (history == NULL) {
            return;
        }
        allot_categories *categories = NULL;
        REQUIRE_OK(allot_categories_create(history, &categories));
        CHECK(allot_categories_are_inferred(categories));
        uint32_t step_count = 0;
        const uint32_t *const steps = allot_categories_steps(categories, &step_count);
        REQUIRE(step_count >= 7);
        /* At the end of an optimizer's step parameters, both moments and gradients are there. */
        for (uint32_t s = 0; s < step_count; s++) {
            CHECK_EQ(requested_of(history, categories, steps[s], ALLOT_CATEGORY_PARAMETER),
                     parameter_bytes());
            CHECK_EQ(requested_of(history, categories, steps[s], ALLOT_CATEGORY_GRADIENT),
                     parameter_bytes());
            CHECK_EQ(requested_of(history, categories, steps[s], ALLOT_CATEGORY_OPTIMIZER_STATE),
                     2 * parameter_bytes());
            CHECK_EQ(requested_of(history, categories, steps[s], ALLOT_CATEGORY_TEMPORARY), 0);
        }
        allot_categories_destroy(categories);
        maker_end(history, trace);
    }
}

enum { LAYERS = 6 };
static const maker_frame LAYER[] = {{"/app/net.py", "forward", 5}, {"/app/train.py", "main", 30}};
static const maker_frame SCRATCH[] = {{"/app/net.py", "forward", 6}, {"/app/train.py", "main", 30}};
static const maker_frame HEAD[] = {{"/app/net.py", "forward", 9}, {"/app/train.py", "main", 30}};

/*
 * A forward pass whose layers make a value and a scratch each, then the head's value, at which
 * memory runs out. Values are kept for a backward pass, or each only until the next is made.
 */
static allot_history *cut_off_pass(bool is_kept, allot_trace **trace)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 100 * MIB);
    for (uint64_t i = 0; i < LAYERS; i++) {
        maker_stack(&m, LAYER, 2);
        maker_alloc(&m, MAKER_BASE + 4 * i * MIB, 4 * MIB);
        maker_stack(&m, SCRATCH, 2);
        maker_alloc(&m, MAKER_BASE + 50 * MIB, 4 * MIB);
        maker_free(&m, MAKER_BASE + 50 * MIB, 4 * MIB);
        if (!is_kept && i != 0) {
            maker_free(&m, MAKER_BASE + 4 * (i - 1) * MIB, 4 * MIB);
        }
    }
    maker_stack(&m, HEAD, 2);
    maker_alloc(&m, MAKER_BASE + 60 * MIB, 8 * MIB);
    maker_event(&m, ALLOT_EVENT_OOM, 0, 200 * MIB);
    return maker_finish(&m, trace);
}

static void a_pass_that_an_oom_cuts_off_is_known_by_what_it_kept(void)
{
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        allot_trace *trace = NULL;
        allot_history *const history = cut_off_pass(is_kept != 0, &trace);
        allot_categories *categories = NULL;
        REQUIRE_OK(allot_categories_create(history, &categories));
        uint32_t oom = 0;
        CHECK_OK(allot_history_find(history, "oom", &oom));
        CHECK_EQ(requested_of(history, categories, oom, ALLOT_CATEGORY_ACTIVATION),
                 is_kept != 0 ? (4 * LAYERS + 8) * MIB : 0);
        CHECK_EQ(requested_of(history, categories, oom, ALLOT_CATEGORY_TEMPORARY),
                 is_kept != 0 ? 0 : 12 * MIB);
        allot_categories_destroy(categories);
        maker_end(history, trace);
    }
}

static void layers_are_no_steps(void)
{
    allot_trace *trace = NULL;
    allot_history *const history = cut_off_pass(true, &trace);
    allot_lines *lines = NULL;
    allot_leaks leaks = {0};
    allot_categories *categories = NULL;
    REQUIRE_OK(allot_lines_create(trace, NULL, &lines));
    REQUIRE_OK(allot_leaks_init(history, lines, NULL, &leaks));
    CHECK_EQ(leaks.source, ALLOT_STEPS_RHYTHM);
    REQUIRE_OK(allot_categories_create(history, &categories));
    uint32_t count = 1;
    allot_categories_steps(categories, &count);
    CHECK_EQ(count, 0);
    allot_categories_destroy(categories);
    allot_leaks_fini(&leaks);
    allot_lines_destroy(lines);
    maker_end(history, trace);
}

/* Two evaluations by the same stack: the first lets its memory go, the second is cut off in it. */
static void a_stack_is_known_by_what_it_did_before(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 100 * MIB);
    maker_stack(&m, LAYER, 2);
    maker_alloc(&m, MAKER_BASE, 4 * MIB);
    maker_free(&m, MAKER_BASE, 4 * MIB);
    maker_alloc(&m, MAKER_BASE, 4 * MIB);
    maker_event(&m, ALLOT_EVENT_OOM, 0, 200 * MIB);
    maker_free(&m, MAKER_BASE, 4 * MIB);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_categories *categories = NULL;
    REQUIRE_OK(allot_categories_create(history, &categories));
    CHECK_EQ(allot_categories_all(categories)[0], ALLOT_CATEGORY_TEMPORARY);
    CHECK_EQ(allot_categories_all(categories)[1], ALLOT_CATEGORY_TEMPORARY);
    allot_categories_destroy(categories);
    maker_end(history, trace);
}

static void only_what_a_forward_pass_meets_is_input(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 100 * MIB);
    maker_stack(&m, &TRAIN, 1);
    maker_alloc(&m, MAKER_BASE, 2 * MIB);
    maker_free(&m, MAKER_BASE, 2 * MIB);
    maker_alloc(&m, MAKER_BASE, 3 * MIB);
    maker_stack(&m, LAYER, 2);
    maker_alloc(&m, MAKER_BASE + 4 * MIB, 4 * MIB);
    maker_free(&m, MAKER_BASE + 4 * MIB, 4 * MIB);
    maker_free(&m, MAKER_BASE, 3 * MIB);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_categories *categories = NULL;
    REQUIRE_OK(allot_categories_create(history, &categories));
    CHECK_EQ(allot_categories_all(categories)[0], ALLOT_CATEGORY_TEMPORARY);
    CHECK_EQ(allot_categories_all(categories)[1], ALLOT_CATEGORY_INPUT);
    CHECK_EQ(allot_categories_all(categories)[2], ALLOT_CATEGORY_TEMPORARY);
    allot_categories_destroy(categories);
    maker_end(history, trace);
}

static void what_a_module_makes_for_itself_is_a_parameter(void)
{
    static const maker_frame LINEAR[] = {
        {"/lib/site-packages/torch/nn/modules/linear.py", "__init__", 100},
        {"/app/net.py", "__init__", 3},
        {"/app/train.py", "main", 20}};
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 100 * MIB);
    maker_stack(&m, LINEAR, 3);
    maker_alloc(&m, MAKER_BASE, 2 * MIB);
    maker_stack(&m, LINEAR + 1, 2); /* the program's own class makes anything */
    maker_alloc(&m, MAKER_BASE + 2 * MIB, 2 * MIB);
    maker_stack(&m, LAYER, 2);
    maker_alloc(&m, MAKER_BASE + 4 * MIB, 4 * MIB);
    maker_free(&m, MAKER_BASE + 4 * MIB, 4 * MIB);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_categories *categories = NULL;
    REQUIRE_OK(allot_categories_create(history, &categories));
    CHECK_EQ(allot_categories_all(categories)[0], ALLOT_CATEGORY_PARAMETER);
    CHECK(allot_categories_all(categories)[1] != ALLOT_CATEGORY_PARAMETER);
    allot_categories_destroy(categories);
    maker_end(history, trace);
}

/* One program, once stopped by an oom and once not: the same code, so the same categories. */
static void an_oom_changes_no_category(void)
{
    allot_trace *traces[2] = {NULL};
    allot_history *const stopped = open_recorded("oracle/finetune_11gib_oom.pickle.gz", &traces[0]);
    if (stopped == NULL) {
        return;
    }
    allot_history *const whole = open_recorded("oracle/finetune_80gib.pickle.gz", &traces[1]);
    REQUIRE(whole != NULL);
    allot_categories *categories[2] = {NULL};
    REQUIRE_OK(allot_categories_create(stopped, &categories[0]));
    REQUIRE_OK(allot_categories_create(whole, &categories[1]));
    uint32_t oom = 0;
    CHECK_OK(allot_history_find(stopped, "oom", &oom));
    const uint32_t same = 27047; /* the event of the whole run at which the other one stopped */
    CHECK_EQ(allot_history_value(stopped, ALLOT_MEASURE_REQUESTED, oom),
             allot_history_value(whole, ALLOT_MEASURE_REQUESTED, same));
    for (int c = 0; c < ALLOT_CATEGORY_COUNT; c++) {
        CHECK_EQ(requested_of(stopped, categories[0], oom, (allot_category)c),
                 requested_of(whole, categories[1], same, (allot_category)c));
    }
    allot_categories_destroy(categories[0]);
    allot_categories_destroy(categories[1]);
    maker_end(stopped, traces[0]);
    maker_end(whole, traces[1]);
}

static void the_recorded_oom_is_fragmentation(void)
{
    allot_trace *trace = NULL;
    failure f = {.history = open_recorded("oracle/finetune_11gib_oom.pickle.gz", &trace)};
    if (f.history == NULL) {
        return;
    }
    f.trace = trace;
    uint32_t at = 0;
    CHECK_OK(allot_history_find(f.history, "oom", &at));
    CHECK_OK(allot_lines_create(trace, NULL, &f.lines));
    CHECK_OK(allot_history_at(f.history, at, &f.moment));
    REQUIRE_OK(allot_oom_init(f.moment, f.lines, &f.oom));
    CHECK_EQ(f.oom.requested, UINT64_C(3293642752));
    CHECK_EQ(f.oom.device_free, UINT64_C(2552233984));
    CHECK_EQ(f.oom.verdict, ALLOT_OOM_FRAGMENTED);
    /* 11 GiB are the limit of that run. */
    CHECK_EQ(f.oom.device_free + f.oom.totals.reserved, UINT64_C(11264) * MIB);
    CHECK(f.oom.compacted_largest >= f.oom.requested);
    CHECK(f.oom.expandable_largest >= f.oom.requested);
    CHECK(f.oom.pin_needed >= 1);
    forget(&f);
}

static void the_real_oom_is_exhausted(void)
{
    allot_trace *trace = NULL;
    failure f = {.history = open_recorded(
                     "snapshots/d1_expandable_map_unmap_one_gpu.derived.pickle", &trace)};
    if (f.history == NULL) {
        return;
    }
    f.trace = trace;
    CHECK_OK(allot_lines_create(trace, NULL, &f.lines));
    CHECK_OK(allot_history_at(f.history, 421, &f.moment));
    REQUIRE_OK(allot_oom_init(f.moment, f.lines, &f.oom));
    CHECK_EQ(f.oom.requested, UINT64_C(5308694528));
    CHECK_EQ(f.oom.device_free, UINT64_C(95682560));
    CHECK_EQ(f.oom.verdict, ALLOT_OOM_EXHAUSTED);
    forget(&f);
}

static const check_test TESTS[] = {
    {"groups_sum_live_blocks_by_line", groups_sum_live_blocks_by_line},
    {"every_grouping_has_a_spelling", every_grouping_has_a_spelling},
    {"a_small_block_between_two_free_ranges_is_named",
     a_small_block_between_two_free_ranges_is_named},
    {"too_little_memory_is_exhausted", too_little_memory_is_exhausted},
    {"a_range_of_another_stream_is_separated", a_range_of_another_stream_is_separated},
    {"a_private_pool_keeps_its_ranges", a_private_pool_keeps_its_ranges},
    {"a_limit_of_the_process_is_noticed", a_limit_of_the_process_is_noticed},
    {"an_event_that_is_no_oom_is_refused", an_event_that_is_no_oom_is_refused},
    {"inferred_categories_add_up_to_the_models_arithmetic",
     inferred_categories_add_up_to_the_models_arithmetic},
    {"a_pass_that_an_oom_cuts_off_is_known_by_what_it_kept",
     a_pass_that_an_oom_cuts_off_is_known_by_what_it_kept},
    {"layers_are_no_steps", layers_are_no_steps},
    {"a_stack_is_known_by_what_it_did_before", a_stack_is_known_by_what_it_did_before},
    {"only_what_a_forward_pass_meets_is_input", only_what_a_forward_pass_meets_is_input},
    {"what_a_module_makes_for_itself_is_a_parameter",
     what_a_module_makes_for_itself_is_a_parameter},
    {"an_oom_changes_no_category", an_oom_changes_no_category},
    {"the_recorded_oom_is_fragmentation", the_recorded_oom_is_fragmentation},
    {"the_real_oom_is_exhausted", the_real_oom_is_exhausted},
};

CHECK_MAIN(TESTS)
