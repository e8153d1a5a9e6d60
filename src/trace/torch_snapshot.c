/* SPDX-License-Identifier: MIT */
/*
 * The outermost dict or list of a snapshot: which list of trace entries belongs to which device,
 * which segments there are, settings, annotations, categories.
 *
 * Each list and dict is taken once. A file that names one twice would have its content multiplied,
 * which PyTorch never writes.
 */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "core/size_math.h"
#include "core/status.h"
#include "trace/torch_records.h"
#include "trace/trace.h"

enum { SETTING_KEY_MAX = 1024, SETTING_DEPTH_MAX = 8 };

allot_category alloti_torch_parse_category(const char *text)
{
#define CATEGORY_PARSE(name, value, spelling)                                                      \
    if (strcasecmp(text, spelling) == 0) {                                                         \
        return ALLOT_CATEGORY_##name;                                                              \
    }
    ALLOT_CATEGORY_LIST(CATEGORY_PARSE)
#undef CATEGORY_PARSE
    return ALLOT_CATEGORY_UNKNOWN;
}

/* Items of a list that is read for the first time. */
static allot_status take_list(alloti_store *store, torch_field field, alloti_value value,
                              const alloti_value **items, uint64_t *count)
{
    const allot_status status = alloti_torch_get_list(store, field, value, items, count);
    if (status != ALLOT_STATUS_OK || *count == 0) {
        return status;
    }
    torch_object *const object = &store->objects[alloti_value_payload(value)];
    if (object->was_read) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "\"%s\" of %s is a list that stands elsewhere too",
                           alloti_torch_word_text(field.key), field.owner);
    }
    object->was_read = true;
    return ALLOT_STATUS_OK;
}

static allot_status check_item(torch_field field, alloti_value item, alloti_value_type type,
                               const char *wanted)
{
    return alloti_value_get_type(item) == type ? ALLOT_STATUS_OK
                                               : alloti_torch_fail_type(field, item, wanted);
}

/* Events of one device, in runs of rows that follow each other; mostly there is one run. */
static allot_status finish_trace(alloti_store *store, torch_field field, uint32_t device,
                                 alloti_value trace)
{
    const alloti_value *items = NULL;
    uint64_t count = 0;
    allot_status status = take_list(store, field, trace, &items, &count);
    for (uint64_t begin = 0; begin < count && status == ALLOT_STATUS_OK;) {
        uint64_t end = begin;
        uint64_t first = 0;
        do {
            status = check_item(field, items[end], ALLOTI_VALUE_EVENT, "a list of trace entries");
            first = end == begin ? alloti_value_payload(items[end]) : first;
            end++;
        } while (status == ALLOT_STATUS_OK && end < count &&
                 items[end] == alloti_value_make(ALLOTI_VALUE_EVENT, first + (end - begin)));
        if (status == ALLOT_STATUS_OK) {
            status = alloti_builder_take_loose_events(store->builder, device, (uint32_t)first,
                                                      (uint32_t)(end - begin));
        }
        begin = end;
    }
    return status;
}

static allot_status finish_traces(alloti_store *store, torch_word key, allot_memory_kind memory,
                                  alloti_value traces)
{
    const torch_field field = {"the snapshot", key};
    if (traces == 0) {
        return ALLOT_STATUS_OK;
    }
    const alloti_value *items = NULL;
    uint64_t count = 0;
    allot_status status = take_list(store, field, traces, &items, &count);
    if (status == ALLOT_STATUS_OK && count > ALLOTI_DEVICES_MAX) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "\"%s\" has %" PRIu64 " devices, more than %d",
                           alloti_torch_word_text(key), count, ALLOTI_DEVICES_MAX);
    }
    /* Host traces may be one list of entries. */
    if (status == ALLOT_STATUS_OK && count != 0 &&
        alloti_value_get_type(items[0]) == ALLOTI_VALUE_EVENT) {
        store->objects[alloti_value_payload(traces)].was_read = false;
        items = &traces;
        count = 1;
    }
    for (uint64_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        uint32_t device = 0;
        status = alloti_builder_device(store->builder, memory, (uint32_t)i, &device);
        if (status == ALLOT_STATUS_OK) {
            status = finish_trace(store, field, device, items[i]);
        }
    }
    return status;
}

/* Sums that 2.0 and host segments leave out. */
static void segment_complete(torch_segment *record, const allot_block *block)
{
    if (!record->has_requested && block->state != ALLOT_BLOCK_INACTIVE) {
        record->segment.requested_size += block->requested_size;
    }
}

static allot_status finish_blocks(alloti_store *store, torch_segment *record,
                                  const alloti_value *items, uint64_t count)
{
    const torch_field field = {"a segment", WORD_BLOCKS};
    uint64_t address = record->segment.address;
    for (uint64_t i = 0; i < count; i++) {
        allot_status status = check_item(field, items[i], ALLOTI_VALUE_BLOCK, "a list of blocks");
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        allot_block block = store->blocks[alloti_value_payload(items[i])];
        if (block.address == TORCH_NO_ADDRESS) {
            block.address = address;
        }
        if (!alloti_add(block.address, block.size, &address)) {
            return alloti_fail(ALLOT_STATUS_FORMAT,
                               "a block of %" PRIu64 " bytes at 0x%" PRIx64
                               " does not fit the address space",
                               block.size, block.address);
        }
        status = alloti_builder_add_block(store->builder, &block);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

static allot_status finish_segment(alloti_store *store, allot_memory_kind memory,
                                   torch_segment *record)
{
    const torch_field field = {"a segment", WORD_BLOCKS};
    const alloti_value *items = NULL;
    uint64_t count = 0;
    allot_status status = take_list(store, field, record->blocks, &items, &count);
    if (status == ALLOT_STATUS_OK && record->segment.device >= ALLOTI_DEVICES_MAX) {
        status =
            alloti_fail(ALLOT_STATUS_FORMAT, "\"device\" of a segment is %" PRIu32 ", more than %d",
                        record->segment.device, ALLOTI_DEVICES_MAX - 1);
    }
    allot_segment segment = record->segment;
    uint64_t end = 0;
    if (status == ALLOT_STATUS_OK && !alloti_add(segment.address, segment.total_size, &end)) {
        status = alloti_fail(ALLOT_STATUS_FORMAT,
                             "a segment of %" PRIu64 " bytes at 0x%" PRIx64
                             " does not fit the address space",
                             segment.total_size, segment.address);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_device(store->builder, memory, segment.device, &segment.device);
    }
    for (uint64_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        status = check_item(field, items[i], ALLOTI_VALUE_BLOCK, "a list of blocks");
        if (status == ALLOT_STATUS_OK) {
            segment_complete(record, &store->blocks[alloti_value_payload(items[i])]);
        }
    }
    segment.requested_size = record->segment.requested_size;
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_add_segment(store->builder, &segment);
    }
    return status == ALLOT_STATUS_OK ? finish_blocks(store, record, items, count) : status;
}

static allot_status finish_segments(alloti_store *store, torch_word key, allot_memory_kind memory,
                                    alloti_value segments)
{
    const torch_field field = {"the snapshot", key};
    if (segments == 0) {
        return ALLOT_STATUS_OK;
    }
    const alloti_value *items = NULL;
    uint64_t count = 0;
    allot_status status = take_list(store, field, segments, &items, &count);
    for (uint64_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        status = check_item(field, items[i], ALLOTI_VALUE_SEGMENT, "a list of segments");
        if (status == ALLOT_STATUS_OK) {
            status =
                finish_segment(store, memory, &store->segments[alloti_value_payload(items[i])]);
        }
    }
    return status;
}

/* The key of a setting so far: "roundup_power2_divisions." */
typedef struct setting_path {
    char text[SETTING_KEY_MAX];
    size_t length;
    unsigned depth;
} setting_path;

static allot_status finish_settings(alloti_store *store, setting_path *path, alloti_value value);

/* "Unlimited" is sometimes the largest number of 64 bits: the nearest that a setting can hold. */
static int64_t wide_integer(const alloti_store *store, alloti_value value)
{
    const uint64_t payload = alloti_value_payload(value);
    const uint64_t magnitude = store->wide[payload >> 1];
    if ((payload & 1) != 0) {
        return magnitude > INT64_MAX ? INT64_MIN : -(int64_t)magnitude;
    }
    return magnitude > INT64_MAX ? INT64_MAX : (int64_t)magnitude;
}

static allot_status finish_setting(alloti_store *store, const setting_path *path,
                                   alloti_value value)
{
    allot_setting setting = {.string = ALLOT_NONE};
    switch (alloti_value_get_type(value)) {
    case ALLOTI_VALUE_BOOL:
        setting.type = ALLOT_SETTING_BOOL;
        setting.integer = (int64_t)alloti_value_payload(value);
        break;
    case ALLOTI_VALUE_INT:
        setting.type = ALLOT_SETTING_INT;
        setting.integer = alloti_value_integer(value);
        break;
    case ALLOTI_VALUE_WIDE:
        setting.type = ALLOT_SETTING_INT;
        setting.integer = wide_integer(store, value);
        break;
    case ALLOTI_VALUE_FLOAT:
        setting.type = ALLOT_SETTING_FLOAT;
        setting.number = store->floats[alloti_value_payload(value)];
        break;
    case ALLOTI_VALUE_STRING:
        setting.type = ALLOT_SETTING_STRING;
        setting.string = (uint32_t)alloti_value_payload(value);
        break;
    case ALLOTI_VALUE_NONE:
        setting.type = ALLOT_SETTING_NONE;
        break;
    default:
        return ALLOT_STATUS_OK; /* Lists: no setting has one. */
    }
    const allot_status status =
        alloti_builder_intern_string(store->builder, path->text, path->length, &setting.key);
    return status == ALLOT_STATUS_OK ? alloti_builder_add_setting(store->builder, &setting)
                                     : status;
}

static allot_status finish_setting_pair(alloti_store *store, setting_path *path, alloti_value key,
                                        alloti_value value)
{
    if (alloti_value_get_type(key) != ALLOTI_VALUE_STRING) {
        return ALLOT_STATUS_OK;
    }
    const char *const text =
        alloti_builder_get_string(store->builder, (uint32_t)alloti_value_payload(key));
    const size_t length = strlen(text);
    const size_t before = path->length;
    if (length + 2 > sizeof path->text - before) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "a key in \"allocator_settings\" is too long");
    }
    memcpy(path->text + before, text, length + 1);
    path->length += length;
    const alloti_value_type type = alloti_value_get_type(value);
    allot_status status = ALLOT_STATUS_OK;
    if (type == ALLOTI_VALUE_DICT) {
        path->text[path->length++] = '.';
        path->depth++;
        status = finish_settings(store, path, value);
        path->depth--;
    } else {
        status = finish_setting(store, path, value);
    }
    path->length = before;
    return status;
}

static allot_status finish_settings(alloti_store *store, setting_path *path, alloti_value value)
{
    const torch_field field = {"the snapshot", WORD_ALLOCATOR_SETTINGS};
    if (value == 0 || alloti_value_get_type(value) == ALLOTI_VALUE_NEW_DICT) {
        return ALLOT_STATUS_OK;
    }
    if (alloti_value_get_type(value) != ALLOTI_VALUE_DICT) {
        return alloti_torch_fail_type(field, value, "a dict");
    }
    torch_object *const object = &store->objects[alloti_value_payload(value)];
    if (object->was_read || path->depth > SETTING_DEPTH_MAX) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "\"allocator_settings\" has %s",
                           object->was_read ? "a dict that stands elsewhere too"
                                            : "too many levels");
    }
    object->was_read = true;
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 0; i < object->count && status == ALLOT_STATUS_OK; i += 2) {
        status = finish_setting_pair(store, path, object->items[i], object->items[i + 1]);
    }
    return status;
}

/* START, END and a name; what has another stage is left out. */
static allot_status finish_annotation(alloti_store *store, alloti_value value)
{
    const char *const owner = "an annotation";
    const torch_object *const object = &store->objects[alloti_value_payload(value)];
    allot_annotation annotation = {
        .name = ALLOT_NONE, .device = ALLOT_NONE, .time_ns = ALLOT_TIME_NONE};
    uint64_t device = 0;
    uint32_t stage = ALLOT_NONE;
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 0; i < object->count && status == ALLOT_STATUS_OK; i += 2) {
        const alloti_value item = object->items[i + 1];
        const torch_field field = {owner, (torch_word)alloti_value_payload(object->items[i])};
        switch (alloti_value_get_type(object->items[i]) == ALLOTI_VALUE_STRING ? field.key
                                                                               : WORD_COUNT) {
        case WORD_NAME:
            status = alloti_torch_get_string(field, item, &annotation.name);
            break;
        case WORD_STAGE:
            status = alloti_torch_get_string(field, item, &stage);
            break;
        case WORD_TIME_US:
            status = alloti_torch_get_time(store, field, item, &annotation.time_ns);
            break;
        case WORD_DEVICE: /* -1 stands for none. */
            if (alloti_torch_is_u64(store, item, &device) && device < ALLOTI_DEVICES_MAX) {
                status = alloti_builder_device(store->builder, ALLOT_MEMORY_DEVICE,
                                               (uint32_t)device, &annotation.device);
            }
            break;
        default:
            break;
        }
    }
    if (status != ALLOT_STATUS_OK || (stage != WORD_START && stage != WORD_END)) {
        return status;
    }
    annotation.is_start = stage == WORD_START;
    return alloti_builder_add_annotation(store->builder, &annotation);
}

static allot_status finish_annotations(alloti_store *store, alloti_value annotations)
{
    const torch_field field = {"the snapshot", WORD_EXTERNAL_ANNOTATIONS};
    if (annotations == 0) {
        return ALLOT_STATUS_OK;
    }
    const alloti_value *items = NULL;
    uint64_t count = 0;
    allot_status status = take_list(store, field, annotations, &items, &count);
    for (uint64_t i = 0; i < count && status == ALLOT_STATUS_OK; i++) {
        status = check_item(field, items[i], ALLOTI_VALUE_DICT, "a list of dicts");
        if (status == ALLOT_STATUS_OK) {
            status = finish_annotation(store, items[i]);
        }
    }
    return status;
}

/* Categories by number get their meaning from the list of names. */
static allot_status finish_categories(alloti_store *store, alloti_value categories)
{
    uint8_t map[UINT8_MAX + 1] = {0};
    for (unsigned i = 0; i < TORCH_CATEGORY_INDEX; i++) {
        map[i] = i < ALLOT_CATEGORY_COUNT ? (uint8_t)i : ALLOT_CATEGORY_UNKNOWN;
    }
    if (categories == 0) {
        alloti_builder_map_categories(store->builder, map);
        return ALLOT_STATUS_OK;
    }
    const torch_field field = {"the snapshot", WORD_CATEGORIES};
    const alloti_value *items = NULL;
    uint64_t count = 0;
    const allot_status status = alloti_torch_get_list(store, field, categories, &items, &count);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    for (uint64_t i = 0; i < count && i < UINT8_MAX - TORCH_CATEGORY_INDEX; i++) {
        if (alloti_value_get_type(items[i]) == ALLOTI_VALUE_STRING) {
            const uint32_t id = (uint32_t)alloti_value_payload(items[i]);
            map[TORCH_CATEGORY_INDEX + i] =
                (uint8_t)alloti_torch_parse_category(alloti_builder_get_string(store->builder, id));
        }
    }
    if (count != 0) {
        alloti_builder_set_trait(store->builder, ALLOT_TRACE_HAS_CATEGORIES);
    }
    alloti_builder_map_categories(store->builder, map);
    return ALLOT_STATUS_OK;
}

/* The parts of the outermost dict, 0 where there is none. */
typedef struct parts {
    alloti_value by_key[WORD_KEY_COUNT];
} parts;

static allot_status parts_get(const alloti_store *store, alloti_value root, parts *out)
{
    switch (alloti_value_get_type(root)) {
    case ALLOTI_VALUE_LIST:
    case ALLOTI_VALUE_NEW_LIST:
        out->by_key[WORD_SEGMENTS] = root;
        return ALLOT_STATUS_OK;
    case ALLOTI_VALUE_NEW_DICT:
        return ALLOT_STATUS_OK;
    case ALLOTI_VALUE_DICT:
        break;
    default:
        return alloti_fail(ALLOT_STATUS_FORMAT,
                           "holds %s, not the dict or list of a memory snapshot",
                           alloti_value_describe(root));
    }
    const torch_object *const object = &store->objects[alloti_value_payload(root)];
    for (uint64_t i = 0; i < object->count; i += 2) {
        const uint64_t key = alloti_value_payload(object->items[i]);
        if (alloti_value_get_type(object->items[i]) == ALLOTI_VALUE_STRING &&
            key < WORD_KEY_COUNT) {
            out->by_key[key] = object->items[i + 1];
        }
    }
    return ALLOT_STATUS_OK;
}

allot_status alloti_store_finish(alloti_store *store, alloti_value root)
{
    parts p = {{0}};
    allot_status status = parts_get(store, root, &p);
    const alloti_value *const part = p.by_key;
    if (status == ALLOT_STATUS_OK) {
        status =
            finish_traces(store, WORD_DEVICE_TRACES, ALLOT_MEMORY_DEVICE, part[WORD_DEVICE_TRACES]);
    }
    if (status == ALLOT_STATUS_OK) {
        status = finish_segments(store, WORD_SEGMENTS, ALLOT_MEMORY_DEVICE, part[WORD_SEGMENTS]);
    }
    if (status == ALLOT_STATUS_OK) {
        status =
            finish_traces(store, WORD_HOST_TRACES, ALLOT_MEMORY_PINNED, part[WORD_HOST_TRACES]);
    }
    if (status == ALLOT_STATUS_OK) {
        status = finish_segments(store, WORD_HOST_SEGMENTS, ALLOT_MEMORY_PINNED,
                                 part[WORD_HOST_SEGMENTS]);
    }
    if (status == ALLOT_STATUS_OK) {
        setting_path path = {.length = 0};
        status = finish_settings(store, &path, part[WORD_ALLOCATOR_SETTINGS]);
    }
    if (status == ALLOT_STATUS_OK) {
        status = finish_annotations(store, part[WORD_EXTERNAL_ANNOTATIONS]);
    }
    if (status == ALLOT_STATUS_OK) {
        status = finish_categories(store, part[WORD_CATEGORIES]);
    }
    if (status == ALLOT_STATUS_OK && alloti_builder_is_empty(store->builder)) {
        status = alloti_fail(ALLOT_STATUS_FORMAT,
                             "no segments and no trace entries: not a memory snapshot, or one of "
                             "a process that never used the GPU");
    }
    if (status == ALLOT_STATUS_OK) {
        alloti_builder_set_trait(store->builder, ALLOT_TRACE_HAS_REQUESTED);
        alloti_builder_set_trait(store->builder, ALLOT_TRACE_HAS_ADDRESSES);
    }
    return status;
}
