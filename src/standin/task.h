/* SPDX-License-Identifier: MIT */
/**
 * One piece of work of a stream or node of a graph: nothing (a kernel, an event's record), a copy,
 * a fill, or a call of a host function; and the rules it is held to.
 *
 * A task is checked twice. When it is put on a stream, against what is allocated by then in the
 * program's order and in the stream's: that finds mistakes whether or not the timing hides them.
 * When a worker takes it up, against what is mapped at that moment.
 */
#ifndef ALLOTI_STANDIN_TASK_H
#define ALLOTI_STANDIN_TASK_H

#include <allot/base.h>

#include "standin/abi.h"
#include "standin/rule.h"

struct standin;
struct standin_stream;

typedef enum task_kind {
    TASK_NOTHING,
    TASK_COPY,
    TASK_FILL,
    TASK_CALL,
} task_kind;

/** A function of the program that runs at a place of a stream. */
typedef struct stream_callback {
    void (*run)(void *data);                                       /**< Either this */
    void (*run_with_stream)(void *stream, int status, void *data); /**< or this. */
    void *data;
    void *stream;
    uint64_t number; /**< Due when this work of the stream is finished. */
    uint32_t slot;   /**< Of the stream. */
} stream_callback;

/** `height` rows of `width` bytes, each `pitch` bytes after the one before. */
typedef struct task_shape {
    uint64_t to_pitch;
    uint64_t from_pitch;
    uint64_t width;
    uint64_t height;
} task_shape;

typedef struct standin_task {
    task_kind kind;
    uint64_t to;      /**< COPY, FILL: a device or host address. */
    uint64_t from;    /**< COPY. */
    task_shape shape; /**< COPY, FILL. */
    uint32_t value;   /**< FILL: `unit` bytes of it are repeated. */
    uint32_t unit;    /**< FILL: 1, 2 or 4. */
    stream_callback call;
    void *staged; /**< COPY: own copy of the source, or NULL. */
} standin_task;

/** A copy of one row. */
standin_task task_copy(void *to, const void *from, uint64_t size);
standin_task task_fill(void *to, uint32_t value, uint32_t unit, uint64_t count);

/** Copy the source now, so that the program may change it. CUDA_OUT_OF_MEMORY without room. */
cuda_status task_stage(standin_task *task);

/** Give back what the task owns. */
void task_fini(standin_task *task);

/** Hold the task to the rules at the time it is given. Only with real bytes. */
cuda_status task_check(struct standin *state, struct standin_stream *stream,
                       const standin_task *task);

/** Note that the last work of a stream is this task, which uses these allocations. */
void task_mark(struct standin *state, const struct standin_stream *stream,
               const standin_task *task);

/** Real places of what the task reads and writes; valid while task_run() runs. */
typedef struct task_view {
    void *to;
    const void *from;
} task_view;

/** Find the places, under the lock, for work of `device` that was given at `place`. */
cuda_status task_begin(struct standin *state, uint32_t device, const rule_place *place,
                       const standin_task *task, task_view *view);

/** Do it, without the lock. */
void task_run(const standin_task *task, const task_view *view);

/** Call a function of the program. */
void callback_run(const stream_callback *callback);

#endif /* ALLOTI_STANDIN_TASK_H */
