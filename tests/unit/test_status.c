/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "support/check.h"

static void every_code_has_a_name_and_a_text_of_its_own(void)
{
    static const allot_status CODES[] = {
#define CODE(name, value, text) ALLOT_STATUS_##name,
        ALLOT_STATUS_LIST(CODE)
#undef CODE
    };
    const size_t count = sizeof CODES / sizeof CODES[0];
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(CODES[i], i);
        CHECK(strcmp(allot_status_name(CODES[i]), "UNKNOWN") != 0);
        CHECK(allot_status_text(CODES[i])[0] != '\0');
        for (size_t j = 0; j < i; j++) {
            CHECK(strcmp(allot_status_name(CODES[i]), allot_status_name(CODES[j])) != 0);
            CHECK(strcmp(allot_status_text(CODES[i]), allot_status_text(CODES[j])) != 0);
        }
    }
    CHECK_STR(allot_status_name(ALLOT_STATUS_FRAGMENTED), "FRAGMENTED");
}

static void a_number_that_is_no_status_has_a_name_too(void)
{
    CHECK_STR(allot_status_name((allot_status)99), "UNKNOWN");
    CHECK_STR(allot_status_text((allot_status)99), "unknown status");
}

static void failing_returns_the_status_and_keeps_the_text(void)
{
    CHECK_EQ(alloti_fail(ALLOT_STATUS_IO, "cannot open %s: %d", "x", 7), ALLOT_STATUS_IO);
    CHECK_STR(allot_error_detail(), "cannot open x: 7");
    CHECK_EQ(alloti_fail_prefix(ALLOT_STATUS_FORMAT, "%s: ", "file"), ALLOT_STATUS_FORMAT);
    CHECK_STR(allot_error_detail(), "file: cannot open x: 7");
    CHECK_EQ(alloti_fail_memory(4096), ALLOT_STATUS_HOST_MEMORY);
    CHECK_STR(allot_error_detail(), "asked 4096 bytes of host memory");
}

static void long_texts_are_cut_not_overrun(void)
{
    char text[2 * ALLOTI_DETAIL_SIZE];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_EQ(alloti_fail(ALLOT_STATUS_IO, "%s", text), ALLOT_STATUS_IO);
    CHECK_EQ(strlen(allot_error_detail()), ALLOTI_DETAIL_SIZE - 1);
    CHECK_EQ(alloti_fail_prefix(ALLOT_STATUS_IO, "%s", "b"), ALLOT_STATUS_IO);
    CHECK_EQ(strlen(allot_error_detail()), ALLOTI_DETAIL_SIZE - 1);
    CHECK_EQ(allot_error_detail()[0], 'b');
    CHECK_EQ(alloti_fail_prefix(ALLOT_STATUS_IO, "%s", text), ALLOT_STATUS_IO);
    CHECK_EQ(strlen(allot_error_detail()), ALLOTI_DETAIL_SIZE - 1);
}

static void *fail_elsewhere(void *context)
{
    (void)context;
    CHECK_STR(allot_error_detail(), "");
    CHECK_EQ(alloti_fail(ALLOT_STATUS_BUSY, "of the other thread"), ALLOT_STATUS_BUSY);
    CHECK_STR(allot_error_detail(), "of the other thread");
    return NULL;
}

static void the_text_belongs_to_its_thread(void)
{
    CHECK_EQ(alloti_fail(ALLOT_STATUS_IO, "of this thread"), ALLOT_STATUS_IO);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, fail_elsewhere, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    CHECK_STR(allot_error_detail(), "of this thread");
}

static void the_version_is_that_of_the_header(void)
{
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", ALLOT_VERSION_MAJOR, ALLOT_VERSION_MINOR,
             ALLOT_VERSION_PATCH);
    CHECK_STR(allot_version(), text);
    CHECK_STR(allot_version(), ALLOT_VERSION_STRING);
}

static void a_stdio_sink_writes_in_order_and_reports_a_full_device(void)
{
    char text[8] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    REQUIRE(file != NULL);
    allot_sink sink = allot_sink_stdio(file);
    CHECK_OK(sink.write(sink.context, "abc", 3));
    CHECK_OK(sink.write(sink.context, "", 0));
    CHECK_OK(sink.write(sink.context, "de", 2));
    CHECK_EQ(fclose(file), 0);
    CHECK_STR(text, "abcde");

    file = fopen("/dev/full", "w");
    if (file == NULL) {
        check_skip("no /dev/full");
        return;
    }
    setvbuf(file, NULL, _IONBF, 0);
    sink = allot_sink_stdio(file);
    CHECK_EQ(sink.write(sink.context, "abc", 3), ALLOT_STATUS_IO);
    CHECK_CONTAINS(allot_error_detail(), "cannot write: ");
    fclose(file);
}

static const check_test TESTS[] = {
    {"every_code_has_a_name_and_a_text_of_its_own", every_code_has_a_name_and_a_text_of_its_own},
    {"a_number_that_is_no_status_has_a_name_too", a_number_that_is_no_status_has_a_name_too},
    {"failing_returns_the_status_and_keeps_the_text",
     failing_returns_the_status_and_keeps_the_text},
    {"long_texts_are_cut_not_overrun", long_texts_are_cut_not_overrun},
    {"the_text_belongs_to_its_thread", the_text_belongs_to_its_thread},
    {"the_version_is_that_of_the_header", the_version_is_that_of_the_header},
    {"a_stdio_sink_writes_in_order_and_reports_a_full_device",
     a_stdio_sink_writes_in_order_and_reports_a_full_device},
};
CHECK_MAIN(TESTS)
