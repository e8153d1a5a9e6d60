/* SPDX-License-Identifier: MIT */
/*
 * A libcuda.so.1 that does next to nothing, made in several forms by definitions: DOUBLE_VERSION,
 * DOUBLE_COUNT, DOUBLE_INIT, DOUBLE_BATCH (what batches of copies answer, in the form of
 * CUDA 12.8), and functions renamed away. Addresses are pointers of the host. This file answers
 * what the backend asks when it looks for a driver; the rest is cuda_double_rest.c.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
    return 0;
}

#ifdef DOUBLE_BATCH
EXPORT unsigned double_batches; /* calls so far */

EXPORT int cuMemcpyBatchAsync(const uint64_t *to, const uint64_t *from, const size_t *sizes,
                              size_t count, const void *attributes, const size_t *firsts,
                              size_t attribute_count, size_t *failed, void *stream)
{
    double_batches++;
    if (attributes == NULL || firsts[0] != 0 || attribute_count != 1 || failed == NULL) {
        return 1;
    }
    *failed = 0;
    for (size_t i = 0; i < count && DOUBLE_BATCH == 0; i++) {
        (void)cuMemcpyDtoDAsync_v2(to[i], from[i], sizes[i], stream);
    }
    return DOUBLE_BATCH;
}
#endif
