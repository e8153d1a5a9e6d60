/* SPDX-License-Identifier: MIT */
/*
 * Advice on recordings whose right answer is known: runs of a real fine-tuning program under many
 * settings and limits (what each did is in the table below), and made-up programs.
 */
#include <allot/advise.h>
#include <allot/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/alloc_fault.h"
#include "support/check.h"
#include "support/sim_trace.h"
#include "support/trace_equal.h"

#define MIB(n) ((uint64_t)(n) << 20)

static allot_trace *read_data(const char *relative)
{
    const char *const path = check_data(relative);
    allot_trace *trace = NULL;
    if (path == NULL) {
        check_skip("the shared data is not there");
        return NULL;
    }
    CHECK_OK(allot_trace_read(path, NULL, &trace));
    return trace;
}

static allot_advice *advise(const allot_trace *trace, const allot_advise_options *options)
{
    allot_advice *advice = NULL;
    CHECK_OK(allot_advise(trace, allot_trace_main_device(trace), options, &advice));
    return advice;
}

static allot_advice_summary summary_of(const allot_advice *advice)
{
    allot_advice_summary summary = {0};
    allot_advice_get_summary(advice, &summary);
    return summary;
}

static allot_advice_row row_of(const allot_advice *advice, uint32_t index)
{
    allot_advice_row row = {0};
    allot_advice_get_row(advice, index, &row);
    return row;
}

/** Row of a setting; the present one's if it is not there (and the test fails). */
static allot_advice_row row_named(const allot_advice *advice, const char *setting)
{
    for (uint32_t i = 0; i < allot_advice_row_count(advice); i++) {
        const allot_advice_row row = row_of(advice, i);
        if (strcmp(row.setting, setting) == 0) {
            return row;
        }
    }
    fprintf(stderr, "no row for %s\n", setting);
    CHECK(false);
    return row_of(advice, 0);
}

static bool has_note(const allot_advice *advice, const char *part)
{
    for (uint32_t i = 0; i < allot_advice_note_count(advice); i++) {
        if (strstr(allot_advice_note(advice, i), part) != NULL) {
            return true;
        }
    }
    return false;
}

/** A row's saving is against the present setting: positive is less. */
static void check_saving(allot_advice_summary s, allot_advice_row present, allot_advice_row row)
{
    if (row.has_saving) {
        const uint64_t now = s.is_by_need ? present.limit_min : present.peak_reserved;
        const uint64_t then = s.is_by_need ? row.limit_min : row.peak_reserved;
        CHECK(now > then ? row.saving > 0 && (uint64_t)row.saving == now - then
                         : row.saving <= 0 && (uint64_t)-row.saving == then - now);
    }
    /* A row is there because it is better somewhere, or because it was asked for. */
    CHECK(row.is_tried || row.limit_min < present.limit_min ||
          (!s.is_by_need && row.peak_reserved < present.peak_reserved));
}

/** What holds of any advice. */
static void check_sane(const allot_advice *advice)
{
    const allot_advice_summary s = summary_of(advice);
    const allot_advice_row present = row_of(advice, 0);
    CHECK_STR(s.present, present.setting);
    for (uint32_t i = 1; i < allot_advice_row_count(advice); i++) {
        const allot_advice_row row = row_of(advice, i);
        CHECK(strcmp(row.setting, present.setting) != 0);
        CHECK(row.change[0] != '\0');
        CHECK(row.limit_min == 0 || row.limit_min >= s.live_peak);
        CHECK(s.limit == 0 || row.peak_reserved <= s.limit);
        CHECK(row.peak_allocated <= row.peak_reserved);
        check_saving(s, present, row);
        if (row.finishes && s.limit != 0) {
            CHECK(row.limit_min != 0 && row.limit_min <= s.limit);
        }
    }
    if (s.verdict == ALLOT_ADVICE_VERDICT_CHANGE) {
        const allot_advice_row best = row_of(advice, s.recommended_row);
        CHECK_STR(best.setting, s.recommended);
        CHECK(best.finishes);
        CHECK(!present.finishes || best.peak_reserved <= present.peak_reserved);
        CHECK(best.has_saving && best.saving > 0);
        CHECK(best.limit_min <= present.limit_min);
    } else {
        CHECK(s.recommended == NULL);
        CHECK_EQ(s.recommended_row, ALLOT_NONE);
    }
    CHECK(allot_advice_reason(advice)[0] != '\0');
}

/* ---- a real run that died ---- */

static void a_fragmented_run_is_recognised_and_cured(void)
{
    allot_trace *const trace = read_data("oracle/finetune_11gib_oom.pickle.gz");
    if (trace == NULL) {
        return;
    }
    static const char *const tried[] = {"max_split_size_mb:128", "max_split_size_mb:512",
                                        "roundup_power2_divisions:4", "roundup_power2_divisions:8"};
    const allot_advise_options options = {
        .struct_size = sizeof options, .settings = tried, .setting_count = 4};
    allot_advice *const advice = advise(trace, &options);
    const allot_advice_summary s = summary_of(advice);
    check_sane(advice);
    CHECK_EQ(s.limit, MIB(11264));
    CHECK_EQ(s.limit_source, ALLOT_LIMIT_SOURCE_INFERRED);
    CHECK(s.has_oom);
    CHECK_EQ(s.placements_equal, s.placements);
    CHECK_EQ(s.verdict, ALLOT_ADVICE_VERDICT_CHANGE);
    const allot_advice_row present = row_of(advice, 0);
    CHECK(!present.finishes);
    CHECK_EQ(present.stop_event, s.oom_event);
    CHECK_EQ(present.peak_reserved >> 20, 10536);
    CHECK_EQ(present.retries, 3);
    /* The truth: these finish the whole program within the limit, those die at the same step. */
    CHECK(strstr(s.recommended, "expandable_segments:True") != NULL ||
          strstr(s.recommended, "max_split_size_mb") != NULL);
    CHECK(row_named(advice, "max_split_size_mb:128").finishes);
    CHECK(row_named(advice, "max_split_size_mb:512").finishes);
    CHECK(!row_named(advice, "roundup_power2_divisions:4").finishes);
    CHECK(!row_named(advice, "roundup_power2_divisions:8").finishes);
    CHECK_CONTAINS(allot_advice_reason(advice), "fragmentation");
    CHECK_CONTAINS(allot_advice_where(advice), "finetune.py:41");
    CHECK(allot_advice_line_count(advice) > 0);
    CHECK(has_note(advice, "not known"));
    CHECK(has_note(advice, "inferred"));
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

/** What the real allocator did with the whole program; MiB, rounded down. */
static const struct truth {
    const char *setting;
    uint64_t limit_mib;
    uint64_t reserved_mib; /* at the peak */
    uint64_t retries;
    bool finishes;
} TRUTH[] = {
    {"", 11264, 10536, 3, false},
    {"", 12288, 12048, 1, true},
    {"", 81920, 19880, 0, true},
    {"expandable_segments:True", 11264, 11050, 0, true},
    {"expandable_segments:True", 12288, 11050, 0, true},
    {"expandable_segments:True", 81920, 11050, 0, true},
    {"expandable_segments:True,roundup_power2_divisions:8", 11264, 10850, 1, true},
    {"expandable_segments:True,roundup_power2_divisions:8", 12288, 11590, 0, true},
    {"expandable_segments:True,roundup_power2_divisions:8", 81920, 11590, 0, true},
    {"max_split_size_mb:128", 11264, 11264, 2, true},
    {"max_split_size_mb:128", 12288, 12272, 2, true},
    {"max_split_size_mb:128", 81920, 55826, 0, true},
    {"max_split_size_mb:512", 11264, 11264, 3, true},
    {"max_split_size_mb:512", 12288, 12272, 2, true},
    {"max_split_size_mb:512", 81920, 55244, 0, true},
    {"roundup_power2_divisions:4", 11264, 9954, 1, false},
    {"roundup_power2_divisions:4", 12288, 11490, 2, false},
    {"roundup_power2_divisions:4", 81920, 18658, 0, true},
    {"max_split_size_mb:512,roundup_power2_divisions:4", 11264, 11200, 2, false},
    {"max_split_size_mb:512,roundup_power2_divisions:4", 12288, 12272, 2, true},
    {"max_split_size_mb:512,roundup_power2_divisions:4", 81920, 24546, 0, true},
    {"roundup_power2_divisions:8", 11264, 10986, 2, false},
    {"roundup_power2_divisions:8", 12288, 10986, 2, false},
    {"roundup_power2_divisions:8", 81920, 17642, 0, true},
};
enum { TRUTH_COUNT = sizeof TRUTH / sizeof TRUTH[0] };

static void check_truth(const allot_trace *trace, uint64_t limit_mib)
{
    const char *settings[TRUTH_COUNT];
    uint32_t count = 0;
    for (size_t i = 0; i < TRUTH_COUNT; i++) {
        if (TRUTH[i].limit_mib == limit_mib && TRUTH[i].setting[0] != '\0') {
            settings[count++] = TRUTH[i].setting;
        }
    }
    const allot_advise_options options = {.struct_size = sizeof options,
                                          .limit = MIB(limit_mib),
                                          .settings = settings,
                                          .setting_count = count};
    allot_advice *const advice = advise(trace, &options);
    check_sane(advice);
    for (size_t i = 0; i < TRUTH_COUNT; i++) {
        if (TRUTH[i].limit_mib != limit_mib) {
            continue;
        }
        char text[ALLOT_TORCH_CONF_TEXT_MAX];
        allot_torch_conf conf;
        CHECK_OK(allot_torch_conf_parse(TRUTH[i].setting, &conf, NULL));
        const allot_advice_row row = row_named(advice, allot_torch_conf_format(&conf, text));
        CHECK_EQ(row.finishes, TRUTH[i].finishes);
        CHECK_EQ(row.peak_reserved >> 20, TRUTH[i].reserved_mib);
        CHECK_EQ(row.retries, TRUTH[i].retries);
        /* The smallest limit found is no larger than one that is known to do. */
        CHECK(!TRUTH[i].finishes || (row.limit_min != 0 && row.limit_min <= MIB(limit_mib)));
    }
    CHECK_EQ(summary_of(advice).verdict, ALLOT_ADVICE_VERDICT_CHANGE);
    allot_advice_destroy(advice);
}

static void predictions_are_what_the_real_allocator_did(void)
{
    allot_trace *const trace = read_data("oracle/finetune_80gib.pickle.gz");
    if (trace == NULL) {
        return;
    }
    check_truth(trace, 11264);
    check_truth(trace, 12288);
    check_truth(trace, 81920);
    allot_trace_destroy(trace);
}

static void what_is_on_is_never_recommended(void)
{
    allot_trace *const trace = read_data("oracle/finetune_expandable_11gib.pickle.gz");
    if (trace == NULL) {
        return;
    }
    for (uint64_t limit = 0; limit <= MIB(11264); limit += MIB(11264)) {
        const allot_advise_options options = {.struct_size = sizeof options, .limit = limit};
        allot_advice *const advice = advise(trace, &options);
        const allot_advice_summary s = summary_of(advice);
        check_sane(advice);
        CHECK_STR(s.present, "expandable_segments:True");
        CHECK(s.recommended == NULL || strcmp(s.recommended, s.present) != 0);
        for (uint32_t i = 1; i < allot_advice_row_count(advice); i++) {
            CHECK(strstr(row_of(advice, i).change, "expandable_segments on") == NULL);
        }
        allot_advice_destroy(advice);
    }
    allot_trace_destroy(trace);
}

static void a_run_under_pressure_that_finishes_is_judged_as_one_that_does(void)
{
    allot_trace *const trace = read_data("oracle/expandable_maxsplit_gc.pickle.gz");
    if (trace == NULL) {
        return;
    }
    allot_advice *const advice = advise(trace, NULL);
    check_sane(advice);
    CHECK(row_of(advice, 0).finishes);
    CHECK(row_of(advice, 0).retries > 0);
    CHECK_EQ(summary_of(advice).limit_source, ALLOT_LIMIT_SOURCE_HELD);
    CHECK_EQ(summary_of(advice).verdict, ALLOT_ADVICE_VERDICT_KEEP);
    CHECK(has_note(advice, "most that was ever held"));
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

static void what_fits_with_room_is_left_alone(void)
{
    allot_trace *const trace =
        read_data("snapshots/d1_expandable_map_unmap_one_gpu.derived.pickle");
    if (trace == NULL) {
        return;
    }
    for (uint64_t gib = 88; gib <= 140; gib += 18) {
        const allot_advise_options options = {.struct_size = sizeof options, .limit = gib << 30};
        allot_advice *const advice = advise(trace, &options);
        const allot_advice_summary s = summary_of(advice);
        check_sane(advice);
        CHECK_EQ(s.verdict, ALLOT_ADVICE_VERDICT_KEEP);
        CHECK(!s.is_tight);
        CHECK_EQ(s.spare, (gib << 30) - row_of(advice, 0).limit_min);
        CHECK_CONTAINS(allot_advice_headline(advice), "it fits on");
        allot_advice_destroy(advice);
    }
    allot_trace_destroy(trace);
}

static void a_tight_limit_is_met_by_expandable_segments_with_a_list_and_said_to_be_tight(void)
{
    allot_trace *const trace = read_data("oracle/finetune_80gib.pickle.gz");
    if (trace == NULL) {
        return;
    }
    const allot_advise_options options = {.struct_size = sizeof options, .limit = MIB(10240)};
    allot_advice *const advice = advise(trace, &options);
    const allot_advice_summary s = summary_of(advice);
    check_sane(advice);
    REQUIRE(s.recommended != NULL);
    CHECK_CONTAINS(s.recommended, "expandable_segments:True,roundup_power2_divisions:[");
    /* max_split_size_mb does it too, with eight times the driver calls. */
    CHECK(row_of(advice, s.recommended_row).driver_calls < 200);
    CHECK(s.is_tight);
    CHECK(s.spare > 0 && s.spare < MIB(256));
    CHECK_CONTAINS(allot_advice_headline(advice), "too tight to rely on");
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

static void a_fitted_threshold_has_to_be_better_than_expandable_segments(void)
{
    allot_trace *const trace = read_data("oracle/classic_tight.pickle.gz");
    if (trace == NULL) {
        return;
    }
    allot_advice *const advice = advise(trace, NULL);
    check_sane(advice);
    /* max_split_size_mb needs 0.3 % less, with twice the driver calls. */
    REQUIRE(summary_of(advice).recommended != NULL);
    CHECK_STR(summary_of(advice).recommended, "expandable_segments:True");
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

static void what_dies_is_ordered_by_how_far_it_gets_and_needs(void)
{
    allot_trace *const trace = read_data("oracle/finetune_80gib.pickle.gz");
    if (trace == NULL) {
        return;
    }
    const allot_advise_options options = {.struct_size = sizeof options, .limit = MIB(10100)};
    allot_advice *const advice = advise(trace, &options);
    check_sane(advice);
    uint64_t stop = UINT64_MAX;
    uint32_t dead = 0;
    for (uint32_t i = 1; i < allot_advice_row_count(advice); i++) {
        const allot_advice_row row = row_of(advice, i);
        CHECK(dead == 0 || !row.finishes);
        CHECK(row.finishes || row.stop_event <= stop);
        dead += !row.finishes;
        stop = row.finishes ? stop : row.stop_event;
    }
    CHECK_EQ(summary_of(advice).verdict, ALLOT_ADVICE_VERDICT_NOT_FOUND);
    CHECK(dead >= 2);
    CHECK(row_of(advice, 1).limit_min <= row_of(advice, dead).limit_min);
    CHECK_CONTAINS(allot_advice_headline(advice), "No setting was found that runs within");
    CHECK_CONTAINS(allot_advice_reason(advice), "smaller batch");
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

static void rows_of_one_outcome_are_one_row(void)
{
    allot_trace *const trace = read_data("oracle/finetune_11gib_oom.pickle.gz");
    if (trace == NULL) {
        return;
    }
    allot_advice *const advice = advise(trace, NULL);
    for (uint32_t i = 1; i < allot_advice_row_count(advice); i++) {
        for (uint32_t k = i + 1; k < allot_advice_row_count(advice); k++) {
            const allot_advice_row a = row_of(advice, i);
            const allot_advice_row b = row_of(advice, k);
            const bool both_split = strncmp(a.setting, "max_split_size_mb:", 18) == 0 &&
                                    strncmp(b.setting, "max_split_size_mb:", 18) == 0 &&
                                    strchr(a.setting, ',') == NULL &&
                                    strchr(b.setting, ',') == NULL;
            CHECK(!both_split ||
                  a.limit_min / 100 < (a.limit_min > b.limit_min ? a.limit_min - b.limit_min
                                                                 : b.limit_min - a.limit_min));
        }
    }
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

static void what_is_asked_for_has_a_row_and_a_mark(void)
{
    allot_trace *const trace = read_data("oracle/finetune_80gib.pickle.gz");
    if (trace == NULL) {
        return;
    }
    static const char *const tried[] = {"roundup_power2_divisions:8"};
    const allot_advise_options options = {.struct_size = sizeof options,
                                          .limit = MIB(12288),
                                          .row_max = 1,
                                          .settings = tried,
                                          .setting_count = 1};
    allot_advice *const advice = advise(trace, &options);
    check_sane(advice);
    CHECK(row_named(advice, tried[0]).is_tried);
    CHECK(!row_of(advice, summary_of(advice).recommended_row).is_tried);
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

static void a_small_saving_is_called_small(void)
{
    allot_trace *const trace = read_data("snapshots/a15_1423_segments_45gib.pickle");
    if (trace == NULL) {
        return;
    }
    allot_advice *const advice = advise(trace, NULL);
    check_sane(advice);
    CHECK(!summary_of(advice).is_complete);
    CHECK_CONTAINS(allot_advice_headline(advice), "at most");
    CHECK_CONTAINS(allot_advice_headline(advice), "live tensors need");
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

/* ---- made-up programs ---- */

/**
 * A comb: a large cached block is cut into large and small pieces in turn, the large ones are
 * freed, and then a request is larger than each of them. 200 MiB and 500 MiB are live at the end.
 */
static allot_trace *comb(uint64_t limit, const char *settings)
{
    enum { TEETH = 20 };
    sim_trace *const sim = sim_trace_begin(settings, limit);
    uint32_t large[TEETH];
    sim_trace_free(sim, sim_trace_alloc(sim, MIB(1000), 5));
    for (int i = 0; i < TEETH; i++) {
        large[i] = sim_trace_alloc(sim, MIB(40), 10);
        sim_trace_alloc(sim, MIB(10), 20);
    }
    for (int i = 0; i < TEETH; i++) {
        sim_trace_free(sim, large[i]);
    }
    sim_trace_alloc(sim, MIB(500), 40);
    return sim_trace_end(sim);
}

static void nothing_helps_where_live_bytes_exceed_the_limit(void)
{
    sim_trace *const sim = sim_trace_begin("", MIB(512));
    for (int i = 0; i < 10; i++) {
        sim_trace_alloc(sim, MIB(40), 7);
    }
    CHECK_EQ(sim_trace_alloc(sim, MIB(200), 9), ALLOT_NONE);
    allot_trace *const trace = sim_trace_end(sim);
    allot_advice *const advice = advise(trace, NULL);
    const allot_advice_summary s = summary_of(advice);
    check_sane(advice);
    CHECK_EQ(s.verdict, ALLOT_ADVICE_VERDICT_NOTHING_HELPS);
    CHECK_EQ(s.limit, MIB(512));
    CHECK_EQ(s.live_peak, MIB(600));
    CHECK_CONTAINS(allot_advice_where(advice), "program.py:9");
    CHECK_CONTAINS(allot_advice_headline(advice), "needs 600.0 MiB, and the limit is 512.0 MiB");
    CHECK_CONTAINS(allot_advice_reason(advice), "600.0 MiB are live at once at");
    CHECK_CONTAINS(allot_advice_reason(advice), "smaller batch");
    CHECK_CONTAINS(allot_advice_reason(advice), "gives this process");
    REQUIRE(allot_advice_line_count(advice) > 0);
    allot_advice_line line = {0};
    allot_advice_get_line(advice, 0, &line);
    CHECK_CONTAINS(line.text, "program.py:7");
    CHECK_EQ(line.bytes, MIB(400));
    CHECK_EQ(line.count, 10);
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

static void a_limit_beside_the_recording_is_obeyed(void)
{
    allot_trace *const trace = comb(0, "");
    const allot_advise_options low = {.struct_size = sizeof low, .limit = MIB(300)};
    allot_advice *advice = advise(trace, &low);
    CHECK_EQ(summary_of(advice).verdict, ALLOT_ADVICE_VERDICT_NOTHING_HELPS);
    CHECK_EQ(summary_of(advice).limit_source, ALLOT_LIMIT_SOURCE_GIVEN);
    allot_advice_destroy(advice);
    const allot_advise_options high = {.struct_size = sizeof high, .limit = MIB(900)};
    advice = advise(trace, &high);
    check_sane(advice);
    CHECK_EQ(summary_of(advice).limit, MIB(900));
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

static void a_tidy_program_is_left_alone(void)
{
    sim_trace *const sim = sim_trace_begin("", 0);
    for (int i = 0; i < 100; i++) {
        const uint32_t block = sim_trace_alloc(sim, MIB(64), 5);
        sim_trace_free(sim, block);
    }
    allot_trace *const trace = sim_trace_end(sim);
    allot_advice *const advice = advise(trace, NULL);
    check_sane(advice);
    CHECK_EQ(summary_of(advice).verdict, ALLOT_ADVICE_VERDICT_KEEP);
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

static void a_comb_is_cured_by_expandable_segments(void)
{
    allot_trace *const trace = comb(MIB(1200), "");
    allot_advice *const advice = advise(trace, NULL);
    const allot_advice_summary s = summary_of(advice);
    check_sane(advice);
    CHECK_EQ(s.limit, MIB(1200));
    CHECK_EQ(s.limit_source, ALLOT_LIMIT_SOURCE_INFERRED);
    CHECK_EQ(s.verdict, ALLOT_ADVICE_VERDICT_CHANGE);
    CHECK_STR(s.recommended, "expandable_segments:True");
    CHECK_EQ(row_of(advice, 0).limit_min, MIB(1500));
    CHECK(has_note(advice, "virtual memory"));
    CHECK_CONTAINS(allot_advice_where(advice), "program.py:40");
    allot_advice_destroy(advice);
    allot_trace_destroy(trace);
}

/* ---- how it behaves ---- */

static char *json_of(const allot_trace *trace, uint32_t threads)
{
    const allot_advise_options options = {.struct_size = sizeof options, .thread_count = threads};
    allot_advice *const advice = advise(trace, &options);
    const allot_report_options report = {.struct_size = sizeof report, .format = ALLOT_REPORT_JSON};
    trace_buffer buffer = {.data = NULL};
    const allot_sink sink = trace_buffer_sink(&buffer);
    CHECK_OK(allot_report_advice(advice, &report, &sink));
    allot_advice_destroy(advice);
    char *const text = realloc(buffer.data, buffer.size + 1);
    CHECK(text != NULL);
    text[buffer.size] = '\0';
    return text;
}

static void threads_do_not_change_the_answer(void)
{
    allot_trace *const trace = comb(MIB(1200), "");
    char *const one = json_of(trace, 1);
    for (uint32_t threads = 2; threads <= 5; threads += 3) {
        char *const more = json_of(trace, threads);
        CHECK_STR(one, more);
        free(more);
    }
    free(one);
    allot_trace_destroy(trace);
}

static bool stop_at(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)total;
    uint64_t *const left = context;
    if (strcmp(stage, "trying settings") != 0 || done == 0) {
        return true;
    }
    return (*left)-- > 1;
}

static void cancelling_ends_the_search(void)
{
    allot_trace *const trace = comb(0, "");
    uint64_t left = 1;
    const allot_advise_options options = {
        .struct_size = sizeof options, .progress = stop_at, .progress_context = &left};
    allot_advice *advice = NULL;
    CHECK_EQ(allot_advise(trace, 0, &options, &advice), ALLOT_STATUS_CANCELLED);
    CHECK(advice == NULL);
    allot_trace_destroy(trace);
}

static void a_failing_allocation_anywhere_comes_back(void)
{
    allot_trace *const trace = comb(MIB(1200), "");
    const allot_advise_options options = {
        .struct_size = sizeof options, .thread_count = 1, .with_strategies = true};
    bool took_place = true;
    /* A search makes many thousand allocations: the first ones, then some of the rest. */
    for (uint64_t nth = 1; took_place; nth += 1 + nth / 8) {
        allot_advice *advice = NULL;
        alloc_fault_arm(nth);
        const allot_status status = allot_advise(trace, 0, &options, &advice);
        took_place = alloc_fault_disarm();
        CHECK_EQ(status, took_place ? ALLOT_STATUS_HOST_MEMORY : ALLOT_STATUS_OK);
        CHECK((advice == NULL) == took_place);
        allot_advice_destroy(advice);
    }
    allot_trace_destroy(trace);
}

static void bad_options_are_refused(void)
{
    allot_trace *const trace = comb(0, "");
    static const char *const wrong[] = {"max_split_size_mb:five"};
    static const char *const async[] = {"backend:cudaMallocAsync"};
    const struct {
        uint32_t device;
        allot_advise_options options;
        const char *says;
    } cases[] = {
        {1, {.fraction = 0.0}, "device 1"},
        {0, {.fraction = 1.5, .limit = MIB(1)}, "fraction"},
        {0, {.fraction = -0.5, .limit = MIB(1)}, "fraction"},
        {0, {.fraction = 0.5}, "limit"},
        {0, {.settings = wrong, .setting_count = 1}, "max_split_size_mb"},
        {0, {.settings = async, .setting_count = 1}, "native"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        allot_advice *advice = NULL;
        allot_advise_options options = cases[i].options;
        options.struct_size = sizeof options;
        CHECK_EQ(allot_advise(trace, cases[i].device, &options, &advice), ALLOT_STATUS_INVALID);
        CHECK_CONTAINS(allot_error_detail(), cases[i].says);
        CHECK(advice == NULL);
    }
    allot_trace_destroy(trace);
}

static void traces_without_history_are_told_so(void)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.000001,allocate,0x100,256,0\n", "RMM"},
        {"{\"segments\": [{\"device\": 0, \"address\": 4096, \"total_size\": 2097152, "
         "\"allocated_size\": 512, \"active_size\": 512, \"stream\": 0, \"segment_type\": "
         "\"small\", \"blocks\": [{\"size\": 512, \"address\": 4096, \"state\": "
         "\"active_allocated\"}, {\"size\": 2096640, \"address\": 4608, \"state\": "
         "\"inactive\"}]}], \"device_traces\": [[]]}",
         "_record_memory_history"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        allot_trace *trace = NULL;
        REQUIRE_OK(
            allot_trace_read_memory(cases[i].text, strlen(cases[i].text), "t", NULL, &trace));
        allot_advice *const advice = advise(trace, NULL);
        CHECK_EQ(summary_of(advice).verdict, ALLOT_ADVICE_VERDICT_CANNOT_SAY);
        CHECK_EQ(allot_advice_row_count(advice), 0);
        CHECK(allot_advice_reason(advice)[0] != '\0');
        CHECK_CONTAINS(allot_advice_reason(advice), cases[i].says);
        allot_advice_destroy(advice);
        allot_trace_destroy(trace);
    }
}

static const check_test TESTS[] = {
    {"a_fragmented_run_is_recognised_and_cured", a_fragmented_run_is_recognised_and_cured},
    {"predictions_are_what_the_real_allocator_did", predictions_are_what_the_real_allocator_did},
    {"what_is_on_is_never_recommended", what_is_on_is_never_recommended},
    {"a_run_under_pressure_that_finishes_is_judged_as_one_that_does",
     a_run_under_pressure_that_finishes_is_judged_as_one_that_does},
    {"what_fits_with_room_is_left_alone", what_fits_with_room_is_left_alone},
    {"a_tight_limit_is_met_by_expandable_segments_with_a_list_and_said_to_be_tight",
     a_tight_limit_is_met_by_expandable_segments_with_a_list_and_said_to_be_tight},
    {"a_fitted_threshold_has_to_be_better_than_expandable_segments",
     a_fitted_threshold_has_to_be_better_than_expandable_segments},
    {"what_dies_is_ordered_by_how_far_it_gets_and_needs",
     what_dies_is_ordered_by_how_far_it_gets_and_needs},
    {"rows_of_one_outcome_are_one_row", rows_of_one_outcome_are_one_row},
    {"what_is_asked_for_has_a_row_and_a_mark", what_is_asked_for_has_a_row_and_a_mark},
    {"a_small_saving_is_called_small", a_small_saving_is_called_small},
    {"nothing_helps_where_live_bytes_exceed_the_limit",
     nothing_helps_where_live_bytes_exceed_the_limit},
    {"a_limit_beside_the_recording_is_obeyed", a_limit_beside_the_recording_is_obeyed},
    {"a_tidy_program_is_left_alone", a_tidy_program_is_left_alone},
    {"a_comb_is_cured_by_expandable_segments", a_comb_is_cured_by_expandable_segments},
    {"threads_do_not_change_the_answer", threads_do_not_change_the_answer},
    {"cancelling_ends_the_search", cancelling_ends_the_search},
    {"a_failing_allocation_anywhere_comes_back", a_failing_allocation_anywhere_comes_back},
    {"bad_options_are_refused", bad_options_are_refused},
    {"traces_without_history_are_told_so", traces_without_history_are_told_so},
};
CHECK_MAIN(TESTS)
