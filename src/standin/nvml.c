/* SPDX-License-Identifier: MIT */
/*
 * libnvidia-ml.so.1 beside the stand-in: the devices, their memory, no processes, no fabric. What
 * is unknown answers NOT_SUPPORTED, which programs must handle on real hardware too. Devices and
 * memory are asked of the stand-in itself.
 */
#include <stdio.h>
#include <string.h>

#include "standin/abi.h"
#include "standin/bus_id.h"
#include "standin/config.h"

/* The stand-in's own library. */
bool allot_standin_memory(unsigned device, uint64_t *used, uint64_t *total);
const standin_config *allot_standin_settings(void);
void allot_standin_uuid_text(unsigned device, char *out, size_t size);

enum {
    NVML_OK = 0,
    NVML_INVALID = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_TOO_SMALL = 7,
};

/** A device's handle is its number plus one. */
static void *handle_of(unsigned device)
{
    return (void *)(uintptr_t)(device + 1);
}

/** The device of a handle; false for a wrong one. */
static bool device_of(const void *handle, unsigned *device)
{
    const uintptr_t number = (uintptr_t)handle;
    if (number == 0 || number > allot_standin_settings()->installed_count) {
        return false;
    }
    *device = (unsigned)(number - 1);
    return true;
}

static int give_text(char *out, unsigned size, const char *text)
{
    if (strlen(text) >= size) {
        return NVML_TOO_SMALL;
    }
    memcpy(out, text, strlen(text) + 1);
    return NVML_OK;
}

CUDA_ENTRY(int, nvmlInit_v2)(void)
{
    return NVML_OK;
}

CUDA_ENTRY(int, nvmlInit)(void)
{
    return NVML_OK;
}

CUDA_ENTRY(int, nvmlInitWithFlags)(unsigned flags)
{
    (void)flags;
    return NVML_OK;
}

CUDA_ENTRY(int, nvmlShutdown)(void)
{
    return NVML_OK;
}

CUDA_ENTRY(const char *, nvmlErrorString)(int error)
{
    switch (error) {
    case NVML_OK:
        return "Success";
    case NVML_INVALID:
        return "Invalid Argument";
    case NVML_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_NOT_FOUND:
        return "Not Found";
    case NVML_TOO_SMALL:
        return "Insufficient Size";
    default:
        return "Unknown Error";
    }
}

CUDA_ENTRY(int, nvmlSystemGetDriverVersion)(char *out, unsigned size)
{
    return give_text(out, size, "595.00.00");
}

CUDA_ENTRY(int, nvmlSystemGetNVMLVersion)(char *out, unsigned size)
{
    return give_text(out, size, "13.595.00.00");
}

CUDA_ENTRY(int, nvmlSystemGetCudaDriverVersion_v2)(int *version)
{
    *version = 13020;
    return NVML_OK;
}

CUDA_ENTRY(int, nvmlSystemGetCudaDriverVersion)(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

CUDA_ENTRY(int, nvmlDeviceGetCount_v2)(unsigned *count)
{
    *count = allot_standin_settings()->installed_count;
    return NVML_OK;
}

CUDA_ENTRY(int, nvmlDeviceGetCount)(unsigned *count)
{
    return nvmlDeviceGetCount_v2(count);
}

CUDA_ENTRY(int, nvmlDeviceGetHandleByIndex_v2)(unsigned index, void **handle)
{
    *handle = handle_of(index);
    return index < allot_standin_settings()->installed_count ? NVML_OK : NVML_INVALID;
}

CUDA_ENTRY(int, nvmlDeviceGetHandleByIndex)(unsigned index, void **handle)
{
    return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

CUDA_ENTRY(int, nvmlDeviceGetHandleByUUID)(const char *text, void **handle)
{
    for (unsigned i = 0; i < allot_standin_settings()->installed_count; i++) {
        char own[64];
        allot_standin_uuid_text(i, own, sizeof own);
        if (strcmp(own, text) == 0) {
            *handle = handle_of(i);
            return NVML_OK;
        }
    }
    return NVML_NOT_FOUND;
}

CUDA_ENTRY(int, nvmlDeviceGetHandleByPciBusId_v2)(const char *text, void **handle)
{
    const uint32_t bus = bus_id_parse(text);
    if (bus == 0 || bus > allot_standin_settings()->installed_count) {
        return NVML_NOT_FOUND;
    }
    *handle = handle_of(bus - 1);
    return NVML_OK;
}

CUDA_ENTRY(int, nvmlDeviceGetIndex)(void *handle, unsigned *index)
{
    return device_of(handle, index) ? NVML_OK : NVML_INVALID;
}

CUDA_ENTRY(int, nvmlDeviceGetUUID)(void *handle, char *out, unsigned size)
{
    unsigned device = 0;
    char text[64];
    if (!device_of(handle, &device)) {
        return NVML_INVALID;
    }
    allot_standin_uuid_text(device, text, sizeof text);
    return give_text(out, size, text);
}

CUDA_ENTRY(int, nvmlDeviceGetName)(void *handle, char *out, unsigned size)
{
    unsigned device = 0;
    return device_of(handle, &device) ? give_text(out, size, allot_standin_settings()->gpu.name)
                                      : NVML_INVALID;
}

/** nvmlPciInfo_t */
typedef struct pci_info {
    char bus_id_legacy[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;
    unsigned subsystem_id;
    char bus_id[32];
} pci_info;

CUDA_ENTRY(int, nvmlDeviceGetPciInfo_v3)(void *handle, pci_info *out)
{
    unsigned device = 0;
    if (!device_of(handle, &device)) {
        return NVML_INVALID;
    }
    *out = (pci_info){.bus = device + 1};
    const unsigned char bus = (unsigned char)(device + 1);
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "0000:%02X:00.0", bus);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", bus);
    return NVML_OK;
}

typedef struct memory_info {
    uint64_t total;
    uint64_t free;
    uint64_t used;
} memory_info;

typedef struct memory_info_v2 {
    unsigned version;
    uint64_t total;
    uint64_t reserved;
    uint64_t free;
    uint64_t used;
} memory_info_v2;

CUDA_ENTRY(int, nvmlDeviceGetMemoryInfo)(void *handle, memory_info *out)
{
    unsigned device = 0;
    if (!device_of(handle, &device) || !allot_standin_memory(device, &out->used, &out->total)) {
        return NVML_INVALID;
    }
    out->free = out->total - out->used;
    return NVML_OK;
}

CUDA_ENTRY(int, nvmlDeviceGetMemoryInfo_v2)(void *handle, memory_info_v2 *out)
{
    memory_info info = {0};
    const int status = nvmlDeviceGetMemoryInfo(handle, &info);
    if (status == NVML_OK) {
        out->total = info.total;
        out->reserved = 0;
        out->free = info.free;
        out->used = info.used;
    }
    return status;
}

CUDA_ENTRY(int, nvmlDeviceGetCudaComputeCapability)(void *handle, int *major, int *minor)
{
    unsigned device = 0;
    *major = (int)allot_standin_settings()->gpu.compute_major;
    *minor = (int)allot_standin_settings()->gpu.compute_minor;
    return device_of(handle, &device) ? NVML_OK : NVML_INVALID;
}

static int no_processes(const void *handle, unsigned *count)
{
    unsigned device = 0;
    *count = 0;
    return device_of(handle, &device) ? NVML_OK : NVML_INVALID;
}

CUDA_ENTRY(int, nvmlDeviceGetComputeRunningProcesses)(void *handle, unsigned *count, void *list)
{
    (void)list;
    return no_processes(handle, count);
}

CUDA_ENTRY(int, nvmlDeviceGetComputeRunningProcesses_v2)(void *handle, unsigned *count, void *list)
{
    (void)list;
    return no_processes(handle, count);
}

CUDA_ENTRY(int, nvmlDeviceGetComputeRunningProcesses_v3)(void *handle, unsigned *count, void *list)
{
    (void)list;
    return no_processes(handle, count);
}

CUDA_ENTRY(int, nvmlDeviceGetGraphicsRunningProcesses_v3)
(void *handle, unsigned *count, void *list)
{
    (void)list;
    return no_processes(handle, count);
}

CUDA_ENTRY(int, nvmlDeviceGetUtilizationRates)(void *handle, unsigned *rates)
{
    unsigned device = 0;
    rates[0] = 0; /* kernels */
    rates[1] = 0; /* memory */
    return device_of(handle, &device) ? NVML_OK : NVML_INVALID;
}

CUDA_ENTRY(int, nvmlDeviceGetP2PStatus)(void *device, void *peer, int index, int *status)
{
    (void)device;
    (void)peer;
    (void)index;
    *status = 0;
    return NVML_OK;
}

/** As a driver answers for a card without a fabric: the state says so. PyTorch 2.13 takes a refusal
 * for a fault. Both layouts begin alike up to the state, the second behind a version. */
enum { FABRIC_BYTES = 25, FABRIC_VERSION = 4 };

CUDA_ENTRY(int, nvmlDeviceGetGpuFabricInfo)(void *device, void *info)
{
    (void)device;
    memset(info, 0, FABRIC_BYTES);
    return NVML_OK;
}

CUDA_ENTRY(int, nvmlDeviceGetGpuFabricInfoV)(void *device, void *info)
{
    (void)device;
    memset((char *)info + FABRIC_VERSION, 0, FABRIC_BYTES);
    return NVML_OK;
}

/* What no stand-in has: links, sensors, MIG. */
#define NOT_SUPPORTED(name)                                                                        \
    CUDA_ENTRY(int, name)(void)                                                                    \
    {                                                                                              \
        return NVML_NOT_SUPPORTED;                                                                 \
    }
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
NOT_SUPPORTED(nvmlDeviceGetNvLinkState)
NOT_SUPPORTED(nvmlDeviceGetNvLinkCapability)
NOT_SUPPORTED(nvmlDeviceGetTemperature)
NOT_SUPPORTED(nvmlDeviceGetPowerUsage)
NOT_SUPPORTED(nvmlDeviceGetClockInfo)
NOT_SUPPORTED(nvmlDeviceGetMigMode)
NOT_SUPPORTED(nvmlDeviceGetMaxMigDeviceCount)
NOT_SUPPORTED(nvmlDeviceGetBAR1MemoryInfo)
