/* SPDX-License-Identifier: MIT */
#include "trace/json_special.h"

#include <string.h>

/* Index of the byte after the string's end, or `size`. */
static size_t skip_string(alloti_json_scan *scan, const uint8_t *data, size_t from, size_t size)
{
    size_t i = from;
    for (; i < size && scan->is_in_string; i++) {
        if (scan->is_escaped) {
            scan->is_escaped = false;
        } else if (data[i] == '\\') {
            scan->is_escaped = true;
        } else if (data[i] == '"') {
            scan->is_in_string = false;
        }
    }
    return i;
}

size_t alloti_json_plain(alloti_json_scan *scan, const uint8_t *data, size_t size)
{
    size_t i = skip_string(scan, data, 0, size);
    while (i < size) {
        const uint8_t byte = data[i];
        if (byte == '"') {
            scan->is_in_string = true;
            i = skip_string(scan, data, i + 1, size);
            continue;
        }
        if (byte == 'N' || byte == 'I' || (byte == '-' && (i + 1 == size || data[i + 1] == 'I'))) {
            break;
        }
        i++;
    }
    return i;
}

size_t alloti_json_special(const uint8_t *data, size_t size)
{
    static const char *const SPELLINGS[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof SPELLINGS / sizeof SPELLINGS[0]; i++) {
        const size_t length = strlen(SPELLINGS[i]);
        if (size >= length && memcmp(data, SPELLINGS[i], length) == 0) {
            return length;
        }
    }
    return 0;
}
