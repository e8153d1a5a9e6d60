/* SPDX-License-Identifier: MIT */
/**
 * What a history is made of, for the files history*.c. Everything else uses <allot/history.h>.
 *
 * Built in this order, each step from those before it: memory held (history_held.c), the table of
 * allocations (history_table.c), pools that were not recorded (history_pool.c), sizes of the blocks
 * (history_size.c), timelines and shares (history_time.c, history_share.c). Afterwards nothing
 * changes.
 */
#ifndef ALLOTI_REPLAY_HISTORY_H
#define ALLOTI_REPLAY_HISTORY_H

#include <allot/history.h>

#include "core/progress.h"

/** An allocation that ended at an event which is not about it. */
typedef struct alloti_ended {
    uint32_t event;
    uint32_t allocation;
} alloti_ended;

struct allot_history {
    const allot_trace *trace;
    uint32_t device;
    allot_events events;

    /** The table, columns of allot_allocations [count], owned. */
    uint32_t count;
    uint32_t initial_count;
    uint64_t *addr;
    uint64_t *size;
    uint64_t *requested;
    uint32_t *alloc_event;
    uint32_t *free_requested_event;
    uint32_t *free_completed_event;
    uint32_t *use;
    uint32_t *stack;
    uint32_t *stream;
    uint32_t *pool;
    uint32_t *metadata;
    uint8_t *category;
    uint8_t *is_size_known; /**< Size comes from a block of the final state. */

    uint32_t *allocation_of; /**< [events.count] */
    alloti_ended *ended;     /**< By event. */
    uint64_t ended_count;
    uint64_t ended_capacity;

    allot_held *held;
    uint64_t held_count;
    uint64_t held_capacity;

    uint64_t *timeline[ALLOT_MEASURE_COUNT]; /**< [events.count] each. */
    uint64_t initial[ALLOT_MEASURE_COUNT];
    allot_peak peak[ALLOT_MEASURE_COUNT];

    allot_share *streams;
    uint32_t stream_count;
    allot_share *pools;
    uint32_t pool_count;

    allot_history_counts counts;
};

/** Segments of the device at the end of the trace. [*count] */
const allot_segment *alloti_history_final_segments(const allot_history *history, uint32_t *count);

/**
 * Rows of `held` that end, in the order of their end events. The caller frees *out [*count].
 */
ALLOT_NODISCARD allot_status alloti_history_held_ends(const allot_history *history, uint32_t **out,
                                                      uint64_t *count);

/** End of a range, the largest address where it would overflow. */
static inline uint64_t alloti_range_end(uint64_t address, uint64_t size)
{
    return address > UINT64_MAX - size ? UINT64_MAX : address + size;
}

/** Whether something that lasts from `begin` to `end` (ALLOT_NONE: for ever) is there at `event`.
 */
static inline bool alloti_is_live(uint32_t begin, uint32_t end, uint32_t event)
{
    const bool has_begun = begin == ALLOT_NONE || (event != ALLOT_NONE && begin <= event);
    const bool has_ended = end != ALLOT_NONE && event != ALLOT_NONE && end <= event;
    return has_begun && !has_ended;
}

ALLOT_NODISCARD allot_status alloti_history_build_held(allot_history *history);
ALLOT_NODISCARD allot_status alloti_history_build_table(allot_history *history,
                                                        const alloti_progress *progress);
ALLOT_NODISCARD allot_status alloti_history_build_pools(allot_history *history);
ALLOT_NODISCARD allot_status alloti_history_build_sizes(allot_history *history);
ALLOT_NODISCARD allot_status alloti_history_build_timelines(allot_history *history);
ALLOT_NODISCARD allot_status alloti_history_build_shares(allot_history *history);

/** Check all invariants; what is broken is in the detail text. For tests. */
ALLOT_NODISCARD allot_status alloti_history_check(const allot_history *history);

#endif /* ALLOTI_REPLAY_HISTORY_H */
