/* SPDX-License-Identifier: MIT */
/* Loading the CUDA driver. */
#include "device/cuda_driver.h"

#include <pthread.h>

#include "core/library.h"
#include "device/driver_outcome.h"

/**
 * The oldest driver: that of CUDA 11.0, the first with cuDevicePrimaryCtxRelease_v2. Virtual memory
 * is older, the pool (11.2) and batches of copies (12.8) are not needed.
 */
enum { OLDEST_VERSION = 11000, MAJOR = 1000, MINOR = 10 };

static struct {
    pthread_once_t once;
    driver_outcome outcome;
    cuda_driver driver;
} loaded = {.once = PTHREAD_ONCE_INIT};

static allot_status find_functions(cuda_driver *driver)
{
    enum { REQUIRED = true, OPTIONAL = false };
#define SYMBOL(name, suffix, need, parameters) {#name #suffix, &driver->name, need},
    const alloti_symbol symbols[] = {
        CUDA_FUNCTION_LIST(SYMBOL) //
        {"cuMemcpyBatchAsync_v2", &driver->cuMemcpyBatchAsync, false},
        {"cuMemcpyBatchAsync", &driver->cuMemcpyBatchAsync12, false},
    };
#undef SYMBOL
    const char *reason = NULL;
    void *const library = alloti_library_open("libcuda.so.1", &reason);
    if (library == NULL) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "no NVIDIA driver (%.200s)", reason);
    }
    const char *const missing =
        alloti_library_find(library, symbols, sizeof symbols / sizeof symbols[0]);
    return missing == NULL ? ALLOT_STATUS_OK
                           : alloti_fail(ALLOT_STATUS_UNSUPPORTED,
                                         "libcuda.so.1 has no function %s: it is not the driver of "
                                         "CUDA %d.0 or later",
                                         missing, OLDEST_VERSION / MAJOR);
}

/** The version first: a driver that is too old is not started. */
static allot_status start(cuda_driver *driver)
{
    allot_status status = find_functions(driver);
    if (status == ALLOT_STATUS_OK) {
        status = alloti_cuda_answer(driver, driver->cuDriverGetVersion(&driver->version),
                                    "cuDriverGetVersion");
    }
    if (status == ALLOT_STATUS_OK && driver->version < OLDEST_VERSION) {
        return alloti_fail(
            ALLOT_STATUS_VERSION, "the driver is for CUDA %d.%d; CUDA %d.0 or later is needed",
            driver->version / MAJOR, driver->version % MAJOR / MINOR, OLDEST_VERSION / MAJOR);
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_cuda_answer(driver, driver->cuInit(0), "cuInit");
    }
    if (status == ALLOT_STATUS_OK) {
        status = alloti_cuda_answer(driver, driver->cuDeviceGetCount(&driver->device_count),
                                    "cuDeviceGetCount");
    }
    if (status == ALLOT_STATUS_OK && driver->device_count <= 0) {
        return alloti_fail(ALLOT_STATUS_NOT_FOUND, "the driver has no GPU");
    }
    driver->has_virtual = driver->cuMemGetAllocationGranularity != NULL &&
                          driver->cuMemAddressReserve != NULL && driver->cuMemAddressFree != NULL &&
                          driver->cuMemCreate != NULL && driver->cuMemRelease != NULL &&
                          driver->cuMemMap != NULL && driver->cuMemUnmap != NULL &&
                          driver->cuMemSetAccess != NULL;
    driver->has_async = driver->cuMemAllocAsync != NULL && driver->cuMemFreeAsync != NULL;
    return status;
}

static void load(void)
{
    if (alloti_driver_begin(&loaded.outcome)) {
        alloti_driver_end(&loaded.outcome, start(&loaded.driver));
    }
}

allot_status alloti_cuda_driver(const cuda_driver **out)
{
    pthread_once(&loaded.once, load);
    const allot_status status = alloti_driver_check(&loaded.outcome, "the driver of CUDA");
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    *out = &loaded.driver;
    return ALLOT_STATUS_OK;
}

static allot_status status_of(int error)
{
    switch (error) {
    case CUDA_SUCCESS:
        return ALLOT_STATUS_OK;
    case CUDA_INVALID_VALUE:
    case CUDA_INVALID_HANDLE:
        return ALLOT_STATUS_INVALID;
    case CUDA_OUT_OF_MEMORY:
        return ALLOT_STATUS_DEVICE_MEMORY;
    case CUDA_NO_DEVICE:
    case CUDA_INVALID_DEVICE:
        return ALLOT_STATUS_NOT_FOUND;
    case CUDA_NOT_SUPPORTED:
        return ALLOT_STATUS_UNSUPPORTED;
    default: /* also those that end a context (700, 719 ...) */
        return ALLOT_STATUS_BACKEND;
    }
}

allot_status alloti_cuda_answer(const cuda_driver *driver, int error, const char *call)
{
    const char *name = NULL;
    if (error == CUDA_SUCCESS) {
        return ALLOT_STATUS_OK;
    }
    (void)driver->cuGetErrorName(error, &name);
    return alloti_fail(status_of(error), "%s: %d (%s)", call, error,
                       name == NULL ? "an error without a name" : name);
}
