/* SPDX-License-Identifier: MIT */
/*
 * Pools that the trace does not record. Some versions of PyTorch write the pool into the segments
 * of the final state only. Memory held and allocations without one belong to the pool of the
 * segment that they lie in; memory that was gone before the end, to the only pool of the device if
 * it has but one. What remains is not known.
 */
#include <stdlib.h>

#include "core/array.h"
#include "core/bitset.h"
#include "core/compare.h"
#include "replay/history.h"

typedef struct locator {
    allot_history *history;
    uint64_t *places; /**< Addresses at which held ranges begin, ascending. */
    uint32_t place_count;
    uint32_t *held_at;  /**< [place_count] Row of `held` that lives there. */
    alloti_bitset live; /**< Places at which a held range begins now. */
    uint32_t only;      /**< The only pool of the device; ALLOT_NONE if there are several. */
} locator;

static bool needs_pools(const allot_history *history)
{
    bool is_known = false;
    for (uint64_t h = 0; h < history->held_count; h++) {
        is_known = is_known || history->held[h].pool != ALLOT_NONE;
    }
    for (uint32_t row = 0; is_known && row < history->count; row++) {
        if (history->pool[row] == ALLOT_NONE) {
            return true;
        }
    }
    return false;
}

/* The only pool that memory is held for; ALLOT_NONE if there are several. */
static uint32_t only_pool(const allot_history *history)
{
    uint32_t pool = ALLOT_NONE;
    for (uint64_t h = 0; h < history->held_count; h++) {
        const uint32_t other = history->held[h].pool;
        if (other != ALLOT_NONE && pool != ALLOT_NONE && other != pool) {
            return ALLOT_NONE;
        }
        pool = other != ALLOT_NONE ? other : pool;
    }
    for (uint32_t row = 0; row < history->count; row++) {
        if (history->pool[row] != ALLOT_NONE && history->pool[row] != pool) {
            return ALLOT_NONE;
        }
    }
    return pool;
}

static void complete_held(const locator *l)
{
    allot_history *const history = l->history;
    for (uint64_t h = 0; h < history->held_count; h++) {
        if (history->held[h].pool == ALLOT_NONE) {
            history->held[h].pool = l->only;
        }
    }
}

static allot_status assign_places(locator *l)
{
    const allot_history *const history = l->history;
    l->places = alloti_alloc_array(history->held_count + 1, sizeof *l->places);
    l->held_at = alloti_alloc_array(history->held_count + 1, sizeof *l->held_at);
    if (l->places == NULL || l->held_at == NULL) {
        return alloti_fail_memory(history->held_count * (sizeof *l->places + sizeof *l->held_at));
    }
    for (uint64_t h = 0; h < history->held_count; h++) {
        l->places[h] = history->held[h].address;
    }
    qsort(l->places, history->held_count, sizeof *l->places, alloti_compare_u64);
    for (uint64_t h = 0; h < history->held_count; h++) {
        if (l->place_count == 0 || l->places[l->place_count - 1] != l->places[h]) {
            l->places[l->place_count++] = l->places[h];
        }
    }
    return alloti_bitset_init(&l->live, l->place_count);
}

/* Last place at or below an address; ALLOT_NONE if all are above it. */
static uint32_t place_below(const locator *l, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = l->place_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (l->places[middle] <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? ALLOT_NONE : low - 1;
}

static void hold(locator *l, uint32_t held)
{
    const uint32_t place = place_below(l, l->history->held[held].address);
    l->held_at[place] = held;
    alloti_bitset_add(&l->live, place);
}

static void release(locator *l, uint32_t held)
{
    const uint32_t place = place_below(l, l->history->held[held].address);
    if (l->held_at[place] == held) {
        alloti_bitset_remove(&l->live, place);
    }
}

/* Row of `held` that an address lies in now, ALLOT_NONE if it lies in none. */
static uint32_t held_around(const locator *l, uint64_t address)
{
    const uint32_t below = place_below(l, address);
    const uint32_t place = below == ALLOT_NONE ? below : alloti_bitset_previous(&l->live, below);
    if (place == ALLOT_NONE) {
        return ALLOT_NONE;
    }
    const allot_held *const held = &l->history->held[l->held_at[place]];
    const bool is_inside = address < alloti_range_end(held->address, held->size);
    return is_inside ? l->held_at[place] : ALLOT_NONE;
}

/* Give an allocation that begins now the pool of the range that it lies in. */
static void complete_row(const locator *l, uint32_t row)
{
    allot_history *const history = l->history;
    if (history->pool[row] == ALLOT_NONE) {
        const uint32_t held = held_around(l, history->addr[row]);
        history->pool[row] = held == ALLOT_NONE ? l->only : history->held[held].pool;
    }
}

static void follow_events(locator *l, const uint32_t *ends, uint64_t end_count)
{
    const allot_history *const history = l->history;
    uint64_t begun = 0;
    uint64_t ended = 0;
    while (begun < history->held_count && history->held[begun].begin_event == ALLOT_NONE) {
        hold(l, (uint32_t)begun++);
    }
    for (uint32_t row = 0; row < history->initial_count; row++) {
        complete_row(l, row);
    }
    for (uint32_t i = 0; i < history->events.count; i++) {
        for (; ended < end_count && history->held[ends[ended]].end_event == i; ended++) {
            release(l, ends[ended]);
        }
        for (; begun < history->held_count && history->held[begun].begin_event == i; begun++) {
            hold(l, (uint32_t)begun);
        }
        const uint32_t row = history->allocation_of[i];
        if (row != ALLOT_NONE && history->events.kind[i] == ALLOT_EVENT_ALLOC) {
            complete_row(l, row);
        }
    }
}

allot_status alloti_history_build_pools(allot_history *history)
{
    if (!needs_pools(history)) {
        return ALLOT_STATUS_OK;
    }
    locator l = {.history = history, .only = only_pool(history)};
    complete_held(&l);
    uint32_t *ends = NULL;
    uint64_t end_count = 0;
    allot_status status = assign_places(&l);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_history_held_ends(history, &ends, &end_count);
    }
    if (status == ALLOT_STATUS_OK) {
        follow_events(&l, ends, end_count);
    }
    free(ends);
    free(l.places);
    free(l.held_at);
    alloti_bitset_fini(&l.live);
    return status;
}
