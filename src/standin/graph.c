/* SPDX-License-Identifier: MIT */
#include "standin/graph.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "standin/state.h"

static const uint64_t NODE_MARK = UINT64_C(0x616c6c6f746e6f64);
static const uint64_t OBJECT_MARK = UINT64_C(0x616c6c6f746f626a);

/* ---- nodes and graphs ---- */

cuda_status graph_create(standin *state, standin_graph **out)
{
    standin_graph *const graph = calloc(1, sizeof *graph);
    if (graph == NULL) {
        return CUDA_OUT_OF_MEMORY;
    }
    graph->handle = slot_add(&state->graphs, SLOT_GRAPH, graph);
    if (graph->handle == NULL) {
        free(graph);
        return CUDA_OUT_OF_MEMORY;
    }
    *out = graph;
    return CUDA_OK;
}

standin_graph *graph_get(const standin *state, const void *handle)
{
    return slot_get(&state->graphs, SLOT_GRAPH, handle);
}

graph_node *graph_node_get(void *handle)
{
    graph_node *const node = handle;
    return node != NULL && node->mark == NODE_MARK ? node : NULL;
}

static void free_node(graph_node *node)
{
    node->mark = 0;
    task_fini(&node->task);
    free(node->dependencies);
    free(node);
}

void graph_node_destroy(graph_node *node)
{
    standin_graph *const graph = node->graph;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < graph->node_count; i++) {
        graph_node *const other = graph->nodes[i];
        if (other == node) {
            continue;
        }
        uint64_t count = 0;
        for (uint64_t j = 0; j < other->dependency_count; j++) {
            if (other->dependencies[j] != node) {
                other->dependencies[count++] = other->dependencies[j];
            }
        }
        other->dependency_count = count;
        graph->nodes[kept++] = other;
    }
    graph->node_count = kept;
    free_node(node);
}

cuda_status graph_add(standin_graph *graph, graph_node_type type, standin_task *task,
                      graph_node *const *dependencies, uint64_t count, graph_node **out)
{
    graph_node *const node = calloc(1, sizeof *node);
    if (node == NULL ||
        alloti_array_reserve(&graph->nodes, &graph->node_capacity, graph->node_count + 1,
                             sizeof(graph_node *)) != ALLOT_STATUS_OK ||
        alloti_array_reserve(&node->dependencies, &node->dependency_capacity, count,
                             sizeof(graph_node *)) != ALLOT_STATUS_OK) {
        free(node);
        task_fini(task);
        return CUDA_OUT_OF_MEMORY;
    }
    node->task = *task;
    node->mark = NODE_MARK;
    node->graph = graph;
    node->type = type;
    for (uint64_t i = 0; i < count; i++) {
        node->dependencies[node->dependency_count++] = dependencies[i];
        dependencies[i]->has_dependents = true;
    }
    graph->nodes[graph->node_count++] = node;
    *out = node;
    return CUDA_OK;
}

void graph_destroy(standin *state, standin_graph *graph)
{
    for (uint64_t i = 0; i < graph->node_count; i++) {
        free_node(graph->nodes[i]);
    }
    for (uint64_t i = 0; i < graph->object_count; i++) {
        (void)graph_object_release(state, graph->objects[i].object, graph->objects[i].count);
    }
    slot_remove(&state->graphs, graph->handle);
    free(graph->nodes);
    free(graph->objects);
    free(graph);
}

/* ---- user objects ---- */

cuda_status graph_object_create(void *pointer, void (*destroy)(void *), uint64_t references,
                                graph_user_object **out)
{
    graph_user_object *const object = calloc(1, sizeof *object);
    if (object == NULL) {
        return CUDA_OUT_OF_MEMORY;
    }
    *object = (graph_user_object){
        .mark = OBJECT_MARK, .pointer = pointer, .destroy = destroy, .references = references};
    *out = object;
    return CUDA_OK;
}

graph_user_object *graph_object_get(void *handle)
{
    graph_user_object *const object = handle;
    return object != NULL && object->mark == OBJECT_MARK ? object : NULL;
}

cuda_status graph_object_release(standin *state, graph_user_object *object, uint64_t count)
{
    if (count > object->references) {
        return CUDA_INVALID_VALUE;
    }
    object->references -= count;
    if (object->references != 0) {
        return CUDA_OK;
    }
    stream_state *const streams = &state->streams;
    if (object->destroy != NULL &&
        alloti_array_reserve(&streams->due, &streams->due_capacity, streams->due_count + 1,
                             sizeof *streams->due) == ALLOT_STATUS_OK) {
        streams->due[streams->due_count++] =
            (stream_callback){.run = object->destroy, .data = object->pointer, .slot = ALLOT_NONE};
    }
    object->mark = 0;
    free(object);
    return CUDA_OK;
}

cuda_status graph_retain_object(standin_graph *graph, graph_user_object *object, uint64_t count,
                                bool is_moved)
{
    if (alloti_array_reserve(&graph->objects, &graph->object_capacity, graph->object_count + 1,
                             sizeof *graph->objects) != ALLOT_STATUS_OK) {
        return CUDA_OUT_OF_MEMORY;
    }
    graph->objects[graph->object_count++] = (graph_reference){object, count};
    object->references += is_moved ? 0 : count;
    return CUDA_OK;
}

/* ---- instantiated graphs ---- */

static void free_steps(graph_step *steps, uint64_t count)
{
    for (uint64_t i = 0; i < count && steps != NULL; i++) {
        free(steps[i].after);
    }
    free(steps);
}

/** The step of a node whose `order` and that of all nodes before it are set. */
static bool make_step(const graph_node *node, graph_step *step)
{
    step->task = node->task; /* what is staged stays the node's: captured copies stage nothing */
    step->task.staged = NULL;
    if (node->dependency_count == 0) {
        return true;
    }
    step->after = alloti_calloc_array(node->dependency_count, sizeof *step->after);
    for (uint64_t i = 0; i < node->dependency_count && step->after != NULL; i++) {
        if (node->dependencies[i]->graph == node->graph) {
            step->after[step->after_count++] = (uint32_t)node->dependencies[i]->order;
        }
    }
    return step->after != NULL;
}

cuda_status graph_instantiate(standin *state, standin_graph *graph, uint64_t flags,
                              graph_exec **out)
{
    graph_exec *const exec = calloc(1, sizeof *exec);
    graph_step *const steps = alloti_calloc_array(graph->node_count + 1, sizeof *steps);
    bool is_made = exec != NULL && steps != NULL;
    bool has_calls = false;
    for (uint64_t i = 0; i < graph->node_count && is_made; i++) {
        graph->nodes[i]->order = i;
        is_made = make_step(graph->nodes[i], &steps[i]);
        has_calls = has_calls || steps[i].task.kind == TASK_CALL;
    }
    void *const handle = is_made ? slot_add(&state->execs, SLOT_EXEC, exec) : NULL;
    if (handle == NULL) {
        free_steps(steps, graph->node_count);
        free(exec);
        return CUDA_OUT_OF_MEMORY;
    }
    *exec = (graph_exec){.handle = handle,
                         .flags = flags,
                         .node_count = graph->node_count,
                         .steps = steps,
                         .has_calls = has_calls};
    *out = exec;
    return CUDA_OK;
}

graph_exec *graph_exec_get(const standin *state, const void *handle)
{
    return slot_get(&state->execs, SLOT_EXEC, handle);
}

void graph_exec_destroy(standin *state, graph_exec *exec)
{
    slot_remove(&state->execs, exec->handle);
    free_steps(exec->steps, exec->node_count);
    free(exec);
}

static cuda_status put_step(standin *state, const graph_step *step, standin_stream *stream)
{
    standin_task task = step->task;
    return stream_put(state, stream, &task);
}

/** Whether everything that a step depends on is done. */
static bool is_next(const graph_step *step, const bool *done)
{
    for (uint64_t i = 0; i < step->after_count; i++) {
        if (!done[step->after[i]]) {
            return false;
        }
    }
    return true;
}

/** Put the steps on a stream in an order drawn from those that their dependencies allow. */
static cuda_status put_drawn(standin *state, const graph_exec *exec, standin_stream *stream)
{
    bool *const done = alloti_calloc_array(exec->node_count + 1, sizeof *done);
    cuda_status status = done == NULL ? CUDA_OUT_OF_MEMORY : CUDA_OK;
    for (uint64_t i = 0; i < exec->node_count && status == CUDA_OK; i++) {
        uint64_t at = queue_draw(state) % exec->node_count;
        while (done[at] || !is_next(&exec->steps[at], done)) {
            at = (at + 1) % exec->node_count;
        }
        done[at] = true;
        status = put_step(state, &exec->steps[at], stream);
    }
    free(done);
    return status;
}

cuda_status graph_launch(standin *state, graph_exec *exec, standin_stream *stream)
{
    state->values.launches += exec->node_count;
    if (state->config.has_bytes && state->config.delay != 0) {
        return put_drawn(state, exec, stream);
    }
    cuda_status status = stream_work(state, stream);
    for (uint64_t i = 0; i < exec->node_count && status == CUDA_OK; i++) {
        const graph_step *const step = &exec->steps[i];
        if (state->config.has_bytes) {
            status = put_step(state, step, stream);
        } else if (!exec->has_calls) {
            break;
        } else if (step->task.kind == TASK_CALL) {
            status = stream_call(state, stream, &step->task.call);
        }
    }
    return status;
}
