/* SPDX-License-Identifier: MIT */
/* A libOpenCL.so.1 with one platform and one device, which knows no answer; see cuda_double.c. */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int clGetPlatformIDs(uint32_t capacity, void **platforms, uint32_t *count)
{
    static char platform;
    if (capacity != 0) {
        *platforms = &platform;
    }
    *count = 1;
    return 0;
}

EXPORT int clGetDeviceIDs(void *platform, uint64_t type, uint32_t capacity, void **devices,
                          uint32_t *count)
{
    static char device;
    (void)platform;
    (void)type;
    if (capacity != 0) {
        *devices = &device;
    }
    *count = 1;
    return 0;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the prototype is OpenCL's */
EXPORT int clGetDeviceInfo(void *device, uint32_t what, size_t size, void *out, size_t *needed)
{
    enum { INVALID_VALUE = -30 };
    (void)device;
    (void)what;
    (void)size;
    (void)out;
    (void)needed;
    return INVALID_VALUE;
}
