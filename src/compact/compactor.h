/* SPDX-License-Identifier: MIT */
/**
 * What is behind an allot_compactor: tasks, of which each has its plan, if one could be made, or
 * the place where it is without one.
 *
 * Locks, before those of the heap: `step_mutex` is held during a step; `mutex` guards the list of
 * tasks and all of a task but the plan and the sweep of `current`, which only the step uses.
 */
#ifndef ALLOTI_COMPACT_COMPACTOR_H
#define ALLOTI_COMPACT_COMPACTOR_H

#include <allot/compactor.h>
#include <pthread.h>
#include <stdatomic.h>

#include "compact/sweep.h"

typedef struct compactor_task {
    allot_compactor_task_options options;
    allot_request request;
    allot_compactor_task progress;
    uint64_t added_ns;
    uint64_t ended;       /**< The how manieth that ended; 0: it has not. */
    uint64_t deadline_at; /**< By the host's clock; UINT64_MAX: none. */
    allot_compact_plan *plan;
    uint64_t plan_at;      /**< Moves of it that were made or skipped. */
    uint64_t plan_moved;   /**< Of these, made. */
    uint64_t plan_skipped; /**< Of these, skipped because something had changed. */
    uint64_t futile;       /**< Plans one after the other of which no move could be made. */
    bool is_last_look;     /**< The next plan is only to tell what was left for lack of budget. */
    compact_sweep *sweep;  /**< NULL: none was begun. */
} compactor_task;

typedef struct compactor_thread {
    pthread_t thread;
    pthread_cond_t wake;
    bool is_running;
    bool is_stopping;
    allot_compactor_thread_options options;
} compactor_thread;

struct allot_compactor {
    allot_heap *heap;
    uint64_t aging_ns;
    pthread_mutex_t step_mutex;
    pthread_mutex_t mutex;
    compactor_task **tasks; /**< By id, those over as well. [count] */
    uint64_t capacity;
    uint64_t count;
    uint64_t next_id;
    uint64_t ended_count;    /**< Tasks that ended so far. */
    compactor_task *current; /**< Of the step that goes on; NULL: none. */
    _Atomic bool is_paused;  /**< Relaxed: a hint to a step that runs. */
    double plan_ns_per_block;
    allot_compactor_policy policy;
    uint64_t policy_task;  /**< 0: none. */
    uint64_t policy_after; /**< Not before, by the host's clock. */
    compactor_thread background;
};

/** Whether a task is at its end. */
static inline bool compactor_task_is_over(const compactor_task *task)
{
    return allot_compactor_state_is_end(task->progress.state);
}

/** Add a task; called with `mutex` held. */
ALLOT_NODISCARD allot_status alloti_compactor_add(allot_compactor *compactor,
                                                  const allot_compactor_task_options *options,
                                                  uint64_t *id);

/** A task by its id; NULL if it is not known. Called with `mutex` held. */
compactor_task *alloti_compactor_find(const allot_compactor *compactor, uint64_t id);

/** End a task that is not over; called with `mutex` held. */
void alloti_compactor_end(allot_compactor *compactor, compactor_task *task,
                          allot_compactor_state state);

/** Forget what tasks that are over were doing, and all of those that ended before the last few.
 * Called with `mutex` held. */
void alloti_compactor_forget(allot_compactor *compactor);

#endif /* ALLOTI_COMPACT_COMPACTOR_H */
