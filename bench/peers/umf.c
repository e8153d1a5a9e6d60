/* SPDX-License-Identifier: MIT */
/*
 * A pool of the Unified Memory Framework over its provider of one fixed region, which is reserved
 * and never touched. The configuration: "disjoint" (its defaults) or "disjoint-64m" (blocks up to
 * 64 MiB are kept).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <umf.h>
#include <umf/pools/pool_disjoint.h>
#include <umf/providers/provider_fixed_memory.h>

#include "peer.h"

static size_t poolable; /**< Bytes; 0: the default. */

typedef struct umf {
    void *region;
    uint64_t capacity;
    umf_memory_provider_handle_t provider;
    umf_memory_pool_handle_t pool;
} umf;

static umf_memory_provider_handle_t make_provider(void *region, size_t size)
{
    umf_fixed_memory_provider_params_handle_t params = NULL;
    umf_memory_provider_handle_t provider = NULL;
    if (umfFixedMemoryProviderParamsCreate(region, size, &params) == UMF_RESULT_SUCCESS) {
        if (umfMemoryProviderCreate(umfFixedMemoryProviderOps(), params, &provider) !=
            UMF_RESULT_SUCCESS) {
            provider = NULL;
        }
        umfFixedMemoryProviderParamsDestroy(params);
    }
    return provider;
}

static umf_memory_pool_handle_t make_pool(umf_memory_provider_handle_t provider)
{
    umf_disjoint_pool_params_handle_t params = NULL;
    umf_memory_pool_handle_t pool = NULL;
    if (umfDisjointPoolParamsCreate(&params) == UMF_RESULT_SUCCESS) {
        if (poolable != 0) {
            umfDisjointPoolParamsSetMaxPoolableSize(params, poolable);
        }
        if (umfPoolCreate(umfDisjointPoolOps(), provider, params, 0, &pool) != UMF_RESULT_SUCCESS) {
            pool = NULL;
        }
        umfDisjointPoolParamsDestroy(params);
    }
    return pool;
}

static void destroy(void *self)
{
    umf *const u = self;
    if (u->pool != NULL) {
        umfPoolDestroy(u->pool);
    }
    if (u->provider != NULL) {
        umfMemoryProviderDestroy(u->provider);
    }
    if (u->region != MAP_FAILED) {
        munmap(u->region, u->capacity);
    }
    free(u);
}

static void *create(uint64_t capacity)
{
    umf *const u = calloc(1, sizeof *u);
    if (u == NULL) {
        return NULL;
    }
    u->capacity = capacity;
    u->region = mmap(NULL, capacity, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    u->provider = u->region == MAP_FAILED ? NULL : make_provider(u->region, capacity);
    u->pool = u->provider == NULL ? NULL : make_pool(u->provider);
    if (u->pool == NULL) {
        destroy(u);
        return NULL;
    }
    return u;
}

static uint64_t alloc(void *self, uint64_t size)
{
    void *const block = umfPoolAlignedMalloc(((umf *)self)->pool, size, PEER_ALIGN);
    return block == NULL ? PEER_REFUSED : (uint64_t)(uintptr_t)block;
}

static void release(void *self, uint64_t block)
{
    if (umfPoolFree(((umf *)self)->pool, (void *)(uintptr_t)block) != UMF_RESULT_SUCCESS) {
        abort();
    }
}

static uint64_t offset(void *self, uint64_t block)
{
    return block - (uint64_t)(uintptr_t)((umf *)self)->region;
}

static const peer_ops OPS = {create, destroy, alloc, release, offset, NULL};

const peer_ops *peer_open(const char *config, const char **reason)
{
    poolable = strcmp(config, "disjoint-64m") == 0 ? (size_t)64 << 20 : 0;
    if (poolable == 0 && strcmp(config, "disjoint") != 0) {
        *reason = "no such pool";
        return NULL;
    }
    return &OPS;
}
