/* SPDX-License-Identifier: MIT */
/* A strategy of <allot/space.h>; the configuration is its spelling. */
#include <allot/space.h>
#include <stdlib.h>

#include "peer.h"

static allot_space_strategy chosen;

static void *create(uint64_t capacity)
{
    const allot_space_options options = {.struct_size = sizeof options, .strategy = chosen};
    allot_space *space = NULL;
    return allot_space_create(capacity, &options, &space) == ALLOT_STATUS_OK ? space : NULL;
}

static void destroy(void *self)
{
    allot_space_destroy(self);
}

static uint64_t alloc(void *self, uint64_t size)
{
    allot_range range;
    return allot_space_alloc(self, size, 0, 0, &range) == ALLOT_STATUS_OK ? range.id : PEER_REFUSED;
}

static void release(void *self, uint64_t block)
{
    if (allot_space_free(self, (uint32_t)block) != ALLOT_STATUS_OK) {
        abort();
    }
}

static uint64_t offset(void *self, uint64_t block)
{
    allot_range range;
    return allot_space_get(self, (uint32_t)block, &range) == ALLOT_STATUS_OK ? range.offset
                                                                             : UINT64_MAX;
}

static const peer_ops OPS = {create, destroy, alloc, release, offset, NULL};

const peer_ops *peer_open(const char *config, const char **reason)
{
    if (allot_space_strategy_parse(config, &chosen) != ALLOT_STATUS_OK) {
        *reason = allot_error_detail();
        return NULL;
    }
    return &OPS;
}
