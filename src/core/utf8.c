/* SPDX-License-Identifier: MIT */
/*
 * Decoding follows the Unicode Standard, table 3-7 (well-formed byte sequences). Widths are those
 * of the blocks that paths and names really use; the locale of the process is not asked, because a
 * library must not depend on it.
 */
#include "core/utf8.h"

#include <stdbool.h>
#include <string.h>

enum { REPLACEMENT = 0xfffd };

typedef struct range {
    uint32_t first;
    uint32_t last;
} range;

static bool in_ranges(uint32_t code, const range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

/* Bytes after the first one and the bits of the first that count; 0 for no start of a sequence. */
static size_t sequence_length(uint8_t first, uint32_t *bits)
{
    if (first >= 0xc2 && first <= 0xdf) {
        *bits = first & 0x1fu;
        return 2;
    }
    if ((first & 0xf0) == 0xe0) {
        *bits = first & 0x0fu;
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        *bits = first & 0x07u;
        return 4;
    }
    return 0;
}

size_t alloti_utf8_decode(const char *text, size_t size, uint32_t *out)
{
    static const uint32_t MIN_OF_LENGTH[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t first = (uint8_t)text[0];
    if (first < 0x80) {
        *out = first;
        return 1;
    }
    uint32_t code = 0;
    const size_t length = sequence_length(first, &code);
    *out = REPLACEMENT;
    if (length == 0 || length > size) {
        return 1;
    }
    for (size_t i = 1; i < length; i++) {
        const uint8_t next = (uint8_t)text[i];
        if ((next & 0xc0) != 0x80) {
            return 1;
        }
        code = code << 6 | (next & 0x3fu);
    }
    const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < MIN_OF_LENGTH[length] || code > 0x10ffff || is_surrogate) {
        return 1;
    }
    *out = code;
    return length;
}

unsigned alloti_utf8_width(uint32_t code)
{
    static const range ZERO[] = {{0, 0x1f},         {0x7f, 0x9f},     {0x300, 0x36f},
                                 {0x200b, 0x200f},  {0x20d0, 0x20ff}, {0xfe00, 0xfe0f},
                                 {0xe0100, 0xe01ef}};
    static const range WIDE[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},  {0x3041, 0xa4cf},
                                 {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f},
                                 {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f},
                                 {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    if (in_ranges(code, ZERO, sizeof ZERO / sizeof ZERO[0])) {
        return 0;
    }
    return in_ranges(code, WIDE, sizeof WIDE / sizeof WIDE[0]) ? 2 : 1;
}

size_t alloti_utf8_columns(const char *text, size_t size)
{
    size_t columns = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code = 0;
        at += alloti_utf8_decode(text + at, size - at, &code);
        columns += alloti_utf8_width(code);
    }
    return columns;
}

size_t alloti_utf8_cut(const char *text, size_t size, size_t columns)
{
    size_t at = 0;
    while (at < size) {
        uint32_t code = 0;
        const size_t length = alloti_utf8_decode(text + at, size - at, &code);
        const unsigned width = alloti_utf8_width(code);
        if (width > columns) {
            break;
        }
        columns -= width;
        at += length;
    }
    return at;
}

/* What a terminal acts on, or what makes a text look like another one. */
static bool is_harmful(uint32_t code)
{
    static const range HARMFUL[] = {{0, 8},           {0xb, 0x1f},      {0x7f, 0x9f},
                                    {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    return in_ranges(code, HARMFUL, sizeof HARMFUL / sizeof HARMFUL[0]);
}

void alloti_utf8_disarm(char *text)
{
    const size_t size = strlen(text);
    for (size_t at = 0; at < size;) {
        uint32_t code = 0;
        const size_t length = alloti_utf8_decode(text + at, size - at, &code);
        if (is_harmful(code) || (code == REPLACEMENT && length == 1)) {
            memset(text + at, '?', length);
        }
        at += length;
    }
}
