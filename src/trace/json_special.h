/* SPDX-License-Identifier: MIT */
/**
 * NaN, Infinity and -Infinity in JSON: no part of the standard, but Python and Kineto write them.
 * Finds where they stand, so that a parser of the standard can be given "null" in their place.
 */
#ifndef ALLOTI_TRACE_JSON_SPECIAL_H
#define ALLOTI_TRACE_JSON_SPECIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What the bytes so far leave open. Zero-initialise. */
typedef struct alloti_json_scan {
    bool is_in_string;
    bool is_escaped; /**< The next byte follows a backslash. */
} alloti_json_scan;

/** Bytes of `data` [size] before the first that could begin such a number; these are scanned. */
size_t alloti_json_plain(alloti_json_scan *scan, const uint8_t *data, size_t size);

/** Length of such a number at the beginning of `data` [size], which is in no string; 0 for none. */
size_t alloti_json_special(const uint8_t *data, size_t size);

#endif /* ALLOTI_TRACE_JSON_SPECIAL_H */
