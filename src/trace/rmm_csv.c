/* SPDX-License-Identifier: MIT */
/*
 * Logs of the RAPIDS Memory Manager's logging adaptor.
 *
 * A row is "Thread,Time,Action,Pointer,Size,Stream". Action is allocate, "allocate failure", free
 * or deallocate; Pointer is hexadecimal or (nil); Stream is hexadecimal; Time is the wall clock
 * HH:MM:SS.us (in old logs HH:MM:SS:us) or seconds, milli-, micro- or nanoseconds since the epoch.
 * A wall clock that goes back by more than half a day passed midnight.
 *
 * A file that begins with the header holds rows and nothing else. Without it (or where it comes
 * later) the rows may stand among other output, as Spark prints them: lines whose third field is
 * no action are passed over.
 *
 * A failure becomes an out-of-memory event, a free one free_completed. The thread is not kept.
 */
#include <inttypes.h>
#include <string.h>

#include "core/number_text.h"
#include "core/status.h"
#include "trace/lines.h"
#include "trace/reader.h"

enum { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, FIELD_COUNT };

static const char HEADER[] = "Thread,Time,Action,Pointer,Size,Stream";

typedef struct rmm_state {
    alloti_lines lines;
    alloti_builder *builder;
    uint32_t device;
    bool is_strict; /* the header came first */
    int64_t day_ns; /* midnights passed */
    int64_t last_ns;
    bool has_last;
} rmm_state;

static bool parse_action(alloti_field field, allot_event_kind *out)
{
    const alloti_field action = alloti_field_trim(field);
    if (alloti_field_is(&action, "allocate")) {
        *out = ALLOT_EVENT_ALLOC;
    } else if (alloti_field_is(&action, "allocate failure")) {
        *out = ALLOT_EVENT_OOM;
    } else if (alloti_field_is(&action, "free") || alloti_field_is(&action, "deallocate")) {
        *out = ALLOT_EVENT_FREE_COMPLETED;
    } else {
        return false;
    }
    return true;
}

static bool is_row(const char *text, size_t length)
{
    alloti_field fields[FIELD_COUNT];
    allot_event_kind kind = ALLOT_EVENT_ALLOC;
    return alloti_fields_split(text, length, fields, FIELD_COUNT) == FIELD_COUNT &&
           parse_action(fields[ACTION], &kind);
}

static bool is_header(const char *text, size_t length)
{
    return length == sizeof HEADER - 1 && memcmp(text, HEADER, length) == 0;
}

static bool is_of_log(const char *text, size_t length)
{
    return is_header(text, length) || is_row(text, length);
}

static bool detect(const uint8_t *head, size_t size)
{
    return alloti_head_any(head, size, is_of_log);
}

static const int64_t SECOND_NS = 1000000000;
static const int64_t DAY_NS = INT64_C(86400) * 1000000000;

/* "HH:MM:SS.us" or "HH:MM:SS:us" as nanoseconds of the day. */
static bool parse_clock(const alloti_field *field, int64_t *out)
{
    enum { CLOCK_LENGTH = 8 };
    const char *const t = field->text;
    uint64_t hours = 0;
    uint64_t minutes = 0;
    uint64_t seconds = 0;
    int64_t fraction_ns = 0;
    if (field->length < CLOCK_LENGTH || t[2] != ':' || t[5] != ':' ||
        !alloti_number_u64(t, 2, &hours) || !alloti_number_u64(t + 3, 2, &minutes) ||
        !alloti_number_u64(t + 6, 2, &seconds) || hours > 23 || minutes > 59 || seconds > 60) {
        return false;
    }
    if (field->length > CLOCK_LENGTH) {
        const char *const rest = t + CLOCK_LENGTH;
        const size_t length = field->length - CLOCK_LENGTH;
        uint64_t microseconds = 0;
        if (rest[0] == ':') {
            if (!alloti_number_u64(rest + 1, length - 1, &microseconds) || microseconds > 999999) {
                return false;
            }
            fraction_ns = (int64_t)microseconds * 1000;
        } else if (rest[0] != '.' || !alloti_number_fixed(rest, length, 9, &fraction_ns)) {
            return false;
        }
    }
    *out = (int64_t)(hours * 3600 + minutes * 60 + seconds) * SECOND_NS + fraction_ns;
    return fraction_ns >= 0 && fraction_ns < SECOND_NS;
}

/* A time since the epoch, in the unit that its magnitude shows; a fraction is of that unit. */
static bool parse_epoch(const alloti_field *field, int64_t *out)
{
    int64_t whole = 0;
    if (!alloti_number_fixed(field->text, field->length, 0, &whole) || whole < 0) {
        return false;
    }
    const unsigned decimals = whole < INT64_C(100000000000)         ? 9
                              : whole < INT64_C(100000000000000)    ? 6
                              : whole < INT64_C(100000000000000000) ? 3
                                                                    : 0;
    return alloti_number_fixed(field->text, field->length, decimals, out);
}

static bool parse_time(rmm_state *state, const alloti_field *field, int64_t *out)
{
    int64_t clock_ns = 0;
    if (!parse_clock(field, &clock_ns)) {
        return parse_epoch(field, out);
    }
    if (state->has_last && state->last_ns - clock_ns > DAY_NS / 2 &&
        state->day_ns <= INT64_MAX - 2 * DAY_NS) {
        state->day_ns += DAY_NS;
    }
    /* A line that another thread wrote late, just after midnight, belongs to the day before. */
    const bool is_late =
        state->has_last && clock_ns - state->last_ns > DAY_NS / 2 && state->day_ns > 0;
    *out = state->day_ns + clock_ns - (is_late ? DAY_NS : 0);
    if (!is_late) {
        state->last_ns = clock_ns;
        state->has_last = true;
    }
    return true;
}

static bool parse_pointer(const alloti_field *field, uint64_t *out)
{
    if (alloti_field_is(field, "(nil)")) {
        *out = 0;
        return true;
    }
    return alloti_number_hex(field->text, field->length, out);
}

/* Other output may stand before the thread number on its line. */
static bool is_thread(const rmm_state *state, const alloti_field *field)
{
    size_t begin = field->length;
    while (begin != 0 && field->text[begin - 1] >= '0' && field->text[begin - 1] <= '9') {
        begin--;
    }
    return begin != field->length && (begin == 0 || !state->is_strict);
}

static allot_status parse_row(rmm_state *state, alloti_field *fields, allot_event_kind kind,
                              alloti_event *event, uint64_t *stream)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        fields[i] = alloti_field_trim(fields[i]);
    }
    *event = ALLOTI_EVENT_INIT;
    event->kind = kind;
    const alloti_field *wrong = NULL;
    const char *wanted = "";
    if (!is_thread(state, &fields[THREAD])) {
        wrong = &fields[THREAD];
        wanted = "a thread number";
    } else if (!parse_time(state, &fields[TIME], &event->time_ns)) {
        wrong = &fields[TIME];
        wanted = "a time HH:MM:SS.us";
    } else if (!parse_pointer(&fields[POINTER], &event->addr)) {
        wrong = &fields[POINTER];
        wanted = "a hexadecimal pointer or (nil)";
    } else if (!alloti_number_u64(fields[SIZE].text, fields[SIZE].length, &event->size)) {
        wrong = &fields[SIZE];
        wanted = "a size in bytes";
    } else if (!alloti_number_hex(fields[STREAM].text, fields[STREAM].length, stream)) {
        wrong = &fields[STREAM];
        wanted = "a hexadecimal stream";
    }
    if (kind == ALLOT_EVENT_OOM) {
        event->addr = 0; /* there it would mean the bytes that are free, which the log lacks */
    }
    if (wrong != NULL) {
        return alloti_lines_fail(&state->lines, "%s was expected, not \"%.*s\"", wanted,
                                 wrong->length < 80 ? (int)wrong->length : 80, wrong->text);
    }
    return ALLOT_STATUS_OK;
}

static allot_status read_line(rmm_state *state)
{
    const alloti_lines *const lines = &state->lines;
    alloti_field fields[FIELD_COUNT];
    allot_event_kind kind = ALLOT_EVENT_ALLOC;
    if (lines->length == 0) {
        return ALLOT_STATUS_OK;
    }
    if (is_header(lines->text, lines->length)) {
        state->is_strict = state->is_strict || lines->number == 1;
        return ALLOT_STATUS_OK;
    }
    const size_t count = alloti_fields_split(lines->text, lines->length, fields, FIELD_COUNT);
    const bool has_action = count > ACTION && parse_action(fields[ACTION], &kind);
    if (!has_action && !state->is_strict) {
        return ALLOT_STATUS_OK;
    }
    if (count != FIELD_COUNT) {
        return alloti_lines_fail(lines, "a row of six fields was expected: %s", HEADER);
    }
    if (!has_action) {
        return alloti_lines_fail(lines, "unknown action \"%.*s\"",
                                 fields[ACTION].length < 80 ? (int)fields[ACTION].length : 80,
                                 fields[ACTION].text);
    }
    alloti_event event;
    uint64_t stream = 0;
    allot_status status = parse_row(state, fields, kind, &event, &stream);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_intern_stream(state->builder, stream, &event.stream);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_add_event(state->builder, state->device, &event);
    }
    return status;
}

static allot_status read_rmm(alloti_source *source, const alloti_progress *progress,
                             alloti_builder *builder)
{
    rmm_state state = {.lines = {.source = source, .progress = progress}, .builder = builder};
    allot_status status = alloti_builder_device(builder, ALLOT_MEMORY_DEVICE, 0, &state.device);
    while (status == ALLOT_STATUS_OK) {
        status = alloti_lines_next(&state.lines);
        if (status != ALLOT_STATUS_OK || state.lines.is_end) {
            break;
        }
        status = read_line(&state);
    }
    if (status == ALLOT_STATUS_OK && alloti_builder_event_count(builder, state.device) == 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "line %" PRIu64 ": the log holds no allocation",
                           state.lines.number);
    }
    alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_ADDRESSES);
    alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_REQUESTED);
    return status;
}

const alloti_reader alloti_reader_rmm_csv = {
    .format = ALLOT_TRACE_FORMAT_RMM_CSV, .detect = detect, .read = read_rmm};
