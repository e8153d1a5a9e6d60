/* SPDX-License-Identifier: MIT */
/*
 * Reads allot's own format (native.h). The bytes are as untrusted as any: every index is compared
 * with the table it points into, and nothing is allocated for a count before its items are there.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/status.h"
#include "trace/native_section.h"
#include "trace/reader.h"

typedef struct native_reader {
    alloti_section_reader *sections;
    alloti_builder *builder;
    alloti_cursor in;    /**< The section that is read. */
    allot_status status; /**< First failure. */
    uint64_t string_count;
    uint64_t fx_count;
    uint64_t frame_count;
    uint64_t stack_count;
    uint64_t stream_count;
    uint64_t pool_count;
    uint64_t device_count;
    uint32_t *frames; /**< Of the stack that is read. */
    uint64_t frames_capacity;
} native_reader;

static bool is_well(const native_reader *r)
{
    return r->status == ALLOT_STATUS_OK;
}

static bool begin_section(native_reader *r, alloti_native_section section)
{
    if (is_well(r)) {
        r->status = alloti_sections_next(r->sections, section, &r->in);
    }
    return is_well(r);
}

static void fail_value(native_reader *r, const char *what, uint64_t value)
{
    if (is_well(r)) {
        r->status = alloti_section_fail(r->sections, "%s %" PRIu64 " is out of range", what, value);
    }
}

/* All bytes of the section must have been read, and none past its end. */
static void end_section(native_reader *r)
{
    if (is_well(r) && (r->in.has_failed || r->in.pos != r->in.size)) {
        r->status =
            alloti_section_fail(r->sections, r->in.has_failed ? "its values end too early"
                                                              : "it holds more than its values");
    }
}

/* Whether a loop over items may go on. */
static bool has_more(const native_reader *r, uint64_t i, uint64_t count)
{
    return i < count && is_well(r) && !r->in.has_failed;
}

static uint32_t take_below(native_reader *r, alloti_cursor *in, uint64_t limit, const char *what)
{
    const uint64_t value = alloti_cursor_varint(in);
    if (value >= limit && !in->has_failed) {
        fail_value(r, what, value);
    }
    return value < limit ? (uint32_t)value : 0;
}

/* An index stored plus one; 0 for none. */
static uint32_t take_index(native_reader *r, alloti_cursor *in, uint64_t limit, const char *what)
{
    const uint64_t value = alloti_cursor_varint(in);
    if (value > limit && !in->has_failed) {
        fail_value(r, what, value);
    }
    return value == 0 || value > limit ? ALLOT_NONE : (uint32_t)(value - 1);
}

static uint32_t take_string(native_reader *r)
{
    return take_index(r, &r->in, r->string_count, "string");
}

/* Items keep the numbers they had: interning must not find an earlier one. */
static void expect_index(native_reader *r, allot_status status, uint32_t got, uint64_t expected,
                         const char *what)
{
    if (!is_well(r)) {
        return;
    }
    r->status = status;
    if (status == ALLOT_STATUS_OK && got != expected) {
        r->status = alloti_section_fail(r->sections, "%s %" PRIu64 " repeats %s %" PRIu32, what,
                                        expected, what, got);
    }
}

static void read_meta(native_reader *r)
{
    enum { TRAIT_COUNT = ALLOT_TRACE_HAS_TOTALS + 1 };
    if (!begin_section(r, ALLOTI_NATIVE_META)) {
        return;
    }
    const uint32_t traits = take_below(r, &r->in, UINT64_C(1) << TRAIT_COUNT, "set of traits");
    for (unsigned i = 0; i < TRAIT_COUNT; i++) {
        if ((traits >> i & 1) != 0) {
            alloti_builder_set_trait(r->builder, (allot_trace_trait)i);
        }
    }
    r->device_count = alloti_cursor_varint(&r->in);
    for (uint64_t i = 0; has_more(r, i, r->device_count); i++) {
        const uint32_t memory = take_below(r, &r->in, ALLOT_MEMORY_CPU + 1, "memory kind");
        const uint32_t index = take_below(r, &r->in, UINT32_MAX, "device number");
        uint32_t got = 0;
        if (is_well(r) && !r->in.has_failed) {
            const allot_status status =
                alloti_builder_device(r->builder, (allot_memory_kind)memory, index, &got);
            expect_index(r, status, got, i, "device");
        }
    }
    end_section(r);
}

static void read_strings(native_reader *r)
{
    if (!begin_section(r, ALLOTI_NATIVE_STRINGS)) {
        return;
    }
    const uint64_t count = alloti_cursor_varint(&r->in);
    for (uint64_t i = 0; has_more(r, i, count); i++) {
        const uint64_t length = alloti_cursor_varint(&r->in);
        const uint8_t *const text = alloti_cursor_take(&r->in, length);
        uint32_t got = 0;
        if (text != NULL) {
            const allot_status status =
                alloti_builder_intern_string(r->builder, (const char *)text, (size_t)length, &got);
            expect_index(r, status, got, i, "string");
        }
    }
    r->string_count = count;
    end_section(r);
}

static void read_fx(native_reader *r)
{
    if (!begin_section(r, ALLOTI_NATIVE_FX)) {
        return;
    }
    r->fx_count = alloti_cursor_varint(&r->in);
    for (uint64_t i = 0; has_more(r, i, r->fx_count); i++) {
        allot_frame_fx fx;
        fx.node_op = take_string(r);
        fx.node_name = take_string(r);
        fx.node_target = take_string(r);
        fx.original_trace = take_string(r);
        uint32_t got = 0;
        if (!r->in.has_failed) {
            const allot_status status = alloti_builder_intern_fx(r->builder, &fx, &got);
            expect_index(r, status, got, i, "fx");
        }
    }
    end_section(r);
}

static void read_frames(native_reader *r)
{
    if (!begin_section(r, ALLOTI_NATIVE_FRAMES)) {
        return;
    }
    r->frame_count = alloti_cursor_varint(&r->in);
    for (uint64_t i = 0; has_more(r, i, r->frame_count); i++) {
        allot_frame frame;
        frame.name = take_string(r);
        frame.filename = take_string(r);
        frame.line = take_below(r, &r->in, UINT64_C(1) << 32, "line");
        frame.fx = take_index(r, &r->in, r->fx_count, "fx");
        uint32_t got = 0;
        if (!r->in.has_failed) {
            const allot_status status = alloti_builder_intern_frame(r->builder, &frame, &got);
            expect_index(r, status, got, i, "frame");
        }
    }
    end_section(r);
}

static void read_stack(native_reader *r, uint64_t number)
{
    const uint64_t count = alloti_cursor_varint(&r->in);
    if (count > r->in.size - r->in.pos) {
        r->in.has_failed = true;
    }
    if (r->in.has_failed) {
        return;
    }
    r->status = alloti_array_reserve(&r->frames, &r->frames_capacity, count, sizeof *r->frames);
    for (uint64_t k = 0; has_more(r, k, count); k++) {
        r->frames[k] = take_below(r, &r->in, r->frame_count, "frame");
    }
    uint32_t got = 0;
    if (is_well(r) && !r->in.has_failed) {
        const allot_status status =
            alloti_builder_intern_stack(r->builder, r->frames, (uint32_t)count, &got);
        expect_index(r, status, got, number, "stack");
    }
}

static void read_stacks(native_reader *r)
{
    if (!begin_section(r, ALLOTI_NATIVE_STACKS)) {
        return;
    }
    r->stack_count = alloti_cursor_varint(&r->in);
    for (uint64_t i = 0; has_more(r, i, r->stack_count); i++) {
        read_stack(r, i);
    }
    end_section(r);
}

static void read_streams(native_reader *r)
{
    if (!begin_section(r, ALLOTI_NATIVE_STREAMS)) {
        return;
    }
    r->stream_count = alloti_cursor_varint(&r->in);
    for (uint64_t i = 0; has_more(r, i, r->stream_count); i++) {
        const uint64_t value = alloti_cursor_varint(&r->in);
        uint32_t got = 0;
        if (!r->in.has_failed) {
            const allot_status status = alloti_builder_intern_stream(r->builder, value, &got);
            expect_index(r, status, got, i, "stream");
        }
    }
    end_section(r);
}

static void read_pools(native_reader *r)
{
    if (!begin_section(r, ALLOTI_NATIVE_POOLS)) {
        return;
    }
    r->pool_count = alloti_cursor_varint(&r->in);
    for (uint64_t i = 0; has_more(r, i, r->pool_count); i++) {
        allot_pool_id id;
        id.first = alloti_cursor_varint(&r->in);
        id.second = alloti_cursor_varint(&r->in);
        uint32_t got = 0;
        if (!r->in.has_failed) {
            const allot_status status = alloti_builder_intern_pool(r->builder, id, &got);
            expect_index(r, status, got, i, "pool");
        }
    }
    end_section(r);
}

/* Cut the section into its columns; those that are missing stay empty. */
static void take_columns(native_reader *r, uint64_t present, alloti_cursor *columns)
{
    for (unsigned i = 0; i < ALLOTI_COLUMN_COUNT; i++) {
        columns[i] = (alloti_cursor){.size = 0};
        if ((present >> i & 1) == 0) {
            continue;
        }
        const uint64_t size = alloti_cursor_varint(&r->in);
        const uint8_t *const data = alloti_cursor_take(&r->in, size);
        columns[i] = (alloti_cursor){.data = data, .size = data == NULL ? 0 : size};
    }
}

/** Values of the row before, for the columns of differences. */
typedef struct row_before {
    uint64_t addr;
    uint64_t time_ns;
    uint64_t total_allocated;
    uint64_t total_reserved;
} row_before;

static uint64_t take_delta(alloti_cursor *column, uint64_t *before)
{
    *before += alloti_unzigzag(alloti_cursor_varint(column));
    return *before;
}

static bool has_column(uint64_t present, alloti_native_column column)
{
    return (present >> column & 1) != 0;
}

static void take_event(native_reader *r, alloti_cursor *c, uint64_t present, row_before *before,
                       alloti_event *event)
{
    *event = ALLOTI_EVENT_INIT;
    event->kind = (allot_event_kind)take_below(r, &c[ALLOTI_COLUMN_KIND], ALLOT_EVENT_KIND_COUNT,
                                               "event kind");
    event->addr = take_delta(&c[ALLOTI_COLUMN_ADDR], &before->addr);
    event->size = alloti_cursor_varint(&c[ALLOTI_COLUMN_SIZE]);
    event->time_ns = (int64_t)take_delta(&c[ALLOTI_COLUMN_TIME], &before->time_ns);
    event->stream = take_below(r, &c[ALLOTI_COLUMN_STREAM], r->stream_count, "stream");
    event->pool = take_index(r, &c[ALLOTI_COLUMN_POOL], r->pool_count, "pool");
    event->stack = take_index(r, &c[ALLOTI_COLUMN_STACK], r->stack_count, "stack");
    if (has_column(present, ALLOTI_COLUMN_CATEGORY)) {
        event->category = (allot_category)take_below(r, &c[ALLOTI_COLUMN_CATEGORY],
                                                     ALLOT_CATEGORY_COUNT, "category");
    }
    if (has_column(present, ALLOTI_COLUMN_CONTEXT)) {
        event->context = take_index(r, &c[ALLOTI_COLUMN_CONTEXT], r->string_count, "string");
    }
    if (has_column(present, ALLOTI_COLUMN_METADATA)) {
        event->metadata = take_index(r, &c[ALLOTI_COLUMN_METADATA], r->string_count, "string");
    }
    if (has_column(present, ALLOTI_COLUMN_TOTAL_ALLOCATED)) {
        event->total_allocated =
            take_delta(&c[ALLOTI_COLUMN_TOTAL_ALLOCATED], &before->total_allocated);
        event->total_reserved =
            take_delta(&c[ALLOTI_COLUMN_TOTAL_RESERVED], &before->total_reserved);
    }
}

static bool columns_have_failed(const alloti_cursor *columns)
{
    bool has_failed = false;
    for (unsigned i = 0; i < ALLOTI_COLUMN_COUNT; i++) {
        has_failed = has_failed || columns[i].has_failed;
    }
    return has_failed;
}

static bool columns_are_used_up(const alloti_cursor *columns)
{
    for (unsigned i = 0; i < ALLOTI_COLUMN_COUNT; i++) {
        if (columns[i].pos != columns[i].size) {
            return false;
        }
    }
    return true;
}

static void read_events(native_reader *r, uint32_t device)
{
    const uint64_t required = (UINT64_C(1) << ALLOTI_COLUMN_CATEGORY) - 1;
    const uint64_t totals =
        UINT64_C(1) << ALLOTI_COLUMN_TOTAL_ALLOCATED | UINT64_C(1) << ALLOTI_COLUMN_TOTAL_RESERVED;
    if (!begin_section(r, ALLOTI_NATIVE_EVENTS)) {
        return;
    }
    const uint64_t count = alloti_cursor_varint(&r->in);
    const uint64_t present = alloti_cursor_varint(&r->in);
    if (present >> ALLOTI_COLUMN_COUNT != 0 || (present & required) != 0 ||
        ((present & totals) != 0 && (present & totals) != totals)) {
        fail_value(r, "set of columns", present);
        return;
    }
    alloti_cursor columns[ALLOTI_COLUMN_COUNT];
    row_before before = {.addr = 0};
    take_columns(r, present | required, columns);
    for (uint64_t i = 0; has_more(r, i, count); i++) {
        alloti_event event;
        take_event(r, columns, present, &before, &event);
        r->in.has_failed = r->in.has_failed || columns_have_failed(columns);
        if (is_well(r) && !r->in.has_failed) {
            r->status = alloti_builder_add_event(r->builder, device, &event);
        }
    }
    end_section(r);
    if (is_well(r) && !columns_are_used_up(columns)) {
        r->status =
            alloti_section_fail(r->sections, "its columns hold more than %" PRIu64 " rows", count);
    }
}

static void read_block(native_reader *r, uint64_t *before)
{
    allot_block block;
    block.address = take_delta(&r->in, before);
    block.size = alloti_cursor_varint(&r->in);
    block.requested_size = alloti_cursor_varint(&r->in);
    block.stack = take_index(r, &r->in, r->stack_count, "stack");
    block.context = take_string(r);
    block.metadata = take_string(r);
    block.state = (uint8_t)take_below(r, &r->in, ALLOT_BLOCK_PENDING_FREE + 1, "block state");
    block.category = (uint8_t)take_below(r, &r->in, ALLOT_CATEGORY_COUNT, "category");
    if (is_well(r) && !r->in.has_failed) {
        r->status = alloti_builder_add_block(r->builder, &block);
    }
}

static void read_segment(native_reader *r)
{
    allot_segment segment = {.address = alloti_cursor_varint(&r->in)};
    segment.total_size = alloti_cursor_varint(&r->in);
    segment.allocated_size = alloti_cursor_varint(&r->in);
    segment.active_size = alloti_cursor_varint(&r->in);
    segment.requested_size = alloti_cursor_varint(&r->in);
    segment.device = take_below(r, &r->in, r->device_count, "device");
    segment.stream = take_below(r, &r->in, r->stream_count, "stream");
    segment.pool = take_index(r, &r->in, r->pool_count, "pool");
    segment.stack = take_index(r, &r->in, r->stack_count, "stack");
    const uint32_t flags = take_below(r, &r->in, 4, "set of flags");
    segment.is_large = (flags & 1) != 0;
    segment.is_expandable = (flags & 2) != 0;
    const uint64_t block_count = alloti_cursor_varint(&r->in);
    if (is_well(r) && !r->in.has_failed) {
        r->status = alloti_builder_add_segment(r->builder, &segment);
    }
    uint64_t before = segment.address;
    for (uint64_t i = 0; has_more(r, i, block_count); i++) {
        read_block(r, &before);
    }
}

static void read_segments(native_reader *r)
{
    if (!begin_section(r, ALLOTI_NATIVE_SEGMENTS)) {
        return;
    }
    const uint64_t count = alloti_cursor_varint(&r->in);
    for (uint64_t i = 0; has_more(r, i, count); i++) {
        read_segment(r);
    }
    end_section(r);
}

static void read_annotations(native_reader *r)
{
    if (!begin_section(r, ALLOTI_NATIVE_ANNOTATIONS)) {
        return;
    }
    uint64_t before = 0;
    const uint64_t count = alloti_cursor_varint(&r->in);
    for (uint64_t i = 0; has_more(r, i, count); i++) {
        allot_annotation annotation = {.name = take_string(r)};
        annotation.device = take_index(r, &r->in, r->device_count, "device");
        annotation.time_ns = (int64_t)take_delta(&r->in, &before);
        annotation.is_start = take_below(r, &r->in, 2, "flag") != 0;
        if (is_well(r) && !r->in.has_failed) {
            r->status = alloti_builder_add_annotation(r->builder, &annotation);
        }
    }
    end_section(r);
}

static void read_setting(native_reader *r)
{
    allot_setting setting = {.key = take_string(r)};
    setting.type =
        (allot_setting_type)take_below(r, &r->in, ALLOT_SETTING_NONE + 1, "setting type");
    setting.integer = (int64_t)alloti_unzigzag(alloti_cursor_varint(&r->in));
    const uint64_t number = alloti_cursor_le64(&r->in);
    memcpy(&setting.number, &number, sizeof setting.number);
    /* Only a STRING has a string; what stands there otherwise is never looked up. */
    const uint64_t limit =
        setting.type == ALLOT_SETTING_STRING ? r->string_count : UINT64_C(1) << 32;
    setting.string = take_index(r, &r->in, limit, "string");
    if (is_well(r) && !r->in.has_failed) {
        r->status = alloti_builder_add_setting(r->builder, &setting);
    }
}

static void read_settings(native_reader *r)
{
    if (!begin_section(r, ALLOTI_NATIVE_SETTINGS)) {
        return;
    }
    const uint64_t count = alloti_cursor_varint(&r->in);
    for (uint64_t i = 0; has_more(r, i, count); i++) {
        read_setting(r);
    }
    end_section(r);
}

static void read_end(native_reader *r)
{
    if (!begin_section(r, ALLOTI_NATIVE_END)) {
        return;
    }
    const uint64_t claimed = alloti_cursor_varint(&r->in);
    if (claimed != alloti_sections_count(r->sections) - 1) { /* without this one */
        fail_value(r, "number of sections", claimed);
    }
    end_section(r);
    if (is_well(r)) {
        r->status = alloti_sections_finish(r->sections);
    }
}

static allot_status read_native(alloti_source *source, const alloti_progress *progress,
                                alloti_builder *builder)
{
    native_reader r = {.builder = builder};
    r.status = alloti_sections_begin(source, progress, &r.sections);
    read_meta(&r);
    read_strings(&r);
    read_fx(&r);
    read_frames(&r);
    read_stacks(&r);
    read_streams(&r);
    read_pools(&r);
    for (uint64_t i = 0; i < r.device_count && is_well(&r); i++) {
        read_events(&r, (uint32_t)i);
    }
    read_segments(&r);
    read_annotations(&r);
    read_settings(&r);
    read_end(&r);
    alloti_sections_end(r.sections);
    free(r.frames);
    return r.status;
}

static bool detect(const uint8_t *head, size_t size)
{
    return size >= ALLOTI_NATIVE_MAGIC_SIZE &&
           memcmp(head, ALLOTI_NATIVE_MAGIC, ALLOTI_NATIVE_MAGIC_SIZE) == 0;
}

const alloti_reader alloti_reader_native = {
    .format = ALLOT_TRACE_FORMAT_ALLOT, .detect = detect, .read = read_native};
