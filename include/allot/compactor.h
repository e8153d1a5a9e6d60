/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Compaction in small steps: a queue of tasks that a program works off while it goes on to
 * allocate and free.
 *
 * Each step has a budget, and makes the moves that fit into it, one at a time; the heap is locked
 * for one move. A step with a budget of time overruns it by at most one piece: a move, or a look at
 * a few thousand ranges.
 */
#ifndef ALLOT_COMPACTOR_H
#define ALLOT_COMPACTOR_H

#include <allot/compact.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct allot_compactor allot_compactor;

/** Options of a compactor. Zero-initialise, then set struct_size. */
typedef struct allot_compactor_options {
    size_t struct_size;
    /** A task that waited so long counts as one priority higher, and so on; 0: 1 s. */
    uint64_t aging_ns;
} allot_compactor_options;

/**
 * Make a compactor for a heap, which has to outlive it.
 *
 * @param[in]  options  NULL for the defaults.
 * @param[out] out      Untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID; ALLOT_STATUS_HOST_MEMORY.
 * The caller owns the result and releases it with allot_compactor_destroy(). All calls are
 * thread-safe but that one.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_compactor_create(
    allot_heap *heap, const allot_compactor_options *options, allot_compactor **out);

/** Stop the thread if there is one and forget all tasks; NULL is allowed. Blocks stay where they
 * are by then. In the child of a fork, where there is no thread, host memory is freed. */
ALLOT_API void allot_compactor_destroy(allot_compactor *compactor);

/** @name Tasks
 * @{ */

/** What is to be reached. Zero-initialise, then set struct_size. */
typedef struct allot_compactor_task_options {
    size_t struct_size;
    allot_compact_goal goal;
    const allot_request *request; /**< Of MAKE_ROOM; see allot_compact_plan_options. */
    /** FULL: enough once external fragmentation is at most this; 0: as far as it goes. */
    double fragmentation_max;
    /** FULL: enough once a free range has so many bytes; 0: as far as it goes. */
    uint64_t largest_min;
    /** FULL: bytes gained that one byte moved has to pay for, else nothing is done; 0: any gain. */
    double weight;
    int32_t priority;     /**< Higher first. */
    uint64_t deadline_ns; /**< After it was added; 0: none. */
    uint64_t bytes_max;   /**< Most bytes to move; 0: no bound. */
    uint64_t moves_max;   /**< Most moves; 0: no bound. */
} allot_compactor_task_options;

/** Where a task is. X(name, spelling) */
#define ALLOT_COMPACTOR_STATE_LIST(X)                                                              \
    X(QUEUED, "queued")                                                                            \
    X(RUNNING, "running")                                                                          \
    X(REACHED, "what was asked for is reached")                                                    \
    X(SETTLED, "nothing more can be gained")                                                       \
    X(NOT_WORTH, "the gain does not pay for the bytes to move")                                    \
    X(BLOCKED, "blocks that cannot be moved are in the way")                                       \
    X(CHURN, "the heap changes faster than it is compacted")                                       \
    X(BUDGET, "the task's bytes or moves are used up")                                             \
    X(CANCELLED, "cancelled")                                                                      \
    X(FAILED, "the device or the host failed")

typedef enum allot_compactor_state {
#define ALLOT_COMPACTOR_STATE_ENUM(name, spelling) ALLOT_COMPACTOR_STATE_##name,
    ALLOT_COMPACTOR_STATE_LIST(ALLOT_COMPACTOR_STATE_ENUM)
#undef ALLOT_COMPACTOR_STATE_ENUM
        ALLOT_COMPACTOR_STATE_COUNT
} allot_compactor_state;

/** One line about a state, "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_compactor_state_text(allot_compactor_state state);

/** Whether a task in this state is over. */
ALLOT_API bool allot_compactor_state_is_end(allot_compactor_state state);

/** How far a task is. Filled in by allot_compactor_get_task(). */
typedef struct allot_compactor_task {
    size_t struct_size;
    uint64_t id;
    allot_compactor_state state;
    allot_status status; /**< Of FAILED. */
    int32_t priority;
    /** Priority with what its age adds. */
    int64_t priority_now;
    uint64_t age_ns;
    bool is_late;   /**< The deadline passed before it was over. */
    uint64_t moved; /**< Blocks. */
    uint64_t bytes; /**< That were moved. */
    uint64_t skipped;
    uint64_t plans;      /**< Made for it. */
    uint64_t moves_left; /**< Of the plan that is being run; 0: none is. */
    uint64_t bytes_left;
    /** Predicted: of the plan's moves that are left; before there is a plan, of moving everything
     * once, or as much as the request has bytes. */
    uint64_t time_left_ns;
    uint64_t size_blocked; /**< BLOCKED: bytes of blocks that cannot be moved. */
} allot_compactor_task;

/**
 * Add a task.
 *
 * @param[out] id  Names it, and no other one of this compactor ever; untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for a wrong goal, request, fragmentation or
 *         weight; ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_FORKED.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_compactor_add(
    allot_compactor *compactor, const allot_compactor_task_options *options, uint64_t *id);

/** End a task; what was moved by then stays. ALLOT_STATUS_OK, also if it was over;
 * ALLOT_STATUS_NOT_FOUND; ALLOT_STATUS_FORKED. */
ALLOT_API ALLOT_NODISCARD allot_status allot_compactor_cancel(allot_compactor *compactor,
                                                              uint64_t id);

/** ALLOT_STATUS_OK; ALLOT_STATUS_NOT_FOUND for a task that never was, or that was over before the
 * last 64 that ended; ALLOT_STATUS_FORKED. */
ALLOT_API ALLOT_NODISCARD allot_status allot_compactor_get_task(allot_compactor *compactor,
                                                                uint64_t id,
                                                                allot_compactor_task *out);

/** Steps do nothing until allot_compactor_resume(). A step that runs ends after the move it is in;
 * this call does not wait for it. */
ALLOT_API void allot_compactor_pause(allot_compactor *compactor);
ALLOT_API void allot_compactor_resume(allot_compactor *compactor);
/** @} */

/** @name Steps
 * @{ */

/** What a step may cost. Zero-initialise, then set struct_size. */
typedef struct allot_compactor_budget {
    size_t struct_size;
    uint64_t time_ns; /**< Planning included; 0: no bound. */
    uint64_t bytes;   /**< 0: no bound. */
    uint64_t moves;   /**< 0: no bound. */
} allot_compactor_budget;

/** What a step did. Filled in by allot_compactor_step(), also when it fails. */
typedef struct allot_compactor_step_report {
    size_t struct_size;
    uint64_t moved;
    uint64_t bytes;
    uint64_t skipped;
    uint64_t time_ns;    /**< In all. */
    uint64_t plan_ns;    /**< Of that, planning. */
    uint64_t piece_ns;   /**< The longest piece, from one look at the clock to the next. */
    uint64_t tasks_left; /**< Not over yet. */
    bool is_paused;
} allot_compactor_step_report;

/**
 * Work on the tasks until the budget is used up or none is left. Of the tasks the one is taken
 * first whose deadline is no further than twice the time that is predicted for it, the nearest of
 * these; else the one of the highest priority, where each aging_ns of waiting counts one; of equals
 * the older. So none waits for ever, but for those that more and more deadlines come before.
 *
 * A whole plan is made where it is predicted to fit into the rest of the step, as long as planning
 * took before, per block; else the heap is compacted in pieces: block by block from the emptiest
 * segment into the others, or from the high end of a segment to the low. To make room for a request
 * there is no such way: its plan is then made as the only work of a step.
 *
 * @param[in]  budget  NULL for the defaults: no bounds.
 * @param[out] report  NULL allowed.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_BUSY while another thread is in a step;
 * ALLOT_STATUS_INVALID; ALLOT_STATUS_FORKED. A task that fails is over, and the step goes on with
 * the next.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_compactor_step(allot_compactor *compactor,
                                                            const allot_compactor_budget *budget,
                                                            allot_compactor_step_report *report);
/** @} */

/** @name Policy
 * @{ */

/** When tasks are added without being asked for. Zero-initialise, then set struct_size. */
typedef struct allot_compactor_policy {
    size_t struct_size;
    /** Begin above so much external fragmentation, above 0 to 1; 0: never. */
    double fragmentation_high;
    /** Aim at so much, so that the next one begins only after fragmentation has grown again; 0:
     * half of `fragmentation_high`. */
    double fragmentation_low;
    uint64_t gain_min; /**< Least bytes that the largest free range, or what can be given back, has
                          to grow by. */
    double weight;     /**< As of tasks; 0: 0.5. */
    int32_t priority;  /**< Of the tasks. */
    /** No more often than this, if the last one ended without reaching its aim; 0: 1 s. */
    uint64_t pause_ns;
} allot_compactor_policy;

/** Set the policy; NULL: none. ALLOT_STATUS_INVALID for marks outside of 0 to 1 or in the wrong
 * order, or a negative weight; ALLOT_STATUS_FORKED. */
ALLOT_API ALLOT_NODISCARD allot_status
allot_compactor_set_policy(allot_compactor *compactor, const allot_compactor_policy *policy);

/**
 * Look whether the policy asks for a task, and add it: cheap figures first, and only if these are
 * above the mark an estimate. The background thread does so on its own.
 *
 * @param[out] id  Of the task that was added; 0: none was. NULL allowed.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_BACKEND; ALLOT_STATUS_FORKED.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_compactor_poll(allot_compactor *compactor,
                                                            uint64_t *id);
/** @} */

/** @name In the background
 * @{ */

/** Options of the thread. Zero-initialise, then set struct_size. */
typedef struct allot_compactor_thread_options {
    size_t struct_size;
    /** Nothing was asked of the heap, and its streams had no work, for so long; 0: 10 ms. */
    uint64_t idle_ns;
    uint64_t step_ns; /**< Time of a step; 0: 1 ms. */
} allot_compactor_thread_options;

/**
 * Start a thread that polls the policy and makes steps while the device is idle: no block was
 * handed out, freed or unpinned since its last look, and all streams have reached what they were
 * given.
 *
 * @param[in] options  NULL for the defaults.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_BUSY if there is one; ALLOT_STATUS_INVALID;
 *         ALLOT_STATUS_HOST_MEMORY if the system gives no thread; ALLOT_STATUS_FORKED.
 */
ALLOT_API ALLOT_NODISCARD allot_status
allot_compactor_start(allot_compactor *compactor, const allot_compactor_thread_options *options);

/** Stop it, after the move that it is in; nothing if there is none. */
ALLOT_API void allot_compactor_stop(allot_compactor *compactor);
/** @} */

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_COMPACTOR_H */
