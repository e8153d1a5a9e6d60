/* SPDX-License-Identifier: MIT */
/*
 * Finding OpenCL and its devices. The outcome is kept with its text; drivers that are installed
 * later are seen by later processes, as the loader reads their list once too.
 */
#include "device/opencl_driver.h"

#include <pthread.h>

#include "core/library.h"
#include "device/driver_outcome.h"

enum { PLATFORMS_MAX = 16 };
static const uint64_t ANY_TYPE = UINT32_MAX;

static struct {
    pthread_once_t once;
    driver_outcome outcome;
    opencl_driver driver;
} loaded = {.once = PTHREAD_ONCE_INIT};

static const char *error_name(int error)
{
    switch (error) {
#define CASE(name, value)                                                                          \
    case value:                                                                                    \
        return #name;
        OPENCL_ERROR_LIST(CASE)
#undef CASE
    default:
        return "an error without a name";
    }
}

static allot_status status_of(int error)
{
    switch (error) {
    case OPENCL_CL_MEM_OBJECT_ALLOCATION_FAILURE:
        return ALLOT_STATUS_DEVICE_MEMORY;
    case OPENCL_CL_OUT_OF_HOST_MEMORY:
        return ALLOT_STATUS_HOST_MEMORY;
    case OPENCL_CL_MEM_COPY_OVERLAP:
    case OPENCL_CL_INVALID_VALUE:
    case OPENCL_CL_INVALID_COMMAND_QUEUE:
    case OPENCL_CL_INVALID_EVENT:
        return ALLOT_STATUS_INVALID;
    case OPENCL_CL_DEVICE_NOT_FOUND:
    case OPENCL_CL_PLATFORM_NOT_FOUND_KHR:
        return ALLOT_STATUS_NOT_FOUND;
    default:
        return ALLOT_STATUS_BACKEND;
    }
}

allot_status alloti_opencl_answer(int error, const char *call)
{
    return error == 0
               ? ALLOT_STATUS_OK
               : alloti_fail(status_of(error), "%s: %d (%s)", call, error, error_name(error));
}

static allot_status find_functions(opencl_driver *driver)
{
#define SYMBOL(result, name, parameters) {#name, &driver->name, true},
    const alloti_symbol symbols[] = {OPENCL_FUNCTION_LIST(SYMBOL)};
#undef SYMBOL
    const char *reason = NULL;
    void *const library = alloti_library_open("libOpenCL.so.1", &reason);
    if (library == NULL) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "no loader of OpenCL (%.200s)", reason);
    }
    const char *const missing =
        alloti_library_find(library, symbols, sizeof symbols / sizeof symbols[0]);
    return missing == NULL
               ? ALLOT_STATUS_OK
               : alloti_fail(ALLOT_STATUS_UNSUPPORTED,
                             "libOpenCL.so.1 has no function %s: it is older than OpenCL 2.0",
                             missing);
}

/** Devices of OpenCL 1.x do not know the question. */
static bool has_svm(const opencl_driver *driver, void *device)
{
    uint64_t svm = 0;
    return driver->clGetDeviceInfo(device, OPENCL_DEVICE_SVM, sizeof svm, &svm, NULL) == 0 &&
           (svm & OPENCL_SVM_COARSE_GRAIN) != 0;
}

static void add_devices(opencl_driver *driver, void *platform)
{
    void *devices[OPENCL_DEVICES_MAX];
    uint32_t count = 0;
    if (driver->clGetDeviceIDs(platform, ANY_TYPE, OPENCL_DEVICES_MAX, devices, &count) != 0) {
        return; /* a platform without a device is an error of OpenCL's, not ours */
    }
    for (uint32_t i = 0; i < count && i < OPENCL_DEVICES_MAX; i++) {
        driver->device_count_all++;
        if (!has_svm(driver, devices[i]) || driver->device_count == OPENCL_DEVICES_MAX) {
            continue;
        }
        if (driver->device_count == 0) {
            (void)driver->clGetPlatformInfo(platform, OPENCL_PLATFORM_NAME, sizeof driver->platform,
                                            driver->platform, NULL);
            driver->platform[sizeof driver->platform - 1] = '\0';
        }
        driver->devices[driver->device_count++] = devices[i];
    }
}

static allot_status find_devices(opencl_driver *driver)
{
    void *platforms[PLATFORMS_MAX];
    uint32_t count = 0;
    const int error = driver->clGetPlatformIDs(PLATFORMS_MAX, platforms, &count);
    if (error == OPENCL_CL_PLATFORM_NOT_FOUND_KHR || (error == 0 && count == 0)) {
        return alloti_fail(ALLOT_STATUS_NOT_FOUND,
                           "no driver for OpenCL is installed (nothing in /etc/OpenCL/vendors)");
    }
    const allot_status status = alloti_opencl_answer(error, "clGetPlatformIDs");
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count && i < PLATFORMS_MAX; i++) {
        add_devices(driver, platforms[i]);
    }
    return status;
}

static allot_status start(opencl_driver *driver)
{
    allot_status status = find_functions(driver);
    if (status == ALLOT_STATUS_OK) {
        status = find_devices(driver);
    }
    if (status == ALLOT_STATUS_OK && driver->device_count_all == 0) {
        return alloti_fail(ALLOT_STATUS_NOT_FOUND, "the drivers for OpenCL have no device");
    }
    if (status == ALLOT_STATUS_OK && driver->device_count == 0) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED,
                           "none of %u devices of OpenCL has shared virtual memory (SVM)",
                           driver->device_count_all);
    }
    return status;
}

static void load(void)
{
    if (alloti_driver_begin(&loaded.outcome)) {
        alloti_driver_end(&loaded.outcome, start(&loaded.driver));
    }
}

allot_status alloti_opencl_driver(const opencl_driver **out)
{
    pthread_once(&loaded.once, load);
    const allot_status status = alloti_driver_check(&loaded.outcome, "OpenCL");
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    *out = &loaded.driver;
    return ALLOT_STATUS_OK;
}
