/* SPDX-License-Identifier: MIT */
#include <allot/torchsim.h>

#include "support/check.h"

#include <stdio.h>
#include <string.h>

#define MIB (1ull << 20)

/** Parsed and written again. */
static const char *canonical(const char *text)
{
    static char buffer[ALLOT_TORCH_CONF_TEXT_MAX];
    allot_torch_conf conf;
    buffer[0] = '\0';
    if (CHECK_OK(allot_torch_conf_parse(text, &conf, NULL))) {
        allot_torch_conf_format(&conf, buffer);
    }
    return buffer;
}

static void reads_every_key(void)
{
    allot_torch_conf conf;
    REQUIRE_OK(allot_torch_conf_parse(
        "backend:native,expandable_segments:True,max_split_size_mb:128,"
        "max_non_split_rounding_mb:32,large_segment_size_mb:12,garbage_collection_threshold:0.8,"
        "roundup_power2_divisions:[256:1,512:2,1024:4,>:8],per_process_memory_fraction:0.5,"
        "expandable_segments_reserve:40G,expandable_segments_reserve_by_class:[a:0.5,b:2G],"
        "graph_capture_record_stream_reuse:True,release_lock_on_cudamalloc:True,"
        "throw_on_cudamalloc_oom:True,pinned_use_cuda_host_register:True,"
        "pinned_num_register_threads:8,pinned_use_background_threads:True,"
        "pinned_free_catch_all:True,pinned_reserve_segment_size_mb:64,"
        "pinned_max_round_threshold_mb:16,pinned_max_cached_size_mb:4",
        &conf, NULL));
    CHECK(conf.expandable_segments);
    CHECK_EQ(conf.max_split_size, 128 * MIB);
    CHECK_EQ(conf.max_non_split_rounding, 32 * MIB);
    CHECK_EQ(conf.large_segment_size, 12 * MIB);
    CHECK(conf.garbage_collection_threshold == 0.8);
    CHECK(conf.per_process_memory_fraction == 0.5);
    CHECK_EQ(conf.expandable_reserve_size, 40ull << 30);
    CHECK_EQ(conf.pinned_num_register_threads, 8);
    CHECK_EQ(conf.pinned_max_cached_size, 4 * MIB);
    const uint32_t divisions[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8};
    CHECK(memcmp(conf.roundup_power2_divisions, divisions, sizeof(divisions)) == 0);
}

static void writes_equal_settings_equally(void)
{
    CHECK_STR(canonical(""), "");
    CHECK_STR(canonical("backend:native, expandable_segments:False"), "");
    CHECK_STR(canonical("max_split_size_mb:128, expandable_segments : True"),
              "expandable_segments:True,max_split_size_mb:128");
    CHECK_STR(canonical("garbage_collection_threshold:0.80"), "garbage_collection_threshold:0.8");
    CHECK_STR(canonical("roundup_power2_divisions:4"), "roundup_power2_divisions:4");
    CHECK_STR(canonical("roundup_power2_divisions:[1:4,>:4]"), "roundup_power2_divisions:4");
    CHECK_STR(canonical("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"),
              "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
    CHECK_STR(canonical("roundup_power2_divisions:[>:2]"), "roundup_power2_divisions:[1:0,>:2]");
    CHECK_STR(canonical("max_split_size_mb:64,max_split_size_mb:128"), "max_split_size_mb:128");
    CHECK_STR(canonical("release_lock_on_hipmalloc:True"), "release_lock_on_cudamalloc:True");
}

static void what_is_written_reads_back(void)
{
    uint64_t state = check_seed();
    for (int i = 0; i < 500; i++) {
        allot_torch_conf conf;
        allot_torch_conf_init(&conf);
        for (uint32_t n = 0; n < ALLOT_TORCH_INTERVALS; n++) {
            conf.roundup_power2_divisions[n] =
                check_random_range(&state, 0, 2) == 0 ? 0 : 1u << check_random_range(&state, 0, 3);
        }
        conf.garbage_collection_threshold = (double)check_random_range(&state, 0, 999) / 1000;
        conf.max_split_size = check_random_range(&state, 20, 4000) * MIB;
        conf.expandable_reserve_share = (double)check_random_range(&state, 0, 9) / 8;
        char first[ALLOT_TORCH_CONF_TEXT_MAX];
        allot_torch_conf_format(&conf, first);
        REQUIRE(strcmp(canonical(first), first) == 0);
        allot_torch_conf again;
        REQUIRE_OK(allot_torch_conf_parse(first, &again, NULL));
        CHECK(memcmp(again.roundup_power2_divisions, conf.roundup_power2_divisions,
                     sizeof(conf.roundup_power2_divisions)) == 0);
        CHECK(again.garbage_collection_threshold == conf.garbage_collection_threshold);
    }
}

static void errors_name_the_position(void)
{
    static const struct {
        const char *text;
        const char *detail;
    } cases[] = {
        {"max_split_size_mb", "position 17: expected :, the settings end"},
        {"max_split_size_mb:", "position 18: expected a value, the settings end"},
        {"max_split_size_mb:19", "position 18: max_split_size_mb must be at least 20"},
        {"max_split_size_mb:39,large_segment_size_mb:40", "must be at least 40"},
        {"large_segment_size_mb:40,max_non_split_rounding_mb:30", "must be at least 40"},
        {"max_split_size_mb:x", "position 18: max_split_size_mb must be at least 1"},
        {"max_non_split_rounding_mb:5", "position 26: max_non_split_rounding_mb"},
        {"large_segment_size_mb:10", "position 22: large_segment_size_mb must be more than 10"},
        {"garbage_collection_threshold:1.0", "position 29: garbage_collection_threshold"},
        {"garbage_collection_threshold:0", "position 29: garbage_collection_threshold"},
        {"per_process_memory_fraction:1.5", "position 28: per_process_memory_fraction"},
        {"expandable_segments:true", "position 20: expandable_segments must be True or False"},
        {"expandable_segments:[1:2]", "position 20: expected a single value"},
        {"roundup_power2_divisions:3", "position 25: roundup_power2_divisions"},
        {"roundup_power2_divisions:[3:4]", "position 26: an interval"},
        {"roundup_power2_divisions:[4:3]", "position 28: roundup_power2_divisions"},
        {"roundup_power2_divisions:[4:2", "position 29: expected \",\" or \"]\""},
        {"roundup_power2_divisions:[4", "position 27: expected :"},
        {"no_such_key:1", "position 0: unknown setting \"no_such_key\""},
        {"expandable_segments:True,,", "position 25: expected a setting"},
        {"expandable_segments:True max_split_size_mb:20", "position 25: expected ,"},
        {"backend:other", "position 8: backend must be native or cudaMallocAsync"},
        {"pinned_num_register_threads:3", "position 28: pinned_num_register_threads"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        allot_torch_conf conf = {.struct_size = 77};
        CHECK_EQ(allot_torch_conf_parse(cases[i].text, &conf, NULL), ALLOT_STATUS_INVALID);
        CHECK_CONTAINS(allot_error_detail(), cases[i].detail);
        CHECK_EQ(conf.struct_size, 77);
    }
}

static void with_notes_what_pytorch_refuses_is_passed_over(void)
{
    allot_torch_conf conf;
    allot_torch_notes notes = {.count = 0};
    REQUIRE_OK(allot_torch_conf_parse(
        "no_such_key:[a:1,b:2],max_split_size_mb:4,expandable_segments:True", &conf, &notes));
    CHECK(conf.expandable_segments);
    CHECK_EQ(conf.max_split_size, ALLOT_TORCH_UNLIMITED);
    REQUIRE(notes.count == 2);
    CHECK_EQ(notes.items[0].kind, ALLOT_TORCH_NOTE_UNKNOWN_KEY);
    CHECK_EQ(notes.items[0].position, 0);
    CHECK_EQ(notes.items[1].kind, ALLOT_TORCH_NOTE_OUT_OF_RANGE);
    CHECK_EQ(notes.items[1].position, 40);
    CHECK_EQ(allot_torch_conf_parse("a:1,b", &conf, &notes), ALLOT_STATUS_INVALID);
}

static void notes_that_do_not_fit_are_counted(void)
{
    char text[1024] = "";
    for (int i = 0; i < ALLOT_TORCH_NOTES_MAX + 5; i++) {
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sk%d:1",
                       i == 0 ? "" : ",", i);
    }
    allot_torch_conf conf;
    allot_torch_notes notes = {.count = 0};
    REQUIRE_OK(allot_torch_conf_parse(text, &conf, &notes));
    CHECK_EQ(notes.count, ALLOT_TORCH_NOTES_MAX);
    CHECK_EQ(notes.dropped, 5);
}

/** Number of notes of a kind that a review of settings gives. */
static uint32_t review(const char *text, bool known, double fraction, allot_torch_note_kind kind,
                       const char *part)
{
    allot_torch_conf conf;
    allot_torch_notes notes = {.count = 0};
    if (!CHECK_OK(allot_torch_conf_parse(text, &conf, NULL))) {
        return 0;
    }
    allot_torch_conf_review(&conf, known, fraction, &notes);
    uint32_t count = 0;
    for (uint32_t i = 0; i < notes.count; i++) {
        count += notes.items[i].kind == kind && strstr(notes.items[i].text, part) != NULL;
    }
    return count;
}

static void a_review_finds_what_does_nothing(void)
{
    const allot_torch_note_kind ignored = ALLOT_TORCH_NOTE_IGNORED;
    CHECK_EQ(review("garbage_collection_threshold:0.8", true, 1, ignored, "fraction below"), 1);
    CHECK_EQ(review("garbage_collection_threshold:0.8", true, 0.9, ignored, ""), 0);
    CHECK_EQ(review("garbage_collection_threshold:0.8", false, 0, ignored, "file does not say"), 1);
    CHECK_EQ(review("garbage_collection_threshold:0.8,expandable_segments:True", true, 0.9, ignored,
                    "there are none"),
             1);
    CHECK_EQ(review("roundup_power2_divisions:1", true, 1, ignored, "rounds nothing"), 1);
    CHECK_EQ(review("roundup_power2_divisions:[256:1,>:4]", true, 1, ignored, "its interval"), 1);
    CHECK_EQ(review("roundup_power2_divisions:4", true, 1, ignored, ""), 0);
    CHECK_EQ(review("max_non_split_rounding_mb:40", true, 1, ignored, "without max_split"), 1);
    CHECK_EQ(review("expandable_segments_reserve:0.5", true, 1, ignored, "reserve"), 1);
    CHECK_EQ(review("backend:cudaMallocAsync,max_split_size_mb:64", true, 1, ignored, "Async"), 1);
    CHECK_EQ(review("throw_on_cudamalloc_oom:True", true, 1, ignored, "throw_on"), 1);
    CHECK_EQ(review("max_split_size_mb:64,expandable_segments:True", true, 1,
                    ALLOT_TORCH_NOTE_CONFLICT, "max_split_size_mb"),
             1);
    CHECK_EQ(review("", true, 1, ignored, ""), 0);
}

/** Divisions of the first intervals as a release reads them. */
static void check_divisions(const char *text, uint32_t version, const uint32_t *expected)
{
    allot_torch_conf conf;
    REQUIRE_OK(allot_torch_conf_parse_for(text, version, &conf, NULL));
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ(conf.roundup_power2_divisions[i], expected[i]);
    }
}

static void the_end_of_a_list_begins_earlier_up_to_2_9(void)
{
    check_divisions("roundup_power2_divisions:[4:8,>:2]", 209, (uint32_t[]){8, 8, 2, 2});
    check_divisions("roundup_power2_divisions:[4:8,>:2]", 210, (uint32_t[]){8, 8, 8, 2});
    check_divisions("roundup_power2_divisions:[>:2]", 209, (uint32_t[]){2, 2, 2, 2});
    check_divisions("roundup_power2_divisions:[>:2]", 0, (uint32_t[]){0, 2, 2, 2});
}

static void sizes_are_compared_with_a_segment_by_release(void)
{
    allot_torch_conf conf;
    CHECK_EQ(allot_torch_conf_parse_for("max_split_size_mb:20", 209, &conf, NULL),
             ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "more than 20");
    CHECK_OK(allot_torch_conf_parse_for("max_split_size_mb:20", 210, &conf, NULL));
    CHECK_OK(allot_torch_conf_parse("large_segment_size_mb:12,max_split_size_mb:14", &conf, NULL));
    allot_torch_notes notes = {.count = 0};
    CHECK_OK(
        allot_torch_conf_parse("max_split_size_mb:30,large_segment_size_mb:40", &conf, &notes));
    CHECK_EQ(notes.count, 1);
    CHECK_EQ(conf.max_split_size, ALLOT_TORCH_UNLIMITED);
}

static void names_of_notes(void)
{
    CHECK_STR(allot_torch_note_kind_name(ALLOT_TORCH_NOTE_CONFLICT), "conflict");
    CHECK_STR(allot_torch_note_kind_name((allot_torch_note_kind)99), "unknown");
}

static void recorded_values_win_over_the_recorded_string(void)
{
    const char *path = check_data("oracle/round_list.pickle.gz");
    if (path == NULL) {
        check_skip("the shared data is not there");
        return;
    }
    allot_trace *trace = NULL;
    REQUIRE_OK(allot_trace_read(path, NULL, &trace));
    allot_torch_conf conf;
    allot_torch_notes notes = {.count = 0};
    CHECK_OK(allot_torch_conf_from_trace(trace, &conf, &notes));
    char text[ALLOT_TORCH_CONF_TEXT_MAX];
    CHECK_STR(allot_torch_conf_format(&conf, text),
              "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
    CHECK_EQ(notes.count, 0);
    CHECK_EQ(allot_torch_version_of(trace), ALLOT_TORCH_VERSION_NEWEST);
    allot_trace_destroy(trace);
}

static const check_test TESTS[] = {
    {"reads_every_key", reads_every_key},
    {"writes_equal_settings_equally", writes_equal_settings_equally},
    {"what_is_written_reads_back", what_is_written_reads_back},
    {"errors_name_the_position", errors_name_the_position},
    {"with_notes_what_pytorch_refuses_is_passed_over",
     with_notes_what_pytorch_refuses_is_passed_over},
    {"notes_that_do_not_fit_are_counted", notes_that_do_not_fit_are_counted},
    {"a_review_finds_what_does_nothing", a_review_finds_what_does_nothing},
    {"the_end_of_a_list_begins_earlier_up_to_2_9", the_end_of_a_list_begins_earlier_up_to_2_9},
    {"sizes_are_compared_with_a_segment_by_release", sizes_are_compared_with_a_segment_by_release},
    {"names_of_notes", names_of_notes},
    {"recorded_values_win_over_the_recorded_string", recorded_values_win_over_the_recorded_string},
};
CHECK_MAIN(TESTS)
