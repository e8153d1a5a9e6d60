/* SPDX-License-Identifier: MIT */
/* Events by name, number or time. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/number_text.h"
#include "core/status.h"
#include "replay/history.h"

static const char FORMS[] =
    "peak, peak:MEASURE, oom, oom:N, start, end, event:N, N, +TIME (such as "
    "+1.5s, +20ms), us:MICROSECONDS";

static allot_status fail_form(const char *text)
{
    return alloti_fail(ALLOT_STATUS_INVALID, "moment \"%s\": expected one of %s", text, FORMS);
}

/* What follows `name` and a colon; NULL if the text is of another form. */
static const char *argument_of(const char *text, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && text[length] == ':' ? text + length + 1 : NULL;
}

static allot_status find_peak(const allot_history *history, const char *text, const char *measure,
                              uint32_t *out)
{
    for (int m = 0; m < ALLOT_MEASURE_COUNT; m++) {
        if (strcmp(measure, allot_measure_name((allot_measure)m)) == 0) {
            *out = history->peak[m].event;
            return ALLOT_STATUS_OK;
        }
    }
    return fail_form(text);
}

uint32_t allot_history_nth_event(const allot_history *history, allot_event_kind kind, uint32_t n)
{
    for (uint32_t i = 0; i < history->events.count; i++) {
        if (history->events.kind[i] == kind && n-- == 0) {
            return i;
        }
    }
    return ALLOT_NONE;
}

/* The n-th oom event from 1; 0 for the last. */
static allot_status find_oom(const allot_history *history, uint64_t number, uint32_t *out)
{
    const uint64_t count = history->counts.oom;
    if (number == 0) {
        number = count;
    }
    if (count == 0 || number > count) {
        return alloti_fail(ALLOT_STATUS_NOT_FOUND, "the trace has %" PRIu64 " oom event%s%s", count,
                           count == 1 ? "" : "s",
                           count == 0 ? ": no allocation failed while it was recorded" : "");
    }
    *out = allot_history_nth_event(history, ALLOT_EVENT_OOM, (uint32_t)(number - 1));
    return ALLOT_STATUS_OK;
}

static allot_status find_number(const allot_history *history, uint64_t number, uint32_t *out)
{
    if (number >= history->events.count) {
        return alloti_fail(ALLOT_STATUS_NOT_FOUND,
                           "event %" PRIu64 ": the trace has %" PRIu64 " events, from 0", number,
                           history->events.count);
    }
    *out = (uint32_t)number;
    return ALLOT_STATUS_OK;
}

/* Last event at or before a time. Events without a time take part in none. */
static allot_status find_time(const allot_history *history, int64_t time_ns, uint32_t *out)
{
    uint32_t found = ALLOT_NONE;
    for (uint32_t i = 0; i < history->events.count; i++) {
        const int64_t time = history->events.time_ns[i];
        if (time != ALLOT_TIME_NONE && time <= time_ns) {
            found = i;
        }
    }
    *out = found;
    return ALLOT_STATUS_OK;
}

static allot_status first_time(const allot_history *history, int64_t *out)
{
    for (uint32_t i = 0; i < history->events.count; i++) {
        if (history->events.time_ns[i] != ALLOT_TIME_NONE) {
            *out = history->events.time_ns[i];
            return ALLOT_STATUS_OK;
        }
    }
    return alloti_fail(ALLOT_STATUS_NOT_FOUND, "the trace's events have no times");
}

/* Nanoseconds of a unit, 0 if it is none. */
static double unit_ns(const char *unit)
{
    static const struct {
        const char *name;
        double ns;
    } UNITS[] = {{"s", 1e9}, {"", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"min", 60e9}};
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++) {
        if (strcmp(unit, UNITS[i].name) == 0) {
            return UNITS[i].ns;
        }
    }
    return 0;
}

static allot_status find_offset(const allot_history *history, const char *text, uint32_t *out)
{
    char *rest = NULL;
    const double amount = strtod(text + 1, &rest);
    const double ns = amount * unit_ns(rest);
    if (rest == text + 1 || unit_ns(rest) <= 0 || !isfinite(ns) || ns < 0 || ns > 1e18) {
        return fail_form(text);
    }
    int64_t first = 0;
    const allot_status status = first_time(history, &first);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const int64_t offset = (int64_t)ns;
    return find_time(history, first > INT64_MAX - offset ? INT64_MAX : first + offset, out);
}

static allot_status find_microseconds(const allot_history *history, uint64_t us, uint32_t *out)
{
    int64_t first = 0;
    const allot_status status = first_time(history, &first);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return find_time(history, us > INT64_MAX / 1000 ? INT64_MAX : (int64_t)us * 1000, out);
}

allot_status allot_history_find(const allot_history *history, const char *text, uint32_t *out)
{
    static const struct {
        const char *name;
        allot_status (*find)(const allot_history *history, uint64_t number, uint32_t *out);
    } NUMBERED[] = {{"oom", find_oom}, {"event", find_number}, {"us", find_microseconds}};
    uint64_t number = 0;
    if (strcmp(text, "peak") == 0) {
        return find_peak(history, text, "allocated", out);
    }
    if (argument_of(text, "peak") != NULL) {
        return find_peak(history, text, argument_of(text, "peak"), out);
    }
    if (strcmp(text, "oom") == 0) {
        return find_oom(history, 0, out);
    }
    if (strcmp(text, "start") == 0 || strcmp(text, "end") == 0) {
        const uint64_t count = history->events.count;
        *out = text[0] == 's' || count == 0 ? ALLOT_NONE : (uint32_t)(count - 1);
        return ALLOT_STATUS_OK;
    }
    if (text[0] == '+') {
        return find_offset(history, text, out);
    }
    if (alloti_number_u64(text, strlen(text), &number)) {
        return find_number(history, number, out);
    }
    for (size_t i = 0; i < sizeof NUMBERED / sizeof NUMBERED[0]; i++) {
        const char *const argument = argument_of(text, NUMBERED[i].name);
        if (argument != NULL && alloti_number_u64(argument, strlen(argument), &number)) {
            return NUMBERED[i].find(history, number, out);
        }
    }
    return fail_form(text);
}
