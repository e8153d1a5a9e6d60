/* SPDX-License-Identifier: MIT */
/* Compactors and their tasks. */
#include "compact/compactor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "compact/plan.h"
#include "core/array.h"
#include "core/options.h"
#include "heap/alloc.h"

#define AGING_NS UINT64_C(1000000000)

/** Tasks that are over and can be asked for still. */
enum { OVER_MAX = 64 };

/* ---- states ---- */

static const char *const STATE_TEXTS[] = {
#define STATE_TEXT(name, text) text,
    ALLOT_COMPACTOR_STATE_LIST(STATE_TEXT)
#undef STATE_TEXT
};

const char *allot_compactor_state_text(allot_compactor_state state)
{
    return (unsigned)state < ALLOT_COMPACTOR_STATE_COUNT ? STATE_TEXTS[state] : "unknown";
}

bool allot_compactor_state_is_end(allot_compactor_state state)
{
    return state != ALLOT_COMPACTOR_STATE_QUEUED && state != ALLOT_COMPACTOR_STATE_RUNNING;
}

/* ---- making ---- */

/** Its times are those of the monotonic clock. */
static void init_wake(pthread_cond_t *wake)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

allot_status allot_compactor_create(allot_heap *heap, const allot_compactor_options *options,
                                    allot_compactor **out)
{
    allot_compactor_options taken;
    allot_status status = alloti_options_take(options, sizeof taken, &taken);
    if (status == ALLOT_STATUS_OK) {
        status = heap_check_fork(heap);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_compactor *const compactor = calloc(1, sizeof *compactor);
    if (compactor == NULL) {
        return alloti_fail_memory(sizeof *compactor);
    }
    compactor->heap = heap;
    compactor->aging_ns = taken.aging_ns == 0 ? AGING_NS : taken.aging_ns;
    compactor->next_id = 1;
    pthread_mutex_init(&compactor->step_mutex, NULL);
    pthread_mutex_init(&compactor->mutex, NULL);
    init_wake(&compactor->background.wake);
    *out = compactor;
    return ALLOT_STATUS_OK;
}

static void drop_work(compactor_task *task)
{
    allot_compact_plan_destroy(task->plan);
    free(task->sweep);
    task->plan = NULL;
    task->sweep = NULL;
}

static void task_destroy(compactor_task *task)
{
    drop_work(task);
    free(task);
}

void allot_compactor_destroy(allot_compactor *compactor)
{
    if (compactor == NULL) {
        return;
    }
    allot_compactor_stop(compactor);
    for (uint64_t i = 0; i < compactor->count; i++) {
        task_destroy(compactor->tasks[i]);
    }
    free(compactor->tasks);
    /* In the child of a fork the thread is gone, and what it waited for would wait for it. */
    if (heap_check_fork(compactor->heap) == ALLOT_STATUS_OK) {
        pthread_cond_destroy(&compactor->background.wake);
        pthread_mutex_destroy(&compactor->step_mutex);
        pthread_mutex_destroy(&compactor->mutex);
    }
    free(compactor);
}

/* ---- tasks ---- */

compactor_task *alloti_compactor_find(const allot_compactor *compactor, uint64_t id)
{
    for (uint64_t i = 0; i < compactor->count; i++) {
        if (compactor->tasks[i]->progress.id == id) {
            return compactor->tasks[i];
        }
    }
    return NULL;
}

static allot_status check_task(const allot_compactor_task_options *options, allot_request *request)
{
    if (!(options->fragmentation_max >= 0 && options->fragmentation_max <= 1)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a fragmentation of %g: 0 to 1",
                           options->fragmentation_max);
    }
    if (!(options->weight >= 0)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a weight of %g: 0 or more", options->weight);
    }
    if (options->goal == ALLOT_COMPACT_GOAL_FULL) {
        return ALLOT_STATUS_OK;
    }
    if (options->goal != ALLOT_COMPACT_GOAL_MAKE_ROOM || options->request == NULL) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "goal %d: to be full, or to make room with a request",
                           (int)options->goal);
    }
    const allot_status status = alloti_options_take(options->request, sizeof *request, request);
    return status == ALLOT_STATUS_OK ? alloti_request_check(request, false) : status;
}

void alloti_compactor_end(allot_compactor *compactor, compactor_task *task,
                          allot_compactor_state state)
{
    task->progress.state = state;
    task->ended = ++compactor->ended_count;
}

void alloti_compactor_forget(allot_compactor *compactor)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < compactor->count; i++) {
        compactor_task *const task = compactor->tasks[i];
        const bool is_done = task != compactor->current && compactor_task_is_over(task);
        if (is_done && task->ended + OVER_MAX <= compactor->ended_count) {
            task_destroy(task);
            continue;
        }
        if (is_done) {
            drop_work(task);
        }
        compactor->tasks[kept++] = task;
    }
    compactor->count = kept;
}

/** Time that a task is taken to need before it is planned. */
static uint64_t predict(allot_heap *heap, const allot_compactor_task_options *options,
                        const allot_request *request)
{
    allot_heap_stats stats;
    if (allot_heap_get_stats(heap, &stats) != ALLOT_STATUS_OK) {
        return 0;
    }
    uint64_t bytes = stats.active_bytes.current;
    if (options->goal == ALLOT_COMPACT_GOAL_MAKE_ROOM && request->size < bytes) {
        bytes = request->size;
    }
    return alloti_plan_cost_ns(&heap->info, 0, 1, bytes);
}

allot_status alloti_compactor_add(allot_compactor *compactor,
                                  const allot_compactor_task_options *options, uint64_t *id)
{
    alloti_compactor_forget(compactor);
    const allot_status status = alloti_array_reserve(
        &compactor->tasks, &compactor->capacity, compactor->count + 1, sizeof(compactor_task *));
    compactor_task *const task = status == ALLOT_STATUS_OK ? calloc(1, sizeof *task) : NULL;
    if (task == NULL) {
        return alloti_fail_memory(sizeof *task);
    }
    task->options = *options;
    task->added_ns = alloti_plan_now_ns();
    task->deadline_at =
        options->deadline_ns == 0 || options->deadline_ns > UINT64_MAX - task->added_ns
            ? UINT64_MAX
            : task->added_ns + options->deadline_ns;
    task->progress = (allot_compactor_task){.struct_size = sizeof task->progress,
                                            .id = compactor->next_id++,
                                            .priority = options->priority};
    compactor->tasks[compactor->count++] = task;
    *id = task->progress.id;
    return ALLOT_STATUS_OK;
}

allot_status allot_compactor_add(allot_compactor *compactor,
                                 const allot_compactor_task_options *options, uint64_t *id)
{
    allot_compactor_task_options taken;
    allot_request request = {0};
    allot_status status = alloti_options_take(options, sizeof taken, &taken);
    if (status == ALLOT_STATUS_OK) {
        status = check_task(&taken, &request);
    }
    if (status == ALLOT_STATUS_OK) {
        status = heap_check_fork(compactor->heap);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const uint64_t time_ns = predict(compactor->heap, &taken, &request);
    pthread_mutex_lock(&compactor->mutex);
    status = alloti_compactor_add(compactor, &taken, id);
    if (status == ALLOT_STATUS_OK) {
        compactor_task *const task = compactor->tasks[compactor->count - 1];
        task->request = request;
        task->progress.time_left_ns = time_ns;
        task->options.request = taken.goal == ALLOT_COMPACT_GOAL_FULL ? NULL : &task->request;
    }
    pthread_mutex_unlock(&compactor->mutex);
    return status;
}

allot_status allot_compactor_cancel(allot_compactor *compactor, uint64_t id)
{
    const allot_status status = heap_check_fork(compactor->heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    pthread_mutex_lock(&compactor->mutex);
    compactor_task *const task = alloti_compactor_find(compactor, id);
    if (task != NULL && !compactor_task_is_over(task)) {
        alloti_compactor_end(compactor, task, ALLOT_COMPACTOR_STATE_CANCELLED);
    }
    pthread_mutex_unlock(&compactor->mutex);
    return task != NULL ? ALLOT_STATUS_OK
                        : alloti_fail(ALLOT_STATUS_NOT_FOUND, "no task has the id %" PRIu64, id);
}

allot_status allot_compactor_get_task(allot_compactor *compactor, uint64_t id,
                                      allot_compactor_task *out)
{
    const allot_status status = heap_check_fork(compactor->heap);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    pthread_mutex_lock(&compactor->mutex);
    const compactor_task *const task = alloti_compactor_find(compactor, id);
    if (task != NULL) {
        *out = task->progress;
        if (!compactor_task_is_over(task)) {
            const uint64_t now = alloti_plan_now_ns();
            out->age_ns = now - task->added_ns;
            out->priority_now = out->priority + (int64_t)(out->age_ns / compactor->aging_ns);
            out->is_late = now > task->deadline_at;
        }
    }
    pthread_mutex_unlock(&compactor->mutex);
    return task != NULL ? ALLOT_STATUS_OK
                        : alloti_fail(ALLOT_STATUS_NOT_FOUND, "no task has the id %" PRIu64, id);
}

void allot_compactor_pause(allot_compactor *compactor)
{
    atomic_store_explicit(&compactor->is_paused, true, memory_order_relaxed);
}

void allot_compactor_resume(allot_compactor *compactor)
{
    atomic_store_explicit(&compactor->is_paused, false, memory_order_relaxed);
}
