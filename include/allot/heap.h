/* SPDX-License-Identifier: MIT */
/**
 * @file
 * A heap: blocks of device memory for many streams and threads.
 *
 *     allot_heap -- pools -- arenas, one per stream -- segments -- blocks
 *
 * There are two ways to hold a block. A *handle* may be moved by the heap while it is not pinned;
 * allot_heap_pin() gives its address and keeps it there. A *pointer* stays where it is for life.
 *
 * Frees follow streams: what was freed can be had again at once on its own stream, and elsewhere
 * when the work that was queued by then is done. A request goes to memory of its own stream first.
 * What is tried before a request is refused is a ladder, see ALLOT_RUNG_LIST.
 *
 * A step that fails leaves the heap as it was before.
 *
 * Thread-safe, but for allot_heap_destroy(). After fork() every call in the child returns
 * ALLOT_STATUS_FORKED, and allot_heap_destroy() only frees host memory.
 */
#ifndef ALLOT_HEAP_H
#define ALLOT_HEAP_H

#include <allot/device.h>
#include <allot/space.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct allot_heap allot_heap;

/** A block that may move; 0 is none. A handle that was freed stays invalid for good. */
typedef struct allot_handle {
    uint64_t value;
} allot_handle;

/** A pool of a heap; 0 is the default pool. A pool that was destroyed stays invalid for good. */
typedef struct allot_heap_pool {
    uint64_t value;
} allot_heap_pool;

/** How a heap holds device memory. */
typedef enum allot_heap_mode {
    ALLOT_HEAP_MODE_AUTO = 0,     /**< VIRTUAL where the device can, else SEGMENTS. */
    ALLOT_HEAP_MODE_SEGMENTS = 1, /**< Plain allocations of the device. */
    ALLOT_HEAP_MODE_VIRTUAL = 2,  /**< A range of addresses per arena, filled with granules. */
} allot_heap_mode;

/** What is overwritten with zeros. */
typedef enum allot_heap_scrub {
    ALLOT_HEAP_SCRUB_NEVER = 0,
    /** What a block gets, where another owner may have had it: allot_request.owner. */
    ALLOT_HEAP_SCRUB_REUSE = 1,
    ALLOT_HEAP_SCRUB_FREE = 2, /**< Every block when it is freed, on its stream. */
} allot_heap_scrub;

/** A block that is told of: by leak reports and walks. */
typedef struct allot_block_info {
    allot_handle handle;
    allot_devptr ptr;
    uint64_t size;           /**< Bytes that the block takes. */
    uint64_t size_requested; /**< Bytes asked for. */
    allot_stream stream;
    allot_heap_pool pool;
    uint32_t tag;
    uint32_t owner;
    uint32_t flags;
    int32_t priority;
    uint32_t pin_count; /**< Of a handle. */
    bool is_pending;    /**< Freed; waits for a stream. */
} allot_block_info;

/**
 * The heap is at its limit: free something and return true, or false if there is nothing.
 * Called without any lock: every call of the heap is allowed, but for destroying it.
 *
 * @param[in] needed  Bytes of the request that does not fit; 0 where the soft limit was crossed and
 *                    nothing is in danger yet.
 */
typedef bool (*allot_heap_pressure_fn)(void *context, allot_heap *heap, uint64_t needed);

/** A block that is still there when its heap is destroyed. */
typedef void (*allot_heap_leak_fn)(void *context, const allot_block_info *block);

/** Options of allot_heap_create(). Zero-initialise, then set struct_size. */
typedef struct allot_heap_options {
    size_t struct_size;
    allot_heap_mode mode;
    allot_space_strategy strategy; /**< Of the default pool. */
    /** Sizes and addresses of blocks are multiples of it: a power of two, at most what the device
     * aligns to; 0: 512, or that. */
    uint64_t granule;
    /** Least size of a plain segment, of pools that place adaptively the most for several requests;
     * 0: 64 MiB. */
    uint64_t segment_size;
    uint64_t reserve_size; /**< Addresses per arena in mode VIRTUAL; 0: the device's memory, at most
                            * 1 TiB; more addresses are reserved where these run out. */
    uint64_t limit;        /**< Most bytes held from the device; 0: no limit. */
    double limit_fraction; /**< The same as a part of the device's memory, above 0 to 1; 0: none. */
    /** Up to here the heap grows before it drops, compacts and spills; 0: up to `limit`. */
    uint64_t limit_soft;
    allot_heap_pressure_fn pressure; /**< NULL: none. */
    void *pressure_context;
    allot_heap_leak_fn leak; /**< NULL: none. */
    void *leak_context;
    allot_heap_scrub scrub;
    /** Blocks are filled with 0xCD when allocated and 0xDD when freed, and stand between red zones
     * that are checked when they are freed. */
    bool is_debug;
    /** Bytes of freed blocks that each stream keeps at hand for requests of the same size, without
     * the heap's lock; 0: none. Peaks of statistics count what is kept so as handed out. */
    uint64_t front_size;
} allot_heap_options;

/**
 * Make a heap over a device, which stays the caller's and must outlive it. Nothing is allocated
 * from the device yet.
 *
 * @param[in] options  NULL for the defaults.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for a wrong option; ALLOT_STATUS_UNSUPPORTED for
 * mode VIRTUAL on a device that has none; ALLOT_STATUS_HOST_MEMORY. The caller owns the result and
 * releases it with allot_heap_destroy().
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_create(allot_device *device,
                                                         const allot_heap_options *options,
                                                         allot_heap **out);

/**
 * Release a heap and all its memory; NULL is allowed. Waits for the streams that it knows. Blocks
 * that are still there are told to the `leak` of the options first.
 */
ALLOT_API void allot_heap_destroy(allot_heap *heap);

/** Flags of a request. */
enum {
    /** The contents may be lost whenever the block is not pinned: see allot_heap_pin(). */
    ALLOT_BLOCK_TEMPORARY = 1,
    /** As TEMPORARY, but dropped after all those, lowest priority first, then the longest unused.
     */
    ALLOT_BLOCK_CACHED = 2,
};

/** What a block should be like. Zero-initialise, then set struct_size and size. */
typedef struct allot_request {
    size_t struct_size;
    uint64_t size;  /**< Bytes, at least 1. */
    uint64_t align; /**< A power of two; 0: the heap's granule. */
    allot_stream stream;
    allot_heap_pool pool;
    uint32_t flags;   /**< ALLOT_BLOCK_...; of handles only. */
    int32_t priority; /**< Higher stays longer. */
    uint32_t tag;     /**< Where the request comes from; adaptive placement learns by it. */
    uint32_t owner;   /**< Whose it is, for scrubbing. */
} allot_request;

/**
 * Get a block that may move.
 *
 * @param[out] out  Untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for a size of 0, a wrong alignment, flag, or pool;
 *         ALLOT_STATUS_FRAGMENTED if enough bytes are free but no range is, ALLOT_STATUS_BUDGET if
 * a limit forbids more (of a request that is above a limit by itself at once, with nothing dropped
 * or given back for it), ALLOT_STATUS_DEVICE_MEMORY if the device has no more, each after the whole
 * ladder and with what it did in the detail text and allot_heap_get_failure();
 *         ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_BACKEND.
 * The caller owns the block and releases it with allot_heap_free().
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_alloc(allot_heap *heap,
                                                        const allot_request *request,
                                                        allot_handle *out);

/** Get a block that stays where it is; as allot_heap_alloc(). Released by
 * allot_heap_free_pointer(). */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_alloc_pointer(allot_heap *heap,
                                                                const allot_request *request,
                                                                allot_devptr *out);

/**
 * Free a block in the order of its stream: work queued by now may still use it. Cheap; may record
 * events.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for a handle that is not valid (any more);
 *         ALLOT_STATUS_BUSY while it is pinned; ALLOT_STATUS_MISMATCH if the red zones of a debug
 *         heap were written to, and the block is free nevertheless; ALLOT_STATUS_BACKEND, and the
 *         block is as it was.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_free(allot_heap *heap, allot_handle handle);

/** The same for a pointer: the address that allot_heap_alloc_pointer() returned. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_free_pointer(allot_heap *heap, allot_devptr ptr);

/**
 * Keep a block where it is, until allot_heap_unpin() was called as often.
 *
 * @param[out] out  Its address; untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for a handle that is not valid;
 *         ALLOT_STATUS_NOT_FOUND for a temporary or cached block that was dropped: what is left to
 * do is to free it.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_pin(allot_heap *heap, allot_handle handle,
                                                      allot_devptr *out);
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_unpin(allot_heap *heap, allot_handle handle);

/**
 * Tell that a block is used on another stream than its own as well; freeing it then waits for the
 * work that this stream was given by the time of the free (PyTorch's record_stream). If the block
 * was moved, what the stream is given from now on waits for that.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_use(allot_heap *heap, allot_handle handle,
                                                      allot_stream stream);
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_use_pointer(allot_heap *heap, allot_devptr ptr,
                                                              allot_stream stream);

/**
 * Change the size of a block: where it is if that can be, else its bytes are copied elsewhere on
 * its stream, as many as fit, after the work that other streams which use it were given so far.
 *
 * @return As allot_heap_alloc(); ALLOT_STATUS_BUSY if it would have to move and is pinned. The
 * block is as it was after a failure.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_resize(allot_heap *heap, allot_handle handle,
                                                         uint64_t size);

/** What is known of a block. The address is where it is now: without a pin it may move. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_get_block(allot_heap *heap, allot_handle handle,
                                                            allot_block_info *out);

/** Handle of a pointer, for calls that take one; ALLOT_STATUS_INVALID if it is not the begin of a
 * block of this heap. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_find(allot_heap *heap, allot_devptr ptr,
                                                       allot_handle *out);

/**
 * Call `visit` for each block, in no order, until it returns false. The heap is locked: `visit`
 * must not call it.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_walk(
    allot_heap *heap, bool (*visit)(void *context, const allot_block_info *block), void *context);

/**
 * @name Pools
 * @{
 */

/** Options of allot_heap_pool_create(). Zero-initialise, then set struct_size. */
typedef struct allot_heap_pool_options {
    size_t struct_size;
    allot_space_strategy strategy;
    uint64_t limit; /**< Most bytes that the pool holds; 0: only the heap's limit. */
    /** Requests of the default pool may be placed here when nothing else is left. */
    bool is_shared_on_oom;
} allot_heap_pool_options;

/** Make a pool of its own segments. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_pool_create(
    allot_heap *heap, const allot_heap_pool_options *options, allot_heap_pool *out);

/** Destroy a pool and give its memory back, which may wait for streams; ALLOT_STATUS_BUSY while it
 * has blocks, those of the default pool in its memory included, freed ones that still wait for
 * their streams aside. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_pool_destroy(allot_heap *heap,
                                                               allot_heap_pool pool);
/** @} */

/**
 * @name Limits
 * @{
 */

/** Set the most bytes that the heap holds from the device, 0 for no limit. What is free and above
 * it is given back; ALLOT_STATUS_BUDGET if blocks are in the way, and the limit holds for growth.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_set_limit(allot_heap *heap, uint64_t limit);

/** The same as a part of the device's memory, above 0 to 1. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_set_limit_fraction(allot_heap *heap,
                                                                     double fraction);

/** Set up to where the heap grows before it drops, compacts and spills; 0: up to its limit. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_set_limit_soft(allot_heap *heap, uint64_t limit);

/**
 * Give free memory back until the heap holds `target` bytes, and no more than that. Waits for
 * streams whose work may still use what is given back.
 *
 * @param[out] released  Bytes given back; NULL allowed.
 * @return ALLOT_STATUS_OK, also if blocks are in the way; ALLOT_STATUS_BACKEND.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_trim(allot_heap *heap, uint64_t target,
                                                       uint64_t *released);

/** See which freed blocks no longer wait for their streams. Does not wait. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_collect(allot_heap *heap);

/** A stream is about to be destroyed: waits for it, and what the heap holds for it goes to the
 * default stream. Its blocks stay. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_end_stream(allot_heap *heap, allot_stream stream);
/** @} */

/**
 * What is tried before a request is refused, in this order; after every step that reclaimed
 * something the search is made again. X(name, spelling, what it does)
 */
#define ALLOT_RUNG_LIST(X)                                                                         \
    X(SEARCH, "search", "free memory of the request's own stream")                                 \
    X(COLLECT, "collect", "freed blocks whose streams are done")                                   \
    X(SHARE, "share", "free memory of other streams that are idle")                                \
    X(GROW_SOFT, "grow to the soft limit", "more from the device")                                 \
    X(DROP_TEMPORARY, "drop temporary", "temporary blocks")                                        \
    X(DROP_CACHED, "drop cached", "cached blocks")                                                 \
    X(COMPACT, "compact", "blocks that can be moved")                                              \
    X(SPILL, "spill", "blocks that can go to a tier")                                              \
    X(GROW, "grow", "more from the device, up to the limit")                                       \
    X(TRIM, "trim and grow", "free segments back to the device, then more from it")                \
    X(WAIT, "wait", "free memory of other streams, after their work")                              \
    X(POOLS, "other pools", "pools that are shared when nothing else is left")                     \
    X(PRESSURE, "pressure", "the caller's pressure callback")

typedef enum allot_rung {
#define ALLOT_RUNG_ENUM(name, spelling, text) ALLOT_RUNG_##name,
    ALLOT_RUNG_LIST(ALLOT_RUNG_ENUM)
#undef ALLOT_RUNG_ENUM
        ALLOT_RUNG_COUNT
} allot_rung;

/** Spelling of a rung, and one line about it; "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_rung_name(allot_rung rung);
ALLOT_API const char *allot_rung_text(allot_rung rung);

/** What the ladder did for a request that was refused. Filled in by allot_heap_get_failure(). */
typedef struct allot_heap_failure {
    size_t struct_size;
    allot_status status; /**< OK: no request was refused yet. */
    allot_request request;
    uint64_t size_reserved; /**< The heap then. */
    uint64_t size_allocated;
    uint64_t size_free;                /**< Reserved and in no block. */
    uint64_t size_free_largest;        /**< Largest range of the request's own pool. */
    uint64_t size_free_elsewhere;      /**< Of size_free, what other pools have. */
    uint64_t size_pending;             /**< Freed and waiting for a stream. */
    uint64_t limit;                    /**< 0: none. */
    uint64_t limit_pool;               /**< Of the request's pool; 0: none. */
    uint64_t device_free;              /**< As the device said. */
    uint64_t tried[ALLOT_RUNG_COUNT];  /**< Times that each rung was tried. */
    uint64_t gained[ALLOT_RUNG_COUNT]; /**< Bytes that it made free. */
} allot_heap_failure;

/** The last request that was refused. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_get_failure(allot_heap *heap,
                                                              allot_heap_failure *out);

/** What is counted, each as current, peak, allocated, freed: the names of
 * torch.cuda.memory_stats(). X(name, what it counts) */
#define ALLOT_HEAP_STAT_LIST(X)                                                                    \
    X(allocation, "blocks handed out")                                                             \
    X(segment, "allocations of the device; in mode VIRTUAL granules")                              \
    X(active, "blocks handed out, or freed and waiting for a stream")                              \
    X(inactive_split, "free ranges in segments that are partly used")                              \
    X(allocated_bytes, "bytes of `allocation`")                                                    \
    X(reserved_bytes, "bytes held from the device")                                                \
    X(active_bytes, "bytes of `active`")                                                           \
    X(inactive_split_bytes, "bytes of `inactive_split`")                                           \
    X(requested_bytes, "bytes of `allocation` before rounding")

/** One figure over time. */
typedef struct allot_stat {
    uint64_t current;
    uint64_t peak; /**< Since the start or the last reset. */
    uint64_t allocated;
    uint64_t freed;
} allot_stat;

/** Filled in by allot_heap_get_stats(). */
typedef struct allot_heap_stats {
    size_t struct_size;
#define ALLOT_HEAP_STAT_MEMBER(name, text) allot_stat name;
    ALLOT_HEAP_STAT_LIST(ALLOT_HEAP_STAT_MEMBER)
#undef ALLOT_HEAP_STAT_MEMBER
    /* Of the whole heap, 0 in statistics of a stream or a pool. */
    uint64_t num_alloc_retries; /**< Requests that needed a rung above GROW. */
    uint64_t num_ooms;
    uint64_t num_sync_all_streams; /**< Times that the host waited for a stream. */
    uint64_t num_device_alloc;
    uint64_t num_device_free;
    /** Bytes of free memory that were mapped elsewhere instead of asking the device for more. */
    uint64_t remapped_bytes;
    uint64_t front_bytes; /**< Now kept at hand by streams; not allocated. */
    /** Blocks handed out so far, of 2^i to 2^(i+1) - 1 bytes asked for. */
    uint64_t size_histogram[64];
    double
        fragmentation; /**< External: 1 - largest free range / free bytes; 0 where all is used. */
} allot_heap_stats;

/** Statistics of the whole heap. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_get_stats(allot_heap *heap,
                                                            allot_heap_stats *out);

/** Statistics of what was asked for on one stream, in all pools; ALLOT_STATUS_NOT_FOUND if the heap
 * does not know the stream. Segments count for the stream that they were made for. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_get_stream_stats(allot_heap *heap,
                                                                   allot_stream stream,
                                                                   allot_heap_stats *out);

/** Statistics of one pool. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_get_pool_stats(allot_heap *heap,
                                                                 allot_heap_pool pool,
                                                                 allot_heap_stats *out);

/** Let all peaks begin anew at the current values. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_reset_peaks(allot_heap *heap);

struct allot_trace;

/**
 * The heap as a trace: its segments and blocks now, and the events recorded so far; for
 * allot_trace_write(), also as a PyTorch snapshot. The caller releases it with
 * allot_trace_destroy().
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_get_trace(allot_heap *heap,
                                                            struct allot_trace **out);

/** Record events from now on, the last `event_max` of them; 0 ends recording and forgets them. */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_record(allot_heap *heap, uint64_t event_max);

/**
 * Whether all invariants hold: blocks, ranges, segments, sums, queues.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_MISMATCH with what is wrong. O(blocks).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_heap_check(allot_heap *heap);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_HEAP_H */
