/* SPDX-License-Identifier: MIT */
/*
 * A libOpenCL.so.1 with one platform and one device, which knows no answer; see cuda_double.c. With
 * NAME_LENGTH the device can be opened, and has a name of so many characters.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#ifdef NAME_LENGTH
/* NOLINTNEXTLINE(readability-non-const-parameter): the prototype is OpenCL's */
EXPORT int clGetDeviceInfo(void *device, uint32_t what, size_t size, void *out, size_t *needed)
{
    enum { INVALID_VALUE = -30, NAME = 0x102b };
    (void)device;
    (void)needed;
    if (what == NAME) {
        if (size < NAME_LENGTH + 1) {
            return INVALID_VALUE;
        }
        memset(out, 'n', NAME_LENGTH);
        ((char *)out)[NAME_LENGTH] = '\0';
    } else {
        const uint64_t all_bits = UINT32_MAX; /* shared memory of every kind, 4 GiB */
        memcpy(out, &all_bits, sizeof all_bits);
    }
    return 0;
}

EXPORT void *clCreateContext(void)
{
    static char context;
    return &context;
}

EXPORT void *clCreateCommandQueue(void)
{
    static char queue;
    return &queue;
}
#else
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
#endif
