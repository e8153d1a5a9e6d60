/* SPDX-License-Identifier: MIT */
/*
 * An allocator that is right ("bump": each block lies behind the one before) or wrong, as the
 * configuration says, for the test of the comparison.
 */
#include <stdlib.h>
#include <string.h>

#include "peer.h"

enum { WRONG_FROM = 100 };

static const char *kind = "";
static uint64_t count, end, limit;

static void *create(uint64_t capacity)
{
    count = end = 0;
    limit = capacity;
    return strcmp(kind, "none") == 0 ? NULL : &end;
}

static void destroy(void *self)
{
    (void)self;
}

static uint64_t alloc(void *self, uint64_t size)
{
    (void)self;
    uint64_t block = end;
    if (count++ < WRONG_FROM) {
        end += size;
        return block;
    }
    if (strcmp(kind, "abort") == 0) {
        abort();
    }
    if (strcmp(kind, "refuse") == 0) {
        return PEER_REFUSED;
    }
    block += strcmp(kind, "unaligned") == 0 ? 128 : 0;
    block -= strcmp(kind, "overlap") == 0 ? PEER_ALIGN : 0;
    block = strcmp(kind, "outside") == 0 ? limit : block;
    end += size;
    return block;
}

static void release(void *self, uint64_t block)
{
    (void)self;
    (void)block;
}

static uint64_t offset(void *self, uint64_t block)
{
    (void)self;
    return block;
}

const peer_ops *peer_open(const char *config, const char **reason)
{
    static const peer_ops ops = {create, destroy, alloc, release, offset, NULL};
    kind = config;
    *reason = "it does not want to";
    return strcmp(kind, "unwilling") == 0 ? NULL : &ops;
}
