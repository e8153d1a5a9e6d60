/* SPDX-License-Identifier: MIT */
#include "report/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "core/status.h"
#include "core/utf8.h"

static void print(void *context, const char *text, size_t size)
{
    alloti_json *const json = context;
    if (json->status == ALLOT_STATUS_OK) {
        json->status = json->sink->write(json->sink->context, text, size);
    }
}

/* yajl refuses only what this file never asks for, apart from running out of memory. */
static void note(alloti_json *json, yajl_gen_status result)
{
    if (result != yajl_gen_status_ok && json->status == ALLOT_STATUS_OK) {
        json->status = alloti_fail(ALLOT_STATUS_INVALID, "JSON generator: error %d", (int)result);
    }
}

static bool can_write(const alloti_json *json)
{
    return json->status == ALLOT_STATUS_OK && json->generator != NULL;
}

static void write_raw_string(alloti_json *json, const char *text)
{
    note(json, yajl_gen_string(json->generator, (const unsigned char *)text, strlen(text)));
}

static bool begin_value(alloti_json *json, const char *key)
{
    if (can_write(json) && key != NULL) {
        write_raw_string(json, key);
    }
    return can_write(json);
}

void alloti_json_begin(alloti_json *json, const allot_sink *sink, const char *schema)
{
    *json = (alloti_json){.sink = sink, .generator = yajl_gen_alloc(NULL)};
    if (json->generator == NULL) {
        json->status = alloti_fail_memory(0);
        return;
    }
    yajl_gen_config(json->generator, yajl_gen_beautify, 1);
    yajl_gen_config(json->generator, yajl_gen_indent_string, "  ");
    yajl_gen_config(json->generator, yajl_gen_print_callback, print, json);
    alloti_json_object_begin(json, NULL);
    alloti_json_put_string(json, "schema", schema);
}

void alloti_json_compact(alloti_json *json)
{
    if (can_write(json)) {
        yajl_gen_config(json->generator, yajl_gen_beautify, 0);
    }
}

allot_status alloti_json_end(alloti_json *json)
{
    alloti_json_object_end(json);
    if (json->generator != NULL) {
        yajl_gen_free(json->generator);
        json->generator = NULL;
    }
    return json->status;
}

void alloti_json_object_begin(alloti_json *json, const char *key)
{
    if (begin_value(json, key)) {
        note(json, yajl_gen_map_open(json->generator));
    }
}

void alloti_json_object_end(alloti_json *json)
{
    if (can_write(json)) {
        note(json, yajl_gen_map_close(json->generator));
    }
}

void alloti_json_array_begin(alloti_json *json, const char *key)
{
    if (begin_value(json, key)) {
        note(json, yajl_gen_array_open(json->generator));
    }
}

void alloti_json_array_end(alloti_json *json)
{
    if (can_write(json)) {
        note(json, yajl_gen_array_close(json->generator));
    }
}

static void write_number(alloti_json *json, const char *key, const char *digits)
{
    if (begin_value(json, key)) {
        note(json, yajl_gen_number(json->generator, digits, strlen(digits)));
    }
}

void alloti_json_put_u64(alloti_json *json, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    write_number(json, key, digits);
}

void alloti_json_put_i64(alloti_json *json, const char *key, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    write_number(json, key, digits);
}

void alloti_json_put_fixed(alloti_json *json, const char *key, int64_t value, unsigned decimals)
{
    uint64_t unit = 1;
    for (unsigned i = 0; i < decimals; i++) {
        unit *= 10;
    }
    const uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char digits[48];
    snprintf(digits, sizeof digits, "%s%" PRIu64 ".%0*" PRIu64, value < 0 ? "-" : "",
             magnitude / unit, (int)decimals, magnitude % unit);
    write_number(json, key, digits);
}

void alloti_json_put_double(alloti_json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        alloti_json_put_null(json, key);
        return;
    }
    char digits[32];
    snprintf(digits, sizeof digits, "%.9g", value);
    write_number(json, key, digits);
}

void alloti_json_put_bool(alloti_json *json, const char *key, bool value)
{
    if (begin_value(json, key)) {
        note(json, yajl_gen_bool(json->generator, value));
    }
}

void alloti_json_put_null(alloti_json *json, const char *key)
{
    if (begin_value(json, key)) {
        note(json, yajl_gen_null(json->generator));
    }
}

/* Whether every sequence is well formed, U+FFFD itself among them. */
static bool is_utf8(const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        uint32_t code = 0;
        const size_t length = alloti_utf8_decode(text + at, size - at, &code);
        if (length == 1 && ((uint8_t)text[at] & 0x80) != 0) {
            return false;
        }
        at += length;
    }
    return true;
}

/* A copy in which each broken byte is U+FFFD; NULL if there is no memory for it. */
static char *repair(const char *text, size_t size)
{
    char *const copy = malloc(3 * size + 1);
    if (copy == NULL) {
        return NULL;
    }
    size_t used = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code = 0;
        const size_t length = alloti_utf8_decode(text + at, size - at, &code);
        const bool is_broken = length == 1 && ((uint8_t)text[at] & 0x80) != 0;
        memcpy(copy + used, is_broken ? "\xef\xbf\xbd" : text + at, is_broken ? 3 : length);
        used += is_broken ? 3 : length;
        at += length;
    }
    copy[used] = '\0';
    return copy;
}

void alloti_json_put_string(alloti_json *json, const char *key, const char *text)
{
    if (text == NULL) {
        alloti_json_put_null(json, key);
        return;
    }
    if (!begin_value(json, key)) {
        return;
    }
    const size_t size = strlen(text);
    if (is_utf8(text, size)) {
        write_raw_string(json, text);
        return;
    }
    char *const copy = repair(text, size);
    if (copy == NULL) {
        json->status = alloti_fail_memory(3 * size + 1);
        return;
    }
    write_raw_string(json, copy);
    free(copy);
}

void alloti_json_put_index(alloti_json *json, const char *key, uint32_t value)
{
    if (value == ALLOT_NONE) {
        alloti_json_put_null(json, key);
    } else {
        alloti_json_put_u64(json, key, value);
    }
}
