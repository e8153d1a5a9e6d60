/* SPDX-License-Identifier: MIT */
/* allot's own format: nothing is lost, and no damage goes unnoticed. */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/sample_trace.h"
#include "support/trace_equal.h"

static void check_round_trip(allot_trace *trace)
{
    REQUIRE(trace != NULL);
    allot_trace *const back = trace_round_trip(trace, ALLOT_TRACE_FORMAT_ALLOT);
    if (back != NULL) {
        CHECK(trace_equal(trace, back));
        CHECK_EQ(allot_trace_get_format(back), ALLOT_TRACE_FORMAT_ALLOT);
        CHECK_EQ(allot_trace_string_count(back), allot_trace_string_count(trace));
        CHECK_EQ(allot_trace_stack_count(back), allot_trace_stack_count(trace));
        CHECK_EQ(allot_trace_frame_count(back), allot_trace_frame_count(trace));
        CHECK_EQ(allot_trace_stream_count(back), allot_trace_stream_count(trace));
        CHECK_EQ(allot_trace_pool_count(back), allot_trace_pool_count(trace));
    }
    allot_trace_destroy(back);
    allot_trace_destroy(trace);
}

static void everything_comes_back(void)
{
    check_round_trip(sample_trace(true));
    check_round_trip(sample_trace(false));
}

static trace_buffer sample_bytes(void)
{
    trace_buffer buffer = {.size = 0};
    const allot_sink sink = trace_buffer_sink(&buffer);
    allot_trace *const trace = sample_trace(true);
    if (CHECK(trace != NULL)) {
        CHECK_OK(allot_trace_write(trace, ALLOT_TRACE_FORMAT_ALLOT, NULL, &sink));
    }
    allot_trace_destroy(trace);
    return buffer;
}

static void check_refused(const char *data, size_t size, size_t where)
{
    const allot_trace_read_options options = {.struct_size = sizeof options,
                                              .format = ALLOT_TRACE_FORMAT_ALLOT};
    allot_trace *trace = NULL;
    const allot_status status = allot_trace_read_memory(data, size, "x", &options, &trace);
    CHECK(status == ALLOT_STATUS_FORMAT || (status == ALLOT_STATUS_VERSION && where < 12));
    CHECK_CONTAINS(allot_error_detail(), "x: byte ");
    allot_trace_destroy(trace);
}

static void every_damaged_byte_is_noticed(void)
{
    trace_buffer buffer = sample_bytes();
    for (size_t i = 0; i < buffer.size; i++) {
        buffer.data[i] = (char)(buffer.data[i] ^ 0x10);
        check_refused(buffer.data, buffer.size, i);
        buffer.data[i] = (char)(buffer.data[i] ^ 0x10);
    }
    free(buffer.data);
}

static void every_truncation_is_noticed(void)
{
    trace_buffer buffer = sample_bytes();
    for (size_t i = 0; i < buffer.size; i++) {
        check_refused(buffer.data, i, buffer.size);
    }
    free(buffer.data);
}

static void trailing_bytes_are_refused(void)
{
    trace_buffer buffer = sample_bytes();
    REQUIRE(buffer.data != NULL);
    /* The buffer ends with a NUL that is not part of it. */
    check_refused(buffer.data, buffer.size + 1, buffer.size);
    CHECK_CONTAINS(allot_error_detail(), "bytes after the last section");
    free(buffer.data);
}

/* The file was written by 0.1.0 from the sample of that day: what it says stays readable. When the
 * sample gains something, the file stays and this test says what the old one lacks. */
static void a_file_of_version_1_is_read(void)
{
    allot_trace *const trace = sample_trace(true);
    allot_trace *old = NULL;
    REQUIRE(trace != NULL);
    if (CHECK_OK(allot_trace_read(ALLOT_TEST_FILES "/sample-1.allot", NULL, &old))) {
        CHECK(trace_equal(trace, old));
    }
    allot_trace_destroy(old);
    allot_trace_destroy(trace);
}

static void a_newer_version_is_refused_by_its_number(void)
{
    enum { VERSION_AT = 8 };
    trace_buffer buffer = sample_bytes();
    allot_trace *trace = NULL;
    REQUIRE(buffer.data != NULL);
    buffer.data[VERSION_AT]++;
    CHECK_EQ(allot_trace_read_memory(buffer.data, buffer.size, "newer", NULL, &trace),
             ALLOT_STATUS_VERSION);
    CHECK_CONTAINS(allot_error_detail(), "byte 8: version 2");
    free(buffer.data);
}

static bool refuse(void *context, const char *stage, uint64_t done, uint64_t total)
{
    uint64_t *const left = context;
    CHECK_STR(stage, "writing");
    CHECK(done <= total);
    return (*left)-- != 1;
}

static void writing_can_be_cancelled(void)
{
    trace_buffer buffer = {.size = 0};
    const allot_sink sink = trace_buffer_sink(&buffer);
    allot_trace *const trace = sample_trace(true);
    uint64_t left = 3;
    const allot_trace_write_options options = {
        .struct_size = sizeof options, .progress = refuse, .progress_context = &left};
    REQUIRE(trace != NULL);
    CHECK_EQ(allot_trace_write(trace, ALLOT_TRACE_FORMAT_ALLOT, &options, &sink),
             ALLOT_STATUS_CANCELLED);
    CHECK_EQ(left, 0);
    free(buffer.data);
    allot_trace_destroy(trace);
}

static const check_test TESTS[] = {
    {"a_file_of_version_1_is_read", a_file_of_version_1_is_read},
    {"a_newer_version_is_refused_by_its_number", a_newer_version_is_refused_by_its_number},
    {"writing_can_be_cancelled", writing_can_be_cancelled},
    {"everything_comes_back", everything_comes_back},
    {"every_damaged_byte_is_noticed", every_damaged_byte_is_noticed},
    {"every_truncation_is_noticed", every_truncation_is_noticed},
    {"trailing_bytes_are_refused", trailing_bytes_are_refused},
};
CHECK_MAIN(TESTS)
