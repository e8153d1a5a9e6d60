/* SPDX-License-Identifier: MIT */
#include "core/workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/array.h"
#include "core/status.h"

enum { THREADS_MAX = 256, TELL_NS = 50 * 1000 * 1000, SECOND_NS = 1000 * 1000 * 1000 };

/** One call: what the threads share. `mutex` guards every field below it. */
typedef struct workers_call {
    alloti_workers *workers;
    alloti_job_fn job;
    void *context;
    uint64_t count;

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a job has ended */
    uint64_t next;
    uint64_t done;
    uint64_t failed_job; /* lowest that failed; valid unless status is OK */
    allot_status status;
    char detail[ALLOTI_DETAIL_SIZE];
} workers_call;

static void note_failure(workers_call *call, uint64_t job, allot_status status)
{
    /* A job that stopped because another one failed has nothing to say. */
    const bool is_first = call->status == ALLOT_STATUS_OK;
    if (is_first || (status != ALLOT_STATUS_CANCELLED && job < call->failed_job)) {
        call->status = status;
        call->failed_job = job;
        strncpy(call->detail, allot_error_detail(), sizeof call->detail - 1);
    }
    atomic_store_explicit(&call->workers->is_ended, true, memory_order_relaxed);
}

static bool is_ended(const workers_call *call)
{
    return atomic_load_explicit(&call->workers->is_ended, memory_order_relaxed);
}

static void *worker_main(void *argument)
{
    workers_call *const call = argument;
    pthread_mutex_lock(&call->mutex);
    while (call->next < call->count && !is_ended(call)) {
        const uint64_t job = call->next++;
        pthread_mutex_unlock(&call->mutex);
        const allot_status status = call->job(call->context, job, &call->workers->is_ended);
        pthread_mutex_lock(&call->mutex);
        if (status != ALLOT_STATUS_OK) {
            note_failure(call, job, status);
        }
        call->done++;
        pthread_cond_signal(&call->changed);
    }
    pthread_mutex_unlock(&call->mutex);
    return NULL;
}

static uint32_t thread_count(const alloti_workers *workers, uint64_t jobs)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t count = workers->thread_count;
    if (count == 0) {
        count = processors > 0 ? (uint64_t)processors : 1;
    }
    count = count > jobs ? jobs : count;
    return count > THREADS_MAX ? THREADS_MAX : (uint32_t)count;
}

/** Wait, with the mutex held, until a job ends or it is time to tell. */
static void wait_a_little(workers_call *call)
{
    struct timespec until = {0};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TELL_NS;
    if (until.tv_nsec >= SECOND_NS) {
        until.tv_nsec -= SECOND_NS;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&call->changed, &call->mutex, &until);
}

/** Tell progress until every job that will run has ended. */
static void watch(workers_call *call)
{
    const alloti_workers *const workers = call->workers;
    bool told_end = false;
    pthread_mutex_lock(&call->mutex);
    while (call->done < call->next || (call->next < call->count && !is_ended(call))) {
        const uint64_t done = workers->done + call->done;
        pthread_mutex_unlock(&call->mutex);
        const allot_status status =
            told_end ? ALLOT_STATUS_OK
                     : alloti_progress_tell(&workers->progress, done,
                                            workers->total < done ? done : workers->total);
        pthread_mutex_lock(&call->mutex);
        if (status != ALLOT_STATUS_OK) {
            told_end = true;
            call->status = status;
            call->failed_job = 0;
            call->detail[0] = '\0';
            atomic_store_explicit(&call->workers->is_ended, true, memory_order_relaxed);
        }
        if (call->done < call->next || (call->next < call->count && !is_ended(call))) {
            wait_a_little(call);
        }
    }
    pthread_mutex_unlock(&call->mutex);
}

/** Start the threads, watch them, wait for them. */
static allot_status run_threads(workers_call *call, pthread_t *threads, uint32_t wanted)
{
    uint32_t started = 0;
    while (started < wanted && pthread_create(&threads[started], NULL, worker_main, call) == 0) {
        started++;
    }
    if (started == 0) {
        return alloti_fail(ALLOT_STATUS_HOST_MEMORY, "no thread could be started");
    }
    watch(call);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    call->workers->done += call->done;
    if (call->status == ALLOT_STATUS_CANCELLED) {
        return alloti_fail(call->status, "cancelled");
    }
    return call->status == ALLOT_STATUS_OK ? ALLOT_STATUS_OK
                                           : alloti_fail(call->status, "%s", call->detail);
}

allot_status alloti_workers_run(alloti_workers *workers, uint64_t count, alloti_job_fn job,
                                void *context)
{
    if (count == 0) {
        return ALLOT_STATUS_OK;
    }
    workers_call *const call = calloc(1, sizeof *call);
    const uint32_t wanted = thread_count(workers, count);
    pthread_t *const threads = alloti_calloc_array(wanted, sizeof *threads);
    allot_status status = ALLOT_STATUS_OK;
    if (call == NULL || threads == NULL) {
        status = alloti_fail_memory(sizeof *call);
    } else {
        atomic_store_explicit(&workers->is_ended, false, memory_order_relaxed);
        call->workers = workers;
        call->job = job;
        call->context = context;
        call->count = count;
        pthread_mutex_init(&call->mutex, NULL);
        pthread_cond_init(&call->changed, NULL);
        status = run_threads(call, threads, wanted);
        pthread_cond_destroy(&call->changed);
        pthread_mutex_destroy(&call->mutex);
    }
    free(threads);
    free(call);
    return status;
}
