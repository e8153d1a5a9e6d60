/* SPDX-License-Identifier: MIT */
/*
 * A small libcudnn.so.9 in place of the real one: the entries that are asked without a device,
 * their rules, and sizes by a formula. It refuses what the real one refuses: attributes after
 * finalising, descriptors that hold unfinished ones, handles, heuristics without a device, a device
 * without all of its fields.
 *
 * Of a graph whose tensors have E elements in all, on a card of M multiprocessors, it proposes
 * three engines with workspaces of E + M bytes (not deterministic), E / 2 bytes, and one that no
 * plan can be made of. A first dimension of 13 crashes it, 14 makes it hang, 15 is not supported,
 * 16 is an internal error. CUDNN_DOUBLE_LOG names a file that grows by a byte with each question.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DOUBLE_VERSION
#define DOUBLE_VERSION 92600
#endif
#ifndef DOUBLE_VISIBILITY
#define DOUBLE_VISIBILITY "default"
#endif
#define DOUBLE_ENTRY(type, name) __attribute__((visibility(DOUBLE_VISIBILITY))) type name

enum {
    ENGINE = 2,
    CONFIG = 3,
    HEURISTICS = 4,
    GRAPH = 15,
    TENSOR = 17,
    DEVICE = 38,
    ATTRIBUTES_MAX = 24,
    VALUES_MAX = 1024,
    CHOICES = 3,
};
enum { OK = 0, BAD_PARAMETER = 2000, NOT_FINALIZED = 2004, NOT_SUPPORTED = 3000, INTERNAL = 4000 };
enum { TYPE_HANDLE = 0, TYPE_INT64 = 3, TYPE_HEUR = 8, TYPE_NOTE = 11, TYPE_DESCRIPTOR = 15 };

typedef struct attribute {
    int name;
    int type;
    int64_t count;
    char values[VALUES_MAX];
} attribute;

typedef struct descriptor {
    int type;
    bool is_final;
    int attribute_count;
    attribute attributes[ATTRIBUTES_MAX];
    int64_t workspace; /* of a configuration or its engine */
    int index;
} descriptor;

DOUBLE_ENTRY(size_t, cudnnGetVersion)(void)
{
    return DOUBLE_VERSION;
}

DOUBLE_ENTRY(int, cudnnBackendCreateDescriptor)(int type, void **out)
{
    descriptor *const made = calloc(1, sizeof *made);
    if (made != NULL) {
        made->type = type;
    }
    *out = made;
    return made == NULL ? INTERNAL : OK;
}

DOUBLE_ENTRY(int, cudnnBackendDestroyDescriptor)(void *pointer)
{
    free(pointer);
    return OK;
}

static size_t value_size(int type)
{
    switch (type) {
    case 2:
    case 24:
        return 1;
    case 3:
    case 5:
    case 6:
    case TYPE_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

DOUBLE_ENTRY(int, cudnnBackendSetAttribute)
(void *pointer, int name, int type, int64_t count, const void *values)
{
    descriptor *const at = pointer;
    if (at->is_final || type == TYPE_HANDLE || at->attribute_count == ATTRIBUTES_MAX || count < 0 ||
        (size_t)count * value_size(type) > VALUES_MAX) {
        return BAD_PARAMETER;
    }
    descriptor *const *const children = values;
    for (int64_t i = 0; type == TYPE_DESCRIPTOR && i < count; i++) {
        if (!children[i]->is_final) {
            return NOT_FINALIZED;
        }
    }
    attribute *const to = &at->attributes[at->attribute_count++];
    to->name = name;
    to->type = type;
    to->count = count;
    memcpy(to->values, values, (size_t)count * value_size(type));
    return OK;
}

static const attribute *find(const descriptor *at, int name)
{
    for (int i = 0; i < at->attribute_count; i++) {
        if (at->attributes[i].name == name) {
            return &at->attributes[i];
        }
    }
    return NULL;
}

static descriptor *child(const descriptor *at, int name)
{
    const attribute *const found = find(at, name);
    descriptor *out = NULL;
    if (found != NULL && found->type == TYPE_DESCRIPTOR && found->count == 1) {
        memcpy(&out, found->values, sizeof(void *));
    }
    return out;
}

/** Elements of all tensors below a descriptor; *first is their first dimension. */
static int64_t elements(const descriptor *at, int64_t *first)
{
    enum { DIMENSIONS = 902 };
    int64_t sum = 0;
    const attribute *const sizes = at->type == TENSOR ? find(at, DIMENSIONS) : NULL;
    if (sizes != NULL) {
        sum = 1;
        for (int64_t i = 0; i < sizes->count; i++) {
            int64_t size = 0;
            memcpy(&size, sizes->values + i * 8, sizeof size);
            *first = i == 0 && size > *first ? size : *first;
            sum *= size;
        }
    }
    for (int i = 0; i < at->attribute_count; i++) {
        const attribute *const held = &at->attributes[i];
        for (int64_t j = 0; held->type == TYPE_DESCRIPTOR && j < held->count; j++) {
            descriptor *below = NULL;
            memcpy(&below, held->values + j * 8, sizeof(void *));
            sum += elements(below, first);
        }
    }
    return sum;
}

static bool is_complete_device(const char *json)
{
    static const char *const fields[] = {"deviceVer",
                                         "driverVer",
                                         "deviceName",
                                         "multiProcessorCount",
                                         "warpSize",
                                         "maxSharedMemoryPerBlock",
                                         "maxSharedMemoryPerBlockOptin",
                                         "reservedSharedMemoryPerBlock",
                                         "maxRegistersPerSM",
                                         "regsPerBlock",
                                         "maxCtasPerSM",
                                         "maxThreadsPerBlock",
                                         "maxThreadsPerSM",
                                         "totalGlobalMem",
                                         "smClockRateKHz",
                                         "memClockRateKHz",
                                         "memoryBusWidth",
                                         "l2CacheSize",
                                         "maxBlockSize",
                                         "maxGridSize",
                                         "supportCoopLaunch",
                                         "pciDeviceId",
                                         "isTccDriver",
                                         "cudaDeviceId"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\":", fields[i]);
        if (strstr(json, quoted) == NULL) {
            return false;
        }
    }
    return true;
}

static void log_question(void)
{
    const char *const path = getenv("CUDNN_DOUBLE_LOG");
    FILE *const file = path == NULL ? NULL : fopen(path, "a");
    if (file != NULL) {
        fputc('?', file);
        fclose(file);
    }
}

static int misbehave(int64_t first)
{
    switch (first) {
    case 13:
        abort();
    case 14:
        for (;;) {
            pause();
        }
    case 15:
        return NOT_SUPPORTED;
    case 16:
        return INTERNAL;
    default:
        return OK;
    }
}

static int finalize_heuristics(descriptor *at)
{
    enum { MODE = 200, OF_GRAPH = 201, OF_DEVICE = 204, JSON = 2702 };
    const descriptor *const graph = child(at, OF_GRAPH);
    const descriptor *const device = child(at, OF_DEVICE);
    const attribute *const mode = find(at, MODE);
    if (graph == NULL || graph->type != GRAPH || device == NULL || device->type != DEVICE ||
        mode == NULL || mode->type != TYPE_HEUR) {
        return BAD_PARAMETER;
    }
    log_question();
    int64_t first = 0;
    const char *const json = find(device, JSON)->values;
    const char *const count = strstr(json, "\"multiProcessorCount\":");
    at->workspace = elements(graph, &first);
    at->index = (int)strtol(strchr(count, ':') + 1, NULL, 10);
    return misbehave(first);
}

DOUBLE_ENTRY(int, cudnnBackendFinalize)(void *pointer)
{
    enum { JSON = 2702 };
    descriptor *const at = pointer;
    if (at->is_final) {
        return BAD_PARAMETER;
    }
    if (at->type == DEVICE &&
        (find(at, JSON) == NULL || !is_complete_device(find(at, JSON)->values))) {
        return BAD_PARAMETER;
    }
    const int status = at->type == HEURISTICS ? finalize_heuristics(at) : OK;
    at->is_final = status == OK;
    return status;
}

static int give_configs(const descriptor *at, int64_t room, int64_t *count, void *out)
{
    descriptor *const *const configs = out;
    *count = room == 0 ? CHOICES : room < CHOICES ? room : CHOICES;
    for (int i = 0; i < *count && room != 0; i++) {
        configs[i]->index = i;
        configs[i]->is_final = true;
        configs[i]->workspace = i == 0 ? at->workspace + at->index : at->workspace / 2;
    }
    return OK;
}

DOUBLE_ENTRY(int, cudnnBackendGetAttribute)
(void *pointer, int name, int type, int64_t room, int64_t *count, void *out)
{
    enum { RESULTS = 202, OF_ENGINE = 300, WORKSPACE = 303, INDEX = 1301, NUMERICAL = 1303 };
    enum { NONDETERMINISTIC = 4 };
    const descriptor *const at = pointer;
    if (!at->is_final) {
        return NOT_FINALIZED;
    }
    if (at->type == HEURISTICS && name == RESULTS && type == TYPE_DESCRIPTOR) {
        return give_configs(at, room, count, out);
    }
    *count = 1;
    if (at->type == CONFIG && name == OF_ENGINE && type == TYPE_DESCRIPTOR) {
        descriptor *const engine = *(descriptor **)out;
        engine->index = at->index;
        engine->is_final = true;
    } else if (at->type == CONFIG && name == WORKSPACE && type == TYPE_INT64) {
        memcpy(out, &at->workspace, sizeof at->workspace);
        return at->index == CHOICES - 1 ? NOT_SUPPORTED : OK;
    } else if (at->type == ENGINE && name == INDEX && type == TYPE_INT64) {
        const int64_t index = 100 + at->index;
        memcpy(out, &index, sizeof index);
    } else if (at->type == ENGINE && name == NUMERICAL && type == TYPE_NOTE && at->index == 0) {
        const int note = NONDETERMINISTIC;
        memcpy(out, &note, sizeof note);
    } else {
        *count = 0;
    }
    return OK;
}
