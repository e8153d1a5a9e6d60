/* SPDX-License-Identifier: MIT */
/* Readers and writers when host memory runs out at any allocation: a status, nothing leaks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/alloc_fault.h"
#include "support/check.h"
#include "support/sample_trace.h"
#include "support/trace_equal.h"

/** Bytes of a trace in memory. */
typedef struct bytes {
    const char *data;
    size_t size;
} bytes;

static allot_status read_bytes(void *context)
{
    const bytes *const input = context;
    allot_trace *trace = NULL;
    const allot_status status =
        allot_trace_read_memory(input->data, input->size, "bytes", NULL, &trace);
    allot_trace_destroy(trace);
    return status;
}

static void check_reading(const char *text)
{
    bytes input = {.data = text, .size = strlen(text)};
    CHECK(alloc_fault_each(read_bytes, &input) > 5);
}

static void readers_report_that_memory_ran_out(void)
{
    check_reading("[[-1, 1, 1000, 6], [5, 4, -1000, 6]]");
    check_reading("{\"traceEvents\":[{\"name\":\"step\",\"ph\":\"X\",\"cat\":\"user_annotation\","
                  "\"ts\":1,\"dur\":2},{\"name\":\"[memory]\",\"ts\":1,\"args\":{\"Bytes\":5,"
                  "\"Total Allocated\":5,\"Total Reserved\":9}}]}");
    check_reading("Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00.1,allocate,0x1,1,0x0\n");
    check_reading("REPLAY,makeMemoryResource,HOST,0x10\nREPLAY,allocate,134,0x10,0x7000\n"
                  "REPLAY,deallocate,0x7000,0x10\n");
    check_reading("{\"Total\":{},\"MemoryInfo\":{},\"DefaultPools\":{\"T\":{\"Blocks\":{\"0\":{"
                  "\"TotalBytes\":9,\"Suballocations\":[{\"Offset\":0,\"Type\":\"B\",\"Size\":5}]}"
                  "}}}}");
    check_reading("device,event,size_rounded,stream,pool,user_metadata,stack\n"
                  "gpu:0,alloc,512,0,0:1,\"x\",\"f|x.py|1;g|x.py|2\"\n");
}

/** A trace and the format it is written in. */
typedef struct writing {
    const allot_trace *trace;
    allot_trace_format format;
} writing;

static allot_status ignore(void *context, const void *data, size_t size)
{
    (void)context, (void)data, (void)size;
    return ALLOT_STATUS_OK;
}

static allot_status write_once(void *context)
{
    const writing *const w = context;
    const allot_sink sink = {.write = ignore};
    return allot_trace_write(w->trace, w->format, NULL, &sink);
}

static void writers_report_that_memory_ran_out(void)
{
    static const allot_trace_format FORMATS[] = {
        ALLOT_TRACE_FORMAT_TORCH_PICKLE, ALLOT_TRACE_FORMAT_CHROME, ALLOT_TRACE_FORMAT_ALLOT,
        ALLOT_TRACE_FORMAT_CSV, ALLOT_TRACE_FORMAT_FOLDED};
    allot_trace *const trace = sample_trace(true);
    REQUIRE(trace != NULL);
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        writing w = {.trace = trace, .format = FORMATS[i]};
        CHECK(alloc_fault_each(write_once, &w) >= 1);
    }
    allot_trace_destroy(trace);
}

static void the_own_format_reports_that_memory_ran_out(void)
{
    trace_buffer buffer = {.size = 0};
    const allot_sink sink = trace_buffer_sink(&buffer);
    allot_trace *const trace = sample_trace(true);
    REQUIRE(trace != NULL);
    CHECK_OK(allot_trace_write(trace, ALLOT_TRACE_FORMAT_ALLOT, NULL, &sink));
    bytes input = {.data = buffer.data, .size = buffer.size};
    CHECK(alloc_fault_each(read_bytes, &input) > 20);
    allot_trace_destroy(trace);
    free(buffer.data);
}

static const check_test TESTS[] = {
    {"readers_report_that_memory_ran_out", readers_report_that_memory_ran_out},
    {"writers_report_that_memory_ran_out", writers_report_that_memory_ran_out},
    {"the_own_format_reports_that_memory_ran_out", the_own_format_reports_that_memory_ran_out},
};
CHECK_MAIN(TESTS)
