/* SPDX-License-Identifier: MIT */
/**
 * True asynchrony, with real bytes: each stream has a queue of tasks, and threads of our own work
 * them off: per stream in order, none before what it depends on, and otherwise whenever they like.
 *
 *      program ──▶ stream_put() ──▶ queue of stream 1: [task 7 | after 2:4] [task 8] ...
 *                                   queue of stream 2: [task 4] [task 5] ...
 *                                        │ any thread takes any head whose clock is finished
 *                                        ▼
 *                               run without the lock ──▶ finished[stream] = number ──▶ waiters
 *
 * With a seed ("delay:SEED") half of the tasks are put off, each for a time that depends on the
 * seed, its stream and its number alone, and heads are taken in a random order: a program that
 * forgets to wait meets old bytes for some seeds, and the same ones each time.
 *
 * All of it is guarded by the process's lock, which waiting gives up meanwhile.
 */
#ifndef ALLOTI_STANDIN_QUEUE_H
#define ALLOTI_STANDIN_QUEUE_H

#include <pthread.h>

#include <allot/base.h>

#include "standin/abi.h"
#include "standin/rule.h"
#include "standin/stream.h"
#include "standin/task.h"

struct standin;

typedef struct queue_entry {
    struct queue_entry *next;
    standin_task task;
    uint64_t number;    /**< Of the work in its stream. */
    uint32_t device;    /**< The stream's. */
    stream_clock after; /**< What must be finished first. */
    uint64_t due_ns;    /**< Not before this time; 0: not decided yet. */
    rule_place place;
} queue_entry;

typedef struct work_queue {
    queue_entry *first;
    queue_entry *last;
    uint64_t number; /**< Of the last task that was put in. */
    bool is_running; /**< A thread works on `first`. */
} work_queue;

typedef struct queue_state {
    work_queue *queues; /**< By slot of the stream. */
    uint64_t count;
    uint64_t capacity;
    uint32_t *busy; /**< Slots whose queue is not empty. */
    uint64_t busy_count;
    uint64_t busy_capacity;
    pthread_cond_t changed; /**< A task was put in, or is finished. */
    uint64_t moving;        /**< Tasks that copy or fill at this moment. */
    uint64_t random;
    bool has_threads;
    bool is_stopped; /**< The process ends: nothing is begun any more. */
} queue_state;

void queue_init(queue_state *queues, uint64_t seed);

/** Put a task in as work `stream->now`; takes what it owns in any case. */
cuda_status queue_put(struct standin *state, const standin_stream *stream, standin_task *task);

/** Wait until everything before a point is finished. CUDA_NOT_PERMITTED in a host function. */
cuda_status queue_wait(struct standin *state, const stream_point *point);

/** Wait until all that was put on a device's streams is finished. */
cuda_status queue_wait_device(struct standin *state, uint32_t device);

/** Wait until no task copies or fills: memory may then be unmapped. */
void queue_pause(struct standin *state);

/** Begin nothing any more and wait for what copies: the process ends. */
void queue_stop(struct standin *state);

/** A random number that the seed decides. */
uint64_t queue_draw(struct standin *state);

/** Whether this thread runs a host function of the program, which may not call CUDA. */
bool queue_is_worker(void);

#endif /* ALLOTI_STANDIN_QUEUE_H */
