/* SPDX-License-Identifier: MIT */
/* PyTorch's own allocator against the model: its random programs under every setting, a fine-tuning
 * run under 24 settings and limits, and histories that people recorded. */
#include <allot/replay.h>

#include "support/check.h"

#include <stdio.h>

#define MIB (1ull << 20)

/** Limit in MiB and fraction that a program ran under, and what it then reported. */
typedef struct oracle {
    const char *file;
    uint64_t limit_mib;
    double fraction;
    uint64_t oom_count;
    uint64_t retry_count;
    uint64_t reserved_mib;
    uint64_t allocated_mib;
} oracle;

static const oracle PROGRAMS[] = {
    {"classic_roomy", 81920, 0, 0, 0, 11248, 8602},
    {"classic_tight", 7000, 0, 1, 1, 6822, 5993},
    {"classic_streams_tight", 8000, 0, 0, 5, 7982, 5978},
    {"classic_pools", 40960, 0, 0, 0, 24962, 8659},
    {"classic_fraction", 16000, 0.5, 0, 0, 6866, 5163},
    {"maxsplit64", 8000, 0, 4, 10, 8000, 7827},
    {"maxsplit128_round", 8000, 0, 0, 0, 5954, 2924},
    {"gc06", 8000, 0.9, 8, 8, 7166, 6734},
    {"gc08_maxsplit", 8000, 1.0, 3, 32, 7998, 7258},
    {"round4", 20480, 0, 0, 0, 8784, 7634},
    {"round_list", 20480, 0, 0, 0, 4536, 3422},
    {"expandable_roomy", 81920, 0, 0, 0, 7566, 6782},
    {"expandable_tight", 6500, 0, 0, 0, 4222, 3388},
    {"expandable_streams_tight", 8000, 0, 0, 0, 4596, 3174},
    {"expandable_maxsplit_gc", 8000, 0.95, 0, 5, 7532, 6834},
    {"expandable_pools", 40960, 0, 0, 0, 16746, 6781},
    {"expandable_round", 12000, 0, 0, 0, 8612, 7174},
    {"finetune_11gib_oom", 11264, 0, 1, 3, 10536, 9287},
    {"finetune_80gib", 81920, 0, 0, 0, 19880, 10027},
    {"finetune_expandable_11gib", 11264, 0, 0, 0, 11050, 10011},
};

/** Read a file below the shared data and extract its requests; false after a skip or a failure. */
static bool open_requests(const char *file, allot_trace **trace, allot_requests **requests)
{
    const char *path = check_data(file);
    if (path == NULL) {
        check_skip("the shared data is not there");
        return false;
    }
    *trace = NULL;
    *requests = NULL;
    if (!CHECK_OK(allot_trace_read(path, NULL, trace))) {
        return false;
    }
    if (!CHECK_OK(allot_requests_create(*trace, ALLOT_NONE, requests, NULL))) {
        allot_trace_destroy(*trace);
        return false;
    }
    return true;
}

static void close_requests(allot_trace *trace, allot_requests *requests)
{
    allot_requests_destroy(requests);
    allot_trace_destroy(trace);
}

static bool check_program(const oracle *program)
{
    char file[96];
    (void)snprintf(file, sizeof(file), "oracle/%s.pickle.gz", program->file);
    allot_trace *trace = NULL;
    allot_requests *requests = NULL;
    if (!open_requests(file, &trace, &requests)) {
        return false;
    }
    const allot_replay_check_options options = {.struct_size = sizeof(options),
                                                .limit = program->limit_mib * MIB,
                                                .fraction = program->fraction};
    allot_replay_check_result result = {.struct_size = 0};
    printf("  %s\n", program->file);
    CHECK_OK(allot_replay_check(requests, &options, &result));
    CHECK(result.is_equal);
    CHECK_EQ(result.placement_equal, result.placement_count);
    CHECK_EQ(result.event_equal, result.event_count);
    CHECK_EQ(result.stats.oom_count, program->oom_count);
    CHECK_EQ(result.stats.retry_count, program->retry_count);
    CHECK_EQ(result.stats.reserved.peak / MIB, program->reserved_mib);
    CHECK_EQ(result.stats.allocated.peak / MIB, program->allocated_mib);
    close_requests(trace, requests);
    return true;
}

static void every_program_is_equal_with_its_statistics(void)
{
    for (size_t i = 0; i < sizeof(PROGRAMS) / sizeof(PROGRAMS[0]); i++) {
        if (!check_program(&PROGRAMS[i])) {
            return;
        }
    }
}

/** What the fine-tuning run did under a setting and a limit. */
typedef struct truth {
    const char *model;
    uint64_t limit_mib;
    uint64_t allocated_mib;
    uint64_t reserved_mib;
    uint64_t retry_count;
    uint64_t oom_count;
} truth;

static const truth TRUTHS[] = {
    {"torch", 11264, 9287, 10536, 3, 1},
    {"torch", 12288, 10027, 12048, 1, 0},
    {"torch", 81920, 10027, 19880, 0, 0},
    {"torch:expandable_segments:True", 11264, 10011, 11050, 0, 0},
    {"torch:expandable_segments:True", 12288, 10011, 11050, 0, 0},
    {"torch:expandable_segments:True", 81920, 10011, 11050, 0, 0},
    {"torch:expandable_segments:True,roundup_power2_divisions:8", 11264, 10572, 10850, 1, 0},
    {"torch:expandable_segments:True,roundup_power2_divisions:8", 12288, 10572, 11590, 0, 0},
    {"torch:expandable_segments:True,roundup_power2_divisions:8", 81920, 10572, 11590, 0, 0},
    {"torch:max_split_size_mb:128", 11264, 10031, 11264, 2, 0},
    {"torch:max_split_size_mb:128", 12288, 10031, 12272, 2, 0},
    {"torch:max_split_size_mb:128", 81920, 10031, 55826, 0, 0},
    {"torch:max_split_size_mb:512", 11264, 10031, 11264, 3, 0},
    {"torch:max_split_size_mb:512", 12288, 10031, 12272, 2, 0},
    {"torch:max_split_size_mb:512", 81920, 10031, 55244, 0, 0},
    {"torch:roundup_power2_divisions:4", 11264, 9007, 9954, 1, 1},
    {"torch:roundup_power2_divisions:4", 12288, 9601, 11490, 2, 1},
    {"torch:roundup_power2_divisions:4", 81920, 11316, 18658, 0, 0},
    {"torch:roundup_power2_divisions:4,max_split_size_mb:512", 11264, 9601, 11200, 2, 1},
    {"torch:roundup_power2_divisions:4,max_split_size_mb:512", 12288, 11316, 12272, 2, 0},
    {"torch:roundup_power2_divisions:4,max_split_size_mb:512", 81920, 11316, 24546, 0, 0},
    {"torch:roundup_power2_divisions:8", 11264, 9471, 10986, 2, 1},
    {"torch:roundup_power2_divisions:8", 12288, 9471, 10986, 2, 1},
    {"torch:roundup_power2_divisions:8", 81920, 10597, 17642, 0, 0},
};

static void check_truth(const allot_requests *requests, const truth *expected)
{
    const allot_replay_options options = {.struct_size = sizeof(options),
                                          .model = expected->model,
                                          .limit = expected->limit_mib * MIB};
    allot_replay_result *result = NULL;
    printf("  %s at %llu MiB\n", expected->model, (unsigned long long)expected->limit_mib);
    REQUIRE_OK(allot_replay_run(requests, &options, &result));
    CHECK_EQ(result->reserved_peak / MIB, expected->reserved_mib);
    CHECK_EQ(result->allocated_peak / MIB, expected->allocated_mib);
    CHECK_EQ(result->retry_count, expected->retry_count);
    CHECK_EQ(result->oom_count, expected->oom_count);
    CHECK_EQ(result->has_finished, expected->oom_count == 0);
    CHECK(result->is_exact);
    allot_replay_result_destroy(result);
}

static void a_replay_under_other_settings_gives_the_truth(void)
{
    allot_trace *trace = NULL;
    allot_requests *requests = NULL;
    if (!open_requests("oracle/finetune_80gib.pickle.gz", &trace, &requests)) {
        return;
    }
    for (size_t i = 0; i < sizeof(TRUTHS) / sizeof(TRUTHS[0]); i++) {
        check_truth(requests, &TRUTHS[i]);
    }
    close_requests(trace, requests);
}

/** The recorded run died at this event; the same requests without pressure die there as well. */
static void a_replay_dies_at_the_request_that_died(void)
{
    allot_trace *trace = NULL;
    allot_requests *requests = NULL;
    if (!open_requests("oracle/finetune_11gib_oom.pickle.gz", &trace, &requests)) {
        return;
    }
    const allot_replay_options options = {.struct_size = sizeof(options), .limit = 11264 * MIB};
    allot_replay_result *result = NULL;
    CHECK_OK(allot_replay_run(requests, &options, &result));
    allot_events events;
    allot_trace_get_events(trace, allot_trace_main_device(trace), &events);
    CHECK_EQ(events.kind[result->oom_event], ALLOT_EVENT_OOM);
    CHECK_EQ(result->oom_size, events.size[result->oom_event]);
    CHECK(result->oom_is_fragmentation);
    CHECK_EQ(result->retry_count, 3);
    allot_replay_result_destroy(result);
    close_requests(trace, requests);
}

/** A recorded history: placements, and segments taken, freed, mapped and unmapped. */
typedef struct history {
    const char *file;
    uint64_t placement_count;
    uint64_t segment_alloc_count;
    uint64_t segment_free_count;
    uint64_t map_count;
    uint64_t unmap_count;
} history;

static const history HISTORIES[] = {
    {"a3_trace_with_snapshot_events", 1935, 7, 0, 0, 0},
    {"a4_segment_free_churn_4dev", 3058, 584, 579, 0, 0},
    {"a6_cpp_frames_small", 2, 1, 0, 0, 0},
    {"a7_cpp_frames_segment_free", 1023, 16, 11, 0, 0},
    {"a8_complete_history_train", 3907, 83, 0, 0, 0},
    {"a9_complete_history_small", 36, 9, 0, 0, 0},
    {"a10_windows_paths_user_metadata", 1721, 0, 0, 0, 0},
    {"a11_expandable_forward", 1704, 0, 0, 0, 0},
    {"a15_1423_segments_45gib", 3368, 0, 0, 0, 0},
    {"d1_expandable_map_unmap_one_gpu.derived", 199, 0, 0, 40, 6},
};

static bool check_history(const history *expected)
{
    char file[96];
    (void)snprintf(file, sizeof(file), "snapshots/%s.pickle", expected->file);
    allot_trace *trace = NULL;
    allot_requests *requests = NULL;
    if (!open_requests(file, &trace, &requests)) {
        return false;
    }
    allot_replay_check_result result = {.struct_size = 0};
    CHECK_OK(allot_replay_check(requests, NULL, &result));
    CHECK_EQ(result.placement_equal, expected->placement_count);
    CHECK_EQ(result.event_equal, result.event_count);
    CHECK_EQ(result.segment_alloc_equal, expected->segment_alloc_count);
    CHECK_EQ(result.segment_free_equal, expected->segment_free_count);
    CHECK_EQ(result.segment_map_equal, expected->map_count);
    CHECK_EQ(result.segment_unmap_equal, expected->unmap_count);
    close_requests(trace, requests);
    return true;
}

static void every_usable_history_is_equal(void)
{
    for (size_t i = 0; i < sizeof(HISTORIES) / sizeof(HISTORIES[0]); i++) {
        if (!check_history(&HISTORIES[i])) {
            return;
        }
    }
}

static const struct {
    const char *file;
    allot_replay_unusable why;
} UNUSABLE[] = {
    {"a1_legacy_history_oom", ALLOT_REPLAY_UNUSABLE_NO_EVENTS},
    {"a2_state_only_368seg", ALLOT_REPLAY_UNUSABLE_NO_EVENTS},
    {"a5_state_16gib_kv", ALLOT_REPLAY_UNUSABLE_NO_EVENTS},
    {"a12_expandable_two_gpus_conf", ALLOT_REPLAY_UNUSABLE_NO_EVENTS},
    {"a13_list_pool_id_no_free_requested", ALLOT_REPLAY_UNUSABLE_INCONSISTENT},
    {"a14_state_tiny", ALLOT_REPLAY_UNUSABLE_NO_EVENTS},
};

static void an_unusable_history_says_what_is_missing(void)
{
    for (size_t i = 0; i < sizeof(UNUSABLE) / sizeof(UNUSABLE[0]); i++) {
        char file[96];
        (void)snprintf(file, sizeof(file), "snapshots/%s.pickle", UNUSABLE[i].file);
        const char *path = check_data(file);
        if (path == NULL) {
            check_skip("the shared data is not there");
            return;
        }
        allot_trace *trace = NULL;
        REQUIRE_OK(allot_trace_read(path, NULL, &trace));
        allot_requests *requests = NULL;
        allot_replay_unusable why = ALLOT_REPLAY_UNUSABLE_NONE;
        CHECK_EQ(allot_requests_create(trace, ALLOT_NONE, &requests, &why),
                 ALLOT_STATUS_UNSUPPORTED);
        CHECK_EQ(why, UNUSABLE[i].why);
        CHECK_CONTAINS(allot_error_detail(), "cannot be replayed");
        allot_trace_destroy(trace);
    }
}

static const check_test TESTS[] = {
    {"every_program_is_equal_with_its_statistics", every_program_is_equal_with_its_statistics},
    {"a_replay_under_other_settings_gives_the_truth",
     a_replay_under_other_settings_gives_the_truth},
    {"a_replay_dies_at_the_request_that_died", a_replay_dies_at_the_request_that_died},
    {"every_usable_history_is_equal", every_usable_history_is_equal},
    {"an_unusable_history_says_what_is_missing", an_unusable_history_says_what_is_missing},
};
CHECK_MAIN(TESTS)
