/* SPDX-License-Identifier: MIT */
/*
 * Memory held from the driver as rectangles of addresses times events.
 *
 * Events are followed forwards. What is given back without having been taken was there before the
 * trace; what the final state holds and no event took was there all the time. The live rectangles
 * are found through the sorted list of all addresses at which one can begin, and the set of those
 * at which one does.
 */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/bitset.h"
#include "core/compare.h"
#include "replay/history.h"

/** Segments of this size hold requests of at most 1 MiB; all others are larger. */
enum { SMALL_SEGMENT = 2 << 20 };

typedef struct builder {
    allot_history *history;
    uint64_t *places; /**< Addresses at which a rectangle can begin, ascending. */
    uint32_t place_count;
    uint32_t *row_at;    /**< [place_count] Row that lives there; valid for members of `live`. */
    alloti_bitset live;  /**< Places at which a live row begins. */
    allot_held *initial; /**< Rows from before the trace. */
    uint64_t initial_count;
    uint64_t initial_capacity;
} builder;

static bool is_segment_event(uint8_t kind)
{
    return kind >= ALLOT_EVENT_SEGMENT_ALLOC && kind <= ALLOT_EVENT_SEGMENT_UNMAP;
}

/* Begins and ends of all ranges that events and the final state name, sorted, each once. */
static allot_status collect_places(builder *b)
{
    const allot_events *const events = &b->history->events;
    uint32_t segment_count = 0;
    const allot_segment *const segments = alloti_history_final_segments(b->history, &segment_count);
    uint64_t count = segment_count;
    for (uint64_t i = 0; i < events->count; i++) {
        count += is_segment_event(events->kind[i]);
    }
    b->places = alloti_alloc_array(2 * count + 1, sizeof *b->places);
    if (b->places == NULL || 2 * count >= ALLOT_NONE) {
        return alloti_fail_memory(2 * count * sizeof *b->places);
    }
    uint64_t used = 0;
    for (uint64_t i = 0; i < events->count; i++) {
        if (is_segment_event(events->kind[i])) {
            b->places[used++] = events->addr[i];
            b->places[used++] = alloti_range_end(events->addr[i], events->size[i]);
        }
    }
    for (uint32_t s = 0; s < segment_count; s++) {
        b->places[used++] = segments[s].address;
        b->places[used++] = alloti_range_end(segments[s].address, segments[s].total_size);
    }
    qsort(b->places, used, sizeof *b->places, alloti_compare_u64);
    for (uint64_t i = 0; i < used; i++) {
        if (b->place_count == 0 || b->places[b->place_count - 1] != b->places[i]) {
            b->places[b->place_count++] = b->places[i];
        }
    }
    b->row_at = alloti_calloc_array(b->place_count + UINT64_C(1), sizeof *b->row_at);
    if (b->row_at == NULL) {
        return alloti_fail_memory(b->place_count * sizeof *b->row_at);
    }
    return alloti_bitset_init(&b->live, b->place_count);
}

/* Place of an address that collect_places() has seen. */
static uint32_t place_of(const builder *b, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = b->place_count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (b->places[middle] <= address) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static allot_status add_row(builder *b, const allot_held *row)
{
    allot_history *const history = b->history;
    const allot_status status = alloti_array_reserve(&history->held, &history->held_capacity,
                                                     history->held_count + 1, sizeof *row);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint32_t place = place_of(b, row->address);
    history->held[history->held_count] = *row;
    b->row_at[place] = (uint32_t)history->held_count++;
    alloti_bitset_add(&b->live, place);
    return ALLOT_STATUS_OK;
}

static allot_status add_initial(builder *b, const allot_held *row)
{
    if (row->size == 0) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status =
        alloti_array_reserve(&b->initial, &b->initial_capacity, b->initial_count + 1, sizeof *row);
    if (status == ALLOT_STATUS_OK) {
        b->initial[b->initial_count++] = *row;
    }
    return status;
}

static allot_held row_of_event(const allot_history *history, uint32_t event)
{
    const allot_events *const events = &history->events;
    const uint8_t kind = events->kind[event];
    return (allot_held){.address = events->addr[event],
                        .size = events->size[event],
                        .begin_event = event,
                        .end_event = ALLOT_NONE,
                        .stream = events->stream[event],
                        .pool = events->pool[event],
                        .stack = events->stack[event],
                        .is_large = events->size[event] > SMALL_SEGMENT,
                        .is_expandable =
                            kind == ALLOT_EVENT_SEGMENT_MAP || kind == ALLOT_EVENT_SEGMENT_UNMAP};
}

/* First live row that reaches beyond `address`, ALLOT_NONE if there is none below `end`. */
static uint32_t first_overlap(const builder *b, uint64_t address, uint64_t end, uint32_t *place)
{
    const uint32_t here = place_of(b, address);
    uint32_t found = alloti_bitset_previous(&b->live, here);
    if (found != ALLOT_NONE) {
        const allot_held *const row = &b->history->held[b->row_at[found]];
        if (alloti_range_end(row->address, row->size) > address) {
            *place = found;
            return b->row_at[found];
        }
    }
    found = alloti_bitset_next(&b->live, here);
    if (found == ALLOT_NONE || b->places[found] >= end) {
        return ALLOT_NONE;
    }
    *place = found;
    return b->row_at[found];
}

/* What stays of a row when [address, end) is taken out of it. */
static allot_status keep_rests(builder *b, uint32_t row_index, uint64_t address, uint64_t end,
                               uint32_t event)
{
    const allot_held row = b->history->held[row_index];
    const uint64_t row_end = alloti_range_end(row.address, row.size);
    allot_held rest = row;
    rest.begin_event = event;
    rest.end_event = ALLOT_NONE;
    rest.is_rest = true;
    allot_status status = ALLOT_STATUS_OK;
    if (row.address < address) {
        rest.size = address - row.address;
        status = add_row(b, &rest);
    }
    if (status == ALLOT_STATUS_OK && row_end > end) {
        rest.address = end;
        rest.size = row_end - end;
        status = add_row(b, &rest);
    }
    return status;
}

/*
 * Take the range of `given` out of the live rows; what no row covers was there before the trace.
 * Overlapping rows end at its end_event.
 */
static allot_status give_back(builder *b, const allot_held *given)
{
    uint64_t at = given->address;
    const uint64_t end = alloti_range_end(given->address, given->size);
    allot_held before = *given;
    before.begin_event = ALLOT_NONE;
    allot_status status = ALLOT_STATUS_OK;
    while (status == ALLOT_STATUS_OK && at < end) {
        uint32_t place = 0;
        const uint32_t found = first_overlap(b, at, end, &place);
        const uint64_t covered = found == ALLOT_NONE ? end : b->history->held[found].address;
        if (covered > at) {
            before.address = at;
            before.size = covered - at;
            status = add_initial(b, &before);
        }
        if (found == ALLOT_NONE) {
            break;
        }
        allot_held *const row = &b->history->held[found];
        const uint64_t row_end = alloti_range_end(row->address, row->size);
        row->end_event = given->end_event;
        alloti_bitset_remove(&b->live, place);
        if (status == ALLOT_STATUS_OK) {
            status = keep_rests(b, found, at, end, given->end_event);
        }
        at = row_end;
    }
    return status;
}

/* Memory that is taken twice was given back in between, unseen. */
static allot_status take(builder *b, uint32_t event)
{
    allot_held row = row_of_event(b->history, event);
    if (row.size == 0) {
        return ALLOT_STATUS_OK;
    }
    const uint64_t end = alloti_range_end(row.address, row.size);
    uint32_t place = 0;
    for (uint32_t found = first_overlap(b, row.address, end, &place); found != ALLOT_NONE;
         found = first_overlap(b, row.address, end, &place)) {
        b->history->held[found].end_event = event;
        b->history->counts.held_unmatched++;
        alloti_bitset_remove(&b->live, place);
    }
    return add_row(b, &row);
}

static allot_status follow_events(builder *b)
{
    const allot_events *const events = &b->history->events;
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < events->count; i++) {
        const uint8_t kind = events->kind[i];
        if (kind == ALLOT_EVENT_SEGMENT_ALLOC || kind == ALLOT_EVENT_SEGMENT_MAP) {
            status = take(b, i);
        } else if (kind == ALLOT_EVENT_SEGMENT_FREE || kind == ALLOT_EVENT_SEGMENT_UNMAP) {
            allot_held given = row_of_event(b->history, i);
            given.end_event = i;
            given.stack = ALLOT_NONE;
            status = give_back(b, &given);
        }
    }
    return status;
}

/* Mark rows that a final segment covers, and add what no row covers. */
static allot_status match_segment(builder *b, const allot_segment *segment, uint8_t *is_final)
{
    allot_held before = {.begin_event = ALLOT_NONE,
                         .end_event = ALLOT_NONE,
                         .stream = segment->stream,
                         .pool = segment->pool,
                         .stack = segment->stack,
                         .is_large = segment->is_large,
                         .is_expandable = segment->is_expandable};
    uint64_t at = segment->address;
    const uint64_t end = alloti_range_end(segment->address, segment->total_size);
    allot_status status = ALLOT_STATUS_OK;
    while (status == ALLOT_STATUS_OK && at < end) {
        uint32_t place = 0;
        const uint32_t found = first_overlap(b, at, end, &place);
        const uint64_t covered = found == ALLOT_NONE ? end : b->history->held[found].address;
        if (covered > at) {
            before.address = at;
            before.size = covered - at;
            status = add_initial(b, &before);
        }
        if (found == ALLOT_NONE) {
            break;
        }
        allot_held *const row = &b->history->held[found];
        row->is_large = segment->is_large;
        row->is_expandable = segment->is_expandable;
        row->pool = segment->pool;
        is_final[found] = 1;
        at = alloti_range_end(row->address, row->size);
    }
    return status;
}

/* Bring the rows in line with the state at the end. */
static allot_status match_final(builder *b)
{
    allot_history *const history = b->history;
    uint32_t count = 0;
    const allot_segment *const segments = alloti_history_final_segments(history, &count);
    if (!allot_trace_has(history->trace, ALLOT_TRACE_HAS_SEGMENTS)) {
        return ALLOT_STATUS_OK;
    }
    uint8_t *const is_final = alloti_calloc_array(history->held_count + 1, 1);
    if (is_final == NULL) {
        return alloti_fail_memory(history->held_count);
    }
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t s = 0; status == ALLOT_STATUS_OK && s < count; s++) {
        status = match_segment(b, &segments[s], is_final);
    }
    for (uint64_t r = 0; r < history->held_count; r++) {
        if (history->held[r].end_event == ALLOT_NONE && !is_final[r]) {
            history->held[r].end_event = (uint32_t)(history->events.count - 1);
            history->counts.held_unmatched++;
        }
    }
    free(is_final);
    return status;
}

static int compare_address(const void *a, const void *b)
{
    return alloti_compare_u64(&((const allot_held *)a)->address, &((const allot_held *)b)->address);
}

/* Put the rows from before the trace in front of the others. */
static allot_status put_initial_first(builder *b)
{
    allot_history *const history = b->history;
    const allot_status status =
        alloti_array_reserve(&history->held, &history->held_capacity,
                             history->held_count + b->initial_count, sizeof *history->held);
    if (status != ALLOT_STATUS_OK || b->initial_count == 0) {
        return status;
    }
    qsort(b->initial, b->initial_count, sizeof *b->initial, compare_address);
    memmove(history->held + b->initial_count, history->held,
            history->held_count * sizeof *history->held);
    memcpy(history->held, b->initial, b->initial_count * sizeof *b->initial);
    history->held_count += b->initial_count;
    return ALLOT_STATUS_OK;
}

allot_status alloti_history_build_held(allot_history *history)
{
    builder b = {.history = history};
    allot_status status = collect_places(&b);
    if (status == ALLOT_STATUS_OK) {
        status = follow_events(&b);
    }
    if (status == ALLOT_STATUS_OK) {
        status = match_final(&b);
    }
    if (status == ALLOT_STATUS_OK) {
        status = put_initial_first(&b);
    }
    free(b.places);
    free(b.row_at);
    free(b.initial);
    alloti_bitset_fini(&b.live);
    return status;
}

allot_status alloti_history_held_ends(const allot_history *history, uint32_t **out, uint64_t *count)
{
    uint64_t *const keys = alloti_alloc_array(history->held_count + 1, sizeof *keys);
    uint32_t *const rows = alloti_alloc_array(history->held_count + 1, sizeof *rows);
    if (keys == NULL || rows == NULL) {
        free(keys);
        free(rows);
        return alloti_fail_memory(history->held_count * (sizeof *keys + sizeof *rows));
    }
    uint64_t used = 0;
    for (uint64_t h = 0; h < history->held_count; h++) {
        if (history->held[h].end_event != ALLOT_NONE) {
            keys[used++] = (uint64_t)history->held[h].end_event << 32 | h;
        }
    }
    qsort(keys, used, sizeof *keys, alloti_compare_u64);
    for (uint64_t i = 0; i < used; i++) {
        rows[i] = (uint32_t)keys[i];
    }
    free(keys);
    *out = rows;
    *count = used;
    return ALLOT_STATUS_OK;
}
