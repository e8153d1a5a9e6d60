/* SPDX-License-Identifier: MIT */
/**
 * State of the allocator model, shared by the files of this area.
 *
 * Blocks lie in one array and are named by index; a block keeps its index from allocation to free.
 * The blocks of a segment (or of an expandable range) form a chain by address:
 *
 *     classic      [ allocated | free | pending | allocated | free ]
 *     expandable   [ allocated | free |#### unmapped ####| free |##### unmapped #####]
 *
 * Every free block is in exactly one tree of its list: mapped ones in `cached`, ordered by
 * (stream, size, serial, address), unmapped ones in `unmapped`, ordered by (stream, address). A
 * list is one half (small or large requests) of the default pool or of a private pool.
 *
 * Invariants (alloti_torchsim_check): chains have no gaps; two free neighbours differ in being
 * mapped; statistics are the sums over the blocks; a classic segment is always mapped; unmapped
 * blocks begin and end at pages.
 */
#ifndef ALLOTI_TORCHSIM_SIM_H
#define ALLOTI_TORCHSIM_SIM_H

#include "core/tree.h"
#include "torchsim/pool_set.h"

#include <allot/torchsim.h>

/* Sizes in bytes that PyTorch's source fixes. */
#define SIM_MIN_BLOCK 512ull
#define SIM_SMALL_MAX (1ull << 20)     /**< Largest rounded request for the small list. */
#define SIM_SMALL_SEGMENT (2ull << 20) /**< Segment, and page, of the small list. */
#define SIM_MIN_LARGE (10ull << 20)    /**< Requests from here on get a segment of their own. */
#define SIM_ROUND_LARGE (2ull << 20)
#define SIM_REQUEST_MAX (1ull << 62)

/** Address ranges are reserved as for a device of this size where its size is not known. */
#define SIM_DEVICE_UNKNOWN (1ull << 40)

/** Releases that changed a rule. */
enum {
    SIM_WHOLE_IS_NO_LIMIT = 210, /**< From here on a memory fraction of 1 is no limit at all. */
    SIM_POOLS_OFFER_FIRST =
        211,                   /**< Pools with use_on_oom are asked before anything is released. */
    SIM_ENDS_FREE = 212,       /**< graph_capture_record_stream_reuse frees at a capture's end. */
    SIM_BLOCKS_HAVE_AGE = 212, /**< In this release older blocks win where sizes are equal; */
    SIM_SEGMENTS_HAVE_AGE = 213, /**< from here on those of older segments, then lower addresses. */
};

typedef enum sim_state {
    SIM_DEAD,      /**< Not in use; `next` chains the free indices. */
    SIM_FREE,      /**< In a tree of its list. */
    SIM_TAKEN,     /**< On its way from a tree into use, inside one call. */
    SIM_ALLOCATED, /**< Handed out. */
    SIM_PENDING,   /**< Freed, its events are outstanding. */
    SIM_DEFERRED,  /**< Freed while a capture was underway; events follow after it. */
} sim_state;

/** On which other streams a block was used. */
enum { SIM_USED = 1, SIM_USED_IN_CAPTURE = 2 };

typedef struct sim_block {
    uint64_t address;
    uint64_t size;
    uint64_t requested;
    uint64_t stream;
    uint64_t gc_base; /**< The list's search_count when the block was last cached. */
    uint64_t serial;  /**< Blocks of equal size are taken in this order, see sim_serial_next(). */
    uint32_t prev;    /**< Neighbours in the chain. */
    uint32_t next;
    uint32_t queue_prev; /**< Neighbours in the queue of pending blocks. */
    uint32_t queue_next;
    uint32_t list;
    uint32_t range; /**< Expandable range, ALLOT_NONE in a classic segment. */
    uint8_t state;  /**< sim_state. */
    uint8_t uses;   /**< SIM_USED bits. */
    bool mapped;
} sim_block;

/** One half of a pool. */
typedef struct sim_list {
    alloti_tree cached;
    alloti_tree unmapped;
    uint64_t search_count; /**< Counted only while garbage collection is on. */
} sim_list;

/** Lists 2 * n and 2 * n + 1 belong to pool n; pool 0 is the default one. */
enum { SIM_LARGE = 0, SIM_SMALL = 1 };

typedef struct sim_pool {
    uint64_t number; /**< PyTorch's number of it; 0: not known. */
    uint32_t use_count;
    uint32_t segment_count; /**< Unreleased driver calls, as PyTorch counts them. */
    bool is_gone;
    bool is_begun;
    bool use_on_oom;
    bool no_split;
    bool has_allocator;
    bool is_graph;
} sim_pool;

/** A reserved range of addresses. */
typedef struct sim_range {
    uint64_t address;
    uint64_t size; /**< 0: given back, the index may be used again. */
    uint64_t page;
} sim_range;

/** The built-in driver: an address counter and a limit. */
typedef struct sim_builtin {
    uint64_t next;
    uint64_t used;
    uint64_t limit;
} sim_builtin;

struct allot_torchsim {
    allot_torch_conf conf;
    allot_torch_driver driver;
    bool is_builtin;
    sim_builtin builtin;
    uint64_t limit;   /**< UINT64_MAX: none. */
    uint64_t allowed; /**< Bytes that the fraction allows; UINT64_MAX: no fraction. */
    bool has_fraction;
    uint64_t range_bytes; /**< Bytes to reserve for a range where that is known; else 0. */
    uint32_t version;
    allot_torch_completion completion;
    void (*on_event)(void *context, const allot_torch_event *event);
    void *on_event_context;

    sim_block *blocks; /**< [block_count] */
    alloti_tree_node *nodes;
    uint64_t block_count;
    uint64_t block_capacity;
    uint64_t node_capacity;
    uint32_t block_spare; /**< First of the dead blocks. */
    uint32_t block_spare_count;

    sim_pool *pools; /**< [pool_count] */
    sim_list *lists; /**< [2 * pool_count] */
    uint64_t pool_count;
    uint64_t pool_capacity;
    uint64_t list_capacity;
    sim_pool_set freeable; /**< Pools without uses. */
    sim_pool_set offered;  /**< Pools made with use_on_oom that are in use. */

    sim_range *ranges;
    uint64_t range_count;
    uint64_t range_capacity;
    uint32_t range_spare_count; /**< Ranges that were given back. */

    uint32_t *scratch; /**< Blocks to unmap. */
    uint64_t scratch_capacity;

    uint64_t serial_count; /**< Numbers given to segments, ranges and blocks. */

    uint32_t queue_first; /**< Pending and deferred blocks, oldest first. */
    uint32_t queue_last;
    uint32_t capture_count; /**< Pools that are begun and make a capture. */

    allot_torch_stats stats;
};

/* ---- block.c: blocks, chains, trees ---- */

/** Make room for `count` new blocks, so that alloti_sim_block_new() cannot fail. */
ALLOT_NODISCARD allot_status alloti_sim_reserve_blocks(allot_torchsim *sim, uint64_t count);
uint32_t alloti_sim_block_new(allot_torchsim *sim, const sim_block *content);
void alloti_sim_block_drop(allot_torchsim *sim, uint32_t block);
/** Put `block` between two neighbours (each may be ALLOT_NONE). */
void alloti_sim_block_splice(allot_torchsim *sim, uint32_t block, uint32_t before, uint32_t after);
/** Into the cached (mapped) or unmapped tree of its list; its state becomes SIM_FREE. */
void alloti_sim_block_cache(allot_torchsim *sim, uint32_t block);
/** Out of its tree; its state becomes SIM_TAKEN. */
void alloti_sim_block_take(allot_torchsim *sim, uint32_t block);
/** Merge free neighbours of the same kind into `block`, which is in no tree; returns their bytes.
 */
uint64_t alloti_sim_block_merge(allot_torchsim *sim, uint32_t block);
alloti_tree_host alloti_sim_cached_host(const allot_torchsim *sim);
alloti_tree_host alloti_sim_unmapped_host(const allot_torchsim *sim);
/** First cached block of a list with (stream, size) not below these. */
uint32_t alloti_sim_cached_from(const allot_torchsim *sim, uint32_t list, uint64_t stream,
                                uint64_t size);
uint32_t alloti_sim_unmapped_from(const allot_torchsim *sim, uint32_t list, uint64_t stream);

static inline bool sim_is_split(const sim_block *block)
{
    return block->prev != ALLOT_NONE || block->next != ALLOT_NONE;
}

static inline bool sim_is_small_list(uint32_t list)
{
    return (list & 1) == SIM_SMALL;
}

static inline sim_pool *sim_pool_of(const allot_torchsim *sim, uint32_t list)
{
    return &sim->pools[list / 2];
}

/** The pool of a list as callers know it: private pools from 0, ALLOT_NONE for the default one. */
static inline uint32_t sim_public_pool(uint32_t list)
{
    return list < 2 ? ALLOT_NONE : list / 2 - 1;
}

/** Number of the next segment or range; 0 in releases that know no age. */
static inline uint64_t sim_serial_next(allot_torchsim *sim)
{
    return sim->version < SIM_BLOCKS_HAVE_AGE ? 0 : ++sim->serial_count;
}

/** A block in no chain, no tree and no queue, on its way into use; the caller sets what it covers.
 */
static inline sim_block sim_block_alone(uint32_t list, uint64_t stream, uint32_t range)
{
    return (sim_block){.stream = stream,
                       .prev = ALLOT_NONE,
                       .next = ALLOT_NONE,
                       .queue_prev = ALLOT_NONE,
                       .queue_next = ALLOT_NONE,
                       .list = list,
                       .range = range,
                       .state = SIM_TAKEN,
                       .mapped = true};
}

/* ---- sim.c ---- */
void alloti_sim_gauge_add(allot_torch_gauge *gauge, uint64_t amount);
void alloti_sim_gauge_sub(allot_torch_gauge *gauge, uint64_t amount);
void alloti_sim_emit(const allot_torchsim *sim, const allot_torch_event *event);
void alloti_sim_emit_block(const allot_torchsim *sim, allot_event_kind kind, uint32_t block);
void alloti_sim_emit_segment(const allot_torchsim *sim, allot_event_kind kind,
                             const sim_block *block, uint64_t address, uint64_t size);

/* ---- alloc.c ---- */
/** Bytes of a block for a request, by the settings of this allocator. */
uint64_t alloti_sim_round_size(const allot_torchsim *sim, uint64_t size);
/** Bytes of a classic segment for a request of this rounded size. */
uint64_t alloti_sim_segment_size(const allot_torchsim *sim, uint64_t rounded);

/** One allocation on its way through the stages. */
typedef struct sim_request {
    uint64_t size; /**< Rounded. */
    uint64_t requested;
    uint64_t segment_size;
    uint64_t stream;
    uint32_t list;
    bool is_expandable; /**< A new block would come from an expandable range. */
    bool is_rejected;   /**< By throw_on_cudamalloc_oom. */
    uint32_t block;     /**< Found, in state SIM_TAKEN; ALLOT_NONE before. */
} sim_request;

/* ---- grow.c, expand.c: memory from the driver ---- */

/** A new segment or mapped pages; request->block stays ALLOT_NONE after a refusal. */
ALLOT_NODISCARD allot_status alloti_sim_grow(allot_torchsim *sim, sim_request *request);
ALLOT_NODISCARD allot_status alloti_sim_expand(allot_torchsim *sim, sim_request *request);
/** Give a whole classic segment back. */
void alloti_sim_segment_release(allot_torchsim *sim, uint32_t block);
/** Give the whole pages of a cached block back, and its range if nothing else is left of it. */
void alloti_sim_block_unmap(allot_torchsim *sim, uint32_t block);
/** Bytes of addresses to reserve for a range with these pages. */
uint64_t alloti_sim_range_size(const allot_torchsim *sim, uint64_t page);
/** Index of a new range. */
ALLOT_NODISCARD allot_status alloti_sim_range_new(allot_torchsim *sim, const sim_range *content,
                                                  uint32_t *out);

/* ---- release.c ---- */
void alloti_sim_collect_garbage(allot_torchsim *sim);
/** Free oversize blocks until `request` could be served; true if enough was freed. */
bool alloti_sim_release_available(allot_torchsim *sim, const sim_request *request);
/** @param in_capture Leave the default pool alone. */
ALLOT_NODISCARD allot_status alloti_sim_release_cached(allot_torchsim *sim, bool in_capture);

/* ---- pool.c ---- */
/** Whether directing allocations to a pool counts as a capture. */
bool alloti_sim_makes_capture(const allot_torchsim *sim, const sim_pool *pool);
/** Whether a request to a pool (0: the default one) is made in a capture. */
bool alloti_sim_is_in_capture(const allot_torchsim *sim, uint32_t pool);

/* ---- pending.c ---- */
/** Put a block behind the pending ones. */
void alloti_sim_enqueue(allot_torchsim *sim, uint32_t block);
/** What PyTorch does at the start of an allocation outside of captures. */
void alloti_sim_process_events(allot_torchsim *sim);
/** Wait for every pending block. */
void alloti_sim_synchronize(allot_torchsim *sim);
/** Free the deferred blocks of a pool whose capture ends; its graph orders later uses. */
void alloti_sim_free_deferred(allot_torchsim *sim, uint32_t pool);
/** Wait for the pending blocks of one pool. */
void alloti_sim_synchronize_pool(allot_torchsim *sim, uint32_t pool);

/* ---- driver.c ---- */
void alloti_sim_builtin_init(allot_torchsim *sim);

/* ---- check.c ---- */
/** Every invariant; false with the first violation in the detail text. O(n log n). */
bool alloti_torchsim_check(const allot_torchsim *sim);

/* ---- load.c ---- */

/** One block of a state to load; blocks of a segment follow each other by address. */
typedef struct alloti_torchsim_block {
    uint64_t address;
    uint64_t size;
    uint64_t requested;
    allot_block_state state;
} alloti_torchsim_block;

/** One segment, or one mapped stretch of an expandable range. */
typedef struct alloti_torchsim_segment {
    uint64_t address;
    uint64_t size;
    uint64_t stream;
    uint32_t pool; /**< ALLOT_NONE: default. */
    bool is_large;
    bool is_expandable;
    const alloti_torchsim_block *blocks;
    uint32_t block_count;
    uint32_t block_first; /**< Index of its first block in `names`. */
    uint64_t range_first; /**< Expandable: where its range begins, as far as is known. */
} alloti_torchsim_segment;

/**
 * Fill an empty allocator; `names` gets the name of each block, ALLOT_NONE for free ones. Stretches
 * of the same stream, pool and size class become one range.
 * ALLOT_STATUS_FORMAT if segments overlap or blocks leave gaps.
 */
ALLOT_NODISCARD allot_status alloti_torchsim_load(allot_torchsim *sim,
                                                  const alloti_torchsim_segment *segments,
                                                  uint32_t count, uint32_t *names);

/** Reserve ranges of this many bytes (rounded up to whole pages) instead of what the limit gives.
 */
void alloti_torchsim_set_range_bytes(allot_torchsim *sim, uint64_t bytes);

/** Largest cached block. O(blocks). */
uint64_t alloti_torchsim_largest_free(const allot_torchsim *sim);

/** Whether a request would be served from the cache as it stands; nothing changes. */
bool alloti_torchsim_would_hit(const allot_torchsim *sim, uint64_t size, uint64_t stream,
                               uint32_t pool);

#endif /* ALLOTI_TORCHSIM_SIM_H */
