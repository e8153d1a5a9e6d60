/* SPDX-License-Identifier: MIT */
/* With real bytes, each broken rule is refused and counted, and what is allowed is not. */
#include <string.h>

#include "support/check.h"
#include "support/standin.h"

enum { INVALID_VALUE = 1, INVALID_HANDLE = 400, ILLEGAL_ADDRESS = 700 };
enum { SIZE = 4096, TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3 };

static void load(void)
{
    standin_load("limit:256MiB,bytes:real,devices:2,delay:5");
}

static void *memory(size_t size)
{
    void *made = NULL;
    CHECK_EQ(cuda.cudaMalloc(&made, size), 0);
    return made;
}

/* A call breaks one rule, and is answered with a code. */
#define BREAKS(call, status)                                                                       \
    do {                                                                                           \
        const uint64_t before = cuda.allot_standin_rules_broken();                                 \
        CHECK_EQ(call, status);                                                                    \
        CHECK_EQ(cuda.allot_standin_rules_broken(), before + 1);                                   \
        cuda.cudaGetLastError();                                                                   \
    } while (0)

static uint64_t broken_before;

static void begin(void)
{
    load();
    CHECK_EQ(cuda.cudaSetDevice(0), 0);
    broken_before = cuda.allot_standin_rules_broken();
}

static void nothing_was_broken(void)
{
    CHECK_EQ(cuda.allot_standin_rules_broken(), broken_before);
}

static void copies_and_fills_stay_within_one_allocation(void)
{
    begin();
    char host[2 * SIZE] = {0};
    char *const a = memory(SIZE);
    char *const big = memory(STANDIN_MIB(2));
    char *const next = memory(STANDIN_MIB(2));
    CHECK_EQ(cuda.cudaMemcpy(a, host, SIZE, TO_DEVICE), 0);
    CHECK_EQ(cuda.cudaMemset(a, 0, SIZE), 0);
    nothing_was_broken();
    BREAKS(cuda.cudaMemcpy(a, host, SIZE + 1, TO_DEVICE), INVALID_VALUE);
    BREAKS(cuda.cudaMemcpy(a + SIZE, host, 1, TO_DEVICE), INVALID_VALUE);
    BREAKS(cuda.cudaMemcpy(host, a + 1, SIZE, TO_HOST), INVALID_VALUE);
    BREAKS(cuda.cudaMemset(a + SIZE - 1, 0, 2), INVALID_VALUE);
    BREAKS(cuda.cudaMemset(a, 0, UINT64_MAX - 8), INVALID_VALUE);
    if (next == big + STANDIN_MIB(2)) { /* neighbours are not one */
        BREAKS(cuda.cudaMemset(big, 0, STANDIN_MIB(2) + 1), INVALID_VALUE);
    }
    /* The last row of a rectangle is too long. */
    BREAKS(cuda.cudaMemcpy2DAsync(a, 1024, host, 1024, 1025, 4, TO_DEVICE, NULL), INVALID_VALUE);
    BREAKS(cuda.cudaMemcpy2DAsync(a, 1025, host, 1024, 1024, 4, TO_DEVICE, NULL), INVALID_VALUE);
    cuda.cudaFree(a);
    cuda.cudaFree(big);
    cuda.cudaFree(next);
}

static void copies_do_not_overlap_and_go_where_they_say(void)
{
    begin();
    char host[SIZE] = {0};
    char *const a = memory(SIZE);
    CHECK_EQ(cuda.cudaMemcpy(a + 100, a, 100, ON_DEVICE), 0);
    nothing_was_broken();
    BREAKS(cuda.cudaMemcpy(a + 99, a, 100, ON_DEVICE), INVALID_VALUE);
    BREAKS(cuda.cudaMemcpy(a, host, 10, TO_HOST), INVALID_VALUE);
    BREAKS(cuda.cudaMemcpy(host, a, 10, TO_DEVICE), INVALID_VALUE);
    BREAKS(cuda.cudaMemcpy(host, host + 100, 10, ON_DEVICE), INVALID_VALUE);
    BREAKS(cuda.cuMemcpyHtoDAsync_v2((uintptr_t)host, host + 100, 10, NULL), INVALID_VALUE);
    BREAKS(cuda.cuMemsetD32Async((uintptr_t)a + 2, 1, 1, NULL), INVALID_VALUE);
    BREAKS(cuda.cuMemsetD16Async((uintptr_t)a + 1, 1, 1, NULL), INVALID_VALUE);
    cuda.cudaFree(a);
}

static void pinned_memory_has_an_end(void)
{
    begin();
    char *pinned = NULL;
    char *const a = memory(2 * SIZE);
    CHECK_EQ(cuda.cudaHostAlloc((void **)&pinned, SIZE, 0), 0);
    CHECK_EQ(cuda.cudaMemcpy(a, pinned, SIZE, TO_DEVICE), 0);
    nothing_was_broken();
    BREAKS(cuda.cudaMemcpy(a, pinned + 1, SIZE, TO_DEVICE), INVALID_VALUE);
    cuda.cudaFreeHost(pinned);
    cuda.cudaFree(a);
}

static void freed_memory_is_gone(void)
{
    begin();
    char *const a = memory(STANDIN_MIB(2));
    BREAKS(cuda.cudaFree(a + 64), INVALID_VALUE);
    CHECK_EQ(cuda.cudaFree(a), 0);
    BREAKS(cuda.cudaFree(a), INVALID_VALUE);
    BREAKS(cuda.cudaMemset(a, 0, 1), INVALID_VALUE);
    BREAKS(cuda.cuMemFree_v2((uintptr_t)a), INVALID_VALUE);
    int on_stack = 0;
    BREAKS(cuda.cudaFree(&on_stack), INVALID_VALUE);
    BREAKS(cuda.cudaFreeAsync(&on_stack, NULL), INVALID_VALUE);
    void *const plain = memory(64);
    BREAKS(cuda.cudaFreeAsync(plain, NULL), INVALID_VALUE);
    CHECK_EQ(cuda.cudaFree(plain), 0);
}

static void handles_end_with_what_they_name(void)
{
    begin();
    void *const s = standin_stream();
    void *const e = standin_event();
    const standin_properties properties = {.type = 1, .location = {1, 0}};
    void *pool = NULL;
    void *graph = NULL;
    void *exec = NULL;
    void *out = NULL;
    CHECK_EQ(cuda.cudaMemPoolCreate(&pool, &properties), 0);
    CHECK_EQ(cuda.cudaGraphCreate(&graph, 0), 0);
    CHECK_EQ(cuda.cudaGraphInstantiate(&exec, graph, 0), 0);
    CHECK_EQ(cuda.cudaStreamDestroy(s), 0);
    CHECK_EQ(cuda.cudaEventDestroy(e), 0);
    CHECK_EQ(cuda.cudaMemPoolDestroy(pool), 0);
    CHECK_EQ(cuda.cudaGraphDestroy(graph), 0);
    CHECK_EQ(cuda.cudaGraphExecDestroy(exec), 0);
    void *const other = standin_event(); /* takes the place of the old one */
    nothing_was_broken();
    BREAKS(cuda.cudaStreamSynchronize(s), INVALID_HANDLE);
    BREAKS(cuda.cudaStreamDestroy(s), INVALID_HANDLE);
    BREAKS(cuda.cuEventRecord(other, s), INVALID_HANDLE);
    BREAKS(cuda.cudaEventQuery(e), INVALID_HANDLE);
    BREAKS(cuda.cuEventRecord(e, NULL), INVALID_HANDLE);
    BREAKS(cuda.cudaEventSynchronize(e), INVALID_HANDLE);
    BREAKS(cuda.cudaStreamWaitEvent(NULL, e, 0), INVALID_HANDLE);
    BREAKS(cuda.cudaEventDestroy(e), INVALID_HANDLE);
    BREAKS(cuda.cudaMallocFromPoolAsync(&out, 64, pool, NULL), INVALID_HANDLE);
    BREAKS(cuda.cudaMemPoolDestroy(pool), INVALID_HANDLE);
    BREAKS(cuda.cudaGraphInstantiate(&out, graph, 0), INVALID_HANDLE);
    BREAKS(cuda.cudaGraphDestroy(graph), INVALID_HANDLE);
    BREAKS(cuda.cudaGraphLaunch(exec, NULL), INVALID_HANDLE);
    BREAKS(cuda.cudaGraphExecDestroy(exec), INVALID_HANDLE);
    CHECK_EQ(cuda.cudaEventDestroy(other), 0);
}

static void events_stay_on_their_device(void)
{
    begin();
    void *const first = standin_stream();
    void *const e = standin_event();
    void *const start = standin_event();
    CHECK_EQ(cuda.cudaSetDevice(1), 0);
    void *const second = standin_stream();
    void *const far = standin_event();
    float milliseconds = 0;
    CHECK_EQ(cuda.cudaEventRecord(e, first), 0);
    CHECK_EQ(cuda.cudaStreamWaitEvent(second, e, 0), 0); /* waiting across devices is allowed */
    CHECK_EQ(cuda.cudaEventRecord(far, second), 0);
    CHECK_EQ(cuda.cudaEventSynchronize(far), 0);
    CHECK_EQ(cuda.cudaEventSynchronize(e), 0);
    nothing_was_broken();
    BREAKS(cuda.cudaEventRecord(start, second), INVALID_HANDLE);
    CHECK_EQ(cuda.cudaEventElapsedTime(&milliseconds, e, far), INVALID_HANDLE);
    cuda.cudaGetLastError();
    cuda.cudaStreamDestroy(first);
    cuda.cudaStreamDestroy(second);
    cuda.cudaEventDestroy(e);
    cuda.cudaEventDestroy(far);
    cuda.cudaEventDestroy(start);
}

static void pool_memory_is_used_between_its_allocation_and_its_free(void)
{
    begin();
    void *const a = standin_stream();
    void *const b = standin_stream();
    void *const e = standin_event();
    void *p = NULL;
    CHECK_EQ(cuda.cudaMallocAsync(&p, SIZE, a), 0);
    CHECK_EQ(cuda.cudaMemsetAsync(p, 1, SIZE, a), 0);
    BREAKS(cuda.cudaMemsetAsync(p, 1, SIZE, b), INVALID_VALUE); /* b may run before a */
    BREAKS(cuda.cudaFreeAsync(p, b), INVALID_VALUE);
    CHECK_EQ(cuda.cudaEventRecord(e, a), 0);
    CHECK_EQ(cuda.cudaStreamWaitEvent(b, e, 0), 0);
    CHECK_EQ(cuda.cudaMemsetAsync(p, 2, SIZE, b), 0);
    BREAKS(cuda.cudaFreeAsync(p, a), INVALID_VALUE); /* b may still write */
    CHECK_EQ(cuda.cudaEventRecord(e, b), 0);
    CHECK_EQ(cuda.cudaStreamWaitEvent(a, e, 0), 0);
    CHECK_EQ(cuda.cudaFreeAsync(p, a), 0);
    BREAKS(cuda.cudaMemsetAsync(p, 3, SIZE, a), INVALID_VALUE);
    BREAKS(cuda.cudaFreeAsync(p, a), INVALID_VALUE);
    cuda.cudaStreamDestroy(a);
    cuda.cudaStreamDestroy(b);
    cuda.cudaEventDestroy(e);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
}

static void waiting_on_the_host_orders_pool_memory_too(void)
{
    begin();
    void *const a = standin_stream();
    void *const b = standin_stream();
    void *p = NULL;
    CHECK_EQ(cuda.cuMemAllocAsync((uint64_t *)&p, SIZE, a), 0);
    CHECK_EQ(cuda.cuStreamSynchronize(a), 0);
    CHECK_EQ(cuda.cuMemsetD8Async((uintptr_t)p, 1, SIZE, b), 0);
    CHECK_EQ(cuda.cuStreamSynchronize(b), 0);
    CHECK_EQ(cuda.cuMemFreeAsync((uintptr_t)p, a), 0);
    nothing_was_broken();
    CHECK_EQ(cuda.cudaMallocAsync(&p, SIZE, a), 0);
    CHECK_EQ(cuda.cudaMemsetAsync(p, 1, SIZE, a), 0);
    BREAKS(cuda.cudaFree(p), INVALID_VALUE); /* at once: the host must have waited */
    CHECK_EQ(cuda.cudaStreamSynchronize(a), 0);
    CHECK_EQ(cuda.cudaFree(p), 0);
    cuda.cudaStreamDestroy(a);
    cuda.cudaStreamDestroy(b);
}

static void mappings_need_access_and_end_unused(void)
{
    begin();
    const standin_properties properties = {.type = 1, .location = {1, 0}};
    const standin_access read = {.location = {1, 0}, .flags = 1};
    const standin_access both = {.location = {1, 0}, .flags = 3};
    const size_t size = STANDIN_MIB(2);
    uint64_t address = 0;
    uint64_t handle = 0;
    char byte = 0;
    CHECK_EQ(cuda.cuMemAddressReserve(&address, 2 * size, 0, 0, 0), 0);
    BREAKS(cuda.cudaMemcpy(&byte, (void *)(uintptr_t)address, 1, TO_HOST), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemCreate(&handle, size, &properties, 0), 0);
    CHECK_EQ(cuda.cuMemMap(address, size, 0, handle, 0), 0);
    BREAKS(cuda.cudaMemcpy(&byte, (void *)(uintptr_t)address, 1, TO_HOST), ILLEGAL_ADDRESS);
    CHECK_EQ(cuda.cuMemSetAccess(address, size, &read, 1), 0);
    CHECK_EQ(cuda.cudaMemcpy(&byte, (void *)(uintptr_t)address, 1, TO_HOST), 0);
    BREAKS(cuda.cuMemsetD8Async(address, 1, 1, NULL), ILLEGAL_ADDRESS);
    CHECK_EQ(cuda.cuMemSetAccess(address, size, &both, 1), 0);
    CHECK_EQ(cuda.cuMemsetD8Async(address, 1, 1, NULL), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    BREAKS(cuda.cuMemAddressFree(address, 2 * size), INVALID_VALUE); /* a mapping is left */
    BREAKS(cuda.cuMemUnmap(address, 2 * size), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemRelease(handle), 0); /* the mapping keeps the memory */
    BREAKS(cuda.cuMemRelease(handle), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemsetD8Async(address, 2, 1, NULL), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    CHECK_EQ(cuda.cuMemUnmap(address, size), 0);
    BREAKS(cuda.cuMemUnmap(address, size), INVALID_VALUE);
    BREAKS(cuda.cuMemsetD8Async(address, 1, 1, NULL), INVALID_VALUE);
    CHECK_EQ(cuda.cuMemAddressFree(address, 2 * size), 0);
    BREAKS(cuda.cuMemAddressFree(address, 2 * size), INVALID_VALUE);
}

static void access_is_granted_device_by_device(void)
{
    begin();
    const standin_properties properties = {.type = 1, .location = {1, 0}};
    const standin_access second = {.location = {1, 1}, .flags = 3};
    const size_t size = STANDIN_MIB(2);
    uint64_t address = 0;
    uint64_t handle = 0;
    unsigned long long flags = 9;
    CHECK_EQ(cuda.cuMemAddressReserve(&address, size, 0, 0, 0), 0);
    CHECK_EQ(cuda.cuMemCreate(&handle, size, &properties, 0), 0);
    CHECK_EQ(cuda.cuMemMap(address, size, 0, handle, 0), 0);
    CHECK_EQ(cuda.cuMemSetAccess(address, size, &second, 1), 0);
    CHECK_EQ(cuda.cuMemGetAccess(&flags, &properties.location, address), 0);
    CHECK_EQ(flags, 0);
    CHECK_EQ(cuda.cuMemGetAccess(&flags, &second.location, address), 0);
    CHECK_EQ(flags, 3);
    BREAKS(cuda.cuMemsetD8Async(address, 1, 1, NULL), ILLEGAL_ADDRESS);
    CHECK_EQ(cuda.cudaSetDevice(1), 0);
    CHECK_EQ(cuda.cuMemsetD8Async(address, 1, 1, NULL), 0);
    CHECK_EQ(cuda.cudaDeviceSynchronize(), 0);
    CHECK_EQ(cuda.cuMemUnmap(address, size), 0);
    CHECK_EQ(cuda.cuMemRelease(handle), 0);
    CHECK_EQ(cuda.cuMemAddressFree(address, size), 0);
}

static void a_graph_that_outlives_its_memory_is_refused(void)
{
    begin();
    void *const s = standin_stream();
    void *const a = memory(SIZE);
    void *graph = NULL;
    void *exec = NULL;
    CHECK_EQ(cuda.cudaStreamBeginCapture(s, 0), 0);
    CHECK_EQ(cuda.cudaMemsetAsync(a, 1, SIZE, s), 0);
    CHECK_EQ(cuda.cudaStreamEndCapture(s, &graph), 0);
    CHECK_EQ(cuda.cudaGraphInstantiate(&exec, graph, 0), 0);
    CHECK_EQ(cuda.cudaGraphLaunch(exec, s), 0);
    CHECK_EQ(cuda.cudaFree(a), 0);
    nothing_was_broken();
    BREAKS(cuda.cudaGraphLaunch(exec, s), INVALID_VALUE);
    CHECK_EQ(cuda.cudaGraphExecDestroy(exec), 0);
    CHECK_EQ(cuda.cudaGraphDestroy(graph), 0);
    cuda.cudaStreamDestroy(s);
}

static int status_in_call;

static void calls_cuda(void *s)
{
    status_in_call = cuda.cudaStreamSynchronize(s);
}

static void host_functions_do_not_call_cuda(void)
{
    begin();
    enum { NOT_PERMITTED = 800 };
    void *const s = standin_stream();
    void *const other = standin_stream();
    CHECK_EQ(cuda.cudaMemsetAsync(memory(64), 0, 64, s), 0);
    CHECK_EQ(cuda.cudaLaunchHostFunc(s, calls_cuda, s), 0);
    BREAKS(cuda.cudaStreamSynchronize(s), 0);
    CHECK_EQ(status_in_call, NOT_PERMITTED);
    cuda.cudaStreamDestroy(s);
    cuda.cudaStreamDestroy(other);
}

static void memory_in_use_on_another_device_is_not_freed(void)
{
    begin();
    void *const a = memory(SIZE);
    CHECK_EQ(cuda.cudaSetDevice(1), 0);
    void *const far = standin_stream();
    void *const b = memory(SIZE);
    CHECK_EQ(cuda.cudaMemcpyPeerAsync(b, 1, a, 0, SIZE, far), 0); /* staged: needs no peer access */
    nothing_was_broken();
    CHECK_EQ(cuda.cudaStreamSynchronize(far), 0);
    CHECK_EQ(cuda.cudaFree(a), 0);
    nothing_was_broken();
    cuda.cudaFree(b);
    cuda.cudaStreamDestroy(far);
}

static const check_test TESTS[] = {
    {"copies_and_fills_stay_within_one_allocation", copies_and_fills_stay_within_one_allocation},
    {"copies_do_not_overlap_and_go_where_they_say", copies_do_not_overlap_and_go_where_they_say},
    {"pinned_memory_has_an_end", pinned_memory_has_an_end},
    {"freed_memory_is_gone", freed_memory_is_gone},
    {"handles_end_with_what_they_name", handles_end_with_what_they_name},
    {"events_stay_on_their_device", events_stay_on_their_device},
    {"pool_memory_is_used_between_its_allocation_and_its_free",
     pool_memory_is_used_between_its_allocation_and_its_free},
    {"waiting_on_the_host_orders_pool_memory_too", waiting_on_the_host_orders_pool_memory_too},
    {"mappings_need_access_and_end_unused", mappings_need_access_and_end_unused},
    {"access_is_granted_device_by_device", access_is_granted_device_by_device},
    {"a_graph_that_outlives_its_memory_is_refused", a_graph_that_outlives_its_memory_is_refused},
    {"host_functions_do_not_call_cuda", host_functions_do_not_call_cuda},
    {"memory_in_use_on_another_device_is_not_freed", memory_in_use_on_another_device_is_not_freed},
};
CHECK_MAIN(TESTS)
