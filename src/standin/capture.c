/* SPDX-License-Identifier: MIT */
/* The capture of streams into graphs; described in graph.h. */
#include <stdlib.h>

#include "core/array.h"
#include "standin/graph.h"
#include "standin/state.h"

bool graph_capture_is_active(const graph_capture *capture)
{
    return capture->graph != NULL;
}

void graph_capture_let_go(graph_capture *capture)
{
    if (capture != NULL && --capture->references == 0) {
        free(capture);
    }
}

/** Make a stream part of a capture. */
static void enter(standin_stream *stream, graph_capture *capture)
{
    stream->capture = capture;
    stream->tail_count = 0;
    capture->references++;
}

cuda_status graph_capture_begin(standin *state, standin_stream *stream, standin_graph *graph)
{
    static uint64_t captures; /* guarded by the process's lock, like everything here */
    if (stream == state->streams.defaults[stream->device]) {
        return CUDA_CAPTURE_UNSUPPORTED;
    }
    if (stream->capture != NULL) {
        return CUDA_ILLEGAL_STATE;
    }
    graph_capture *const capture = calloc(1, sizeof *capture);
    standin_graph *into = graph;
    if (capture == NULL || (into == NULL && graph_create(state, &into) != CUDA_OK)) {
        free(capture);
        return CUDA_OUT_OF_MEMORY;
    }
    *capture = (graph_capture){.id = ++captures, .graph = into, .origin = stream};
    enter(stream, capture);
    return CUDA_OK;
}

static cuda_status add_tail(standin_stream *stream, graph_node *node)
{
    for (uint64_t i = 0; i < stream->tail_count; i++) {
        if (stream->tails[i] == node) {
            return CUDA_OK;
        }
    }
    if (alloti_array_reserve(&stream->tails, &stream->tail_capacity, stream->tail_count + 1,
                             sizeof(graph_node *)) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    stream->tails[stream->tail_count++] = node;
    return CUDA_OK;
}

cuda_status graph_capture_set_tails(standin_stream *stream, graph_node *const *nodes,
                                    uint64_t count, bool is_added)
{
    if (!is_added) {
        stream->tail_count = 0;
    }
    cuda_status status = CUDA_OK;
    for (uint64_t i = 0; i < count && status == CUDA_OK; i++) {
        status = add_tail(stream, nodes[i]);
    }
    return status;
}

static graph_node_type type_of(task_kind kind)
{
    static const graph_node_type types[] = {[TASK_NOTHING] = GRAPH_NODE_KERNEL,
                                            [TASK_COPY] = GRAPH_NODE_COPY,
                                            [TASK_FILL] = GRAPH_NODE_SET,
                                            [TASK_CALL] = GRAPH_NODE_HOST};
    return types[kind];
}

cuda_status graph_capture_work(standin_stream *stream, standin_task *task)
{
    graph_node *node = NULL;
    const cuda_status status = graph_add(stream->capture->graph, type_of(task->kind), task,
                                         stream->tails, stream->tail_count, &node);
    return status == CUDA_OK ? graph_capture_set_tails(stream, &node, 1, false) : status;
}

cuda_status graph_capture_record(standin_event *event, standin_stream *stream)
{
    if (alloti_array_reserve(&event->tails, &event->tail_capacity, stream->tail_count,
                             sizeof(graph_node *)) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    for (uint64_t i = 0; i < stream->tail_count; i++) {
        event->tails[i] = stream->tails[i];
    }
    event->tail_count = stream->tail_count;
    if (event->capture != stream->capture) {
        graph_capture_let_go(event->capture);
        event->capture = stream->capture;
        event->capture->references++;
    }
    return CUDA_OK;
}

cuda_status graph_capture_join(standin_event *event, standin_stream *stream)
{
    if (stream->capture != NULL && stream->capture != event->capture) {
        return CUDA_CAPTURE_MERGE;
    }
    if (stream->capture == NULL) {
        enter(stream, event->capture);
    }
    return graph_capture_set_tails(stream, event->tails, event->tail_count, true);
}

/** Whether a node is among the stream's tails or something in the graph depends on it. */
static bool is_joined(const graph_node *node, const standin_stream *origin)
{
    for (uint64_t i = 0; i < origin->tail_count; i++) {
        if (origin->tails[i] == node) {
            return true;
        }
    }
    return node->has_dependents;
}

/** Take all streams out of a capture; false if one was not joined to the first. */
static bool leave_all(standin *state, graph_capture *capture)
{
    bool are_joined = true;
    const standin_stream *const origin = capture->origin;
    for (uint64_t i = 0; i < state->streams.slot_count; i++) {
        standin_stream *const stream = state->streams.streams[i];
        if (stream == NULL || stream->capture != capture || stream == origin) {
            continue;
        }
        for (uint64_t j = 0; j < stream->tail_count; j++) {
            are_joined = are_joined && is_joined(stream->tails[j], origin);
        }
        stream->capture = NULL;
        stream->tail_count = 0;
        /* The origin still holds on to it. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        graph_capture_let_go(capture);
    }
    return are_joined;
}

cuda_status graph_capture_end(standin *state, standin_stream *stream, standin_graph **out)
{
    graph_capture *const capture = stream->capture;
    if (capture == NULL) {
        return CUDA_ILLEGAL_STATE;
    }
    if (capture->origin != stream) {
        return CUDA_CAPTURE_UNMATCHED;
    }
    const bool are_joined = leave_all(state, capture);
    standin_graph *const graph = capture->graph; // as above: NOLINT(clang-analyzer-unix.Malloc)
    capture->graph = NULL;
    stream->capture = NULL;
    stream->tail_count = 0;
    graph_capture_let_go(capture);
    if (!are_joined) {
        graph_destroy(state, graph);
        *out = NULL;
        return CUDA_CAPTURE_UNJOINED;
    }
    *out = graph;
    return CUDA_OK;
}
