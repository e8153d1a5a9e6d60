/* SPDX-License-Identifier: MIT */
#include "trace/json_events.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "core/array.h"
#include "core/number_text.h"
#include "core/status.h"
#include "trace/json_special.h"

enum { CHUNK_SIZE = 256 << 10 };

struct alloti_json_parser {
    yajl_handle parser;
    alloti_json_fn receive;
    void *context;
    allot_status status; /**< Why the parse was stopped by a callback. */
    char *key;           /**< Key that waits for its value, NUL-terminated. */
    uint64_t key_capacity;
    bool has_key;
    unsigned depth;      /**< Containers that are open. */
    unsigned skip_depth; /**< Depth at which the skipped container was opened. */
    bool is_skipping;
    uint64_t chunk_offset; /**< Of the first byte of the chunk that is parsed. */
};

static uint64_t json_offset(const alloti_json_parser *json)
{
    return json->chunk_offset + yajl_get_bytes_consumed(json->parser);
}

/* Hand a value to the reader; the key is used up by it. yajl stops where the result is 0. */
static int report(alloti_json_parser *json, alloti_json_token token)
{
    if (json->is_skipping) {
        return 1;
    }
    token.key = json->has_key ? json->key : "";
    token.depth = json->depth;
    token.offset = json_offset(json);
    json->status = json->receive(json->context, json, &token);
    json->has_key = false;
    return json->status == ALLOT_STATUS_OK;
}

static int open_container(alloti_json_parser *json, alloti_json_type type)
{
    if (json->depth == ALLOTI_JSON_DEPTH_MAX) {
        json->status =
            alloti_fail(ALLOT_STATUS_FORMAT, "byte %" PRIu64 ": JSON nested deeper than %d levels",
                        json_offset(json), ALLOTI_JSON_DEPTH_MAX);
        return 0;
    }
    const bool was_skipping = json->is_skipping;
    const int go_on = report(json, (alloti_json_token){.type = type});
    if (json->is_skipping && !was_skipping) {
        json->skip_depth = json->depth;
    }
    json->depth++;
    return go_on;
}

static int close_container(alloti_json_parser *json, alloti_json_type type)
{
    json->depth--;
    if (json->is_skipping) {
        json->is_skipping = json->depth != json->skip_depth;
        return 1;
    }
    return report(json, (alloti_json_token){.type = type});
}

static int on_null(void *context)
{
    return report(context, (alloti_json_token){.type = ALLOTI_JSON_NULL});
}

static int on_boolean(void *context, int value)
{
    return report(context, (alloti_json_token){.type = ALLOTI_JSON_BOOL, .boolean = value != 0});
}

static int on_number(void *context, const char *text, size_t length)
{
    return report(context,
                  (alloti_json_token){.type = ALLOTI_JSON_NUMBER, .text = text, .length = length});
}

static int on_string(void *context, const unsigned char *text, size_t length)
{
    return report(context, (alloti_json_token){.type = ALLOTI_JSON_STRING,
                                               .text = (const char *)text,
                                               .length = length});
}

static int on_key(void *context, const unsigned char *text, size_t length)
{
    alloti_json_parser *const json = context;
    if (json->is_skipping) {
        return 1;
    }
    json->status = alloti_array_reserve(&json->key, &json->key_capacity, length + 1, 1);
    if (json->status != ALLOT_STATUS_OK) {
        return 0;
    }
    memcpy(json->key, text, length);
    json->key[length] = '\0';
    json->has_key = true;
    return 1;
}

static int on_object_begin(void *context)
{
    return open_container(context, ALLOTI_JSON_OBJECT_BEGIN);
}

static int on_object_end(void *context)
{
    return close_container(context, ALLOTI_JSON_OBJECT_END);
}

static int on_array_begin(void *context)
{
    return open_container(context, ALLOTI_JSON_ARRAY_BEGIN);
}

static int on_array_end(void *context)
{
    return close_container(context, ALLOTI_JSON_ARRAY_END);
}

static const yajl_callbacks CALLBACKS = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_object_begin,
    .yajl_map_key = on_key,
    .yajl_end_map = on_object_end,
    .yajl_start_array = on_array_begin,
    .yajl_end_array = on_array_end,
};

static allot_status json_init(alloti_json_parser *json, alloti_json_fn receive, void *context)
{
    *json = (alloti_json_parser){.receive = receive, .context = context};
    json->parser = yajl_alloc(&CALLBACKS, NULL, json);
    return json->parser == NULL ? alloti_fail_memory(sizeof *json) : ALLOT_STATUS_OK;
}

static void json_fini(alloti_json_parser *json)
{
    if (json->parser != NULL) {
        yajl_free(json->parser);
    }
    free(json->key);
}

/* Failure of yajl itself, or the one that a callback left. */
static allot_status parser_status(alloti_json_parser *json, yajl_status parsed)
{
    if (parsed == yajl_status_ok || parsed == yajl_status_client_canceled) {
        return json->status;
    }
    unsigned char *const text = yajl_get_error(json->parser, 0, NULL, 0);
    const size_t length = text == NULL ? 0 : strcspn((const char *)text, "\n");
    const allot_status status =
        alloti_fail(ALLOT_STATUS_FORMAT, "byte %" PRIu64 ": %.*s", json_offset(json), (int)length,
                    text == NULL ? "" : (const char *)text);
    yajl_free_error(json->parser, text);
    return status;
}

static allot_status json_end(alloti_json_parser *json, uint64_t size)
{
    const yajl_status parsed = yajl_complete_parse(json->parser);
    if (parsed == yajl_status_error) {
        return alloti_fail(ALLOT_STATUS_FORMAT,
                           "byte %" PRIu64 ": the file ends inside the JSON text", size);
    }
    return parser_status(json, parsed);
}

/* Parse the bytes up to the next NaN or Infinity, or that as null. *size: how many are done. */
static allot_status parse_piece(alloti_json_parser *json, alloti_json_scan *scan,
                                const uint8_t *data, size_t *size)
{
    const size_t plain = alloti_json_plain(scan, data, *size);
    const size_t special = plain == 0 ? alloti_json_special(data, *size) : 0;
    if (special != 0) {
        *size = special;
        return parser_status(json, yajl_parse(json->parser, (const unsigned char *)"null", 4));
    }
    *size = plain != 0 ? plain : 1; /* One byte that is neither: the parser has its say. */
    return parser_status(json, yajl_parse(json->parser, data, *size));
}

static allot_status parse_source(alloti_json_parser *json, alloti_source *source,
                                 const alloti_progress *progress)
{
    alloti_json_scan scan = {0};
    for (;;) {
        const uint8_t *data = NULL;
        size_t available = 0;
        allot_status status = alloti_source_fill(source, CHUNK_SIZE, &data, &available);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        json->chunk_offset = alloti_source_offset(source);
        if (available == 0) {
            return json_end(json, json->chunk_offset);
        }
        size_t size = available < CHUNK_SIZE ? available : CHUNK_SIZE;
        status = parse_piece(json, &scan, data, &size);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        alloti_source_consume(source, size);
        uint64_t done = 0;
        uint64_t total = 0;
        alloti_source_progress(source, &done, &total);
        status = alloti_progress_tell(progress, done, total);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
}

allot_status alloti_json_parse(alloti_source *source, const alloti_progress *progress,
                               alloti_json_fn receive, void *context)
{
    alloti_json_parser json;
    allot_status status = json_init(&json, receive, context);
    if (status == ALLOT_STATUS_OK) {
        status = parse_source(&json, source, progress);
    }
    json_fini(&json);
    return status;
}

allot_status alloti_json_parse_text(const char *text, size_t size, uint64_t base,
                                    alloti_json_fn receive, void *context)
{
    alloti_json_parser json;
    allot_status status = json_init(&json, receive, context);
    if (status == ALLOT_STATUS_OK) {
        json.chunk_offset = base;
        status = parser_status(&json, yajl_parse(json.parser, (const unsigned char *)text, size));
    }
    if (status == ALLOT_STATUS_OK) {
        status = json_end(&json, base + size);
    }
    json_fini(&json);
    return status;
}

void alloti_json_skip(alloti_json_parser *json)
{
    json->is_skipping = true;
}

allot_status alloti_json_fail(const alloti_json_token *token, const char *format, ...)
{
    char text[ALLOTI_DETAIL_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return alloti_fail(ALLOT_STATUS_FORMAT, "byte %" PRIu64 ": %s", token->offset, text);
}

bool alloti_json_has_key(const alloti_json_token *token, const char *key)
{
    return strcmp(token->key, key) == 0;
}

bool alloti_json_is_string(const alloti_json_token *token, const char *text)
{
    return token->type == ALLOTI_JSON_STRING && token->length == strlen(text) &&
           memcmp(token->text, text, token->length) == 0;
}

static allot_status fail_number(const alloti_json_token *token, const char *wanted)
{
    return alloti_json_fail(token, "\"%.64s\" must be %s", token->key, wanted);
}

allot_status alloti_json_u64(const alloti_json_token *token, uint64_t *out)
{
    if (token->type != ALLOTI_JSON_NUMBER || !alloti_number_u64(token->text, token->length, out)) {
        return fail_number(token, "a whole number from 0 to 2^64 - 1");
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_json_i64(const alloti_json_token *token, int64_t *out)
{
    if (token->type != ALLOTI_JSON_NUMBER || !alloti_number_i64(token->text, token->length, out)) {
        return fail_number(token, "a whole number of 64 bits");
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_json_double(const alloti_json_token *token, double *out)
{
    char text[64]; /* strtod needs a NUL; no finite double needs more digits to be told apart */
    if (token->type != ALLOTI_JSON_NUMBER || token->length >= sizeof text) {
        return fail_number(token, "a number");
    }
    memcpy(text, token->text, token->length);
    text[token->length] = '\0';
    *out = strtod(text, NULL);
    return ALLOT_STATUS_OK;
}
