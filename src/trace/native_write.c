/* SPDX-License-Identifier: MIT */
/* Writes allot's own format (native.h): each section is put together in memory, packed, checked. */
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "core/array.h"
#include "core/bytes.h"
#include "core/status.h"
#include "trace/native.h"
#include "trace/trace.h"
#include "trace/writer.h"

enum { PACK_LEVEL = 6 };

typedef struct native_writer {
    const allot_trace *trace;
    alloti_output *output;
    alloti_bytes raw;
    alloti_bytes column;
    alloti_bytes packed;
    uint64_t section_count;
} native_writer;

static void put_index(alloti_bytes *bytes, uint32_t index)
{
    alloti_bytes_put_varint(bytes, index == ALLOT_NONE ? 0 : (uint64_t)index + 1);
}

static void pack(native_writer *w)
{
    const size_t room = ZSTD_compressBound((size_t)w->raw.size);
    w->packed.size = 0;
    w->packed.status = alloti_array_reserve(&w->packed.data, &w->packed.capacity, room, 1);
    if (w->packed.status != ALLOT_STATUS_OK) {
        return;
    }
    const size_t size =
        ZSTD_compress(w->packed.data, room, w->raw.data, (size_t)w->raw.size, PACK_LEVEL);
    if (ZSTD_isError(size)) {
        w->packed.status =
            alloti_fail(ALLOT_STATUS_HOST_MEMORY, "zstd: %s", ZSTD_getErrorName(size));
        return;
    }
    w->packed.size = size;
}

/* Write what was gathered in `raw` as a section, and begin anew. */
static void end_section(native_writer *w, alloti_native_section section)
{
    alloti_output *const output = w->output;
    if (output->status == ALLOT_STATUS_OK) {
        output->status = w->raw.status;
    }
    if (output->status == ALLOT_STATUS_OK) {
        pack(w);
        output->status = w->packed.status;
    }
    if (output->status != ALLOT_STATUS_OK) {
        return;
    }
    const char *const tag = alloti_native_tag(section);
    alloti_bytes header = {.size = 0};
    alloti_bytes_put(&header, tag, ALLOTI_NATIVE_TAG_SIZE);
    alloti_bytes_put_le32(&header, 0);
    alloti_bytes_put_le64(&header, w->raw.size);
    alloti_bytes_put_le64(&header, w->packed.size);
    alloti_bytes_put_le64(&header, XXH3_64bits_withSeed(w->packed.data, (size_t)w->packed.size,
                                                        alloti_native_seed(tag, w->raw.size)));
    output->status = header.status;
    alloti_output_put(output, header.data, (size_t)header.size);
    alloti_output_put(output, w->packed.data, (size_t)w->packed.size);
    alloti_bytes_fini(&header);
    w->raw.size = 0;
    w->section_count++;
    if (output->status == ALLOT_STATUS_OK) {
        const uint64_t total = ALLOTI_NATIVE_END + w->trace->device_count;
        output->status = alloti_progress_tell(output->progress, w->section_count, total);
    }
}

static void write_meta(native_writer *w)
{
    const allot_trace *const trace = w->trace;
    alloti_bytes_put_varint(&w->raw, trace->traits);
    alloti_bytes_put_varint(&w->raw, trace->device_count);
    for (uint64_t i = 0; i < trace->device_count; i++) {
        alloti_bytes_put_varint(&w->raw, (uint64_t)trace->devices[i].memory);
        alloti_bytes_put_varint(&w->raw, trace->devices[i].index);
    }
    end_section(w, ALLOTI_NATIVE_META);
}

static void write_strings(native_writer *w)
{
    const uint32_t count = allot_trace_string_count(w->trace);
    alloti_bytes_put_varint(&w->raw, count);
    for (uint32_t i = 0; i < count; i++) {
        size_t length = 0;
        const char *const text = allot_trace_string(w->trace, i, &length);
        alloti_bytes_put_varint(&w->raw, length);
        alloti_bytes_put(&w->raw, text, length);
    }
    end_section(w, ALLOTI_NATIVE_STRINGS);
}

static void write_fx(native_writer *w)
{
    alloti_bytes_put_varint(&w->raw, w->trace->fx_count);
    for (uint64_t i = 0; i < w->trace->fx_count; i++) {
        const allot_frame_fx *const fx = &w->trace->fx[i];
        put_index(&w->raw, fx->node_op);
        put_index(&w->raw, fx->node_name);
        put_index(&w->raw, fx->node_target);
        put_index(&w->raw, fx->original_trace);
    }
    end_section(w, ALLOTI_NATIVE_FX);
}

static void write_frames(native_writer *w)
{
    alloti_bytes_put_varint(&w->raw, w->trace->frame_count);
    for (uint64_t i = 0; i < w->trace->frame_count; i++) {
        const allot_frame *const frame = &w->trace->frames[i];
        put_index(&w->raw, frame->name);
        put_index(&w->raw, frame->filename);
        alloti_bytes_put_varint(&w->raw, frame->line);
        put_index(&w->raw, frame->fx);
    }
    end_section(w, ALLOTI_NATIVE_FRAMES);
}

static void write_stacks(native_writer *w)
{
    const uint32_t stack_count = allot_trace_stack_count(w->trace);
    alloti_bytes_put_varint(&w->raw, stack_count);
    for (uint32_t i = 0; i < stack_count; i++) {
        uint32_t count = 0;
        const uint32_t *const frames = allot_trace_stack(w->trace, i, &count);
        alloti_bytes_put_varint(&w->raw, count);
        for (uint32_t k = 0; k < count; k++) {
            alloti_bytes_put_varint(&w->raw, frames[k]);
        }
    }
    end_section(w, ALLOTI_NATIVE_STACKS);
}

static void write_streams_and_pools(native_writer *w)
{
    alloti_bytes_put_varint(&w->raw, w->trace->stream_count);
    for (uint64_t i = 0; i < w->trace->stream_count; i++) {
        alloti_bytes_put_varint(&w->raw, w->trace->streams[i]);
    }
    end_section(w, ALLOTI_NATIVE_STREAMS);
    alloti_bytes_put_varint(&w->raw, w->trace->pool_count);
    for (uint64_t i = 0; i < w->trace->pool_count; i++) {
        alloti_bytes_put_varint(&w->raw, w->trace->pools[i].first);
        alloti_bytes_put_varint(&w->raw, w->trace->pools[i].second);
    }
    end_section(w, ALLOTI_NATIVE_POOLS);
}

/* Add the column gathered in `column` to the section. */
static void end_column(native_writer *w)
{
    if (w->column.status != ALLOT_STATUS_OK) {
        w->raw.status = w->column.status;
        return;
    }
    alloti_bytes_put_varint(&w->raw, w->column.size);
    alloti_bytes_put(&w->raw, w->column.data, (size_t)w->column.size);
    w->column.size = 0;
}

static void write_bytes_column(native_writer *w, const uint8_t *values, uint64_t count)
{
    alloti_bytes_put(&w->column, values, (size_t)count);
    end_column(w);
}

static void write_number_column(native_writer *w, const uint64_t *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        alloti_bytes_put_varint(&w->column, values[i]);
    }
    end_column(w);
}

static void write_delta_column(native_writer *w, const uint64_t *values, uint64_t count)
{
    uint64_t last = 0;
    for (uint64_t i = 0; i < count; i++) {
        alloti_bytes_put_varint(&w->column, alloti_zigzag(values[i] - last));
        last = values[i];
    }
    end_column(w);
}

static void write_time_column(native_writer *w, const int64_t *values, uint64_t count)
{
    uint64_t last = 0;
    for (uint64_t i = 0; i < count; i++) {
        alloti_bytes_put_varint(&w->column, alloti_zigzag((uint64_t)values[i] - last));
        last = (uint64_t)values[i];
    }
    end_column(w);
}

static void write_index_column(native_writer *w, const uint32_t *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        put_index(&w->column, values[i]);
    }
    end_column(w);
}

static void write_events(native_writer *w, const alloti_columns *c)
{
    const uint64_t n = c->count;
    const uint64_t present = (c->category != NULL ? 1u << ALLOTI_COLUMN_CATEGORY : 0) |
                             (c->context != NULL ? 1u << ALLOTI_COLUMN_CONTEXT : 0) |
                             (c->metadata != NULL ? 1u << ALLOTI_COLUMN_METADATA : 0) |
                             (c->total_allocated != NULL ? 1u << ALLOTI_COLUMN_TOTAL_ALLOCATED |
                                                               1u << ALLOTI_COLUMN_TOTAL_RESERVED
                                                         : 0);
    alloti_bytes_put_varint(&w->raw, n);
    alloti_bytes_put_varint(&w->raw, present);
    write_bytes_column(w, c->kind, n);
    write_delta_column(w, c->addr, n);
    write_number_column(w, c->size, n);
    write_time_column(w, c->time_ns, n);
    for (uint64_t i = 0; i < n; i++) {
        alloti_bytes_put_varint(&w->column, c->stream[i]);
    }
    end_column(w);
    write_index_column(w, c->pool, n);
    write_index_column(w, c->stack, n);
    if (c->category != NULL) {
        write_bytes_column(w, c->category, n);
    }
    if (c->context != NULL) {
        write_index_column(w, c->context, n);
    }
    if (c->metadata != NULL) {
        write_index_column(w, c->metadata, n);
    }
    if (c->total_allocated != NULL) {
        write_delta_column(w, c->total_allocated, n);
        write_delta_column(w, c->total_reserved, n);
    }
    end_section(w, ALLOTI_NATIVE_EVENTS);
}

static void put_block(alloti_bytes *raw, const allot_block *block, uint64_t *last)
{
    alloti_bytes_put_varint(raw, alloti_zigzag(block->address - *last));
    *last = block->address;
    alloti_bytes_put_varint(raw, block->size);
    alloti_bytes_put_varint(raw, block->requested_size);
    put_index(raw, block->stack);
    put_index(raw, block->context);
    put_index(raw, block->metadata);
    alloti_bytes_put_u8(raw, block->state);
    alloti_bytes_put_u8(raw, block->category);
}

static void write_segments(native_writer *w)
{
    const allot_trace *const trace = w->trace;
    alloti_bytes *const raw = &w->raw;
    alloti_bytes_put_varint(raw, trace->segment_count);
    for (uint64_t i = 0; i < trace->segment_count; i++) {
        const allot_segment *const segment = &trace->segments[i];
        alloti_bytes_put_varint(raw, segment->address);
        alloti_bytes_put_varint(raw, segment->total_size);
        alloti_bytes_put_varint(raw, segment->allocated_size);
        alloti_bytes_put_varint(raw, segment->active_size);
        alloti_bytes_put_varint(raw, segment->requested_size);
        alloti_bytes_put_varint(raw, segment->device);
        alloti_bytes_put_varint(raw, segment->stream);
        put_index(raw, segment->pool);
        put_index(raw, segment->stack);
        alloti_bytes_put_u8(raw,
                            (uint8_t)(segment->is_large | (unsigned)segment->is_expandable << 1));
        alloti_bytes_put_varint(raw, segment->block_count);
        uint64_t last = segment->address;
        for (uint32_t k = 0; k < segment->block_count; k++) {
            put_block(raw, &trace->blocks[segment->block_first + k], &last);
        }
    }
    end_section(w, ALLOTI_NATIVE_SEGMENTS);
}

static void write_annotations(native_writer *w)
{
    uint64_t last = 0;
    alloti_bytes_put_varint(&w->raw, w->trace->annotation_count);
    for (uint64_t i = 0; i < w->trace->annotation_count; i++) {
        const allot_annotation *const annotation = &w->trace->annotations[i];
        put_index(&w->raw, annotation->name);
        put_index(&w->raw, annotation->device);
        alloti_bytes_put_varint(&w->raw, alloti_zigzag((uint64_t)annotation->time_ns - last));
        last = (uint64_t)annotation->time_ns;
        alloti_bytes_put_u8(&w->raw, annotation->is_start);
    }
    end_section(w, ALLOTI_NATIVE_ANNOTATIONS);
}

static void write_settings(native_writer *w)
{
    alloti_bytes_put_varint(&w->raw, w->trace->setting_count);
    for (uint64_t i = 0; i < w->trace->setting_count; i++) {
        const allot_setting *const setting = &w->trace->settings[i];
        uint64_t number = 0;
        memcpy(&number, &setting->number, sizeof number);
        put_index(&w->raw, setting->key);
        alloti_bytes_put_u8(&w->raw, (uint8_t)setting->type);
        alloti_bytes_put_varint(&w->raw, alloti_zigzag((uint64_t)setting->integer));
        alloti_bytes_put_le64(&w->raw, number);
        put_index(&w->raw, setting->string);
    }
    end_section(w, ALLOTI_NATIVE_SETTINGS);
}

static allot_status write_native(const allot_trace *trace, alloti_output *output)
{
    native_writer w = {.trace = trace, .output = output};
    alloti_output_put(output, ALLOTI_NATIVE_MAGIC, ALLOTI_NATIVE_MAGIC_SIZE);
    const uint8_t version[8] = {ALLOTI_NATIVE_VERSION};
    alloti_output_put(output, version, sizeof version);
    write_meta(&w);
    write_strings(&w);
    write_fx(&w);
    write_frames(&w);
    write_stacks(&w);
    write_streams_and_pools(&w);
    for (uint64_t i = 0; i < trace->device_count; i++) {
        write_events(&w, &trace->columns[i]);
    }
    write_segments(&w);
    write_annotations(&w);
    write_settings(&w);
    alloti_bytes_put_varint(&w.raw, w.section_count);
    end_section(&w, ALLOTI_NATIVE_END);
    alloti_bytes_fini(&w.raw);
    alloti_bytes_fini(&w.column);
    alloti_bytes_fini(&w.packed);
    return output->status;
}

const alloti_writer alloti_writer_native = {.format = ALLOT_TRACE_FORMAT_ALLOT,
                                            .write = write_native};
