/* SPDX-License-Identifier: MIT */
/*
 * Building traces: devices and their events, segments and blocks, and their order at the end. What
 * is stored once is in builder_intern.c.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/status.h"
#include "trace/builder_state.h"
#include "trace/columns.h"

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
    if (trace->device_count == ALLOTI_DEVICES_MAX) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "more than %d devices", ALLOTI_DEVICES_MAX);
    }
    const allot_status status = alloti_array_reserve(
        &trace->columns, &trace->columns_capacity, trace->device_count + 1, sizeof *trace->columns);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    trace->columns[trace->device_count] = (alloti_columns){0};
    const allot_trace_device device = {.memory = memory, .index = index};
    const alloti_table table = {&trace->devices, &trace->device_count, &trace->device_capacity,
                                sizeof device, "devices"};
    return alloti_table_append(&table, &device, out);
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

allot_status alloti_builder_add_event(alloti_builder *builder, uint32_t device,
                                      const alloti_event *event)
{
    const allot_status status = alloti_columns_push(&builder->trace->columns[device], event);
    if (status == ALLOT_STATUS_OK) {
        builder->trace->traits |= event_traits(event);
    }
    return status;
}

allot_status alloti_builder_add_loose_event(alloti_builder *builder, const alloti_event *event,
                                            uint32_t *out)
{
    const uint32_t row = (uint32_t)builder->loose.count;
    const allot_status status = alloti_columns_push(&builder->loose, event);
    if (status == ALLOT_STATUS_OK) {
        builder->loose_traits |= event_traits(event);
        builder->loose_total++;
        *out = row;
    }
    return status;
}

allot_status alloti_builder_take_loose_events(alloti_builder *builder, uint32_t device,
                                              uint32_t first, uint32_t count)
{
    alloti_columns *const loose = &builder->loose;
    alloti_columns *const own = &builder->trace->columns[device];
    if (count > builder->loose_total - builder->loose_taken) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "a trace entry stands in more than one place");
    }
    builder->loose_taken += count;
    assert((uint64_t)first + count <= loose->count);
    if (count == loose->count && count != 0 && own->count == 0) {
        *own = *loose;
        *loose = (alloti_columns){0};
        builder->trace->traits |= builder->loose_traits;
        return ALLOT_STATUS_OK;
    }
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = first; i < (uint64_t)first + count && status == ALLOT_STATUS_OK; i++) {
        const alloti_event event = alloti_columns_get(loose, i);
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
    const alloti_table table = {&trace->segments, &trace->segment_count, &trace->segment_capacity,
                                sizeof copy, "segments"};
    const allot_status status = alloti_table_append(&table, &copy, NULL);
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
    const alloti_table table = {&trace->blocks, &trace->block_count, &trace->block_capacity,
                                sizeof *block, "blocks"};
    const allot_status status = alloti_table_append(&table, block, NULL);
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
    const alloti_table table = {&trace->annotations, &trace->annotation_count,
                                &trace->annotation_capacity, sizeof *annotation, "annotations"};
    return alloti_table_append(&table, annotation, NULL);
}

allot_status alloti_builder_add_setting(alloti_builder *builder, const allot_setting *setting)
{
    allot_trace *const trace = builder->trace;
    const alloti_table table = {&trace->settings, &trace->setting_count, &trace->setting_capacity,
                                sizeof *setting, "settings"};
    return alloti_table_append(&table, setting, NULL);
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
