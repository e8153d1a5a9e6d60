/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "support/check.h"
#include "support/standin.h"

#define NVML_FUNCTION_LIST(X)                                                                      \
    X(nvmlInit_v2, (void))                                                                         \
    X(nvmlDeviceGetCount_v2, (unsigned *))                                                         \
    X(nvmlDeviceGetHandleByIndex_v2, (unsigned, void **))                                          \
    X(nvmlDeviceGetHandleByUUID, (const char *, void **))                                          \
    X(nvmlDeviceGetHandleByPciBusId_v2, (const char *, void **))                                   \
    X(nvmlDeviceGetIndex, (void *, unsigned *))                                                    \
    X(nvmlDeviceGetUUID, (void *, char *, unsigned))                                               \
    X(nvmlDeviceGetName, (void *, char *, unsigned))                                               \
    X(nvmlDeviceGetMemoryInfo, (void *, void *))                                                   \
    X(nvmlDeviceGetMemoryInfo_v2, (void *, void *))                                                \
    X(nvmlDeviceGetComputeRunningProcesses_v3, (void *, unsigned *, void *))                       \
    X(nvmlDeviceGetGpuFabricInfoV, (void *, void *))

static struct {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration takes none */
#define MEMBER(name, parameters) int(*name) parameters;
    NVML_FUNCTION_LIST(MEMBER)
#undef MEMBER
} nvml;

static void find(const char *name, void *place)
{
    void *const symbol = standin_symbol("libnvidia-ml.so.1", name);
    CHECK(symbol != NULL);
    memcpy(place, &symbol, sizeof symbol);
}

static void load(void)
{
    standin_load("gpu:rtx4090,devices:2");
#define FIND(name, parameters) find(#name, &nvml.name);
    NVML_FUNCTION_LIST(FIND)
#undef FIND
}

static void devices_are_found_by_number_uuid_and_bus(void)
{
    load();
    unsigned count = 0;
    void *by_number = NULL;
    void *by_uuid = NULL;
    void *by_bus = NULL;
    char uuid[96];
    char name[96];
    CHECK_EQ(nvml.nvmlInit_v2(), 0);
    CHECK_EQ(nvml.nvmlDeviceGetCount_v2(&count), 0);
    CHECK_EQ(count, 2);
    CHECK_EQ(nvml.nvmlDeviceGetHandleByIndex_v2(2, &by_number), 2);
    CHECK_EQ(nvml.nvmlDeviceGetHandleByIndex_v2(1, &by_number), 0);
    CHECK_EQ(nvml.nvmlDeviceGetUUID(by_number, uuid, sizeof uuid), 0);
    CHECK_EQ(nvml.nvmlDeviceGetHandleByUUID(uuid, &by_uuid), 0);
    CHECK(by_uuid == by_number);
    CHECK_EQ(nvml.nvmlDeviceGetHandleByPciBusId_v2("0000:02:00.0", &by_bus), 0);
    CHECK(by_bus == by_number);
    CHECK_EQ(nvml.nvmlDeviceGetHandleByUUID("GPU-0", &by_uuid), 6);
    CHECK_EQ(nvml.nvmlDeviceGetName(by_number, name, sizeof name), 0);
    CHECK_STR(name, "NVIDIA GeForce RTX 4090");
    CHECK_EQ(nvml.nvmlDeviceGetName(by_number, name, 4), 7);
    CHECK_EQ(nvml.nvmlDeviceGetIndex(by_number, &count), 0);
    CHECK_EQ(count, 1);
    CHECK_EQ(nvml.nvmlDeviceGetIndex(NULL, &count), 2);
}

static void memory_is_what_the_stand_in_holds(void)
{
    load();
    void *device = NULL;
    void *memory = NULL;
    struct {
        uint64_t total, free, used;
    } before, after;
    struct {
        unsigned version;
        uint64_t total, reserved, free, used;
    } second = {.version = 0x02000028};
    size_t free_size = 0;
    size_t total = 0;
    CHECK_EQ(nvml.nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
    CHECK_EQ(cuda.cudaMemGetInfo(&free_size, &total), 0);
    CHECK_EQ(nvml.nvmlDeviceGetMemoryInfo(device, &before), 0);
    CHECK_EQ(before.total, total);
    CHECK_EQ(before.free, free_size);
    REQUIRE(cuda.cudaMalloc(&memory, STANDIN_MIB(100)) == 0);
    CHECK_EQ(nvml.nvmlDeviceGetMemoryInfo(device, &after), 0);
    CHECK_EQ(after.used - before.used, STANDIN_MIB(100));
    CHECK_EQ(nvml.nvmlDeviceGetMemoryInfo_v2(device, &second), 0);
    CHECK_EQ(second.used, after.used);
    CHECK_EQ(second.total, total);
    cuda.cudaFree(memory);
}

static void there_are_no_processes_and_no_fabric(void)
{
    load();
    void *device = NULL;
    unsigned count = 7;
    CHECK_EQ(nvml.nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
    CHECK_EQ(nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), 0);
    CHECK_EQ(count, 0);
    struct {
        unsigned version;
        unsigned char uuid[16];
        unsigned status;
        unsigned clique;
        unsigned char state; /* 0: there is none. */
    } fabric = {.status = 7, .state = 3};
    CHECK_EQ(nvml.nvmlDeviceGetGpuFabricInfoV(device, &fabric), 0);
    CHECK_EQ(fabric.status, 0);
    CHECK_EQ(fabric.state, 0);
}

static const check_test TESTS[] = {
    {"devices_are_found_by_number_uuid_and_bus", devices_are_found_by_number_uuid_and_bus},
    {"memory_is_what_the_stand_in_holds", memory_is_what_the_stand_in_holds},
    {"there_are_no_processes_and_no_fabric", there_are_no_processes_and_no_fabric},
};
CHECK_MAIN(TESTS)
