/* SPDX-License-Identifier: MIT */
/* The table of allocations, timelines and moments of small made-up traces and of recorded ones. */
#include <allot/history.h>
#include <stdio.h>
#include <string.h>

#include "replay/history.h"
#include "support/check.h"
#include "support/trace_maker.h"
#include "trace/builder.h"

static void an_address_used_twice_is_two_allocations(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 20 * MIB);
    maker_event(&m, ALLOT_EVENT_ALLOC, MAKER_BASE, 3 * MIB);
    maker_event(&m, ALLOT_EVENT_FREE_REQUESTED, MAKER_BASE, 3 * MIB);
    maker_event(&m, ALLOT_EVENT_FREE_COMPLETED, MAKER_BASE, 3 * MIB);
    maker_event(&m, ALLOT_EVENT_ALLOC, MAKER_BASE, 5 * MIB);
    maker_segment(&m, MAKER_BASE, 20 * MIB, 5 * MIB);
    maker_block(&m, MAKER_BASE, 5 * MIB, 5 * MIB, ALLOT_BLOCK_ALLOCATED);
    maker_block(&m, MAKER_BASE + 5 * MIB, 15 * MIB, 0, ALLOT_BLOCK_INACTIVE);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_allocations table;
    allot_history_get_allocations(history, &table);
    CHECK_EQ(table.count, 2);
    CHECK_EQ(table.initial_count, 0);
    CHECK_EQ(table.use[0], 0);
    CHECK_EQ(table.use[1], 1);
    CHECK_EQ(table.free_requested_event[0], 2);
    CHECK_EQ(table.free_completed_event[0], 3);
    CHECK_EQ(table.free_completed_event[1], ALLOT_NONE);
    CHECK_EQ(allot_history_peak(history, ALLOT_MEASURE_ALLOCATED).size, 5 * MIB);
    CHECK_EQ(allot_history_peak(history, ALLOT_MEASURE_ALLOCATED).event, 4);
    CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_ALLOCATED, 2), 0);
    CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_ACTIVE, 2), 3 * MIB);
    maker_end(history, trace);
}

static void blocks_from_before_the_trace_are_rebuilt(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_FREE_REQUESTED, MAKER_BASE + 4 * MIB, 4 * MIB);
    maker_event(&m, ALLOT_EVENT_FREE_COMPLETED, MAKER_BASE + 4 * MIB, 4 * MIB);
    maker_segment(&m, MAKER_BASE, 20 * MIB, 4 * MIB);
    maker_block(&m, MAKER_BASE, 4 * MIB, 4 * MIB, ALLOT_BLOCK_ALLOCATED);
    maker_block(&m, MAKER_BASE + 4 * MIB, 16 * MIB, 0, ALLOT_BLOCK_INACTIVE);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_history_counts counts;
    allot_history_get_counts(history, &counts);
    CHECK_EQ(counts.initial_freed, 1);
    CHECK_EQ(counts.initial_live, 1);
    CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_ALLOCATED, ALLOT_NONE), 8 * MIB);
    CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_RESERVED, ALLOT_NONE), 20 * MIB);
    CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_ALLOCATED, 1), 4 * MIB);
    maker_end(history, trace);
}

static void a_rest_that_is_not_split_off_belongs_to_the_block(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 20 * MIB);
    maker_event(&m, ALLOT_EVENT_ALLOC, MAKER_BASE, 20 * MIB - MIB / 2);
    maker_event(&m, ALLOT_EVENT_FREE_REQUESTED, MAKER_BASE, 20 * MIB - MIB / 2);
    maker_event(&m, ALLOT_EVENT_FREE_COMPLETED, MAKER_BASE, 20 * MIB - MIB / 2);
    maker_segment(&m, MAKER_BASE, 20 * MIB, 0);
    maker_block(&m, MAKER_BASE, 20 * MIB, 0, ALLOT_BLOCK_INACTIVE);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_allocations table;
    allot_history_get_allocations(history, &table);
    CHECK_EQ(table.size[0], 20 * MIB);
    CHECK_EQ(table.requested[0], 20 * MIB - MIB / 2);
    maker_end(history, trace);
}

static void unmapping_the_middle_of_a_range_leaves_two_rests(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_MAP, MAKER_BASE, 60 * MIB);
    maker_event(&m, ALLOT_EVENT_SEGMENT_UNMAP, MAKER_BASE + 20 * MIB, 20 * MIB);
    maker_event(&m, ALLOT_EVENT_SEGMENT_MAP, MAKER_BASE + 20 * MIB, 20 * MIB);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    uint32_t count = 0;
    const allot_held *const held = allot_history_held(history, &count);
    CHECK_EQ(count, 4);
    CHECK_EQ(held[0].end_event, 1);
    CHECK(held[1].is_rest && held[2].is_rest && !held[3].is_rest);
    CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_RESERVED, 1), 40 * MIB);
    allot_moment *moment = NULL;
    CHECK_OK(allot_history_at(history, 1, &moment));
    allot_moment_segments(moment, &count);
    CHECK_EQ(count, 2);
    allot_moment_destroy(moment);
    CHECK_OK(allot_history_at(history, 2, &moment));
    const allot_moment_segment *const segments = allot_moment_segments(moment, &count);
    CHECK_EQ(count, 1);
    CHECK_EQ(segments[0].size, 60 * MIB);
    allot_moment_destroy(moment);
    maker_end(history, trace);
}

/* Only segments of the end have a pool in some files: the private one at 40 MiB, the default one.
 */
static void what_records_no_pool_belongs_to_the_pool_of_its_segment(void)
{
    trace_maker m = maker_begin();
    uint32_t pools[2] = {0};
    CHECK_OK(alloti_builder_intern_pool(m.builder, (allot_pool_id){0, 0}, &pools[0]));
    CHECK_OK(alloti_builder_intern_pool(m.builder, (allot_pool_id){0, 7}, &pools[1]));
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 20 * MIB);
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE + 40 * MIB, 20 * MIB);
    maker_alloc(&m, MAKER_BASE + 4 * MIB, 4 * MIB);
    maker_alloc(&m, MAKER_BASE + 44 * MIB, 4 * MIB);
    maker_free(&m, MAKER_BASE + 44 * MIB, 4 * MIB);
    maker_alloc(&m, MAKER_BASE + 100 * MIB, 1 * MIB);
    for (uint32_t i = 0; i < 2; i++) {
        m.pool = pools[i];
        maker_segment(&m, MAKER_BASE + i * 40 * MIB, 20 * MIB, 0);
        maker_block(&m, MAKER_BASE + i * 40 * MIB, 20 * MIB, 0, ALLOT_BLOCK_INACTIVE);
    }
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_allocations table;
    allot_history_get_allocations(history, &table);
    REQUIRE(table.count == 3);
    CHECK_EQ(table.pool[0], pools[0]);
    CHECK_EQ(table.pool[1], pools[1]);
    CHECK_EQ(table.pool[2], ALLOT_NONE);
    uint32_t count = 0;
    const allot_share *const shares = allot_history_pools(history, &count);
    REQUIRE(count == 3);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ(shares[i].reserved_peak.size, shares[i].id == ALLOT_NONE ? 0 : 20 * MIB);
        CHECK_EQ(shares[i].allocation_count, 1);
    }
    maker_end(history, trace);
}

static void the_only_pool_has_what_records_none(void)
{
    trace_maker m = maker_begin();
    uint32_t pool = 0;
    CHECK_OK(alloti_builder_intern_pool(m.builder, (allot_pool_id){0, 0}, &pool));
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 20 * MIB);
    maker_event(&m, ALLOT_EVENT_SEGMENT_FREE, MAKER_BASE, 20 * MIB);
    maker_alloc(&m, MAKER_BASE + 40 * MIB, 4 * MIB);
    maker_free(&m, MAKER_BASE + 40 * MIB, 4 * MIB);
    m.pool = pool;
    maker_segment(&m, MAKER_BASE + 40 * MIB, 20 * MIB, 0);
    maker_block(&m, MAKER_BASE + 40 * MIB, 20 * MIB, 0, ALLOT_BLOCK_INACTIVE);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    uint32_t count = 0;
    const allot_share *const shares = allot_history_pools(history, &count);
    REQUIRE(count == 1);
    CHECK_EQ(shares[0].id, pool);
    CHECK_EQ(shares[0].reserved_peak.size, 40 * MIB);
    CHECK_EQ(shares[0].active_peak.size, 4 * MIB);
    maker_end(history, trace);
}

static void a_moment_lists_blocks_and_free_ranges(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_SEGMENT_ALLOC, MAKER_BASE, 20 * MIB);
    maker_event(&m, ALLOT_EVENT_ALLOC, MAKER_BASE, 2 * MIB);
    maker_event(&m, ALLOT_EVENT_ALLOC, MAKER_BASE + 2 * MIB, 4 * MIB);
    maker_event(&m, ALLOT_EVENT_FREE_REQUESTED, MAKER_BASE, 2 * MIB);
    maker_event(&m, ALLOT_EVENT_FREE_COMPLETED, MAKER_BASE, 2 * MIB);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_moment *moment = NULL;
    REQUIRE_OK(allot_history_at(history, 4, &moment));
    uint32_t count = 0;
    const allot_moment_block *const blocks = allot_moment_blocks(moment, &count);
    CHECK_EQ(count, 3);
    CHECK_EQ(blocks[0].allocation, ALLOT_NONE);
    CHECK_EQ(blocks[0].size, 2 * MIB);
    CHECK_EQ(blocks[1].allocation, 1);
    CHECK_EQ(blocks[2].size, 14 * MIB);
    allot_moment_totals totals;
    allot_moment_get_totals(moment, &totals);
    CHECK_EQ(totals.free_size, 16 * MIB);
    CHECK_EQ(totals.free_largest, 14 * MIB);
    CHECK_EQ(totals.inactive_split_count, 2);
    CHECK_EQ((uint64_t)(totals.fragmentation * 1000), 125);
    allot_moment_destroy(moment);
    REQUIRE_OK(allot_history_at(history, 3, &moment));
    CHECK(allot_moment_blocks(moment, &count)[0].is_pending);
    allot_moment_destroy(moment);
    maker_end(history, trace);
}

static void frees_that_were_not_logged_are_counted(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_ALLOC, MAKER_BASE, 1000);
    maker_event(&m, ALLOT_EVENT_ALLOC, MAKER_BASE, 2000);
    maker_event(&m, ALLOT_EVENT_FREE_COMPLETED, MAKER_BASE, 2000);
    maker_event(&m, ALLOT_EVENT_FREE_COMPLETED, MAKER_BASE, 2000);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    allot_history_counts counts;
    allot_history_get_counts(history, &counts);
    CHECK_EQ(counts.realloc_of_live, 1);
    CHECK_EQ(counts.completed_only, 1);
    CHECK_EQ(counts.unmatched, 1);
    CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_REQUESTED, 1), 2000);
    CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_ACTIVE, 3), 0);
    maker_end(history, trace);
}

static void moments_are_found_by_name_number_and_time(void)
{
    trace_maker m = maker_begin();
    maker_event(&m, ALLOT_EVENT_ALLOC, MAKER_BASE, 1000);
    maker_event(&m, ALLOT_EVENT_OOM, 5, 4096);
    maker_event(&m, ALLOT_EVENT_FREE_COMPLETED, MAKER_BASE, 1000);
    maker_event(&m, ALLOT_EVENT_OOM, 5, 4096);
    allot_trace *trace = NULL;
    allot_history *const history = maker_finish(&m, &trace);
    static const struct {
        const char *text;
        uint32_t event;
    } FOUND[] = {{"peak", 0}, {"peak:active", 0},    {"oom", 3},     {"oom:1", 1},
                 {"end", 3},  {"start", ALLOT_NONE}, {"2", 2},       {"event:2", 2},
                 {"+1ms", 1}, {"+0.0025s", 2},       {"us:2000", 0}, {"+1min", 3}};
    for (size_t i = 0; i < sizeof FOUND / sizeof FOUND[0]; i++) {
        uint32_t at = 99;
        CHECK_OK(allot_history_find(history, FOUND[i].text, &at));
        CHECK_EQ(at, FOUND[i].event);
    }
    static const char *const BAD[] = {
        "", "peek", "peak:x", "oom:", "oom:x", "event:", "+", "+1h", "-3", "1.5", "+-1s", "+nan"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        uint32_t at = 99;
        CHECK_EQ(allot_history_find(history, BAD[i], &at), ALLOT_STATUS_INVALID);
        CHECK_EQ(at, 99);
    }
    uint32_t at = 0;
    CHECK_EQ(allot_history_find(history, "oom:3", &at), ALLOT_STATUS_NOT_FOUND);
    CHECK_EQ(allot_history_find(history, "4", &at), ALLOT_STATUS_NOT_FOUND);
    CHECK_CONTAINS(allot_error_detail(), "4 events");
    maker_end(history, trace);
}

/* ---- recorded files ---- */

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

static void peaks_are_those_that_torch_reported(void)
{
    static const struct {
        const char *name;
        uint64_t reserved_mib;
        uint64_t allocated_mib;
        uint64_t oom_count;
    } RUNS[] = {{"classic_roomy", 11248, 8602, 0},
                {"classic_tight", 6822, 5993, 1},
                {"classic_streams_tight", 7982, 5978, 0},
                {"classic_pools", 24962, 8659, 0},
                {"classic_fraction", 6866, 5163, 0},
                {"maxsplit64", 8000, 7827, 4},
                {"maxsplit128_round", 5954, 2924, 0},
                {"gc06", 7166, 6734, 8},
                {"gc08_maxsplit", 7998, 7258, 3},
                {"round4", 8784, 7634, 0},
                {"round_list", 4536, 3422, 0},
                {"expandable_roomy", 7566, 6782, 0},
                {"expandable_tight", 4222, 3388, 0},
                {"expandable_streams_tight", 4596, 3174, 0},
                {"expandable_maxsplit_gc", 7532, 6834, 0},
                {"expandable_pools", 16746, 6781, 0},
                {"expandable_round", 8612, 7174, 0},
                {"finetune_11gib_oom", 10536, 9287, 1},
                {"finetune_80gib", 19880, 10027, 0},
                {"finetune_expandable_11gib", 11050, 10011, 0}};
    for (size_t i = 0; i < sizeof RUNS / sizeof RUNS[0]; i++) {
        char relative[128];
        snprintf(relative, sizeof relative, "oracle/%s.pickle.gz", RUNS[i].name);
        allot_trace *trace = NULL;
        allot_history *const history = open_recorded(relative, &trace);
        if (history == NULL) {
            return;
        }
        allot_history_counts counts;
        allot_history_get_counts(history, &counts);
        CHECK_EQ(allot_history_peak(history, ALLOT_MEASURE_RESERVED).size / MIB,
                 RUNS[i].reserved_mib);
        CHECK_EQ(allot_history_peak(history, ALLOT_MEASURE_ALLOCATED).size / MIB,
                 RUNS[i].allocated_mib);
        CHECK_EQ(counts.oom, RUNS[i].oom_count);
        CHECK_OK(alloti_history_check(history));
        maker_end(history, trace);
    }
}

static void the_state_at_an_oom_is_rebuilt_after_unwinding(void)
{
    allot_trace *trace = NULL;
    allot_history *const history =
        open_recorded("snapshots/d1_expandable_map_unmap_one_gpu.derived.pickle", &trace);
    if (history == NULL) {
        return;
    }
    uint32_t at = 0;
    CHECK_OK(allot_history_find(history, "oom", &at));
    CHECK_EQ(at, 421);
    allot_moment *moment = NULL;
    REQUIRE_OK(allot_history_at(history, at, &moment));
    allot_moment_totals totals;
    allot_moment_get_totals(moment, &totals);
    CHECK_EQ(totals.active, UINT64_C(84063358976));
    CHECK_EQ(totals.reserved - totals.active, totals.free_size);
    CHECK_EQ(totals.outside_count, 0);
    CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_ACTIVE, 595) / MIB, 384);
    allot_moment_destroy(moment);
    maker_end(history, trace);
}

static void real_snapshots_agree_with_their_segments(void)
{
    static const char *const NAMES[] = {"a1_legacy_history_oom.pickle",
                                        "a2_state_only_368seg.pickle",
                                        "a3_trace_with_snapshot_events.pickle",
                                        "a4_segment_free_churn_4dev.pickle",
                                        "a5_state_16gib_kv.pickle",
                                        "a6_cpp_frames_small.pickle",
                                        "a7_cpp_frames_segment_free.pickle",
                                        "a8_complete_history_train.pickle",
                                        "a9_complete_history_small.pickle",
                                        "a10_windows_paths_user_metadata.pickle",
                                        "a11_expandable_forward.pickle",
                                        "a12_expandable_two_gpus_conf.pickle",
                                        "a14_state_tiny.pickle",
                                        "a15_1423_segments_45gib.pickle",
                                        "d1_expandable_map_unmap_one_gpu.derived.pickle"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        char relative[128];
        snprintf(relative, sizeof relative, "snapshots/%s", NAMES[i]);
        allot_trace *trace = NULL;
        allot_history *const history = open_recorded(relative, &trace);
        if (history == NULL) {
            return;
        }
        CHECK_OK(alloti_history_check(history));
        maker_end(history, trace);
    }
}

static void a_total_that_is_missing_repeats_the_last(void)
{
    const uint64_t totals[] = {4096, UINT64_MAX, 1024};
    alloti_builder *builder = NULL;
    allot_trace *trace = NULL;
    allot_history *history = NULL;
    alloti_event event = ALLOTI_EVENT_INIT;
    uint32_t device = 0;
    REQUIRE(CHECK_OK(alloti_builder_create(&builder)));
    CHECK_OK(alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, 0, &device));
    CHECK_OK(alloti_builder_intern_stream(builder, 0, &event.stream));
    for (uint64_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
        event.kind = ALLOT_EVENT_ALLOC;
        event.addr = (i + 1) << 20;
        event.size = 512;
        event.total_allocated = totals[i];
        CHECK_OK(alloti_builder_add_event(builder, device, &event));
    }
    REQUIRE(CHECK_OK(alloti_builder_finish(builder, ALLOT_TRACE_FORMAT_CHROME, &trace)));
    REQUIRE(CHECK_OK(allot_history_create(trace, device, NULL, &history)));
    CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_ALLOCATED, 1), 4096);
    CHECK_EQ(allot_history_value(history, ALLOT_MEASURE_ALLOCATED, 2), 1024);
    CHECK_EQ(allot_history_peak(history, ALLOT_MEASURE_ALLOCATED).event, 0);
    allot_history_destroy(history);
    allot_trace_destroy(trace);
}

static const check_test TESTS[] = {
    {"a_total_that_is_missing_repeats_the_last", a_total_that_is_missing_repeats_the_last},
    {"an_address_used_twice_is_two_allocations", an_address_used_twice_is_two_allocations},
    {"blocks_from_before_the_trace_are_rebuilt", blocks_from_before_the_trace_are_rebuilt},
    {"a_rest_that_is_not_split_off_belongs_to_the_block",
     a_rest_that_is_not_split_off_belongs_to_the_block},
    {"unmapping_the_middle_of_a_range_leaves_two_rests",
     unmapping_the_middle_of_a_range_leaves_two_rests},
    {"what_records_no_pool_belongs_to_the_pool_of_its_segment",
     what_records_no_pool_belongs_to_the_pool_of_its_segment},
    {"the_only_pool_has_what_records_none", the_only_pool_has_what_records_none},
    {"a_moment_lists_blocks_and_free_ranges", a_moment_lists_blocks_and_free_ranges},
    {"frees_that_were_not_logged_are_counted", frees_that_were_not_logged_are_counted},
    {"moments_are_found_by_name_number_and_time", moments_are_found_by_name_number_and_time},
    {"peaks_are_those_that_torch_reported", peaks_are_those_that_torch_reported},
    {"the_state_at_an_oom_is_rebuilt_after_unwinding",
     the_state_at_an_oom_is_rebuilt_after_unwinding},
    {"real_snapshots_agree_with_their_segments", real_snapshots_agree_with_their_segments},
};

CHECK_MAIN(TESTS)
