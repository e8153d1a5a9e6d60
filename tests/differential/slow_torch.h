/* SPDX-License-Identifier: MIT */
/**
 * PyTorch's caching allocator written the obvious way: one list of blocks sorted by address, every
 * search a scan. It shares nothing with src/torchsim but the settings.
 */
#ifndef SLOW_TORCH_H
#define SLOW_TORCH_H

#include <allot/torchsim.h>

typedef struct slow_block {
    uint64_t address;
    uint64_t size;
    uint64_t requested;
    uint64_t stream;
    uint64_t segment; /**< Address of its segment or range. */
    uint64_t range;   /**< Bytes of its range, 0 in a classic segment. */
    uint64_t cached_at;
    int pool; /**< 0: default, else private pool + 1. */
    bool large;
    bool mapped;
    bool used;            /**< On another stream, outside of captures. */
    bool used_in_capture; /**< On another stream, in a capture. */
    bool deferred;        /**< Freed while used so, in a capture. */
    enum { SLOW_FREE, SLOW_USED, SLOW_WAITS } state;
} slow_block;

typedef struct slow_torch {
    allot_torch_conf conf;
    uint64_t limit;
    uint64_t allowed; /**< UINT64_MAX: no fraction. */
    slow_block *blocks;
    uint64_t count;
    uint64_t capacity;
    uint64_t next_address;
    uint64_t held;
    uint64_t searches[8][2]; /**< Per pool and size class. */
    uint64_t *waiting;       /**< Addresses of blocks that wait for a stream, oldest first. */
    uint64_t waiting_count;
    uint64_t retry_count;
    uint32_t graphs; /**< Bit n: private pool n is a graph's. */
    uint32_t whole;  /**< Bit n: private pool n never splits. */
    uint32_t offers; /**< Bit n: private pool n serves the default pool when the driver refuses. */
    int captures;    /**< Captures underway. */
    allot_torch_event *events;
    uint64_t event_count;
    uint64_t event_capacity;
} slow_torch;

void slow_init(slow_torch *slow, const allot_torch_conf *conf, uint64_t limit, double fraction);
void slow_fini(slow_torch *slow);

/** Address of the block; 0 for an out-of-memory. */
uint64_t slow_alloc(slow_torch *slow, uint64_t size, uint64_t stream, int pool);
/** A use on another stream. */
void slow_use(slow_torch *slow, uint64_t address);
void slow_free(slow_torch *slow, uint64_t address);
/** A capture into a graph's pool begins or ends. */
void slow_begin(slow_torch *slow);
void slow_end(slow_torch *slow, int pool);
void slow_empty(slow_torch *slow);

#endif /* SLOW_TORCH_H */
