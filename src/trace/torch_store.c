/* SPDX-License-Identifier: MIT */
/*
 * Lists, dicts and numbers of a snapshot while it is read.
 *
 * A list of frames becomes a stack at once, a dict becomes a record at once; what has no shorter
 * form is an object with an array. A container is extended through its only cell, and never again
 * after it was put into another one: that keeps every value a tree or a shared tree, never a cycle,
 * and lets records be made early. Nothing here copies what a container holds into another one, so
 * sharing cannot multiply memory.
 */
#include "trace/torch_store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/status.h"
#include "trace/torch_records.h"

/* A list of frames as long as this stays an object until it is used, because it may come in
 * batches of 1,000 and a stack would be made of each length. */
enum { STACK_AT_ONCE = 1000 };

static const char *const WORDS[] = {
#define WORD_TEXT(name, spelling) spelling,
    TORCH_KEYS(WORD_TEXT) TORCH_WORDS(WORD_TEXT)
#undef WORD_TEXT
#define WORD_EVENT_TEXT(name, value, spelling) spelling,
        ALLOT_EVENT_LIST(WORD_EVENT_TEXT)
#undef WORD_EVENT_TEXT
};

_Static_assert(sizeof WORDS / sizeof WORDS[0] == WORD_COUNT, "one text per word");

const char *alloti_torch_word_text(torch_word word)
{
    return WORDS[word];
}

const char *alloti_value_describe(alloti_value value)
{
    static const char *const TEXTS[] = {
#define VALUE_TEXT(name, text) text,
        ALLOTI_VALUE_LIST(VALUE_TEXT)
#undef VALUE_TEXT
    };
    return TEXTS[alloti_value_get_type(value)];
}

static allot_status words_intern(alloti_builder *builder)
{
    for (uint32_t i = 0; i < WORD_COUNT; i++) {
        uint32_t id = 0;
        const allot_status status =
            alloti_builder_intern_string(builder, WORDS[i], strlen(WORDS[i]), &id);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        assert(id == i);
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_store_create(alloti_builder *builder, alloti_store **out)
{
    alloti_store *const store = calloc(1, sizeof *store);
    if (store == NULL) {
        return alloti_fail_memory(sizeof *store);
    }
    store->builder = builder;
    store->last_stream_id = ALLOT_NONE;
    store->last_pool_id = ALLOT_NONE;
    const allot_status status = words_intern(builder);
    if (status != ALLOT_STATUS_OK) {
        alloti_store_destroy(store);
        return status;
    }
    *out = store;
    return ALLOT_STATUS_OK;
}

void alloti_store_destroy(alloti_store *store)
{
    if (store == NULL) {
        return;
    }
    for (uint64_t i = 0; i < store->object_count; i++) {
        free(store->objects[i].items);
    }
    free(store->objects);
    free(store->wide);
    free(store->floats);
    free(store->blocks);
    free(store->segments);
    free(store->frames);
    free(store);
}

allot_status alloti_store_integer(alloti_store *store, uint64_t magnitude, bool is_negative,
                                  alloti_value *out)
{
    const uint64_t limit = UINT64_C(1) << (63 - ALLOTI_VALUE_SHIFT);
    if (magnitude < limit) {
        const int64_t number = is_negative ? -(int64_t)magnitude : (int64_t)magnitude;
        *out = alloti_value_make(ALLOTI_VALUE_INT, (uint64_t)number);
        return ALLOT_STATUS_OK;
    }
    const allot_status status = alloti_array_reserve(&store->wide, &store->wide_capacity,
                                                     store->wide_count + 1, sizeof *store->wide);
    if (status == ALLOT_STATUS_OK) {
        *out = alloti_value_make(ALLOTI_VALUE_WIDE, store->wide_count << 1 | is_negative);
        store->wide[store->wide_count++] = magnitude;
    }
    return status;
}

allot_status alloti_store_float(alloti_store *store, double number, alloti_value *out)
{
    const allot_status status = alloti_array_reserve(&store->floats, &store->float_capacity,
                                                     store->float_count + 1, sizeof *store->floats);
    if (status == ALLOT_STATUS_OK) {
        *out = alloti_value_make(ALLOTI_VALUE_FLOAT, store->float_count);
        store->floats[store->float_count++] = number;
    }
    return status;
}

allot_status alloti_store_string(alloti_store *store, const char *text, size_t length,
                                 alloti_value *out)
{
    uint32_t id = 0;
    const allot_status status = alloti_builder_intern_string(store->builder, text, length, &id);
    if (status == ALLOT_STATUS_OK) {
        *out = alloti_value_make(ALLOTI_VALUE_STRING, id);
    }
    return status;
}

uint64_t alloti_store_object_count(const alloti_store *store)
{
    return store->object_count;
}

static allot_status object_append(torch_object *object, const alloti_value *items, uint64_t count)
{
    const allot_status status = alloti_array_reserve(&object->items, &object->capacity,
                                                     object->count + count, sizeof *items);
    if (status == ALLOT_STATUS_OK && count != 0) {
        memcpy(object->items + object->count, items, count * sizeof *items);
        object->count += count;
    }
    return status;
}

/* A new object of this type in *cell, with these items. */
static allot_status object_begin(alloti_store *store, alloti_value_type type, alloti_value *cell,
                                 const alloti_value *items, uint64_t count)
{
    torch_object object = {0};
    allot_status status = alloti_array_reserve(&store->objects, &store->object_capacity,
                                               store->object_count + 1, sizeof *store->objects);
    if (status == ALLOT_STATUS_OK && count != 0) {
        /* Most never grow: no spare room. */
        object.items = alloti_alloc_array(count, sizeof *items);
        object.capacity = count;
        if (object.items == NULL) {
            status = alloti_fail_memory(count * sizeof *items);
        }
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (count != 0) {
        memcpy(object.items, items, count * sizeof *items);
        object.count = count;
    }
    *cell = alloti_value_make(type, store->object_count);
    store->objects[store->object_count++] = object;
    return ALLOT_STATUS_OK;
}

/* The array of an object that got a shorter form. */
static void object_end(alloti_store *store, uint64_t index)
{
    free(store->objects[index].items);
    store->objects[index] = (torch_object){0};
    if (index + 1 == store->object_count) {
        store->object_count--;
    }
}

static allot_status frames_reserve(alloti_store *store, uint64_t count)
{
    return alloti_array_reserve(&store->frames, &store->frame_capacity, count,
                                sizeof *store->frames);
}

/* A stack grows after all: back to an object. */
static allot_status stack_to_object(alloti_store *store, alloti_value *cell)
{
    uint32_t count = 0;
    const uint32_t *const frames =
        alloti_builder_get_stack(store->builder, (uint32_t)alloti_value_payload(*cell), &count);
    allot_status status = object_begin(store, ALLOTI_VALUE_LIST, cell, NULL, 0);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    torch_object *const object = &store->objects[alloti_value_payload(*cell)];
    for (uint32_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        const alloti_value frame = alloti_value_make(ALLOTI_VALUE_FRAME, frames[i]);
        status = object_append(object, &frame, 1);
    }
    return status;
}

static allot_status check_growing(alloti_value cell, const char *what)
{
    if ((cell & ALLOTI_VALUE_USED) != 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT,
                           "%s is changed after it was put into another list or dict", what);
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_store_extend_frames(alloti_store *store, alloti_value *cell,
                                        const uint32_t *frames, uint32_t count)
{
    if (*cell == alloti_value_make(ALLOTI_VALUE_NEW_LIST, 0) && count < STACK_AT_ONCE) {
        uint32_t id = 0;
        const allot_status status = alloti_builder_intern_stack(store->builder, frames, count, &id);
        if (status == ALLOT_STATUS_OK) {
            *cell = alloti_value_make(ALLOTI_VALUE_STACK, id);
        }
        return status;
    }
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        const alloti_value frame = alloti_value_make(ALLOTI_VALUE_FRAME, frames[i]);
        status = alloti_store_extend_list(store, cell, &frame, 1);
    }
    return status;
}

static bool all_frames(const alloti_value *items, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (alloti_value_get_type(items[i]) != ALLOTI_VALUE_FRAME) {
            return false;
        }
    }
    return count != 0;
}

/* Make a stack of items that are all frames. */
static allot_status stack_begin(alloti_store *store, alloti_value *cell, const alloti_value *items,
                                uint64_t count)
{
    if (count >= ALLOT_NONE) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "a stack has too many frames");
    }
    allot_status status = frames_reserve(store, count);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    for (uint64_t i = 0; i < count; i++) {
        store->frames[i] = (uint32_t)alloti_value_payload(items[i]);
    }
    uint32_t id = 0;
    status = alloti_builder_intern_stack(store->builder, store->frames, (uint32_t)count, &id);
    if (status == ALLOT_STATUS_OK) {
        *cell = alloti_value_make(ALLOTI_VALUE_STACK, id);
    }
    return status;
}

allot_status alloti_store_extend_list(alloti_store *store, alloti_value *cell,
                                      const alloti_value *items, uint64_t count)
{
    allot_status status = check_growing(*cell, "a list");
    if (status != ALLOT_STATUS_OK || count == 0) {
        return status;
    }
    switch (alloti_value_get_type(*cell)) {
    case ALLOTI_VALUE_NEW_LIST:
        return count < STACK_AT_ONCE && all_frames(items, count)
                   ? stack_begin(store, cell, items, count)
                   : object_begin(store, ALLOTI_VALUE_LIST, cell, items, count);
    case ALLOTI_VALUE_STACK:
        status = stack_to_object(store, cell);
        break;
    case ALLOTI_VALUE_LIST:
        break;
    default:
        return alloti_fail(ALLOT_STATUS_FORMAT, "items for %s, which is no list",
                           alloti_value_describe(*cell));
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return object_append(&store->objects[alloti_value_payload(*cell)], items, count);
}

allot_status alloti_store_extend_dict(alloti_store *store, alloti_value *cell,
                                      const alloti_value *pairs, uint64_t count)
{
    allot_status status = check_growing(*cell, "a dict");
    if (status != ALLOT_STATUS_OK || count == 0) {
        return status;
    }
    switch (alloti_value_get_type(*cell)) {
    case ALLOTI_VALUE_NEW_DICT:
        if (count > 1) { /* A single pair may be followed by more, one by one. */
            alloti_value record = 0;
            status = alloti_torch_record_make(store, pairs, count, &record);
            if (status != ALLOT_STATUS_OK || record != 0) {
                *cell = record;
                return status;
            }
        }
        return object_begin(store, ALLOTI_VALUE_DICT, cell, pairs, 2 * count);
    case ALLOTI_VALUE_DICT:
        return object_append(&store->objects[alloti_value_payload(*cell)], pairs, 2 * count);
    case ALLOTI_VALUE_FRAME:
    case ALLOTI_VALUE_EVENT:
    case ALLOTI_VALUE_BLOCK:
    case ALLOTI_VALUE_SEGMENT:
        return alloti_fail(ALLOT_STATUS_FORMAT, "%s is changed after it was complete",
                           alloti_value_describe(*cell));
    default:
        return alloti_fail(ALLOT_STATUS_FORMAT, "keys for %s, which is no dict",
                           alloti_value_describe(*cell));
    }
}

allot_status alloti_store_tuple(alloti_store *store, const alloti_value *items, uint64_t count,
                                alloti_value *out)
{
    uint64_t first = 0;
    uint64_t second = 0;
    if (count == 2 && alloti_torch_is_u64(store, items[0], &first) &&
        alloti_torch_is_u64(store, items[1], &second)) {
        uint32_t id = 0;
        const allot_status status = alloti_torch_make_pool(store, first, second, &id);
        if (status == ALLOT_STATUS_OK) {
            *out = alloti_value_make(ALLOTI_VALUE_POOL, id);
        }
        return status;
    }
    alloti_value cell = alloti_value_make(ALLOTI_VALUE_NEW_LIST, 0);
    const allot_status status = alloti_store_extend_list(store, &cell, items, count);
    if (status == ALLOT_STATUS_OK) {
        *out = cell | ALLOTI_VALUE_USED;
    }
    return status;
}

allot_status alloti_store_use(alloti_store *store, alloti_value *cell)
{
    if (!alloti_value_is_container(*cell) || (*cell & ALLOTI_VALUE_USED) != 0) {
        return ALLOT_STATUS_OK;
    }
    const alloti_value_type type = alloti_value_get_type(*cell);
    if (type == ALLOTI_VALUE_DICT || type == ALLOTI_VALUE_LIST) {
        const uint64_t index = alloti_value_payload(*cell);
        const torch_object object = store->objects[index];
        alloti_value shorter = 0;
        allot_status status = ALLOT_STATUS_OK;
        if (type == ALLOTI_VALUE_DICT) {
            status = alloti_torch_record_make(store, object.items, object.count / 2, &shorter);
        } else if (all_frames(object.items, object.count)) {
            status = stack_begin(store, &shorter, object.items, object.count);
        }
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        if (shorter != 0) {
            object_end(store, index);
            *cell = shorter;
        }
    }
    if (alloti_value_is_container(*cell)) {
        *cell |= ALLOTI_VALUE_USED;
    }
    return ALLOT_STATUS_OK;
}
