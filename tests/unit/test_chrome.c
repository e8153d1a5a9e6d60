/* SPDX-License-Identifier: MIT */
/* Traces of torch.profiler. */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/read_text.h"

#define CHROME ALLOT_TRACE_FORMAT_CHROME

/* A [memory] event: time, arguments. */
#define MEMORY(ts, args)                                                                           \
    "{'ph':'i','s':'t','name':'[memory]','pid':1,'tid':2,'ts':" ts ",'args':{" args "}}"
#define GPU "'Device Type':1,'Device Id':1"
#define CPU "'Device Type':0,'Device Id':-1"

static const char SORTED_LATER[] =
    "{'schemaVersion': 1, 'deviceProperties': [{'name': 'x', 'traceEvents': 1}], 'traceEvents': ["
    "{'ph':'X','cat':'cpu_op','name':'aten::empty','ts':1,'dur':2,"
    "'args':{'Bytes':'many','Input Dims':[[1,2]]}},"
    "{'ph':'i','name':'[memory]','ts':20.5,'args':{'Device Type':1,'Device Id':1,'Ev Idx':9,"
    "'Addr':512,'Bytes':-1024,'Total Allocated':512,'Total Reserved':2097152}},"
    "{'ph':'i','name':'[memory]','ts':20.5,'args':{'Device Type':1,'Device Id':1,'Ev Idx':8,"
    "'Addr':4096,'Bytes':512,'Total Allocated':1536,'Total Reserved':2097152}},"
    "{'ph':'i','name':'[memory]','ts':10,'args':{'Device Type':0,'Device Id':-1,'Ev Idx':2,"
    "'Addr':64,'Bytes':4,'Total Allocated':4,'Total Reserved':0}},"
    "{'ph':'i','name':'[memory]','ts':10.001,'args':{'Device Type':1,'Device Id':1,'Ev Idx':3,"
    "'Addr':512,'Bytes':1024,'Total Allocated':1024,'Total Reserved':2097152}}]}";

static void events_are_sorted_by_time_and_number(void)
{
    allot_trace *const trace = read_json(SORTED_LATER, CHROME);
    REQUIRE(trace != NULL);
    REQUIRE(allot_trace_device_count(trace) == 2);
    CHECK_EQ(allot_trace_get_device(trace, 0)->memory, ALLOT_MEMORY_DEVICE);
    CHECK_EQ(allot_trace_get_device(trace, 0)->index, 1);
    CHECK_EQ(allot_trace_get_device(trace, 1)->memory, ALLOT_MEMORY_CPU);
    const allot_events e = read_events(trace, 0);
    REQUIRE(e.count == 3);
    CHECK_EQ(e.time_ns[0], 10001);
    CHECK_EQ(e.kind[0], ALLOT_EVENT_ALLOC);
    CHECK_EQ(e.addr[0], 512);
    CHECK_EQ(e.total_allocated[0], 1024);
    CHECK_EQ(e.total_reserved[0], 2097152);
    CHECK_EQ(e.addr[1], 4096);
    CHECK_EQ(e.kind[2], ALLOT_EVENT_FREE_COMPLETED);
    CHECK_EQ(e.size[2], 1024);
    CHECK_EQ(e.time_ns[2], 20500);
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_ADDRESSES));
    CHECK(allot_trace_has(trace, ALLOT_TRACE_HAS_TOTALS));
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_REQUESTED));
    allot_trace_destroy(trace);
}

static void a_bare_list_without_addresses_is_read(void)
{
    allot_trace *const trace = read_json(
        "[" MEMORY("1", GPU ",'Bytes':512") "," MEMORY("2", GPU ",'Bytes':-512") "]", CHROME);
    REQUIRE(trace != NULL);
    const allot_events e = read_events(trace, 0);
    CHECK_EQ(e.count, 2);
    CHECK_EQ(sum_events(&e), 0);
    CHECK(e.total_allocated == NULL);
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_ADDRESSES));
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_TOTALS));
    allot_trace_destroy(trace);
}

static void user_annotations_become_ranges(void)
{
    allot_trace *const trace =
        read_json("{'traceEvents':["
                  "{'name':'outer','ph':'X','cat':'user_annotation','ts':1,'dur':10},"
                  "{'ph':'X','cat':'user_annotation','ts':2,'dur':3,'name':'inner'}," MEMORY(
                      "3", GPU ",'Addr':'0x200','Bytes':1") "]}",
                  CHROME);
    REQUIRE(trace != NULL);
    uint32_t count = 0;
    const allot_annotation *const a = allot_trace_annotations(trace, &count);
    REQUIRE(count == 4);
    CHECK_STR(allot_trace_string(trace, a[0].name, NULL), "outer");
    CHECK(a[0].is_start && a[1].is_start && !a[2].is_start && !a[3].is_start);
    CHECK_EQ(a[0].device, ALLOT_NONE);
    CHECK_STR(allot_trace_string(trace, a[2].name, NULL), "inner");
    CHECK_EQ(a[2].time_ns, 5000);
    CHECK_EQ(a[3].time_ns, 11000);
    CHECK_EQ(read_events(trace, 0).addr[0], 0x200);
    allot_trace_destroy(trace);
}

static void errors_say_where_and_what_to_do(void)
{
    check_refused_json("{'traceEvents':[]}", CHROME,
                       "byte 18: no [memory] event in this Chrome trace; record it with "
                       "torch.profiler.profile(profile_memory=True)");
    check_refused_json("{'schemaVersion':1}", CHROME, "a Chrome trace without \"traceEvents\"");
    check_refused_json("{'traceEvents':[7]}", CHROME,
                       "byte 17: the list of events holds something");
    check_refused_json("[" MEMORY("1", GPU) "]", CHROME,
                       "a [memory] event without a valid \"Bytes\"");
    check_refused_json("[" MEMORY("1", GPU ",'Bytes':1.5") "]", CHROME,
                       "without a valid \"Bytes\"");
    check_refused_json("[" MEMORY("'x'", GPU ",'Bytes':1") "]", CHROME, "without a valid \"ts\"");
    check_refused_json("[" MEMORY("1", GPU ",'Bytes':1,'Addr':-1") "]", CHROME,
                       "without a valid \"Addr\"");
    check_refused_json("[" MEMORY("1", GPU ",'Bytes':1"), CHROME, "the file ends inside the JSON");
}

static allot_trace *read_data(const char *name)
{
    const char *const path = check_data(name);
    allot_trace *trace = NULL;
    if (path == NULL) {
        check_skip("the shared data is not there");
        return NULL;
    }
    CHECK_OK(allot_trace_read(path, NULL, &trace));
    return trace;
}

/* Known of this file: per device the total changes by exactly the bytes of each event. */
static void totals_of_a_recorded_trace_follow_its_events(void)
{
    allot_trace *const trace = read_data("snapshots/t3_chrome_memory_addr.derived.json.gz");
    if (trace == NULL) {
        return;
    }
    uint64_t count = 0;
    for (uint32_t d = 0; d < allot_trace_device_count(trace); d++) {
        const allot_events e = read_events(trace, d);
        REQUIRE(e.total_allocated != NULL);
        count += e.count;
        for (uint64_t i = 1; i < e.count; i++) {
            const uint64_t change = e.kind[i] == ALLOT_EVENT_ALLOC ? e.size[i] : 0 - e.size[i];
            REQUIRE(e.total_allocated[i] - e.total_allocated[i - 1] == change);
        }
    }
    CHECK_EQ(count, 6000);
    allot_trace_destroy(trace);
}

static void a_trace_of_2021_has_no_addresses(void)
{
    allot_trace *const trace = read_data("snapshots/t1_chrome_memory_2021_no_addr.json.gz");
    if (trace == NULL) {
        return;
    }
    REQUIRE(allot_trace_device_count(trace) == 2);
    const allot_events cpu = read_events(trace, 0);
    const allot_events gpu = read_events(trace, 1);
    CHECK_EQ(cpu.count, 4618);
    CHECK_EQ(sum_events(&cpu), 19267840);
    CHECK_EQ(gpu.count, 8220);
    CHECK_EQ(sum_events(&gpu), 0);
    CHECK(!allot_trace_has(trace, ALLOT_TRACE_HAS_ADDRESSES));
    allot_trace_destroy(trace);
}

static const check_test TESTS[] = {
    {"events_are_sorted_by_time_and_number", events_are_sorted_by_time_and_number},
    {"a_bare_list_without_addresses_is_read", a_bare_list_without_addresses_is_read},
    {"user_annotations_become_ranges", user_annotations_become_ranges},
    {"errors_say_where_and_what_to_do", errors_say_where_and_what_to_do},
    {"totals_of_a_recorded_trace_follow_its_events", totals_of_a_recorded_trace_follow_its_events},
    {"a_trace_of_2021_has_no_addresses", a_trace_of_2021_has_no_addresses},
};
CHECK_MAIN(TESTS)
