/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Compaction: moving live blocks of a heap so that its free memory lies together.
 *
 * Only blocks of handles move (allot_heap_alloc()), while they are not pinned and, unless it is
 * asked for, no stream but their own uses them. Their bytes are copied on their stream, so work
 * that was queued before and after sees them; nobody waits.
 */
#ifndef ALLOT_COMPACT_H
#define ALLOT_COMPACT_H

#include <allot/heap.h>

#ifdef __cplusplus
extern "C" {
#endif

/** When a heap compacts on its own. Zero-initialise, then set struct_size. */
typedef struct allot_compact_options {
    size_t struct_size;
    /** Most bytes to move for one request, as a multiple of the request; 0: no bound. */
    double cost_max;
} allot_compact_options;

/**
 * Let a heap compact where a request would not fit otherwise: the rung COMPACT of its ladder. It
 * moves the fewest bytes that make one range of the request's own pool and stream large enough. In
 * mode VIRTUAL it first tries to map whole free granules of the pool where the request goes, which
 * moves no byte and needs no handles: those whose stream is past what it did when they were freed.
 *
 * @param[in] options  NULL for the defaults.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for a negative cost; ALLOT_STATUS_FORKED.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_compact_attach(allot_heap *heap,
                                                            const allot_compact_options *options);

/**
 * Move the fewest bytes that make room for a request, without allocating it: the ranges that cost
 * the least are cleared first. What lies in one is placed greedily, so that where little is free it
 * may cost more than it has to, or be refused.
 *
 * @param[in]  request  As for allot_heap_alloc(); its size, alignment, pool and stream count.
 * @param[out] moved    Bytes moved; NULL allowed.
 * @return ALLOT_STATUS_OK: a range is free, or was already; ALLOT_STATUS_FRAGMENTED if no moves
 * make room; ALLOT_STATUS_INVALID; ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_BACKEND, and what was
 *         moved by then stays where it is now.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_compact_make_room(allot_heap *heap,
                                                               const allot_request *request,
                                                               uint64_t *moved);

/**
 * @name Plans
 * Planning is apart from doing: a plan is a list of moves over a copy of the heap's state. It can
 * be looked at, checked and costed, and nothing has moved; running it makes the moves that are
 * still possible by then.
 * @{
 */

typedef enum allot_compact_goal {
    /** As few segments as possible hold blocks, in mode VIRTUAL as few granules; where no segment
     * can be emptied, a free range of at least 7/8 of what can come together. */
    ALLOT_COMPACT_GOAL_FULL = 0,
    /** One request fits, with as few bytes moved as are found. */
    ALLOT_COMPACT_GOAL_MAKE_ROOM = 1,
} allot_compact_goal;

/** What a plan is for, and what it may cost. Zero-initialise, then set struct_size. */
typedef struct allot_compact_plan_options {
    size_t struct_size;
    allot_compact_goal goal;
    /** MAKE_ROOM: as for allot_heap_alloc(); its size, alignment, pool and stream count. */
    const allot_request *request;
    uint64_t bytes_max; /**< Most bytes to move; 0: no bound. */
    uint64_t moves_max; /**< Most moves; 0: no bound. */
    /** Most nanoseconds, planning and the predicted time of the moves together; 0: no bound. */
    uint64_t time_max_ns;
    /** Bytes gained that one byte moved has to pay for, for the net benefit; 0: 1. */
    double weight;
    /** Move blocks as well that other streams use: see allot_compact_run_options. */
    bool waits;
} allot_compact_plan_options;

/** What a plan gains and costs. Filled in by allot_compact_estimate() and
 * allot_compact_plan_get_forecast(). Sums over all segments of the heap. */
typedef struct allot_compact_forecast {
    size_t struct_size;
    uint64_t size_free; /**< Bytes held and not used by blocks. */
    uint64_t largest_before;
    uint64_t largest_after;
    double fragmentation_before; /**< External: 1 - largest free range / free bytes. */
    double fragmentation_after;
    uint64_t segments_before; /**< That hold blocks. */
    uint64_t segments_after;
    /** Bytes that allot_heap_trim() can give back: segments, in mode VIRTUAL granules, without
     * blocks. */
    uint64_t releasable_before;
    uint64_t releasable_after;
    uint64_t bytes; /**< To move. */
    uint64_t moves;
    uint64_t size_movable; /**< Bytes of blocks that could be moved at all. */
    /** Of the moves, by what the device tells of its rates; 0 where it tells none. */
    uint64_t time_ns;
    uint64_t planning_ns; /**< Measured. */
    /** Growth of the releasable bytes or of the largest free range, whichever is more, minus
     * `weight` times the bytes to move. Not worth it where it is negative. */
    int64_t benefit;
    /** That the moves copy: more than `bytes` where a block that overlaps itself goes through free
     * memory elsewhere. */
    uint64_t bytes_copied;
} allot_compact_forecast;

/**
 * What a compaction would gain and cost: that of the plan that allot_compact_plan_create() makes of
 * the same options. Moves nothing.
 *
 * @param[in]  options  NULL for the defaults: FULL, no bounds.
 * @param[out] out      Untouched on failure.
 * @return As allot_compact_plan_create().
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_compact_estimate(
    allot_heap *heap, const allot_compact_plan_options *options, allot_compact_forecast *out);

typedef struct allot_compact_plan allot_compact_plan;

/**
 * Plan a compaction. Blocks go into holes that there are; first those of the emptiest segments, the
 * largest first, each to the smallest hole that it fits in; where there is none, small blocks
 * between holes make way. Within a segment the highest blocks go down. Only where that is not
 * enough blocks slide: down into a hole that is smaller than they are. Blocks stay in their pool
 * and their stream's memory; pools that place by buddies or tiers are left alone. The heap is
 * locked while its state is copied, in O(ranges); planning itself is O(n log n) and needs no lock.
 * Freed blocks that a stream keeps at hand go back to their segments.
 *
 * @param[in]  options  NULL for the defaults: FULL, no bounds.
 * @param[out] out      Untouched on failure.
 * @return ALLOT_STATUS_OK, also if there is nothing to move; ALLOT_STATUS_INVALID for a wrong
 *         goal, request or weight; ALLOT_STATUS_FRAGMENTED if MAKE_ROOM cannot be had within the
 *         budgets; ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_BACKEND; ALLOT_STATUS_FORKED.
 * The caller owns the result and releases it with allot_compact_plan_destroy(). Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_compact_plan_create(
    allot_heap *heap, const allot_compact_plan_options *options, allot_compact_plan **out);

/** Release a plan; NULL is allowed. May outlive the heap. */
ALLOT_API void allot_compact_plan_destroy(allot_compact_plan *plan);

/** One move of a plan. */
typedef struct allot_compact_move {
    allot_handle handle;
    allot_devptr from; /**< Where its range begins and is to begin. */
    allot_devptr to;
    uint64_t size; /**< Of the range. */
} allot_compact_move;

/** What a plan gains and costs. */
ALLOT_API void allot_compact_plan_get_forecast(const allot_compact_plan *plan,
                                               allot_compact_forecast *out);

/** Number of moves, and one of them, in the order in which they are made; `index` below the
 * number. A block that first made way and then slides has two. */
ALLOT_API uint64_t allot_compact_plan_count(const allot_compact_plan *plan);
ALLOT_API void allot_compact_plan_get_move(const allot_compact_plan *plan, uint64_t index,
                                           allot_compact_move *out);

/**
 * Make the moves on a copy of the state the plan was made of: each block is where the move says and
 * may be moved, its destination lies in memory, is free but for the block itself where that slides
 * down, and aligned.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_MISMATCH with the first move that is wrong;
 *         ALLOT_STATUS_HOST_MEMORY. O(n log n).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_compact_plan_check(const allot_compact_plan *plan);

/** Why a move is not made. X(name, spelling) */
#define ALLOT_COMPACT_SKIP_LIST(X)                                                                 \
    X(FREED, "the block was freed or dropped")                                                     \
    X(PINNED, "the block is pinned")                                                               \
    X(IN_USE, "another stream uses the block")                                                     \
    X(MOVED, "the block is elsewhere by now")                                                      \
    X(RESIZED, "the block has another size by now")                                                \
    X(TAKEN, "the destination is not free any more")                                               \
    X(VETOED, "the caller's callback refused")                                                     \
    X(BUDGET, "the time was used up")

typedef enum allot_compact_skip {
#define ALLOT_COMPACT_SKIP_ENUM(name, spelling) ALLOT_COMPACT_SKIP_##name,
    ALLOT_COMPACT_SKIP_LIST(ALLOT_COMPACT_SKIP_ENUM)
#undef ALLOT_COMPACT_SKIP_ENUM
        ALLOT_COMPACT_SKIP_COUNT
} allot_compact_skip;

/** One line about a reason, "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_compact_skip_text(allot_compact_skip skip);

/** How a plan is run. Zero-initialise, then set struct_size. */
typedef struct allot_compact_run_options {
    size_t struct_size;
    /** The run ends before the first move that is predicted to end after so many nanoseconds; 0: no
     * bound. */
    uint64_t time_max_ns;
    /** Called before each move, without a lock; false leaves the block where it is. NULL: none. */
    bool (*before)(void *context, const allot_compact_move *move);
    /** Called after each move that was made, without a lock. The bytes are at the new place for
     * work that is queued on the block's stream from now on. NULL: none. */
    void (*after)(void *context, const allot_compact_move *move);
    void *context;
    /**
     * Move blocks as well that other streams use (allot_heap_use()): the copy then waits on its
     * stream for the work that those were given by now. Whoever uses the block on another stream
     * has to pin it, call allot_heap_use(), give the stream its work and unpin it, each time anew:
     * the call makes the stream wait for the move, and the pin keeps another one from coming in
     * between. False: such blocks stay where they are.
     */
    bool waits;
} allot_compact_run_options;

/** What running a plan did. Filled in by allot_compact_plan_run(), also when it fails. */
typedef struct allot_compact_report {
    size_t struct_size;
    uint64_t moved; /**< Blocks. */
    uint64_t bytes;
    uint64_t skipped; /**< Sum of `why`. */
    uint64_t why[ALLOT_COMPACT_SKIP_COUNT];
    /** By the host's clock. Devices that copy on their own may not be done by then. */
    uint64_t time_ns;
} allot_compact_report;

/**
 * Make the moves of a plan, each only if block and destination are still as they were planned; else
 * it is skipped. The heap is locked for one move at a time. Bytes are copied on the block's stream,
 * those of a block that slides in chunks that do not overlap themselves; in heaps that neither
 * scrub nor debug, whole pages of other blocks are moved instead where the device can.
 * allot_heap_trim() then gives back what has become free.
 *
 * @param[in]  heap     That the plan was made of.
 * @param[in]  options  NULL for the defaults.
 * @param[out] report   NULL allowed.
 * @return ALLOT_STATUS_OK, also if moves were skipped; ALLOT_STATUS_INVALID for another heap;
 *         ALLOT_STATUS_HOST_MEMORY, ALLOT_STATUS_BACKEND or ALLOT_STATUS_FORKED: what was moved
 *         by then stays where it is now, and the block that could not be moved is as it was. Only
 *         if a copy of a slide fails and those that would undo it do as well, a block is lost,
 *         which the detail tells: it is one that was dropped then, allot_heap_pin() returns
 *         ALLOT_STATUS_NOT_FOUND. Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status
allot_compact_plan_run(allot_heap *heap, const allot_compact_plan *plan,
                       const allot_compact_run_options *options, allot_compact_report *report);
/** @} */

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_COMPACT_H */
