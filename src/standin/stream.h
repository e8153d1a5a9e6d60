/* SPDX-License-Identifier: MIT */
/**
 * Streams and events: what work was put where, and what of it counts as finished.
 *
 * Each stream numbers its work. What must be finished before a point of a stream is a vector clock:
 * for every stream the number of its last piece of work that comes before. Recording an event
 * copies the stream's clock, waiting for one merges it, so that finishing an event finishes exactly
 * what CUDA's rules put before it, through any chain of streams. Three answers to "is it
 * finished?": always; when the program waited for it or for something after it; once a number of
 * further pieces of work were put on any stream.
 *
 * The default stream waits for, and is waited for by, all streams of its device that were not made
 * non-blocking. Callbacks run when their place in the stream is reached.
 *
 * Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_STREAM_H
#define ALLOTI_STANDIN_STREAM_H

#include <allot/base.h>

#include "standin/abi.h"
#include "standin/config.h"
#include "standin/task.h"

struct standin;
struct graph_capture;
struct graph_node;

/** A vector clock: number of the last piece of work of stream `i` for each i below `count`. */
typedef struct stream_clock {
    uint64_t *numbers;
    uint64_t count;
    uint64_t capacity;
} stream_clock;

/** A moment in a stream. */
typedef struct stream_point {
    stream_clock clock;
    uint64_t tick; /**< Of the last work before it. */
} stream_point;

typedef struct standin_stream {
    uint64_t mark; /**< STREAM_MARK while it lives. */
    uint64_t id;
    uint32_t slot;
    uint32_t device;
    int priority;
    unsigned flags;
    const void *kernel; /**< Function of the last kernel, NULL for none. */
    stream_point now;   /**< Its end; now.clock.numbers[slot] is the number of its last work. */
    uint64_t calling;   /**< Callbacks that a thread runs now; counted on after the stream's end. */
    stream_callback *callbacks;
    uint64_t callback_count;
    uint64_t callback_capacity;
    struct graph_capture *capture; /**< NULL: not capturing. */
    struct graph_node **tails;     /**< Captured nodes that the next one depends on. */
    uint64_t tail_count;
    uint64_t tail_capacity;
} standin_stream;

typedef struct standin_event {
    void *handle;
    uint32_t device;
    unsigned flags;
    bool is_recorded;
    stream_point at;
    struct graph_capture *capture; /**< Recorded in a capture that goes on. */
    struct graph_node **tails;
    uint64_t tail_count;
    uint64_t tail_capacity;
} standin_event;

typedef struct stream_state {
    standin_stream **streams; /**< By slot; NULL: destroyed. */
    standin_stream *places; /**< By slot, so that handles ascend as streams are made; NULL: none. */
    uint64_t *finished;     /**< By slot: all work up to this number is finished. */
    uint64_t *observed;     /**< By slot: and the host knows up to this one. */
    uint32_t *devices;      /**< By slot. */
    uint64_t slot_count;
    uint64_t slot_capacity;
    uint64_t finished_capacity;
    uint64_t observed_capacity;
    uint64_t device_capacity;
    standin_stream *defaults[STANDIN_DEVICES_MAX]; /**< NULL until first used. */
    uint64_t tick;                                 /**< Pieces of work so far, on all streams. */
    uint64_t created;                              /**< Streams so far. */
    bool keeps_order;     /**< Although work is finished at once: other ranks are waited for. */
    uint64_t blocking;    /**< Streams that take part in the default stream's order. */
    stream_callback *due; /**< To run once the lock is given back. */
    uint64_t due_count;
    uint64_t calling; /**< Of all streams. */
    uint64_t due_capacity;
} stream_state;

cuda_status stream_create(struct standin *state, uint32_t device, unsigned flags, int priority,
                          standin_stream **out);
cuda_status stream_destroy(struct standin *state, standin_stream *stream);

/**
 * The stream of a handle: NULL and 1 are the default stream of the current device, 2 is the one of
 * this thread.
 */
cuda_status stream_get(struct standin *state, void *handle, standin_stream **out);

/** Whether the order of work matters: where all of it is finished at once, it need not be kept. */
bool stream_keeps_order(const struct standin *state);

/** Put one piece of work on a stream; while capturing, add a node to the graph instead. */
cuda_status stream_work(struct standin *state, standin_stream *stream);

/**
 * The same with a task, whose rules are checked; what it owns is taken in any case. Without real
 * bytes the task is not run: its effect on the host is the caller's.
 */
cuda_status stream_put(struct standin *state, standin_stream *stream, standin_task *task);

/** The same by handle; wrong handles are ignored (calls that are answered by guess). */
void stream_work_on(struct standin *state, void *handle);

/** Whether all work is finished; if so the host knows from now on. */
bool stream_is_finished(struct standin *state, const standin_stream *stream);

/** Wait for everything on the stream, the device. With real bytes the lock is given up meanwhile.
 */
cuda_status stream_synchronize(struct standin *state, standin_stream *stream);
cuda_status stream_synchronize_device(struct standin *state, uint32_t device);

/** Wait for all devices: before host memory that any of them may use goes. */
cuda_status stream_synchronize_all(struct standin *state);

/** The host knows that everything before a point is finished. */
void stream_observe(struct standin *state, const stream_point *point);

/** Run a function at this place of the stream. Takes nothing on failure. */
cuda_status stream_call(struct standin *state, standin_stream *stream,
                        const stream_callback *callback);

cuda_status event_create(struct standin *state, uint32_t device, unsigned flags,
                         standin_event **out);
void event_destroy(struct standin *state, standin_event *event);

/** NULL unless the handle is a live event. */
standin_event *event_get(const struct standin *state, const void *handle);

cuda_status event_record(struct standin *state, standin_event *event, standin_stream *stream);
cuda_status event_wait(struct standin *state, standin_event *event, standin_stream *stream);

/** CUDA_OK, CUDA_NOT_READY, CUDA_CAPTURED_EVENT. */
cuda_status event_query(struct standin *state, const standin_event *event);
cuda_status event_synchronize(struct standin *state, const standin_event *event);

/** Make a clock at least so long; false without host memory. */
bool clock_grow(stream_clock *clock, uint64_t count);

/** A point to ask about later (memory pools): copy of the stream's end. */
cuda_status point_copy(stream_point *to, const stream_point *from);
void point_fini(stream_point *point);
bool point_merge(stream_point *into, const stream_point *from);
bool point_is_finished(const struct standin *state, const stream_point *point);

/** The same question asked by the program: what the host sees to be finished, it knows. */
bool point_ask(struct standin *state, const stream_point *point);

/** Wait for a point, or let what comes before it be finished. */
cuda_status point_finish(struct standin *state, const stream_point *point);

/** Whether a stream is ordered after a point: it waited for it, or is the same stream. */
bool point_is_before(const stream_point *point, const standin_stream *stream);

/** Run the callbacks that are due, without the lock, which is held before and given back after. */
void stream_run_due(struct standin *state);

#endif /* ALLOTI_STANDIN_STREAM_H */
