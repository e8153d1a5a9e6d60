/* SPDX-License-Identifier: MIT */
#include "trace/json_events.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"

/* Writes what it receives as a compact line; skips containers with the key "skip". */
typedef struct recorder {
    char text[4096];
    size_t size;
} recorder;

static allot_status record(void *context, alloti_json_parser *json, const alloti_json_token *token)
{
    static const char *const NAMES[] = {"{", "}", "[", "]", "s", "n", "b", "0"};
    recorder *const r = context;
    if (alloti_json_has_key(token, "skip")) {
        alloti_json_skip(json);
    }
    if (alloti_json_has_key(token, "refuse")) {
        return alloti_json_fail(token, "refused");
    }
    r->size += (size_t)snprintf(r->text + r->size, sizeof r->text - r->size, "%s%u%s%s%.*s ",
                                NAMES[token->type], token->depth, token->key,
                                token->length != 0 ? "=" : "", (int)token->length,
                                token->length != 0 ? token->text : "");
    return ALLOT_STATUS_OK;
}

static allot_status parse(const char *text, recorder *r)
{
    *r = (recorder){.size = 0};
    alloti_source *source = NULL;
    allot_status status = alloti_source_open_memory(text, strlen(text), &source);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_json_parse(source, NULL, record, r);
    }
    alloti_source_close(source);
    return status;
}

static void values_know_key_and_depth(void)
{
    recorder r;
    CHECK_OK(parse("{\"a\": [1, -2.5e3, {\"b\": true}], \"c\": null, \"d\\n\": \"x\\u00e9\"}", &r));
    CHECK_STR(r.text, "{0 [1a n2=1 n2=-2.5e3 {2 b3b }2 ]1 01c s1d\n=x\xc3\xa9 }0 ");
}

static void a_skipped_container_is_not_reported(void)
{
    recorder r;
    CHECK_OK(parse("{\"skip\": {\"x\": [1, {\"skip\": []}]}, \"y\": 2}", &r));
    CHECK_STR(r.text, "{0 {1skip n1y=2 }0 ");
}

static void errors_name_the_byte(void)
{
    recorder r;
    CHECK_EQ(parse("{\"a\": 1,, }", &r), ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), "byte 9: parse error");
    CHECK_EQ(parse("{\"a\": 1", &r), ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), "byte 7: the file ends inside the JSON text");
    CHECK_EQ(parse("{} x", &r), ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), "byte 4");
    CHECK_EQ(parse("{\"refuse\": 1}", &r), ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), "byte 12: refused");
    CHECK_EQ(parse("\"\xff\"", &r), ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), "UTF8");
}

static void deep_nesting_is_refused(void)
{
    char text[2 * ALLOTI_JSON_DEPTH_MAX + 3];
    memset(text, '[', sizeof text);
    text[sizeof text - 1] = '\0';
    recorder r;
    CHECK_EQ(parse(text, &r), ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), "byte 65: JSON nested deeper than 64 levels");
}

static allot_status take_numbers(void *context, alloti_json_parser *json,
                                 const alloti_json_token *token)
{
    (void)json;
    return token->type == ALLOTI_JSON_NUMBER ? alloti_json_u64(token, context) : ALLOT_STATUS_OK;
}

static void numbers_keep_all_their_digits(void)
{
    static const char TEXT[] = "{\"addr\": 18446744073709551615}";
    static const char BAD[] = "{\"size\": 1.5}";
    uint64_t value = 0;
    CHECK_OK(alloti_json_parse_text(TEXT, sizeof TEXT - 1, 0, take_numbers, &value));
    CHECK_EQ(value, UINT64_MAX);
    CHECK_EQ(alloti_json_parse_text(BAD, sizeof BAD - 1, 100, take_numbers, &value),
             ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), "byte 112: \"size\" must be a whole number");
}

static const check_test TESTS[] = {
    {"values_know_key_and_depth", values_know_key_and_depth},
    {"a_skipped_container_is_not_reported", a_skipped_container_is_not_reported},
    {"errors_name_the_byte", errors_name_the_byte},
    {"deep_nesting_is_refused", deep_nesting_is_refused},
    {"numbers_keep_all_their_digits", numbers_keep_all_their_digits},
};
CHECK_MAIN(TESTS)
