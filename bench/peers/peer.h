/* SPDX-License-Identifier: MIT */
/**
 * An allocator in a comparison: a shared object that exports peer_open(). It is loaded into a
 * process of its own, so that one that is missing is left out and none gets in another's way.
 */
#ifndef BENCH_PEERS_PEER_H
#define BENCH_PEERS_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What alloc() returns instead of a block. */
#define PEER_REFUSED UINT64_MAX

enum { PEER_ALIGN = 256 };

/** One thread; sizes are multiples of 256 bytes and blocks have to begin at one. */
typedef struct peer_ops {
    /** An empty allocator for `capacity` bytes at a time; NULL if there cannot be one. */
    void *(*create)(uint64_t capacity);
    /** Called when all blocks are freed. */
    void (*destroy)(void *self);
    /** A block: any number that free() and offset() know it by, or PEER_REFUSED. */
    uint64_t (*alloc)(void *self, uint64_t size);
    void (*free)(void *self, uint64_t block);
    /** First byte of a block. */
    uint64_t (*offset)(void *self, uint64_t block);
    /** The most bytes held from the source of memory since create(). NULL: all is in the region
     * [0, capacity), of which blocks take what lies below the end of the highest. */
    uint64_t (*reserved)(void *self);
} peer_ops;

/**
 * @param[in]  config  Which of several allocators, or how it is set; "" for none.
 * @param[out] reason  Why it cannot take part, where NULL is returned.
 */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const peer_ops *
peer_open(const char *config, const char **reason);

#ifdef __cplusplus
}
#endif

#endif /* BENCH_PEERS_PEER_H */
