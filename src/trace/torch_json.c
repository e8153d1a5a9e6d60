/* SPDX-License-Identifier: MIT */
/*
 * A PyTorch snapshot as JSON: the same dicts and lists as in the pickle, tuples as arrays. Values
 * are collected on a stack until their object or array ends; what they mean is decided in
 * torch_store.c, as for the pickle.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/number_text.h"
#include "core/status.h"
#include "trace/json_events.h"
#include "trace/lines.h"
#include "trace/reader.h"
#include "trace/torch_store.h"

enum { STACK_MIN = 64 };

/** An object or array that is open. */
typedef struct level {
    bool is_object;
    uint64_t from; /**< Height of the stack at its beginning. */
} level;

typedef struct collector {
    alloti_store *store;
    alloti_value *stack;
    uint64_t top;
    uint64_t capacity;
    level levels[ALLOTI_JSON_DEPTH_MAX];
    unsigned depth;
    uint64_t offset; /**< Of the last token. */
} collector;

/* Parts of the outermost object that are read; all else in it is skipped, however large. */
static const char *const PARTS[] = {
    "segments",   "device_traces",      "host_segments",       "host_traces",
    "categories", "allocator_settings", "external_annotations"};

static bool is_part(const alloti_json_token *token)
{
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        if (alloti_json_has_key(token, PARTS[i])) {
            return true;
        }
    }
    return false;
}

static allot_status push(collector *c, alloti_value value)
{
    const allot_status status =
        alloti_array_reserve(&c->stack, &c->capacity, c->top + 1, sizeof *c->stack);
    if (status == ALLOT_STATUS_OK) {
        c->stack[c->top++] = value;
    }
    return status;
}

static allot_status push_key(collector *c, const alloti_json_token *token)
{
    if (c->depth == 0 || !c->levels[c->depth - 1].is_object) {
        return ALLOT_STATUS_OK;
    }
    alloti_value key = 0;
    const allot_status status = alloti_store_string(c->store, token->key, strlen(token->key), &key);
    return status == ALLOT_STATUS_OK ? push(c, key) : status;
}

static allot_status begin(collector *c, alloti_json_parser *json, const alloti_json_token *token)
{
    if (c->depth == 1 && c->levels[0].is_object && !is_part(token)) {
        alloti_json_skip(json);
        return ALLOT_STATUS_OK;
    }
    const allot_status status = push_key(c, token);
    c->levels[c->depth++] =
        (level){.is_object = token->type == ALLOTI_JSON_OBJECT_BEGIN, .from = c->top};
    return status;
}

static allot_status end(collector *c)
{
    const level closed = c->levels[--c->depth];
    const alloti_value *const items = c->stack + closed.from;
    const uint64_t count = c->top - closed.from;
    alloti_value value = alloti_value_make(ALLOTI_VALUE_NEW_DICT, 0);
    allot_status status = closed.is_object
                              ? alloti_store_extend_dict(c->store, &value, items, count / 2)
                              : alloti_store_tuple(c->store, items, count, &value);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_store_use(c->store, &value);
    }
    c->top = closed.from;
    return status == ALLOT_STATUS_OK ? push(c, value) : status;
}

static bool is_whole(const alloti_json_token *token)
{
    for (size_t i = 0; i < token->length; i++) {
        if (token->text[i] == '.' || token->text[i] == 'e' || token->text[i] == 'E') {
            return false;
        }
    }
    return true;
}

static allot_status make_number(collector *c, const alloti_json_token *token, alloti_value *out)
{
    uint64_t magnitude = 0;
    int64_t number = 0;
    double fraction = 0;
    if (alloti_number_u64(token->text, token->length, &magnitude)) {
        return alloti_store_integer(c->store, magnitude, false, out);
    }
    if (alloti_number_i64(token->text, token->length, &number)) {
        return alloti_store_integer(c->store, number < 0 ? -(uint64_t)number : (uint64_t)number,
                                    number < 0, out);
    }
    if (is_whole(token)) {
        *out = alloti_value_make(ALLOTI_VALUE_OTHER, 0);
        return ALLOT_STATUS_OK;
    }
    const allot_status status = alloti_json_double(token, &fraction);
    return status == ALLOT_STATUS_OK ? alloti_store_float(c->store, fraction, out) : status;
}

static allot_status scalar(collector *c, const alloti_json_token *token)
{
    alloti_value value = alloti_value_make(ALLOTI_VALUE_NONE, 0);
    allot_status status = push_key(c, token);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    switch (token->type) {
    case ALLOTI_JSON_STRING:
        status = alloti_store_string(c->store, token->text, token->length, &value);
        break;
    case ALLOTI_JSON_NUMBER:
        status = make_number(c, token, &value);
        break;
    case ALLOTI_JSON_BOOL:
        value = alloti_value_make(ALLOTI_VALUE_BOOL, token->boolean);
        break;
    default:
        break;
    }
    return status == ALLOT_STATUS_OK ? push(c, value) : status;
}

static allot_status receive(void *context, alloti_json_parser *json, const alloti_json_token *token)
{
    collector *const c = context;
    allot_status status = ALLOT_STATUS_OK;
    c->offset = token->offset;
    switch (token->type) {
    case ALLOTI_JSON_OBJECT_BEGIN:
    case ALLOTI_JSON_ARRAY_BEGIN:
        status = begin(c, json, token);
        break;
    case ALLOTI_JSON_OBJECT_END:
    case ALLOTI_JSON_ARRAY_END:
        status = end(c);
        break;
    default:
        status = scalar(c, token);
        break;
    }
    return status == ALLOT_STATUS_FORMAT
               ? alloti_fail_prefix(status, "byte %" PRIu64 ": ", token->offset)
               : status;
}

static allot_status finish(collector *c)
{
    const allot_status status = alloti_store_finish(c->store, c->stack[0]);
    return status == ALLOT_STATUS_FORMAT
               ? alloti_fail_prefix(status, "byte %" PRIu64 ": ", c->offset)
               : status;
}

static bool detect(const uint8_t *head, size_t size)
{
    const char *const text = (const char *)head;
    const char first = alloti_text_first(text, size);
    if (first == '{') {
        return alloti_text_contains(text, size, "\"segments\"") ||
               alloti_text_contains(text, size, "\"device_traces\"");
    }
    return first == '[' && alloti_text_contains(text, size, "\"total_size\"");
}

static allot_status read_json(alloti_source *source, const alloti_progress *progress,
                              alloti_builder *builder)
{
    collector c = {0};
    allot_status status = alloti_store_create(builder, &c.store);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&c.stack, &c.capacity, STACK_MIN, sizeof *c.stack);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_json_parse(source, progress, receive, &c);
    }
    if (status == ALLOT_STATUS_OK) {
        status = finish(&c);
    }
    alloti_store_destroy(c.store);
    free(c.stack);
    return status;
}

const alloti_reader alloti_reader_torch_json = {
    .format = ALLOT_TRACE_FORMAT_TORCH_JSON, .detect = detect, .read = read_json};
