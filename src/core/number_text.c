/* SPDX-License-Identifier: MIT */
#include "core/number_text.h"

#include <limits.h>

#include "core/size_math.h"

static bool digits_u64(const char *text, size_t length, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    if (length == 0) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        const char c = text[i];
        const unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                               : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                               : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                      : UINT_MAX;
        if (digit >= base || !alloti_mul(value, base, &value) ||
            !alloti_add(value, digit, &value)) {
            return false;
        }
    }
    *out = value;
    return true;
}

bool alloti_number_u64(const char *text, size_t length, uint64_t *out)
{
    return digits_u64(text, length, 10, out);
}

bool alloti_number_hex(const char *text, size_t length, uint64_t *out)
{
    if (length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        text += 2;
        length -= 2;
    }
    return digits_u64(text, length, 16, out);
}

/* Take a sign off the front. */
static bool sign_take(const char **text, size_t *length)
{
    const bool has_sign = *length != 0 && (**text == '-' || **text == '+');
    const bool is_negative = has_sign && **text == '-';
    *text += has_sign;
    *length -= has_sign;
    return is_negative;
}

static bool with_sign(uint64_t magnitude, bool is_negative, int64_t *out)
{
    if (magnitude > (uint64_t)INT64_MAX + is_negative) {
        return false;
    }
    *out = !is_negative                      ? (int64_t)magnitude
           : magnitude > (uint64_t)INT64_MAX ? INT64_MIN
                                             : -(int64_t)magnitude;
    return true;
}

bool alloti_number_i64(const char *text, size_t length, int64_t *out)
{
    const bool is_negative = sign_take(&text, &length);
    uint64_t magnitude = 0;
    return digits_u64(text, length, 10, &magnitude) && with_sign(magnitude, is_negative, out);
}

enum { EXPONENT_MAX = 1000 };

/* Exponent at `text` ("e+12", or nothing). */
static bool exponent_parse(const char *text, size_t length, int64_t *out)
{
    if (length == 0) {
        *out = 0;
        return true;
    }
    return (text[0] == 'e' || text[0] == 'E') && alloti_number_i64(text + 1, length - 1, out) &&
           *out <= EXPONENT_MAX && *out >= -EXPONENT_MAX;
}

bool alloti_number_fixed(const char *text, size_t length, unsigned decimals, int64_t *out)
{
    const bool is_negative = sign_take(&text, &length);
    size_t end = 0;
    size_t digit_count = 0;
    size_t fraction_count = 0;
    bool has_point = false;
    for (; end < length && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.'); end++) {
        if (text[end] == '.') {
            if (has_point) {
                return false;
            }
            has_point = true;
            continue;
        }
        digit_count++;
        fraction_count += has_point;
    }
    int64_t exponent = 0;
    if (digit_count == 0 || !exponent_parse(text + end, length - end, &exponent)) {
        return false;
    }
    /* How many of the digits stand before the point once it was moved; zeros follow if too few. */
    const int64_t wanted = (int64_t)digit_count - (int64_t)fraction_count + exponent + decimals;
    uint64_t value = 0;
    int64_t taken = 0;
    for (size_t i = 0; i < end && taken < wanted; i++) {
        if (text[i] == '.') {
            continue;
        }
        if (!alloti_mul(value, 10, &value) ||
            !alloti_add(value, (uint64_t)(text[i] - '0'), &value)) {
            return false;
        }
        taken++;
    }
    for (; taken < wanted && value != 0; taken++) {
        if (!alloti_mul(value, 10, &value)) {
            return false;
        }
    }
    return with_sign(value, is_negative, out);
}
