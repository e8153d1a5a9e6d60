/* SPDX-License-Identifier: MIT */
#include "trace/columns.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/status.h"

void alloti_columns_fini(alloti_columns *columns)
{
    free(columns->kind);
    free(columns->category);
    free(columns->addr);
    free(columns->size);
    free(columns->time_ns);
    free(columns->stream);
    free(columns->pool);
    free(columns->stack);
    free(columns->context);
    free(columns->metadata);
    free(columns->total_allocated);
    free(columns->total_reserved);
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
    const allot_status status = alloti_trace_check_room(columns->count, "events on one device");
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

allot_status alloti_columns_push(alloti_columns *c, const alloti_event *event)
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

alloti_event alloti_columns_get(const alloti_columns *c, uint64_t i)
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
