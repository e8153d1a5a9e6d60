/* SPDX-License-Identifier: MIT */
/*
 * Sizes of blocks. An event says how many bytes were asked for; the block is larger. Its size is
 * known exactly where the block is still there at the end. Elsewhere PyTorch's rules give it: the
 * request is rounded, and a rest of the free range that is too small to be useful is not split off.
 * Since free ranges are always merged, the range that a block was cut from ends where the next live
 * block or the segment ends, so it is enough to know which addresses are live at each moment.
 *
 * Only segments for large requests outside of expandable mode keep such rests.
 */
#include <allot/torchsim.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/bitset.h"
#include "replay/history.h"
#include "torchsim/rounding.h"
#include "trace/torch_origin.h"

/** Smallest rest that is split off a block of a large segment. */
enum { REST_MIN = 1 << 20 };

typedef struct sizer {
    allot_history *history;
    allot_torch_conf conf;
    uint64_t *places; /**< Addresses of blocks and bounds of segments, ascending, each once. */
    uint32_t place_count;
    uint32_t *place_of; /**< [history->count] Place of each allocation's address. */
    uint32_t *held_at;  /**< [place_count] Row of `held` that begins there. */
    uint32_t
        *row_at; /**< [place_count] Allocation that lives there; valid for members of `blocks`. */
    alloti_bitset blocks;  /**< Places at which a live block begins. */
    alloti_bitset held;    /**< Places at which a held range begins. */
    uint32_t *held_by_end; /**< Rows of `held` that end, by end event. */
    uint64_t held_end_count;
} sizer;

/* An allocation on its way into the order of addresses. */
typedef struct addressed {
    uint64_t addr;
    uint32_t row;
} addressed;

static void round_all(allot_history *history, const allot_torch_conf *conf)
{
    for (uint32_t row = 0; row < history->count; row++) {
        if (!history->is_size_known[row]) {
            history->size[row] = alloti_torch_round(conf, history->requested[row]);
        }
    }
}

static bool keeps_rests(const allot_held *held)
{
    return held->is_large && !held->is_expandable;
}

static bool needs_rests(const allot_history *history)
{
    for (uint64_t h = 0; h < history->held_count; h++) {
        if (keeps_rests(&history->held[h])) {
            return true;
        }
    }
    return false;
}

static int compare_addressed(const void *a, const void *b)
{
    const addressed *const left = a;
    const addressed *const right = b;
    return (left->addr > right->addr) - (left->addr < right->addr);
}

/* Give places to all addresses. Entries past the allocations are begins and ends of held ranges. */
static allot_status assign_places(sizer *s)
{
    const allot_history *const history = s->history;
    const uint64_t count = history->count + 2 * history->held_count;
    addressed *const all = alloti_alloc_array(count + 1, sizeof *all);
    s->places = alloti_alloc_array(count + 1, sizeof *s->places);
    s->place_of = alloti_alloc_array(history->count + UINT64_C(1), sizeof *s->place_of);
    s->held_at = alloti_alloc_array(count + 1, sizeof *s->held_at);
    s->row_at = alloti_alloc_array(count + 1, sizeof *s->row_at);
    if (all == NULL || s->places == NULL || s->place_of == NULL || s->held_at == NULL ||
        s->row_at == NULL || count >= ALLOT_NONE) {
        free(all);
        return alloti_fail_memory(count * (sizeof *all + sizeof *s->places));
    }
    for (uint32_t row = 0; row < history->count; row++) {
        all[row] = (addressed){history->addr[row], row};
    }
    for (uint64_t h = 0; h < history->held_count; h++) {
        const allot_held *const held = &history->held[h];
        all[history->count + 2 * h] = (addressed){held->address, ALLOT_NONE};
        all[history->count + 2 * h + 1] =
            (addressed){alloti_range_end(held->address, held->size), ALLOT_NONE};
    }
    qsort(all, count, sizeof *all, compare_addressed);
    for (uint64_t i = 0; i < count; i++) {
        if (s->place_count == 0 || s->places[s->place_count - 1] != all[i].addr) {
            s->places[s->place_count++] = all[i].addr;
        }
        if (all[i].row != ALLOT_NONE) {
            s->place_of[all[i].row] = s->place_count - 1;
        }
    }
    free(all);
    allot_status status = alloti_bitset_init(&s->blocks, s->place_count);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_bitset_init(&s->held, s->place_count);
    }
    return status;
}

static uint32_t find_place(const sizer *s, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = s->place_count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->places[middle] <= address) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static void hold(sizer *s, uint32_t held)
{
    const uint32_t place = find_place(s, s->history->held[held].address);
    s->held_at[place] = held;
    alloti_bitset_add(&s->held, place);
}

static void release(sizer *s, uint32_t held)
{
    const uint32_t place = find_place(s, s->history->held[held].address);
    if (s->held_at[place] == held) {
        alloti_bitset_remove(&s->held, place);
    }
}

/* Size of the block of an allocation that begins now. */
static void size_block(sizer *s, uint32_t row)
{
    allot_history *const history = s->history;
    const uint32_t place = s->place_of[row];
    const uint32_t below = alloti_bitset_previous(&s->held, place);
    if (below == ALLOT_NONE || history->is_size_known[row]) {
        return;
    }
    const allot_held *const held = &history->held[s->held_at[below]];
    uint64_t end = alloti_range_end(held->address, held->size);
    if (!keeps_rests(held) || history->addr[row] >= end) {
        return;
    }
    const uint32_t next = alloti_bitset_next(&s->blocks, place + 1);
    if (next != ALLOT_NONE && s->places[next] < end) {
        end = s->places[next];
    }
    const uint64_t range = end - history->addr[row];
    const uint64_t rounded = history->size[row];
    if (range > rounded && (range - rounded <= REST_MIN || rounded >= s->conf.max_split_size)) {
        history->size[row] = range;
    }
}

/*
 * The live block below the one that begins now ends where this one begins: free ranges begin where
 * a block ends. That corrects blocks from before the trace, whose rest may have merged with a free
 * neighbour by the time the trace began.
 */
static void correct_block_below(sizer *s, uint32_t row)
{
    allot_history *const history = s->history;
    const uint32_t place = s->place_of[row];
    const uint32_t below = place == 0 ? ALLOT_NONE : alloti_bitset_previous(&s->blocks, place - 1);
    const uint32_t held = alloti_bitset_previous(&s->held, place);
    if (below == ALLOT_NONE || held == ALLOT_NONE || below < held ||
        !keeps_rests(&history->held[s->held_at[held]])) {
        return;
    }
    const uint32_t lower = s->row_at[below];
    const uint64_t size = history->addr[row] - history->addr[lower];
    if (lower < history->initial_count && !history->is_size_known[lower] &&
        size > history->size[lower] && size - history->size[lower] <= REST_MIN) {
        history->size[lower] = size;
    }
}

static void add_block(sizer *s, uint32_t row)
{
    s->row_at[s->place_of[row]] = row;
    alloti_bitset_add(&s->blocks, s->place_of[row]);
}

/* What was there before the first event. */
static uint32_t begin(sizer *s)
{
    allot_history *const history = s->history;
    uint32_t next = 0;
    while (next < history->held_count && history->held[next].begin_event == ALLOT_NONE) {
        hold(s, next++);
    }
    for (uint32_t row = 0; row < history->initial_count; row++) {
        add_block(s, row);
    }
    for (uint32_t row = 0; row < history->initial_count; row++) {
        size_block(s, row);
    }
    return next;
}

static void end_block(sizer *s, uint32_t row, uint32_t event)
{
    if (s->history->free_completed_event[row] == event) {
        alloti_bitset_remove(&s->blocks, s->place_of[row]);
    }
}

static void follow_events(sizer *s)
{
    allot_history *const history = s->history;
    const allot_events *const events = &history->events;
    uint64_t held_begin = begin(s);
    uint64_t held_end = 0;
    uint64_t ended = 0;
    for (uint32_t i = 0; i < events->count; i++) {
        for (;
             held_end < s->held_end_count && history->held[s->held_by_end[held_end]].end_event == i;
             held_end++) {
            release(s, s->held_by_end[held_end]);
        }
        for (; held_begin < history->held_count && history->held[held_begin].begin_event == i;
             held_begin++) {
            hold(s, (uint32_t)held_begin);
        }
        for (; ended < history->ended_count && history->ended[ended].event == i; ended++) {
            end_block(s, history->ended[ended].allocation, i);
        }
        const uint32_t row = history->allocation_of[i];
        if (row != ALLOT_NONE && events->kind[i] == ALLOT_EVENT_ALLOC) {
            correct_block_below(s, row);
            size_block(s, row);
            add_block(s, row);
        } else if (row != ALLOT_NONE) {
            end_block(s, row, i);
        }
    }
}

allot_status alloti_history_build_sizes(allot_history *history)
{
    if (!allot_trace_has(history->trace, ALLOT_TRACE_HAS_REQUESTED) ||
        !alloti_trace_is_torch(history->trace)) {
        return ALLOT_STATUS_OK;
    }
    sizer s = {.history = history};
    if (allot_torch_conf_from_trace(history->trace, &s.conf, NULL) != ALLOT_STATUS_OK) {
        allot_torch_conf_init(&s.conf);
    }
    round_all(history, &s.conf);
    if (!needs_rests(history)) {
        return ALLOT_STATUS_OK;
    }
    allot_status status = assign_places(&s);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_history_held_ends(history, &s.held_by_end, &s.held_end_count);
    }
    if (status == ALLOT_STATUS_OK) {
        follow_events(&s);
    }
    free(s.places);
    free(s.place_of);
    free(s.held_at);
    free(s.row_at);
    free(s.held_by_end);
    alloti_bitset_fini(&s.blocks);
    alloti_bitset_fini(&s.held);
    return status;
}
