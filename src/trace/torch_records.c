/* SPDX-License-Identifier: MIT */
/*
 * Dicts of a snapshot that have a meaning. Which record a dict is follows from the set of its keys,
 * not from where it stands, so the order of keys and of parts of the file does not matter. Keys
 * that are not known are ignored.
 */
#include "trace/torch_records.h"

#include <string.h>

#include "core/array.h"
#include "core/status.h"

#define KEY_BIT(key) (UINT64_C(1) << WORD_##key)

static allot_status make_frame(alloti_store *store, const alloti_value *pairs, uint64_t count,
                               alloti_value *out)
{
    allot_frame frame = {.name = ALLOT_NONE, .filename = ALLOT_NONE, .fx = ALLOT_NONE};
    allot_frame_fx fx = {ALLOT_NONE, ALLOT_NONE, ALLOT_NONE, ALLOT_NONE};
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 0; i < 2 * count && status == ALLOT_STATUS_OK; i += 2) {
        const torch_field field = {"a frame", (torch_word)alloti_value_payload(pairs[i])};
        const alloti_value value = pairs[i + 1];
        uint64_t line = 0;
        switch (field.key) {
        case WORD_NAME:
            status = alloti_torch_get_string(field, value, &frame.name);
            break;
        case WORD_FILENAME:
            status = alloti_torch_get_string(field, value, &frame.filename);
            break;
        case WORD_LINE:
            status = alloti_torch_get_u64(store, field, value, &line);
            if (status == ALLOT_STATUS_OK && line > UINT32_MAX) {
                status = alloti_fail(ALLOT_STATUS_FORMAT, "\"line\" of a frame is out of range");
            }
            frame.line = (uint32_t)line;
            break;
        case WORD_FX_NODE_OP:
            status = alloti_torch_get_string(field, value, &fx.node_op);
            break;
        case WORD_FX_NODE_NAME:
            status = alloti_torch_get_string(field, value, &fx.node_name);
            break;
        case WORD_FX_NODE_TARGET:
            status = alloti_torch_get_string(field, value, &fx.node_target);
            break;
        case WORD_FX_ORIGINAL_TRACE:
            status = alloti_torch_get_string(field, value, &fx.original_trace);
            break;
        default:
            break;
        }
    }
    if (status == ALLOT_STATUS_OK &&
        (fx.node_op & fx.node_name & fx.node_target & fx.original_trace) != ALLOT_NONE) {
        status = alloti_builder_intern_fx(store->builder, &fx, &frame.fx);
    }
    uint32_t id = 0;
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_intern_frame(store->builder, &frame, &id);
    }
    if (status == ALLOT_STATUS_OK) {
        *out = alloti_value_make(ALLOTI_VALUE_FRAME, id);
    }
    return status;
}

/* The text is a stranger's: what could steer a terminal is not shown. */
static allot_status fail_action(const char *text)
{
    char shown[64];
    const size_t length = strnlen(text, sizeof shown - 1);
    for (size_t i = 0; i < length; i++) {
        shown[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    }
    shown[length] = '\0';
    return alloti_fail(ALLOT_STATUS_FORMAT, "unknown action \"%s\"", shown);
}

static allot_status get_event_kind(const alloti_store *store, alloti_value value,
                                   allot_event_kind *out)
{
    const torch_field field = {"a trace entry", WORD_ACTION};
    if (alloti_value_get_type(value) != ALLOTI_VALUE_STRING) {
        return alloti_torch_fail_type(field, value, "a string");
    }
    const uint64_t id = alloti_value_payload(value);
    if (id < WORD_EVENT_ALLOC || id >= WORD_COUNT) {
        return fail_action(alloti_builder_get_string(store->builder, (uint32_t)id));
    }
    *out = (allot_event_kind)(id - WORD_EVENT_ALLOC);
    return ALLOT_STATUS_OK;
}

static allot_status set_event_field(alloti_store *store, alloti_event *event, torch_field field,
                                    alloti_value value)
{
    uint8_t category = 0;
    allot_status status = ALLOT_STATUS_OK;
    switch (field.key) {
    case WORD_ACTION:
        return get_event_kind(store, value, &event->kind);
    case WORD_ADDR:
    case WORD_DEVICE_FREE:
        return alloti_torch_get_u64(store, field, value, &event->addr);
    case WORD_SIZE:
        return alloti_torch_get_u64(store, field, value, &event->size);
    case WORD_STREAM:
        return alloti_torch_get_stream(store, field, value, &event->stream);
    case WORD_TIME_US:
        return alloti_torch_get_time(store, field, value, &event->time_ns);
    case WORD_COMPILE_CONTEXT:
        return alloti_torch_get_string(field, value, &event->context);
    case WORD_USER_METADATA:
        return alloti_torch_get_string(field, value, &event->metadata);
    case WORD_POOL_ID:
        return alloti_torch_get_pool(store, field, value, &event->pool);
    case WORD_FRAMES:
        return alloti_torch_get_stack(store, field, value, &event->stack);
    case WORD_CATEGORY:
        status = alloti_torch_get_category(store, field, value, &category);
        event->category = (allot_category)category;
        return status;
    default:
        return ALLOT_STATUS_OK;
    }
}

static allot_status check_event(alloti_store *store, alloti_event *event, uint64_t keys)
{
    const bool is_mark = event->kind == ALLOT_EVENT_SNAPSHOT ||
                         event->kind == ALLOT_EVENT_USER_DEFINED ||
                         event->kind == ALLOT_EVENT_WORKSPACE_SNAPSHOT;
    const uint64_t place =
        event->kind == ALLOT_EVENT_OOM ? KEY_BIT(DEVICE_FREE) | KEY_BIT(ADDR) : KEY_BIT(ADDR);
    if (!is_mark && (keys & place) == 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "a trace entry \"%s\" has no \"%s\"",
                           allot_event_kind_name(event->kind),
                           event->kind == ALLOT_EVENT_OOM ? "device_free" : "addr");
    }
    if (!is_mark && (keys & KEY_BIT(SIZE)) == 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "a trace entry \"%s\" has no \"size\"",
                           allot_event_kind_name(event->kind));
    }
    if ((keys & KEY_BIT(STREAM)) == 0) {
        const torch_field field = {"a trace entry", WORD_STREAM};
        return alloti_torch_get_stream(store, field, alloti_value_make(ALLOTI_VALUE_INT, 0),
                                       &event->stream);
    }
    return ALLOT_STATUS_OK;
}

static allot_status make_event(alloti_store *store, const alloti_value *pairs, uint64_t count,
                               uint64_t keys, alloti_value *out)
{
    alloti_event event = ALLOTI_EVENT_INIT;
    for (uint64_t i = 0; i < 2 * count; i += 2) {
        const torch_field field = {"a trace entry", (torch_word)alloti_value_payload(pairs[i])};
        const allot_status status = set_event_field(store, &event, field, pairs[i + 1]);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    uint32_t row = 0;
    allot_status status = check_event(store, &event, keys);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_builder_add_loose_event(store->builder, &event, &row);
    }
    if (status == ALLOT_STATUS_OK) {
        *out = alloti_value_make(ALLOTI_VALUE_EVENT, row);
    }
    return status;
}

static allot_status get_block_state(alloti_value value, uint8_t *out)
{
    const torch_field field = {"a block", WORD_STATE};
    if (alloti_value_get_type(value) != ALLOTI_VALUE_STRING) {
        return alloti_torch_fail_type(field, value, "a string");
    }
    switch (alloti_value_payload(value)) {
    case WORD_ACTIVE_ALLOCATED:
        *out = ALLOT_BLOCK_ALLOCATED;
        return ALLOT_STATUS_OK;
    case WORD_ACTIVE_PENDING_FREE:
    case WORD_ACTIVE_AWAITING_FREE:
        *out = ALLOT_BLOCK_PENDING_FREE;
        return ALLOT_STATUS_OK;
    case WORD_INACTIVE:
        *out = ALLOT_BLOCK_INACTIVE;
        return ALLOT_STATUS_OK;
    default:
        return alloti_fail(ALLOT_STATUS_FORMAT, "\"state\" of a block is none of active_allocated, "
                                                "active_pending_free, active_awaiting_free, "
                                                "inactive");
    }
}

/* PyTorch 2.0 keeps size and stack in a list of what lay in the block; the first is the latest. */
static allot_status set_block_history(alloti_store *store, allot_block *block, alloti_value value)
{
    const torch_field field = {"a block", WORD_HISTORY};
    const alloti_value *entries = NULL;
    uint64_t entry_count = 0;
    allot_status status = alloti_torch_get_list(store, field, value, &entries, &entry_count);
    if (status != ALLOT_STATUS_OK || entry_count == 0) {
        return status;
    }
    if (alloti_value_get_type(entries[0]) != ALLOTI_VALUE_DICT) {
        return alloti_torch_fail_type(field, entries[0], "a list of dicts");
    }
    const torch_object *const entry = &store->objects[alloti_value_payload(entries[0])];
    for (uint64_t i = 0; i < entry->count && status == ALLOT_STATUS_OK; i += 2) {
        const alloti_value key = entry->items[i];
        if (key == alloti_value_make(ALLOTI_VALUE_STRING, WORD_REAL_SIZE)) {
            status = alloti_torch_get_u64(store, (torch_field){"a block's history", WORD_REAL_SIZE},
                                          entry->items[i + 1], &block->requested_size);
        } else if (key == alloti_value_make(ALLOTI_VALUE_STRING, WORD_FRAMES)) {
            status = alloti_torch_get_stack(store, (torch_field){"a block's history", WORD_FRAMES},
                                            entry->items[i + 1], &block->stack);
        }
    }
    return status;
}

static allot_status set_block_field(alloti_store *store, allot_block *block, torch_field field,
                                    alloti_value value)
{
    switch (field.key) {
    case WORD_SIZE:
        return alloti_torch_get_u64(store, field, value, &block->size);
    case WORD_REQUESTED_SIZE:
        return alloti_torch_get_u64(store, field, value, &block->requested_size);
    case WORD_ADDRESS:
        return alloti_torch_get_u64(store, field, value, &block->address);
    case WORD_STATE:
        return get_block_state(value, &block->state);
    case WORD_FRAMES:
        return alloti_torch_get_stack(store, field, value, &block->stack);
    case WORD_COMPILE_CONTEXT:
        return alloti_torch_get_string(field, value, &block->context);
    case WORD_USER_METADATA:
        return alloti_torch_get_string(field, value, &block->metadata);
    case WORD_CATEGORY:
        return alloti_torch_get_category(store, field, value, &block->category);
    case WORD_HISTORY:
        return set_block_history(store, block, value);
    default:
        return ALLOT_STATUS_OK;
    }
}

static allot_status make_block(alloti_store *store, const alloti_value *pairs, uint64_t count,
                               uint64_t keys, alloti_value *out)
{
    allot_block block = {.address = TORCH_NO_ADDRESS,
                         .stack = ALLOT_NONE,
                         .context = ALLOT_NONE,
                         .metadata = ALLOT_NONE};
    for (uint64_t i = 0; i < 2 * count; i += 2) {
        const torch_field field = {"a block", (torch_word)alloti_value_payload(pairs[i])};
        const allot_status status = set_block_field(store, &block, field, pairs[i + 1]);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    if ((keys & (KEY_BIT(REQUESTED_SIZE) | KEY_BIT(HISTORY))) == 0) {
        block.requested_size = block.size;
    }
    const allot_status status = alloti_array_reserve(&store->blocks, &store->block_capacity,
                                                     store->block_count + 1, sizeof *store->blocks);
    if (status == ALLOT_STATUS_OK) {
        *out = alloti_value_make(ALLOTI_VALUE_BLOCK, store->block_count);
        store->blocks[store->block_count++] = block;
    }
    return status;
}

static allot_status set_segment_type(allot_segment *segment, torch_field field, alloti_value value)
{
    if (alloti_value_get_type(value) != ALLOTI_VALUE_STRING) {
        return alloti_torch_fail_type(field, value, "a string");
    }
    segment->is_large = alloti_value_payload(value) != WORD_SMALL;
    return ALLOT_STATUS_OK;
}

static allot_status set_segment_field(alloti_store *store, torch_segment *record, torch_field field,
                                      alloti_value value)
{
    allot_segment *const segment = &record->segment;
    uint64_t device = 0;
    allot_status status = ALLOT_STATUS_OK;
    switch (field.key) {
    case WORD_DEVICE:
        status = alloti_torch_get_u64(store, field, value, &device);
        segment->device = device < UINT32_MAX ? (uint32_t)device : UINT32_MAX;
        return status;
    case WORD_ADDRESS:
        return alloti_torch_get_u64(store, field, value, &segment->address);
    case WORD_TOTAL_SIZE:
        return alloti_torch_get_u64(store, field, value, &segment->total_size);
    case WORD_ALLOCATED_SIZE:
        return alloti_torch_get_u64(store, field, value, &segment->allocated_size);
    case WORD_ACTIVE_SIZE:
        return alloti_torch_get_u64(store, field, value, &segment->active_size);
    case WORD_REQUESTED_SIZE:
        return alloti_torch_get_u64(store, field, value, &segment->requested_size);
    case WORD_STREAM:
        return alloti_torch_get_stream(store, field, value, &segment->stream);
    case WORD_SEGMENT_TYPE:
        return set_segment_type(segment, field, value);
    case WORD_SEGMENT_POOL_ID:
        return alloti_torch_get_pool(store, field, value, &segment->pool);
    case WORD_IS_EXPANDABLE:
        if (alloti_value_get_type(value) != ALLOTI_VALUE_BOOL) {
            return alloti_torch_fail_type(field, value, "a bool");
        }
        segment->is_expandable = alloti_value_payload(value) != 0;
        return ALLOT_STATUS_OK;
    case WORD_FRAMES:
        return alloti_torch_get_stack(store, field, value, &segment->stack);
    case WORD_BLOCKS:
        record->blocks = value;
        return ALLOT_STATUS_OK;
    default:
        return ALLOT_STATUS_OK;
    }
}

static allot_status make_segment(alloti_store *store, const alloti_value *pairs, uint64_t count,
                                 uint64_t keys, alloti_value *out)
{
    torch_segment record = {.segment = {.pool = ALLOT_NONE, .stack = ALLOT_NONE, .is_large = true},
                            .has_requested = (keys & KEY_BIT(REQUESTED_SIZE)) != 0};
    if ((keys & KEY_BIT(ADDRESS)) == 0 || (keys & KEY_BIT(TOTAL_SIZE)) == 0) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "a segment has no \"%s\"",
                           (keys & KEY_BIT(ADDRESS)) == 0 ? "address" : "total_size");
    }
    allot_status status = ALLOT_STATUS_OK;
    if ((keys & KEY_BIT(STREAM)) == 0) {
        status =
            alloti_torch_get_stream(store, (torch_field){"a segment", WORD_STREAM},
                                    alloti_value_make(ALLOTI_VALUE_INT, 0), &record.segment.stream);
    }
    for (uint64_t i = 0; i < 2 * count && status == ALLOT_STATUS_OK; i += 2) {
        const torch_field field = {"a segment", (torch_word)alloti_value_payload(pairs[i])};
        status = set_segment_field(store, &record, field, pairs[i + 1]);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&store->segments, &store->segment_capacity,
                                      store->segment_count + 1, sizeof *store->segments);
    }
    if (status == ALLOT_STATUS_OK) {
        *out = alloti_value_make(ALLOTI_VALUE_SEGMENT, store->segment_count);
        store->segments[store->segment_count++] = record;
    }
    return status;
}

allot_status alloti_torch_record_make(alloti_store *store, const alloti_value *pairs,
                                      uint64_t count, alloti_value *out)
{
    uint64_t keys = 0;
    for (uint64_t i = 0; i < 2 * count; i += 2) {
        if (alloti_value_get_type(pairs[i]) != ALLOTI_VALUE_STRING) {
            return ALLOT_STATUS_OK; /* None of ours. */
        }
        const uint64_t word = alloti_value_payload(pairs[i]);
        keys |= word < WORD_KEY_COUNT ? UINT64_C(1) << word : 0;
    }
    if ((keys & KEY_BIT(ACTION)) != 0) {
        return make_event(store, pairs, count, keys, out);
    }
    if ((keys & KEY_BIT(BLOCKS)) != 0) {
        return make_segment(store, pairs, count, keys, out);
    }
    if ((keys & KEY_BIT(FILENAME)) != 0 && (keys & KEY_BIT(NAME)) != 0) {
        return make_frame(store, pairs, count, out);
    }
    if ((keys & KEY_BIT(STATE)) != 0 && (keys & KEY_BIT(SIZE)) != 0) {
        return make_block(store, pairs, count, keys, out);
    }
    return ALLOT_STATUS_OK;
}
