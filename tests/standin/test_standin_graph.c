/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/standin.h"

enum {
    ILLEGAL_STATE = 401,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_MERGE = 902,
    CAPTURE_UNMATCHED = 903,
    CAPTURE_UNJOINED = 904,
    CAPTURED_EVENT = 907,
};

static void *place;

static void load(void)
{
    standin_load("limit:1GiB");
    if (place == NULL) {
        cuda.cudaMalloc(&place, 16);
    }
}

static void work(void *on)
{
    CHECK_EQ(cuda.cudaMemsetAsync(place, 0, 16, on), 0);
}

static size_t node_count(void *graph)
{
    size_t count = 0;
    CHECK_EQ(cuda.cudaGraphGetNodes(graph, NULL, &count), 0);
    return count;
}

static void captured_work_becomes_a_chain_of_nodes(void)
{
    load();
    void *const s = standin_stream();
    void *graph = NULL;
    void *nodes[3] = {0};
    int status = -1;
    CHECK_EQ(cuda.cudaStreamBeginCapture(s, 0), 0);
    CHECK_EQ(cuda.cudaStreamIsCapturing(s, &status), 0);
    CHECK_EQ(status, 1);
    work(s);
    work(s);
    work(s);
    CHECK_EQ(cuda.cudaStreamEndCapture(s, &graph), 0);
    CHECK_EQ(cuda.cudaStreamIsCapturing(s, &status), 0);
    CHECK_EQ(status, 0);
    REQUIRE(node_count(graph) == 3);
    size_t room = 3;
    CHECK_EQ(cuda.cudaGraphGetNodes(graph, nodes, &room), 0);
    void *before[2] = {0};
    size_t count = 2;
    CHECK_EQ(cuda.cudaGraphNodeGetDependencies(nodes[2], before, NULL, &count), 0);
    CHECK_EQ(count, 1);
    CHECK(before[0] == nodes[1]);
    count = 2;
    CHECK_EQ(cuda.cudaGraphNodeGetDependencies(nodes[0], before, NULL, &count), 0);
    CHECK_EQ(count, 0);
    CHECK_EQ(cuda.cudaGraphDestroy(graph), 0);
    cuda.cudaStreamDestroy(s);
}

static void library_calls_add_nodes(void)
{
    load();
    int (*gemm)(void *, ...) = NULL;
    *(void **)&gemm = standin_symbol("libcuda.so.1", "cublasSgemm_v2");
    REQUIRE(gemm != NULL);
    void *const s = standin_stream();
    void *library = NULL;
    void *graph = NULL;
    REQUIRE(cuda.cublasCreate_v2(&library) == 0);
    CHECK_EQ(cuda.cublasSetStream_v2(library, s), 0);
    CHECK_EQ(cuda.cudaStreamBeginCapture(s, 0), 0);
    CHECK_EQ(gemm(library, 0, 0, 1, 1, 1, NULL, NULL, 1, NULL, 1, NULL, NULL, 1), 0);
    CHECK_EQ(cuda.cudaStreamEndCapture(s, &graph), 0);
    CHECK_EQ(node_count(graph), 1);
    cuda.cudaGraphDestroy(graph);
    cuda.cublasDestroy_v2(library);
    cuda.cudaStreamDestroy(s);
}

static void transforms_add_nodes(void)
{
    load();
    void *const s = standin_stream();
    void *graph = NULL;
    int plan = 0;
    REQUIRE(cuda.cufftCreate(&plan) == 0);
    CHECK_EQ(cuda.cufftSetStream(plan, s), 0);
    CHECK_EQ(cuda.cudaStreamBeginCapture(s, 0), 0);
    CHECK_EQ(cuda.cufftXtExec(plan, place, place, -1), 0);
    CHECK_EQ(cuda.cudaStreamEndCapture(s, &graph), 0);
    CHECK_EQ(node_count(graph), 1);
    CHECK_EQ(cuda.cufftDestroy(plan), 0);
    CHECK_EQ(cuda.cufftDestroy(plan), 1);
    CHECK_EQ(cuda.cufftXtExec(plan, place, place, -1), 1);
    cuda.cudaGraphDestroy(graph);
    cuda.cudaStreamDestroy(s);
}

static void events_fork_and_join_streams(void)
{
    load();
    void *const a = standin_stream();
    void *const b = standin_stream();
    void *const fork = standin_event();
    void *const join = standin_event();
    void *graph = NULL;
    int status = 0;
    CHECK_EQ(cuda.cudaStreamBeginCapture(a, 0), 0);
    work(a);
    CHECK_EQ(cuda.cudaEventRecord(fork, a), 0);
    CHECK_EQ(cuda.cudaEventQuery(fork), CAPTURED_EVENT);
    CHECK_EQ(cuda.cudaStreamWaitEvent(b, fork, 0), 0);
    CHECK_EQ(cuda.cudaStreamIsCapturing(b, &status), 0);
    CHECK_EQ(status, 1);
    work(b);
    work(a);
    CHECK_EQ(cuda.cudaEventRecord(join, b), 0);
    CHECK_EQ(cuda.cudaStreamWaitEvent(a, join, 0), 0);
    work(a);
    CHECK_EQ(cuda.cudaStreamEndCapture(a, &graph), 0);
    CHECK_EQ(node_count(graph), 4);
    CHECK_EQ(cuda.cudaStreamIsCapturing(b, &status), 0);
    CHECK_EQ(status, 0);
    void *nodes[4] = {0};
    void *before[4] = {0};
    size_t room = 4;
    size_t count = 4;
    CHECK_EQ(cuda.cudaGraphGetNodes(graph, nodes, &room), 0);
    CHECK_EQ(cuda.cudaGraphNodeGetDependencies(nodes[3], before, NULL, &count), 0);
    CHECK_EQ(count, 2);
    CHECK_EQ(cuda.cudaEventQuery(fork), 0);
    cuda.cudaGraphDestroy(graph);
    cuda.cudaStreamDestroy(a);
    cuda.cudaStreamDestroy(b);
    cuda.cudaEventDestroy(fork);
    cuda.cudaEventDestroy(join);
}

static void a_stream_that_was_not_joined_spoils_the_capture(void)
{
    load();
    void *const a = standin_stream();
    void *const b = standin_stream();
    void *const fork = standin_event();
    void *graph = &graph;
    CHECK_EQ(cuda.cudaStreamBeginCapture(a, 0), 0);
    work(a);
    CHECK_EQ(cuda.cudaEventRecord(fork, a), 0);
    CHECK_EQ(cuda.cudaStreamWaitEvent(b, fork, 0), 0);
    work(b);
    CHECK_EQ(cuda.cudaStreamEndCapture(b, &graph), CAPTURE_UNMATCHED);
    CHECK_EQ(cuda.cudaStreamEndCapture(a, &graph), CAPTURE_UNJOINED);
    CHECK(graph == NULL);
    work(b); /* both work on as before */
    CHECK_EQ(cuda.cudaStreamSynchronize(b), 0);
    cuda.cudaStreamDestroy(a);
    cuda.cudaStreamDestroy(b);
    cuda.cudaEventDestroy(fork);
    cuda.cudaGetLastError();
}

static void what_cannot_be_captured_is_refused(void)
{
    load();
    void *const a = standin_stream();
    void *const b = standin_stream();
    void *const outside = standin_event();
    void *graph = NULL;
    CHECK_EQ(cuda.cudaStreamBeginCapture(NULL, 0), CAPTURE_UNSUPPORTED);
    CHECK_EQ(cuda.cudaStreamEndCapture(a, &graph), ILLEGAL_STATE);
    CHECK_EQ(cuda.cudaEventRecord(outside, b), 0);
    CHECK_EQ(cuda.cudaStreamBeginCapture(a, 0), 0);
    CHECK_EQ(cuda.cudaStreamBeginCapture(a, 0), ILLEGAL_STATE);
    CHECK_EQ(cuda.cudaStreamSynchronize(a), CAPTURE_UNSUPPORTED);
    CHECK_EQ(cuda.cudaStreamQuery(a), CAPTURE_UNSUPPORTED);
    CHECK_EQ(cuda.cudaStreamWaitEvent(a, outside, 0), CAPTURE_MERGE);
    CHECK_EQ(cuda.cudaStreamEndCapture(a, &graph), 0);
    CHECK_EQ(node_count(graph), 0);
    cuda.cudaGraphDestroy(graph);
    cuda.cudaStreamDestroy(a);
    cuda.cudaStreamDestroy(b);
    cuda.cudaEventDestroy(outside);
    cuda.cudaGetLastError();
}

static void a_capture_tells_about_itself(void)
{
    load();
    void *const s = standin_stream();
    int status = -1;
    unsigned long long id = 99;
    void *graph = NULL;
    void *ended = NULL;
    void **tails = NULL;
    const void *edges = NULL;
    size_t count = 99;
    CHECK_EQ(cuda.cudaStreamGetCaptureInfo(s, &status, &id, &graph, &tails, &edges, &count), 0);
    CHECK_EQ(status, 0);
    CHECK_EQ(cuda.cudaStreamBeginCapture(s, 0), 0);
    work(s);
    CHECK_EQ(cuda.cudaStreamGetCaptureInfo(s, &status, &id, &graph, &tails, &edges, &count), 0);
    CHECK_EQ(status, 1);
    CHECK(id != 0);
    CHECK_EQ(count, 1);
    void *node = NULL;
    size_t room = 1;
    CHECK_EQ(cuda.cudaGraphGetNodes(graph, &node, &room), 0);
    CHECK(tails[0] == node);
    CHECK_EQ(cuda.cudaStreamEndCapture(s, &ended), 0);
    CHECK(ended == graph);
    cuda.cudaGraphDestroy(ended);
    cuda.cudaStreamDestroy(s);
}

static int calls;

static void count_call(void *unused)
{
    (void)unused;
    calls++;
}

static void host_functions_run_at_each_launch(void)
{
    load();
    void *const s = standin_stream();
    void *graph = NULL;
    void *exec = NULL;
    calls = 0;
    CHECK_EQ(cuda.cudaStreamBeginCapture(s, 0), 0);
    CHECK_EQ(cuda.cudaLaunchHostFunc(s, count_call, NULL), 0);
    CHECK_EQ(cuda.cudaStreamEndCapture(s, &graph), 0);
    CHECK_EQ(calls, 0);
    CHECK_EQ(cuda.cudaGraphInstantiate(&exec, graph, 0), 0);
    CHECK_EQ(cuda.cudaGraphDestroy(graph), 0);
    CHECK_EQ(cuda.cudaGraphLaunch(exec, s), 0);
    CHECK_EQ(cuda.cudaGraphLaunch(exec, s), 0);
    CHECK_EQ(calls, 2);
    CHECK_EQ(cuda.cudaGraphExecDestroy(exec), 0);
    CHECK_EQ(cuda.cudaGraphLaunch(NULL, s), 1);
    cuda.cudaStreamDestroy(s);
    cuda.cudaGetLastError();
}

static void a_graph_keeps_the_programs_objects_alive(void)
{
    load();
    void *const s = standin_stream();
    void *graph = NULL;
    void *object = NULL;
    calls = 0;
    CHECK_EQ(cuda.cudaStreamBeginCapture(s, 0), 0);
    CHECK_EQ(cuda.cudaStreamEndCapture(s, &graph), 0);
    CHECK_EQ(cuda.cudaUserObjectCreate(&object, NULL, count_call, 1, 1), 0);
    CHECK_EQ(cuda.cudaGraphRetainUserObject(graph, object, 1, 1), 0);
    CHECK_EQ(calls, 0);
    CHECK_EQ(cuda.cudaGraphDestroy(graph), 0);
    CHECK_EQ(calls, 1);
    cuda.cudaStreamDestroy(s);
}

static const check_test TESTS[] = {
    {"captured_work_becomes_a_chain_of_nodes", captured_work_becomes_a_chain_of_nodes},
    {"library_calls_add_nodes", library_calls_add_nodes},
    {"transforms_add_nodes", transforms_add_nodes},
    {"events_fork_and_join_streams", events_fork_and_join_streams},
    {"a_stream_that_was_not_joined_spoils_the_capture",
     a_stream_that_was_not_joined_spoils_the_capture},
    {"what_cannot_be_captured_is_refused", what_cannot_be_captured_is_refused},
    {"a_capture_tells_about_itself", a_capture_tells_about_itself},
    {"host_functions_run_at_each_launch", host_functions_run_at_each_launch},
    {"a_graph_keeps_the_programs_objects_alive", a_graph_keeps_the_programs_objects_alive},
};
CHECK_MAIN(TESTS)
