/* SPDX-License-Identifier: MIT */
/* CUDA runtime: capture of streams. */
#include <string.h>

#include "standin/device.h"
#include "standin/graph.h"
#include "standin/runtime.h"

/** Where a capture into a graph of the program begins. */
typedef struct capture_start {
    const void *graph; /**< Handle; NULL: a graph of our own. */
    graph_node *const *dependencies;
    size_t count;
} capture_start;

static cuda_status begin(standin *state, standin_stream *stream, void *out)
{
    const capture_start *const start = out;
    standin_graph *const graph = start->graph == NULL ? NULL : graph_get(state, start->graph);
    if (graph == NULL && start->graph != NULL) {
        return CUDA_INVALID_VALUE;
    }
    for (size_t i = 0; i < start->count; i++) {
        if (graph_node_get(start->dependencies[i]) == NULL) {
            return CUDA_INVALID_VALUE;
        }
    }
    const cuda_status status = graph_capture_begin(state, stream, graph);
    return status == CUDA_OK
               ? graph_capture_set_tails(stream, start->dependencies, start->count, true)
               : status;
}

CUDA_ENTRY(int, cudaStreamBeginCapture)(void *stream, int mode)
{
    (void)mode;
    capture_start start = {0};
    return stream_with(stream, &start, begin);
}

CUDA_ENTRY(int, cudaStreamBeginCaptureToGraph)
(void *stream, void *graph, graph_node *const *dependencies, const void *edges, size_t count,
 int mode)
{
    (void)edges;
    (void)mode;
    capture_start start = {graph, dependencies, count};
    return graph == NULL ? standin_result(CUDA_INVALID_VALUE) : stream_with(stream, &start, begin);
}

static cuda_status end(standin *state, standin_stream *stream, void *out)
{
    standin_graph *graph = NULL;
    const cuda_status status = graph_capture_end(state, stream, &graph);
    void *const handle = graph == NULL ? NULL : graph->handle;
    memcpy(out, &handle, sizeof handle);
    return status;
}

CUDA_ENTRY(int, cudaStreamEndCapture)(void *stream, void **out)
{
    *out = NULL;
    return stream_with(stream, out, end);
}

static cuda_status is_capturing(standin *state, standin_stream *stream, void *out)
{
    (void)state;
    const int status =
        stream->capture != NULL ? CUDA_CAPTURE_STATUS_ACTIVE : CUDA_CAPTURE_STATUS_NONE;
    memcpy(out, &status, sizeof status);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaStreamIsCapturing)(void *stream, int *out)
{
    return stream_with(stream, out, is_capturing);
}

/** Where the answers about a capture go; any but `status` may be NULL. */
typedef struct capture_answer {
    int *status;
    unsigned long long *id;
    void **graph;
    graph_node ***dependencies;
    const void **edges;
    size_t *count;
} capture_answer;

static cuda_status describe(standin *state, standin_stream *stream, void *out)
{
    const capture_answer *const answer = out;
    const bool is_active = stream->capture != NULL;
    (void)state;
    *answer->status = is_active ? CUDA_CAPTURE_STATUS_ACTIVE : CUDA_CAPTURE_STATUS_NONE;
    if (answer->id != NULL) {
        *answer->id = is_active ? stream->capture->id : 0;
    }
    if (answer->graph != NULL) {
        *answer->graph = is_active ? stream->capture->graph->handle : NULL;
    }
    if (answer->dependencies != NULL) {
        *answer->dependencies = is_active ? stream->tails : NULL;
    }
    if (answer->edges != NULL) {
        *answer->edges = NULL;
    }
    if (answer->count != NULL) {
        *answer->count = is_active ? stream->tail_count : 0;
    }
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaStreamGetCaptureInfo)
(void *stream, int *status, unsigned long long *id, void **graph, graph_node ***dependencies,
 const void **edges, size_t *count)
{
    capture_answer answer = {status, id, graph, dependencies, edges, count};
    return stream_with(stream, &answer, describe);
}

CUDA_ENTRY(int, cudaStreamGetCaptureInfo_v3)
(void *stream, int *status, unsigned long long *id, void **graph, graph_node ***dependencies,
 const void **edges, size_t *count)
{
    capture_answer answer = {status, id, graph, dependencies, edges, count};
    return stream_with(stream, &answer, describe);
}

CUDA_ENTRY(int, cudaStreamGetCaptureInfo_v2)
(void *stream, int *status, unsigned long long *id, void **graph, graph_node ***dependencies,
 size_t *count)
{
    capture_answer answer = {status, id, graph, dependencies, NULL, count};
    return stream_with(stream, &answer, describe);
}

typedef struct tail_update {
    graph_node *const *nodes;
    size_t count;
    unsigned flags;
} tail_update;

static cuda_status set_tails(standin *state, standin_stream *stream, void *out)
{
    enum { ADD = 0, SET = 1 };
    const tail_update *const update = out;
    (void)state;
    return stream->capture == NULL ? CUDA_ILLEGAL_STATE
                                   : graph_capture_set_tails(stream, update->nodes, update->count,
                                                             update->flags != SET);
}

static int update_tails(void *stream, graph_node *const *nodes, size_t count, unsigned flags)
{
    tail_update update = {nodes, count, flags};
    return stream_with(stream, &update, set_tails);
}

/* Version 13 put an argument into the middle of the same name. */
CUDA_ENTRY(int, cudaStreamUpdateCaptureDependencies)
(void *stream, graph_node *const *nodes, uintptr_t edges_or_count, uintptr_t count_or_flags,
 unsigned flags)
{
    return device_cuda_major() == 12
               ? update_tails(stream, nodes, edges_or_count, (unsigned)count_or_flags)
               : update_tails(stream, nodes, count_or_flags, flags);
}

CUDA_ENTRY(int, cudaStreamUpdateCaptureDependencies_v2)
(void *stream, graph_node *const *nodes, const void *edges, size_t count, unsigned flags)
{
    (void)edges;
    return update_tails(stream, nodes, count, flags);
}

CUDA_ENTRY(int, cudaThreadExchangeStreamCaptureMode)(int *mode)
{
    static _Thread_local int current;
    const int before = current;
    current = *mode;
    *mode = before;
    return CUDA_OK;
}
