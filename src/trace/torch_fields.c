/* SPDX-License-Identifier: MIT */
/*
 * Values of keys: numbers, times, texts, lists, pools, streams, stacks, categories, each with the
 * message for what has a wrong type.
 */
#include "trace/torch_records.h"

#include <math.h>

#include "core/status.h"

allot_status alloti_torch_fail_type(torch_field field, alloti_value value, const char *wanted)
{
    return alloti_fail(ALLOT_STATUS_FORMAT, "\"%s\" of %s is %s, not %s",
                       alloti_torch_word_text(field.key), field.owner, alloti_value_describe(value),
                       wanted);
}

bool alloti_torch_is_u64(const alloti_store *store, alloti_value value, uint64_t *out)
{
    const uint64_t payload = alloti_value_payload(value);
    const alloti_value_type type = alloti_value_get_type(value);
    if (type == ALLOTI_VALUE_INT && alloti_value_integer(value) >= 0) {
        *out = (uint64_t)alloti_value_integer(value);
        return true;
    }
    if (type == ALLOTI_VALUE_WIDE && (payload & 1) == 0) {
        *out = store->wide[payload >> 1];
        return true;
    }
    return false;
}

allot_status alloti_torch_get_u64(const alloti_store *store, torch_field field, alloti_value value,
                                  uint64_t *out)
{
    if (alloti_torch_is_u64(store, value, out)) {
        return ALLOT_STATUS_OK;
    }
    const alloti_value_type type = alloti_value_get_type(value);
    if (type == ALLOTI_VALUE_INT || type == ALLOTI_VALUE_WIDE) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "\"%s\" of %s is negative",
                           alloti_torch_word_text(field.key), field.owner);
    }
    return alloti_torch_fail_type(field, value, "an integer of 64 bits");
}

allot_status alloti_torch_get_time(const alloti_store *store, torch_field field, alloti_value value,
                                   int64_t *out)
{
    enum { NS_PER_US = 1000 };
    const int64_t limit = INT64_MAX / NS_PER_US;
    if (alloti_value_get_type(value) == ALLOTI_VALUE_INT) {
        const int64_t us = alloti_value_integer(value);
        if (us <= limit && us >= -limit) {
            *out = us * NS_PER_US;
            return ALLOT_STATUS_OK;
        }
    } else if (alloti_value_get_type(value) == ALLOTI_VALUE_FLOAT) {
        const double us = store->floats[alloti_value_payload(value)];
        if (us < (double)limit && us > -(double)limit) {
            *out = (int64_t)llround(us * NS_PER_US);
            return ALLOT_STATUS_OK;
        }
    } else if (alloti_value_get_type(value) != ALLOTI_VALUE_WIDE) {
        return alloti_torch_fail_type(field, value, "a number");
    }
    return alloti_fail(ALLOT_STATUS_FORMAT, "\"%s\" of %s is out of range",
                       alloti_torch_word_text(field.key), field.owner);
}

allot_status alloti_torch_get_string(torch_field field, alloti_value value, uint32_t *out)
{
    if (alloti_value_get_type(value) == ALLOTI_VALUE_STRING) {
        *out = (uint32_t)alloti_value_payload(value);
        return ALLOT_STATUS_OK;
    }
    if (alloti_value_get_type(value) == ALLOTI_VALUE_NONE) {
        *out = ALLOT_NONE;
        return ALLOT_STATUS_OK;
    }
    return alloti_torch_fail_type(field, value, "a string");
}

allot_status alloti_torch_get_list(const alloti_store *store, torch_field field, alloti_value value,
                                   const alloti_value **items, uint64_t *count)
{
    switch (alloti_value_get_type(value)) {
    case ALLOTI_VALUE_NEW_LIST:
        *items = NULL;
        *count = 0;
        return ALLOT_STATUS_OK;
    case ALLOTI_VALUE_LIST: {
        const torch_object *const object = &store->objects[alloti_value_payload(value)];
        *items = object->items;
        *count = object->count;
        return ALLOT_STATUS_OK;
    }
    default:
        return alloti_torch_fail_type(field, value, "a list");
    }
}

allot_status alloti_torch_make_pool(alloti_store *store, uint64_t first, uint64_t second,
                                    uint32_t *out)
{
    if (store->last_pool_id == ALLOT_NONE || store->last_pool.first != first ||
        store->last_pool.second != second) {
        const allot_pool_id pool = {.first = first, .second = second};
        const allot_status status =
            alloti_builder_intern_pool(store->builder, pool, &store->last_pool_id);
        if (status != ALLOT_STATUS_OK) {
            store->last_pool_id = ALLOT_NONE;
            return status;
        }
        store->last_pool = pool;
    }
    *out = store->last_pool_id;
    return ALLOT_STATUS_OK;
}

allot_status alloti_torch_get_pool(alloti_store *store, torch_field field, alloti_value value,
                                   uint32_t *out)
{
    if (alloti_value_get_type(value) == ALLOTI_VALUE_POOL) {
        *out = (uint32_t)alloti_value_payload(value);
        return ALLOT_STATUS_OK;
    }
    if (alloti_value_get_type(value) == ALLOTI_VALUE_NONE) {
        return ALLOT_STATUS_OK;
    }
    const alloti_value *items = NULL;
    uint64_t count = 0;
    uint64_t first = 0;
    uint64_t second = 0;
    const allot_status status = alloti_torch_get_list(store, field, value, &items, &count);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (count != 2 || !alloti_torch_is_u64(store, items[0], &first) ||
        !alloti_torch_is_u64(store, items[1], &second)) {
        return alloti_torch_fail_type(field, value, "a pair of integers");
    }
    return alloti_torch_make_pool(store, first, second, out);
}

allot_status alloti_torch_get_stream(alloti_store *store, torch_field field, alloti_value value,
                                     uint32_t *out)
{
    uint64_t stream = 0;
    if (alloti_value_get_type(value) == ALLOTI_VALUE_INT) {
        stream = (uint64_t)alloti_value_integer(value);
    } else {
        const allot_status status = alloti_torch_get_u64(store, field, value, &stream);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    if (store->last_stream_id == ALLOT_NONE || store->last_stream != stream) {
        const allot_status status =
            alloti_builder_intern_stream(store->builder, stream, &store->last_stream_id);
        if (status != ALLOT_STATUS_OK) {
            store->last_stream_id = ALLOT_NONE;
            return status;
        }
        store->last_stream = stream;
    }
    *out = store->last_stream_id;
    return ALLOT_STATUS_OK;
}

allot_status alloti_torch_get_stack(alloti_store *store, torch_field field, alloti_value value,
                                    uint32_t *out)
{
    switch (alloti_value_get_type(value)) {
    case ALLOTI_VALUE_STACK:
        *out = (uint32_t)alloti_value_payload(value);
        return ALLOT_STATUS_OK;
    case ALLOTI_VALUE_NEW_LIST:
        return alloti_builder_intern_stack(store->builder, NULL, 0, out);
    case ALLOTI_VALUE_NONE:
        *out = ALLOT_NONE;
        return ALLOT_STATUS_OK;
    default:
        return alloti_torch_fail_type(field, value, "a list of frames");
    }
}

allot_status alloti_torch_get_category(const alloti_store *store, torch_field field,
                                       alloti_value value, uint8_t *out)
{
    uint64_t index = 0;
    if (alloti_torch_is_u64(store, value, &index)) {
        if (index >= UINT8_MAX - TORCH_CATEGORY_INDEX) {
            return alloti_fail(ALLOT_STATUS_FORMAT, "\"category\" of %s is out of range",
                               field.owner);
        }
        *out = (uint8_t)(TORCH_CATEGORY_INDEX + index);
        return ALLOT_STATUS_OK;
    }
    uint32_t id = ALLOT_NONE;
    const allot_status status = alloti_torch_get_string(field, value, &id);
    if (status == ALLOT_STATUS_OK) {
        *out = (uint8_t)alloti_torch_parse_category(alloti_builder_get_string(store->builder, id));
        alloti_builder_set_trait(store->builder, ALLOT_TRACE_HAS_CATEGORIES);
    }
    return status;
}
