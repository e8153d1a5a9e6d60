/* SPDX-License-Identifier: MIT */
/*
 * What a PyTorch snapshot means: layouts of all ages, wrong types, missing keys. The same snapshots
 * are written as JSON, since both spellings share the meaning; test_torch_pickle.c is about the
 * pickle itself.
 */
#include <stdio.h>
#include <string.h>

#include "support/alloc_fault.h"
#include "support/check.h"
#include "support/pickle_writer.h"

static pickle_writer w;

static allot_status read_text(const char *text, allot_trace_format format, allot_trace **out)
{
    const allot_trace_read_options options = {.struct_size = sizeof options, .format = format};
    return allot_trace_read_memory(text, strlen(text), "test", &options, out);
}

static allot_trace *read_good(const char *text)
{
    allot_trace *trace = NULL;
    CHECK_OK(read_text(text, ALLOT_TRACE_FORMAT_AUTO, &trace));
    return trace;
}

static void check_refused(const char *text, const char *part)
{
    allot_trace *trace = NULL;
    CHECK_EQ(read_text(text, ALLOT_TRACE_FORMAT_TORCH_JSON, &trace), ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), "test: byte ");
    CHECK_CONTAINS(allot_error_detail(), part);
    allot_trace_destroy(trace);
}

/* The only entry of the only device has this wrong or missing. */
static void check_entry_refused(const char *entry, const char *part)
{
    char text[512];
    snprintf(text, sizeof text, "{\"device_traces\": [[{%s}]]}", entry);
    check_refused(text, part);
}

static void check_segment_refused(const char *segment, const char *part)
{
    char text[512];
    snprintf(text, sizeof text, "{\"segments\": [{%s}]}", segment);
    check_refused(text, part);
}

static void layout_2_0_has_history_and_no_addresses(void)
{
    allot_trace *const trace =
        read_good("{\"segments\": [{\"device\": 0, \"address\": 4096, \"total_size\": 2097152,"
                  "  \"allocated_size\": 1024, \"active_size\": 1536, \"stream\": 0,"
                  "  \"segment_type\": \"small\", \"blocks\": ["
                  "   {\"size\": 1024, \"state\": \"active_allocated\", \"history\": ["
                  "     {\"addr\": 4096, \"real_size\": 1000, \"frames\": ["
                  "       {\"name\": \"f\", \"filename\": \"/srv/a.py\", \"line\": 3}]},"
                  "     {\"addr\": 4096, \"real_size\": 7, \"frames\": []}]},"
                  "   {\"size\": 512, \"state\": \"active_pending_free\", \"history\": ["
                  "     {\"addr\": 5120, \"real_size\": 500, \"frames\": []}]},"
                  "   {\"size\": 2095616, \"state\": \"inactive\"}]}],"
                  " \"device_traces\": [[{\"action\": \"snapshot\", \"addr\": 0, \"size\": 1536,"
                  "  \"stream\": 0}]]}");
    REQUIRE(trace != NULL);
    uint32_t count = 0;
    const allot_segment *const segment = allot_trace_segments(trace, &count);
    REQUIRE(count == 1);
    CHECK(!segment->is_large);
    CHECK(!segment->is_expandable);
    CHECK_EQ(segment->requested_size, 1500);
    CHECK_EQ(segment->pool, ALLOT_NONE);
    const allot_block *const blocks = allot_trace_blocks(trace, &count);
    REQUIRE(count == 3);
    CHECK_EQ(blocks[0].address, 4096);
    CHECK_EQ(blocks[1].address, 5120);
    CHECK_EQ(blocks[2].address, 5632);
    CHECK_EQ(blocks[0].requested_size, 1000);
    CHECK_EQ(blocks[1].state, ALLOT_BLOCK_PENDING_FREE);
    allot_trace_stack(trace, blocks[0].stack, &count);
    CHECK_EQ(count, 1);
    CHECK(blocks[1].stack != ALLOT_NONE);
    CHECK_EQ(blocks[2].stack, ALLOT_NONE);
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_SEGMENTS));
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_REQUESTED));
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_TIMES));
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_SEGMENT_EVENTS));
    allot_trace_destroy(trace);
}

static void layout_of_today_has_pools_contexts_and_metadata(void)
{
    allot_trace *const trace = read_good(
        "{\"segments\": [], \"device_traces\": [[], [{\"action\": \"oom\", \"device_free\": 5,"
        " \"size\": 512, \"stream\": 7, \"time_us\": 12, \"compile_context\": \"0/1\","
        " \"user_metadata\": \"\", \"pool_id\": [0, 3], \"frames\": []}]],"
        " \"host_traces\": [[{\"action\": \"alloc\", \"addr\": 1, \"size\": 2, \"stream\": 0}]],"
        " \"host_segments\": [{\"address\": 64, \"total_size\": 8, \"blocks\": []}],"
        " \"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"a:b\", \"x\": {\"1\": 4},"
        " \"y\": 0.5, \"z\": true, \"n\": null, \"wide\": 18446744073709551615,"
        " \"low\": -1152921504606846977},"
        " \"external_annotations\": [{\"stage\": \"START\", \"name\": \"step\", \"device\": 1,"
        " \"time_us\": 9}, {\"stage\": \"OTHER\", \"name\": \"step\"}]}");
    REQUIRE(trace != NULL);
    REQUIRE(allot_trace_device_count(trace) == 3);
    CHECK_EQ(allot_trace_get_device(trace, 2)->memory, ALLOT_MEMORY_PINNED);
    CHECK_EQ(allot_trace_get_device(trace, 2)->segment_count, 1);
    allot_events events;
    allot_trace_get_events(trace, 0, &events);
    CHECK_EQ(events.count, 0);
    allot_trace_get_events(trace, 2, &events);
    CHECK_EQ(events.count, 1);
    allot_trace_get_events(trace, 1, &events);
    REQUIRE(events.count == 1);
    CHECK_EQ(events.kind[0], ALLOT_EVENT_OOM);
    CHECK_EQ(events.addr[0], 5);
    CHECK_EQ(events.time_ns[0], 12000);
    CHECK_EQ(allot_trace_stream(trace, events.stream[0]), 7);
    CHECK_EQ(allot_trace_pool(trace, events.pool[0]).second, 3);
    CHECK_STR(allot_trace_string(trace, events.context[0], NULL), "0/1");
    CHECK(events.stack[0] != ALLOT_NONE);
    CHECK_EQ(allot_trace_find_setting(trace, "x.1")->integer, 4);
    CHECK_EQ(allot_trace_find_setting(trace, "z")->type, ALLOT_SETTING_BOOL);
    CHECK_EQ(allot_trace_find_setting(trace, "n")->type, ALLOT_SETTING_NONE);
    CHECK_EQ(allot_trace_find_setting(trace, "wide")->integer, INT64_MAX);
    CHECK_EQ(allot_trace_find_setting(trace, "low")->integer, INT64_C(-1152921504606846977));
    CHECK(allot_trace_find_setting(trace, "y")->number == 0.5);
    uint32_t count = 0;
    const allot_annotation *const annotation = allot_trace_annotations(trace, &count);
    REQUIRE(count == 1);
    CHECK(annotation->is_start);
    CHECK_EQ(annotation->device, 1);
    allot_trace_destroy(trace);
}

static void bare_list_of_segments_is_a_trace_without_events(void)
{
    allot_trace *const trace =
        read_good("[{\"address\": 512, \"total_size\": 512, \"device\": 3, \"blocks\": ["
                  "{\"address\": 512, \"size\": 512, \"requested_size\": 3,"
                  " \"state\": \"active_awaiting_free\", \"category\": \"GRADIENT\"}]}]");
    REQUIRE(trace != NULL);
    CHECK_EQ(allot_trace_device_count(trace), 1);
    CHECK_EQ(allot_trace_get_device(trace, 0)->index, 3);
    uint32_t count = 0;
    const allot_block *const block = allot_trace_blocks(trace, &count);
    REQUIRE(count == 1);
    CHECK_EQ(block->state, ALLOT_BLOCK_PENDING_FREE);
    CHECK_EQ(block->category, ALLOT_CATEGORY_GRADIENT);
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_CATEGORIES));
    allot_trace_destroy(trace);
}

static void categories_by_number_are_looked_up_in_their_list(void)
{
    allot_trace *const trace = read_good(
        "{\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 1, \"size\": 1, \"category\": 1},"
        " {\"action\": \"alloc\", \"addr\": 2, \"size\": 1, \"category\": 9},"
        " {\"action\": \"alloc\", \"addr\": 3, \"size\": 1}]],"
        " \"categories\": [\"input\", \"PARAMETER\"]}");
    REQUIRE(trace != NULL);
    allot_events events;
    allot_trace_get_events(trace, 0, &events);
    REQUIRE(events.category != NULL);
    CHECK_EQ(events.category[0], ALLOT_CATEGORY_PARAMETER);
    CHECK_EQ(events.category[1], ALLOT_CATEGORY_UNKNOWN);
    CHECK_EQ(events.category[2], ALLOT_CATEGORY_UNKNOWN);
    allot_trace_destroy(trace);
}

static void addresses_of_64_bits_survive_json(void)
{
    allot_trace *const trace =
        read_good("{\"device_traces\": [[{\"action\": \"alloc\","
                  " \"addr\": 18446744073709551615, \"size\": 9007199254740993}]]}");
    REQUIRE(trace != NULL);
    allot_events events;
    allot_trace_get_events(trace, 0, &events);
    CHECK_EQ(events.addr[0], UINT64_MAX);
    CHECK_EQ(events.size[0], UINT64_C(9007199254740993));
    allot_trace_destroy(trace);
}

/* Python writes them; JSON does not know them. In texts they are text. */
static void infinite_and_undefined_numbers_count_as_none(void)
{
    allot_trace *const trace = read_good(
        "{\"segments\": [{\"address\": 1, \"total_size\": 2, \"blocks\": []}],"
        " \"allocator_settings\": {\"a\": NaN, \"b\": -Infinity, \"c\": Infinity, \"d\": -1.5,"
        " \"e\": \"NaN \\\" -Infinity\", \"I\": [Infinity, NaN]}}");
    REQUIRE(trace != NULL);
    static const char *const KEYS[] = {"a", "b", "c"};
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        CHECK_EQ(allot_trace_find_setting(trace, KEYS[i])->type, ALLOT_SETTING_NONE);
    }
    CHECK(allot_trace_find_setting(trace, "d")->number == -1.5);
    CHECK_STR(allot_trace_string(trace, allot_trace_find_setting(trace, "e")->string, NULL),
              "NaN \" -Infinity");
    allot_trace_destroy(trace);
    check_refused("{\"segments\": Nan}", "byte ");
    check_refused("{\"segments\": 1NaN}", "byte ");
    check_refused("{\"segments\": -Infinite}", "byte ");
    check_refused("{\"segments\": -", "byte ");
    check_entry_refused("\"action\": \"alloc\", \"addr\": Infinity, \"size\": 1",
                        "\"addr\" of a trace entry is None");
}

static void what_is_no_snapshot_is_refused(void)
{
    check_refused("{}", "no segments and no trace entries");
    check_refused("[]", "no segments and no trace entries");
    check_refused("{\"segments\": [], \"device_traces\": [[], []]}",
                  "no segments and no trace entries");
    check_refused("3", "holds an integer, not the dict or list of a memory snapshot");
    check_refused("null", "holds None");
    check_refused("{\"name\": \"f\", \"filename\": \"g\"}", "holds a frame, not");
    check_refused("[1]", "\"segments\" of the snapshot is an integer, not a list of segments");
    check_refused("[[1, 2]]", "\"segments\" of the snapshot is a tuple, not a list of segments");
    check_refused("{\"segments\": 1}", "\"segments\" of the snapshot is an integer, not a list");
    check_refused("{\"device_traces\": [3]}", "is an integer, not a list");
    check_refused("{\"device_traces\": [[3, 4, 5]]}", "is an integer, not a list of trace entries");
}

static void entries_that_miss_something_are_refused(void)
{
    check_entry_refused("\"action\": \"alloc\", \"size\": 1",
                        "a trace entry \"alloc\" has no \"addr\"");
    check_entry_refused("\"action\": \"free_completed\", \"addr\": 1",
                        "a trace entry \"free_completed\" has no \"size\"");
    check_entry_refused("\"action\": \"oom\", \"size\": 1",
                        "a trace entry \"oom\" has no \"device_free\"");
    check_entry_refused("\"action\": \"gone\\u001b[31m\", \"addr\": 1",
                        "unknown action \"gone?[31m\"");
    check_entry_refused("\"action\": 3, \"addr\": 1",
                        "\"action\" of a trace entry is an integer, not a string");
}

static void entries_of_wrong_types_are_refused(void)
{
#define ENTRY "\"action\": \"alloc\", "
    check_entry_refused(ENTRY "\"addr\": -1, \"size\": 1", "\"addr\" of a trace entry is negative");
    check_entry_refused(ENTRY "\"addr\": 1.5, \"size\": 1",
                        "\"addr\" of a trace entry is a float, not an integer of 64 bits");
    check_entry_refused(ENTRY "\"addr\": 18446744073709551616, \"size\": 1",
                        "\"addr\" of a trace entry is bytes or a huge integer");
    check_entry_refused(ENTRY "\"addr\": 1, \"size\": \"1\"",
                        "\"size\" of a trace entry is a string");
    check_entry_refused(ENTRY "\"addr\": 1, \"size\": 1, \"time_us\": 9300000000000000",
                        "\"time_us\" of a trace entry is out of range");
    check_entry_refused(ENTRY "\"addr\": 1, \"size\": 1, \"time_us\": true",
                        "\"time_us\" of a trace entry is a bool, not a number");
    check_entry_refused(ENTRY "\"addr\": 1, \"size\": 1, \"frames\": [1, 2, 3]",
                        "\"frames\" of a trace entry is a list, not a list of frames");
    check_entry_refused(ENTRY "\"addr\": 1, \"size\": 1, \"frames\": {}",
                        "\"frames\" of a trace entry is an empty dict");
    check_entry_refused(ENTRY "\"addr\": 1, \"size\": 1, \"frames\": "
                              "[{\"name\": \"f\", \"filename\": \"g\", \"line\": 4294967296}]",
                        "\"line\" of a frame is out of range");
    check_entry_refused(ENTRY "\"addr\": 1, \"size\": 1, \"category\": 300",
                        "\"category\" of a trace entry is out of range");
#undef ENTRY
}

static void bad_segments_are_refused(void)
{
    check_segment_refused("\"total_size\": 1, \"blocks\": []", "a segment has no \"address\"");
    check_segment_refused("\"address\": 1, \"blocks\": []", "a segment has no \"total_size\"");
    check_segment_refused("\"address\": 18446744073709551615, \"total_size\": 2, \"blocks\": []",
                          "does not fit the address space");
    check_segment_refused("\"address\": 1, \"total_size\": 2, \"device\": 99999, \"blocks\": []",
                          "\"device\" of a segment is 99999");
    check_segment_refused("\"address\": 1, \"total_size\": 2, \"blocks\": [7]",
                          "\"blocks\" of a segment is an integer, not a list of blocks");
    check_segment_refused("\"address\": 1, \"total_size\": 2, \"blocks\": {}",
                          "\"blocks\" of a segment is an empty dict, not a list");
    check_segment_refused("\"address\": 1, \"total_size\": 2, \"is_expandable\": 1, \"blocks\": []",
                          "\"is_expandable\" of a segment is an integer, not a bool");
    check_segment_refused("\"address\": 1, \"total_size\": 2, \"blocks\": ["
                          "{\"size\": 2, \"state\": \"lost\"}]",
                          "\"state\" of a block is none of");
    check_segment_refused("\"address\": 1, \"total_size\": 2, \"blocks\": ["
                          "{\"size\": 18446744073709551615, \"state\": \"inactive\"}]",
                          "does not fit the address space");
}

static void settings_of_wrong_shapes_are_refused(void)
{
#define SEGMENT "{\"segments\": [{\"address\": 1, \"total_size\": 2, \"blocks\": []}], "
    check_refused(SEGMENT "\"allocator_settings\": 1}", "\"allocator_settings\" of the snapshot");
    check_refused(SEGMENT "\"allocator_settings\": {\"1\": {\"1\": {\"1\": {\"1\": {\"1\": {\"1\":"
                          " {\"1\": {\"1\": {\"1\": {\"1\": {\"x\": 2}}}}}}}}}}}}",
                  "too many levels");
    check_refused(SEGMENT "\"external_annotations\": [1]}",
                  "\"external_annotations\" of the snapshot is an integer, not a list of dicts");
    check_refused(SEGMENT "\"device_traces\": [3]}", "is an integer, not a list");
#undef SEGMENT
}

static void too_many_devices_are_refused(void)
{
    pickle_begin(&w);
    pickle_ops(&w, "}(");
    pickle_text(&w, "device_traces");
    pickle_ops(&w, "](");
    for (unsigned i = 0; i < 5000; i++) {
        pickle_ops(&w, "]");
    }
    pickle_ops(&w, "eu.");
    pickle_check_refused(&w, "\"device_traces\" has 5000 devices, more than 1024");
}

/* Events that come in another order than the lists that hold them, and in runs. */
static void entries_go_to_the_device_whose_list_they_are_in(void)
{
    pickle_begin(&w);
    for (unsigned i = 0; i < 6; i++) {
        pickle_open_entry(&w, "alloc", i, 1);
        pickle_ops(&w, "u\x94"
                       "0");
    }
    pickle_ops(&w, "}(");
    pickle_text(&w, "device_traces");
    pickle_ops(&w, "](](");
    pickle_bytes(&w, "h\x04h\x05h\x00", 6);
    pickle_ops(&w, "e](");
    pickle_bytes(&w, "h\x01h\x02", 4);
    pickle_ops(&w, "eeu.");
    allot_trace *trace = NULL;
    REQUIRE_OK(pickle_read(&w, &trace));
    allot_events events;
    allot_trace_get_events(trace, 0, &events);
    REQUIRE(events.count == 3);
    CHECK_EQ(events.addr[0], 4);
    CHECK_EQ(events.addr[1], 5);
    CHECK_EQ(events.addr[2], 0);
    allot_trace_get_events(trace, 1, &events);
    REQUIRE(events.count == 2);
    CHECK_EQ(events.addr[1], 2);
    allot_trace_destroy(trace);
}

static void empty_list_of_categories_tells_nothing(void)
{
    allot_trace *const trace =
        read_good("{\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 1, \"size\": 1}]],"
                  " \"categories\": []}");
    REQUIRE(trace != NULL);
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_CATEGORIES));
    allot_trace_destroy(trace);
}

static const char SAMPLE[] =
    "{\"segments\": [{\"address\": 512, \"total_size\": 512, \"blocks\": [{\"size\": 512,"
    " \"state\": \"inactive\", \"history\": [{\"real_size\": 1, \"frames\": []}]}]}],"
    " \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 1, \"size\": 1, \"time_us\": 1.25,"
    " \"frames\": [{\"name\": \"f\", \"filename\": \"g\", \"line\": 1, \"fx_node_op\": \"h\"}]}]],"
    " \"skipped\": {\"deep\": [{\"action\": 1}]}, \"allocator_settings\": {\"a\": {\"b\": 0.5}},"
    " \"external_annotations\": [{\"stage\": \"END\", \"name\": \"s\"}], \"categories\": []}";

static allot_status read_sample(void *context)
{
    (void)context;
    allot_trace *trace = NULL;
    const allot_status status = read_text(SAMPLE, ALLOT_TRACE_FORMAT_AUTO, &trace);
    allot_trace_destroy(trace);
    return status;
}

static void every_allocation_may_fail(void)
{
    CHECK(alloc_fault_each(read_sample, NULL) > 10);
}

static void every_cut_of_a_json_file_is_refused(void)
{
    char text[sizeof SAMPLE];
    for (size_t size = 1; size < sizeof SAMPLE - 1; size++) {
        memcpy(text, SAMPLE, size);
        text[size] = '\0';
        check_refused(text, "byte ");
    }
}

static const check_test TESTS[] = {
    {"layout_2_0_has_history_and_no_addresses", layout_2_0_has_history_and_no_addresses},
    {"layout_of_today_has_pools_contexts_and_metadata",
     layout_of_today_has_pools_contexts_and_metadata},
    {"bare_list_of_segments_is_a_trace_without_events",
     bare_list_of_segments_is_a_trace_without_events},
    {"categories_by_number_are_looked_up_in_their_list",
     categories_by_number_are_looked_up_in_their_list},
    {"addresses_of_64_bits_survive_json", addresses_of_64_bits_survive_json},
    {"infinite_and_undefined_numbers_count_as_none", infinite_and_undefined_numbers_count_as_none},
    {"what_is_no_snapshot_is_refused", what_is_no_snapshot_is_refused},
    {"entries_that_miss_something_are_refused", entries_that_miss_something_are_refused},
    {"entries_of_wrong_types_are_refused", entries_of_wrong_types_are_refused},
    {"bad_segments_are_refused", bad_segments_are_refused},
    {"settings_of_wrong_shapes_are_refused", settings_of_wrong_shapes_are_refused},
    {"too_many_devices_are_refused", too_many_devices_are_refused},
    {"entries_go_to_the_device_whose_list_they_are_in",
     entries_go_to_the_device_whose_list_they_are_in},
    {"empty_list_of_categories_tells_nothing", empty_list_of_categories_tells_nothing},
    {"every_allocation_may_fail", every_allocation_may_fail},
    {"every_cut_of_a_json_file_is_refused", every_cut_of_a_json_file_is_refused},
};
CHECK_MAIN(TESTS)
