/* SPDX-License-Identifier: MIT */
/**
 * @file
 * An exact model of PyTorch's caching allocator for GPU memory: its settings, and an allocator that
 * places blocks exactly where PyTorch would, on invented addresses, without any memory.
 *
 * Words. A *segment* is taken from the driver in one piece and cut into *blocks*. In *expandable*
 * mode a range of addresses is reserved once and *pages* are mapped into it as it grows. Free
 * blocks are *cached*; a freed block that another stream still uses is *pending*.
 *
 * docs/torchsim.md states the rules in prose, by release, and what is not modelled.
 */
#ifndef ALLOT_TORCHSIM_H
#define ALLOT_TORCHSIM_H

#include <allot/base.h>
#include <allot/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings: the string in PYTORCH_CUDA_ALLOC_CONF ---- */

/** A size without limit. */
#define ALLOT_TORCH_UNLIMITED UINT64_MAX

/** Intervals of roundup_power2_divisions: sizes of [2^n, 2^(n+1)) MiB, n = 0 to 15. */
#define ALLOT_TORCH_INTERVALS 16

/** PyTorch's behaviour by release: 100 * major + minor, for example 215 for 2.15. */
#define ALLOT_TORCH_VERSION_OLDEST 200
#define ALLOT_TORCH_VERSION_NEWEST 215

typedef enum allot_torch_backend {
    ALLOT_TORCH_BACKEND_NATIVE = 0, /**< The caching allocator that this file models. */
    ALLOT_TORCH_BACKEND_ASYNC = 1,  /**< cudaMallocAsync: the driver's pool decides. */
} allot_torch_backend;

/** PyTorch's allocator settings. Fill in with allot_torch_conf_init(), then change fields. */
typedef struct allot_torch_conf {
    size_t struct_size;
    allot_torch_backend backend;
    bool expandable_segments;
    bool release_lock_on_cudamalloc; /**< No influence on placement. */
    bool throw_on_cudamalloc_oom;    /**< Beyond the allowed memory a request fails at once. */
    bool graph_capture_record_stream_reuse; /**< Recorded traces show its effect; not decided here.
                                             */
    bool pinned_use_cuda_host_register;     /**< pinned_*: host memory, no influence here. */
    bool pinned_use_background_threads;
    bool pinned_free_catch_all;
    uint32_t pinned_num_register_threads;
    uint64_t pinned_reserve_segment_size; /**< Bytes. */
    uint64_t pinned_max_round_threshold;  /**< Bytes; ALLOT_TORCH_UNLIMITED for none. */
    uint64_t pinned_max_cached_size;      /**< Bytes; ALLOT_TORCH_UNLIMITED for none. */
    uint64_t max_split_size;              /**< Bytes; ALLOT_TORCH_UNLIMITED for none. */
    uint64_t max_non_split_rounding;      /**< Bytes; by default large_segment_size. */
    uint64_t large_segment_size; /**< Bytes of a segment for 1 to 10 MiB, and of a large page. */
    double garbage_collection_threshold; /**< Share of the allowed memory, 0 for off. */
    double per_process_memory_fraction;  /**< Share of the device, 1 for all. */
    /** Address range of an expandable segment, as a share of the device (0: PyTorch's 9/8). */
    double expandable_reserve_share;
    uint64_t expandable_reserve_size;                         /**< The same in bytes; 0 for none. */
    uint32_t roundup_power2_divisions[ALLOT_TORCH_INTERVALS]; /**< 0 or a power of two. */
} allot_torch_conf;

/** What a note about settings says. X(name, value, code in JSON) */
#define ALLOT_TORCH_NOTE_LIST(X)                                                                   \
    X(UNKNOWN_KEY, 0, "unknown-key")   /* PyTorch refuses or ignores the key. */                   \
    X(OUT_OF_RANGE, 1, "out-of-range") /* PyTorch refuses the value. */                            \
    X(IGNORED, 2, "ignored")           /* The setting has no effect here. */                       \
    X(CONFLICT, 3, "conflict")         /* Two settings work against each other. */                 \
    X(DIFFERS, 4, "differs")           /* The recorded text and the recorded values disagree. */

typedef enum allot_torch_note_kind {
#define ALLOT_TORCH_NOTE_ENUM(name, value, code) ALLOT_TORCH_NOTE_##name = (value),
    ALLOT_TORCH_NOTE_LIST(ALLOT_TORCH_NOTE_ENUM)
#undef ALLOT_TORCH_NOTE_ENUM
} allot_torch_note_kind;

/** Code of a kind of note, for example "out-of-range"; "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_torch_note_kind_name(allot_torch_note_kind kind);

#define ALLOT_TORCH_NOTES_MAX 24
#define ALLOT_TORCH_NOTE_TEXT 192

typedef struct allot_torch_note {
    allot_torch_note_kind kind;
    uint32_t position; /**< Offset in the settings string, or ALLOT_NONE. */
    char text[ALLOT_TORCH_NOTE_TEXT];
} allot_torch_note;

/** Notes in the order in which they were found; more than fit are counted and dropped. */
typedef struct allot_torch_notes {
    uint32_t count; /**< At most ALLOT_TORCH_NOTES_MAX. */
    uint32_t dropped;
    allot_torch_note items[ALLOT_TORCH_NOTES_MAX];
} allot_torch_notes;

/** PyTorch's defaults. */
ALLOT_API void allot_torch_conf_init(allot_torch_conf *conf);

/**
 * Read a settings string, for example "max_split_size_mb:128,roundup_power2_divisions:[256:1,>:4]".
 *
 * @param[in]  text   The string; not NULL, may be empty.
 * @param[out] conf   Settings; untouched on failure.
 * @param[out] notes  Not NULL: an unknown key or a value that PyTorch refuses becomes a note and is
 *                    skipped. NULL: it is a failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID with position and reason in the detail text.
 * Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torch_conf_parse(const char *text,
                                                              allot_torch_conf *conf,
                                                              allot_torch_notes *notes);

/**
 * The same as a release of PyTorch reads it: allot_torch_conf_parse() reads as the newest.
 *
 * Up to 2.9 `>` in a list of roundup_power2_divisions also replaces the entry before it, and
 * max_split_size_mb and max_non_split_rounding_mb must be more than 20; from 2.10 on at least
 * large_segment_size_mb.
 *
 * @param[in] version  ALLOT_TORCH_VERSION_OLDEST to _NEWEST; 0: the newest.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torch_conf_parse_for(const char *text,
                                                                  uint32_t version,
                                                                  allot_torch_conf *conf,
                                                                  allot_torch_notes *notes);

/** Room that allot_torch_conf_format() needs at most, the final NUL included. */
#define ALLOT_TORCH_CONF_TEXT_MAX 1024

/**
 * Write settings as a canonical string: only what differs from the defaults, in a fixed order, so
 * that equal settings give equal strings. "" for the defaults.
 *
 * @param[out] buffer  [ALLOT_TORCH_CONF_TEXT_MAX]
 * @return `buffer`. Thread-safe.
 */
ALLOT_API const char *allot_torch_conf_format(const allot_torch_conf *conf, char *buffer);

/**
 * Settings that a trace was recorded under. The recorded values win over the recorded string,
 * which may have been parsed more than once; a trace without settings gives the defaults.
 *
 * @param[out] notes  What is odd about them; NULL if nobody wants to know.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_FORMAT if the recorded string cannot be understood at all.
 * Thread-safe.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torch_conf_from_trace(const allot_trace *trace,
                                                                   allot_torch_conf *conf,
                                                                   allot_torch_notes *notes);

/**
 * Add notes on settings that do nothing or hinder each other.
 *
 * @param[in] fraction_known  Whether `fraction` is known; a trace does not record it.
 * @param[in] fraction        Share set by set_per_process_memory_fraction(), 1 for none.
 * Thread-safe.
 */
ALLOT_API void allot_torch_conf_review(const allot_torch_conf *conf, bool fraction_known,
                                       double fraction, allot_torch_notes *notes);

/**
 * The release of PyTorch whose rules apply: the oldest that writes the layout this trace was read
 * from, at least ALLOT_TORCH_VERSION_OLDEST, and the newest of those that share its layout and its
 * rules (2.13 to 2.15 do). Thread-safe.
 */
ALLOT_API uint32_t allot_torch_version_of(const allot_trace *trace);

/* ---- the allocator ---- */

typedef struct allot_torchsim allot_torchsim;

/** One event, as PyTorch's trace would show it. */
typedef struct allot_torch_event {
    allot_event_kind kind;
    uint32_t pool;     /**< Index of the private pool, or ALLOT_NONE for the default one. */
    uint64_t address;  /**< Block or segment; free bytes of the device for OOM. */
    uint64_t size;     /**< Requested bytes of a block; bytes of a segment; rounded bytes at OOM. */
    uint64_t stream;   /**< Raw value. */
    uint32_t block;    /**< Block of ALLOC and FREE_*, else ALLOT_NONE. */
    bool is_for_large; /**< Segments: of the pool for requests over 1 MiB. */
} allot_torch_event;

/**
 * Where segments come from. Every call gets `context`; none may call the allocator back. A refusal
 * is ALLOT_STATUS_DEVICE_MEMORY; any other failure ends the allocation with that status.
 */
typedef struct allot_torch_driver {
    size_t struct_size;
    void *context;
    /** Give `size` bytes; *address is their start (cudaMalloc). */
    allot_status (*segment_alloc)(void *context, uint64_t size, uint64_t stream, uint64_t *address);
    void (*segment_free)(void *context, uint64_t address, uint64_t size);
    /** Reserve a range of addresses for an expandable segment (cuMemAddressReserve). */
    allot_status (*reserve)(void *context, uint64_t size, uint64_t stream, uint64_t *address);
    void (*unreserve)(void *context, uint64_t address, uint64_t size);
    /** Back [address, address + size) with memory, all or nothing (cuMemCreate, cuMemMap). */
    allot_status (*map)(void *context, uint64_t address, uint64_t size);
    void (*unmap)(void *context, uint64_t address, uint64_t size);
    /** Bytes that are free on the device (cudaMemGetInfo). */
    uint64_t (*free_bytes)(void *context);
} allot_torch_driver;

/** When a block that was used on other streams becomes free. */
typedef enum allot_torch_completion {
    /** As if the device had always finished: at the next allocation outside a capture. */
    ALLOT_TORCH_COMPLETE_AT_ONCE = 0,
    /** When allot_torchsim_complete() says so, or when the allocator itself has to wait. */
    ALLOT_TORCH_COMPLETE_ON_CALL = 1,
} allot_torch_completion;

/** Options of allot_torchsim_create(). Zero-initialise, then set struct_size. */
typedef struct allot_torchsim_options {
    size_t struct_size;
    const allot_torch_conf *conf; /**< NULL: PyTorch's defaults. Copied. */
    /**
     * NULL: the built-in driver, which gives each segment and each reserved range the next address
     * upwards in steps of 2 MiB, never a second time, until `limit` is reached. Copied.
     */
    const allot_torch_driver *driver;
    uint64_t limit;   /**< Bytes of the device; 0 or ALLOT_TORCH_UNLIMITED: no limit. */
    double fraction;  /**< Share of the device that may be used; 0: the one in `conf`. */
    uint32_t version; /**< Release whose rules apply; 0: ALLOT_TORCH_VERSION_NEWEST. */
    allot_torch_completion completion;
    /** Called with each event in PyTorch's order; NULL for none. */
    void (*on_event)(void *context, const allot_torch_event *event);
    void *on_event_context;
} allot_torchsim_options;

/**
 * Make an empty allocator for one device.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for a fraction without a limit, a fraction outside
 *         [0, 1], a half-filled driver, a `struct_size` that was not set or an unknown
 *         release; ALLOT_STATUS_UNSUPPORTED for another
 *         backend than the native one; ALLOT_STATUS_HOST_MEMORY. The caller owns the result and
 *         releases it with allot_torchsim_destroy(). Not thread-safe: one thread at a time per
 *         object; different objects may be used at once.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_create(const allot_torchsim_options *options,
                                                             allot_torchsim **out);

/** Release an allocator; NULL is allowed. The driver is not told. */
ALLOT_API void allot_torchsim_destroy(allot_torchsim *sim);

/**
 * Copy an allocator with all its state. The copy uses the same driver and event callback: with a
 * driver of one's own, its state has to be kept beside. ALLOT_STATUS_HOST_MEMORY on failure.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_clone(const allot_torchsim *sim,
                                                            allot_torchsim **out);

/**
 * Allocate.
 *
 * @param[in]  size    Bytes asked for, 1 or more (PyTorch asks nothing for 0).
 * @param[in]  stream  Raw value; streams are ordered by it.
 * @param[in]  pool    A private pool that allocations on this thread are directed to, or
 *                     ALLOT_NONE.
 * @param[out] block   Names the block until it is free; untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_DEVICE_MEMORY or ALLOT_STATUS_FRAGMENTED for an
 *         out-of-memory (the second if the cached bytes, or those with what the device has left,
 *         would have been enough), with the figures in the detail text; ALLOT_STATUS_INVALID for a
 *         size of 0 or beyond 2^62 and for an unknown pool; ALLOT_STATUS_HOST_MEMORY; what the
 *         driver returned. After a host-memory failure the allocator must only be destroyed.
 *         O(log n), n cached blocks, where no blocks of expandable ranges have to be passed over
 * and nothing is mapped or released; O(n log n) at worst.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_alloc(allot_torchsim *sim, uint64_t size,
                                                            uint64_t stream, uint32_t pool,
                                                            uint32_t *block);

/**
 * Free a block. If it was used on another stream it stays pending.
 * ALLOT_STATUS_INVALID if it is not allocated. O(log n).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_free(allot_torchsim *sim, uint32_t block);

/**
 * Say that a block is used on a stream (record_stream); its own stream is ignored.
 * ALLOT_STATUS_INVALID if it is not allocated. O(1).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_record_stream(allot_torchsim *sim,
                                                                    uint32_t block,
                                                                    uint64_t stream);

/** Say that a pending block's streams are done with it. ALLOT_STATUS_INVALID if it is not pending.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_complete(allot_torchsim *sim, uint32_t block);

/**
 * Give cached segments and pages back to the driver (torch.cuda.empty_cache); pending blocks are
 * waited for. During a capture only those of pools without uses. ALLOT_STATUS_HOST_MEMORY: the
 * allocator must only be destroyed. O(n log n), n cached blocks.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_empty_cache(allot_torchsim *sim);

/** Begin all peaks at what is held now (torch.cuda.reset_peak_memory_stats). O(1). */
ALLOT_API void allot_torchsim_reset_peaks(allot_torchsim *sim);

/** How a private pool behaves; the options of torch.cuda.MemPool. */
typedef struct allot_torch_pool_options {
    size_t struct_size;
    bool use_on_oom; /**< Its cached blocks may serve the default pool when the driver refuses. */
    bool no_split;   /**< Its blocks are never split. */
    bool has_allocator; /**< Segments come from an allocator of its own, never expandable. */
    bool is_graph; /**< Requests come to it from a CUDA graph capture, not from use_mem_pool(). */
    /**
     * The number in PyTorch's name of the pool, the first of the two unless that is 0; 0: not
     * known. Several pools that offer themselves, or are released together, come in the order of a
     * hash table of these numbers; without them in the order they were made, or lost their use.
     */
    uint64_t number;
} allot_torch_pool_options;

/**
 * Make a private pool in use once, as torch.cuda.MemPool does.
 *
 * @param[in]  options  NULL for a pool without peculiarities.
 * @param[out] pool     Its index, counted from 0; may be NULL; untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID if `struct_size` was not set;
 *         ALLOT_STATUS_HOST_MEMORY.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_pool_create(
    allot_torchsim *sim, const allot_torch_pool_options *options, uint32_t *pool);

/**
 * Begin and end to direct allocations to a private pool: a CUDA graph capture, or use_mem_pool().
 * Each begin counts as a use. During a capture pending blocks wait and nothing is released under
 * pressure; up to 2.12 that holds for use_mem_pool() and for requests to the default pool too. An
 * allocation that names a pool outside of such a pair makes one around itself.
 * ALLOT_STATUS_INVALID for an unknown pool, a second begin or an end without begin.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_pool_begin(allot_torchsim *sim,
                                                                 uint32_t pool);
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_pool_end(allot_torchsim *sim, uint32_t pool);

/**
 * Give up one use of a pool (the graph or MemPool is gone). Without uses its cached segments can be
 * released, and it disappears with the last one. ALLOT_STATUS_INVALID without a use.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_pool_release(allot_torchsim *sim,
                                                                   uint32_t pool);

/**
 * Give the cached segments of one pool back, if it has no uses: what happens when a
 * torch.cuda.MemPool is dropped. Its pending blocks are waited for. A pool in use keeps its
 * segments. ALLOT_STATUS_INVALID for an unknown pool; ALLOT_STATUS_HOST_MEMORY.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_pool_empty_cache(allot_torchsim *sim,
                                                                       uint32_t pool);

/** A number and its largest value so far. */
typedef struct allot_torch_gauge {
    uint64_t now;
    uint64_t peak;
} allot_torch_gauge;

/** Statistics in the sense of torch.cuda.memory_stats(). Bytes unless said otherwise. */
typedef struct allot_torch_stats {
    size_t struct_size;
    allot_torch_gauge reserved;       /**< Held from the driver. */
    allot_torch_gauge allocated;      /**< Handed out. */
    allot_torch_gauge active;         /**< Handed out or pending. */
    allot_torch_gauge requested;      /**< Active, before rounding. */
    allot_torch_gauge inactive_split; /**< Free parts of split classic segments. */
    allot_torch_gauge segment_count;  /**< Classic segments. */
    uint64_t alloc_count;             /**< Successful allocations. */
    uint64_t driver_alloc_count;      /**< Segments taken and page ranges mapped. */
    uint64_t driver_free_count;       /**< Segments freed and page ranges unmapped. */
    uint64_t range_map_count;         /**< Of the driver_alloc_count, page ranges mapped. */
    uint64_t range_unmap_count;       /**< Of the driver_free_count, page ranges unmapped. */
    uint64_t bytes_taken;             /**< From the driver, all together. */
    uint64_t page_map_count;          /**< Pages mapped. */
    uint64_t page_unmap_count;        /**< Pages unmapped. */
    uint64_t retry_count;             /**< num_alloc_retries: everything cached was released. */
    uint64_t oom_count;               /**< num_ooms. */
    uint64_t rejection_count; /**< num_oom_rejections: refused by throw_on_cudamalloc_oom. */
    uint64_t sync_count;      /**< Waits for all streams. */
    uint64_t refusal_count;   /**< The driver or the allowed maximum said no. */
} allot_torch_stats;

/** Statistics so far; borrowed, kept up to date until the allocator is destroyed. */
ALLOT_API const allot_torch_stats *allot_torchsim_get_stats(const allot_torchsim *sim);

/** One block as it stands. */
typedef struct allot_torch_block {
    uint64_t address;
    uint64_t size;
    uint64_t requested_size; /**< 0 for a free block. */
    uint64_t stream;
    uint64_t segment; /**< Address of its segment or reserved range. */
    uint32_t pool;    /**< Private pool, or ALLOT_NONE. */
    uint32_t block;   /**< Name of an allocated or pending block, else ALLOT_NONE. */
    allot_block_state state;
    bool is_mapped; /**< false: addresses of an expandable segment without memory. */
    bool is_large;
    bool is_expandable;
} allot_torch_block;

/**
 * What `block` names. ALLOT_STATUS_INVALID if it is neither allocated nor pending. O(blocks before
 * it in its segment).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_torchsim_get_block(const allot_torchsim *sim,
                                                                uint32_t block,
                                                                allot_torch_block *out);

/**
 * Visit every block, segment by segment, by address inside a segment; the segments come in no
 * particular order. `visit` returns false to stop. O(blocks).
 */
ALLOT_API void allot_torchsim_walk(const allot_torchsim *sim,
                                   bool (*visit)(void *context, const allot_torch_block *block),
                                   void *context);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_TORCHSIM_H */
