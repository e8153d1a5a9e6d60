/* SPDX-License-Identifier: MIT */
/**
 * The columns of numbers in a page: one buffer of LEB128 numbers, described in the page's JSON by
 * {"at": first byte, "n": how many, "delta": zigzag differences?}. JavaScript keeps integers exact
 * up to 2^53, so larger ones are cut to 2^51.
 *
 * The first failure sticks; callers write on and ask at the end.
 */
#ifndef ALLOTI_REPORT_HTML_PACK_H
#define ALLOTI_REPORT_HTML_PACK_H

#include "report/json.h"

/** Largest number a column holds; differences of two still fit in 2^53 after zigzag. */
#define ALLOTI_PACK_MAX ((uint64_t)1 << 51)

typedef struct alloti_pack {
    uint8_t *bytes;
    uint64_t size;
    uint64_t capacity;
    allot_status status;
} alloti_pack;

/** A column being written. */
typedef struct alloti_pack_column {
    alloti_pack *pack;
    uint64_t at;
    uint64_t count;
    uint64_t previous;
    bool is_delta;
} alloti_pack_column;

/** Begin a column at the end of the buffer; only one is written at a time. */
alloti_pack_column alloti_pack_begin(alloti_pack *pack, bool is_delta);

void alloti_pack_put(alloti_pack_column *column, uint64_t value);

/** Describe the column in JSON as the value of `key`. */
void alloti_pack_end(const alloti_pack_column *column, alloti_json *json, const char *key);

/** A whole column from an array. [count] */
void alloti_pack_array(alloti_pack *pack, alloti_json *json, const char *key, bool is_delta,
                       const uint64_t *values, uint64_t count);

void alloti_pack_fini(alloti_pack *pack);

#endif /* ALLOTI_REPORT_HTML_PACK_H */
