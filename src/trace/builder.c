/* SPDX-License-Identifier: MIT */
/*
 * Building traces: growing columns, interned strings, frames, stacks, streams and pools, and the
 * order of segments at the end.
 *
 * Strings, frames and stacks are found through hash tables of indices (intern.h); streams and pools
 * are few, and the last one found is tried first.
 */
#include "trace/builder.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/array.h"
#include "trace/intern.h"
#include "trace/trace.h"

struct alloti_builder {
    allot_trace *trace;
    alloti_columns loose;  /**< Events whose device is not known yet. */
    uint32_t loose_traits; /**< What the loose events show. */
    alloti_intern strings;
    alloti_intern frames;
    alloti_intern fx;
    alloti_intern stacks;
    alloti_intern streams;
    alloti_intern pools;
};

/** A run of bytes or of frame indices that is looked for. */
typedef struct span {
    const void *data;
    size_t count;
} span;

/* The number of entries of every table stays below ALLOT_NONE. */
static allot_status check_room(uint64_t count, const char *what)
{
    if (count >= ALLOT_NONE - 1) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "more than %" PRIu32 " %s", ALLOT_NONE - 1, what);
    }
    return ALLOT_STATUS_OK;
}

static allot_status append_index(uint64_t *count, uint64_t *capacity, void *data, size_t item_size,
                                 const void *item, const char *what, uint32_t *out)
{
    allot_status status = check_room(*count, what);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_array_reserve(data, capacity, *count + 1, item_size);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    char *items = NULL;
    memcpy(&items, data, sizeof items);
    memcpy(items + *count * item_size, item, item_size);
    if (out != NULL) {
        *out = (uint32_t)*count;
    }
    (*count)++;
    return ALLOT_STATUS_OK;
}

allot_status alloti_builder_create(alloti_builder **out)
{
    alloti_builder *const builder = calloc(1, sizeof *builder);
    allot_trace *const trace = calloc(1, sizeof *trace);
    uint64_t *const string_start = calloc(1, sizeof *string_start);
    uint64_t *const stack_start = calloc(1, sizeof *stack_start);
    if (builder == NULL || trace == NULL || string_start == NULL || stack_start == NULL) {
        free(builder);
        free(trace);
        free(string_start);
        free(stack_start);
        return alloti_fail_memory(sizeof *builder + sizeof *trace);
    }
    trace->string_start = string_start;
    trace->string_capacity = 1;
    trace->stack_start = stack_start;
    trace->stack_capacity = 1;
    builder->trace = trace;
    *out = builder;
    return ALLOT_STATUS_OK;
}

void alloti_builder_destroy(alloti_builder *builder)
{
    if (builder == NULL) {
        return;
    }
    alloti_intern_fini(&builder->strings);
    alloti_intern_fini(&builder->frames);
    alloti_intern_fini(&builder->fx);
    alloti_intern_fini(&builder->stacks);
    alloti_intern_fini(&builder->streams);
    alloti_intern_fini(&builder->pools);
    alloti_columns_fini(&builder->loose);
    allot_trace_destroy(builder->trace);
    free(builder);
}

allot_status alloti_builder_device(alloti_builder *builder, allot_memory_kind memory,
                                   uint32_t index, uint32_t *out)
{
    allot_trace *const trace = builder->trace;
    for (uint64_t i = 0; i < trace->device_count; i++) {
        if (trace->devices[i].memory == memory && trace->devices[i].index == index) {
            *out = (uint32_t)i;
            return ALLOT_STATUS_OK;
        }
    }
    allot_status status = alloti_array_reserve(&trace->columns, &trace->columns_capacity,
                                               trace->device_count + 1, sizeof *trace->columns);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    trace->columns[trace->device_count] = (alloti_columns){0};
    const allot_trace_device device = {.memory = memory, .index = index};
    return append_index(&trace->device_count, &trace->device_capacity, &trace->devices,
                        sizeof device, &device, "devices", out);
}

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
    allot_status status = check_room(trace->string_count, "strings");
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

static bool frame_equal(const void *owner, uint32_t index, const void *key)
{
    const allot_trace *const trace = owner;
    return memcmp(&trace->frames[index], key, sizeof(allot_frame)) == 0;
}

allot_status alloti_builder_intern_frame(alloti_builder *builder, const allot_frame *frame,
                                         uint32_t *out)
{
    allot_trace *const trace = builder->trace;
    const uint64_t hash = XXH3_64bits(frame, sizeof *frame);
    const uint32_t found = alloti_intern_find(&builder->frames, hash, frame_equal, trace, frame);
    if (found != ALLOT_NONE) {
        *out = found;
        return ALLOT_STATUS_OK;
    }
    const allot_status status = append_index(&trace->frame_count, &trace->frame_capacity,
                                             &trace->frames, sizeof *frame, frame, "frames", out);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    return alloti_intern_add(&builder->frames, hash, *out);
}

static bool fx_equal(const void *owner, uint32_t index, const void *key)
{
    const allot_trace *const trace = owner;
    return memcmp(&trace->fx[index], key, sizeof(allot_frame_fx)) == 0;
}

allot_status alloti_builder_intern_fx(alloti_builder *builder, const allot_frame_fx *fx,
                                      uint32_t *out)
{
    allot_trace *const trace = builder->trace;
    const uint64_t hash = XXH3_64bits(fx, sizeof *fx);
    const uint32_t found = alloti_intern_find(&builder->fx, hash, fx_equal, trace, fx);
    if (found != ALLOT_NONE) {
        *out = found;
        return ALLOT_STATUS_OK;
    }
    const allot_status status = append_index(&trace->fx_count, &trace->fx_capacity, &trace->fx,
                                             sizeof *fx, fx, "frames of torch.fx", out);
    return status != ALLOT_STATUS_OK ? status : alloti_intern_add(&builder->fx, hash, *out);
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
    allot_status status = check_room(trace->stack_count, "stacks");
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

static bool stream_equal(const void *owner, uint32_t index, const void *key)
{
    const allot_trace *const trace = owner;
    return memcmp(&trace->streams[index], key, sizeof *trace->streams) == 0;
}

allot_status alloti_builder_intern_stream(alloti_builder *builder, uint64_t value, uint32_t *out)
{
    allot_trace *const trace = builder->trace;
    const uint64_t hash = XXH3_64bits(&value, sizeof value);
    const uint32_t found = alloti_intern_find(&builder->streams, hash, stream_equal, trace, &value);
    if (found != ALLOT_NONE) {
        *out = found;
        return ALLOT_STATUS_OK;
    }
    const allot_status status = append_index(&trace->stream_count, &trace->stream_capacity,
                                             &trace->streams, sizeof value, &value, "streams", out);
    return status != ALLOT_STATUS_OK ? status : alloti_intern_add(&builder->streams, hash, *out);
}

static bool pool_equal(const void *owner, uint32_t index, const void *key)
{
    const allot_trace *const trace = owner;
    return memcmp(&trace->pools[index], key, sizeof *trace->pools) == 0;
}

allot_status alloti_builder_intern_pool(alloti_builder *builder, allot_pool_id value, uint32_t *out)
{
    allot_trace *const trace = builder->trace;
    const uint64_t hash = XXH3_64bits(&value, sizeof value);
    const uint32_t found = alloti_intern_find(&builder->pools, hash, pool_equal, trace, &value);
    if (found != ALLOT_NONE) {
        *out = found;
        return ALLOT_STATUS_OK;
    }
    const allot_status status = append_index(&trace->pool_count, &trace->pool_capacity,
                                             &trace->pools, sizeof value, &value, "pools", out);
    return status != ALLOT_STATUS_OK ? status : alloti_intern_add(&builder->pools, hash, *out);
}

const char *alloti_builder_get_string(const alloti_builder *builder, uint32_t id)
{
    return allot_trace_string(builder->trace, id, NULL);
}

const uint32_t *alloti_builder_get_stack(const alloti_builder *builder, uint32_t id,
                                         uint32_t *count)
{
    return allot_trace_stack(builder->trace, id, count);
}

void alloti_builder_map_categories(alloti_builder *builder, const uint8_t *map)
{
    allot_trace *const trace = builder->trace;
    for (uint64_t i = 0; i < trace->device_count; i++) {
        const alloti_columns *const columns = &trace->columns[i];
        for (uint64_t k = 0; columns->category != NULL && k < columns->count; k++) {
            columns->category[k] = map[columns->category[k]];
        }
    }
    for (uint64_t i = 0; i < trace->block_count; i++) {
        trace->blocks[i].category = map[trace->blocks[i].category];
    }
}

bool alloti_builder_is_empty(const alloti_builder *builder)
{
    const allot_trace *const trace = builder->trace;
    for (uint64_t i = 0; i < trace->device_count; i++) {
        if (trace->columns[i].count != 0) {
            return false;
        }
    }
    return trace->segment_count == 0;
}

void alloti_builder_set_trait(alloti_builder *builder, allot_trace_trait trait)
{
    builder->trace->traits |= 1u << (unsigned)trait;
}

uint64_t alloti_builder_event_count(const alloti_builder *builder, uint32_t device)
{
    return builder->trace->columns[device].count;
}

/* Grow one column to `capacity` items. */
static bool column_grow(void *column, uint64_t capacity, size_t item_size)
{
    uint64_t grown = 0;
    return alloti_array_reserve(column, &grown, capacity, item_size) == ALLOT_STATUS_OK;
}

static bool columns_grow(alloti_columns *c, uint64_t capacity)
{
    return column_grow(&c->kind, capacity, sizeof *c->kind) &&
           column_grow(&c->addr, capacity, sizeof *c->addr) &&
           column_grow(&c->size, capacity, sizeof *c->size) &&
           column_grow(&c->time_ns, capacity, sizeof *c->time_ns) &&
           column_grow(&c->stream, capacity, sizeof *c->stream) &&
           column_grow(&c->pool, capacity, sizeof *c->pool) &&
           column_grow(&c->stack, capacity, sizeof *c->stack) &&
           (c->category == NULL || column_grow(&c->category, capacity, sizeof *c->category)) &&
           (c->context == NULL || column_grow(&c->context, capacity, sizeof *c->context)) &&
           (c->metadata == NULL || column_grow(&c->metadata, capacity, sizeof *c->metadata)) &&
           (c->total_allocated == NULL ||
            (column_grow(&c->total_allocated, capacity, sizeof *c->total_allocated) &&
             column_grow(&c->total_reserved, capacity, sizeof *c->total_reserved)));
}

enum { EVENTS_MIN = 256 };

static allot_status columns_reserve(alloti_columns *columns)
{
    if (columns->count < columns->capacity) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status = check_room(columns->count, "events on one device");
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t capacity =
        columns->capacity < EVENTS_MIN ? EVENTS_MIN : columns->capacity + columns->capacity / 2;
    if (!columns_grow(columns, capacity)) {
        return alloti_fail_memory(capacity * sizeof(alloti_event));
    }
    columns->capacity = capacity;
    return ALLOT_STATUS_OK;
}

/* Give a device an optional column of indices; what was added before has none. */
static allot_status index_column_begin(uint32_t **column, const alloti_columns *columns)
{
    if (*column != NULL) {
        return ALLOT_STATUS_OK;
    }
    *column = alloti_alloc_array(columns->capacity, sizeof **column);
    if (*column == NULL) {
        return alloti_fail_memory(columns->capacity * sizeof **column);
    }
    memset(*column, 0xff, columns->count * sizeof **column);
    return ALLOT_STATUS_OK;
}

static allot_status totals_begin(alloti_columns *columns)
{
    if (columns->total_allocated != NULL) {
        return ALLOT_STATUS_OK;
    }
    uint64_t *const allocated = alloti_calloc_array(columns->capacity, sizeof *allocated);
    uint64_t *const reserved = alloti_calloc_array(columns->capacity, sizeof *reserved);
    if (allocated == NULL || reserved == NULL) {
        free(allocated);
        free(reserved);
        return alloti_fail_memory(2 * columns->capacity * sizeof *allocated);
    }
    columns->total_allocated = allocated;
    columns->total_reserved = reserved;
    return ALLOT_STATUS_OK;
}

static allot_status optional_columns_begin(alloti_columns *columns, const alloti_event *event)
{
    allot_status status = ALLOT_STATUS_OK;
    if (event->context != ALLOT_NONE) {
        status = index_column_begin(&columns->context, columns);
    }
    if (status == ALLOT_STATUS_OK && event->metadata != ALLOT_NONE) {
        status = index_column_begin(&columns->metadata, columns);
    }
    if (status == ALLOT_STATUS_OK && event->total_allocated != UINT64_MAX) {
        status = totals_begin(columns);
    }
    if (status == ALLOT_STATUS_OK && event->category != ALLOT_CATEGORY_UNKNOWN &&
        columns->category == NULL) {
        columns->category = alloti_calloc_array(columns->capacity, 1);
        if (columns->category == NULL) {
            status = alloti_fail_memory(columns->capacity);
        }
    }
    return status;
}

static uint32_t event_traits(const alloti_event *event)
{
    const bool is_segment =
        event->kind == ALLOT_EVENT_SEGMENT_ALLOC || event->kind == ALLOT_EVENT_SEGMENT_FREE ||
        event->kind == ALLOT_EVENT_SEGMENT_MAP || event->kind == ALLOT_EVENT_SEGMENT_UNMAP;
    return (is_segment ? 1u << ALLOT_TRACE_HAS_SEGMENT_EVENTS : 0) |
           (event->time_ns != ALLOT_TIME_NONE ? 1u << ALLOT_TRACE_HAS_TIMES : 0) |
           (event->stack != ALLOT_NONE ? 1u << ALLOT_TRACE_HAS_STACKS : 0) |
           (event->total_allocated != UINT64_MAX ? 1u << ALLOT_TRACE_HAS_TOTALS : 0);
}

static allot_status columns_push(alloti_columns *c, const alloti_event *event)
{
    allot_status status = columns_reserve(c);
    if (status == ALLOT_STATUS_OK) {
        status = optional_columns_begin(c, event);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t i = c->count++;
    c->kind[i] = (uint8_t)event->kind;
    c->addr[i] = event->addr;
    c->size[i] = event->size;
    c->time_ns[i] = event->time_ns;
    c->stream[i] = event->stream;
    c->pool[i] = event->pool;
    c->stack[i] = event->stack;
    if (c->category != NULL) {
        c->category[i] = (uint8_t)event->category;
    }
    if (c->context != NULL) {
        c->context[i] = event->context;
    }
    if (c->metadata != NULL) {
        c->metadata[i] = event->metadata;
    }
    if (c->total_allocated != NULL) {
        c->total_allocated[i] = event->total_allocated;
        c->total_reserved[i] = event->total_reserved;
    }
    return ALLOT_STATUS_OK;
}

static alloti_event columns_get(const alloti_columns *c, uint64_t i)
{
    return (alloti_event){
        .kind = (allot_event_kind)c->kind[i],
        .category = c->category == NULL ? ALLOT_CATEGORY_UNKNOWN : (allot_category)c->category[i],
        .addr = c->addr[i],
        .size = c->size[i],
        .time_ns = c->time_ns[i],
        .stream = c->stream[i],
        .pool = c->pool[i],
        .stack = c->stack[i],
        .context = c->context == NULL ? ALLOT_NONE : c->context[i],
        .metadata = c->metadata == NULL ? ALLOT_NONE : c->metadata[i],
        .total_allocated = c->total_allocated == NULL ? UINT64_MAX : c->total_allocated[i],
        .total_reserved = c->total_reserved == NULL ? UINT64_MAX : c->total_reserved[i],
    };
}

allot_status alloti_builder_add_event(alloti_builder *builder, uint32_t device,
                                      const alloti_event *event)
{
    const allot_status status = columns_push(&builder->trace->columns[device], event);
    if (status == ALLOT_STATUS_OK) {
        builder->trace->traits |= event_traits(event);
    }
    return status;
}

allot_status alloti_builder_add_loose_event(alloti_builder *builder, const alloti_event *event,
                                            uint32_t *out)
{
    const uint32_t row = (uint32_t)builder->loose.count;
    const allot_status status = columns_push(&builder->loose, event);
    if (status == ALLOT_STATUS_OK) {
        builder->loose_traits |= event_traits(event);
        *out = row;
    }
    return status;
}

allot_status alloti_builder_take_loose_events(alloti_builder *builder, uint32_t device,
                                              uint32_t first, uint32_t count)
{
    alloti_columns *const loose = &builder->loose;
    alloti_columns *const own = &builder->trace->columns[device];
    assert((uint64_t)first + count <= loose->count);
    if (count == loose->count && count != 0 && own->count == 0) {
        *own = *loose;
        *loose = (alloti_columns){0};
        builder->trace->traits |= builder->loose_traits;
        return ALLOT_STATUS_OK;
    }
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = first; i < (uint64_t)first + count && status == ALLOT_STATUS_OK; i++) {
        const alloti_event event = columns_get(loose, i);
        status = alloti_builder_add_event(builder, device, &event);
    }
    return status;
}

allot_status alloti_builder_add_segment(alloti_builder *builder, const allot_segment *segment)
{
    allot_trace *const trace = builder->trace;
    allot_segment copy = *segment;
    copy.block_first = (uint32_t)trace->block_count;
    copy.block_count = 0;
    const allot_status status =
        append_index(&trace->segment_count, &trace->segment_capacity, &trace->segments, sizeof copy,
                     &copy, "segments", NULL);
    if (status == ALLOT_STATUS_OK) {
        alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_SEGMENTS);
        if (copy.stack != ALLOT_NONE) {
            alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_STACKS);
        }
    }
    return status;
}

allot_status alloti_builder_add_block(alloti_builder *builder, const allot_block *block)
{
    allot_trace *const trace = builder->trace;
    const allot_status status = append_index(&trace->block_count, &trace->block_capacity,
                                             &trace->blocks, sizeof *block, block, "blocks", NULL);
    if (status == ALLOT_STATUS_OK) {
        trace->segments[trace->segment_count - 1].block_count++;
        if (block->stack != ALLOT_NONE) {
            alloti_builder_set_trait(builder, ALLOT_TRACE_HAS_STACKS);
        }
    }
    return status;
}

allot_status alloti_builder_add_annotation(alloti_builder *builder,
                                           const allot_annotation *annotation)
{
    allot_trace *const trace = builder->trace;
    return append_index(&trace->annotation_count, &trace->annotation_capacity, &trace->annotations,
                        sizeof *annotation, annotation, "annotations", NULL);
}

allot_status alloti_builder_add_setting(alloti_builder *builder, const allot_setting *setting)
{
    allot_trace *const trace = builder->trace;
    return append_index(&trace->setting_count, &trace->setting_capacity, &trace->settings,
                        sizeof *setting, setting, "settings", NULL);
}

/* Order of segments: device, address, then where they stood in the file. */
static int segment_compare(const void *left, const void *right)
{
    const allot_segment *const a = left;
    const allot_segment *const b = right;
    if (a->device != b->device) {
        return a->device < b->device ? -1 : 1;
    }
    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    return a->block_first < b->block_first ? -1 : a->block_first > b->block_first;
}

static bool segments_are_sorted(const allot_trace *trace)
{
    for (uint64_t i = 1; i < trace->segment_count; i++) {
        if (segment_compare(&trace->segments[i - 1], &trace->segments[i]) > 0) {
            return false;
        }
    }
    return true;
}

static allot_status segments_sort(allot_trace *trace)
{
    if (segments_are_sorted(trace)) {
        return ALLOT_STATUS_OK;
    }
    qsort(trace->segments, (size_t)trace->segment_count, sizeof *trace->segments, segment_compare);
    if (trace->block_count == 0) {
        return ALLOT_STATUS_OK;
    }
    allot_block *const blocks = alloti_alloc_array(trace->block_count, sizeof *blocks);
    if (blocks == NULL) {
        return alloti_fail_memory(trace->block_count * sizeof *blocks);
    }
    uint32_t next = 0;
    for (uint64_t i = 0; i < trace->segment_count; i++) {
        allot_segment *const segment = &trace->segments[i];
        memcpy(blocks + next, trace->blocks + segment->block_first,
               segment->block_count * sizeof *blocks);
        segment->block_first = next;
        next += segment->block_count;
    }
    free(trace->blocks);
    trace->blocks = blocks;
    trace->block_capacity = trace->block_count;
    return ALLOT_STATUS_OK;
}

static void devices_set_segments(allot_trace *trace)
{
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        allot_trace_device *const device = &trace->devices[trace->segments[i].device];
        if (device->segment_count == 0) {
            device->segment_first = i;
        }
        device->segment_count++;
    }
}

allot_status alloti_builder_finish(alloti_builder *builder, allot_trace_format format,
                                   allot_trace **out)
{
    allot_trace *const trace = builder->trace;
    const allot_status status = segments_sort(trace);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    devices_set_segments(trace);
    trace->format = format;
    *out = trace;
    builder->trace = NULL;
    alloti_builder_destroy(builder);
    return ALLOT_STATUS_OK;
}
