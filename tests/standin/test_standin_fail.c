/* SPDX-License-Identifier: MIT */
/* The n-th call fails on request: each kind of call, as what was asked for, and once only. */
#include "support/check.h"
#include "support/standin.h"

enum { OUT_OF_MEMORY = 2, ILLEGAL_STATE = 401 };

static void load(void)
{
    standin_load("limit:64MiB,fail:3,error:401");
}

static void the_setting_counts_from_the_start(void)
{
    load();
    void *a = NULL;
    void *b = NULL;
    void *c = NULL;
    CHECK_EQ(cuda.cudaMalloc(&a, 64), 0);
    CHECK_EQ(cuda.cudaMalloc(&b, STANDIN_MIB(2)), 0);
    CHECK_EQ(cuda.cudaMalloc(&c, STANDIN_MIB(2)), ILLEGAL_STATE);
    CHECK_EQ(cuda.cudaMalloc(&c, STANDIN_MIB(2)), 0);
    cuda.cudaFree(a);
    cuda.cudaFree(b);
    cuda.cudaFree(c);
    CHECK_EQ(standin_used(), 0);
    cuda.cudaGetLastError();
}

/** One of everything that can fail; the first status that is not 0. */
static int one_of_each(void)
{
    const standin_properties properties = {.type = 1, .location = {1, 0}};
    const standin_access access = {.location = {1, 0}, .flags = 3};
    void *stream = NULL;
    void *event = NULL;
    void *pinned = NULL;
    void *plain = NULL;
    void *pooled = NULL;
    uint64_t address = 0;
    uint64_t handle = 0;
    bool is_mapped = false;
    int status = cuda.cudaStreamCreateWithFlags(&stream, 1);
    status = status != 0 ? status : cuda.cudaEventCreateWithFlags(&event, 0);
    status = status != 0 ? status : cuda.cudaHostAlloc(&pinned, 64, 0);
    status = status != 0 ? status : cuda.cudaMalloc(&plain, 64);
    status = status != 0 ? status : cuda.cudaMallocAsync(&pooled, 64, stream);
    status = status != 0 ? status : cuda.cudaMemsetAsync(plain, 0, 64, stream);
    status = status != 0 ? status : cuda.cudaMemcpyAsync(plain, pinned, 64, 1, stream);
    status = status != 0 ? status : cuda.cuMemAddressReserve(&address, STANDIN_MIB(2), 0, 0, 0);
    status = status != 0 ? status : cuda.cuMemCreate(&handle, STANDIN_MIB(2), &properties, 0);
    status = status != 0 ? status : cuda.cuMemMap(address, STANDIN_MIB(2), 0, handle, 0);
    is_mapped = status == 0;
    status = status != 0 ? status : cuda.cuMemSetAccess(address, STANDIN_MIB(2), &access, 1);
    cuda.allot_standin_fail(0, 0);
    if (is_mapped) {
        CHECK_EQ(cuda.cuMemUnmap(address, STANDIN_MIB(2)), 0);
    }
    if (handle != 0) {
        CHECK_EQ(cuda.cuMemRelease(handle), 0);
    }
    if (address != 0) {
        CHECK_EQ(cuda.cuMemAddressFree(address, STANDIN_MIB(2)), 0);
    }
    if (pooled != NULL) {
        CHECK_EQ(cuda.cudaFreeAsync(pooled, stream), 0);
    }
    cuda.cudaFree(plain);
    cuda.cudaFreeHost(pinned);
    if (event != NULL) {
        cuda.cudaEventDestroy(event);
    }
    if (stream != NULL) {
        cuda.cudaStreamDestroy(stream);
    }
    cuda.cudaDeviceSynchronize();
    return status;
}

static void every_call_can_be_made_to_fail_and_leaves_nothing(void)
{
    load();
    enum { FEWEST = 11 };
    const size_t before = standin_used();
    uint64_t n = 1;
    for (;; n++) {
        cuda.allot_standin_fail(n, OUT_OF_MEMORY);
        const int status = one_of_each();
        CHECK_EQ(standin_used(), before);
        if (status == 0) {
            break;
        }
        CHECK_EQ(status, OUT_OF_MEMORY);
    }
    CHECK(n > FEWEST);
    cuda.cudaGetLastError();
}

static const check_test TESTS[] = {
    {"the_setting_counts_from_the_start", the_setting_counts_from_the_start},
    {"every_call_can_be_made_to_fail_and_leaves_nothing",
     every_call_can_be_made_to_fail_and_leaves_nothing},
};
CHECK_MAIN(TESTS)
