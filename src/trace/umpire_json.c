/* SPDX-License-Identifier: MIT */
/*
 * Umpire's replay log: one JSON object a line, between other output and comments.
 *
 *   {"kind": "replay", "uid": N, "timestamp": NS, "event": NAME, "payload": {...}, "result": ...}
 *
 * Calls that return something are logged twice, before and after: only the line with a result
 * counts, so a call that failed leaves no event.
 */
#include <inttypes.h>
#include <string.h>

#include "core/number_text.h"
#include "core/status.h"
#include "trace/json_events.h"
#include "trace/lines.h"
#include "trace/reader.h"
#include "trace/umpire.h"

typedef enum event_name {
    EVENT_OTHER,
    EVENT_MAKE_RESOURCE,
    EVENT_MAKE_ALLOCATOR,
    EVENT_ALLOCATE,
    EVENT_DEALLOCATE,
} event_name;

/** What one line says. */
typedef struct record {
    alloti_builder *builder;
    event_name event;
    bool is_replay;
    bool is_in_result; /**< Inside "result", else inside "payload". */
    bool has_result;
    bool has_reference;
    bool has_pointer;
    bool has_size;
    uint64_t reference;
    uint64_t pointer;
    uint64_t size;
    int64_t time_ns;
    uint32_t name;
    uint32_t parent;
} record;

static allot_status take_pointer(const alloti_json_token *token, uint64_t *out, bool *has)
{
    if (token->type != ALLOTI_JSON_STRING || !alloti_number_hex(token->text, token->length, out)) {
        return alloti_json_fail(token, "\"%.64s\" must be a pointer in a string", token->key);
    }
    *has = true;
    return ALLOT_STATUS_OK;
}

static event_name event_of(const alloti_json_token *token)
{
    return alloti_json_is_string(token, "makeMemoryResource") ? EVENT_MAKE_RESOURCE
           : alloti_json_is_string(token, "makeAllocator")    ? EVENT_MAKE_ALLOCATOR
           : alloti_json_is_string(token, "allocate")         ? EVENT_ALLOCATE
           : alloti_json_is_string(token, "deallocate")       ? EVENT_DEALLOCATE
                                                              : EVENT_OTHER;
}

static allot_status take_top(record *r, alloti_json_parser *json, const alloti_json_token *token)
{
    const bool is_container =
        token->type == ALLOTI_JSON_OBJECT_BEGIN || token->type == ALLOTI_JSON_ARRAY_BEGIN;
    if (alloti_json_has_key(token, "kind")) {
        r->is_replay = alloti_json_is_string(token, "replay");
    } else if (alloti_json_has_key(token, "event")) {
        r->event = event_of(token);
    } else if (alloti_json_has_key(token, "timestamp")) {
        return alloti_json_i64(token, &r->time_ns);
    } else if (alloti_json_has_key(token, "result")) {
        r->has_result = true;
        r->is_in_result = true;
        if (!is_container) {
            return take_pointer(token, &r->reference, &r->has_reference);
        }
    } else if (alloti_json_has_key(token, "payload")) {
        r->is_in_result = false;
    } else if (is_container) {
        alloti_json_skip(json);
    }
    return ALLOT_STATUS_OK;
}

static allot_status intern(record *r, const alloti_json_token *token, uint32_t *out)
{
    return token->type == ALLOTI_JSON_STRING
               ? alloti_builder_intern_string(r->builder, token->text, token->length, out)
               : ALLOT_STATUS_OK;
}

static allot_status take_inner(record *r, const alloti_json_token *token)
{
    if (alloti_json_has_key(token, "allocator_ref")) {
        return take_pointer(token, &r->reference, &r->has_reference);
    }
    if (alloti_json_has_key(token, "memory_ptr")) {
        return take_pointer(token, &r->pointer, &r->has_pointer);
    }
    if (r->is_in_result) {
        return ALLOT_STATUS_OK;
    }
    if (alloti_json_has_key(token, "size")) {
        r->has_size = true;
        return alloti_json_u64(token, &r->size);
    }
    if (alloti_json_has_key(token, "name") || alloti_json_has_key(token, "allocator_name")) {
        return intern(r, token, &r->name);
    }
    return ALLOT_STATUS_OK;
}

static allot_status take(void *context, alloti_json_parser *json, const alloti_json_token *token)
{
    enum { DEPTH_TOP = 1, DEPTH_INNER = 2, DEPTH_ARGUMENT = 3 };
    record *const r = context;
    if (token->depth == DEPTH_TOP) {
        return token->type == ALLOTI_JSON_OBJECT_END || token->type == ALLOTI_JSON_ARRAY_END
                   ? ALLOT_STATUS_OK
                   : take_top(r, json, token);
    }
    if (token->depth == DEPTH_INNER) {
        return take_inner(r, token);
    }
    /* The first string among an allocator's arguments names what it stands on. */
    if (token->depth == DEPTH_ARGUMENT && r->parent == ALLOT_NONE) {
        return intern(r, token, &r->parent);
    }
    return ALLOT_STATUS_OK;
}

static bool is_complete(const record *r)
{
    switch (r->event) {
    case EVENT_OTHER:
        return true;
    case EVENT_MAKE_RESOURCE:
    case EVENT_MAKE_ALLOCATOR:
        return r->has_reference;
    case EVENT_ALLOCATE:
        return r->has_reference && r->has_pointer && r->has_size;
    case EVENT_DEALLOCATE:
        return r->has_reference && r->has_pointer;
    }
    return false;
}

static allot_status apply(const alloti_lines *lines, alloti_umpire *umpire, const record *r)
{
    if (r->event == EVENT_OTHER || (r->event != EVENT_DEALLOCATE && !r->has_result)) {
        return ALLOT_STATUS_OK;
    }
    if (!is_complete(r)) {
        return alloti_lines_fail(lines, "a reference, pointer or size is missing");
    }
    if (r->event == EVENT_ALLOCATE) {
        return alloti_umpire_allocate(umpire, r->reference, r->pointer, r->size, r->time_ns);
    }
    if (r->event == EVENT_DEALLOCATE) {
        return alloti_umpire_deallocate(umpire, r->reference, r->pointer, r->time_ns);
    }
    return alloti_umpire_make(umpire, r->reference, r->name, r->parent);
}

static allot_status read_line(const alloti_lines *lines, alloti_builder *builder,
                              alloti_umpire *umpire)
{
    record r = {
        .builder = builder, .time_ns = ALLOT_TIME_NONE, .name = ALLOT_NONE, .parent = ALLOT_NONE};
    if (lines->length == 0 || lines->text[0] != '{') {
        return ALLOT_STATUS_OK;
    }
    const allot_status status =
        alloti_json_parse_text(lines->text, lines->length, lines->offset, take, &r);
    if (status != ALLOT_STATUS_OK) {
        return alloti_fail_prefix(status, "line %" PRIu64 ": ", lines->number);
    }
    return r.is_replay ? apply(lines, umpire, &r) : ALLOT_STATUS_OK;
}

static allot_status read_umpire(alloti_source *source, const alloti_progress *progress,
                                alloti_builder *builder)
{
    return alloti_umpire_read(source, progress, builder, read_line);
}

static bool is_replay(const char *text, size_t length)
{
    return length != 0 && text[0] == '{' && alloti_text_contains(text, length, "\"replay\"") &&
           alloti_text_contains(text, length, "\"event\"");
}

static bool detect(const uint8_t *head, size_t size)
{
    return alloti_head_any(head, size, is_replay);
}

const alloti_reader alloti_reader_umpire_json = {
    .format = ALLOT_TRACE_FORMAT_UMPIRE_JSON, .detect = detect, .read = read_umpire};
