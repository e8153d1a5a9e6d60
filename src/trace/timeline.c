/* SPDX-License-Identifier: MIT */
/*
 * What torch.profiler's export_memory_timeline() writes to a name ending in .raw.json.gz: a list of
 * [time in ns, action, bytes, category] for one device.
 *
 * Nothing names the tensor, so there are no addresses, and an end cannot be joined to its beginning
 * but by category and size. The running total of each category is exact, and that is what the
 * events keep:
 *
 *   1 PREEXISTING        alloc without a time (it was there when recording began)
 *   2 CREATE             alloc
 *   3 INCREMENT_VERSION  comes in pairs, -n of the old category and +n of the new one:
 *                        free_completed, then alloc
 *   4 DESTROY            (bytes below 0) free_completed
 */
#include <inttypes.h>

#include "core/status.h"
#include "trace/json_events.h"
#include "trace/lines.h"
#include "trace/reader.h"

typedef enum timeline_action {
    ACTION_PREEXISTING = 1,
    ACTION_CREATE = 2,
    ACTION_INCREMENT_VERSION = 3,
    ACTION_DESTROY = 4,
} timeline_action;

enum { TIME, ACTION, BYTES, CATEGORY, FIELD_COUNT };
enum { DEPTH_ROW = 1, DEPTH_FIELD = 2 };

typedef struct timeline_state {
    alloti_builder *builder;
    uint32_t device;
    uint32_t stream;
    unsigned field; /**< Of the row, that comes next. */
    int64_t row[FIELD_COUNT];
} timeline_state;

static bool row_is_valid(const int64_t *row)
{
    const int64_t bytes = row[BYTES];
    if (row[CATEGORY] < 0 || row[CATEGORY] >= ALLOT_CATEGORY_COUNT) {
        return false;
    }
    switch (row[ACTION]) {
    case ACTION_PREEXISTING:
    case ACTION_CREATE:
        return bytes >= 0;
    case ACTION_INCREMENT_VERSION:
        return true;
    case ACTION_DESTROY:
        return bytes <= 0;
    default:
        return false;
    }
}

static allot_status end_row(timeline_state *state, const alloti_json_token *token)
{
    const int64_t *const row = state->row;
    if (state->field != FIELD_COUNT || !row_is_valid(row)) {
        return alloti_json_fail(token,
                                "a row [time, action 1 to 4, bytes, category 0 to %d] was "
                                "expected",
                                ALLOT_CATEGORY_COUNT - 1);
    }
    alloti_event event = ALLOTI_EVENT_INIT;
    const bool is_free = row[ACTION] == ACTION_DESTROY ||
                         (row[ACTION] == ACTION_INCREMENT_VERSION && row[BYTES] < 0);
    event.kind = is_free ? ALLOT_EVENT_FREE_COMPLETED : ALLOT_EVENT_ALLOC;
    event.size = row[BYTES] < 0 ? 0 - (uint64_t)row[BYTES] : (uint64_t)row[BYTES];
    event.category = (allot_category)row[CATEGORY];
    event.time_ns = row[ACTION] == ACTION_PREEXISTING ? ALLOT_TIME_NONE : row[TIME];
    event.stream = state->stream;
    return alloti_builder_add_event(state->builder, state->device, &event);
}

static allot_status take(void *context, alloti_json_parser *json, const alloti_json_token *token)
{
    (void)json;
    timeline_state *const state = context;
    if (token->depth == DEPTH_FIELD && state->field < FIELD_COUNT) {
        return alloti_json_i64(token, &state->row[state->field++]);
    }
    if (token->depth == DEPTH_FIELD) {
        return alloti_json_fail(token, "a row of more than four numbers: this is the plotted form; "
                                       "export to a name that ends in .raw.json.gz");
    }
    if (token->depth == DEPTH_ROW && token->type == ALLOTI_JSON_ARRAY_BEGIN) {
        state->field = 0;
        return ALLOT_STATUS_OK;
    }
    if (token->depth == DEPTH_ROW && token->type == ALLOTI_JSON_ARRAY_END) {
        return end_row(state, token);
    }
    if (token->depth == 0 &&
        (token->type == ALLOTI_JSON_ARRAY_BEGIN || token->type == ALLOTI_JSON_ARRAY_END)) {
        return ALLOT_STATUS_OK;
    }
    return alloti_json_fail(token, "a list of rows was expected");
}

static allot_status read_timeline(alloti_source *source, const alloti_progress *progress,
                                  alloti_builder *builder)
{
    timeline_state state = {.builder = builder};
    allot_status status = alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, 0, &state.device);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_intern_stream(builder, 0, &state.stream);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_json_parse(source, progress, take, &state);
    }
    if (status == ALLOT_STATUS_OK && alloti_builder_event_count(builder, state.device) == 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "byte %" PRIu64 ": the timeline has no rows",
                           alloti_source_offset(source));
    }
    alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_CATEGORIES);
    return status;
}

/* "[[" and a number. */
static bool detect(const uint8_t *head, size_t size)
{
    const char *text = (const char *)head;
    for (unsigned i = 0; i < 2; i++) {
        if (alloti_text_first(text, size) != '[') {
            return false;
        }
        while (*text != '[') {
            text++;
            size--;
        }
        text++;
        size--;
    }
    const char first = alloti_text_first(text, size);
    return first == '-' || (first >= '0' && first <= '9');
}

const alloti_reader alloti_reader_timeline = {
    .format = ALLOT_TRACE_FORMAT_TIMELINE, .detect = detect, .read = read_timeline};
