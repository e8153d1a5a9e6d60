/* SPDX-License-Identifier: MIT */
/*
 * The table of allocations. Events are followed forwards; a map leads from an address to the last
 * row that used it. Rows of allocations that the trace saw begin are written into the columns at
 * once; those from before the trace are collected aside and put in front at the end, which is why
 * row numbers carry a mark until then.
 *
 * A trace without addresses is matched by size: a free ends the youngest allocation of its size.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/map64.h"
#include "replay/history.h"

/** Set in the number of a row that was there before the trace. */
#define INITIAL_MARK UINT32_C(0x80000000)

enum { PROGRESS_STEP = 1 << 16 };

/** A row from before the trace. */
typedef struct initial_row {
    uint64_t addr;
    uint64_t requested;
    uint64_t size;   /**< 0: not known. */
    uint32_t number; /**< In the order in which it was found. */
    uint32_t free_requested_event;
    uint32_t free_completed_event;
    uint32_t stack;
    uint32_t stream;
    uint32_t pool;
    uint32_t metadata;
    uint8_t category;
} initial_row;

typedef struct builder {
    allot_history *history;
    alloti_map64 last; /**< Address (size without addresses) to its last row. */
    uint32_t *older;   /**< Without addresses: the next older live row of the size. [count] */
    initial_row *initial;
    uint64_t initial_count;
    uint64_t initial_capacity;
    bool has_addresses;
} builder;

static allot_status allocate_columns(allot_history *history, uint64_t count)
{
    if (count >= INITIAL_MARK) {
        return alloti_fail(ALLOT_STATUS_FORMAT, "%" PRIu64 " allocations: too many", count);
    }
    const uint64_t room = count + 1;
    history->addr = alloti_alloc_array(room, sizeof *history->addr);
    history->size = alloti_alloc_array(room, sizeof *history->size);
    history->requested = alloti_alloc_array(room, sizeof *history->requested);
    history->category = alloti_calloc_array(room, sizeof *history->category);
    history->is_size_known = alloti_calloc_array(room, sizeof *history->is_size_known);
    uint32_t **const columns[] = {&history->alloc_event,
                                  &history->free_requested_event,
                                  &history->free_completed_event,
                                  &history->use,
                                  &history->stack,
                                  &history->stream,
                                  &history->pool,
                                  &history->metadata};
    bool ok = history->addr != NULL && history->size != NULL && history->requested != NULL &&
              history->category != NULL && history->is_size_known != NULL;
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
        *columns[c] = alloti_alloc_array(room, sizeof **columns[c]);
        ok = ok && *columns[c] != NULL;
    }
    history->allocation_of =
        alloti_alloc_array(history->events.count + 1, sizeof *history->allocation_of);
    return ok && history->allocation_of != NULL ? ALLOT_STATUS_OK : alloti_fail_memory(room * 66);
}

static uint64_t count_allocs(const allot_events *events)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < events->count; i++) {
        count += events->kind[i] == ALLOT_EVENT_ALLOC;
    }
    return count;
}

static uint32_t *free_requested_of(builder *b, uint32_t row)
{
    return (row & INITIAL_MARK) != 0 ? &b->initial[row & ~INITIAL_MARK].free_requested_event
                                     : &b->history->free_requested_event[row];
}

static uint32_t *free_completed_of(builder *b, uint32_t row)
{
    return (row & INITIAL_MARK) != 0 ? &b->initial[row & ~INITIAL_MARK].free_completed_event
                                     : &b->history->free_completed_event[row];
}

/* End a row at an event that is about something else. */
static allot_status end_unseen(builder *b, uint32_t row, uint32_t event)
{
    allot_history *const history = b->history;
    const allot_status status =
        alloti_array_reserve(&history->ended, &history->ended_capacity, history->ended_count + 1,
                             sizeof *history->ended);
    if (status == ALLOT_STATUS_OK) {
        *free_completed_of(b, row) = event;
        history->ended[history->ended_count++] = (alloti_ended){event, row};
    }
    return status;
}

static allot_status follow_alloc(builder *b, uint32_t event)
{
    allot_history *const history = b->history;
    const allot_events *const events = &history->events;
    const uint32_t row = history->count;
    const uint64_t key = b->has_addresses ? events->addr[event] : events->size[event];
    const uint32_t last = alloti_map64_get(&b->last, key);
    uint32_t use = 0;
    if (b->has_addresses && last != ALLOT_NONE) {
        use = (last & INITIAL_MARK) != 0 ? 1 : history->use[last] + 1;
        if (*free_completed_of(b, last) == ALLOT_NONE) {
            history->counts.realloc_of_live++;
            const allot_status status = end_unseen(b, last, event);
            if (status != ALLOT_STATUS_OK) {
                return status;
            }
        }
    }
    if (!b->has_addresses) {
        b->older[row] = last;
    }
    history->addr[row] = b->has_addresses ? events->addr[event] : 0;
    history->size[row] = events->size[event];
    history->requested[row] = events->size[event];
    history->category[row] =
        events->category == NULL ? ALLOT_CATEGORY_UNKNOWN : events->category[event];
    history->alloc_event[row] = event;
    history->free_requested_event[row] = ALLOT_NONE;
    history->free_completed_event[row] = ALLOT_NONE;
    history->use[row] = use;
    history->stack[row] = events->stack[event];
    history->stream[row] = events->stream[event];
    history->pool[row] = events->pool[event];
    history->metadata[row] = events->metadata == NULL ? ALLOT_NONE : events->metadata[event];
    history->allocation_of[event] = row;
    history->count++;
    return alloti_map64_set(&b->last, key, row);
}

/* A row for a block that was there before the trace; *out is its number with the mark. */
static allot_status add_initial(builder *b, const initial_row *row, uint32_t *out)
{
    allot_status status =
        alloti_array_reserve(&b->initial, &b->initial_capacity, b->initial_count + 1, sizeof *row);
    if (status == ALLOT_STATUS_OK && b->initial_count + 1 >= INITIAL_MARK) {
        status = alloti_fail(ALLOT_STATUS_FORMAT, "too many blocks from before the trace");
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    *out = (uint32_t)b->initial_count | INITIAL_MARK;
    b->initial[b->initial_count] = *row;
    b->initial[b->initial_count].number = (uint32_t)b->initial_count;
    b->initial_count++;
    return alloti_map64_set(&b->last, row->addr, *out);
}

/* Row that a free is about, made up if it was there before the trace; ALLOT_NONE if there is none.
 */
static allot_status row_of_free(builder *b, uint32_t event, uint32_t *out)
{
    const allot_events *const events = &b->history->events;
    const uint32_t last =
        alloti_map64_get(&b->last, b->has_addresses ? events->addr[event] : events->size[event]);
    *out = last;
    if (last != ALLOT_NONE && *free_completed_of(b, last) == ALLOT_NONE) {
        return ALLOT_STATUS_OK;
    }
    if (last != ALLOT_NONE || !b->has_addresses) {
        *out = ALLOT_NONE;
        b->history->counts.unmatched++;
        return ALLOT_STATUS_OK;
    }
    b->history->counts.initial_freed++;
    const initial_row row = {.addr = events->addr[event],
                             .requested = events->size[event],
                             .free_requested_event = ALLOT_NONE,
                             .free_completed_event = ALLOT_NONE,
                             .stack = ALLOT_NONE,
                             .stream = events->stream[event],
                             .pool = events->pool[event],
                             .metadata = ALLOT_NONE,
                             .category = events->category == NULL ? ALLOT_CATEGORY_UNKNOWN
                                                                  : events->category[event]};
    return add_initial(b, &row, out);
}

/* Without addresses, the youngest row of a size leaves the chain when it ends. */
static allot_status pop_by_size(builder *b, uint32_t row, uint32_t event)
{
    b->history->counts.matched_by_size++;
    uint32_t older = b->older[row];
    if (older == ALLOT_NONE) {
        /* The map cannot forget: the ended row stays, and is seen to be ended. */
        return ALLOT_STATUS_OK;
    }
    return alloti_map64_set(&b->last, b->history->events.size[event], older);
}

static allot_status follow_free(builder *b, uint32_t event)
{
    allot_history *const history = b->history;
    uint32_t row = ALLOT_NONE;
    allot_status status = row_of_free(b, event, &row);
    if (status != ALLOT_STATUS_OK || row == ALLOT_NONE) {
        return status;
    }
    history->allocation_of[event] = row;
    if (history->events.kind[event] == ALLOT_EVENT_FREE_REQUESTED) {
        *free_requested_of(b, row) = event;
        return ALLOT_STATUS_OK;
    }
    history->counts.completed_only += *free_requested_of(b, row) == ALLOT_NONE;
    *free_completed_of(b, row) = event;
    if (!b->has_addresses) {
        status = pop_by_size(b, row, event);
    }
    return status;
}

static allot_status follow_events(builder *b, const alloti_progress *progress)
{
    allot_history *const history = b->history;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < history->events.count; i++) {
        if (i % PROGRESS_STEP == 0) {
            status = alloti_progress_tell(progress, i, history->events.count);
        }
        history->allocation_of[i] = ALLOT_NONE;
        const uint8_t kind = history->events.kind[i];
        history->counts.oom += kind == ALLOT_EVENT_OOM;
        if (status == ALLOT_STATUS_OK && kind == ALLOT_EVENT_ALLOC) {
            status = follow_alloc(b, i);
        } else if (status == ALLOT_STATUS_OK &&
                   (kind == ALLOT_EVENT_FREE_REQUESTED || kind == ALLOT_EVENT_FREE_COMPLETED)) {
            status = follow_free(b, i);
        }
    }
    return status;
}

/* Bring one block that is active at the end together with its row. */
static allot_status match_block(builder *b, const allot_segment *segment, const allot_block *block,
                                uint8_t *is_active)
{
    allot_history *const history = b->history;
    const uint32_t last = alloti_map64_get(&b->last, block->address);
    if (last == ALLOT_NONE) {
        history->counts.initial_live++;
        const initial_row row = {.addr = block->address,
                                 .requested = block->requested_size,
                                 .size = block->size,
                                 .free_requested_event = ALLOT_NONE,
                                 .free_completed_event = ALLOT_NONE,
                                 .stack = block->stack,
                                 .stream = segment->stream,
                                 .pool = segment->pool,
                                 .metadata = block->metadata,
                                 .category = block->category};
        uint32_t ignored = 0;
        return add_initial(b, &row, &ignored);
    }
    if (*free_completed_of(b, last) != ALLOT_NONE) {
        history->counts.unmatched++;
    } else if ((last & INITIAL_MARK) != 0) {
        b->initial[last & ~INITIAL_MARK].size = block->size;
    } else {
        is_active[last] = 1;
        history->size[last] = block->size;
        history->is_size_known[last] = 1;
        if (history->category[last] == ALLOT_CATEGORY_UNKNOWN) {
            history->category[last] = block->category;
        }
    }
    return ALLOT_STATUS_OK;
}

/* Allocations that never ended, yet are not active at the end, end with the trace. */
static allot_status end_lost(builder *b, const uint8_t *is_active)
{
    allot_history *const history = b->history;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t row = 0; status == ALLOT_STATUS_OK && row < history->count; row++) {
        if (history->free_completed_event[row] == ALLOT_NONE && !is_active[row]) {
            history->counts.alloc_lost++;
            status = end_unseen(b, row, (uint32_t)(history->events.count - 1));
        }
    }
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < b->initial_count; i++) {
        if (b->initial[i].free_completed_event == ALLOT_NONE && b->initial[i].size == 0) {
            history->counts.alloc_lost++;
            status = end_unseen(b, i | INITIAL_MARK, (uint32_t)(history->events.count - 1));
        }
    }
    return status;
}

static allot_status match_final(builder *b)
{
    uint32_t count = 0;
    const allot_segment *const segments = alloti_history_final_segments(b->history, &count);
    const bool is_state_only = b->history->count == 0 && b->initial_count == 0;
    if (!allot_trace_has(b->history->trace, ALLOT_TRACE_HAS_SEGMENTS) ||
        (!b->has_addresses && !is_state_only)) {
        return ALLOT_STATUS_OK;
    }
    uint32_t ignored = 0;
    const allot_block *const blocks = allot_trace_blocks(b->history->trace, &ignored);
    uint8_t *const is_active = alloti_calloc_array(b->history->count + UINT64_C(1), 1);
    if (is_active == NULL) {
        return alloti_fail_memory(b->history->count);
    }
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t s = 0; status == ALLOT_STATUS_OK && s < count; s++) {
        const uint32_t first = segments[s].block_first;
        for (uint32_t k = 0; status == ALLOT_STATUS_OK && k < segments[s].block_count; k++) {
            if (blocks[first + k].state != ALLOT_BLOCK_INACTIVE) {
                status = match_block(b, &segments[s], &blocks[first + k], is_active);
            }
        }
    }
    if (status == ALLOT_STATUS_OK) {
        status = end_lost(b, is_active);
    }
    free(is_active);
    return status;
}

static int compare_initial(const void *a, const void *b)
{
    const initial_row *const left = a;
    const initial_row *const right = b;
    return (left->addr > right->addr) - (left->addr < right->addr);
}

/* Move a column of `count` items up by `by` items. */
static allot_status shift(void *column, uint64_t count, uint64_t by, size_t item_size)
{
    uint64_t capacity = count + 1;
    const allot_status status = alloti_array_reserve(column, &capacity, count + by + 1, item_size);
    if (status == ALLOT_STATUS_OK) {
        char *items = NULL;
        memcpy(&items, column, sizeof items);
        memmove(items + by * item_size, items, count * item_size);
    }
    return status;
}

static allot_status shift_columns(allot_history *history, uint64_t by)
{
    const uint64_t count = history->count;
    void *const wide[] = {&history->addr, &history->size, &history->requested};
    void *const narrow[] = {&history->alloc_event,
                            &history->free_requested_event,
                            &history->free_completed_event,
                            &history->use,
                            &history->stack,
                            &history->stream,
                            &history->pool,
                            &history->metadata};
    void *const bytes[] = {&history->category, &history->is_size_known};
    allot_status status = ALLOT_STATUS_OK;
    for (size_t c = 0; status == ALLOT_STATUS_OK && c < sizeof wide / sizeof wide[0]; c++) {
        status = shift(wide[c], count, by, sizeof(uint64_t));
    }
    for (size_t c = 0; status == ALLOT_STATUS_OK && c < sizeof narrow / sizeof narrow[0]; c++) {
        status = shift(narrow[c], count, by, sizeof(uint32_t));
    }
    for (size_t c = 0; status == ALLOT_STATUS_OK && c < sizeof bytes / sizeof bytes[0]; c++) {
        status = shift(bytes[c], count, by, sizeof(uint8_t));
    }
    return status;
}

static void write_initial(allot_history *history, uint32_t row, const initial_row *from)
{
    history->addr[row] = from->addr;
    history->size[row] = from->size != 0 ? from->size : from->requested;
    history->is_size_known[row] = from->size != 0;
    history->requested[row] = from->requested;
    history->category[row] = from->category;
    history->alloc_event[row] = ALLOT_NONE;
    history->free_requested_event[row] = from->free_requested_event;
    history->free_completed_event[row] = from->free_completed_event;
    history->use[row] = 0;
    history->stack[row] = from->stack;
    history->stream[row] = from->stream;
    history->pool[row] = from->pool;
    history->metadata[row] = from->metadata;
}

/* Final number of a row: those from before the trace by address, the others behind them. */
static uint32_t final_number(const uint32_t *position, uint32_t initial_count, uint32_t row)
{
    return (row & INITIAL_MARK) != 0 ? position[row & ~INITIAL_MARK] : row + initial_count;
}

static allot_status put_initial_first(builder *b)
{
    allot_history *const history = b->history;
    const uint32_t initial_count = (uint32_t)b->initial_count;
    if (initial_count == 0) {
        return ALLOT_STATUS_OK;
    }
    uint32_t *const position = alloti_alloc_array(initial_count, sizeof *position);
    if (position == NULL) {
        return alloti_fail_memory(initial_count * sizeof *position);
    }
    const allot_status status = shift_columns(history, initial_count);
    if (status != ALLOT_STATUS_OK) {
        free(position);
        return status;
    }
    qsort(b->initial, initial_count, sizeof *b->initial, compare_initial);
    for (uint32_t i = 0; i < initial_count; i++) {
        position[b->initial[i].number] = i;
        write_initial(history, i, &b->initial[i]);
    }
    for (uint64_t i = 0; i < history->events.count; i++) {
        if (history->allocation_of[i] != ALLOT_NONE) {
            history->allocation_of[i] =
                final_number(position, initial_count, history->allocation_of[i]);
        }
    }
    for (uint64_t i = 0; i < history->ended_count; i++) {
        history->ended[i].allocation =
            final_number(position, initial_count, history->ended[i].allocation);
    }
    history->count += initial_count;
    history->initial_count = initial_count;
    free(position);
    return ALLOT_STATUS_OK;
}

allot_status alloti_history_build_table(allot_history *history, const alloti_progress *progress)
{
    const uint64_t alloc_count = count_allocs(&history->events);
    builder b = {.history = history,
                 .has_addresses = allot_trace_has(history->trace, ALLOT_TRACE_HAS_ADDRESSES)};
    allot_status status = allocate_columns(history, alloc_count);
    if (status == ALLOT_STATUS_OK && !b.has_addresses) {
        b.older = alloti_alloc_array(alloc_count + 1, sizeof *b.older);
        status =
            b.older == NULL ? alloti_fail_memory(alloc_count * sizeof *b.older) : ALLOT_STATUS_OK;
    }
    if (status == ALLOT_STATUS_OK) {
        status = follow_events(&b, progress);
    }
    if (status == ALLOT_STATUS_OK) {
        status = match_final(&b);
    }
    if (status == ALLOT_STATUS_OK) {
        status = put_initial_first(&b);
    }
    alloti_map64_fini(&b.last);
    free(b.older);
    free(b.initial);
    return status;
}
