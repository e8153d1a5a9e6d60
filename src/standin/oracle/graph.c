/* SPDX-License-Identifier: MIT */
/*
 * cuDNN is asked as its documentation describes for a machine without a device: the card is a
 * descriptor made from JSON, given to the heuristics; nothing ever has a handle. The workspace is
 * read from each engine configuration, so that no plan is made and no kernel compiled.
 */
#include "standin/oracle/graph.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "standin/cudnn_descriptor.h"
#include "standin/cudnn_wire.h"

enum { DESCRIPTORS_MAX = 1 << 12, VALUES_MAX = 1 << 16, JSON_MAX = 4096, MALFORMED = -1 };

/** The real descriptors of a query. */
typedef struct oracle_graph {
    void **items;
    uint64_t count;
} oracle_graph;

static void destroy(const cudnn_library *cudnn, oracle_graph *graph)
{
    for (uint64_t i = graph->count; i-- > 0;) {
        (void)cudnn->BackendDestroyDescriptor(graph->items[i]);
    }
    free(graph->items);
}

/** Positions in the query become pointers. false: a position that was not made yet. */
static bool take_children(alloti_cursor *query, const oracle_graph *graph, uint64_t count,
                          void **out)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t position = alloti_cursor_varint(query);
        if (position >= graph->count) {
            return false;
        }
        out[i] = graph->items[position];
    }
    return true;
}

static int take_attribute(const cudnn_library *cudnn, alloti_cursor *query,
                          const oracle_graph *graph, void *descriptor)
{
    const int name = (int)alloti_cursor_varint(query);
    const int type = (int)alloti_cursor_varint(query);
    const uint64_t count = alloti_cursor_varint(query);
    const size_t size = cudnn_value_size(type);
    if (query->has_failed || count > VALUES_MAX || size == 0) {
        return MALFORMED;
    }
    /* A copy: values in a message are not aligned. */
    void *const values = alloti_alloc_array(count + 1, size);
    int status = values == NULL ? CUDNN_NO_HOST_MEMORY : CUDNN_OK;
    if (values != NULL && type == CUDNN_TYPE_DESCRIPTOR) {
        status = take_children(query, graph, count, values) ? CUDNN_OK : MALFORMED;
    } else if (values != NULL) {
        const uint8_t *const bytes = alloti_cursor_take(query, count * size);
        status = bytes == NULL ? MALFORMED : CUDNN_OK;
        memcpy(values, bytes == NULL ? values : bytes, bytes == NULL ? 0 : count * size);
    }
    if (status == CUDNN_OK) {
        status = cudnn->BackendSetAttribute(descriptor, name, type, (int64_t)count, values);
    }
    free(values);
    return status;
}

static int take_descriptor(const cudnn_library *cudnn, alloti_cursor *query, oracle_graph *graph)
{
    const int type = (int)alloti_cursor_varint(query);
    const uint64_t count = alloti_cursor_varint(query);
    void *descriptor = NULL;
    if (query->has_failed) {
        return MALFORMED;
    }
    int status = cudnn->BackendCreateDescriptor(type, &descriptor);
    if (status != CUDNN_OK) {
        return status;
    }
    graph->items[graph->count++] = descriptor;
    for (uint64_t i = 0; i < count && status == CUDNN_OK; i++) {
        status = take_attribute(cudnn, query, graph, descriptor);
    }
    return status == CUDNN_OK ? cudnn->BackendFinalize(descriptor) : status;
}

/** Make all descriptors; the last one is the graph. The caller destroys them in every case. */
static int take_graph(const cudnn_library *cudnn, alloti_cursor *query, oracle_graph *out)
{
    const uint64_t count = alloti_cursor_varint(query);
    *out = (oracle_graph){0};
    if (query->has_failed || count == 0 || count > DESCRIPTORS_MAX) {
        return MALFORMED;
    }
    out->items = alloti_calloc_array(count, sizeof *out->items);
    int status = out->items == NULL ? CUDNN_NO_HOST_MEMORY : CUDNN_OK;
    for (uint64_t i = 0; i < count && status == CUDNN_OK; i++) {
        status = take_descriptor(cudnn, query, out);
    }
    return status;
}

/** A descriptor of the card. */
static int make_device(const cudnn_library *cudnn, const char *json, void **out)
{
    int status = cudnn->BackendCreateDescriptor(CUDNN_DEVICE_PROPERTIES, out);
    if (status == CUDNN_OK) {
        status = cudnn->BackendSetAttribute(*out, CUDNN_DEVICE_JSON, CUDNN_TYPE_CHAR,
                                            (int64_t)strlen(json) + 1, json);
    }
    return status == CUDNN_OK ? cudnn->BackendFinalize(*out) : status;
}

/** The heuristics of a graph on a card, ready to be read. */
static int make_heuristics(const cudnn_library *cudnn, void *graph, int mode, void *device,
                           void **out)
{
    int status = cudnn->BackendCreateDescriptor(CUDNN_HEURISTICS, out);
    if (status == CUDNN_OK) {
        status = cudnn->BackendSetAttribute(*out, CUDNN_HEURISTICS_GRAPH, CUDNN_TYPE_DESCRIPTOR, 1,
                                            &graph);
    }
    if (status == CUDNN_OK) {
        status = cudnn->BackendSetAttribute(*out, CUDNN_HEURISTICS_MODE, CUDNN_TYPE_HEURISTIC_MODE,
                                            1, &mode);
    }
    if (status == CUDNN_OK) {
        status = cudnn->BackendSetAttribute(*out, CUDNN_HEURISTICS_DEVICE, CUDNN_TYPE_DESCRIPTOR, 1,
                                            &device);
    }
    return status == CUDNN_OK ? cudnn->BackendFinalize(*out) : status;
}

/* ---- results ---- */

static uint32_t read_notes(const cudnn_library *cudnn, void *engine, int name, int type, int *out)
{
    int64_t count = 0;
    if (cudnn->BackendGetAttribute(engine, name, type, WIRE_NOTES_MAX, &count, out) != CUDNN_OK ||
        count < 0) {
        return 0;
    }
    return count < WIRE_NOTES_MAX ? (uint32_t)count : WIRE_NOTES_MAX;
}

static void read_engine(const cudnn_library *cudnn, void *config, cudnn_choice *out)
{
    void *engine = NULL;
    int64_t count = 0;
    int64_t index = 0;
    if (cudnn->BackendCreateDescriptor(CUDNN_ENGINE, &engine) != CUDNN_OK) {
        return;
    }
    if (cudnn->BackendGetAttribute(config, CUDNN_CONFIG_ENGINE, CUDNN_TYPE_DESCRIPTOR, 1, &count,
                                   &engine) == CUDNN_OK) {
        (void)cudnn->BackendGetAttribute(engine, CUDNN_ENGINE_INDEX, CUDNN_TYPE_INT64, 1, &count,
                                         &index);
        out->engine = (uint64_t)index;
        out->numerical_count = read_notes(cudnn, engine, CUDNN_ENGINE_NUMERICAL_NOTE,
                                          CUDNN_TYPE_NUMERICAL_NOTE, out->numerical);
        out->behavior_count = read_notes(cudnn, engine, CUDNN_ENGINE_BEHAVIOR_NOTE,
                                         CUDNN_TYPE_BEHAVIOR_NOTE, out->behavior);
    }
    (void)cudnn->BackendDestroyDescriptor(engine);
}

static void put_choice(const cudnn_library *cudnn, void *config, alloti_bytes *answer)
{
    cudnn_choice choice = {0};
    int64_t count = 0;
    int64_t workspace = 0;
    choice.status = cudnn->BackendGetAttribute(config, CUDNN_CONFIG_WORKSPACE_SIZE,
                                               CUDNN_TYPE_INT64, 1, &count, &workspace);
    choice.workspace = workspace > 0 ? (uint64_t)workspace : 0;
    read_engine(cudnn, config, &choice);
    wire_put_choice(answer, &choice);
}

/** Make room for results, have it filled, write each. */
static void put_results(const cudnn_library *cudnn, void *heuristics, alloti_bytes *answer)
{
    void *configs[WIRE_CHOICES_MAX];
    int64_t count = 0;
    int64_t made = 0;
    int status = cudnn->BackendGetAttribute(heuristics, CUDNN_HEURISTICS_RESULTS,
                                            CUDNN_TYPE_DESCRIPTOR, 0, &count, NULL);
    count = count < WIRE_CHOICES_MAX ? count : WIRE_CHOICES_MAX;
    while (status == CUDNN_OK && made < count) {
        status = cudnn->BackendCreateDescriptor(CUDNN_ENGINE_CONFIG, &configs[made]);
        made += status == CUDNN_OK ? 1 : 0;
    }
    if (status == CUDNN_OK) {
        status = cudnn->BackendGetAttribute(heuristics, CUDNN_HEURISTICS_RESULTS,
                                            CUDNN_TYPE_DESCRIPTOR, made, &count, configs);
    }
    count = status == CUDNN_OK && count < made ? count : made;
    alloti_bytes_put_varint(answer, (uint64_t)status);
    alloti_bytes_put_varint(answer, status == CUDNN_OK ? (uint64_t)count : 0);
    for (int64_t i = 0; status == CUDNN_OK && i < count; i++) {
        put_choice(cudnn, configs[i], answer);
    }
    while (made > 0) {
        (void)cudnn->BackendDestroyDescriptor(configs[--made]);
    }
}

static bool take_json(alloti_cursor *query, char *out)
{
    const uint64_t size = alloti_cursor_varint(query);
    const uint8_t *const text = size < JSON_MAX ? alloti_cursor_take(query, size) : NULL;
    if (text == NULL) {
        return false;
    }
    memcpy(out, text, size);
    out[size] = '\0';
    return true;
}

void oracle_answer(const cudnn_library *cudnn, alloti_cursor *query, alloti_bytes *answer)
{
    char json[JSON_MAX];
    oracle_graph graph = {0};
    void *device = NULL;
    void *heuristics = NULL;
    int status = take_json(query, json) ? CUDNN_OK : MALFORMED;
    const int mode = (int)alloti_cursor_varint(query);
    if (status == CUDNN_OK) {
        status = take_graph(cudnn, query, &graph);
    }
    if (status == CUDNN_OK) {
        status = make_device(cudnn, json, &device);
    }
    if (status == CUDNN_OK) {
        status = make_heuristics(cudnn, graph.items[graph.count - 1], mode, device, &heuristics);
    }
    if (status == CUDNN_OK) {
        put_results(cudnn, heuristics, answer);
    } else {
        alloti_bytes_put_varint(answer,
                                status == MALFORMED ? CUDNN_BAD_PARAMETER : (uint64_t)status);
        alloti_bytes_put_varint(answer, 0);
    }
    if (heuristics != NULL) {
        (void)cudnn->BackendDestroyDescriptor(heuristics);
    }
    if (device != NULL) {
        (void)cudnn->BackendDestroyDescriptor(device);
    }
    destroy(cudnn, &graph);
}
