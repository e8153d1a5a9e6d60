/* SPDX-License-Identifier: MIT */
#include "support/trace_equal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

/** Two traces, and where in them the comparison stands. */
typedef struct pair {
    const allot_trace *a;
    const allot_trace *b;
    const char *what;
    uint64_t device;
    uint64_t index;
    bool with_fx;
} pair;

static bool differ(const pair *p, const char *field)
{
    fprintf(stderr, "%s %" PRIu64 " of device %" PRIu64 ": %s differs\n", p->what, p->index,
            p->device, field);
    return check_that(false, __FILE__, __LINE__, field);
}

static bool same_u64(const pair *p, uint64_t a, uint64_t b, const char *field)
{
    if (a != b) {
        fprintf(stderr, "%" PRIu64 " and %" PRIu64 "\n", a, b);
    }
    return a == b || differ(p, field);
}

static bool strings_match(const pair *p, uint32_t a, uint32_t b)
{
    size_t length_a = 0;
    size_t length_b = 0;
    if (a == ALLOT_NONE || b == ALLOT_NONE) {
        return a == b;
    }
    const char *const text_a = allot_trace_string(p->a, a, &length_a);
    const char *const text_b = allot_trace_string(p->b, b, &length_b);
    return length_a == length_b && memcmp(text_a, text_b, length_a) == 0;
}

static bool same_string(const pair *p, uint32_t a, uint32_t b, const char *field)
{
    return strings_match(p, a, b) || differ(p, field);
}

static bool fx_match(const pair *p, uint32_t a, uint32_t b)
{
    if (!p->with_fx || a == ALLOT_NONE || b == ALLOT_NONE) {
        return !p->with_fx || a == b;
    }
    const allot_frame_fx *const x = allot_trace_fx(p->a, a);
    const allot_frame_fx *const y = allot_trace_fx(p->b, b);
    return strings_match(p, x->node_op, y->node_op) &&
           strings_match(p, x->node_name, y->node_name) &&
           strings_match(p, x->node_target, y->node_target) &&
           strings_match(p, x->original_trace, y->original_trace);
}

static bool same_stack(const pair *p, uint32_t a, uint32_t b)
{
    if (a == ALLOT_NONE || b == ALLOT_NONE) {
        return a == b || differ(p, "stack");
    }
    uint32_t count_a = 0;
    uint32_t count_b = 0;
    const uint32_t *const frames_a = allot_trace_stack(p->a, a, &count_a);
    const uint32_t *const frames_b = allot_trace_stack(p->b, b, &count_b);
    if (count_a != count_b) {
        return differ(p, "stack depth");
    }
    for (uint32_t i = 0; i < count_a; i++) {
        const allot_frame *const x = allot_trace_frame(p->a, frames_a[i]);
        const allot_frame *const y = allot_trace_frame(p->b, frames_b[i]);
        if (x->line != y->line || !strings_match(p, x->name, y->name) ||
            !strings_match(p, x->filename, y->filename) || !fx_match(p, x->fx, y->fx)) {
            return differ(p, "frame");
        }
    }
    return true;
}

static bool same_stream(const pair *p, uint32_t a, uint32_t b)
{
    return same_u64(p, allot_trace_stream(p->a, a), allot_trace_stream(p->b, b), "stream");
}

static bool same_pool(const pair *p, uint32_t a, uint32_t b)
{
    if (a == ALLOT_NONE || b == ALLOT_NONE) {
        return a == b || differ(p, "pool");
    }
    const allot_pool_id x = allot_trace_pool(p->a, a);
    const allot_pool_id y = allot_trace_pool(p->b, b);
    return (x.first == y.first && x.second == y.second) || differ(p, "pool");
}

/* Value of an optional column; what a missing one means if it is missing. */
static uint32_t index_at(const uint32_t *column, uint64_t i)
{
    return column == NULL ? ALLOT_NONE : column[i];
}

static bool same_event(const pair *p, const allot_events *a, const allot_events *b, uint64_t i)
{
    const uint8_t category_a = a->category == NULL ? 0 : a->category[i];
    const uint8_t category_b = b->category == NULL ? 0 : b->category[i];
    return same_u64(p, a->kind[i], b->kind[i], "kind") &&
           same_u64(p, a->addr[i], b->addr[i], "address") &&
           same_u64(p, a->size[i], b->size[i], "size") &&
           same_u64(p, (uint64_t)a->time_ns[i], (uint64_t)b->time_ns[i], "time") &&
           same_u64(p, category_a, category_b, "category") &&
           same_stream(p, a->stream[i], b->stream[i]) && same_pool(p, a->pool[i], b->pool[i]) &&
           same_stack(p, a->stack[i], b->stack[i]) &&
           same_string(p, index_at(a->context, i), index_at(b->context, i), "context") &&
           same_string(p, index_at(a->metadata, i), index_at(b->metadata, i), "metadata") &&
           (a->total_allocated == NULL ||
            (same_u64(p, a->total_allocated[i], b->total_allocated[i], "total allocated") &&
             same_u64(p, a->total_reserved[i], b->total_reserved[i], "total reserved")));
}

static bool same_device(pair *p, uint32_t device)
{
    const allot_trace_device *const x = allot_trace_get_device(p->a, device);
    const allot_trace_device *const y = allot_trace_get_device(p->b, device);
    allot_events a;
    allot_events b;
    allot_trace_get_events(p->a, device, &a);
    allot_trace_get_events(p->b, device, &b);
    p->device = device;
    p->what = "device";
    if (!same_u64(p, x->memory, y->memory, "memory kind") ||
        !same_u64(p, x->index, y->index, "number") ||
        !same_u64(p, a.count, b.count, "event count") ||
        !same_u64(p, a.total_allocated != NULL, b.total_allocated != NULL, "presence of totals")) {
        return false;
    }
    p->what = "event";
    for (p->index = 0; p->index < a.count; p->index++) {
        if (!same_event(p, &a, &b, p->index)) {
            return false;
        }
    }
    return true;
}

static bool same_traits(pair *p, bool with_segments)
{
    p->what = "trait";
    for (unsigned i = 0; i <= ALLOT_TRACE_HAS_TOTALS; i++) {
        const allot_trace_trait trait = (allot_trace_trait)i;
        const bool is_of_segments =
            trait == ALLOT_TRACE_HAS_SEGMENTS || trait == ALLOT_TRACE_HAS_STACKS;
        p->index = i;
        if ((with_segments || !is_of_segments) &&
            !same_u64(p, allot_trace_has(p->a, trait), allot_trace_has(p->b, trait), "trait")) {
            return false;
        }
    }
    return true;
}

bool trace_events_equal(const allot_trace *a, const allot_trace *b, bool with_fx)
{
    pair p = {.a = a, .b = b, .what = "trace", .with_fx = with_fx};
    if (!same_u64(&p, allot_trace_device_count(a), allot_trace_device_count(b), "device count") ||
        !same_traits(&p, false)) {
        return false;
    }
    for (uint32_t i = 0; i < allot_trace_device_count(a); i++) {
        if (!same_device(&p, i)) {
            return false;
        }
    }
    return true;
}

static bool same_block(const pair *p, const allot_block *a, const allot_block *b)
{
    return same_u64(p, a->address, b->address, "block address") &&
           same_u64(p, a->size, b->size, "block size") &&
           same_u64(p, a->requested_size, b->requested_size, "block requested size") &&
           same_u64(p, a->state, b->state, "block state") &&
           same_u64(p, a->category, b->category, "block category") &&
           same_stack(p, a->stack, b->stack) &&
           same_string(p, a->context, b->context, "block context") &&
           same_string(p, a->metadata, b->metadata, "block metadata");
}

static bool same_segment(const pair *p, const allot_segment *a, const allot_segment *b)
{
    return same_u64(p, a->address, b->address, "address") &&
           same_u64(p, a->total_size, b->total_size, "total size") &&
           same_u64(p, a->allocated_size, b->allocated_size, "allocated size") &&
           same_u64(p, a->active_size, b->active_size, "active size") &&
           same_u64(p, a->requested_size, b->requested_size, "requested size") &&
           same_u64(p, a->device, b->device, "device") &&
           same_u64(p, a->is_large, b->is_large, "type") &&
           same_u64(p, a->is_expandable, b->is_expandable, "expandability") &&
           same_u64(p, a->block_first, b->block_first, "first block") &&
           same_u64(p, a->block_count, b->block_count, "block count") &&
           same_stream(p, a->stream, b->stream) && same_pool(p, a->pool, b->pool) &&
           same_stack(p, a->stack, b->stack);
}

bool trace_segments_equal(const allot_trace *a, const allot_trace *b)
{
    pair p = {.a = a, .b = b, .what = "segment", .with_fx = true};
    uint32_t count_a = 0;
    uint32_t count_b = 0;
    const allot_segment *const segments_a = allot_trace_segments(a, &count_a);
    const allot_segment *const segments_b = allot_trace_segments(b, &count_b);
    if (!same_u64(&p, count_a, count_b, "segment count")) {
        return false;
    }
    for (p.index = 0; p.index < count_a; p.index++) {
        p.device = segments_a[p.index].device;
        if (!same_segment(&p, &segments_a[p.index], &segments_b[p.index])) {
            return false;
        }
    }
    const allot_block *const blocks_a = allot_trace_blocks(a, &count_a);
    const allot_block *const blocks_b = allot_trace_blocks(b, &count_b);
    p.what = "block";
    if (!same_u64(&p, count_a, count_b, "block count")) {
        return false;
    }
    for (p.index = 0; p.index < count_a; p.index++) {
        if (!same_block(&p, &blocks_a[p.index], &blocks_b[p.index])) {
            return false;
        }
    }
    return true;
}

bool trace_annotations_equal(const allot_trace *a, const allot_trace *b)
{
    pair p = {.a = a, .b = b, .what = "annotation"};
    uint32_t count_a = 0;
    uint32_t count_b = 0;
    const allot_annotation *const x = allot_trace_annotations(a, &count_a);
    const allot_annotation *const y = allot_trace_annotations(b, &count_b);
    if (!same_u64(&p, count_a, count_b, "annotation count")) {
        return false;
    }
    for (uint32_t i = 0; i < count_a; i++) {
        p.index = i;
        if (!same_string(&p, x[i].name, y[i].name, "name") ||
            !same_u64(&p, x[i].device, y[i].device, "device") ||
            !same_u64(&p, (uint64_t)x[i].time_ns, (uint64_t)y[i].time_ns, "time") ||
            !same_u64(&p, x[i].is_start, y[i].is_start, "stage")) {
            return false;
        }
    }
    return true;
}

bool trace_settings_equal(const allot_trace *a, const allot_trace *b)
{
    pair p = {.a = a, .b = b, .what = "setting"};
    uint32_t count_a = 0;
    uint32_t count_b = 0;
    const allot_setting *const x = allot_trace_settings(a, &count_a);
    const allot_setting *const y = allot_trace_settings(b, &count_b);
    if (!same_u64(&p, count_a, count_b, "setting count")) {
        return false;
    }
    for (uint32_t i = 0; i < count_a; i++) {
        p.index = i;
        if (!same_string(&p, x[i].key, y[i].key, "key") ||
            !same_u64(&p, x[i].type, y[i].type, "type") ||
            !same_u64(&p, (uint64_t)x[i].integer, (uint64_t)y[i].integer, "integer") ||
            (memcmp(&x[i].number, &y[i].number, sizeof x[i].number) != 0 &&
             !differ(&p, "number")) ||
            (x[i].type == ALLOT_SETTING_STRING &&
             !same_string(&p, x[i].string, y[i].string, "string"))) {
            return false;
        }
    }
    return true;
}

bool trace_equal(const allot_trace *a, const allot_trace *b)
{
    pair p = {.a = a, .b = b};
    return same_traits(&p, true) && trace_events_equal(a, b, true) && trace_segments_equal(a, b) &&
           trace_annotations_equal(a, b) && trace_settings_equal(a, b);
}

static allot_status buffer_write(void *context, const void *data, size_t size)
{
    trace_buffer *const buffer = context;
    char *const grown = realloc(buffer->data, buffer->size + size + 1);
    if (grown == NULL) {
        return ALLOT_STATUS_HOST_MEMORY;
    }
    memcpy(grown + buffer->size, data, size);
    buffer->data = grown;
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
    return ALLOT_STATUS_OK;
}

allot_sink trace_buffer_sink(trace_buffer *buffer)
{
    return (allot_sink){.write = buffer_write, .context = buffer};
}

allot_trace *trace_round_trip(const allot_trace *trace, allot_trace_format format)
{
    trace_buffer buffer = {.size = 0};
    const allot_sink sink = trace_buffer_sink(&buffer);
    allot_trace *back = NULL;
    if (CHECK_OK(allot_trace_write(trace, format, NULL, &sink))) {
        CHECK_OK(allot_trace_read_memory(buffer.data, buffer.size, "written", NULL, &back));
    }
    free(buffer.data);
    return back;
}
