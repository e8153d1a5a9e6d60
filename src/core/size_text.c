/* SPDX-License-Identifier: MIT */
/* Sizes as people write and read them. */
#include "core/size_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/size_math.h"
#include "core/status.h"

static const char UNITS[] = "KMGTPE";

const char *allot_size_format(uint64_t bytes, char *buffer)
{
    if (bytes < 1024) {
        snprintf(buffer, ALLOT_SIZE_TEXT_MAX, "%" PRIu64 " B", bytes);
        return buffer;
    }
    unsigned unit = alloti_log2(bytes) / 10;
    double value = (double)bytes / (double)(UINT64_C(1) << (10 * unit));
    /* 1023.96 KiB would be printed as 1024.0 KiB. */
    if (value >= 1023.95 && unit < sizeof UNITS - 1) {
        unit++;
        value /= 1024;
    }
    snprintf(buffer, ALLOT_SIZE_TEXT_MAX, unit >= 3 ? "%.2f %ciB" : "%.1f %ciB", value,
             UNITS[unit - 1]);
    return buffer;
}

/* Bytes of the unit at `text`, 0 if it is none; *length is how long its spelling is. */
static uint64_t unit_parse(const char *text, size_t *length)
{
    const int letter = toupper((unsigned char)text[0]);
    if (letter == '\0') {
        *length = 0;
        return 1;
    }
    if (letter == 'B') {
        *length = 1;
        return 1;
    }
    const char *const found = strchr(UNITS, letter);
    if (found == NULL) {
        return 0;
    }
    const bool has_i = tolower((unsigned char)text[1]) == 'i';
    const size_t b = has_i ? 2 : 1;
    *length = toupper((unsigned char)text[b]) == 'B' ? b + 1 : b;
    return UINT64_C(1) << (10 * (unsigned)(found - UNITS + 1));
}

static allot_status fail_at(const char *text, const char *where, const char *what)
{
    return alloti_fail(ALLOT_STATUS_INVALID, "size \"%s\": character %zu: %s", text,
                       (size_t)(where - text) + 1, what);
}

allot_status allot_size_parse(const char *text, uint64_t *out)
{
    const char *at = text;
    uint64_t whole = 0;
    while (isdigit((unsigned char)*at)) {
        if (!alloti_mul(whole, 10, &whole) || !alloti_add(whole, (uint64_t)(*at - '0'), &whole)) {
            return fail_at(text, at, "the number is too large");
        }
        at++;
    }
    if (at == text) {
        return fail_at(text, at, "a number was expected");
    }
    double fraction = 0;
    if (*at == '.') {
        double digit = 0.1;
        for (at++; isdigit((unsigned char)*at); at++) {
            fraction += digit * (*at - '0');
            digit /= 10;
        }
    }
    while (*at == ' ') {
        at++;
    }
    size_t length = 0;
    const uint64_t unit = unit_parse(at, &length);
    if (unit == 0 || at[length] != '\0') {
        return fail_at(text, unit == 0 ? at : at + length,
                       "a unit was expected: B, or KiB, MiB, GiB, TiB, PiB, EiB, also without B "
                       "or iB");
    }
    uint64_t bytes = 0;
    if (!alloti_mul(whole, unit, &bytes) ||
        !alloti_add(bytes, (uint64_t)(fraction * (double)unit + 0.5), &bytes)) {
        return fail_at(text, text, "the size is above 2^64 - 1 bytes");
    }
    *out = bytes;
    return ALLOT_STATUS_OK;
}

alloti_size_text alloti_size(uint64_t bytes)
{
    alloti_size_text out = {0};
    allot_size_format(bytes, out.text);
    return out;
}

alloti_size_text alloti_size_change(uint64_t from, uint64_t to)
{
    char digits[ALLOT_SIZE_TEXT_MAX];
    allot_size_format(to > from ? to - from : from - to, digits);
    alloti_size_text out = {0};
    snprintf(out.text, sizeof out.text, "%s%.*s",
             to > from   ? "+"
             : to < from ? "-"
                         : "",
             (int)sizeof out.text - 2, digits);
    return out;
}

alloti_count_text alloti_count(uint64_t count, const char *noun)
{
    alloti_count_text out;
    snprintf(out.text, sizeof out.text, "%" PRIu64 " %.40s%s", count, noun, count == 1 ? "" : "s");
    return out;
}
