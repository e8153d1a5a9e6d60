/* SPDX-License-Identifier: MIT */
/* A device says what its profile says, in the layouts of CUDA 12 and 13. */
#include <string.h>

#include "support/check.h"
#include "support/standin.h"

static void load(void)
{
    standin_load("gpu:rtx4090,cuda:13");
}

static int int_at(const char *properties, size_t offset)
{
    int value = 0;
    memcpy(&value, properties + offset, sizeof value);
    return value;
}

static uint64_t size_at(const char *properties, size_t offset)
{
    uint64_t value = 0;
    memcpy(&value, properties + offset, sizeof value);
    return value;
}

/* Offsets in the public headers of CUDA 12.4 and 13.0. */
static void properties_have_the_layout_of_each_version(void)
{
    load();
    char twelve[1032 + 8];
    char thirteen[1008 + 8];
    memset(twelve, 0x55, sizeof twelve);
    memset(thirteen, 0x55, sizeof thirteen);
    REQUIRE(cuda.cudaGetDeviceProperties_v2(twelve, 0) == 0);
    REQUIRE(cuda.cudaGetDeviceProperties(thirteen, 0) == 0);
    CHECK_EQ(twelve[1032], 0x55); /* nothing is written behind the structure */
    CHECK_EQ(thirteen[1008], 0x55);
    CHECK_STR(twelve, "NVIDIA GeForce RTX 4090");
    CHECK_STR(thirteen, "NVIDIA GeForce RTX 4090");
    CHECK_EQ(size_at(twelve, 288), UINT64_C(24207) << 20);
    CHECK_EQ(size_at(thirteen, 288), UINT64_C(24207) << 20);
    CHECK_EQ(size_at(twelve, 696), 99 * 1024);
    CHECK_EQ(size_at(thirteen, 672), 99 * 1024);
    CHECK_EQ(int_at(twelve, 360), 8);
    CHECK_EQ(int_at(twelve, 364), 9);
}

static void attributes_are_those_of_the_profile(void)
{
    load();
    static const struct {
        int attribute;
        int value;
    } expected[] = {{16, 128}, {39, 1536}, {75, 8},  {76, 9}, {106, 24}, {10, 32},
                    {102, 1},  {128, 0},   {132, 0}, {18, 0}, {1, 1024}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        int value = -7;
        CHECK_EQ(cuda.cudaDeviceGetAttribute(&value, expected[i].attribute, 0), 0);
        CHECK_EQ(value, expected[i].value);
    }
    int value = 0;
    CHECK_EQ(cuda.cudaDeviceGetAttribute(&value, 16, 1), 101);
    CHECK_EQ(cuda.cudaDeviceGetAttribute(&value, 0, 0), 1);
    cuda.cudaGetLastError();
}

static void a_context_takes_memory_of_the_card(void)
{
    load();
    size_t free_size = 0;
    size_t total = 0;
    CHECK_EQ(cuda.cudaMemGetInfo(&free_size, &total), 0);
    CHECK_EQ(total, UINT64_C(24207) << 20);
    CHECK_EQ(total - free_size, STANDIN_MIB(472));
}

static void errors_have_names_and_texts(void)
{
    load();
    CHECK_STR(cuda.cudaGetErrorName(2), "cudaErrorMemoryAllocation");
    CHECK_STR(cuda.cudaGetErrorString(2), "out of memory");
    CHECK_STR(cuda.cudaGetErrorString(600), "device not ready");
    const char *name = NULL;
    CHECK_EQ(cuda.cuGetErrorName(2, &name), 0);
    CHECK_STR(name, "CUDA_ERROR_OUT_OF_MEMORY");
    CHECK_EQ(cuda.cuGetErrorName(12345, &name), 1);
}

static void entries_are_found_by_name(void)
{
    load();
    void *entry = NULL;
    int result = -1;
    CHECK_EQ(cuda.cuGetProcAddress_v2("cuMemCreate", &entry, 12000, 0, &result), 0);
    CHECK(entry == (void *)(uintptr_t)cuda.cuMemCreate);
    CHECK_EQ(result, 0);
    CHECK_EQ(cuda.cuGetProcAddress_v2("cuMemGetAddressRange", &entry, 12000, 0, &result), 0);
    CHECK(entry == (void *)(uintptr_t)cuda.cuMemGetAddressRange_v2);
    CHECK_EQ(cuda.cuGetProcAddress_v2("cuNoSuchThing", &entry, 12000, 0, &result), 500);
    CHECK(entry == NULL);
    CHECK_EQ(result, 1);
}

static const check_test TESTS[] = {
    {"properties_have_the_layout_of_each_version", properties_have_the_layout_of_each_version},
    {"attributes_are_those_of_the_profile", attributes_are_those_of_the_profile},
    {"a_context_takes_memory_of_the_card", a_context_takes_memory_of_the_card},
    {"errors_have_names_and_texts", errors_have_names_and_texts},
    {"entries_are_found_by_name", entries_are_found_by_name},
};
CHECK_MAIN(TESTS)
