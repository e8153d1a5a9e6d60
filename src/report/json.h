/* SPDX-License-Identifier: MIT */
/**
 * Writing JSON to a sink, over yajl's generator. The first failure sticks: callers write on and ask
 * once, at alloti_json_end(). Integers keep all 64 bits; strings that are not UTF-8 get U+FFFD
 * where they are broken; numbers that JSON cannot say (NaN) become null.
 */
#ifndef ALLOTI_REPORT_JSON_H
#define ALLOTI_REPORT_JSON_H

#include <allot/base.h>

typedef struct alloti_json {
    const allot_sink *sink;
    void *generator; /**< yajl_gen */
    allot_status status;
} alloti_json;

/**
 * Begin a document: an object whose first field is "schema", for example "allot.inspect/1".
 * alloti_json_end() must follow, also after a failure of this call.
 */
void alloti_json_begin(alloti_json *json, const allot_sink *sink, const char *schema);

/** From here on without line breaks and indentation: for long lists that programs read. */
void alloti_json_compact(alloti_json *json);

/** End the document's object and write a line end; the first failure since the beginning. */
ALLOT_NODISCARD allot_status alloti_json_end(alloti_json *json);

/** Begin an object or an array: the value of field `key`, or an array's element if NULL. */
void alloti_json_object_begin(alloti_json *json, const char *key);
void alloti_json_object_end(alloti_json *json);
void alloti_json_array_begin(alloti_json *json, const char *key);
void alloti_json_array_end(alloti_json *json);

/** One value: of field `key`, or an array's element if `key` is NULL. */
void alloti_json_put_u64(alloti_json *json, const char *key, uint64_t value);
void alloti_json_put_i64(alloti_json *json, const char *key, int64_t value);
void alloti_json_put_double(alloti_json *json, const char *key, double value);
/** value / 10^decimals with all its digits: nanoseconds as microseconds (3 decimals). */
void alloti_json_put_fixed(alloti_json *json, const char *key, int64_t value, unsigned decimals);
void alloti_json_put_bool(alloti_json *json, const char *key, bool value);
void alloti_json_put_null(alloti_json *json, const char *key);
/** NULL text becomes null. */
void alloti_json_put_string(alloti_json *json, const char *key, const char *text);
/** An index, with null for ALLOT_NONE. */
void alloti_json_put_index(alloti_json *json, const char *key, uint32_t value);

#endif /* ALLOTI_REPORT_JSON_H */
