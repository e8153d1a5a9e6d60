/* SPDX-License-Identifier: MIT */
/* Extracting requests, replaying them under other conditions, and lack of host memory in between.
 */
#include <allot/replay.h>

#include "support/alloc_fault.h"
#include "support/check.h"
#include "support/torch_program.h"

#include <string.h>

#define MIB (1ull << 20)

static torch_program small_program(bool expandable, bool shares)
{
    torch_program program = {.seed = 5,
                             .operation_count = 300,
                             .stream_count = 2,
                             .pool_count = 1,
                             .shares = shares,
                             .empties = true,
                             .size_max = 40 * MIB,
                             .limit = 2048 * MIB,
                             .version = ALLOT_TORCH_VERSION_NEWEST};
    allot_torch_conf_init(&program.conf);
    program.conf.expandable_segments = expandable;
    return program;
}

/** Requests of a small program, with its trace. */
static allot_requests *make(const torch_program *program, uint32_t dropped, allot_trace **trace)
{
    allot_requests *requests = NULL;
    *trace = torch_program_record(program, dropped);
    if (*trace != NULL) {
        CHECK_OK(allot_requests_create(*trace, ALLOT_NONE, &requests, NULL));
    }
    return requests;
}

static void drop(allot_requests *requests, allot_trace *trace)
{
    allot_requests_destroy(requests);
    allot_trace_destroy(trace);
}

static void info_counts_what_was_recorded(void)
{
    const torch_program program = small_program(false, true);
    allot_trace *trace = NULL;
    allot_requests *requests = make(&program, 0, &trace);
    REQUIRE(requests != NULL);
    allot_requests_info info;
    allot_requests_get_info(requests, &info);
    CHECK(info.is_complete);
    CHECK_EQ(info.initial_count, 0);
    CHECK(info.alloc_count > 100);
    CHECK(info.empty_cache_count > 0);
    CHECK_EQ(info.pressure_count, 0);
    CHECK_EQ(info.version, ALLOT_TORCH_VERSION_NEWEST);
    CHECK(info.allocated_peak <= info.reserved_peak);
    drop(requests, trace);
}

static void a_trace_from_the_middle_has_initial_blocks(void)
{
    const torch_program program = small_program(true, false);
    allot_trace *trace = NULL;
    allot_requests *requests = make(&program, ALLOT_NONE, &trace);
    REQUIRE(requests != NULL);
    allot_requests_info info;
    allot_requests_get_info(requests, &info);
    CHECK(!info.is_complete);
    CHECK(info.initial_count > 10);
    CHECK(info.initial_reserved > 0);
    drop(requests, trace);
}

/** The recorded settings give the recorded peak, from the beginning and from the middle. */
static void check_recorded_peak(const torch_program *program, uint32_t dropped)
{
    allot_trace *trace = NULL;
    allot_requests *requests = make(program, dropped, &trace);
    REQUIRE(requests != NULL);
    allot_requests_info info;
    allot_requests_get_info(requests, &info);
    const allot_replay_options options = {.struct_size = sizeof(options), .limit = program->limit};
    allot_replay_result *result = NULL;
    CHECK_OK(allot_replay_run(requests, &options, &result));
    CHECK_EQ(result->reserved_peak, info.reserved_peak);
    CHECK(result->has_finished);
    CHECK_EQ(result->alloc_count, info.alloc_count);
    allot_replay_result_destroy(result);
    drop(requests, trace);
}

static void the_recorded_settings_give_the_recorded_peak(void)
{
    for (int expandable = 0; expandable < 2; expandable++) {
        const torch_program program = small_program(expandable == 1, true);
        check_recorded_peak(&program, 0);
        check_recorded_peak(&program, ALLOT_NONE);
    }
}

static void other_settings_request_the_live_blocks_first(void)
{
    const torch_program program = small_program(false, true);
    allot_trace *trace = NULL;
    allot_requests *requests = make(&program, ALLOT_NONE, &trace);
    REQUIRE(requests != NULL);
    allot_requests_info info;
    allot_requests_get_info(requests, &info);
    const allot_replay_options options = {.struct_size = sizeof(options),
                                          .model = "torch:expandable_segments:True"};
    allot_replay_result *result = NULL;
    CHECK_OK(allot_replay_run(requests, &options, &result));
    CHECK_EQ(result->alloc_count, info.alloc_count + info.initial_count);
    CHECK_STR(result->model, "torch:expandable_segments:True");
    allot_replay_result_destroy(result);
    drop(requests, trace);
}

static void an_initial_state_beyond_the_limit_is_an_out_of_memory(void)
{
    const torch_program program = small_program(false, false);
    allot_trace *trace = NULL;
    allot_requests *requests = make(&program, ALLOT_NONE, &trace);
    REQUIRE(requests != NULL);
    allot_replay_options options = {.struct_size = sizeof(options), .limit = 4 * MIB};
    allot_replay_result *result = NULL;
    CHECK_OK(allot_replay_run(requests, &options, &result));
    CHECK_EQ(result->oom_count, 1);
    CHECK_EQ(result->oom_event, 0);
    CHECK(!result->has_finished);
    allot_replay_result_destroy(result);
    drop(requests, trace);
}

static void settings_can_be_given_as_values(void)
{
    const torch_program program = small_program(false, false);
    allot_trace *trace = NULL;
    allot_requests *requests = make(&program, 0, &trace);
    REQUIRE(requests != NULL);
    allot_torch_conf conf;
    allot_torch_conf_init(&conf);
    conf.max_split_size = 24 * MIB;
    allot_replay_options options = {.struct_size = sizeof(options), .conf = &conf};
    allot_replay_result *result = NULL;
    CHECK_OK(allot_replay_run(requests, &options, &result));
    CHECK_STR(result->model, "torch:max_split_size_mb:24");
    allot_replay_result_destroy(result);
    drop(requests, trace);
}

static void samples_are_bounded_and_in_order(void)
{
    const torch_program program = small_program(false, false);
    allot_trace *trace = NULL;
    allot_requests *requests = make(&program, 0, &trace);
    REQUIRE(requests != NULL);
    for (uint32_t wanted = 1; wanted < 400; wanted += 37) {
        const allot_replay_options options = {.struct_size = sizeof(options),
                                              .sample_count = wanted};
        allot_replay_result *result = NULL;
        REQUIRE_OK(allot_replay_run(requests, &options, &result));
        CHECK(result->sample_count > 0 && result->sample_count <= wanted);
        for (uint32_t i = 1; i < result->sample_count; i++) {
            CHECK(result->samples[i - 1].event < result->samples[i].event);
        }
        if (wanted > 1) {
            CHECK_EQ(result->samples[result->sample_count - 1].reserved, result->reserved_end);
        }
        allot_replay_result_destroy(result);
    }
    drop(requests, trace);
}

static void costs_follow_the_model_given(void)
{
    const torch_program program = small_program(false, false);
    allot_trace *trace = NULL;
    allot_requests *requests = make(&program, 0, &trace);
    REQUIRE(requests != NULL);
    const allot_cost_model cost = {.struct_size = sizeof(cost), .segment_alloc_ns = 7};
    const allot_replay_options options = {.struct_size = sizeof(options), .cost = &cost};
    allot_replay_result *result = NULL;
    CHECK_OK(allot_replay_run(requests, &options, &result));
    CHECK_EQ(result->cost_ns, 7 * result->driver_alloc_count);
    allot_replay_result_destroy(result);
    drop(requests, trace);
}

static bool stop(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage, (void)done, (void)total;
    *(bool *)context = true;
    return false;
}

static void a_replay_can_be_cancelled(void)
{
    torch_program program = small_program(false, false);
    program.operation_count = 40000;
    allot_trace *trace = NULL;
    allot_requests *requests = make(&program, 0, &trace);
    REQUIRE(requests != NULL);
    bool asked = false;
    const allot_replay_options options = {
        .struct_size = sizeof(options), .progress = stop, .progress_context = &asked};
    allot_replay_result *result = NULL;
    CHECK_EQ(allot_replay_run(requests, &options, &result), ALLOT_STATUS_CANCELLED);
    CHECK(asked);
    const allot_replay_check_options check = {
        .struct_size = sizeof(check), .progress = stop, .progress_context = &asked};
    allot_replay_check_result checked;
    CHECK_EQ(allot_replay_check(requests, &check, &checked), ALLOT_STATUS_CANCELLED);
    drop(requests, trace);
}

/** What a caller saw of a heap. */
typedef struct looks {
    uint64_t count;
    uint64_t stop_at; /**< 0: never. */
    uint64_t event;
    uint64_t reserved_most;
} looks;

static bool look(void *context, allot_heap *heap, uint64_t event)
{
    looks *const seen = context;
    allot_heap_stats stats;
    CHECK_OK(allot_heap_get_stats(heap, &stats));
    CHECK(event >= seen->event);
    seen->event = event;
    const uint64_t reserved = stats.reserved_bytes.current;
    seen->reserved_most = reserved > seen->reserved_most ? reserved : seen->reserved_most;
    return ++seen->count != seen->stop_at;
}

static void the_heap_of_a_replay_can_be_looked_at(void)
{
    const torch_program program = small_program(false, true);
    allot_trace *trace = NULL;
    allot_requests *requests = make(&program, 0, &trace);
    REQUIRE(requests != NULL);
    looks seen = {0};
    allot_replay_options options = {.struct_size = sizeof(options),
                                    .model = "heap:tlsf:mode=segments",
                                    .on_heap = look,
                                    .on_heap_context = &seen};
    allot_replay_result *result = NULL;
    REQUIRE_OK(allot_replay_run(requests, &options, &result));
    CHECK(seen.count > 200);
    CHECK(seen.reserved_most > 0 && seen.reserved_most <= result->reserved_peak);
    allot_replay_result_destroy(result);
    seen = (looks){.stop_at = 50};
    CHECK_EQ(allot_replay_run(requests, &options, &result), ALLOT_STATUS_CANCELLED);
    CHECK_EQ(seen.count, 50);
    seen = (looks){0};
    options.model = "space:tlsf";
    REQUIRE_OK(allot_replay_run(requests, &options, &result));
    CHECK_EQ(seen.count, 0);
    allot_replay_result_destroy(result);
    drop(requests, trace);
}

static void compactions_are_told_with_their_events(void)
{
    const torch_program program = small_program(false, true);
    allot_trace *trace = NULL;
    allot_requests *requests = make(&program, 0, &trace);
    REQUIRE(requests != NULL);
    const allot_replay_options options = {
        .struct_size = sizeof(options),
        .model = "heap:mode=segments,blocks=handles,compact=auto,threshold=0.1"};
    allot_replay_result *result = NULL;
    const allot_status wrong = allot_replay_run(requests, &options, &result);
    CHECK_EQ(wrong, ALLOT_STATUS_INVALID); /* a strategy comes first */
    allot_replay_options right = options;
    right.model = "heap:first-fit:mode=segments,blocks=handles,compact=auto,threshold=0.1";
    REQUIRE_OK(allot_replay_run(requests, &right, &result));
    CHECK(result->compaction_count > 0);
    uint64_t bytes = 0;
    uint64_t event = 0;
    for (uint32_t i = 0; i < result->compaction_count; i++) {
        CHECK(result->compactions[i].event > event);
        event = result->compactions[i].event;
        bytes += result->compactions[i].copy_bytes;
    }
    CHECK_EQ(bytes, result->copy_bytes);
    CHECK(result->copy_ns > 0 && result->cost_ns > result->copy_ns);
    allot_replay_result_destroy(result);
    drop(requests, trace);
}

static void mistakes_are_refused(void)
{
    const torch_program program = small_program(false, false);
    allot_trace *trace = NULL;
    allot_requests *requests = make(&program, 0, &trace);
    REQUIRE(requests != NULL);
    allot_requests *none = NULL;
    CHECK_EQ(allot_requests_create(trace, 5, &none, NULL), ALLOT_STATUS_INVALID);
    allot_replay_options options = {.struct_size = sizeof(options), .model = "nothing"};
    allot_replay_result *result = NULL;
    CHECK_EQ(allot_replay_run(requests, &options, &result), ALLOT_STATUS_INVALID);
    options.model = "torch:max_split_size_mb:1";
    CHECK_EQ(allot_replay_run(requests, &options, &result), ALLOT_STATUS_INVALID);
    CHECK_CONTAINS(allot_error_detail(), "model torch: position 18");
    options.model = NULL;
    options.fraction = 0.5;
    CHECK_EQ(allot_replay_run(requests, &options, &result), ALLOT_STATUS_INVALID);
    allot_replay_check_options check = {.struct_size = sizeof(check), .model = "bfc"};
    allot_replay_check_result checked;
    CHECK_EQ(allot_replay_check(requests, &check, &checked), ALLOT_STATUS_INVALID);
    CHECK(allot_replay_get_model(0) != NULL);
    CHECK(allot_replay_get_model(1000) == NULL);
    CHECK_STR(allot_replay_unusable_code(ALLOT_REPLAY_UNUSABLE_NO_SIZES), "no-sizes");
    allot_requests_destroy(NULL);
    allot_replay_result_destroy(NULL);
    drop(requests, trace);
}

static allot_status use_host_memory(void *context)
{
    const allot_trace *trace = context;
    allot_requests *requests = NULL;
    allot_replay_result *result = NULL;
    allot_replay_check_result checked;
    allot_status status = allot_requests_create(trace, ALLOT_NONE, &requests, NULL);
    if (status == ALLOT_STATUS_OK) {
        status = allot_replay_check(requests, NULL, &checked);
    }
    if (status == ALLOT_STATUS_OK) {
        const allot_replay_options options = {.struct_size = sizeof(options), .sample_count = 10};
        status = allot_replay_run(requests, &options, &result);
    }
    allot_replay_result_destroy(result);
    allot_requests_destroy(requests);
    return status;
}

static void every_lack_of_host_memory_is_reported(void)
{
    for (int expandable = 0; expandable < 2; expandable++) {
        const torch_program program = small_program(expandable == 1, true);
        allot_trace *trace = torch_program_record(&program, ALLOT_NONE);
        REQUIRE(trace != NULL);
        CHECK(alloc_fault_each(use_host_memory, trace) > 20);
        allot_trace_destroy(trace);
    }
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
static const check_test TESTS[] = {
    TEST(info_counts_what_was_recorded),
    TEST(a_trace_from_the_middle_has_initial_blocks),
    TEST(the_recorded_settings_give_the_recorded_peak),
    TEST(other_settings_request_the_live_blocks_first),
    TEST(an_initial_state_beyond_the_limit_is_an_out_of_memory),
    TEST(settings_can_be_given_as_values),
    TEST(samples_are_bounded_and_in_order),
    TEST(costs_follow_the_model_given),
    TEST(a_replay_can_be_cancelled),
    TEST(the_heap_of_a_replay_can_be_looked_at),
    TEST(compactions_are_told_with_their_events),
    TEST(mistakes_are_refused),
    TEST(every_lack_of_host_memory_is_reported),
};
CHECK_MAIN(TESTS)
