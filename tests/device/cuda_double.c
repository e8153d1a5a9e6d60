/* SPDX-License-Identifier: MIT */
/*
 * A libcuda.so.1 that does nothing, made in several forms by definitions: DOUBLE_VERSION,
 * DOUBLE_COUNT, DOUBLE_INIT, and functions renamed away. This file answers what the backend asks
 * when it looks for a driver; the rest is cuda_double_rest.c.
 */
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    return DOUBLE_INIT;
}

EXPORT int cuDriverGetVersion(int *version)
{
    *version = DOUBLE_VERSION;
    return 0;
}

EXPORT int cuDeviceGetCount(int *count)
{
    *count = DOUBLE_COUNT;
    return 0;
}

EXPORT int cuGetErrorName(int error, const char **name)
{
    *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : NULL;
    return *name == NULL;
}
