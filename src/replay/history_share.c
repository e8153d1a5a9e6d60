/* SPDX-License-Identifier: MIT */
/* Sums by stream and by private pool, with the peak of each. */
#include <stdlib.h>

#include "core/array.h"
#include "replay/history.h"

/** Running sums of one key, the id of a stream or a pool; the last one stands for "unknown". */
typedef struct running {
    uint64_t active;
    uint64_t reserved;
    uint64_t allocation_count;
    allot_peak active_peak;
    allot_peak reserved_peak;
    bool is_used;
} running;

typedef struct shares {
    const allot_history *history;
    running *items; /**< [id_count + 1] */
    uint32_t id_count;
    const uint32_t *allocation_key; /**< Column of the table. */
    bool is_pool;
} shares;

static running *item_of(const shares *s, uint32_t key)
{
    running *const item = &s->items[key < s->id_count ? key : s->id_count];
    item->is_used = true;
    return item;
}

static running *held_item(const shares *s, const allot_held *held)
{
    return item_of(s, s->is_pool ? held->pool : held->stream);
}

static void raise_peak(allot_peak *peak, uint64_t size, uint32_t event)
{
    if (size > peak->size) {
        *peak = (allot_peak){.size = size, .event = event};
    }
}

static void begin_allocation(const shares *s, uint32_t row, uint32_t event)
{
    running *const item = item_of(s, s->allocation_key[row]);
    item->active += s->history->size[row];
    item->allocation_count++;
    raise_peak(&item->active_peak, item->active, event);
}

static void end_allocation(const shares *s, uint32_t row, uint32_t event)
{
    if (s->history->free_completed_event[row] == event) {
        item_of(s, s->allocation_key[row])->active -= s->history->size[row];
    }
}

static void begin_held(const shares *s, const allot_held *held)
{
    running *const item = held_item(s, held);
    item->reserved += held->size;
    raise_peak(&item->reserved_peak, item->reserved, held->begin_event);
}

static void follow_allocations(const shares *s)
{
    const allot_history *const history = s->history;
    for (uint32_t row = 0; row < history->initial_count; row++) {
        begin_allocation(s, row, ALLOT_NONE);
    }
    uint64_t ended = 0;
    for (uint32_t i = 0; i < history->events.count; i++) {
        for (; ended < history->ended_count && history->ended[ended].event == i; ended++) {
            end_allocation(s, history->ended[ended].allocation, i);
        }
        const uint32_t row = history->allocation_of[i];
        if (row == ALLOT_NONE) {
            continue;
        }
        if (history->events.kind[i] == ALLOT_EVENT_ALLOC) {
            begin_allocation(s, row, i);
        } else {
            end_allocation(s, row, i);
        }
    }
}

static void end_held(const shares *s, const allot_held *held)
{
    held_item(s, held)->reserved -= held->size;
}

static allot_status follow_held(const shares *s)
{
    const allot_history *const history = s->history;
    uint32_t *ends = NULL;
    uint64_t end_count = 0;
    const allot_status status = alloti_history_held_ends(history, &ends, &end_count);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    uint64_t ended = 0;
    for (uint64_t h = 0; h < history->held_count; h++) {
        const allot_held *const held = &history->held[h];
        while (held->begin_event != ALLOT_NONE && ended < end_count &&
               history->held[ends[ended]].end_event <= held->begin_event) {
            end_held(s, &history->held[ends[ended++]]);
        }
        begin_held(s, held);
    }
    while (ended < end_count) {
        end_held(s, &history->held[ends[ended++]]);
    }
    free(ends);
    return ALLOT_STATUS_OK;
}

static int compare_share(const void *a, const void *b)
{
    const allot_share *const left = a;
    const allot_share *const right = b;
    if (left->active_peak.size != right->active_peak.size) {
        return left->active_peak.size < right->active_peak.size ? 1 : -1;
    }
    return (left->id > right->id) - (left->id < right->id);
}

static allot_status collect(const shares *s, allot_share **out, uint32_t *count)
{
    uint32_t used = 0;
    for (uint32_t id = 0; id <= s->id_count; id++) {
        used += s->items[id].is_used;
    }
    allot_share *const result = alloti_alloc_array(used + UINT64_C(1), sizeof *result);
    if (result == NULL) {
        return alloti_fail_memory(used * sizeof *result);
    }
    *count = 0;
    for (uint32_t id = 0; id <= s->id_count; id++) {
        const running *const item = &s->items[id];
        if (item->is_used) {
            result[(*count)++] = (allot_share){.id = id < s->id_count ? id : ALLOT_NONE,
                                               .active_end = item->active,
                                               .reserved_end = item->reserved,
                                               .active_peak = item->active_peak,
                                               .reserved_peak = item->reserved_peak,
                                               .allocation_count = item->allocation_count};
        }
    }
    qsort(result, used, sizeof *result, compare_share);
    *out = result;
    return ALLOT_STATUS_OK;
}

static allot_status build(shares *s, allot_share **out, uint32_t *count)
{
    s->items = alloti_calloc_array(s->id_count + UINT64_C(1), sizeof *s->items);
    if (s->items == NULL) {
        return alloti_fail_memory(s->id_count * sizeof *s->items);
    }
    for (uint32_t id = 0; id <= s->id_count; id++) {
        s->items[id].active_peak.event = ALLOT_NONE;
        s->items[id].reserved_peak.event = ALLOT_NONE;
    }
    follow_allocations(s);
    allot_status status = follow_held(s);
    if (status == ALLOT_STATUS_OK) {
        status = collect(s, out, count);
    }
    free(s->items);
    return status;
}

allot_status alloti_history_build_shares(allot_history *history)
{
    shares streams = {.history = history,
                      .id_count = allot_trace_stream_count(history->trace),
                      .allocation_key = history->stream};
    const allot_status status = build(&streams, &history->streams, &history->stream_count);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    shares pools = {.history = history,
                    .id_count = allot_trace_pool_count(history->trace),
                    .allocation_key = history->pool,
                    .is_pool = true};
    return build(&pools, &history->pools, &history->pool_count);
}
