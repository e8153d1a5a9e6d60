/* SPDX-License-Identifier: MIT */
/* CUDA runtime: devices, their properties, errors. */
#include <stdio.h>
#include <string.h>

#include "standin/device.h"
#include "standin/runtime.h"

static bool is_device(int device)
{
    return device >= 0 && (unsigned)device < standin_settings()->device_count;
}

CUDA_ENTRY(int, cudaGetDeviceCount)(int *count)
{
    *count = (int)standin_settings()->device_count;
    return standin_result(*count == 0 ? CUDA_NO_DEVICE : CUDA_OK);
}

CUDA_ENTRY(int, cudaGetDevice)(int *device)
{
    if (standin_settings()->device_count == 0) {
        return standin_result(CUDA_NO_DEVICE);
    }
    *device = (int)standin_this_thread()->device;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaSetDevice)(int device)
{
    if (!is_device(device)) {
        return standin_result(CUDA_INVALID_DEVICE);
    }
    standin_this_thread()->device = (unsigned)device;
    standin *const state = standin_open();
    const cuda_status status = device_cuda_major() >= 12
                                   ? memory_ensure_context(state, (uint32_t)device)
                                   : CUDA_OK; /* from version 12 on, setting a device opens it */
    standin_close(state);
    return standin_result(status);
}

CUDA_ENTRY(int, cudaInitDevice)(int device, unsigned device_flags, unsigned flags)
{
    (void)device_flags;
    (void)flags;
    return standin_result(is_device(device) ? CUDA_OK : CUDA_INVALID_DEVICE);
}

CUDA_ENTRY(int, cudaDeviceReset)(void)
{
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaDriverGetVersion)(int *version)
{
    *version = device_cuda_version();
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaRuntimeGetVersion)(int *version)
{
    *version = device_cuda_version();
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGetDeviceProperties)(void *properties, int device)
{
    if (!is_device(device)) {
        return standin_result(CUDA_INVALID_DEVICE);
    }
    device_properties(standin_settings(), (unsigned)device, 13, properties);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGetDeviceProperties_v2)(void *properties, int device)
{
    if (!is_device(device)) {
        return standin_result(CUDA_INVALID_DEVICE);
    }
    device_properties(standin_settings(), (unsigned)device, 12, properties);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaDeviceGetAttribute)(int *value, int attribute, int device)
{
    if (!is_device(device)) {
        return standin_result(CUDA_INVALID_DEVICE);
    }
    if (!device_attribute(standin_settings(), attribute, (unsigned)device, value)) {
        return standin_result(CUDA_INVALID_VALUE);
    }
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaDeviceGetPCIBusId)(char *text, int size, int device)
{
    if (!is_device(device) || size <= 0) {
        return standin_result(CUDA_INVALID_DEVICE);
    }
    device_bus_id((unsigned)device, text, (size_t)size);
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaDeviceGetByPCIBusId)(int *device, const char *text)
{
    const int found = device_of_bus_id(text);
    if (found < 0) {
        return standin_result(CUDA_INVALID_DEVICE);
    }
    *device = found;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaDeviceGetLimit)(size_t *value, int limit)
{
    /* In the order of cudaLimit: stack, printf buffer, heap, then deprecated ones. */
    static const size_t values[] = {1024, 7340032, 8388608};
    *value = limit >= 0 && limit < 3 ? values[limit] : 0;
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaDeviceCanAccessPeer)(int *can, int device, int peer)
{
    if (!is_device(device) || !is_device(peer)) {
        return standin_result(CUDA_INVALID_DEVICE);
    }
    *can = device != peer ? 1 : 0;
    return CUDA_OK;
}

/** Set or clear the mark that the current device may access a peer's memory. */
static cuda_status change_peer(int peer, bool is_enabled)
{
    if (!is_device(peer) || (unsigned)peer == standin_this_thread()->device) {
        return CUDA_INVALID_DEVICE;
    }
    standin *const state = standin_open();
    uint64_t *const peers = &state->memory.devices[standin_this_thread()->device].peers;
    const uint64_t bit = UINT64_C(1) << peer;
    cuda_status status = CUDA_OK;
    if (((*peers & bit) != 0) == is_enabled) {
        status = is_enabled ? CUDA_PEER_ALREADY_ENABLED : CUDA_PEER_NOT_ENABLED;
    }
    *peers = is_enabled ? *peers | bit : *peers & ~bit;
    standin_close(state);
    return status;
}

CUDA_ENTRY(int, cudaDeviceEnablePeerAccess)(int peer, unsigned flags)
{
    (void)flags;
    return standin_result(change_peer(peer, true));
}

CUDA_ENTRY(int, cudaDeviceDisablePeerAccess)(int peer)
{
    return standin_result(change_peer(peer, false));
}

CUDA_ENTRY(const char *, cudaGetErrorString)(int error)
{
    switch (error) {
#define CASE(name, value, runtime, driver, text)                                                   \
    case value:                                                                                    \
        return text;
        CUDA_STATUS_LIST(CASE)
#undef CASE
    default:
        return "unrecognized error code";
    }
}

CUDA_ENTRY(const char *, cudaGetErrorName)(int error)
{
    switch (error) {
#define CASE(name, value, runtime, driver, text)                                                   \
    case value:                                                                                    \
        return runtime;
        CUDA_STATUS_LIST(CASE)
#undef CASE
    default:
        return "unrecognized error code";
    }
}

CUDA_ENTRY(int, cudaGetLastError)(void)
{
    const cuda_status status = standin_this_thread()->last_error;
    standin_this_thread()->last_error = CUDA_OK;
    return status;
}

CUDA_ENTRY(int, cudaPeekAtLastError)(void)
{
    return standin_this_thread()->last_error;
}

CUDA_ENTRY(int, cudaProfilerStart)(void)
{
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaProfilerStop)(void)
{
    return CUDA_OK;
}

CUDA_ENTRY(int, cudaGetExportTable)(const void **table, const cuda_uuid *id)
{
    (void)id;
    *table = NULL;
    return standin_result(CUDA_NOT_SUPPORTED);
}
