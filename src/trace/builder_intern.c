/* SPDX-License-Identifier: MIT */
/*
 * Strings, frames, stacks, streams and pools are stored once: a hash table of indices (intern.h)
 * finds the entry that has the same content. Strings and stacks vary in length and lie one after
 * the other; all others are items of one size without padding, so that their bytes are compared.
 */
#include <string.h>
#include <xxhash.h>

#include "core/array.h"
#include "core/status.h"
#include "trace/builder_state.h"

_Static_assert(sizeof(allot_frame) == 4 * sizeof(uint32_t), "no padding");
_Static_assert(sizeof(allot_frame_fx) == 4 * sizeof(uint32_t), "no padding");
_Static_assert(sizeof(allot_pool_id) == 2 * sizeof(uint64_t), "no padding");

allot_status alloti_table_append(const alloti_table *table, const void *item, uint32_t *out)
{
    allot_status status = alloti_trace_check_room(*table->count, table->what);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(table->items, table->capacity, *table->count + 1,
                                      table->item_size);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    char *items = NULL;
    memcpy(&items, table->items, sizeof items);
    memcpy(items + *table->count * table->item_size, item, table->item_size);
    if (out != NULL) {
        *out = (uint32_t)*table->count;
    }
    (*table->count)++;
    return ALLOT_STATUS_OK;
}

static bool item_equal(const void *owner, uint32_t index, const void *key)
{
    const alloti_table *const table = owner;
    const char *items = NULL;
    memcpy(&items, table->items, sizeof items);
    return memcmp(items + index * table->item_size, key, table->item_size) == 0;
}

static allot_status intern_item(alloti_intern *index, const alloti_table *table, const void *item,
                                uint32_t *out)
{
    const uint64_t hash = XXH3_64bits(item, table->item_size);
    const uint32_t found = alloti_intern_find(index, hash, item_equal, table, item);
    if (found != ALLOT_NONE) {
        *out = found;
        return ALLOT_STATUS_OK;
    }
    const allot_status status = alloti_table_append(table, item, out);
    return status != ALLOT_STATUS_OK ? status : alloti_intern_add(index, hash, *out);
}

allot_status alloti_builder_intern_frame(alloti_builder *builder, const allot_frame *frame,
                                         uint32_t *out)
{
    allot_trace *const trace = builder->trace;
    const alloti_table table = {&trace->frames, &trace->frame_count, &trace->frame_capacity,
                                sizeof *frame, "frames"};
    return intern_item(&builder->frames, &table, frame, out);
}

allot_status alloti_builder_intern_fx(alloti_builder *builder, const allot_frame_fx *fx,
                                      uint32_t *out)
{
    allot_trace *const trace = builder->trace;
    const alloti_table table = {&trace->fx, &trace->fx_count, &trace->fx_capacity, sizeof *fx,
                                "frames of torch.fx"};
    return intern_item(&builder->fx, &table, fx, out);
}

allot_status alloti_builder_intern_stream(alloti_builder *builder, uint64_t value, uint32_t *out)
{
    allot_trace *const trace = builder->trace;
    const alloti_table table = {&trace->streams, &trace->stream_count, &trace->stream_capacity,
                                sizeof value, "streams"};
    return intern_item(&builder->streams, &table, &value, out);
}

allot_status alloti_builder_intern_pool(alloti_builder *builder, allot_pool_id value, uint32_t *out)
{
    allot_trace *const trace = builder->trace;
    const alloti_table table = {&trace->pools, &trace->pool_count, &trace->pool_capacity,
                                sizeof value, "pools"};
    return intern_item(&builder->pools, &table, &value, out);
}

/** A run of bytes or of frame indices that is looked for. */
typedef struct span {
    const void *data;
    size_t count;
} span;

static bool string_equal(const void *owner, uint32_t index, const void *key)
{
    const allot_trace *const trace = owner;
    const span *const wanted = key;
    size_t length = 0;
    const char *const text = allot_trace_string(trace, index, &length);
    return length == wanted->count && memcmp(text, wanted->data, length) == 0;
}

allot_status alloti_builder_intern_string(alloti_builder *builder, const char *text, size_t length,
                                          uint32_t *out)
{
    allot_trace *const trace = builder->trace;
    const span key = {.data = text, .count = length};
    const uint64_t hash = XXH3_64bits(text, length);
    const uint32_t found = alloti_intern_find(&builder->strings, hash, string_equal, trace, &key);
    if (found != ALLOT_NONE) {
        *out = found;
        return ALLOT_STATUS_OK;
    }
    allot_status status = alloti_trace_check_room(trace->string_count, "strings");
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&trace->text, &trace->text_capacity,
                                      trace->text_size + length + 1, 1);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&trace->string_start, &trace->string_capacity,
                                      trace->string_count + 2, sizeof *trace->string_start);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_intern_add(&builder->strings, hash, (uint32_t)trace->string_count);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (length != 0) {
        memcpy(trace->text + trace->text_size, text, length);
    }
    trace->text[trace->text_size + length] = '\0';
    trace->text_size += length + 1;
    *out = (uint32_t)trace->string_count++;
    trace->string_start[trace->string_count] = trace->text_size;
    return ALLOT_STATUS_OK;
}

static bool stack_equal(const void *owner, uint32_t index, const void *key)
{
    const span *const wanted = key;
    uint32_t count = 0;
    const uint32_t *const frames = allot_trace_stack(owner, index, &count);
    return count == wanted->count &&
           (count == 0 || memcmp(frames, wanted->data, count * sizeof *frames) == 0);
}

allot_status alloti_builder_intern_stack(alloti_builder *builder, const uint32_t *frames,
                                         uint32_t count, uint32_t *out)
{
    allot_trace *const trace = builder->trace;
    const span key = {.data = frames, .count = count};
    const uint64_t hash = XXH3_64bits(frames, count * sizeof *frames);
    const uint32_t found = alloti_intern_find(&builder->stacks, hash, stack_equal, trace, &key);
    if (found != ALLOT_NONE) {
        *out = found;
        return ALLOT_STATUS_OK;
    }
    allot_status status = alloti_trace_check_room(trace->stack_count, "stacks");
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&trace->stack_frames, &trace->stack_frames_capacity,
                                      trace->stack_frames_size + count, sizeof *frames);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(&trace->stack_start, &trace->stack_capacity,
                                      trace->stack_count + 2, sizeof *trace->stack_start);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_intern_add(&builder->stacks, hash, (uint32_t)trace->stack_count);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (count != 0) {
        memcpy(trace->stack_frames + trace->stack_frames_size, frames, count * sizeof *frames);
    }
    trace->stack_frames_size += count;
    *out = (uint32_t)trace->stack_count++;
    trace->stack_start[trace->stack_count] = trace->stack_frames_size;
    return ALLOT_STATUS_OK;
}
