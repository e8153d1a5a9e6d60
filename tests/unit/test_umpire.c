/* SPDX-License-Identifier: MIT */
/* Umpire's replay logs, as JSON lines and as CSV. */
#include <string.h>

#include "support/check.h"
#include "support/read_text.h"

#define JSON ALLOT_TRACE_FORMAT_UMPIRE_JSON
#define CSV ALLOT_TRACE_FORMAT_UMPIRE_CSV

#define LINE(event, rest)                                                                          \
    "{ 'kind':'replay', 'uid':1, 'timestamp':1000, 'event': '" event "', " rest " }\n"
#define TO(reference) "'allocator_ref': '" reference "'"
#define AT(pointer) "'memory_ptr': '" pointer "'"

/* clang-format off */
static const char JSON_LOG[] =
    "# a comment\n"
    "output of the program\n"
    LINE("version", "'payload': { 'major':0 }")
    LINE("makeMemoryResource", "'payload': { 'name': 'HOST' }, 'result': '0x10'")
    LINE("makeMemoryResource", "'payload': { 'name': 'DEVICE::2' }, 'result': '0x20'")
    LINE("makeAllocator", "'payload': { 'allocator_name':'pool', 'args': [ 'DEVICE::2' ] }")
    LINE("makeAllocator", "'payload': { 'allocator_name':'pool', 'args': [ 'DEVICE::2', 16 ] }, "
                          "'result': { " TO("0x30") " }")
    LINE("allocate", "'payload': { " TO("0x30") ", 'size': 0 }, 'result': { " AT("0x7000") " }")
    LINE("allocate", "'payload': { " TO("0x30") ", 'size': 100 }")
    LINE("allocate", "'payload': { " TO("0x30") ", 'size': 100 }, 'result': { " AT("0x7000") " }")
    LINE("allocate", "'payload': { " TO("0x10") ", 'size': 8 }, 'result': { " AT("0x9000") " }")
    LINE("deallocate", "'payload': { " TO("0x30") ", " AT("0x7000") " }")
    LINE("deallocate", "'payload': { " TO("0x30") ", " AT("0x7000") " }");
/* clang-format on */

static uint32_t device_of(const allot_trace *trace, allot_memory_kind memory, uint32_t index)
{
    for (uint32_t i = 0; i < allot_trace_device_count(trace); i++) {
        const allot_trace_device *const device = allot_trace_get_device(trace, i);
        if (device->memory == memory && device->index == index) {
            return i;
        }
    }
    CHECK_STR("the device", "not there");
    return 0;
}

static void json_lines_are_read(void)
{
    allot_trace *const trace = read_json(JSON_LOG, JSON);
    REQUIRE(trace != NULL);
    const allot_events e = read_events(trace, device_of(trace, ALLOT_MEMORY_DEVICE, 2));
    REQUIRE(e.count == 4);
    CHECK_EQ(e.kind[0], ALLOT_EVENT_ALLOC);
    CHECK_EQ(e.size[0], 0);
    CHECK_EQ(e.size[1], 100);
    CHECK_EQ(e.addr[1], 0x7000);
    CHECK_EQ(e.time_ns[1], 1000);
    CHECK_EQ(e.kind[2], ALLOT_EVENT_FREE_COMPLETED);
    CHECK_EQ(e.size[2], 100);
    CHECK_EQ(e.size[3], 0); /* the empty block that shared the address */
    CHECK_EQ(allot_trace_pool(trace, e.pool[0]).first, 3);
    const allot_setting *const name = allot_trace_find_setting(trace, "allocator.3");
    REQUIRE(name != NULL);
    CHECK_STR(allot_trace_string(trace, name->string, NULL), "pool");
    const allot_events host = read_events(trace, device_of(trace, ALLOT_MEMORY_CPU, 0));
    CHECK_EQ(host.count, 1);
    allot_trace_destroy(trace);
}

static void csv_lines_are_read(void)
{
    allot_trace *const trace =
        read_text("banner\n"
                  "REPLAY,makeMemoryResource,HOST,0x10\n"
                  "REPLAY,makeMemoryResource,PINNED,0x18\n"
                  "REPLAY,makeAllocator,umpire::strategy::SlotPool,true,pool,64,PINNED,0x20\n"
                  "REPLAY,allocate,134,0x20,0x116076000\n"
                  "REPLAY,coalesce,pool\n"
                  "REPLAY,deallocate,0x116076000,0x20\n"
                  "REPLAY,allocate,8,0x99,0x5\n",
                  CSV);
    REQUIRE(trace != NULL);
    const allot_events pinned = read_events(trace, device_of(trace, ALLOT_MEMORY_PINNED, 0));
    REQUIRE(pinned.count == 2);
    CHECK_EQ(pinned.size[0], 134);
    CHECK_EQ(pinned.addr[0], UINT64_C(0x116076000));
    CHECK_EQ(pinned.time_ns[0], ALLOT_TIME_NONE);
    CHECK_EQ(sum_events(&pinned), 0);
    /* An allocator that the log does not make. */
    CHECK_EQ(read_events(trace, device_of(trace, ALLOT_MEMORY_DEVICE, 0)).count, 1);
    allot_trace_destroy(trace);
}

static void errors_name_the_line(void)
{
    check_refused_json("\n{ 'kind': 'replay', \n", JSON, "line 2: byte 21: the file ends inside");
    check_refused_json(LINE("allocate", "'payload': { 'size': 1.5 }"), JSON, "line 1: byte ");
    check_refused_json(LINE("allocate", "'payload': { 'size': 1 }, 'result': {}"), JSON,
                       "line 1 (byte 0): a reference, pointer or size is missing");
    check_refused_json(LINE("deallocate", "'payload': { 'memory_ptr': 5 }"), JSON,
                       "\"memory_ptr\" must be a pointer in a string");
    check_refused_json(LINE("version", "'payload': {}"), JSON, "the log holds no allocation");
    check_refused_json("x\nREPLAY,allocate,1,0x1\n", CSV,
                       "line 2 (byte 2): allocate: size, reference");
    check_refused_json("REPLAY,deallocate,0x1\n", CSV, "deallocate: pointer and reference");
    check_refused_json("REPLAY,makeAllocator,a\n", CSV, "a name and, last, a reference");
    check_refused_json("REPLAY\n", CSV, "the log holds no allocation");
}

/* 64 allocations of 32,880 bytes in all, freed again, on the host. */
static void the_tutorials_log_adds_up(void)
{
    const char *const path = check_data("snapshots/u1_umpire_replay.json");
    if (path == NULL) {
        check_skip("the shared data is not there");
        return;
    }
    allot_trace *trace = NULL;
    REQUIRE_OK(allot_trace_read(path, NULL, &trace));
    const allot_events e = read_events(trace, device_of(trace, ALLOT_MEMORY_CPU, 0));
    CHECK_EQ(e.count, 128);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < e.count; i++) {
        sum += e.kind[i] == ALLOT_EVENT_ALLOC ? e.size[i] : 0;
    }
    CHECK_EQ(sum, 32880);
    CHECK_EQ(sum_events(&e), 0);
    allot_trace_destroy(trace);
}

static const check_test TESTS[] = {
    {"json_lines_are_read", json_lines_are_read},
    {"csv_lines_are_read", csv_lines_are_read},
    {"errors_name_the_line", errors_name_the_line},
    {"the_tutorials_log_adds_up", the_tutorials_log_adds_up},
};
CHECK_MAIN(TESTS)
