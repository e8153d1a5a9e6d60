/* SPDX-License-Identifier: MIT */
/* CUDA runtime: capture of streams, graphs. */
#include <stdio.h>
#include <string.h>

#include "standin/device.h"
#include "standin/graph.h"
#include "standin/runtime.h"

/* ---- capture ---- */

static int begin(void *handle, standin_graph *graph)
{
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    cuda_status status = stream_get(state, handle, &stream);
    if (status == CUDA_OK) {
        status = graph_capture_begin(state, stream, graph);
    }
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaStreamBeginCapture)(void *stream, int mode)
{
    (void)mode;
    return begin(stream, NULL);
}

CUDA_ENTRY(int, cudaStreamBeginCaptureToGraph)
(void *stream, void *graph, void *const *dependencies, const void *edges, size_t count, int mode)
{
    (void)edges;
    (void)mode;
    if (graph_get(graph) == NULL) {
        return standin_result(CUDA_INVALID_VALUE);
    }
    int status = begin(stream, graph);
    if (status == CUDA_OK && count != 0) {
        standin *const state = standin_open();
        standin_stream *found = NULL;
        status = stream_get(state, stream, &found);
        for (size_t i = 0; i < count && status == CUDA_OK; i++) {
            graph_node *const node = graph_node_get(dependencies[i]);
            status =
                node == NULL ? CUDA_INVALID_VALUE : graph_capture_set_tails(found, &node, 1, true);
        }
        standin_close(state);
    }
    return standin_result((cuda_status)status);
}

CUDA_ENTRY(int, cudaStreamEndCapture)(void *handle, void **out)
{
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    standin_graph *graph = NULL;
    cuda_status status = stream_get(state, handle, &stream);
    if (status == CUDA_OK) {
        status = graph_capture_end(state, stream, &graph);
    }
    standin_close(state);
    *out = graph;
    return standin_result(status);
}

CUDA_ENTRY(int, cudaStreamIsCapturing)(void *handle, int *out)
{
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    const cuda_status status = stream_get(state, handle, &stream);
    if (status == CUDA_OK) {
        *out = stream->capture != NULL ? CUDA_CAPTURE_STATUS_ACTIVE : CUDA_CAPTURE_STATUS_NONE;
    }
    standin_close(state);
    return standin_result(status);
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

static int describe(void *handle, const capture_answer *answer)
{
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    const cuda_status status = stream_get(state, handle, &stream);
    const bool is_active = status == CUDA_OK && stream->capture != NULL;
    *answer->status = is_active ? CUDA_CAPTURE_STATUS_ACTIVE : CUDA_CAPTURE_STATUS_NONE;
    if (answer->id != NULL) {
        *answer->id = is_active ? stream->capture->id : 0;
    }
    if (answer->graph != NULL) {
        *answer->graph = is_active ? stream->capture->graph : NULL;
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
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaStreamGetCaptureInfo)
(void *stream, int *status, unsigned long long *id, void **graph, graph_node ***dependencies,
 const void **edges, size_t *count)
{
    const capture_answer answer = {status, id, graph, dependencies, edges, count};
    return describe(stream, &answer);
}

CUDA_ENTRY(int, cudaStreamGetCaptureInfo_v3)
(void *stream, int *status, unsigned long long *id, void **graph, graph_node ***dependencies,
 const void **edges, size_t *count)
{
    const capture_answer answer = {status, id, graph, dependencies, edges, count};
    return describe(stream, &answer);
}

CUDA_ENTRY(int, cudaStreamGetCaptureInfo_v2)
(void *stream, int *status, unsigned long long *id, void **graph, graph_node ***dependencies,
 size_t *count)
{
    const capture_answer answer = {status, id, graph, dependencies, NULL, count};
    return describe(stream, &answer);
}

static int update_tails(void *handle, graph_node *const *nodes, size_t count, unsigned flags)
{
    enum { ADD = 0, SET = 1 };
    standin *const state = standin_open();
    standin_stream *stream = NULL;
    cuda_status status = stream_get(state, handle, &stream);
    if (status == CUDA_OK) {
        status = stream->capture == NULL
                     ? CUDA_ILLEGAL_STATE
                     : graph_capture_set_tails(stream, nodes, count, flags != SET);
    }
    standin_close(state);
    return standin_result(status);
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

/* ---- graphs ---- */

CUDA_ENTRY(int, cudaGraphCreate)(void **out, unsigned flags)
{
    (void)flags;
    standin_graph *graph = NULL;
    const cuda_status status = graph_create(&graph);
    *out = graph;
    return standin_result(status);
}

CUDA_ENTRY(int, cudaGraphDestroy)(void *handle)
{
    standin_graph *const graph = graph_get(handle);
    if (graph == NULL) {
        return standin_result(CUDA_INVALID_VALUE);
    }
    standin *const state = standin_open();
    graph_destroy(state, graph);
    standin_close(state);
    return CUDA_OK;
}

static int add_node(void **out, void *handle, graph_node *const *dependencies, size_t count,
                    graph_node_type type)
{
    standin *const state = standin_open();
    standin_graph *const graph = graph_get(handle);
    graph_node *node = NULL;
    const cuda_status status =
        graph == NULL ? CUDA_INVALID_VALUE : graph_add(graph, type, dependencies, count, &node);
    standin_close(state);
    *out = node;
    return standin_result(status);
}

CUDA_ENTRY(int, cudaGraphAddEmptyNode)
(void **out, void *graph, graph_node *const *dependencies, size_t count)
{
    return add_node(out, graph, dependencies, count, GRAPH_NODE_EMPTY);
}

CUDA_ENTRY(int, cudaGraphAddKernelNode)
(void **out, void *graph, graph_node *const *dependencies, size_t count, const void *parameters)
{
    (void)parameters;
    return add_node(out, graph, dependencies, count, GRAPH_NODE_KERNEL);
}

CUDA_ENTRY(int, cudaGraphAddNode)
(void **out, void *graph, graph_node *const *dependencies, const void *edges, size_t count,
 const int *parameters)
{
    (void)edges;
    return add_node(out, graph, dependencies, count, (graph_node_type)*parameters);
}

/** Copy nodes to the caller's array; without one, tell how many there are. */
static void give_nodes(graph_node *const *nodes, uint64_t have, graph_node **out, size_t *count)
{
    if (out != NULL) {
        const size_t room = *count;
        for (size_t i = 0; i < room; i++) {
            out[i] = i < have ? nodes[i] : NULL;
        }
        *count = room < have ? room : (size_t)have;
        return;
    }
    *count = (size_t)have;
}

CUDA_ENTRY(int, cudaGraphGetNodes)(void *handle, graph_node **nodes, size_t *count)
{
    standin *const state = standin_open();
    const standin_graph *const graph = graph_get(handle);
    if (graph != NULL) {
        give_nodes(graph->nodes, graph->node_count, nodes, count);
    }
    standin_close(state);
    return standin_result(graph == NULL ? CUDA_INVALID_VALUE : CUDA_OK);
}

/* Version 13 put an argument into the middle of the same name. */
CUDA_ENTRY(int, cudaGraphNodeGetDependencies)
(void *handle, graph_node **nodes, size_t *edges_or_count, size_t *count_13)
{
    size_t *const count = device_cuda_major() == 12 ? edges_or_count : count_13;
    standin *const state = standin_open();
    const graph_node *const node = graph_node_get(handle);
    if (node != NULL) {
        give_nodes(node->dependencies, node->dependency_count, nodes, count);
    }
    standin_close(state);
    return standin_result(node == NULL ? CUDA_INVALID_VALUE : CUDA_OK);
}

CUDA_ENTRY(int, cudaGraphNodeGetType)(void *handle, int *type)
{
    const graph_node *const node = graph_node_get(handle);
    if (node == NULL) {
        return standin_result(CUDA_INVALID_VALUE);
    }
    *type = (int)node->type;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGraphDestroyNode)(void *handle)
{
    standin *const state = standin_open();
    graph_node *const node = graph_node_get(handle);
    if (node != NULL) {
        graph_node_destroy(node);
    }
    standin_close(state);
    return standin_result(node == NULL ? CUDA_INVALID_VALUE : CUDA_OK);
}

CUDA_ENTRY(int, cudaGraphInstantiate)(void **out, void *handle, unsigned long long flags)
{
    standin *const state = standin_open();
    standin_graph *const graph = graph_get(handle);
    graph_exec *exec = NULL;
    const cuda_status status =
        graph == NULL ? CUDA_INVALID_VALUE : graph_instantiate(graph, flags, &exec);
    standin_close(state);
    *out = exec;
    return standin_result(status);
}

CUDA_ENTRY(int, cudaGraphInstantiateWithFlags)(void **out, void *graph, unsigned long long flags)
{
    return cudaGraphInstantiate(out, graph, flags);
}

CUDA_ENTRY(int, cudaGraphExecDestroy)(void *handle)
{
    graph_exec *const exec = graph_exec_get(handle);
    if (exec == NULL) {
        return standin_result(CUDA_INVALID_VALUE);
    }
    graph_exec_destroy(exec);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGraphLaunch)(void *handle, void *stream_handle)
{
    standin *const state = standin_open();
    graph_exec *const exec = graph_exec_get(handle);
    standin_stream *stream = NULL;
    cuda_status status = exec == NULL ? CUDA_INVALID_VALUE : CUDA_OK;
    if (status == CUDA_OK) {
        status = stream_get(state, stream_handle, &stream);
    }
    if (status == CUDA_OK) {
        status = graph_launch(state, exec, stream);
    }
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaGraphUpload)(void *exec, void *stream)
{
    (void)stream;
    return standin_result(graph_exec_get(exec) == NULL ? CUDA_INVALID_VALUE : CUDA_OK);
}

CUDA_ENTRY(int, cudaGraphDebugDotPrint)(void *handle, const char *path, unsigned flags)
{
    (void)flags;
    const standin_graph *const graph = graph_get(handle);
    FILE *const file = graph == NULL ? NULL : fopen(path, "w");
    if (file == NULL) {
        return standin_result(CUDA_INVALID_VALUE);
    }
    fputs("digraph allot {\n", file);
    for (uint64_t i = 0; i < graph->node_count; i++) {
        const graph_node *const node = graph->nodes[i];
        fprintf(file, "\"%p\";\n", (const void *)node);
        for (uint64_t j = 0; j < node->dependency_count; j++) {
            fprintf(file, "\"%p\" -> \"%p\";\n", (void *)node->dependencies[j], (const void *)node);
        }
    }
    fputs("}\n", file);
    return standin_result(fclose(file) == 0 ? CUDA_OK : CUDA_INVALID_VALUE);
}

CUDA_ENTRY(int, cudaUserObjectCreate)
(void **out, void *pointer, void (*destroy)(void *), unsigned references, unsigned flags)
{
    (void)flags;
    graph_user_object *object = NULL;
    const cuda_status status = graph_object_create(pointer, destroy, references, &object);
    *out = object;
    return standin_result(status);
}

CUDA_ENTRY(int, cudaUserObjectRetain)(void *handle, unsigned count)
{
    standin *const state = standin_open();
    graph_user_object *const object = graph_object_get(handle);
    if (object != NULL) {
        object->references += count;
    }
    standin_close(state);
    return standin_result(object == NULL ? CUDA_INVALID_VALUE : CUDA_OK);
}

CUDA_ENTRY(int, cudaUserObjectRelease)(void *handle, unsigned count)
{
    standin *const state = standin_open();
    graph_user_object *const object = graph_object_get(handle);
    const cuda_status status =
        object == NULL ? CUDA_INVALID_VALUE : graph_object_release(state, object, count);
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaGraphRetainUserObject)
(void *graph_handle, void *object_handle, unsigned count, unsigned flags)
{
    enum { MOVE = 1 };
    standin *const state = standin_open();
    standin_graph *const graph = graph_get(graph_handle);
    graph_user_object *const object = graph_object_get(object_handle);
    const cuda_status status = graph == NULL || object == NULL
                                   ? CUDA_INVALID_VALUE
                                   : graph_retain_object(graph, object, count, (flags & MOVE) != 0);
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaGraphConditionalHandleCreate)
(unsigned long long *out, void *graph, unsigned value, unsigned flags)
{
    (void)value;
    (void)flags;
    *out = 1;
    return standin_result(graph_get(graph) == NULL ? CUDA_INVALID_VALUE : CUDA_OK);
}

CUDA_ENTRY(int, cudaDeviceGetGraphMemAttribute)(int device, int attribute, void *value)
{
    (void)device;
    (void)attribute;
    memset(value, 0, sizeof(uint64_t)); /* graphs with allocations of their own are not kept */
    return CUDA_OK;
}
