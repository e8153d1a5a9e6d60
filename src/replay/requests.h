/* SPDX-License-Identifier: MIT */
/**
 * What a recorded history is made into before it is replayed.
 *
 * Every use of an address from its allocation to its end is a *slot*, also where the allocation or
 * the end lies outside of the trace.
 * Built in this order: slots (requests.c), address ranges (ranges.c), the state before the first
 * event (undo.c), what the program did (steps.c).
 */
#ifndef ALLOTI_REPLAY_REQUESTS_H
#define ALLOTI_REPLAY_REQUESTS_H

#include "torchsim/sim.h"

#include <allot/replay.h>

typedef enum step_kind {
    STEP_ALLOC,
    STEP_ALLOC_FAILED, /**< A request that ran out of memory in the recording. */
    STEP_FREE,
    STEP_FREE_SHARED, /**< Another stream still uses the block: STEP_COMPLETE follows. */
    STEP_COMPLETE,
    STEP_EMPTY_CACHE,
} step_kind;

/** One thing that the program did. */
typedef struct alloti_step {
    uint64_t size;   /**< STEP_ALLOC*: bytes asked for. */
    uint64_t stream; /**< STEP_ALLOC*: raw value. */
    uint32_t slot;   /**< Which block; ALLOT_NONE for STEP_ALLOC_FAILED and STEP_EMPTY_CACHE. */
    uint32_t event;  /**< Index of the event. */
    uint32_t pool;   /**< STEP_ALLOC*: private pool, or ALLOT_NONE. */
    uint8_t kind;    /**< step_kind. */
} alloti_step;

/** A private pool. */
typedef struct alloti_request_pool {
    allot_torch_pool_options options; /**< As far as the events tell. */
    uint64_t last_request;            /**< Index of the last allocation in it, or failure. */
} alloti_request_pool;

struct alloti_places;

struct allot_requests {
    const allot_trace *trace;
    allot_events events;
    allot_requests_info info;
    allot_torchsim *rules; /**< An empty allocator under the recorded settings, for its rounding. */
    uint32_t kinds;        /**< Bit (1 << allot_event_kind) for each kind that occurs. */

    uint32_t *slots; /**< [events.count] Slot of ALLOC and FREE_* events, else ALLOT_NONE. */
    uint32_t slot_count;
    uint32_t *event_pools;      /**< [events.count] Private pool of the event, or ALLOT_NONE. */
    uint32_t pool_count;        /**< Private pools. */
    alloti_request_pool *pools; /**< [pool_count] */
    uint32_t *pool_numbers;     /**< Private pool of each pool id of the trace, or ALLOT_NONE. */

    /** The state before the first event, by address. */
    alloti_torchsim_segment *initial;
    alloti_torchsim_block *initial_blocks;
    uint32_t *initial_slots; /**< [initial_block_count] Slot of each block, ALLOT_NONE if free. */
    uint32_t initial_segment_count;
    uint32_t initial_block_count;

    uint64_t counted_peak; /**< Most that a memory fraction is known to allow, as it counts;
                              expandable mode, else UINT64_MAX. */

    uint64_t range_bytes; /**< Size of an expandable range as far as addresses tell; or 0. */

    alloti_step *steps;
    uint64_t step_count;
    uint64_t step_capacity;
};

/** Whether the events show this kind at all; kinds that never occur may have been left out. */
static inline bool alloti_requests_has(const allot_requests *requests, allot_event_kind kind)
{
    return (requests->kinds >> kind & 1u) != 0;
}

/** Whether a free_requested at `event` is completed by the event right after it. */
bool alloti_requests_is_immediate(const allot_requests *requests, uint64_t event);

/** Whether an event ends what one call of the allocator did: everything before it and after the
 * last such event belongs to that call or to a release of the cache. */
bool alloti_requests_is_boundary(const allot_requests *requests, uint64_t event);

/** Rebuild the state before the first event (undo.c); sets the initial_* fields and slots. */
ALLOT_NODISCARD allot_status alloti_requests_undo(allot_requests *requests,
                                                  const struct alloti_places *places);

/** Derive the steps and the recorded peaks (steps.c). */
ALLOT_NODISCARD allot_status alloti_requests_make_steps(allot_requests *requests);

/** Find the private pools and what is known of them (pools.c). */
ALLOT_NODISCARD allot_status alloti_requests_make_pools(allot_requests *requests);

/** Private pool of a pool id of the trace; ALLOT_NONE for the default pool. */
uint32_t alloti_requests_pool(const allot_requests *requests, uint32_t id);

/** Whether pages of expandable segments are mapped or unmapped in the recording. */
static inline bool alloti_requests_has_pages(const allot_requests *requests)
{
    return alloti_requests_has(requests, ALLOT_EVENT_SEGMENT_MAP) ||
           alloti_requests_has(requests, ALLOT_EVENT_SEGMENT_UNMAP);
}

/** Fail for an inconsistency at an event; ALLOT_STATUS_FORMAT. */
allot_status alloti_requests_fail(const allot_requests *requests, uint64_t event, const char *what);

#endif /* ALLOTI_REPLAY_REQUESTS_H */
