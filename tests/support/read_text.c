/* SPDX-License-Identifier: MIT */
#include "support/read_text.h"

#include <string.h>

#include "support/check.h"

allot_trace *read_text(const char *text, allot_trace_format expected)
{
    allot_trace *trace = NULL;
    if (CHECK_OK(allot_trace_read_memory(text, strlen(text), "text", NULL, &trace))) {
        CHECK_STR(allot_trace_format_name(allot_trace_get_format(trace)),
                  allot_trace_format_name(expected));
    }
    return trace;
}

void check_refused(const char *text, allot_trace_format format, const char *message)
{
    const allot_trace_read_options options = {.struct_size = sizeof options, .format = format};
    allot_trace *trace = NULL;
    CHECK_EQ(allot_trace_read_memory(text, strlen(text), "text", &options, &trace),
             ALLOT_STATUS_FORMAT);
    CHECK_CONTAINS(allot_error_detail(), message);
    allot_trace_destroy(trace);
}

/* Text with the quotes of JSON, in a static buffer. */
static const char *with_quotes(const char *text)
{
    static char quoted[16384];
    const size_t length = strlen(text);
    if (!CHECK(length < sizeof quoted)) {
        return "";
    }
    for (size_t i = 0; i <= length; i++) {
        quoted[i] = text[i];
        if (text[i] == '\'') {
            quoted[i] = '"';
        }
    }
    return quoted;
}

allot_trace *read_json(const char *text, allot_trace_format expected)
{
    return read_text(with_quotes(text), expected);
}

void check_refused_json(const char *text, allot_trace_format format, const char *message)
{
    check_refused(with_quotes(text), format, message);
}

allot_events read_events(const allot_trace *trace, uint32_t device)
{
    allot_events events;
    allot_trace_get_events(trace, device, &events);
    return events;
}

int64_t sum_events(const allot_events *events)
{
    int64_t sum = 0;
    for (uint64_t i = 0; i < events->count; i++) {
        if (events->kind[i] == ALLOT_EVENT_ALLOC) {
            sum += (int64_t)events->size[i];
        } else if (events->kind[i] == ALLOT_EVENT_FREE_COMPLETED) {
            sum -= (int64_t)events->size[i];
        }
    }
    return sum;
}
