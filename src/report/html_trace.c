/* SPDX-License-Identifier: MIT */
/* A history as the page reads it: blocks and segments as columns, bands per bucket, marks. */
#include "report/html_trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/status.h"
#include "report/html_lod.h"
#include "report/html_names.h"
#include "report/html_series.h"

enum {
    BUCKETS = 4096,     /* states kept of the whole trace */
    BANDS = 11,         /* groups with a band of their own */
    MARKS = 1000,       /* out-of-memory marks at most */
    STEPS = 10000,      /* step marks at most */
    BLOCK_MAX = 300000, /* blocks kept one by one, unless the caller says */
};

/** Everything made for one trace. Arrays are [blocks.count]. */
typedef struct picture {
    const alloti_html_trace *what;
    allot_allocations table;
    uint64_t point_count;
    uint32_t *start;
    uint32_t *end;
    uint32_t *by_end;
    uint32_t *group; /* of the mode at hand */
    uint8_t *keep;
    uint64_t kept;
    uint64_t dropped_largest;
    alloti_lod_blocks blocks;
    alloti_lod lod;
    alloti_names names;
} picture;

static void picture_fini(picture *self)
{
    free(self->start);
    free(self->end);
    free(self->by_end);
    free(self->group);
    free(self->keep);
    alloti_lod_fini(&self->lod);
    alloti_names_fini(&self->names);
}

/** Rows from `start` and `end` events to points; a block freed without an end lives to the last. */
static void find_points(picture *self)
{
    const allot_allocations *const table = &self->table;
    for (uint32_t i = 0; i < table->count; i++) {
        const uint32_t end = table->free_completed_event[i];
        self->start[i] = alloti_html_point(table->alloc_event[i]);
        self->end[i] = end == ALLOT_NONE ? (uint32_t)self->point_count : end + 1;
        if (self->end[i] <= self->start[i]) {
            self->end[i] = self->start[i] + 1;
        }
    }
}

static allot_status picture_init(picture *self, const alloti_html_trace *what)
{
    *self = (picture){.what = what};
    allot_history_get_allocations(what->history, &self->table);
    uint64_t event_count = 0;
    allot_history_timeline(what->history, ALLOT_MEASURE_ACTIVE, NULL, &event_count);
    self->point_count = event_count + 1;
    const uint64_t rows = (uint64_t)self->table.count + 1;
    self->start = alloti_alloc_array(rows, sizeof *self->start);
    self->end = alloti_alloc_array(rows, sizeof *self->end);
    self->by_end = alloti_alloc_array(rows, sizeof *self->by_end);
    self->group = alloti_alloc_array(rows, sizeof *self->group);
    self->keep = alloti_calloc_array(rows, sizeof *self->keep);
    if (self->start == NULL || self->end == NULL || self->by_end == NULL || self->group == NULL ||
        self->keep == NULL) {
        return alloti_fail_memory(rows * sizeof *self->start);
    }
    find_points(self);
    self->blocks = (alloti_lod_blocks){.count = self->table.count,
                                       .point_count = self->point_count,
                                       .start = self->start,
                                       .end = self->end,
                                       .size = self->table.size,
                                       .by_end = self->by_end};
    allot_status status = alloti_lod_sort_ends(&self->blocks);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_lod_init(&self->blocks, BUCKETS, &self->lod);
    }
    if (status == ALLOT_STATUS_OK) {
        status =
            alloti_lod_choose(&self->blocks, what->block_max != 0 ? what->block_max : BLOCK_MAX,
                              self->keep, &self->kept, &self->dropped_largest);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_names_init(&self->names, allot_history_trace(what->history), what->lines);
    }
    return status;
}

static void write_device(const picture *self, alloti_json *json)
{
    static const char *const KINDS[] = {"GPU", "pinned memory", "CPU"};
    const allot_trace *const trace = allot_history_trace(self->what->history);
    const allot_trace_device *const device =
        allot_trace_get_device(trace, allot_history_device(self->what->history));
    char text[64];
    snprintf(text, sizeof text, "%s %u",
             KINDS[device->memory <= ALLOT_MEMORY_CPU ? device->memory : 0], device->index);
    alloti_json_put_string(json, "device", text);
}

static void write_traits(const picture *self, alloti_json *json)
{
    const allot_trace *const trace = allot_history_trace(self->what->history);
    uint32_t held = 0;
    allot_history_held(self->what->history, &held);
    alloti_json_object_begin(json, "has");
    alloti_json_put_bool(json, "addresses", allot_trace_has(trace, ALLOT_TRACE_HAS_ADDRESSES));
    alloti_json_put_bool(json, "segments", held != 0);
    alloti_json_put_bool(json, "stacks", allot_trace_has(trace, ALLOT_TRACE_HAS_STACKS));
    alloti_json_object_end(json);
}

static void write_summary(const picture *self, alloti_json *json)
{
    const allot_history *const history = self->what->history;
    const allot_peak allocated = allot_history_peak(history, ALLOT_MEASURE_ALLOCATED);
    const allot_peak reserved = allot_history_peak(history, ALLOT_MEASURE_RESERVED);
    alloti_json_object_begin(json, "summary");
    alloti_json_put_u64(json, "peak_allocated", allocated.size);
    alloti_json_put_u64(json, "peak_point", alloti_html_point(allocated.event));
    alloti_json_put_u64(json, "peak_reserved", reserved.size);
    alloti_json_put_u64(json, "allocation_count", self->table.count);
    alloti_json_put_u64(json, "small_count", self->table.count - self->kept);
    alloti_json_put_u64(json, "small_limit", self->dropped_largest);
    alloti_json_object_end(json);
}

static void write_marks(const picture *self, alloti_json *json)
{
    const allot_history *const history = self->what->history;
    allot_events events;
    allot_trace_get_events(allot_history_trace(history), allot_history_device(history), &events);
    alloti_json_array_begin(json, "marks");
    uint32_t count = 0;
    for (uint64_t i = 0; i < events.count && count < MARKS; i++) {
        if (events.kind[i] == ALLOT_EVENT_OOM) {
            alloti_json_object_begin(json, NULL);
            alloti_json_put_u64(json, "event", i);
            alloti_json_put_u64(json, "size", events.size[i]);
            alloti_json_put_u64(json, "free", events.addr[i]);
            alloti_json_object_end(json);
            count++;
        }
    }
    alloti_json_array_end(json);
    uint32_t step_count = 0;
    const uint32_t *const steps = allot_categories_steps(self->what->categories, &step_count);
    alloti_json_array_begin(json, "steps");
    for (uint32_t i = 0; i < step_count && i < STEPS; i++) {
        alloti_json_put_u64(json, NULL, steps[i]);
    }
    alloti_json_array_end(json);
}

static void write_categories(const picture *self, alloti_json *json)
{
    alloti_json_array_begin(json, "categories");
    for (unsigned c = 0; c < ALLOT_CATEGORY_COUNT; c++) {
        alloti_json_put_string(json, NULL, allot_category_name((allot_category)c));
    }
    alloti_json_array_end(json);
    alloti_json_put_bool(json, "categories_inferred",
                         allot_categories_are_inferred(self->what->categories));
}

/** What a column says of one kept block. */
typedef uint64_t (*block_value)(picture *self, uint32_t row);

static uint64_t value_start(picture *self, uint32_t row)
{
    return self->start[row];
}

static uint64_t value_life(picture *self, uint32_t row)
{
    return self->end[row] - self->start[row];
}

static uint64_t value_size(picture *self, uint32_t row)
{
    return self->table.size[row];
}

/** Bytes of the block that were not asked for. */
static uint64_t value_rest(picture *self, uint32_t row)
{
    const uint64_t size = self->table.size[row];
    const uint64_t requested = self->table.requested[row];
    return requested < size ? size - requested : 0;
}

static uint64_t value_address(picture *self, uint32_t row)
{
    return self->table.addr[row];
}

static uint64_t value_stack(picture *self, uint32_t row)
{
    return alloti_names_stack(&self->names, self->table.stack[row]);
}

static uint64_t value_category(picture *self, uint32_t row)
{
    return allot_categories_all(self->what->categories)[row];
}

static void write_blocks(picture *self, alloti_html_page *page)
{
    static const struct {
        const char *key;
        block_value value;
        bool is_delta;
    } COLUMNS[] = {
        {"start", value_start, true},        {"life", value_life, false},
        {"size", value_size, false},         {"rest", value_rest, false},
        {"address", value_address, true},    {"stack", value_stack, false},
        {"category", value_category, false},
    };
    alloti_json_object_begin(&page->json, "allocations");
    for (size_t c = 0; c < sizeof COLUMNS / sizeof COLUMNS[0]; c++) {
        alloti_pack_column column = alloti_pack_begin(&page->pack, COLUMNS[c].is_delta);
        for (uint32_t row = 0; row < self->table.count; row++) {
            if (self->keep[row] != 0) {
                alloti_pack_put(&column, COLUMNS[c].value(self, row));
            }
        }
        alloti_pack_end(&column, &page->json, COLUMNS[c].key);
    }
    alloti_json_object_end(&page->json);
}

static uint64_t segment_value(const picture *self, const allot_held *held, unsigned column)
{
    const uint64_t start = alloti_html_point(held->begin_event);
    const uint64_t end =
        held->end_event == ALLOT_NONE ? self->point_count : (uint64_t)held->end_event + 1;
    switch (column) {
    case 0:
        return start;
    case 1:
        return end > start ? end - start : 0;
    case 2:
        return held->size;
    case 3:
        return held->address;
    case 4:
        return held->stream == ALLOT_NONE
                   ? 0
                   : allot_trace_stream(allot_history_trace(self->what->history), held->stream);
    default:
        return (held->is_large ? 1u : 0u) | (held->is_expandable ? 2u : 0u);
    }
}

static void write_segments(const picture *self, alloti_html_page *page)
{
    static const char *const KEYS[] = {"start", "life", "size", "address", "stream", "flags"};
    uint32_t count = 0;
    const allot_held *const held = allot_history_held(self->what->history, &count);
    alloti_json_object_begin(&page->json, "segments");
    for (unsigned c = 0; c < sizeof KEYS / sizeof KEYS[0]; c++) {
        alloti_pack_column column = alloti_pack_begin(&page->pack, c == 0 || c == 3);
        for (uint32_t i = 0; i < count; i++) {
            alloti_pack_put(&column, segment_value(self, &held[i], c));
        }
        alloti_pack_end(&column, &page->json, KEYS[c]);
    }
    alloti_json_object_end(&page->json);
}

/** Fill self->group with the page's groups of a mode; returns how many groups there are. */
static uint32_t find_groups(picture *self, allot_group_by by)
{
    for (uint32_t row = 0; row < self->table.count; row++) {
        const uint32_t stack = self->table.stack[row];
        self->group[row] = by == ALLOT_GROUP_CATEGORY ? (uint32_t)value_category(self, row)
                           : by == ALLOT_GROUP_STACK  ? alloti_names_stack(&self->names, stack)
                                                      : allot_lines_of(self->what->lines, stack);
    }
    return by == ALLOT_GROUP_CATEGORY ? ALLOT_CATEGORY_COUNT
           : by == ALLOT_GROUP_STACK  ? self->names.stacks.count + 1
                                      : allot_lines_count(self->what->lines);
}

static allot_status write_bands(picture *self, alloti_html_page *page, allot_group_by by)
{
    const uint32_t group_count = find_groups(self, by);
    alloti_lod_bands bands = {0};
    const allot_status status =
        alloti_lod_bands_init(&self->blocks, &self->lod, self->group, group_count, BANDS, &bands);
    if (status == ALLOT_STATUS_OK) {
        alloti_json_object_begin(&page->json, allot_group_name(by));
        alloti_json_array_begin(&page->json, "groups");
        for (uint32_t k = 0; k < bands.count; k++) {
            alloti_json_put_u64(&page->json, NULL, bands.groups[k]);
        }
        alloti_json_array_end(&page->json);
        alloti_pack_array(&page->pack, &page->json, "values", true, bands.sizes,
                          (uint64_t)bands.count * self->lod.bucket_count);
        alloti_json_object_end(&page->json);
    }
    alloti_lod_bands_fini(&bands);
    return status;
}

static allot_status write_lod(picture *self, alloti_html_page *page)
{
    static const allot_group_by MODES[] = {ALLOT_GROUP_LINE, ALLOT_GROUP_STACK,
                                           ALLOT_GROUP_CATEGORY};
    const alloti_lod *const lod = &self->lod;
    alloti_json_object_begin(&page->json, "lod");
    alloti_pack_column at = alloti_pack_begin(&page->pack, true);
    for (uint32_t b = 0; b < lod->bucket_count; b++) {
        alloti_pack_put(&at, lod->at[b]);
    }
    alloti_pack_end(&at, &page->json, "at");
    alloti_pack_array(&page->pack, &page->json, "total", true, lod->total, lod->bucket_count);
    alloti_pack_array(&page->pack, &page->json, "low", true, lod->low, lod->bucket_count);
    allot_status status = ALLOT_STATUS_OK;
    for (size_t m = 0; m < sizeof MODES / sizeof MODES[0] && status == ALLOT_STATUS_OK; m++) {
        status = write_bands(self, page, MODES[m]);
    }
    if (status == ALLOT_STATUS_OK && self->kept < self->table.count) {
        uint64_t *const small = alloti_calloc_array(lod->bucket_count, sizeof *small);
        if (small == NULL) {
            status = alloti_fail_memory(lod->bucket_count * sizeof *small);
        } else {
            alloti_lod_sum_dropped(&self->blocks, lod, self->keep, small);
            alloti_pack_array(&page->pack, &page->json, "small", true, small, lod->bucket_count);
        }
        free(small);
    }
    alloti_json_object_end(&page->json);
    return status;
}

static allot_status picture_write(picture *self, alloti_html_page *page)
{
    const allot_history *const history = self->what->history;
    alloti_json *const json = &page->json;
    alloti_json_put_string(json, "name", self->what->name);
    write_device(self, json);
    alloti_json_put_u64(json, "event_count", self->point_count - 1);
    alloti_json_put_u64(json, "limit", self->what->limit);
    alloti_json_put_u64(json, "moment_point", alloti_html_point(self->what->event));
    write_traits(self, json);
    write_summary(self, json);
    write_marks(self, json);
    write_categories(self, json);
    write_blocks(self, page);
    write_segments(self, page);
    uint64_t initial = 0;
    uint64_t count = 0;
    const uint64_t *const reserved =
        allot_history_timeline(history, ALLOT_MEASURE_RESERVED, &initial, &count);
    alloti_html_write_steps(page, "reserved", initial, reserved, count);
    alloti_html_write_times(page, allot_history_trace(history), allot_history_device(history));
    const allot_status status = write_lod(self, page);
    alloti_names_write(&self->names, json, &page->pack);
    return status;
}

allot_status alloti_html_trace_write(const alloti_html_trace *what, alloti_html_page *page)
{
    picture self;
    allot_status status = picture_init(&self, what);
    alloti_json_object_begin(&page->json, NULL);
    if (status == ALLOT_STATUS_OK) {
        status = picture_write(&self, page);
    }
    alloti_json_object_end(&page->json);
    picture_fini(&self);
    return status;
}
