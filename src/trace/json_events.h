/* SPDX-License-Identifier: MIT */
/**
 * JSON out of a source as a stream of values, for every reader of a JSON format.
 *
 * A thin layer over yajl that adds: bytes come from a source (or a piece of memory), a value knows
 * the key it belongs to and how deep it lies, nesting is limited, a subtree can be skipped, every
 * failure says "byte N: ...". Nothing of the text is kept but the key that is open.
 */
#ifndef ALLOTI_TRACE_JSON_EVENTS_H
#define ALLOTI_TRACE_JSON_EVENTS_H

#include "core/progress.h"
#include "trace/source.h"

/** Containers inside each other at most; more is refused. */
enum { ALLOTI_JSON_DEPTH_MAX = 64 };

typedef enum alloti_json_type {
    ALLOTI_JSON_OBJECT_BEGIN,
    ALLOTI_JSON_OBJECT_END,
    ALLOTI_JSON_ARRAY_BEGIN,
    ALLOTI_JSON_ARRAY_END,
    ALLOTI_JSON_STRING,
    ALLOTI_JSON_NUMBER,
    ALLOTI_JSON_BOOL,
    ALLOTI_JSON_NULL,
} alloti_json_type;

typedef struct alloti_json_parser alloti_json_parser;

/** A value, or the end of a container. Borrowed for the call. */
typedef struct alloti_json_token {
    alloti_json_type type;
    unsigned depth;   /**< Containers around it: 0 for the outermost value, begin and end alike. */
    const char *key;  /**< NUL-terminated key in the object around it; "" in arrays and for ends. */
    const char *text; /**< STRING: unescaped UTF-8; NUMBER: as spelled. Not NUL-terminated. */
    size_t length;    /**< Bytes at `text`. */
    bool boolean;     /**< BOOL. */
    uint64_t offset;  /**< Byte just past the value in the decompressed input. */
} alloti_json_token;

/** Receives each value in order; a failure ends the parse and is handed through. */
typedef allot_status (*alloti_json_fn)(void *context, alloti_json_parser *json,
                                       const alloti_json_token *token);

/**
 * Parse one JSON text, to the end of the source; white space may follow, anything else is refused.
 *
 * @param[in] progress  Told of the source's position; NULL allowed.
 */
ALLOT_NODISCARD allot_status alloti_json_parse(alloti_source *source,
                                               const alloti_progress *progress,
                                               alloti_json_fn receive, void *context);

/** The same over memory [size]; offsets start from `base`. */
ALLOT_NODISCARD allot_status alloti_json_parse_text(const char *text, size_t size, uint64_t base,
                                                    alloti_json_fn receive, void *context);

/**
 * Called while an OBJECT_BEGIN or ARRAY_BEGIN is received: nothing inside it is reported, nor its
 * end.
 */
void alloti_json_skip(alloti_json_parser *json);

/** ALLOT_STATUS_FORMAT with "byte N: " in front of the text. */
allot_status alloti_json_fail(const alloti_json_token *token, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Whether the token's key is `key`. */
bool alloti_json_has_key(const alloti_json_token *token, const char *key);

/** Whether the token is a string equal to `text`. */
bool alloti_json_is_string(const alloti_json_token *token, const char *text);

/** Numbers of a NUMBER token; a failure names the key and what was expected. */
ALLOT_NODISCARD allot_status alloti_json_u64(const alloti_json_token *token, uint64_t *out);
ALLOT_NODISCARD allot_status alloti_json_i64(const alloti_json_token *token, int64_t *out);
ALLOT_NODISCARD allot_status alloti_json_double(const alloti_json_token *token, double *out);

#endif /* ALLOTI_TRACE_JSON_EVENTS_H */
