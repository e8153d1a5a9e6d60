/* SPDX-License-Identifier: MIT */
#include "standin/queue.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/array.h"
#include "core/mix.h"
#include "core/random.h"
#include "standin/state.h"

enum { THREADS = 4, DELAY_NS_MAX = 400000, NS_PER_S = 1000000000 };

static _Thread_local bool is_worker;

bool queue_is_worker(void)
{
    return is_worker;
}

void queue_init(queue_state *queues, uint64_t seed)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queues->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    queues->random = seed;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t delay_ns(const standin *state, uint32_t slot, uint64_t number)
{
    const uint64_t seed = state->config.delay;
    const uint64_t drawn = alloti_mix64(alloti_mix64(seed + slot) + number);
    return seed == 0 || drawn % 2 == 0 ? 0 : (drawn >> 1) % DELAY_NS_MAX;
}

/* ---- working a queue off ---- */

static bool is_ready(const standin *state, uint32_t slot, const queue_entry *entry)
{
    for (uint64_t i = 0; i < entry->after.count; i++) {
        if (i != slot && entry->after.numbers[i] > state->streams.finished[i]) {
            return false;
        }
    }
    return true;
}

/** Whether the head of a queue may run now; if only its time has not come, lowers *next_ns. */
static bool may_run(const standin *state, uint32_t slot, uint64_t *next_ns)
{
    work_queue *const queue = &state->queues.queues[slot];
    queue_entry *const head = queue->first;
    if (queue->is_running || !is_ready(state, slot, head)) {
        return false;
    }
    if (state->config.delay == 0) {
        return true;
    }
    const uint64_t now = now_ns();
    if (head->due_ns == 0) {
        head->due_ns = now + delay_ns(state, slot, head->number);
    }
    if (head->due_ns <= now) {
        return true;
    }
    *next_ns = head->due_ns < *next_ns ? head->due_ns : *next_ns;
    return false;
}

uint64_t queue_draw(standin *state)
{
    return alloti_random(&state->queues.random);
}

/** Place in the array of busy queues of one to run; UINT64_MAX for none before *next_ns. */
static uint64_t pick(standin *state, uint64_t *next_ns)
{
    queue_state *const queues = &state->queues;
    *next_ns = UINT64_MAX;
    if (queues->is_stopped || queues->busy_count == 0) {
        return UINT64_MAX;
    }
    const uint64_t from = queue_draw(state) % queues->busy_count;
    for (uint64_t i = 0; i < queues->busy_count; i++) {
        const uint64_t at = (from + i) % queues->busy_count;
        if (may_run(state, queues->busy[at], next_ns)) {
            return at;
        }
    }
    return UINT64_MAX;
}

static void wait_until(standin *state, uint64_t ns)
{
    if (ns == UINT64_MAX) {
        pthread_cond_wait(&state->queues.changed, &state->lock);
        return;
    }
    const struct timespec until = {.tv_sec = (time_t)(ns / NS_PER_S),
                                   .tv_nsec = (long)(ns % NS_PER_S)};
    pthread_cond_timedwait(&state->queues.changed, &state->lock, &until);
}

static void free_entry(queue_entry *entry)
{
    task_fini(&entry->task);
    free(entry->after.numbers);
    free(entry);
}

/** Run a task with the lock given back meanwhile. */
static void run_unlocked(standin *state, const queue_entry *entry)
{
    task_view view;
    const cuda_status status = task_begin(state, entry->device, &entry->place, &entry->task, &view);
    if (status != CUDA_OK) {
        state->broken = CUDA_ILLEGAL_ADDRESS; /* the context is lost, as on real hardware */
        return;
    }
    const bool is_moving = entry->task.kind == TASK_COPY || entry->task.kind == TASK_FILL;
    state->queues.moving += is_moving ? 1 : 0;
    pthread_mutex_unlock(&state->lock);
    task_run(&entry->task, &view);
    pthread_mutex_lock(&state->lock);
    state->queues.moving -= is_moving ? 1 : 0;
}

static void run_head(standin *state, uint64_t at)
{
    queue_state *const queues = &state->queues;
    const uint32_t slot = queues->busy[at];
    queue_entry *const entry = queues->queues[slot].first;
    queues->queues[slot].is_running = true;
    if (entry->task.kind != TASK_NOTHING) {
        run_unlocked(state, entry);
    }
    work_queue *const queue = &queues->queues[slot]; /* the array may have moved */
    queue->is_running = false;
    queue->first = entry->next;
    if (queue->first == NULL) {
        queue->last = NULL;
        uint64_t place = 0;
        while (queues->busy[place] != slot) {
            place++;
        }
        queues->busy[place] = queues->busy[--queues->busy_count];
    }
    state->streams.finished[slot] = entry->number;
    free_entry(entry);
    pthread_cond_broadcast(&queues->changed);
}

static void *work(void *state_of_process)
{
    standin *const state = state_of_process;
    is_worker = true;
    pthread_mutex_lock(&state->lock);
    for (;;) {
        uint64_t next_ns = 0;
        const uint64_t at = pick(state, &next_ns);
        if (at == UINT64_MAX) {
            wait_until(state, next_ns);
        } else {
            run_head(state, at);
        }
    }
    return NULL;
}

/** What is sent to the process is for the program's threads; what a thread does wrong is its own.
 */
static void fill_with_sent(sigset_t *signals)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
    sigfillset(signals);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        sigdelset(signals, own[i]);
    }
}

static void create_threads(standin *state)
{
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, state) != 0) {
            return;
        }
        pthread_detach(thread);
        state->queues.has_threads = true;
    }
}

/** The threads live as long as the process and are nobody's to join. */
static cuda_status start_threads(standin *state)
{
    if (!state->queues.has_threads) {
        sigset_t sent;
        sigset_t before;
        fill_with_sent(&sent);
        (void)pthread_sigmask(SIG_BLOCK, &sent, &before); /* a thread begins with its maker's */
        create_threads(state);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return state->queues.has_threads ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

/* ---- putting in ---- */

static bool have_queue(queue_state *queues, uint32_t slot)
{
    if (alloti_array_reserve(&queues->busy, &queues->busy_capacity, slot + 1,
                             sizeof *queues->busy) != ALLOT_STATUS_OK ||
        alloti_array_reserve(&queues->queues, &queues->capacity, slot + 1,
                             sizeof *queues->queues) != ALLOT_STATUS_OK) {
        return false;
    }
    while (queues->count <= slot) {
        queues->queues[queues->count++] = (work_queue){0};
    }
    return true;
}

static queue_entry *make_entry(const standin_stream *stream, const standin_task *task)
{
    queue_entry *const entry = calloc(1, sizeof *entry);
    stream_point after = {0};
    if (entry == NULL || point_copy(&after, &stream->now) != CUDA_OK) {
        free(entry);
        return NULL;
    }
    entry->task = *task;
    entry->number = stream->now.clock.numbers[stream->slot];
    entry->device = stream->device;
    entry->after = after.clock;
    if (task->kind != TASK_NOTHING) {
        rule_here(&entry->place);
    }
    return entry;
}

cuda_status queue_put(standin *state, const standin_stream *stream, standin_task *task)
{
    queue_state *const queues = &state->queues;
    cuda_status status = start_threads(state);
    if (status == CUDA_OK && !have_queue(queues, stream->slot)) {
        status = CUDA_OUT_OF_MEMORY;
    }
    queue_entry *const entry = status == CUDA_OK ? make_entry(stream, task) : NULL;
    if (entry == NULL) {
        task_fini(task);
        return CUDA_OUT_OF_MEMORY;
    }
    work_queue *const queue = &queues->queues[stream->slot];
    if (queue->last == NULL) {
        queue->first = entry;
        queues->busy[queues->busy_count++] = stream->slot;
    } else {
        queue->last->next = entry;
    }
    queue->last = entry;
    queue->number = entry->number;
    pthread_cond_broadcast(&queues->changed);
    return CUDA_OK;
}

/* ---- waiting ---- */

/** Not finished and never will be: a child of fork() has no threads, an ending process no work. */
static bool is_over(const standin *state)
{
    return state->queues.is_stopped || !state->queues.has_threads;
}

cuda_status queue_wait(standin *state, const stream_point *point)
{
    if (point_is_finished(state, point)) {
        stream_observe(state, point);
        return CUDA_OK;
    }
    if (is_worker) {
        return rule_broken(state, NULL, CUDA_NOT_PERMITTED,
                           "a host function of a stream waits for a stream");
    }
    stream_point until = {0}; /* the event or stream may be gone before its work is done */
    if (point_copy(&until, point) != CUDA_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    while (!point_is_finished(state, &until) && !is_over(state)) {
        pthread_cond_wait(&state->queues.changed, &state->lock);
    }
    stream_observe(state, &until);
    point_fini(&until);
    return CUDA_OK;
}

cuda_status queue_wait_device(standin *state, uint32_t device)
{
    stream_point all = {0};
    if (!clock_grow(&all.clock, state->queues.count)) {
        return CUDA_OUT_OF_MEMORY;
    }
    for (uint64_t i = 0; i < state->queues.count; i++) {
        all.clock.numbers[i] =
            state->streams.devices[i] == device ? state->queues.queues[i].number : 0;
    }
    const cuda_status status = queue_wait(state, &all);
    point_fini(&all);
    return status;
}

void queue_pause(standin *state)
{
    while (state->queues.moving != 0) {
        pthread_cond_wait(&state->queues.changed, &state->lock);
    }
}

void queue_stop(standin *state)
{
    state->queues.is_stopped = true;
    queue_pause(state);
}
