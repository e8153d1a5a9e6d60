/* SPDX-License-Identifier: MIT */
#include "support/standin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

standin_functions cuda;

void *standin_symbol(const char *library, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", ALLOT_STANDIN_DIR, library);
    void *const handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return dlsym(handle, name);
}

static void find(const char *name, void *place)
{
    void *const symbol = standin_symbol("libcuda.so.1", name);
    if (symbol == NULL) {
        fprintf(stderr, "the stand-in has no %s\n", name);
        exit(1);
    }
    memcpy(place, &symbol, sizeof symbol);
}

void standin_load(const char *settings)
{
    if (cuda.cudaMalloc != NULL) {
        return;
    }
    setenv("ALLOT_STANDIN", settings, 1);
#define STANDIN_FIND(result, name, parameters) find(#name, &cuda.name);
    STANDIN_FUNCTION_LIST(STANDIN_FIND)
#undef STANDIN_FIND
}

size_t standin_used(void)
{
    size_t free_size = 0;
    size_t total = 0;
    cuda.cudaMemGetInfo(&free_size, &total);
    return total - free_size;
}

void *standin_stream(void)
{
    enum { NON_BLOCKING = 1 };
    void *made = NULL;
    CHECK_EQ(cuda.cudaStreamCreateWithFlags(&made, NON_BLOCKING), 0);
    return made;
}

void *standin_event(void)
{
    void *made = NULL;
    CHECK_EQ(cuda.cudaEventCreateWithFlags(&made, 0), 0);
    return made;
}
