/* SPDX-License-Identifier: MIT */
/**
 * Rows of events that can be read in several ways.
 *
 * The events do not say where one call of the allocator begins. A row of segment_free may be a
 * release that the program asked for, or pressure on the way to the next allocation; a completed
 * free before it may have been there for the search, or have come of the wait that is part of the
 * pressure. Where the model cannot decide, the readings are tried on copies; a difference is one
 * under each of them.
 */
#include "replay/check.h"

#include "core/array.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

/** Ways to divide a row of completed frees that are tried at most. */
enum { SPLITS_MAX = 64 };

/** Events up to the request that they may belong to. */
typedef struct row {
    uint64_t end; /**< Index of the request; the number of events without one. */
    bool has_request;
    bool takes; /**< Memory is taken from the driver in it. */
} row;

static row look_at_row(const checker *check, uint64_t first)
{
    const allot_events *events = check->events;
    row found = {.end = first};
    while (found.end < events->count && !alloti_requests_is_boundary(check->requests, found.end)) {
        const uint8_t kind = events->kind[found.end];
        found.takes =
            found.takes || kind == ALLOT_EVENT_SEGMENT_ALLOC || kind == ALLOT_EVENT_SEGMENT_MAP;
        found.end++;
    }
    if (found.end < events->count) {
        const uint8_t kind = events->kind[found.end];
        found.has_request = kind == ALLOT_EVENT_ALLOC || kind == ALLOT_EVENT_OOM;
    }
    return found;
}

/** Whether a private pool gives memory back at an event that may have lost its last use: the model
 * holds it in use, and no request names it any more. */
static bool gives_in_used_pool(const checker *check, uint64_t at)
{
    const uint8_t kind = check->events->kind[at];
    const uint32_t pool = check->requests->event_pools[at];
    return pool != ALLOT_NONE &&
           (kind == ALLOT_EVENT_SEGMENT_FREE || kind == ALLOT_EVENT_SEGMENT_UNMAP) &&
           check->sim->pools[pool + 1].use_count > 0 &&
           check->requests->pools[pool].last_request < at;
}

static bool has_used_pools(const checker *check, const row *found)
{
    for (uint64_t at = check->cursor; at < found->end; at++) {
        if (gives_in_used_pool(check, at)) {
            return true;
        }
    }
    return false;
}

/** Private pools whose segments are given back in the row have lost their last use. */
static allot_status release_pools(checker *check, const row *found)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t at = check->cursor; at < found->end; at++) {
        while (status == ALLOT_STATUS_OK && gives_in_used_pool(check, at)) {
            status = allot_torchsim_pool_release(check->sim, check->requests->event_pools[at]);
        }
    }
    return status;
}

/** Whether the event at the cursor may be of a MemPool that was dropped. */
static bool may_be_dropped(const checker *check)
{
    const uint32_t pool = check->requests->event_pools[check->cursor];
    return gives_in_used_pool(check, check->cursor) &&
           !check->requests->pools[pool].options.is_graph;
}

/** The pool at the cursor loses its last use and gives its segments back. */
static allot_status follow_drop(checker *check)
{
    const uint64_t before = check->cursor;
    const uint32_t pool = check->requests->event_pools[before];
    allot_status status = ALLOT_STATUS_OK;
    while (status == ALLOT_STATUS_OK && check->sim->pools[pool + 1].use_count > 0) {
        status = allot_torchsim_pool_release(check->sim, pool);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_torchsim_pool_empty_cache(check->sim, pool);
    }
    if (status == ALLOT_STATUS_OK && !check->has_failed && check->cursor == before) {
        alloti_check_fail(check, NULL, "the model has nothing to release");
    }
    return status;
}

/** Whether the row's first release is more likely the program's own. */
static bool seems_own(const checker *check, const row *found)
{
    if (!found->has_request) {
        return true;
    }
    const allot_events *events = check->events;
    if (events->kind[found->end] == ALLOT_EVENT_ALLOC && !found->takes) {
        return true;
    }
    const uint64_t size = events->size[found->end] > 0 ? events->size[found->end] : 1;
    const uint64_t stream = allot_trace_stream(check->requests->trace, events->stream[found->end]);
    return alloti_torchsim_would_hit(check->sim, size, stream,
                                     check->requests->event_pools[found->end]);
}

/** What has to be put back before the other reading of a row is tried. */
typedef struct saved {
    allot_torchsim *sim;
    uint8_t *matched;
    checker check;
    allot_replay_check_result result;
    uint64_t first;
    uint64_t count;
} saved;

static void drop_saved(saved *state)
{
    allot_torchsim_destroy(state->sim);
    free(state->matched);
}

static allot_status save(const checker *check, const row *found, saved *out)
{
    const uint64_t end = found->has_request ? found->end + 1 : found->end;
    *out = (saved){.check = *check,
                   .result = *check->result,
                   .first = check->cursor,
                   .count = end - check->cursor};
    out->matched = alloti_alloc_array(out->count + 1, 1);
    if (out->matched == NULL) {
        return alloti_fail_memory(out->count);
    }
    memcpy(out->matched, check->matched + out->first, (size_t)out->count);
    const allot_status status = allot_torchsim_clone(check->sim, &out->sim);
    if (status != ALLOT_STATUS_OK) {
        drop_saved(out);
    }
    return status;
}

/** Put everything back; the saved allocator moves into the check. */
static void restore(checker *check, saved *state)
{
    allot_torchsim_destroy(check->sim);
    check->sim = state->sim;
    state->sim = NULL;
    check->cursor = state->check.cursor;
    check->held = state->check.held;
    check->has_failed = false;
    memcpy(check->matched + state->first, state->matched, (size_t)state->count);
    *check->result = state->result;
}

typedef enum reading_kind {
    READING_PRESSURE,  /**< The request that follows needed the memory. */
    READING_OWN,       /**< The program asked for the release. */
    READING_DROP,      /**< A MemPool was dropped; the rest of the row is read for itself. */
    READING_COMPLETED, /**< Some frees were complete before the request. */
} reading_kind;

/** One way to read a row. */
typedef struct reading {
    reading_kind kind;
    bool ends_pools;    /**< Private pools in the row have lost their last use. */
    uint64_t completed; /**< READING_COMPLETED: how many of the row. */
} reading;

static allot_status follow_completed(checker *check, const row *found, uint64_t count);

static allot_status follow_reading(checker *check, const row *found, reading as)
{
    if (as.kind == READING_COMPLETED) {
        return follow_completed(check, found, as.completed);
    }
    if (as.kind == READING_DROP) {
        return follow_drop(check);
    }
    allot_status status = as.ends_pools ? release_pools(check, found) : ALLOT_STATUS_OK;
    if (status == ALLOT_STATUS_OK && as.kind == READING_OWN) {
        status = alloti_check_release(check);
    }
    const bool is_left = found->has_request && !check->has_failed && check->cursor <= found->end;
    return status == ALLOT_STATUS_OK && is_left ? alloti_check_request(check, found->end) : status;
}

/** Try the readings one after the other until one comes out equal. [count] */
static allot_status follow_any(checker *check, const row *found, const reading *readings,
                               size_t count)
{
    allot_replay_check_result first = *check->result;
    allot_status status = ALLOT_STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        saved state;
        status = save(check, found, &state);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        status = follow_reading(check, found, readings[i]);
        if (status != ALLOT_STATUS_OK || !check->has_failed) {
            drop_saved(&state);
            return status;
        }
        first = i == 0 ? *check->result : first;
        if (i + 1 < count) {
            restore(check, &state);
        }
        drop_saved(&state);
    }
    *check->result = first;
    return status;
}

/** A row in which memory is given back. */
static allot_status follow_giving(checker *check, const row *found)
{
    reading readings[5];
    size_t count = 0;
    if (may_be_dropped(check)) {
        readings[count++] = (reading){.kind = READING_DROP};
    }
    const bool is_own = seems_own(check, found);
    const int pool_readings = has_used_pools(check, found) ? 2 : 1;
    for (int pools = 0; pools < pool_readings; pools++) {
        const reading own = {.kind = READING_OWN, .ends_pools = pools == 1};
        const reading pressure = {.kind = READING_PRESSURE, .ends_pools = pools == 1};
        readings[count++] = is_own ? own : pressure;
        if (found->has_request) {
            readings[count++] = is_own ? pressure : own;
        }
    }
    return count == 1 ? follow_reading(check, found, readings[0])
                      : follow_any(check, found, readings, count);
}

allot_status alloti_check_row(checker *check)
{
    const row found = look_at_row(check, check->cursor);
    const uint8_t kind = check->events->kind[check->cursor];
    if (kind == ALLOT_EVENT_SEGMENT_ALLOC || kind == ALLOT_EVENT_SEGMENT_MAP) {
        if (!found.has_request) {
            alloti_check_fail(check, NULL, "memory is taken without a request");
            return ALLOT_STATUS_OK;
        }
        return alloti_check_request(check, found.end);
    }
    return follow_giving(check, &found);
}

static bool is_giving(const checker *check, uint64_t at)
{
    const uint8_t kind = check->events->kind[at];
    return kind == ALLOT_EVENT_SEGMENT_FREE || kind == ALLOT_EVENT_SEGMENT_UNMAP;
}

/** The free at the cursor, complete at once, or the completed free there. */
static allot_status follow_one(checker *check)
{
    return check->events->kind[check->cursor] == ALLOT_EVENT_FREE_REQUESTED
               ? alloti_check_free(check, false)
               : alloti_check_completed(check);
}

/** `count` completed frees, then the rest of the row with the others pending. */
static allot_status follow_completed(checker *check, const row *found, uint64_t count)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint64_t i = 0; status == ALLOT_STATUS_OK && i < count && !check->has_failed; i++) {
        status = follow_one(check);
    }
    if (status == ALLOT_STATUS_OK && !check->has_failed &&
        check->events->kind[check->cursor] == ALLOT_EVENT_FREE_REQUESTED) {
        status = alloti_check_free(check, true);
    }
    if (status != ALLOT_STATUS_OK || check->has_failed || check->cursor > found->end) {
        return status;
    }
    for (uint64_t at = check->cursor; at < found->end; at++) {
        if (is_giving(check, at)) {
            return follow_giving(check, found);
        }
    }
    return alloti_check_request(check, found->end);
}

/** Completed frees in a row, from the cursor on. */
static uint64_t count_completed(const checker *check)
{
    const allot_events *events = check->events;
    const uint64_t first =
        check->cursor + (events->kind[check->cursor] == ALLOT_EVENT_FREE_REQUESTED);
    uint64_t at = first;
    while (at < events->count && events->kind[at] == ALLOT_EVENT_FREE_COMPLETED) {
        at++;
    }
    return at - first;
}

allot_status alloti_check_completions(checker *check)
{
    const bool is_request = check->events->kind[check->cursor] == ALLOT_EVENT_FREE_REQUESTED;
    const uint64_t count = count_completed(check);
    const uint64_t next = check->cursor + is_request + count;
    const row found = look_at_row(check, next);
    const bool is_failure =
        next == found.end && found.has_request && check->events->kind[next] == ALLOT_EVENT_OOM;
    if (!is_failure && (!found.has_request || !is_giving(check, next))) {
        return follow_one(check);
    }
    /* All before the request, none, then what lies between. */
    reading readings[SPLITS_MAX];
    size_t readings_count = 0;
    readings[readings_count++] = (reading){.kind = READING_COMPLETED, .completed = count};
    for (uint64_t i = 0; i < count && readings_count < SPLITS_MAX; i++) {
        readings[readings_count++] = (reading){.kind = READING_COMPLETED, .completed = i};
    }
    return follow_any(check, &found, readings, readings_count);
}
