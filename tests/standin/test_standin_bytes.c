/* SPDX-License-Identifier: MIT */
/* Device memory with real bytes behind it, and rules that are kept strictly. */
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/standin.h"

enum { INVALID_VALUE = 1, ILLEGAL_ADDRESS = 700 };

static void load(void)
{
    standin_load("limit:256MiB,bytes:real");
}

static void what_is_written_is_read_back(void)
{
    load();
    void *a = NULL;
    void *b = NULL;
    unsigned char in[1000];
    unsigned char out[1000] = {0};
    for (size_t i = 0; i < sizeof in; i++) {
        in[i] = (unsigned char)(i * 7);
    }
    REQUIRE(cuda.cudaMalloc(&a, sizeof in) == 0);
    REQUIRE(cuda.cudaMalloc(&b, sizeof in) == 0);
    CHECK_EQ(cuda.cudaMemcpy(a, in, sizeof in, 1), 0);
    CHECK_EQ(cuda.cudaMemcpy(b, a, sizeof in, 3), 0);
    CHECK_EQ(cuda.cudaMemset((char *)b + 500, 9, 10), 0);
    CHECK_EQ(cuda.cudaMemcpy(out, b, sizeof out, 2), 0);
    memset(in + 500, 9, 10);
    CHECK(memcmp(in, out, sizeof in) == 0);
    cuda.cudaFree(a);
    cuda.cudaFree(b);
}

static void copies_outside_an_allocation_are_refused(void)
{
    load();
    void *a = NULL;
    void *b = NULL;
    char bytes[64] = {0};
    REQUIRE(cuda.cudaMalloc(&a, 32) == 0);
    REQUIRE(cuda.cudaMalloc(&b, STANDIN_MIB(2)) == 0);
    CHECK_EQ(cuda.cudaMemcpy(a, bytes, 33, 1), INVALID_VALUE);
    CHECK_EQ(cuda.cudaMemcpy((char *)a + 32, bytes, 1, 1), INVALID_VALUE);
    CHECK_EQ(cuda.cudaMemcpy((char *)b + STANDIN_MIB(2) - 1, bytes, 2, 1), INVALID_VALUE);
    cuda.cudaFree(a);
    CHECK_EQ(cuda.cudaMemcpy(a, bytes, 1, 1), INVALID_VALUE);
    cuda.cudaFree(b);
    cuda.cudaGetLastError();
}

static void fresh_memory_does_not_show_old_bytes(void)
{
    load();
    void *a = NULL;
    void *b = NULL;
    char byte = 5;
    REQUIRE(cuda.cudaMalloc(&a, 32) == 0);
    CHECK_EQ(cuda.cudaMemcpy(a, &byte, 1, 1), 0);
    cuda.cudaFree(a);
    REQUIRE(cuda.cudaMalloc(&b, 32) == 0);
    CHECK(a == b);
    CHECK_EQ(cuda.cudaMemcpy(&byte, b, 1, 2), 0);
    CHECK_EQ(byte, 0);
    cuda.cudaFree(b);
}

static void physical_memory_keeps_its_bytes_wherever_it_is_mapped(void)
{
    load();
    const standin_properties properties = {.type = 1, .location = {1, 0}};
    const standin_access access = {.location = {1, 0}, .flags = 3};
    uint64_t address = 0;
    uint64_t handle = 0;
    char byte = 5;
    REQUIRE(cuda.cuMemAddressReserve(&address, STANDIN_MIB(8), 0, 0, 0) == 0);
    REQUIRE(cuda.cuMemCreate(&handle, STANDIN_MIB(4), &properties, 0) == 0);
    CHECK_EQ(cuda.cuMemMap(address, STANDIN_MIB(4), 0, handle, 0), 0);
    void *const first = (void *)(uintptr_t)(address + STANDIN_MIB(2));
    void *const second = (void *)(uintptr_t)(address + STANDIN_MIB(6));
    CHECK_EQ(cuda.cudaMemcpy(first, &byte, 1, 1), ILLEGAL_ADDRESS); /* no access was granted */
    CHECK_EQ(cuda.cuMemSetAccess(address, STANDIN_MIB(4), &access, 1), 0);
    CHECK_EQ(cuda.cudaMemcpy(first, &byte, 1, 1), 0);
    CHECK_EQ(cuda.cudaMemcpy(second, &byte, 1, 1), INVALID_VALUE); /* not mapped */
    CHECK_EQ(cuda.cuMemMap(address + STANDIN_MIB(4), STANDIN_MIB(2), STANDIN_MIB(2), handle, 0),
             INVALID_VALUE); /* "currently must be zero" */
    CHECK_EQ(cuda.cuMemMap(address + STANDIN_MIB(4), STANDIN_MIB(4), 0, handle, 0), 0);
    CHECK_EQ(cuda.cuMemSetAccess(address + STANDIN_MIB(4), STANDIN_MIB(4), &access, 1), 0);
    byte = 0;
    CHECK_EQ(cuda.cudaMemcpy(&byte, second, 1, 2), 0);
    CHECK_EQ(byte, 5);
    CHECK_EQ(cuda.cuMemUnmap(address, STANDIN_MIB(8)), 0);
    CHECK_EQ(cuda.cuMemRelease(handle), 0);
    CHECK_EQ(cuda.cuMemAddressFree(address, STANDIN_MIB(8)), 0);
    cuda.cudaGetLastError();
}

static void a_shared_handle_shows_the_same_bytes(void)
{
    load();
    const standin_properties properties = {.type = 1, .handle_types = 1, .location = {1, 0}};
    const standin_access access = {.location = {1, 0}, .flags = 3};
    const size_t size = STANDIN_MIB(2);
    uint64_t address = 0;
    uint64_t handles[2] = {0};
    int file = -1;
    char byte = 0;
    REQUIRE(cuda.cuMemAddressReserve(&address, 2 * size, 0, 0, 0) == 0);
    REQUIRE(cuda.cuMemCreate(&handles[0], size, &properties, 0) == 0);
    CHECK_EQ(cuda.cuMemExportToShareableHandle(&file, handles[0], 1, 0), 0);
    CHECK_EQ(cuda.cuMemImportFromShareableHandle(&handles[1], (void *)(intptr_t)file, 1), 0);
    close(file);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(cuda.cuMemMap(address + (uint64_t)i * size, size, 0, handles[i], 0), 0);
    }
    CHECK_EQ(cuda.cuMemSetAccess(address, 2 * size, &access, 1), 0);
    CHECK_EQ(cuda.cudaMemset((void *)(uintptr_t)(address + 17), 6, 1), 0);
    CHECK_EQ(cuda.cudaMemcpy(&byte, (void *)(uintptr_t)(address + size + 17), 1, 2), 0);
    CHECK_EQ(byte, 6);
    CHECK_EQ(cuda.cuMemUnmap(address, 2 * size), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(cuda.cuMemRelease(handles[i]), 0);
    }
    CHECK_EQ(cuda.cuMemAddressFree(address, 2 * size), 0);
}

static const check_test TESTS[] = {
    {"what_is_written_is_read_back", what_is_written_is_read_back},
    {"copies_outside_an_allocation_are_refused", copies_outside_an_allocation_are_refused},
    {"fresh_memory_does_not_show_old_bytes", fresh_memory_does_not_show_old_bytes},
    {"a_shared_handle_shows_the_same_bytes", a_shared_handle_shows_the_same_bytes},
    {"physical_memory_keeps_its_bytes_wherever_it_is_mapped",
     physical_memory_keeps_its_bytes_wherever_it_is_mapped},
};
CHECK_MAIN(TESTS)
