/* SPDX-License-Identifier: MIT */
#include "cli_number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

cli_exit cli_read_count(const char *option, const char *text, uint32_t least, uint32_t *out)
{
    if (text == NULL) {
        return CLI_OK;
    }
    const bool is_digits = text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
    errno = 0;
    const unsigned long long value = strtoull(text, NULL, 10);
    /* UINT32_MAX means "none" in many places. */
    if (!is_digits || errno != 0 || value < least || value >= UINT32_MAX) {
        return cli_usage("%s %s: want a whole number from %u to %u", option, text, least,
                         UINT32_MAX - 1);
    }
    *out = (uint32_t)value;
    return CLI_OK;
}

cli_exit cli_read_size(const char *option, const char *text, uint64_t *out)
{
    if (text == NULL) {
        return CLI_OK;
    }
    uint64_t size = 0;
    if (allot_size_parse(text, &size) != ALLOT_STATUS_OK) {
        return cli_usage("%s %s: %s", option, text, allot_error_detail());
    }
    if (size == 0) {
        return cli_usage("%s %s: want a size above 0", option, text);
    }
    *out = size;
    return CLI_OK;
}

cli_exit cli_read_limit(const char *text, uint64_t *out)
{
    enum { LIMIT_MIN = 2 << 20 };
    if (text == NULL) {
        return CLI_OK;
    }
    uint64_t limit = 0;
    if (allot_size_parse(text, &limit) != ALLOT_STATUS_OK) {
        return cli_usage("--limit %s: %s", text, allot_error_detail());
    }
    if (limit < LIMIT_MIN) {
        const bool lacks_unit = limit != 0 && text[strspn(text, "0123456789.")] == '\0';
        char size[ALLOT_SIZE_TEXT_MAX];
        allot_size_format(limit, size);
        return lacks_unit
                   ? cli_usage("--limit %s: %s is too little for a device; with a unit: %sGiB",
                               text, size, text)
                   : cli_usage("--limit %s: %s is too little for a device", text, size);
    }
    *out = limit;
    return CLI_OK;
}

/* Digits, a point, an exponent; no hexadecimal, infinity or white space as strtod() has them. */
static bool read_decimal(const char *text, double *out)
{
    char *end = NULL;
    errno = 0;
    *out = strtod(text, &end);
    return text[0] != '\0' && text[strspn(text, "+-.0123456789eE")] == '\0' && *end == '\0' &&
           errno == 0;
}

cli_exit cli_read_fraction(const char *text, const char *limit, double *out)
{
    if (text == NULL) {
        return CLI_OK;
    }
    double value = 0;
    if (!read_decimal(text, &value) || !(value > 0 && value <= 1)) {
        return cli_usage("--fraction %s: want a number above 0, up to 1", text);
    }
    if (limit == NULL) {
        return cli_usage("--fraction needs --limit: it is a share of it");
    }
    *out = value;
    return CLI_OK;
}

cli_exit cli_read_percent(const char *option, const char *text, double *out)
{
    if (text == NULL) {
        return CLI_OK;
    }
    double value = 0;
    if (!read_decimal(text, &value) || !(value >= 0 && value <= 1e6)) {
        return cli_usage("%s %s: want a number of percent from 0 to 1000000", option, text);
    }
    *out = value;
    return CLI_OK;
}

cli_exit cli_read_time(const char *option, const char *text, uint64_t *out)
{
    static const struct {
        const char *unit;
        double ns;
    } UNITS[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    if (text == NULL) {
        return CLI_OK;
    }
    const size_t digits = strspn(text, "0123456789.");
    char number[32] = "";
    double value = 0;
    if (digits < sizeof number) {
        memcpy(number, text, digits);
    }
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0] && read_decimal(number, &value); i++) {
        const double ns = value * UNITS[i].ns;
        if (strcmp(text + digits, UNITS[i].unit) == 0 && ns >= 1 && ns < 1e18) {
            *out = (uint64_t)ns;
            return CLI_OK;
        }
    }
    return cli_usage("%s %s: want a time above 0 such as 1ms, 500us or 0.5s", option, text);
}
