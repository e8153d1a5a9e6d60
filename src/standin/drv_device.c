/* SPDX-License-Identifier: MIT */
/* CUDA driver: devices, contexts, errors, looking up entries by name. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "standin/device.h"
#include "standin/report.h"
#include "standin/runtime.h"

/* A context is its device; these are only addresses that differ. */
static char contexts[STANDIN_DEVICES_MAX];

static int device_of(const void *context)
{
    const char *const at = context;
    return at >= contexts && at < contexts + STANDIN_DEVICES_MAX ? (int)(at - contexts) : -1;
}

static bool is_device(int device)
{
    return device >= 0 && (unsigned)device < standin_settings()->device_count;
}

CUDA_ENTRY(int, cuInit)(unsigned flags)
{
    (void)flags;
    return standin_settings()->device_count == 0 ? CUDA_NO_DEVICE : CUDA_OK;
}

CUDA_ENTRY(int, cuDriverGetVersion)(int *version)
{
    *version = device_cuda_version();
    return CUDA_OK;
}

CUDA_ENTRY(int, cuDeviceGetCount)(int *count)
{
    *count = (int)standin_settings()->device_count;
    return CUDA_OK;
}

CUDA_ENTRY(int, cuDeviceGet)(int *device, int ordinal)
{
    if (!is_device(ordinal)) {
        return CUDA_INVALID_DEVICE;
    }
    *device = ordinal;
    return CUDA_OK;
}

CUDA_ENTRY(int, cuDeviceGetName)(char *name, int size, int device)
{
    if (!is_device(device) || size <= 0) {
        return CUDA_INVALID_DEVICE;
    }
    snprintf(name, (size_t)size, "%s", standin_settings()->gpu.name);
    return CUDA_OK;
}

CUDA_ENTRY(int, cuDeviceGetUuid)(cuda_uuid *id, int device)
{
    if (!is_device(device)) {
        return CUDA_INVALID_DEVICE;
    }
    device_uuid((unsigned)device, id->bytes);
    return CUDA_OK;
}

CUDA_ENTRY(int, cuDeviceGetUuid_v2)(cuda_uuid *id, int device)
{
    return cuDeviceGetUuid(id, device);
}

CUDA_ENTRY(int, cuDeviceTotalMem_v2)(size_t *size, int device)
{
    if (!is_device(device)) {
        return CUDA_INVALID_DEVICE;
    }
    *size = standin_settings()->limit;
    return CUDA_OK;
}

CUDA_ENTRY(int, cuDeviceGetAttribute)(int *value, int attribute, int device)
{
    return cudaDeviceGetAttribute(value, attribute, device);
}

CUDA_ENTRY(int, cuDeviceGetPCIBusId)(char *text, int size, int device)
{
    if (!is_device(device) || size <= 0) {
        return CUDA_INVALID_DEVICE;
    }
    device_bus_id((unsigned)device, text, (size_t)size);
    return CUDA_OK;
}

CUDA_ENTRY(int, cuDeviceCanAccessPeer)(int *can, int device, int peer)
{
    return cudaDeviceCanAccessPeer(can, device, peer);
}

CUDA_ENTRY(int, cuCtxGetCurrent)(void **context)
{
    *context = &contexts[standin_this_thread()->device];
    return CUDA_OK;
}

CUDA_ENTRY(int, cuCtxSetCurrent)(void *context)
{
    const int device = device_of(context);
    if (device >= 0) {
        standin_this_thread()->device = (unsigned)device;
    }
    return CUDA_OK;
}

CUDA_ENTRY(int, cuCtxPushCurrent_v2)(void *context)
{
    standin_thread *const thread = standin_this_thread();
    if (context != NULL && device_of(context) < 0) {
        return CUDA_INVALID_CONTEXT;
    }
    if (thread->pushed_count == STANDIN_PUSHED_MAX) {
        return CUDA_OUT_OF_MEMORY;
    }
    thread->pushed[thread->pushed_count++] = thread->device;
    return cuCtxSetCurrent(context);
}

/* The context that the runtime made current lies at the bottom and stays. */
CUDA_ENTRY(int, cuCtxPopCurrent_v2)(void **context)
{
    standin_thread *const thread = standin_this_thread();
    if (context != NULL) {
        *context = &contexts[thread->device];
    }
    if (thread->pushed_count != 0) {
        thread->device = thread->pushed[--thread->pushed_count];
    }
    return CUDA_OK;
}

CUDA_ENTRY(int, cuCtxGetDevice)(int *device)
{
    *device = (int)standin_this_thread()->device;
    return CUDA_OK;
}

CUDA_ENTRY(int, cuCtxSynchronize)(void)
{
    return cudaDeviceSynchronize();
}

CUDA_ENTRY(int, cuDevicePrimaryCtxRetain)(void **context, int device)
{
    if (!is_device(device)) {
        return CUDA_INVALID_DEVICE;
    }
    standin *const state = standin_open();
    const cuda_status status = memory_ensure_context(state, (uint32_t)device);
    standin_close(state);
    *context = &contexts[device];
    return status;
}

CUDA_ENTRY(int, cuDevicePrimaryCtxRelease_v2)(int device)
{
    return is_device(device) ? CUDA_OK : CUDA_INVALID_DEVICE;
}

CUDA_ENTRY(int, cuDevicePrimaryCtxGetState)(int device, unsigned *flags, int *is_active)
{
    if (!is_device(device)) {
        return CUDA_INVALID_DEVICE;
    }
    standin *const state = standin_open();
    *flags = 0;
    *is_active = state->memory.devices[device].has_context ? 1 : 0;
    standin_close(state);
    return CUDA_OK;
}

CUDA_ENTRY(int, cuStreamGetCtx)(void *stream, void **context)
{
    (void)stream;
    return cuCtxGetCurrent(context);
}

CUDA_ENTRY(int, cuGetErrorString)(int error, const char **text)
{
    switch (error) {
#define CASE(name, value, runtime, driver, words)                                                  \
    case value:                                                                                    \
        *text = words;                                                                             \
        return CUDA_OK;
        CUDA_STATUS_LIST(CASE)
#undef CASE
    default:
        *text = NULL;
        return CUDA_INVALID_VALUE;
    }
}

CUDA_ENTRY(int, cuGetErrorName)(int error, const char **text)
{
    switch (error) {
#define CASE(name, value, runtime, driver, words)                                                  \
    case value:                                                                                    \
        *text = driver;                                                                            \
        return CUDA_OK;
        CUDA_STATUS_LIST(CASE)
#undef CASE
    default:
        *text = NULL;
        return CUDA_INVALID_VALUE;
    }
}

/* NVRTC asks for undocumented tables and must find the function, and the function must fail. A CUDA
 * runtime that is built into a program asks too, and cannot work without them. */
CUDA_ENTRY(int, cuGetExportTable)(const void **table, const cuda_uuid *id)
{
    (void)id;
    report_own_runtime(__builtin_return_address(0));
    *table = NULL;
    return CUDA_NOT_SUPPORTED;
}

/* ---- entries by name ---- */

static void *own_library;

static void find_own_library(void)
{
    Dl_info info;
    if (dladdr(contexts, &info) != 0) {
        own_library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    }
}

void *entry_find(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_own_library);
    /* Programs ask for the plain name and mean the newest form of it. */
    static const char *const endings[] = {"_v3", "_v2", ""};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0] && own_library != NULL; i++) {
        char full[256];
        snprintf(full, sizeof full, "%s%s", name, endings[i]);
        void *const entry = dlsym(own_library, full);
        if (entry != NULL) {
            return entry;
        }
    }
    report_missing(name);
    return NULL;
}

CUDA_ENTRY(int, cuGetProcAddress_v2)
(const char *name, void **entry, int version, uint64_t flags, int *result)
{
    enum { FOUND = 0, NOT_FOUND = 1 };
    (void)version;
    (void)flags;
    *entry = entry_find(name);
    if (result != NULL) {
        *result = *entry == NULL ? NOT_FOUND : FOUND;
    }
    return *entry == NULL ? CUDA_NOT_FOUND : CUDA_OK;
}

CUDA_ENTRY(int, cuGetProcAddress)(const char *name, void **entry, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, entry, version, flags, NULL);
}
