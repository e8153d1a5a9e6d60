/* SPDX-License-Identifier: MIT */
/*
 * Status codes and the thread-local text that explains the last failure. The text lives in a fixed
 * buffer, so that saying "out of memory" never needs memory.
 */
#include "core/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char detail[ALLOTI_DETAIL_SIZE];

const char *allot_status_name(allot_status status)
{
    switch (status) {
#define STATUS_NAME(name, value, text)                                                             \
    case ALLOT_STATUS_##name:                                                                      \
        return #name;
        ALLOT_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    }
    return "UNKNOWN";
}

const char *allot_status_text(allot_status status)
{
    switch (status) {
#define STATUS_TEXT(name, value, text)                                                             \
    case ALLOT_STATUS_##name:                                                                      \
        return text;
        ALLOT_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

const char *allot_error_detail(void)
{
    return detail;
}

const char *allot_version(void)
{
    return ALLOT_VERSION_STRING;
}

allot_status(alloti_fail)(allot_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    return status;
}

allot_status(alloti_fail_prefix)(allot_status status, const char *format, ...)
{
    char old[ALLOTI_DETAIL_SIZE];
    memcpy(old, detail, sizeof old);
    va_list args;
    va_start(args, format);
    const int written = vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    if (written >= 0 && (size_t)written < sizeof detail) {
        snprintf(detail + written, sizeof detail - (size_t)written, "%s", old);
    }
    return status;
}

allot_status(alloti_fail_memory)(uint64_t size)
{
    return alloti_fail(ALLOT_STATUS_HOST_MEMORY, "asked %" PRIu64 " bytes of host memory", size);
}
