/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Replay a recorded history: check that the model of PyTorch's allocator does what was recorded,
 * or ask what would have happened under other settings, limits or allocators.
 *
 * A *model* is named by a string: "torch:SETTINGS" (exact; "torch" alone for the defaults), or one
 * of the models for comparison, see allot_replay_get_model(). "recorded" or NULL is PyTorch's
 * allocator with the settings in the file.
 */
#ifndef ALLOT_REPLAY_H
#define ALLOT_REPLAY_H

#include <allot/base.h>
#include <allot/heap.h>
#include <allot/torchsim.h>
#include <allot/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a program asked of its allocator ---- */

/** The requests of one device of a trace, ready for many replays. Thread-safe to read from. */
typedef struct allot_requests allot_requests;

/** Why a history cannot be replayed. X(name, value, code in JSON, what it means) */
#define ALLOT_REPLAY_UNUSABLE_LIST(X)                                                              \
    X(NONE, 0, "none", "it can")                                                                   \
    X(NO_EVENTS, 1, "no-events", "no allocations were recorded: state only, or recording was off") \
    X(NO_ADDRESSES, 2, "no-addresses", "events carry no addresses")                                \
    X(NO_SIZES, 3, "no-sizes", "allocations without sizes")                                        \
    X(SKIPPED_ACTIONS, 4, "skipped-actions", "kinds of events were left out when recording")       \
    X(INCONSISTENT, 5, "inconsistent", "events contradict each other or the final state")

typedef enum allot_replay_unusable {
#define ALLOT_REPLAY_UNUSABLE_ENUM(name, value, code, text) ALLOT_REPLAY_UNUSABLE_##name = (value),
    ALLOT_REPLAY_UNUSABLE_LIST(ALLOT_REPLAY_UNUSABLE_ENUM)
#undef ALLOT_REPLAY_UNUSABLE_ENUM
} allot_replay_unusable;

/** Code and meaning of a reason; thread-safe. */
ALLOT_API const char *allot_replay_unusable_code(allot_replay_unusable reason);
ALLOT_API const char *allot_replay_unusable_text(allot_replay_unusable reason);

/**
 * Extract the requests of a device: allocations with their blocks' ends, uses on other streams,
 * releases of the cache that the program made itself. Blocks that were live before a trace that
 * begins in the middle are found by undoing the events from the final state.
 *
 * @param[in]  device  Index of the trace's device, or ALLOT_NONE for allot_trace_main_device().
 * @param[out] why     Set where the result is ALLOT_STATUS_UNSUPPORTED; may be NULL.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_UNSUPPORTED if the history cannot be replayed, with what
 *         is missing in the detail text; ALLOT_STATUS_INVALID for an unknown device;
 *         ALLOT_STATUS_HOST_MEMORY. The caller owns the result and releases it with
 *         allot_requests_destroy(); `trace` must live as long. O(events log events).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_requests_create(const allot_trace *trace,
                                                             uint32_t device, allot_requests **out,
                                                             allot_replay_unusable *why);

/** NULL is allowed. */
ALLOT_API void allot_requests_destroy(allot_requests *requests);

/** What was extracted. */
typedef struct allot_requests_info {
    size_t struct_size;
    uint32_t device;           /**< Index in the trace. */
    uint64_t event_count;      /**< Of the device. */
    uint64_t alloc_count;      /**< Recorded allocations. */
    uint64_t oom_count;        /**< Recorded out-of-memory failures. */
    uint64_t initial_count;    /**< Blocks live before the first event. */
    uint64_t initial_reserved; /**< Bytes held from the driver then. */
    uint64_t unsure_count;   /**< Initial blocks that may be up to 1 MiB larger than assumed: a rest
                                that was not split off, which no event shows. */
    uint64_t reserved_peak;  /**< Largest bytes held from the driver, as recorded. */
    uint64_t allocated_peak; /**< Largest bytes handed out (after rounding), as recorded. */
    uint64_t empty_cache_count; /**< Releases of the cache by the program itself. */
    uint64_t pressure_count;    /**< Releases before a new segment, taken as memory pressure. */
    bool is_complete;           /**< The trace begins with an empty allocator. */
    allot_torch_conf conf;      /**< Recorded settings. */
    uint32_t version;           /**< allot_torch_version_of(). */
    /** About the limit under which requests failed: bytes held, and what the driver had left if
     * that was too little, the most of all failures; 0 without a failure. */
    uint64_t oom_limit;
} allot_requests_info;

ALLOT_API void allot_requests_get_info(const allot_requests *requests, allot_requests_info *out);

/* ---- check: does the model do what was recorded? ---- */

/** Options of allot_replay_check(). Zero-initialise, then set struct_size. */
typedef struct allot_replay_check_options {
    size_t struct_size;
    const char *model; /**< NULL or "recorded": settings from the file; else "torch:...". */
    uint64_t limit;    /**< Bytes of the device; 0: its refusals are taken from the recording. */
    double fraction;   /**< set_per_process_memory_fraction(); 0: none. */
    uint32_t version;  /**< Release whose rules apply; 0: by the file's layout. */
    allot_progress_fn progress;
    void *progress_context;
} allot_replay_check_options;

/** Outcome of a check; the counts cover everything before the first difference. */
typedef struct allot_replay_check_result {
    size_t struct_size;
    uint64_t placement_count; /**< Allocations in the recording. */
    uint64_t placement_equal; /**< Allocations that the model placed at the recorded address. */
    uint64_t event_count;     /**< Events in the recording. */
    uint64_t event_equal;     /**< Events that the model made or followed. */
    uint64_t segment_alloc_equal;
    uint64_t segment_free_equal;
    uint64_t segment_map_equal;
    uint64_t segment_unmap_equal;
    uint64_t free_completed_equal;
    uint64_t oom_equal;
    bool is_equal;              /**< Nothing differs. */
    uint64_t difference_event;  /**< Index of the first event that differs. */
    allot_torch_event expected; /**< What the model did there; valid if !is_equal. */
    bool has_expected;          /**< false: the model did nothing where the event stands. */
    char reason[320];           /**< The difference in a sentence, "" if there is none. */
    allot_torch_stats stats;    /**< The model's at the end of the check. */
    allot_torch_conf conf;      /**< Settings used. */
    uint32_t version;           /**< Rules used. */
} allot_replay_check_result;

/**
 * Replay the recording through the exact model, event by event. The driver's part is taken from
 * the recording: addresses of new segments, and its refusals unless a limit is given.
 *
 * @return ALLOT_STATUS_OK if all is equal; ALLOT_STATUS_MISMATCH if something differs (the result
 *         is filled in, the detail text says what); ALLOT_STATUS_INVALID for bad options;
 *         ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_CANCELLED. Thread-safe. O(events log blocks).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_replay_check(const allot_requests *requests,
                                                          const allot_replay_check_options *options,
                                                          allot_replay_check_result *out);

/* ---- run: what would have happened? ---- */

/**
 * Cost of what an allocator asks of the driver, in nanoseconds. The defaults are round figures in
 * the middle of what is published for PCIe data-centre GPUs under CUDA 12: cudaMalloc and cudaFree
 * of tens of microseconds to over a millisecond growing with the size (the device synchronises on
 * a free), mapping of 2 MiB pages around ten microseconds each (NVIDIA, "Introducing low-level GPU
 * virtual memory management", 2020; GMLake, ASPLOS 2024, section 2.3), and a cache hit below a
 * microsecond (PyTorch's own benchmarks). They rank settings; they do not predict a run.
 */
typedef struct allot_cost_model {
    size_t struct_size;
    uint64_t hit_ns;           /**< An allocation and its free, served from the cache. */
    uint64_t segment_alloc_ns; /**< Each segment taken. */
    uint64_t segment_free_ns;  /**< Each segment given back; includes its synchronisation. */
    uint64_t page_map_ns;      /**< Each page mapped. */
    uint64_t page_unmap_ns;    /**< Each page unmapped. */
    uint64_t range_ns;         /**< Each call that maps or unmaps a range. */
    uint64_t alloc_ns_per_gib; /**< In addition, per GiB taken or mapped. */
    uint64_t sync_ns;          /**< Each wait for all streams. */
} allot_cost_model;

/** The defaults stated above. */
ALLOT_API void allot_cost_model_init(allot_cost_model *cost);

/**
 * Look at the heap of a replay, after each recorded request; models "heap:..." only.
 *
 * @param[in] heap   May be read, and compacted; its blocks belong to the replay.
 * @param[in] event  Recorded event of the request.
 * @return false to end the replay, with ALLOT_STATUS_CANCELLED.
 */
typedef bool (*allot_replay_heap_fn)(void *context, allot_heap *heap, uint64_t event);

/** Options of allot_replay_run(). Zero-initialise, then set struct_size. */
typedef struct allot_replay_options {
    size_t struct_size;
    const char *model;            /**< See the top of this file; NULL: as recorded. */
    const allot_torch_conf *conf; /**< Instead of `model`: "torch" with these settings. */
    uint64_t limit;               /**< Bytes of the device; 0: no limit. */
    double fraction;              /**< Share that may be used; 0: none. Needs a limit. */
    uint32_t version;             /**< PyTorch release whose rules apply; 0: the file's. */
    bool continue_after_oom;      /**< Skip the requests that fail and go on. */
    uint32_t sample_count;        /**< Timeline samples wanted at most; 0: none. */
    const allot_cost_model *cost; /**< NULL: the defaults. */
    allot_progress_fn progress;
    void *progress_context;
    allot_replay_heap_fn on_heap; /**< NULL: none. */
    void *on_heap_context;
} allot_replay_options;

/** State at one moment of a replay. */
typedef struct allot_replay_sample {
    uint64_t event; /**< Index of the recorded event after which it holds. */
    uint64_t reserved;
    uint64_t allocated;
    uint64_t active;
    uint64_t free_largest; /**< Largest free range that the model could hand out. */
    double fragmentation;  /**< 1 - largest free / free; 0 without free bytes. */
} allot_replay_sample;

/** Blocks that a heap moved for one request. */
typedef struct allot_replay_compaction {
    uint64_t event;           /**< Recorded event of the request. */
    uint64_t copy_count;      /**< Copies made. */
    uint64_t copy_bytes;      /**< Bytes copied. */
    uint64_t copy_ns;         /**< What they take on the device. */
    uint64_t reserved_before; /**< Held from the driver. */
    uint64_t reserved_after;
    uint64_t largest_before; /**< Largest free range; 0: not known, the heap made room by itself. */
    uint64_t largest_after;
} allot_replay_compaction;

/** Outcome of a replay. Bytes unless said otherwise. */
typedef struct allot_replay_result {
    size_t struct_size;
    char model[ALLOT_TORCH_CONF_TEXT_MAX + 16]; /**< The model in its canonical spelling. */
    bool is_exact;     /**< The model places blocks exactly as the real allocator. */
    bool has_finished; /**< Every request was served. */
    uint64_t reserved_peak;
    uint64_t allocated_peak;
    uint64_t active_peak;
    uint64_t requested_peak;
    uint64_t reserved_end;
    uint64_t allocated_end;
    double fragmentation_end;
    uint64_t alloc_count;        /**< Requests served. */
    uint64_t driver_alloc_count; /**< Calls that took memory. */
    uint64_t driver_free_count;  /**< Calls that gave memory back. */
    uint64_t retry_count;        /**< Times everything cached was released under pressure. */
    uint64_t oom_count;          /**< Requests that failed. */
    uint64_t oom_event;          /**< Recorded event of the first failure; valid if oom_count. */
    uint64_t oom_size;           /**< Bytes of that request. */
    uint64_t oom_reserved;       /**< Held from the driver then. */
    uint64_t oom_allocated;      /**< Handed out then. */
    bool oom_is_fragmentation;   /**< Enough bytes were free then, in no single usable range. */
    uint64_t cost_ns;            /**< By the cost model; with what compaction takes. */
    uint32_t sample_count;
    allot_replay_sample *samples; /**< [sample_count], ascending events; owned by the result. */
    /* What compaction did; models "heap:..." only. */
    uint64_t copy_bytes; /**< Bytes copied, all together. */
    uint64_t copy_ns;    /**< What that takes on the device. */
    uint32_t compaction_count;
    allot_replay_compaction *compactions; /**< [compaction_count]; owned by the result. */
} allot_replay_result;

/**
 * Give the same requests to a model. New segments get the next address upwards in 2 MiB steps.
 * Where the settings are not the recorded ones, blocks that were live before the first event are
 * requested first, by address; else the recorded layout is where the replay begins.
 *
 * An out-of-memory ends the run (has_finished is then false), which is not a failure of this call.
 * A request that failed in the recording is made as well; if it succeeds here its block is freed at
 * once, since nothing is known of its life.
 *
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for bad options or an unknown model;
 *         ALLOT_STATUS_UNSUPPORTED for a model that cannot serve these requests;
 *         ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_CANCELLED. The caller owns the result and releases
 *         it with allot_replay_result_destroy(). Thread-safe. O(requests log blocks).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_replay_run(const allot_requests *requests,
                                                        const allot_replay_options *options,
                                                        allot_replay_result **out);

/** NULL is allowed. */
ALLOT_API void allot_replay_result_destroy(allot_replay_result *result);

/** One model that allot_replay_run() knows. */
typedef struct allot_replay_model {
    const char *name;     /**< First part of the model string, for example "torch". */
    const char *argument; /**< What may follow after a colon, "" if nothing. */
    const char *summary;
    bool is_exact;
} allot_replay_model;

/** Model number `index`, from 0 on; NULL beyond the last. Static. Thread-safe. */
ALLOT_API const allot_replay_model *allot_replay_get_model(uint32_t index);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_REPLAY_H */
