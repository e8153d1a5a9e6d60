/* SPDX-License-Identifier: MIT */
/**
 * What is behind an allot_heap.
 *
 *     pool ---< arena >--- stream         an arena is what a pool holds for one stream
 *                 |
 *              segment --- space          memory of the device, and what of it is used
 *                 |
 *               block                     a used range of a segment
 *
 * A block belongs to the arena that it was asked for in; its segment may belong to another one of
 * the same pool (rungs SHARE and WAIT). What is free in a segment may be used at once by work on
 * the stream of the segment's arena. So a block that is freed goes back at once if all its streams
 * are that one; else it is *pending*: an event was recorded on each other stream that used it, and
 * it goes back when all of them were reached.
 *
 * Locks. `mutex` (rank 1) guards everything but what is named here: `front.mutex` of an arena
 * (rank 2) guards its front cache, and the blocks in it; the shards of the address map (rank 3)
 * have one lock each. Words of blocks are atomic. Callbacks are called with no lock
 * held.
 *
 * Who holds what of a block: its word says whether it is live, moving, pinned. Whoever clears LIVE
 * in the word (a free) owns the block until it is in a front cache, pending, or given back. Whoever
 * sets MOVING, which needs the mutex, may change what is noted of the block, and its place where it
 * had no pins; a pin and a free wait for the mutex then.
 *
 * Invariants, tested by allot_heap_check(): used ranges of spaces and blocks are the same; sums of
 * segments, arenas, pools and meters agree; a pending block has as many entries in queues of
 * streams as it waits for; mapped granules have memory, and every used range is mapped.
 */
#ifndef ALLOTI_HEAP_HEAP_H
#define ALLOTI_HEAP_HEAP_H

#include <allot/heap.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/fork.h"
#include "core/status.h"
#include "core/tree.h"
#include "heap/address_map.h"
#include "heap/meter.h"

/* ---- blocks ---- */

/** Bits of a block's word. Above them the number of pins, above that the generation. */
enum {
    BLOCK_LIVE = 1,       /**< Handed out. */
    BLOCK_MOVING = 2,     /**< The heap is changing its place. */
    BLOCK_DROPPED = 4,    /**< Temporary or cached, and its memory was taken. */
    BLOCK_FIXED = 8,      /**< A pointer. */
    BLOCK_DROPPABLE = 16, /**< Temporary or cached. */
    BLOCK_PIN_SHIFT = 8,
    BLOCK_GENERATION_SHIFT = 32,
};

#define BLOCK_PIN_ONE (UINT64_C(1) << BLOCK_PIN_SHIFT)
#define BLOCK_PINS_MAX ((UINT64_C(1) << (BLOCK_GENERATION_SHIFT - BLOCK_PIN_SHIFT)) - 1)

/** What is atomic stands first and last; between is what its owner alone changes. Blocks of
 * different threads lie side by side: none shares a cache line with another. */
typedef struct heap_block {
    _Alignas(64) _Atomic uint64_t word;
    uint64_t address; /**< What the caller sees: behind the red zone of a debug heap. */
    uint64_t size;    /**< Of its range. */
    uint64_t requested;
    uint64_t align;
    uint32_t segment;
    uint32_t range;   /**< In the segment's space. */
    uint32_t arena;   /**< That it was asked for in. */
    uint32_t next;    /**< In the list of places, of a front cache, or of blocks to give back. */
    uint32_t uses;    /**< Other streams that use it: first of a list; ALLOT_NONE: none. */
    uint32_t pending; /**< Events that it still waits for. */
    uint32_t tag;
    uint32_t owner;
    uint32_t flags;
    int32_t priority;
    uint32_t asked_at;        /**< By the clock of its pool's habits. */
    bool is_learned;          /**< What it is learned from is how long it lives. */
    bool is_home;             /**< Its segment is of its own arena. */
    bool is_pending;          /**< Freed, not given back yet. */
    bool is_moved;            /**< Its bytes may be on their way, in the order of its own stream. */
    bool is_unordered;        /**< Its own stream is to be waited for before it is given back. */
    uint64_t line_at;         /**< used_at when it was entered in the line of those to drop. */
    _Atomic uint64_t used_at; /**< heap.ticks when it was last unpinned; relaxed: a hint. */
} heap_block;

enum { BLOCKS_PER_CHUNK = 1024, BLOCK_CHUNKS_MAX = 1 << 16 };

/** Blocks lie in chunks that never move, so that they are reached without a lock. */
typedef struct heap_blocks {
    heap_block
        *_Atomic chunks[BLOCK_CHUNKS_MAX]; /**< Released when filled in, acquired by readers. */
    uint32_t count;                        /**< Places that were ever used. */
    uint32_t unused;                       /**< First of the list; ALLOT_NONE: none. */
    uint32_t generation;                   /**< That places begin with. */
} heap_blocks;

/** Another stream that uses a block. */
typedef struct heap_use {
    uint32_t stream;
    uint32_t next;
} heap_use;

/* ---- streams ---- */

/** A freed block waits for an event of this stream. */
typedef struct heap_wait {
    allot_event event;
    uint32_t block;
} heap_wait;

typedef struct heap_stream {
    allot_stream stream;
    bool is_ended;
    bool has_checkpoint; /**< One is under way: see checkpoint.h. */
    allot_event checkpoint;
    uint64_t epoch;   /**< Checkpoints so far. */
    uint64_t reached; /**< The epoch that the last one reached began. */
    /** Waits in the order of the stream: [head, head + count) of a ring. */
    heap_wait *waits;
    uint64_t waits_capacity; /**< A power of two, or 0. */
    uint64_t waits_head;
    uint64_t waits_count;
    heap_meters meters;
} heap_stream;

/* ---- segments ---- */

typedef struct heap_granule {
    allot_memory memory; /**< 0: nothing is mapped. */
    bool is_fresh;       /**< Mapped for the request that goes on. */
    uint64_t freed_at;   /**< Epoch of the stream in which a block here was last freed. */
} heap_granule;

/** A free granule whose memory was lent to another place. */
typedef struct heap_lent {
    uint32_t segment;
    uint64_t number;
} heap_lent;

typedef struct heap_segment {
    uint64_t address;        /**< Where its space begins; 0: the place is not used. */
    uint64_t size;           /**< Of the space at most; in mode VIRTUAL of the reservation. */
    uint64_t device_address; /**< As the device gave it: before `address` if that was aligned. */
    uint64_t device_size;
    allot_space *space;
    uint32_t *owners; /**< [range] Block of a used range. */
    uint64_t owners_capacity;
    uint32_t arena;
    uint32_t next;          /**< In the list of places that are not used. */
    uint64_t held;          /**< Bytes from the device. */
    uint64_t active;        /**< Bytes of blocks. */
    uint64_t active_count;  /**< Blocks. */
    uint64_t emptied_at;    /**< Epoch of its stream in which the last one went. */
    heap_granule *granules; /**< Mode VIRTUAL: [size / granule of the device] */
    uint32_t owner;         /**< Whose blocks were here; valid if has_owner. */
    bool has_owner;
    bool has_owners; /**< Of several owners. */
} heap_segment;

/* ---- arenas and pools ---- */

enum { FRONT_SLOTS = 64 };

/** Freed blocks of one size each, ready for their stream. */
typedef struct heap_front {
    pthread_mutex_t mutex;
    uint32_t first[FRONT_SLOTS]; /**< ALLOT_NONE: empty. */
    uint64_t size[FRONT_SLOTS];  /**< Of the blocks of the slot; kept when it runs empty. */
    uint64_t bytes;              /**< Of its blocks. */
    uint64_t count;              /**< Its blocks. */
    /** Bytes asked for, modulo 2^64: of blocks when they came, less of blocks when they went. */
    uint64_t requested;
    /** Blocks that were handed out from here so far. */
    uint64_t pop_count;
    uint64_t pop_bytes;
    uint64_t pop_requested;
    uint64_t histogram[64];
} heap_front;

typedef struct heap_arena {
    uint32_t pool;
    uint32_t stream;
    uint32_t meters_stream; /**< Its blocks are counted there, also when its stream has ended. */
    bool is_dead;           /**< Of a destroyed pool: to be used anew. */
    heap_front front;
    /** Its segments by address, and the largest free range of each beside them. [count] */
    uint32_t *segments;
    uint64_t *largest;
    uint64_t segments_capacity;
    uint64_t largest_capacity;
    uint32_t count;
    uint64_t block_count; /**< Handed out, or in the front. */
} heap_arena;

typedef struct heap_habits heap_habits;

typedef struct heap_pool {
    uint32_t generation; /**< Odd: in use. */
    allot_space_strategy strategy;
    uint64_t limit; /**< 0: none. */
    bool is_shared_on_oom;
    uint64_t held;
    uint64_t active;     /**< Bytes of blocks in its segments. */
    heap_habits *habits; /**< What it has learned; NULL: it does not learn. */
    heap_meters meters;
} heap_pool;

enum { ARENAS_MAX = 4096, STREAMS_MAX = 4096, POOLS_MAX = 4096 };

struct heap_recording;

/** Make room for a request of an arena. */
typedef allot_status (*heap_make_room)(allot_heap *heap, uint32_t arena, uint64_t size,
                                       uint64_t align);

struct allot_heap {
    allot_device *device;
    allot_device_info info;
    uint64_t fork_generation;
    allot_heap_options options; /**< Defaults filled in. */
    bool is_virtual;
    uint64_t red_zone; /**< Bytes before and behind each block; 0: none. */

    pthread_mutex_t mutex;
    heap_blocks blocks;
    heap_address_map addresses;

    heap_use *uses;
    uint64_t uses_capacity;
    uint32_t uses_count;
    uint32_t uses_unused;

    /** Grown under the mutex only, read without: an entry is there before the count says so. */
    heap_arena *arenas[ARENAS_MAX];
    _Atomic uint32_t arena_count;
    /** Of each arena, for finding it: pool handle and stream. Acquire and release by arena_count.
     */
    _Atomic uint64_t arena_pools[ARENAS_MAX];
    _Atomic uint64_t arena_streams[ARENAS_MAX];
    heap_stream *streams[STREAMS_MAX];
    uint32_t stream_count;
    heap_pool *pools[POOLS_MAX];
    uint32_t pool_count;

    heap_segment *segments;
    uint64_t segments_capacity;
    uint32_t segment_count;
    uint32_t segment_unused;

    alloti_tree drop_line; /**< Blocks that may be dropped, see drop.h. */
    alloti_tree_node *drop_nodes;
    uint64_t drop_capacity;

    allot_event *events; /**< Made and not in use. */
    uint64_t events_capacity;
    uint64_t event_count;
    uint64_t event_made;  /**< In all, those in use included. */
    allot_memory *spares; /**< Granules that are mapped nowhere: see granules.c. */
    uint64_t spares_capacity;
    uint64_t spare_count;
    heap_lent *lent; /**< Of the commit that goes on: see granules.c. */
    uint64_t lent_capacity;
    uint64_t lent_count;
    uint32_t give_back; /**< Freed blocks that could not be given back yet: first of a list. */

    uint64_t held; /**< Bytes from the device. */
    heap_meters meters;
    _Atomic uint64_t ticks; /**< Counts unpins. */
    uint64_t histogram[64];
    uint64_t retries;
    uint64_t ooms;
    uint64_t syncs;
    uint64_t remapped; /**< Bytes of free granules brought to where they were needed. */
    uint64_t device_allocs;
    uint64_t device_frees;
    bool is_recycled;  /**< Memory went back to the device, or is used at another address. */
    bool is_over_soft; /**< The soft limit was crossed, and the caller told. */
    allot_heap_failure failure;
    struct heap_recording *recording; /**< NULL: none. */
    _Atomic bool is_recording;        /**< Fronts are not used then. Relaxed: a hint. */
    /** Rungs COMPACT and SPILL, set by those areas: make room for a request of an arena.
     * ALLOT_STATUS_OK if something changed, ALLOT_STATUS_FRAGMENTED if not. NULL: none. */
    double compact_cost_max; /**< Of the rung: see compact.h. */
    heap_make_room compact;
    heap_make_room spill;
};

/** Bytes between the begin of a block's range and what its caller sees: the red zone before it. */
static inline uint64_t heap_block_lead(const allot_heap *heap, uint64_t align)
{
    return heap->red_zone == 0 || align <= heap->red_zone ? heap->red_zone : align;
}

/** Says that the heap was made before a fork; ALLOT_STATUS_FORKED. */
ALLOT_NODISCARD allot_status alloti_heap_refuse_fork(void);

/** ALLOT_STATUS_FORKED in the child of a fork. */
ALLOT_NODISCARD static inline allot_status heap_check_fork(const allot_heap *heap)
{
    return heap->fork_generation == alloti_fork_generation_now() ? ALLOT_STATUS_OK
                                                                 : alloti_heap_refuse_fork();
}

/** Lock the heap; ALLOT_STATUS_FORKED, and it is not locked, in the child of a fork. */
ALLOT_NODISCARD allot_status alloti_heap_enter(allot_heap *heap);

static inline allot_status heap_leave(allot_heap *heap, allot_status status)
{
    pthread_mutex_unlock(&heap->mutex);
    return status;
}

#endif /* ALLOTI_HEAP_HEAP_H */
