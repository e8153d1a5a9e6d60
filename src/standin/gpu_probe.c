/* SPDX-License-Identifier: MIT */
/*
 * Asks a driver what one of its GPUs is: libcuda and NVML, loaded at run time. Declarations are our
 * own, so that nothing of NVIDIA's is needed to build this.
 *
 * What a context takes cannot be asked, so it is measured: used memory before one exists and after.
 * CUDA's own answer needs a context already, therefore NVML is asked. Where it does not answer
 * (some virtual machines), all that is used once the context is there stands in: an upper bound.
 */
#include <allot/gpu.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/library.h"
#include "core/status.h"
#include "standin/gpu_attributes.h"

/** X(required, name, parameters): functions of the driver; all return 0 for success. */
#define DRIVER_LIST(X)                                                                             \
    X(true, cuInit, (unsigned))                                                                    \
    X(true, cuDriverGetVersion, (int *))                                                           \
    X(true, cuDeviceGetCount, (int *))                                                             \
    X(true, cuDeviceGet, (int *, int))                                                             \
    X(true, cuDeviceGetName, (char *, int, int))                                                   \
    X(true, cuDeviceTotalMem_v2, (size_t *, int))                                                  \
    X(true, cuDeviceGetAttribute, (int *, int, int))                                               \
    X(true, cuDeviceGetPCIBusId, (char *, int, int))                                               \
    X(true, cuDevicePrimaryCtxRetain, (void **, int))                                              \
    X(true, cuDevicePrimaryCtxRelease_v2, (int))                                                   \
    X(true, cuCtxPushCurrent_v2, (void *))                                                         \
    X(true, cuCtxPopCurrent_v2, (void **))                                                         \
    X(true, cuMemGetInfo_v2, (size_t *, size_t *))                                                 \
    X(true, cuGetErrorName, (int, const char **))

/** nvmlMemory_t */
typedef struct nvml_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvml_memory;

#define NVML_LIST(X)                                                                               \
    X(true, nvmlInit_v2, (void))                                                                   \
    X(true, nvmlShutdown, (void))                                                                  \
    X(true, nvmlDeviceGetHandleByPciBusId_v2, (const char *, void **))                             \
    X(true, nvmlDeviceGetMemoryInfo, (void *, nvml_memory *))

typedef struct driver {
    /* NOLINTNEXTLINE(bugprone-macro-parentheses): declarations */
#define MEMBER(required, name, parameters) int(*name) parameters;
    DRIVER_LIST(MEMBER)
    NVML_LIST(MEMBER)
#undef MEMBER
    bool has_nvml;
} driver;

static allot_status load(driver *out)
{
#define SYMBOL(required, name, parameters) {#name, &out->name, required},
    const alloti_symbol cuda[] = {DRIVER_LIST(SYMBOL)};
    const alloti_symbol nvml[] = {NVML_LIST(SYMBOL)};
#undef SYMBOL
    void *const library = alloti_library_open("libcuda.so.1", NULL);
    if (library == NULL) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED,
                           "there is no NVIDIA driver here (libcuda.so.1 cannot be loaded); run "
                           "this on a machine with the GPU, in a container with docker --gpus all");
    }
    out->has_nvml = alloti_library_find(alloti_library_open("libnvidia-ml.so.1", NULL), nvml,
                                        sizeof nvml / sizeof nvml[0]) == NULL;
    const char *const missing = alloti_library_find(library, cuda, sizeof cuda / sizeof cuda[0]);
    return missing == NULL ? ALLOT_STATUS_OK
                           : alloti_fail(ALLOT_STATUS_UNSUPPORTED,
                                         "libcuda.so.1 has no %s: the driver is too old", missing);
}

/** A status from what the driver answered to a call. */
static allot_status answer(const driver *cuda, int error, const char *call)
{
    enum { NO_DEVICE = 100 };
    const char *name = NULL;
    if (error == 0) {
        return ALLOT_STATUS_OK;
    }
    (void)cuda->cuGetErrorName(error, &name);
    return alloti_fail(error == NO_DEVICE ? ALLOT_STATUS_NOT_FOUND : ALLOT_STATUS_BACKEND,
                       "%s: %s (%d)", call, name == NULL ? "an unknown error" : name, error);
}

static allot_status find_device(const driver *cuda, unsigned ordinal, int *device)
{
    int count = 0;
    allot_status status = answer(cuda, cuda->cuInit(0), "cuInit");
    if (status == ALLOT_STATUS_OK) {
        status = answer(cuda, cuda->cuDeviceGetCount(&count), "cuDeviceGetCount");
    }
    if (status == ALLOT_STATUS_OK && (count <= 0 || ordinal >= (unsigned)count)) {
        return alloti_fail(ALLOT_STATUS_NOT_FOUND, "no GPU %u: the driver has %d", ordinal, count);
    }
    return status != ALLOT_STATUS_OK
               ? status
               : answer(cuda, cuda->cuDeviceGet(device, (int)ordinal), "cuDeviceGet");
}

/** "NVIDIA GeForce RTX 4090" becomes "nvidia-geforce-rtx-4090". */
static void make_id(const char *name, char *out)
{
    size_t length = 0;
    for (const char *at = name; *at != '\0' && length + 1 < ALLOT_GPU_NAME_MAX; at++) {
        if (isalnum((unsigned char)*at) != 0) {
            out[length++] = (char)tolower((unsigned char)*at);
        } else if (length != 0 && out[length - 1] != '-') {
            out[length++] = '-';
        }
    }
    while (length != 0 && out[length - 1] == '-') {
        length--;
    }
    out[length] = '\0';
}

static void set_source(allot_gpu *gpu, allot_gpu_field field, allot_gpu_source source,
                       const char *remark, int version)
{
    enum { MAJOR = 1000, MINOR = 10 };
    gpu->source[field] = (uint8_t)source;
    snprintf(gpu->reference[field], sizeof gpu->reference[field], "%s, driver for CUDA %d.%d",
             remark, version / MAJOR, version % MAJOR / MINOR);
}

static allot_status ask_values(const driver *cuda, int device, int version, allot_gpu *out)
{
    size_t total = 0;
    allot_status status =
        answer(cuda, cuda->cuDeviceGetName(out->name, sizeof out->name, device), "cuDeviceGetName");
    if (status == ALLOT_STATUS_OK) {
        status = answer(cuda, cuda->cuDeviceTotalMem_v2(&total, device), "cuDeviceTotalMem_v2");
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    make_id(out->name, out->id);
    out->memory_total = total;
    set_source(out, ALLOT_GPU_FIELD_memory_total, ALLOT_GPU_SOURCE_PROBE, "cuDeviceTotalMem",
               version);
#define ASK(number, field)                                                                         \
    if (status == ALLOT_STATUS_OK) {                                                               \
        int value = 0;                                                                             \
        status = answer(cuda, cuda->cuDeviceGetAttribute(&value, number, device),                  \
                        "cuDeviceGetAttribute(" #number ")");                                      \
        out->field = value < 0 ? 0 : (uint64_t)value;                                              \
        set_source(out, ALLOT_GPU_FIELD_##field, ALLOT_GPU_SOURCE_PROBE,                           \
                   "cuDeviceGetAttribute " #number, version);                                      \
    }
    GPU_ATTRIBUTE_LIST(ASK)
#undef ASK
    return status;
}

/** Bytes of a device that are taken, by NVML; false if it does not say. */
static bool ask_used(const driver *nvml, const char *bus_id, uint64_t *out)
{
    void *handle = NULL;
    nvml_memory memory = {0};
    if (!nvml->has_nvml || nvml->nvmlInit_v2() != 0) {
        return false;
    }
    const bool is_known = nvml->nvmlDeviceGetHandleByPciBusId_v2(bus_id, &handle) == 0 &&
                          nvml->nvmlDeviceGetMemoryInfo(handle, &memory) == 0;
    (void)nvml->nvmlShutdown();
    *out = memory.used;
    return is_known;
}

/** All that is taken of the device whose context this is. */
static uint64_t used_beside(const driver *cuda, void *context)
{
    size_t free_size = 0;
    size_t total = 0;
    if (cuda->cuCtxPushCurrent_v2(context) == 0) {
        (void)cuda->cuMemGetInfo_v2(&free_size, &total);
        (void)cuda->cuCtxPopCurrent_v2(&context);
    }
    return total - free_size;
}

static allot_status measure_context(const driver *cuda, int device, int version, allot_gpu *out)
{
    char bus_id[32] = "";
    uint64_t before = 0;
    uint64_t after = 0;
    void *context = NULL;
    (void)cuda->cuDeviceGetPCIBusId(bus_id, sizeof bus_id, device);
    const bool had_nvml = ask_used(cuda, bus_id, &before);
    const allot_status status =
        answer(cuda, cuda->cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const bool is_measured = had_nvml && ask_used(cuda, bus_id, &after) && after >= before;
    out->memory_context = is_measured ? after - before : used_beside(cuda, context);
    out->memory_context_12 = out->memory_context;
    (void)cuda->cuDevicePrimaryCtxRelease_v2(device);
    const allot_gpu_source source = is_measured ? ALLOT_GPU_SOURCE_PROBE : ALLOT_GPU_SOURCE_UNKNOWN;
    const char *const remark = is_measured
                                   ? "measured through NVML, without kernels"
                                   : "all that was taken with a context: NVML did not answer";
    set_source(out, ALLOT_GPU_FIELD_memory_context, source, remark, version);
    set_source(out, ALLOT_GPU_FIELD_memory_context_12, source, remark, version);
    return ALLOT_STATUS_OK;
}

allot_status allot_gpu_probe(unsigned ordinal, allot_gpu *out)
{
    driver cuda = {0};
    allot_gpu gpu = {.struct_size = sizeof gpu};
    int device = 0;
    int version = 0;
    allot_status status = load(&cuda);
    if (status == ALLOT_STATUS_OK) {
        status = find_device(&cuda, ordinal, &device);
    }
    if (status == ALLOT_STATUS_OK) {
        (void)cuda.cuDriverGetVersion(&version);
        status = ask_values(&cuda, device, version, &gpu);
    }
    if (status == ALLOT_STATUS_OK) {
        status = measure_context(&cuda, device, version, &gpu);
    }
    if (status == ALLOT_STATUS_OK) {
        *out = gpu;
    }
    return status;
}
