/* SPDX-License-Identifier: MIT */
/* The thread that compacts while the device has nothing else to do. */
#include <errno.h>
#include <time.h>

#include "compact/compactor.h"
#include "compact/plan.h"
#include "core/options.h"
#include "heap/place.h"

#define IDLE_NS UINT64_C(10000000)
#define STEP_NS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

/** What was asked of a heap so far: it is the same at two times if nothing was asked between. */
typedef struct activity {
    uint64_t allocated;
    uint64_t freed;
    uint64_t unpinned;
} activity;

static bool read_activity(allot_heap *heap, activity *out)
{
    allot_heap_stats stats;
    if (allot_heap_get_stats(heap, &stats) != ALLOT_STATUS_OK) {
        return false;
    }
    *out = (activity){.allocated = stats.allocation.allocated,
                      .freed = stats.allocation.freed,
                      .unpinned = atomic_load_explicit(&heap->ticks, memory_order_relaxed)};
    return true;
}

/** Whether all streams have reached what they were given. */
static bool are_streams_done(allot_heap *heap)
{
    const allot_stream any = {0};
    if (alloti_heap_enter(heap) != ALLOT_STATUS_OK) {
        return false;
    }
    bool are = true;
    for (uint32_t i = 0; i < heap->stream_count && are; i++) {
        are = heap->streams[i]->is_ended ||
              alloti_place_order(heap, any, i, false) == ALLOT_STATUS_OK;
    }
    pthread_mutex_unlock(&heap->mutex);
    return are;
}

/** Sleep, or until the thread is to stop; false then. */
static bool sleep_for(allot_compactor *compactor, uint64_t duration_ns)
{
    compactor_thread *const background = &compactor->background;
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    const uint64_t ns = (uint64_t)until.tv_nsec + duration_ns % NS_PER_S;
    until.tv_sec += (time_t)(duration_ns / NS_PER_S + ns / NS_PER_S);
    until.tv_nsec = (long)(ns % NS_PER_S);
    pthread_mutex_lock(&compactor->mutex);
    int woken = 0;
    while (!background->is_stopping && woken != ETIMEDOUT) {
        woken = pthread_cond_timedwait(&background->wake, &compactor->mutex, &until);
    }
    const bool goes_on = !background->is_stopping;
    pthread_mutex_unlock(&compactor->mutex);
    return goes_on;
}

static bool is_same(const activity *a, const activity *b)
{
    return a->allocated == b->allocated && a->freed == b->freed && a->unpinned == b->unpinned;
}

/** Work while the heap is left alone: a move counts as a request and a release. */
static void work_while_idle(allot_compactor *compactor, activity before)
{
    const allot_compactor_budget budget = {.struct_size = sizeof budget,
                                           .time_ns = compactor->background.options.step_ns};
    activity now;
    while (read_activity(compactor->heap, &now) && is_same(&now, &before) &&
           are_streams_done(compactor->heap)) {
        allot_compactor_step_report report;
        if (allot_compactor_step(compactor, &budget, &report) != ALLOT_STATUS_OK ||
            report.tasks_left == 0 || report.is_paused || !sleep_for(compactor, 0)) {
            return;
        }
        before.allocated += report.moved;
        before.freed += report.moved;
    }
}

static void *thread_main(void *context)
{
    allot_compactor *const compactor = context;
    activity before = {0};
    bool is_known = false;
    while (sleep_for(compactor, compactor->background.options.idle_ns)) {
        activity now;
        const bool is_read = read_activity(compactor->heap, &now);
        if (is_read && is_known && is_same(&now, &before)) {
            /* Without memory for a task there is none; it is tried again. */
            if (allot_compactor_poll(compactor, NULL) == ALLOT_STATUS_OK) {
                work_while_idle(compactor, now);
            }
            is_known = read_activity(compactor->heap, &before);
        } else {
            before = now;
            is_known = is_read;
        }
    }
    return NULL;
}

allot_status allot_compactor_start(allot_compactor *compactor,
                                   const allot_compactor_thread_options *options)
{
    compactor_thread *const background = &compactor->background;
    allot_compactor_thread_options taken;
    allot_status status = alloti_options_take(options, sizeof taken, &taken);
    if (status == ALLOT_STATUS_OK) {
        status = heap_check_fork(compactor->heap);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    taken.idle_ns = taken.idle_ns == 0 ? IDLE_NS : taken.idle_ns;
    taken.step_ns = taken.step_ns == 0 ? STEP_NS : taken.step_ns;
    pthread_mutex_lock(&compactor->mutex);
    if (background->is_running) {
        status = alloti_fail(ALLOT_STATUS_BUSY, "the compactor has a thread already");
    } else {
        background->options = taken;
        background->is_stopping = false;
        if (pthread_create(&background->thread, NULL, thread_main, compactor) == 0) {
            background->is_running = true;
        } else {
            status = alloti_fail(ALLOT_STATUS_HOST_MEMORY, "the system gives no thread");
        }
    }
    pthread_mutex_unlock(&compactor->mutex);
    return status;
}

void allot_compactor_stop(allot_compactor *compactor)
{
    compactor_thread *const background = &compactor->background;
    /* In the child of a fork there is no thread, and it may have held the lock. */
    if (heap_check_fork(compactor->heap) != ALLOT_STATUS_OK) {
        return;
    }
    pthread_mutex_lock(&compactor->mutex);
    const bool stops = background->is_running && !background->is_stopping;
    background->is_stopping = background->is_running;
    pthread_cond_broadcast(&background->wake);
    pthread_mutex_unlock(&compactor->mutex);
    if (!stops) {
        return;
    }
    (void)pthread_join(background->thread, NULL);
    pthread_mutex_lock(&compactor->mutex);
    background->is_running = background->is_stopping = false;
    pthread_mutex_unlock(&compactor->mutex);
}
