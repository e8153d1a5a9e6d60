/* SPDX-License-Identifier: MIT */
/*
 * The state at one event: what of the two tables is there then, put in order of addresses, and the
 * gaps between as free ranges. Held ranges that touch are one segment if they are expandable and
 * belong together, because PyTorch lists and merges them so.
 */
#include <stdlib.h>

#include "core/array.h"
#include "replay/history.h"

struct allot_moment {
    const allot_history *history;
    allot_moment_totals totals;
    allot_moment_segment *segments;
    uint32_t segment_count;
    allot_moment_block *blocks;
    uint64_t block_count;
    uint64_t block_capacity;
    uint32_t *allocations; /**< Rows, by address. */
    uint32_t allocation_count;
};

typedef struct addressed {
    uint64_t address;
    uint32_t row;
} addressed;

static int compare_addressed(const void *a, const void *b)
{
    const addressed *const left = a;
    const addressed *const right = b;
    if (left->address != right->address) {
        return left->address < right->address ? -1 : 1;
    }
    return (left->row > right->row) - (left->row < right->row);
}

static bool is_live(const allot_history *history, uint32_t row, uint32_t event)
{
    return alloti_is_live(history->alloc_event[row], history->free_completed_event[row], event);
}

static allot_status collect_allocations(allot_moment *moment)
{
    const allot_history *const history = moment->history;
    uint32_t count = 0;
    for (uint32_t row = 0; row < history->count; row++) {
        count += is_live(history, row, moment->totals.event);
    }
    addressed *const live = alloti_alloc_array(count + UINT64_C(1), sizeof *live);
    moment->allocations = alloti_alloc_array(count + UINT64_C(1), sizeof *moment->allocations);
    if (live == NULL || moment->allocations == NULL) {
        free(live);
        return alloti_fail_memory(count * (sizeof *live + sizeof *moment->allocations));
    }
    for (uint32_t row = 0; row < history->count; row++) {
        if (is_live(history, row, moment->totals.event)) {
            live[moment->allocation_count++] = (addressed){history->addr[row], row};
        }
    }
    qsort(live, count, sizeof *live, compare_addressed);
    for (uint32_t i = 0; i < count; i++) {
        moment->allocations[i] = live[i].row;
    }
    free(live);
    return ALLOT_STATUS_OK;
}

static int compare_held(const void *a, const void *b)
{
    const allot_held *const left = a;
    const allot_held *const right = b;
    return (left->address > right->address) - (left->address < right->address);
}

static bool continues(const allot_moment_segment *segment, const allot_held *held)
{
    return segment->is_expandable && held->is_expandable && segment->stream == held->stream &&
           segment->pool == held->pool && segment->is_large == held->is_large &&
           alloti_range_end(segment->address, segment->size) == held->address;
}

static allot_status collect_segments(allot_moment *moment)
{
    const allot_history *const history = moment->history;
    allot_held *const live = alloti_alloc_array(history->held_count + 1, sizeof *live);
    moment->segments = alloti_alloc_array(history->held_count + 1, sizeof *moment->segments);
    if (live == NULL || moment->segments == NULL) {
        free(live);
        return alloti_fail_memory(history->held_count * sizeof *live);
    }
    uint64_t count = 0;
    for (uint64_t h = 0; h < history->held_count; h++) {
        const allot_held *const held = &history->held[h];
        if (alloti_is_live(held->begin_event, held->end_event, moment->totals.event)) {
            live[count++] = *held;
        }
    }
    qsort(live, count, sizeof *live, compare_held);
    for (uint64_t i = 0; i < count; i++) {
        allot_moment_segment *const last =
            moment->segment_count == 0 ? NULL : &moment->segments[moment->segment_count - 1];
        if (last != NULL && continues(last, &live[i])) {
            last->size += live[i].size;
            continue;
        }
        moment->segments[moment->segment_count++] =
            (allot_moment_segment){.address = live[i].address,
                                   .size = live[i].size,
                                   .stream = live[i].stream,
                                   .pool = live[i].pool,
                                   .stack = live[i].stack,
                                   .is_large = live[i].is_large,
                                   .is_expandable = live[i].is_expandable};
    }
    free(live);
    return ALLOT_STATUS_OK;
}

static allot_status add_block(allot_moment *moment, const allot_moment_block *block)
{
    const allot_status status = alloti_array_reserve(&moment->blocks, &moment->block_capacity,
                                                     moment->block_count + 1, sizeof *block);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_moment_segment *const segment = &moment->segments[block->segment];
    moment->blocks[moment->block_count++] = *block;
    segment->block_count++;
    if (block->allocation == ALLOT_NONE) {
        segment->free_size += block->size;
        segment->free_largest =
            block->size > segment->free_largest ? block->size : segment->free_largest;
    } else {
        segment->live_count++;
        segment->active += block->size;
    }
    return ALLOT_STATUS_OK;
}

static allot_status add_free(allot_moment *moment, uint32_t segment, uint64_t from, uint64_t to)
{
    if (from >= to) {
        return ALLOT_STATUS_OK;
    }
    return add_block(moment, &(allot_moment_block){.address = from,
                                                   .size = to - from,
                                                   .allocation = ALLOT_NONE,
                                                   .segment = segment});
}

/* Whether the owner of an allocation has let go at this event. */
static bool is_pending(const allot_history *history, uint32_t row, uint32_t event)
{
    const uint32_t requested = history->free_requested_event[row];
    return event != ALLOT_NONE && requested != ALLOT_NONE && requested <= event;
}

/* Cut a segment into blocks; *next is the first allocation that is not below it. */
static allot_status cut_segment(allot_moment *moment, uint32_t index, uint32_t *next)
{
    const allot_history *const history = moment->history;
    const uint64_t end =
        alloti_range_end(moment->segments[index].address, moment->segments[index].size);
    uint64_t at = moment->segments[index].address;
    moment->segments[index].block_first = (uint32_t)moment->block_count;
    while (*next < moment->allocation_count &&
           history->addr[moment->allocations[*next]] < moment->segments[index].address) {
        moment->totals.outside_count++;
        (*next)++;
    }
    allot_status status = ALLOT_STATUS_OK;
    for (; status == ALLOT_STATUS_OK && *next < moment->allocation_count; (*next)++) {
        const uint32_t row = moment->allocations[*next];
        const uint64_t addr = history->addr[row];
        if (addr >= end) {
            break;
        }
        status = add_free(moment, index, at, addr);
        uint64_t block_end = alloti_range_end(addr, history->size[row]);
        block_end = block_end > end ? end : block_end;
        if (status == ALLOT_STATUS_OK) {
            const allot_moment_block block = {.address = addr,
                                              .size = block_end - addr,
                                              .allocation = row,
                                              .segment = index,
                                              .is_pending =
                                                  is_pending(history, row, moment->totals.event)};
            status = add_block(moment, &block);
        }
        at = block_end > at ? block_end : at;
    }
    return status == ALLOT_STATUS_OK ? add_free(moment, index, at, end) : status;
}

static allot_status cut_segments(allot_moment *moment)
{
    uint32_t next = 0;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t s = 0; status == ALLOT_STATUS_OK && s < moment->segment_count; s++) {
        status = cut_segment(moment, s, &next);
    }
    moment->totals.outside_count += moment->allocation_count - next;
    return status;
}

static void add_totals(allot_moment *moment)
{
    const allot_history *const history = moment->history;
    allot_moment_totals *const totals = &moment->totals;
    const uint32_t event = totals->event;
    totals->allocated = allot_history_value(history, ALLOT_MEASURE_ALLOCATED, event);
    totals->active = allot_history_value(history, ALLOT_MEASURE_ACTIVE, event);
    totals->requested = allot_history_value(history, ALLOT_MEASURE_REQUESTED, event);
    totals->reserved = allot_history_value(history, ALLOT_MEASURE_RESERVED, event);
    totals->segment_count = moment->segment_count;
    totals->allocation_count = moment->allocation_count;
    for (uint32_t s = 0; s < moment->segment_count; s++) {
        const allot_moment_segment *const segment = &moment->segments[s];
        totals->free_size += segment->free_size;
        if (segment->free_largest > totals->free_largest) {
            totals->free_largest = segment->free_largest;
        }
        if (segment->live_count != 0 && segment->free_size != 0) {
            totals->inactive_split_size += segment->free_size;
            for (uint32_t k = 0; k < segment->block_count; k++) {
                totals->inactive_split_count +=
                    moment->blocks[segment->block_first + k].allocation == ALLOT_NONE;
            }
        }
    }
    if (totals->free_size != 0) {
        totals->fragmentation = 1 - (double)totals->free_largest / (double)totals->free_size;
    }
}

allot_status allot_history_at(const allot_history *history, uint32_t event, allot_moment **out)
{
    if (event != ALLOT_NONE && event >= history->events.count) {
        return alloti_fail(ALLOT_STATUS_INVALID, "event %u is not in the trace", event);
    }
    allot_moment *const moment = calloc(1, sizeof *moment);
    if (moment == NULL) {
        return alloti_fail_memory(sizeof *moment);
    }
    moment->history = history;
    moment->totals.event = event;
    allot_status status = collect_allocations(moment);
    if (status == ALLOT_STATUS_OK) {
        status = collect_segments(moment);
    }
    if (status == ALLOT_STATUS_OK) {
        status = cut_segments(moment);
    }
    if (status != ALLOT_STATUS_OK) {
        allot_moment_destroy(moment);
        return status;
    }
    add_totals(moment);
    *out = moment;
    return ALLOT_STATUS_OK;
}

void allot_moment_destroy(allot_moment *moment)
{
    if (moment == NULL) {
        return;
    }
    free(moment->segments);
    free(moment->blocks);
    free(moment->allocations);
    free(moment);
}

const allot_history *allot_moment_history(const allot_moment *moment)
{
    return moment->history;
}

void allot_moment_get_totals(const allot_moment *moment, allot_moment_totals *out)
{
    *out = moment->totals;
}

const allot_moment_segment *allot_moment_segments(const allot_moment *moment, uint32_t *count)
{
    *count = moment->segment_count;
    return moment->segments;
}

const allot_moment_block *allot_moment_blocks(const allot_moment *moment, uint32_t *count)
{
    *count = (uint32_t)moment->block_count;
    return moment->blocks;
}

const uint32_t *allot_moment_allocations(const allot_moment *moment, uint32_t *count)
{
    *count = moment->allocation_count;
    return moment->allocations;
}
