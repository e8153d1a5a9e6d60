/* SPDX-License-Identifier: MIT */
#include "standin/oracle/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VERSION_MIN = 90800 }; /* the first with device properties that need no device */

static void *find(void *handle, const char *name, const char **missing)
{
    void *const function = dlsym(handle, name);
    if (function == NULL) {
        *missing = name;
    }
    return function;
}

/**
 * cuDNN's libraries are linked with the driver. On a machine without one, the library beside this
 * program stands in its place: whoever asks for it by name gets the one that is loaded.
 */
static void load_driver(void)
{
    static const char DRIVER[] = "/oracle/libcuda.so.1";
    char path[PATH_MAX];
    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL) != NULL) {
        return;
    }
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof DRIVER);
    if (length > 0) {
        path[length] = '\0';
        char *const slash = strrchr(path, '/');
        memcpy(slash, DRIVER, sizeof DRIVER);
        (void)dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
    }
}

void cudnn_library_load(const char *path, cudnn_library *out, char *problem, size_t size)
{
    const char *missing = NULL;
    problem[0] = '\0';
    *out = (cudnn_library){0};
    load_driver();
    void *const handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (handle == NULL) {
        snprintf(problem, size, "it cannot be loaded: %s", dlerror());
        return;
    }
#define CUDNN_LOAD(name, result, parameters)                                                       \
    *(void **)&out->name = find(handle, "cudnn" #name, &missing);
    CUDNN_FUNCTION_LIST(CUDNN_LOAD)
#undef CUDNN_LOAD
    if (missing != NULL) {
        snprintf(problem, size, "it has no %s", missing);
        return;
    }
    out->version = out->GetVersion();
    if (out->version < VERSION_MIN) {
        snprintf(problem, size,
                 "it is version %zu.%zu, and only 9.8 and newer answer without a GPU",
                 out->version / 10000, out->version / 100 % 100);
    }
}
