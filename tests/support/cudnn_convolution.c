/* SPDX-License-Identifier: MIT */
#include "support/cudnn_convolution.h"

#include <string.h>

#include "standin/cudnn_descriptor.h"
#include "standin/oracle/library.h"
#include "support/check.h"
#include "support/standin.h"

/* Numbers of the graph interface that only this test needs. */
enum {
    CONVOLUTION = 1,
    FORWARD = 10,
    TENSOR = 17,
    TYPE_DATA = 1,
    TYPE_CONVOLUTION_MODE = 7,
    CHANNELS = 8,
    SIDE = 10,
    KERNEL = 3,
};

static cudnn_library cudnn;
static int (*execute)(void *, void *, void *);

static void load(void)
{
#define LOAD(name, result, parameters)                                                             \
    *(void **)&cudnn.name = standin_symbol("libcuda.so.1", "cudnn" #name);
    CUDNN_FUNCTION_LIST(LOAD)
#undef LOAD
    *(void **)&execute = standin_symbol("libcuda.so.1", "cudnnBackendExecute");
}

static void set(void *descriptor, int name, int type, int64_t count, const void *values)
{
    CHECK_EQ(cudnn.BackendSetAttribute(descriptor, name, type, count, values), 0);
}

static void *make(int type)
{
    void *descriptor = NULL;
    CHECK_EQ(cudnn.BackendCreateDescriptor(type, &descriptor), 0);
    return descriptor;
}

static void *make_tensor(int64_t id, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t sizes[] = {a, b, c, d};
    const int64_t strides[] = {b * c * d, c * d, d, 1};
    const int64_t align = 16;
    const int type = 0;
    void *const tensor = make(TENSOR);
    set(tensor, 901, TYPE_DATA, 1, &type);
    set(tensor, 902, CUDNN_TYPE_INT64, 4, sizes);
    set(tensor, 903, CUDNN_TYPE_INT64, 4, strides);
    set(tensor, 906, CUDNN_TYPE_INT64, 1, &id);
    set(tensor, 900, CUDNN_TYPE_INT64, 1, &align);
    CHECK_EQ(cudnn.BackendFinalize(tensor), 0);
    return tensor;
}

static void *make_convolution(void)
{
    const int64_t ones[] = {1, 1};
    const int64_t spatial = 2;
    const int type = 0;
    void *const convolution = make(CONVOLUTION);
    set(convolution, 100, TYPE_DATA, 1, &type);
    set(convolution, 101, TYPE_CONVOLUTION_MODE, 1, &type);
    for (int name = 102; name <= 105; name++) { /* dilations, strides, paddings */
        set(convolution, name, CUDNN_TYPE_INT64, 2, ones);
    }
    set(convolution, 106, CUDNN_TYPE_INT64, 1, &spatial);
    CHECK_EQ(cudnn.BackendFinalize(convolution), 0);
    return convolution;
}

static void *make_graph(int64_t batch)
{
    void *const parts[] = {make_convolution(), make_tensor('w', CHANNELS, CHANNELS, KERNEL, KERNEL),
                           make_tensor('x', batch, CHANNELS, SIDE, SIDE),
                           make_tensor('y', batch, CHANNELS, SIDE, SIDE)};
    const double scale[] = {1.0, 0.0};
    void *const operation = make(FORWARD);
    set(operation, 700, CUDNN_TYPE_DOUBLE, 1, &scale[0]);
    set(operation, 701, CUDNN_TYPE_DOUBLE, 1, &scale[1]);
    for (int i = 0; i < 4; i++) {
        set(operation, 702 + i, CUDNN_TYPE_DESCRIPTOR, 1, &parts[i]);
        /* The operation keeps what it holds. */
        cudnn.BackendDestroyDescriptor(parts[i]);
    }
    CHECK_EQ(cudnn.BackendFinalize(operation), 0);
    void *handle = (void *)(uintptr_t)0x1000;
    void *const graph = make(CUDNN_GRAPH);
    set(graph, 800, CUDNN_TYPE_HANDLE, 1, &handle);
    set(graph, 801, CUDNN_TYPE_DESCRIPTOR, 1, &operation);
    cudnn.BackendDestroyDescriptor(operation);
    CHECK_EQ(cudnn.BackendFinalize(graph), 0);
    return graph;
}

static void read_engine(void *config, convolution_result *out, int64_t i)
{
    int64_t count = 0;
    void *engine = make(CUDNN_ENGINE);
    CHECK_EQ(cudnn.BackendGetAttribute(config, CUDNN_CONFIG_ENGINE, CUDNN_TYPE_DESCRIPTOR, 1,
                                       &count, &engine),
             0);
    CHECK_EQ(count, 1);
    CHECK_EQ(cudnn.BackendGetAttribute(engine, CUDNN_ENGINE_INDEX, CUDNN_TYPE_INT64, 1, &count,
                                       &out->engine[i]),
             0);
    CHECK_EQ(cudnn.BackendGetAttribute(engine, CUDNN_ENGINE_NUMERICAL_NOTE,
                                       CUDNN_TYPE_NUMERICAL_NOTE, 1, &out->note_count[i],
                                       &out->note[i]),
             0);
    cudnn.BackendDestroyDescriptor(engine);
}

static void make_plan(void *config, convolution_result *out, int64_t i)
{
    int64_t count = 0;
    void *const plan = make(CUDNN_PLAN);
    set(plan, CUDNN_PLAN_CONFIG, CUDNN_TYPE_DESCRIPTOR, 1, &config);
    out->plan_status[i] = cudnn.BackendFinalize(plan);
    if (out->plan_status[i] == 0) {
        CHECK_EQ(cudnn.BackendGetAttribute(plan, CUDNN_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                           &count, &out->workspace[i]),
                 0);
    }
    if (i == 0) {
        out->execute_status = execute(NULL, plan, NULL);
    }
    cudnn.BackendDestroyDescriptor(plan);
}

convolution_result convolve(int64_t batch)
{
    convolution_result result = {0};
    void *configs[CONVOLUTION_CHOICES_MAX];
    const int mode = 0;
    load();
    void *const graph = make_graph(batch);
    void *const heuristics = make(CUDNN_HEURISTICS);
    set(heuristics, CUDNN_HEURISTICS_GRAPH, CUDNN_TYPE_DESCRIPTOR, 1, &graph);
    set(heuristics, CUDNN_HEURISTICS_MODE, CUDNN_TYPE_HEURISTIC_MODE, 1, &mode);
    cudnn.BackendDestroyDescriptor(graph);
    result.status = cudnn.BackendFinalize(heuristics);
    if (result.status == 0) {
        CHECK_EQ(cudnn.BackendGetAttribute(heuristics, CUDNN_HEURISTICS_RESULTS,
                                           CUDNN_TYPE_DESCRIPTOR, 0, &result.count, NULL),
                 0);
    }
    for (int64_t i = 0; i < result.count && i < CONVOLUTION_CHOICES_MAX; i++) {
        configs[i] = make(CUDNN_ENGINE_CONFIG);
    }
    int64_t given = 0;
    if (result.count != 0) {
        CHECK_EQ(cudnn.BackendGetAttribute(heuristics, CUDNN_HEURISTICS_RESULTS,
                                           CUDNN_TYPE_DESCRIPTOR, result.count, &given, configs),
                 0);
        CHECK_EQ(given, result.count);
    }
    cudnn.BackendDestroyDescriptor(heuristics);
    for (int64_t i = 0; i < given && i < CONVOLUTION_CHOICES_MAX; i++) {
        read_engine(configs[i], &result, i);
        make_plan(configs[i], &result, i);
        cudnn.BackendDestroyDescriptor(configs[i]);
    }
    return result;
}

int64_t convolution_elements(int64_t batch)
{
    return CHANNELS * CHANNELS * KERNEL * KERNEL + 2 * batch * CHANNELS * SIDE * SIDE;
}
