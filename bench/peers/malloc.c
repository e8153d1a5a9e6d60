/* SPDX-License-Identifier: MIT */
/*
 * A library's aligned_alloc() and free(), called directly; the configuration is its file, "" the C
 * library. Blocks are never touched. There is no limit, and what is reserved is address space.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

static struct {
    void *(*aligned_alloc)(size_t align, size_t size);
    void (*free)(void *block);
    uint64_t size_before; /**< Of the process, bytes. */
} library;

/** A line of /proc/self/status, in bytes; 0 if it is not there. */
static uint64_t status_bytes(const char *key)
{
    char line[256];
    uint64_t kib = 0;
    FILE *const file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = strtoull(line + strlen(key), NULL, 10);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib * 1024;
}

static void *create(uint64_t capacity)
{
    (void)capacity;
    library.size_before = status_bytes("VmSize:");
    return &library;
}

static void destroy(void *self)
{
    (void)self;
}

static uint64_t alloc(void *self, uint64_t size)
{
    (void)self;
    void *const block = library.aligned_alloc(PEER_ALIGN, size);
    return block == NULL ? PEER_REFUSED : (uint64_t)(uintptr_t)block;
}

static void release(void *self, uint64_t block)
{
    (void)self;
    library.free((void *)(uintptr_t)block);
}

static uint64_t offset(void *self, uint64_t block)
{
    (void)self;
    return block;
}

/** True of the first allocator of a process: peaks are not forgotten. */
static uint64_t reserved(void *self)
{
    (void)self;
    return status_bytes("VmPeak:") - library.size_before;
}

static const peer_ops OPS = {create, destroy, alloc, release, offset, reserved};

const peer_ops *peer_open(const char *config, const char **reason)
{
    *reason = NULL;
    void *const handle = dlopen(config[0] == '\0' ? "libc.so.6" : config, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        *reason = dlerror();
        return NULL;
    }
    /* ISO C has no conversion from an object pointer to a function pointer. */
    void *const symbols[] = {dlsym(handle, "aligned_alloc"), dlsym(handle, "free")};
    memcpy(&library.aligned_alloc, &symbols[0], sizeof symbols[0]);
    memcpy(&library.free, &symbols[1], sizeof symbols[1]);
    if (symbols[0] == NULL || symbols[1] == NULL) {
        *reason = "it has no aligned_alloc() and free()";
        return NULL;
    }
    return &OPS;
}
