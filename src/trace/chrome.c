/* SPDX-License-Identifier: MIT */
/*
 * Chrome traces of torch.profiler recorded with profile_memory=True.
 *
 * The text is {"traceEvents": [EVENT...], ...}, or in old exports the bare list. Two kinds of event
 * count: the instants named "[memory]", whose "args" hold Bytes (above 0: handed out, below:
 * given back), Device Type (0: the CPU), Device Id and, in newer files, Ev Idx, Addr, Total
 * Allocated and Total Reserved; and the ranges ("ph": "X") of category user_annotation.
 *
 * Events of several threads stand in no order: they are collected and sorted by time, then Ev Idx,
 * then place in the file. Sizes are those of blocks, after rounding. There are no streams; what was
 * freed is reusable at once (free_completed).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/number_text.h"
#include "trace/json_events.h"
#include "trace/lines.h"
#include "trace/reader.h"

/** A [memory] event. */
typedef struct memory_event {
    int64_t time_ns;
    int64_t event_index; /**< Ev Idx. */
    uint64_t order;      /**< Place in the file. */
    uint64_t addr;
    int64_t bytes;
    uint64_t total_allocated;
    uint64_t total_reserved;
    uint32_t device;
} memory_event;

/** Fields of the event that is being read. */
typedef struct draft {
    bool is_memory;
    bool is_range;      /**< "ph" is "X". */
    bool is_annotation; /**< "cat" is "user_annotation". */
    bool has_time;
    bool has_bytes;
    bool has_addr;
    bool has_totals;
    const char *wrong; /**< Name of a field whose value cannot be read. */
    int64_t time_ns;
    int64_t duration_ns;
    int64_t bytes;
    int64_t device_type;
    int64_t device_id;
    int64_t event_index;
    int64_t total_allocated;
    int64_t total_reserved;
    uint64_t addr;
    size_t name_length; /**< Of chrome_state's `name`. */
} draft;

typedef struct chrome_state {
    alloti_builder *builder;
    unsigned event_depth; /**< Depth of event objects; 0 outside of the list. */
    bool has_list;
    draft now;
    char *name; /**< Of the event that is being read. */
    uint64_t name_capacity;
    memory_event *events;
    uint64_t event_count;
    uint64_t event_capacity;
    allot_annotation *annotations;
    uint64_t annotation_count;
    uint64_t annotation_capacity;
    bool lacks_addr; /**< Some event has no Addr. */
} chrome_state;

static bool is_begin(const alloti_json_token *token)
{
    return token->type == ALLOTI_JSON_OBJECT_BEGIN || token->type == ALLOTI_JSON_ARRAY_BEGIN;
}

/* Find the list of events. */
static void take_outside(chrome_state *state, alloti_json_parser *json,
                         const alloti_json_token *token)
{
    const bool is_list = token->type == ALLOTI_JSON_ARRAY_BEGIN &&
                         (token->depth == 0 || alloti_json_has_key(token, "traceEvents"));
    if (is_list) {
        state->event_depth = token->depth + 1;
        state->has_list = true;
    } else if (is_begin(token) && token->depth != 0) {
        alloti_json_skip(json);
    }
}

static allot_status take_name(chrome_state *state, const alloti_json_token *token)
{
    draft *const now = &state->now;
    now->is_memory = alloti_json_is_string(token, "[memory]");
    if (token->type != ALLOTI_JSON_STRING || token->length == 0 || now->is_memory) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status =
        alloti_array_reserve(&state->name, &state->name_capacity, token->length, 1);
    if (status == ALLOT_STATUS_OK) {
        memcpy(state->name, token->text, token->length);
        now->name_length = token->length;
    }
    return status;
}

static void take_time(draft *now, const alloti_json_token *token, const char *name, int64_t *out)
{
    if (token->type != ALLOTI_JSON_NUMBER ||
        !alloti_number_fixed(token->text, token->length, 3, out)) {
        now->wrong = name;
    }
}

static allot_status take_field(chrome_state *state, alloti_json_parser *json,
                               const alloti_json_token *token)
{
    draft *const now = &state->now;
    if (is_begin(token)) {
        if (!alloti_json_has_key(token, "args")) {
            alloti_json_skip(json);
        }
    } else if (alloti_json_has_key(token, "name")) {
        return take_name(state, token);
    } else if (alloti_json_has_key(token, "ph")) {
        now->is_range = alloti_json_is_string(token, "X");
    } else if (alloti_json_has_key(token, "cat")) {
        now->is_annotation = alloti_json_is_string(token, "user_annotation");
    } else if (alloti_json_has_key(token, "ts")) {
        take_time(now, token, "ts", &now->time_ns);
        now->has_time = true;
    } else if (alloti_json_has_key(token, "dur")) {
        take_time(now, token, "dur", &now->duration_ns);
    }
    return ALLOT_STATUS_OK;
}

static void take_address(draft *now, const alloti_json_token *token)
{
    const bool is_well = token->type == ALLOTI_JSON_NUMBER
                             ? alloti_number_u64(token->text, token->length, &now->addr)
                             : token->type == ALLOTI_JSON_STRING &&
                                   alloti_number_hex(token->text, token->length, &now->addr);
    now->has_addr = is_well;
    if (!is_well) {
        now->wrong = "Addr";
    }
}

static void take_argument(draft *now, const alloti_json_token *token)
{
    const struct {
        const char *key;
        int64_t *value;
        bool *has;
    } numbers[] = {
        {"Bytes", &now->bytes, &now->has_bytes},
        {"Device Type", &now->device_type, NULL},
        {"Device Id", &now->device_id, NULL},
        {"Ev Idx", &now->event_index, NULL},
        {"Total Allocated", &now->total_allocated, NULL},
        {"Total Reserved", &now->total_reserved, &now->has_totals},
    };
    if (alloti_json_has_key(token, "Addr")) {
        take_address(now, token);
        return;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (!alloti_json_has_key(token, numbers[i].key)) {
            continue;
        }
        if (token->type != ALLOTI_JSON_NUMBER ||
            !alloti_number_i64(token->text, token->length, numbers[i].value)) {
            now->wrong = numbers[i].key;
        } else if (numbers[i].has != NULL) {
            *numbers[i].has = true;
        }
        return;
    }
}

static allot_status find_device(alloti_builder *builder, const draft *now, uint32_t *out)
{
    const allot_memory_kind memory = now->device_type == 0 ? ALLOT_MEMORY_CPU : ALLOT_MEMORY_DEVICE;
    const bool has_number = now->device_id >= 0 && now->device_id < ALLOT_NONE;
    return alloti_builder_device(builder, memory, has_number ? (uint32_t)now->device_id : 0, out);
}

static allot_status add_memory(chrome_state *state, const alloti_json_token *token)
{
    const draft *const now = &state->now;
    if (now->wrong != NULL || !now->has_time || !now->has_bytes) {
        return alloti_json_fail(token, "a [memory] event without a valid \"%s\"",
                                now->wrong != NULL ? now->wrong
                                : !now->has_time   ? "ts"
                                                   : "Bytes");
    }
    if (now->bytes == 0) {
        return ALLOT_STATUS_OK;
    }
    memory_event event = {.time_ns = now->time_ns,
                          .event_index = now->event_index,
                          .order = state->event_count,
                          .addr = now->addr,
                          .bytes = now->bytes,
                          .total_allocated = UINT64_MAX,
                          .total_reserved = UINT64_MAX};
    if (now->has_totals && now->total_allocated >= 0 && now->total_reserved >= 0) {
        event.total_allocated = (uint64_t)now->total_allocated;
        event.total_reserved = (uint64_t)now->total_reserved;
    }
    state->lacks_addr = state->lacks_addr || !now->has_addr;
    allot_status status = find_device(state->builder, now, &event.device);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&state->events, &state->event_capacity,
                                      state->event_count + 1, sizeof event);
    }
    if (status == ALLOT_STATUS_OK) {
        state->events[state->event_count++] = event;
    }
    return status;
}

static allot_status add_annotation(chrome_state *state)
{
    const draft *const now = &state->now;
    uint32_t name = 0;
    allot_status status =
        alloti_builder_intern_string(state->builder, state->name, now->name_length, &name);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = alloti_array_reserve(&state->annotations, &state->annotation_capacity,
                                  state->annotation_count + 2, sizeof *state->annotations);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const int64_t end_ns = now->duration_ns > 0 && now->time_ns <= INT64_MAX - now->duration_ns
                               ? now->time_ns + now->duration_ns
                               : now->time_ns;
    allot_annotation *const added = &state->annotations[state->annotation_count];
    added[0] = (allot_annotation){
        .name = name, .device = ALLOT_NONE, .time_ns = now->time_ns, .is_start = true};
    added[1] = (allot_annotation){.name = name, .device = ALLOT_NONE, .time_ns = end_ns};
    state->annotation_count += 2;
    return ALLOT_STATUS_OK;
}

static allot_status end_event(chrome_state *state, const alloti_json_token *token)
{
    const draft *const now = &state->now;
    if (now->is_memory) {
        return add_memory(state, token);
    }
    if (now->is_range && now->is_annotation && now->has_time && now->wrong == NULL &&
        now->name_length != 0) {
        return add_annotation(state);
    }
    return ALLOT_STATUS_OK;
}

static allot_status take(void *context, alloti_json_parser *json, const alloti_json_token *token)
{
    chrome_state *const state = context;
    if (state->event_depth == 0) {
        take_outside(state, json, token);
        return ALLOT_STATUS_OK;
    }
    if (token->depth < state->event_depth) {
        state->event_depth = 0; /* the list ends */
        return ALLOT_STATUS_OK;
    }
    if (token->depth == state->event_depth) {
        if (token->type == ALLOTI_JSON_OBJECT_END) {
            return end_event(state, token);
        }
        if (token->type != ALLOTI_JSON_OBJECT_BEGIN) {
            return alloti_json_fail(token, "the list of events holds something that is no object");
        }
        state->now = (draft){.bytes = 0};
        return ALLOT_STATUS_OK;
    }
    if (token->depth == state->event_depth + 1) {
        return take_field(state, json, token);
    }
    if (is_begin(token)) {
        alloti_json_skip(json);
        return ALLOT_STATUS_OK;
    }
    take_argument(&state->now, token);
    return ALLOT_STATUS_OK;
}

static int compare_i64(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int memory_compare(const void *left, const void *right)
{
    const memory_event *const a = left;
    const memory_event *const b = right;
    int order = compare_i64(a->time_ns, b->time_ns);
    if (order == 0) {
        order = compare_i64(a->event_index, b->event_index);
    }
    return order != 0 ? order : a->order < b->order ? -1 : a->order > b->order;
}

static allot_status add_events(chrome_state *state, uint32_t stream)
{
    if (state->event_count != 0) {
        qsort(state->events, (size_t)state->event_count, sizeof *state->events, memory_compare);
    }
    for (uint64_t i = 0; i < state->event_count; i++) {
        const memory_event *const from = &state->events[i];
        alloti_event event = ALLOTI_EVENT_INIT;
        event.kind = from->bytes > 0 ? ALLOT_EVENT_ALLOC : ALLOT_EVENT_FREE_COMPLETED;
        event.addr = from->addr;
        event.size = from->bytes > 0 ? (uint64_t)from->bytes : 0 - (uint64_t)from->bytes;
        event.time_ns = from->time_ns;
        event.stream = stream;
        event.total_allocated = from->total_allocated;
        event.total_reserved = from->total_reserved;
        const allot_status status = alloti_builder_add_event(state->builder, from->device, &event);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

/* By time; what ends then comes before what begins then. */
static int annotation_compare(const void *left, const void *right)
{
    const allot_annotation *const a = left;
    const allot_annotation *const b = right;
    const int order = compare_i64(a->time_ns, b->time_ns);
    return order != 0                   ? order
           : a->is_start != b->is_start ? (int)a->is_start - (int)b->is_start
           : a->name < b->name          ? -1
                                        : a->name > b->name;
}

static allot_status add_annotations(chrome_state *state)
{
    if (state->annotation_count != 0) {
        qsort(state->annotations, (size_t)state->annotation_count, sizeof *state->annotations,
              annotation_compare);
    }
    for (uint64_t i = 0; i < state->annotation_count; i++) {
        const allot_status status =
            alloti_builder_add_annotation(state->builder, &state->annotations[i]);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

static allot_status build(chrome_state *state, uint64_t size)
{
    if (!state->has_list) {
        return alloti_fail(ALLOT_STATUS_FORMAT,
                           "byte %" PRIu64 ": a Chrome trace without \"traceEvents\"", size);
    }
    if (state->event_count == 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT,
                           "byte %" PRIu64
                           ": no [memory] event in this Chrome trace; record it with "
                           "torch.profiler.profile(profile_memory=True)",
                           size);
    }
    uint32_t stream = 0;
    allot_status status = alloti_builder_intern_stream(state->builder, 0, &stream);
    if (status == ALLOT_STATUS_OK) {
        status = add_events(state, stream);
    }
    if (status == ALLOT_STATUS_OK) {
        status = add_annotations(state);
    }
    if (!state->lacks_addr) {
        alloti_builder_set_trait(state->builder, ALLOT_TRACE_HAS_ADDRESSES);
    }
    return status;
}

static allot_status read_chrome(alloti_source *source, const alloti_progress *progress,
                                alloti_builder *builder)
{
    chrome_state state = {.builder = builder};
    allot_status status = alloti_json_parse(source, progress, take, &state);
    if (status == ALLOT_STATUS_OK) {
        status = build(&state, alloti_source_offset(source));
    }
    free(state.events);
    free(state.annotations);
    free(state.name);
    return status;
}

static bool detect(const uint8_t *head, size_t size)
{
    const char *const text = (const char *)head;
    const char first = alloti_text_first(text, size);
    if (first == '{') {
        return alloti_text_contains(text, size, "\"traceEvents\"") ||
               alloti_text_contains(text, size, "\"schemaVersion\"");
    }
    return first == '[' && alloti_text_contains(text, size, "\"ph\"");
}

const alloti_reader alloti_reader_chrome = {
    .format = ALLOT_TRACE_FORMAT_CHROME, .detect = detect, .read = read_chrome};
