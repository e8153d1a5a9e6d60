/* SPDX-License-Identifier: MIT */
/**
 * Graphs and the capture of streams into them.
 *
 * While a stream captures, work becomes nodes that depend on the stream's tails. An event recorded
 * in a capturing stream carries its tails; a stream that waits for it joins the capture. Ending the
 * capture on the first stream requires that every other stream's tails were joined to it.
 *
 * Not thread-safe: guarded by the process's lock.
 */
#ifndef ALLOTI_STANDIN_GRAPH_H
#define ALLOTI_STANDIN_GRAPH_H

#include <allot/base.h>

#include "standin/abi.h"
#include "standin/stream.h"

/** Numbers as in cudaGraphNodeType. */
typedef enum graph_node_type {
    GRAPH_NODE_KERNEL = 0,
    GRAPH_NODE_COPY = 1,
    GRAPH_NODE_SET = 2,
    GRAPH_NODE_HOST = 3,
    GRAPH_NODE_CHILD = 4,
    GRAPH_NODE_EMPTY = 5,
} graph_node_type;

typedef struct graph_node {
    uint64_t mark;
    struct standin_graph *graph;
    graph_node_type type;
    struct graph_node **dependencies;
    uint64_t dependency_count;
    uint64_t dependency_capacity;
    standin_task task; /**< What it does. */
    uint64_t order;    /**< While instantiating: its place in the launch. */
    bool has_dependents;
} graph_node;

/** An object of the program that lives while graphs refer to it. */
typedef struct graph_user_object {
    uint64_t mark;
    void *pointer;
    void (*destroy)(void *pointer);
    uint64_t references;
} graph_user_object;

typedef struct graph_reference {
    graph_user_object *object;
    uint64_t count;
} graph_reference;

typedef struct standin_graph {
    void *handle;
    graph_node **nodes;
    uint64_t node_count;
    uint64_t node_capacity;
    graph_reference *objects;
    uint64_t object_count;
    uint64_t object_capacity;
} standin_graph;

/** A node of an instantiated graph. */
typedef struct graph_step {
    standin_task task;
    uint32_t *after; /**< [after_count] steps that come first. */
    uint64_t after_count;
} graph_step;

/** What an instantiated graph does when it is launched. */
typedef struct graph_exec {
    void *handle;
    uint64_t flags;
    uint64_t node_count;
    graph_step *steps; /**< [node_count], each after those that it depends on. */
    bool has_calls;
} graph_exec;

typedef struct graph_capture {
    uint64_t id;
    uint64_t references;  /**< Streams and events that point here. */
    standin_graph *graph; /**< NULL once the capture ended. */
    standin_stream *origin;
    bool is_invalid;
} graph_capture;

cuda_status graph_create(struct standin *state, standin_graph **out);

/** NULL unless the handle is a live graph. */
standin_graph *graph_get(const struct standin *state, const void *handle);
void graph_destroy(struct standin *state, standin_graph *graph);

/** Add a node; its task is taken over in any case. */
cuda_status graph_add(standin_graph *graph, graph_node_type type, standin_task *task,
                      graph_node *const *dependencies, uint64_t count, graph_node **out);
graph_node *graph_node_get(void *handle);
void graph_node_destroy(graph_node *node);

cuda_status graph_instantiate(struct standin *state, standin_graph *graph, uint64_t flags,
                              graph_exec **out);
graph_exec *graph_exec_get(const struct standin *state, const void *handle);
void graph_exec_destroy(struct standin *state, graph_exec *exec);

/**
 * Put the steps on a stream. With real bytes and a seed, steps that do not depend on each other
 * come in any order.
 */
cuda_status graph_launch(struct standin *state, graph_exec *exec, standin_stream *stream);

cuda_status graph_object_create(void *pointer, void (*destroy)(void *), uint64_t references,
                                graph_user_object **out);
graph_user_object *graph_object_get(void *handle);
/** Give references up; the destructor is queued to run when the lock is given back. */
cuda_status graph_object_release(struct standin *state, graph_user_object *object, uint64_t count);
cuda_status graph_retain_object(standin_graph *graph, graph_user_object *object, uint64_t count,
                                bool is_moved);

/** Begin on a stream; into `graph`, or a fresh one if NULL. */
cuda_status graph_capture_begin(struct standin *state, standin_stream *stream,
                                standin_graph *graph);
cuda_status graph_capture_end(struct standin *state, standin_stream *stream, standin_graph **out);
bool graph_capture_is_active(const graph_capture *capture);
void graph_capture_let_go(graph_capture *capture);

/** Add a node after the stream's tails, which it becomes. The task is taken over in any case. */
cuda_status graph_capture_work(standin_stream *stream, standin_task *task);
cuda_status graph_capture_record(standin_event *event, standin_stream *stream);
cuda_status graph_capture_join(standin_event *event, standin_stream *stream);

/** Replace the stream's tails, or add to them. */
cuda_status graph_capture_set_tails(standin_stream *stream, graph_node *const *nodes,
                                    uint64_t count, bool is_added);

#endif /* ALLOTI_STANDIN_GRAPH_H */
