/* SPDX-License-Identifier: MIT */
#include "trace/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

static void check_line(alloti_lines *lines, const char *text, uint64_t number, uint64_t offset)
{
    REQUIRE_OK(alloti_lines_next(lines));
    REQUIRE(!lines->is_end);
    CHECK(lines->length == strlen(text) && memcmp(lines->text, text, lines->length) == 0);
    CHECK_EQ(lines->number, number);
    CHECK_EQ(lines->offset, offset);
}

static void lines_know_their_number_and_place(void)
{
    static const char TEXT[] = "one\r\n\nthree\nlast";
    alloti_lines lines = {.source = NULL};
    REQUIRE_OK(alloti_source_open_memory(TEXT, sizeof TEXT - 1, &lines.source));
    check_line(&lines, "one", 1, 0);
    check_line(&lines, "", 2, 5);
    check_line(&lines, "three", 3, 6);
    CHECK_EQ(alloti_lines_fail(&lines, "bad %d", 7), ALLOT_STATUS_FORMAT);
    CHECK_STR(allot_error_detail(), "line 3 (byte 6): bad 7");
    check_line(&lines, "last", 4, 12);
    CHECK_OK(alloti_lines_next(&lines));
    CHECK(lines.is_end);
    CHECK_OK(alloti_lines_next(&lines));
    CHECK(lines.is_end);
    alloti_source_close(lines.source);
}

static void quotes_hold_line_ends_together(void)
{
    static const char TEXT[] = "a,\"x\ny\"\"\n\",b\nnext\n";
    alloti_lines lines = {.has_quotes = true};
    REQUIRE_OK(alloti_source_open_memory(TEXT, sizeof TEXT - 1, &lines.source));
    check_line(&lines, "a,\"x\ny\"\"\n\",b", 1, 0);
    check_line(&lines, "next", 2, 13);
    alloti_source_close(lines.source);
}

static void a_line_may_be_longer_than_the_window(void)
{
    enum { LENGTH = 300000 };
    char *const text = malloc(LENGTH + 3);
    REQUIRE(text != NULL);
    memset(text, 'x', LENGTH);
    memcpy(text + LENGTH, "\nz", 3);
    alloti_lines lines = {.source = NULL};
    REQUIRE_OK(alloti_source_open_memory(text, LENGTH + 2, &lines.source));
    REQUIRE_OK(alloti_lines_next(&lines));
    CHECK_EQ(lines.length, LENGTH);
    check_line(&lines, "z", 2, LENGTH + 1);
    alloti_source_close(lines.source);
    free(text);
}

/* Fields joined by "|", quoted ones in [ ]. */
static void check_fields(const char *text, const char *expected)
{
    alloti_field fields[4];
    char scratch[64];
    char joined[128] = "";
    const size_t count = alloti_fields_split_quoted(text, strlen(text), scratch, fields, 4);
    for (size_t i = 0; i < count && i < 4; i++) {
        const size_t used = strlen(joined);
        snprintf(joined + used, sizeof joined - used, fields[i].is_quoted ? "%s[%.*s]" : "%s%.*s",
                 i == 0 ? "" : "|", (int)fields[i].length, fields[i].text);
    }
    CHECK_STR(count == 0 ? "malformed" : count > 4 ? "too many" : joined, expected);
}

static void quoted_fields_are_told_from_empty_ones(void)
{
    check_fields("a,b", "a|b");
    check_fields("", "");
    check_fields(",", "|");
    check_fields("\"\",", "[]|");
    check_fields("\"a,b\",\"c\"\"d\"", "[a,b]|[c\"d]");
    check_fields("\"a", "malformed");
    check_fields("\"a\"b", "malformed");
    check_fields("a\"b", "malformed");
    check_fields("1,2,3,4", "1|2|3|4");
    check_fields("1,2,3,4,5", "too many");
}

static void plain_fields_are_split_and_counted(void)
{
    alloti_field fields[2];
    CHECK_EQ(alloti_fields_split("a, b ", 5, fields, 2), 2);
    CHECK(alloti_field_is(&fields[1], " b "));
    const alloti_field trimmed = alloti_field_trim(fields[1]);
    CHECK(alloti_field_is(&trimmed, "b"));
    CHECK_EQ(alloti_fields_split("a,b,c", 5, fields, 2), 3);
}

static void texts_are_searched_within_their_length(void)
{
    CHECK(alloti_text_contains("xxabc", 5, "abc"));
    CHECK(!alloti_text_contains("xxabc", 4, "abc"));
    CHECK(alloti_text_contains("aab", 3, "ab"));
    CHECK_EQ(alloti_text_first(" \n\t[", 4), '[');
    CHECK_EQ(alloti_text_first(" \n\t[", 3), '\0');
}

static const check_test TESTS[] = {
    {"lines_know_their_number_and_place", lines_know_their_number_and_place},
    {"quotes_hold_line_ends_together", quotes_hold_line_ends_together},
    {"a_line_may_be_longer_than_the_window", a_line_may_be_longer_than_the_window},
    {"quoted_fields_are_told_from_empty_ones", quoted_fields_are_told_from_empty_ones},
    {"plain_fields_are_split_and_counted", plain_fields_are_split_and_counted},
    {"texts_are_searched_within_their_length", texts_are_searched_within_their_length},
};
CHECK_MAIN(TESTS)
