/* SPDX-License-Identifier: MIT */
/* CUDA runtime: graphs. */
#include <stdio.h>
#include <string.h>

#include "standin/device.h"
#include "standin/graph.h"
#include "standin/runtime.h"

/** What a handle that is none is answered with. */
static cuda_status no_graph(standin *state, const void *handle)
{
    return handle == NULL ? CUDA_INVALID_VALUE
                          : rule_broken(state, NULL, CUDA_INVALID_HANDLE,
                                        "%p is not a graph, or one that was destroyed", handle);
}

/** Find the graph of a handle and do something with it, under the lock. */
static int with_graph(void *handle, void *out,
                      cuda_status (*act)(standin *state, standin_graph *graph, void *out))
{
    standin *const state = standin_open();
    standin_graph *const graph = graph_get(state, handle);
    const cuda_status status = graph == NULL ? no_graph(state, handle) : act(state, graph, out);
    standin_close(state);
    return standin_result(status);
}

/** The same for an instantiated graph. */
static int with_exec(void *handle, void *out,
                     cuda_status (*act)(standin *state, graph_exec *exec, void *out))
{
    standin *const state = standin_open();
    graph_exec *const exec = graph_exec_get(state, handle);
    const cuda_status status = exec == NULL ? no_graph(state, handle) : act(state, exec, out);
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaGraphCreate)(void **out, unsigned flags)
{
    (void)flags;
    standin *const state = standin_open();
    standin_graph *graph = NULL;
    const cuda_status status = graph_create(state, &graph);
    *out = graph == NULL ? NULL : graph->handle;
    standin_close(state);
    return standin_result(status);
}

static cuda_status destroy_graph(standin *state, standin_graph *graph, void *out)
{
    (void)out;
    graph_destroy(state, graph);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGraphDestroy)(void *graph)
{
    return with_graph(graph, NULL, destroy_graph);
}

/* ---- nodes ---- */

/** A node to add. */
typedef struct new_node {
    graph_node_type type;
    standin_task task;
    graph_node *const *dependencies;
    size_t count;
    graph_node *node;
} new_node;

static cuda_status add(standin *state, standin_graph *graph, void *out)
{
    new_node *const made = out;
    (void)state;
    for (size_t i = 0; i < made->count; i++) {
        if (graph_node_get(made->dependencies[i]) == NULL) {
            return CUDA_INVALID_VALUE;
        }
    }
    return graph_add(graph, made->type, &made->task, made->dependencies, made->count, &made->node);
}

static int add_node(void **out, void *graph, new_node made)
{
    const int status = with_graph(graph, &made, add);
    *out = made.node;
    return status;
}

CUDA_ENTRY(int, cudaGraphAddEmptyNode)
(void **out, void *graph, graph_node *const *dependencies, size_t count)
{
    return add_node(out, graph, (new_node){GRAPH_NODE_EMPTY, {0}, dependencies, count, NULL});
}

CUDA_ENTRY(int, cudaGraphAddKernelNode)
(void **out, void *graph, graph_node *const *dependencies, size_t count, const void *parameters)
{
    (void)parameters;
    return add_node(out, graph, (new_node){GRAPH_NODE_KERNEL, {0}, dependencies, count, NULL});
}

CUDA_ENTRY(int, cudaGraphAddNode)
(void **out, void *graph, graph_node *const *dependencies, const void *edges, size_t count,
 const int *parameters)
{
    (void)edges;
    return add_node(out, graph,
                    (new_node){(graph_node_type)*parameters, {0}, dependencies, count, NULL});
}

CUDA_ENTRY(int, cudaGraphAddMemcpyNode1D)
(void **out, void *graph, graph_node *const *dependencies, size_t count, void *to, const void *from,
 size_t size, int kind)
{
    (void)kind;
    return add_node(
        out, graph,
        (new_node){GRAPH_NODE_COPY, task_copy(to, from, size), dependencies, count, NULL});
}

/** cudaMemsetParams. */
typedef struct memset_parameters {
    void *to;
    size_t pitch;
    unsigned value;
    unsigned unit;
    size_t width; /**< In units. */
    size_t height;
} memset_parameters;

CUDA_ENTRY(int, cudaGraphAddMemsetNode)
(void **out, void *graph, graph_node *const *dependencies, size_t count,
 const memset_parameters *parameters)
{
    const unsigned unit = parameters->unit;
    if ((unit != 1 && unit != 2 && unit != 4) || parameters->width > SIZE_MAX / 4) {
        return standin_result(CUDA_INVALID_VALUE);
    }
    new_node made = {GRAPH_NODE_SET,
                     task_fill(parameters->to, parameters->value, unit, parameters->width),
                     dependencies, count, NULL};
    made.task.shape.to_pitch = parameters->pitch;
    made.task.shape.height = parameters->height;
    return add_node(out, graph, made);
}

/** cudaHostNodeParams. */
typedef struct host_parameters {
    void (*run)(void *data);
    void *data;
} host_parameters;

CUDA_ENTRY(int, cudaGraphAddHostNode)
(void **out, void *graph, graph_node *const *dependencies, size_t count,
 const host_parameters *parameters)
{
    const standin_task task = {.kind = TASK_CALL,
                               .call = {.run = parameters->run, .data = parameters->data}};
    return add_node(out, graph, (new_node){GRAPH_NODE_HOST, task, dependencies, count, NULL});
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

typedef struct node_room {
    graph_node **nodes;
    size_t *count;
} node_room;

static cuda_status get_nodes(standin *state, standin_graph *graph, void *out)
{
    const node_room *const room = out;
    (void)state;
    give_nodes(graph->nodes, graph->node_count, room->nodes, room->count);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGraphGetNodes)(void *graph, graph_node **nodes, size_t *count)
{
    node_room room = {nodes, count};
    return with_graph(graph, &room, get_nodes);
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

/* ---- instantiated graphs ---- */

typedef struct new_exec {
    unsigned long long flags;
    void *handle;
} new_exec;

static cuda_status instantiate(standin *state, standin_graph *graph, void *out)
{
    new_exec *const made = out;
    graph_exec *exec = NULL;
    const cuda_status status = graph_instantiate(state, graph, made->flags, &exec);
    made->handle = exec == NULL ? NULL : exec->handle;
    return status;
}

CUDA_ENTRY(int, cudaGraphInstantiate)(void **out, void *graph, unsigned long long flags)
{
    new_exec made = {flags, NULL};
    const int status = with_graph(graph, &made, instantiate);
    *out = made.handle;
    return status;
}

CUDA_ENTRY(int, cudaGraphInstantiateWithFlags)(void **out, void *graph, unsigned long long flags)
{
    return cudaGraphInstantiate(out, graph, flags);
}

static cuda_status destroy_exec(standin *state, graph_exec *exec, void *out)
{
    (void)out;
    graph_exec_destroy(state, exec);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGraphExecDestroy)(void *exec)
{
    return with_exec(exec, NULL, destroy_exec);
}

static cuda_status launch(standin *state, graph_exec *exec, void *handle)
{
    standin_stream *stream = NULL;
    const cuda_status status = stream_get(state, handle, &stream);
    return status == CUDA_OK ? graph_launch(state, exec, stream) : status;
}

CUDA_ENTRY(int, cudaGraphLaunch)(void *exec, void *stream)
{
    return with_exec(exec, stream, launch);
}

static cuda_status upload(standin *state, graph_exec *exec, void *stream)
{
    (void)state;
    (void)exec;
    (void)stream;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGraphUpload)(void *exec, void *stream)
{
    return with_exec(exec, stream, upload);
}

static cuda_status print(standin *state, standin_graph *graph, void *path)
{
    (void)state;
    FILE *const file = fopen(path, "w");
    if (file == NULL) {
        return CUDA_INVALID_VALUE;
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
    return fclose(file) == 0 ? CUDA_OK : CUDA_INVALID_VALUE;
}

CUDA_ENTRY(int, cudaGraphDebugDotPrint)(void *graph, char *path, unsigned flags)
{
    (void)flags;
    return with_graph(graph, path, print);
}

/* ---- objects of the program ---- */

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
    standin_graph *const graph = graph_get(state, graph_handle);
    graph_user_object *const object = graph_object_get(object_handle);
    const cuda_status status = graph == NULL || object == NULL
                                   ? CUDA_INVALID_VALUE
                                   : graph_retain_object(graph, object, count, (flags & MOVE) != 0);
    standin_close(state);
    return standin_result(status);
}

static cuda_status give_condition(standin *state, standin_graph *graph, void *out)
{
    const unsigned long long one = 1;
    (void)state;
    (void)graph;
    memcpy(out, &one, sizeof one);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGraphConditionalHandleCreate)
(unsigned long long *out, void *graph, unsigned value, unsigned flags)
{
    (void)value;
    (void)flags;
    return with_graph(graph, out, give_condition);
}

CUDA_ENTRY(int, cudaDeviceGetGraphMemAttribute)(int device, int attribute, void *value)
{
    (void)device;
    (void)attribute;
    memset(value, 0, sizeof(uint64_t)); /* graphs with allocations of their own are not kept */
    return CUDA_OK;
}
