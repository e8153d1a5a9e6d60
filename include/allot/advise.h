/* SPDX-License-Identifier: MIT */
/**
 * @file
 * What to change: searches the settings of PyTorch's allocator by replaying a recording under each,
 * and says which one to use, what it gains and what it costs.
 *
 * What it can know: the requests up to the end of the recording, or up to the out-of-memory that
 * ended it. What the program would have asked for after that is not in the file; every verdict is
 * about the recorded part. How the search goes is told in docs/advise.md.
 */
#ifndef ALLOT_ADVISE_H
#define ALLOT_ADVISE_H

#include <allot/explain.h>
#include <allot/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct allot_advice allot_advice;

/** Outcomes. X(name, value, spelling in JSON) */
#define ALLOT_ADVICE_VERDICT_LIST(X)                                                               \
    /** A setting finishes what the present one does not, or needs clearly less. */                \
    X(CHANGE, 0, "change")                                                                         \
    /** The present setting is as good as any that was found. */                                   \
    X(KEEP, 1, "keep")                                                                             \
    /** Live bytes alone exceed the limit: no setting can help. */                                 \
    X(NOTHING_HELPS, 2, "nothing_helps")                                                           \
    /** Live bytes fit, but no setting that was tried places them within the limit. */             \
    X(NOT_FOUND, 3, "not_found")                                                                   \
    /** The file does not hold what a replay needs; allot_advice_reason() says what is missing. */ \
    X(CANNOT_SAY, 4, "cannot_say")

typedef enum allot_advice_verdict {
#define ALLOT_ADVICE_VERDICT_ENUM(name, value, spelling) ALLOT_ADVICE_VERDICT_##name = (value),
    ALLOT_ADVICE_VERDICT_LIST(ALLOT_ADVICE_VERDICT_ENUM)
#undef ALLOT_ADVICE_VERDICT_ENUM
} allot_advice_verdict;

/** Spelling of a verdict, "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_advice_verdict_name(allot_advice_verdict verdict);

/** Where a limit comes from. X(name, value, spelling in JSON) */
#define ALLOT_LIMIT_SOURCE_LIST(X)                                                                 \
    /** None: every request is granted. */                                                         \
    X(NONE, 0, "none")                                                                             \
    /** allot_advise_options.limit. */                                                             \
    X(GIVEN, 1, "given")                                                                           \
    /** Reserved bytes plus the device's free bytes at the recorded out-of-memory. */              \
    X(INFERRED, 2, "inferred")                                                                     \
    /** The most that was ever reserved: more was refused, or memory given back under pressure. */ \
    X(HELD, 3, "held")

typedef enum allot_limit_source {
#define ALLOT_LIMIT_SOURCE_ENUM(name, value, spelling) ALLOT_LIMIT_SOURCE_##name = (value),
    ALLOT_LIMIT_SOURCE_LIST(ALLOT_LIMIT_SOURCE_ENUM)
#undef ALLOT_LIMIT_SOURCE_ENUM
} allot_limit_source;

/** Spelling of a source, "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_limit_source_name(allot_limit_source source);

/** Options of allot_advise(). Zero-initialise, then set struct_size. */
typedef struct allot_advise_options {
    size_t struct_size;
    uint64_t limit;        /**< Bytes the driver can give; 0: inferred where the file allows it. */
    double fraction;       /**< set_per_process_memory_fraction(), above 0 to 1; 0: not set. */
    uint32_t thread_count; /**< Worker threads; 0: one per processor. Never changes the result. */
    uint32_t row_max;      /**< Settings whose smallest limit is searched, best first; 0: 10. */
    /** Settings to try beside those the search finds, as in PYTORCH_CUDA_ALLOC_CONF. Each has a
     * row of its own with everything filled in. */
    const char *const *settings; /**< [setting_count] */
    uint32_t setting_count;
    const allot_lines_options *lines; /**< How to fold stacks; NULL for the defaults. */
    allot_progress_fn progress;       /**< NULL for none. Called on the caller's thread only. */
    void *progress_context;
    bool with_strategies; /**< Replay allot's own strategies too: allot_advice_get_strategy(). */
} allot_advise_options;

/**
 * Search the settings and rank them.
 *
 * @param[in]  trace    Any trace; one that cannot be replayed gives the verdict CANNOT_SAY.
 * @param[in]  device   0 to allot_trace_device_count() - 1.
 * @param[in]  options  NULL for the defaults.
 * @param[out] out      The advice; untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for a bad device, fraction or setting, or for a
 *         fraction without a limit; ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_CANCELLED.
 * The caller owns the result and releases it with allot_advice_destroy() before the trace.
 * Thread-safe: the trace is only read. Cost: some hundred replays, each O(events x log blocks).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_advise(const allot_trace *trace, uint32_t device,
                                                    const allot_advise_options *options,
                                                    allot_advice **out);

/** Release an advice; NULL is allowed. */
ALLOT_API void allot_advice_destroy(allot_advice *advice);

/** The advice as a whole. Strings are borrowed from the advice. */
typedef struct allot_advice_summary {
    uint32_t device; /**< Index in the trace. */
    allot_memory_kind memory;
    uint32_t device_number; /**< Its number among its kind, as in the file. */
    allot_advice_verdict verdict;
    const char *present;      /**< Settings of the recording, "" for PyTorch's defaults. */
    const char *recommended;  /**< Settings to use instead, complete; NULL unless CHANGE. */
    uint32_t recommended_row; /**< Its row, or ALLOT_NONE. */

    allot_limit_source limit_source;
    uint64_t limit;  /**< Bytes; 0 for none. */
    double fraction; /**< As given; 0 if not set. */
    /** What the limit leaves beside the smallest limit of the setting to use (the recommended one,
     * or the present one to keep). Bytes; 0 without a limit, or if nothing runs within it. */
    uint64_t spare;
    /** It runs, but `spare` is less than 2 % of the limit or 256 MiB: too tight to rely on. */
    bool is_tight;
    /** allot_advice_row.saving is of limit_min (the present setting dies or is under pressure
     * within the limit), else of peak_reserved. */
    bool is_by_need;
    bool has_oom;       /**< The recording has an out-of-memory. */
    uint64_t oom_event; /**< Its index; valid with has_oom. */
    uint64_t oom_size;  /**< Bytes asked for, rounded by the allocator. */

    uint64_t event_count; /**< Events replayed: up to and with the first out-of-memory, or all. */
    int64_t span_ns;      /**< Time from first to last of them; 0 where unknown. */
    /** The recording begins with an empty allocator. Otherwise driver calls and their cost are not
     * comparable: only settings other than the present one have the first blocks in theirs. */
    bool is_complete;

    uint64_t placements;       /**< Recorded placements that the model was compared with. */
    uint64_t placements_equal; /**< Those it put at the recorded address. */
    bool is_checked;           /**< The comparison was possible. */

    uint64_t live_peak;  /**< Most bytes live at once, rounded to 512: no setting needs less. */
    uint64_t live_event; /**< The event at which that was. */
    uint32_t live_stack; /**< Stack of that event's request, or ALLOT_NONE. */
    uint64_t recorded_reserved_peak; /**< Reserved bytes at the recording's peak. */
    uint64_t setting_count;          /**< Settings tried, the present one included. */
    uint64_t replay_count;           /**< Replays made for this advice. */
} allot_advice_summary;

ALLOT_API void allot_advice_get_summary(const allot_advice *advice, allot_advice_summary *out);

/** One setting that was tried. Row 0 is the present one; the others follow, best first. */
typedef struct allot_advice_row {
    const char *setting; /**< Complete string, "" for PyTorch's defaults. Borrowed. */
    const char *change;  /**< What differs from the present, in words. Borrowed; "" for row 0. */

    bool finishes;           /**< The recorded part runs to its end within the limit. */
    uint64_t stop_event;     /**< Event of the first out-of-memory; valid unless `finishes`. */
    uint64_t peak_reserved;  /**< Within the limit, up to the end or the out-of-memory. */
    uint64_t peak_allocated; /**< Likewise. */
    uint64_t driver_calls;   /**< cudaMalloc, cudaFree, map, unmap within the limit. */
    uint64_t retries;        /**< Times all cached blocks were given back to make a request fit. */
    double cost_ns;          /**< Of driver calls and retries, by the replay's cost model. */
    bool is_tried;           /**< One of allot_advise_options.settings. */
    bool has_saving;         /**< `saving` is known. */
    int64_t saving;          /**< Bytes less than row 0, of what is_by_need says; negative: more. */

    uint64_t roomy_reserved;  /**< Peak reserved with no limit at all. */
    uint64_t limit_min;       /**< Smallest limit found at which it runs; 0: not searched. */
    double limit_min_cost_ns; /**< Cost at that limit. */
} allot_advice_row;

/** Rows in the advice, the present setting included; 0 for CANNOT_SAY. */
ALLOT_API uint32_t allot_advice_row_count(const allot_advice *advice);

/** Row `index`, below allot_advice_row_count(). */
ALLOT_API void allot_advice_get_row(const allot_advice *advice, uint32_t index,
                                    allot_advice_row *out);

/**
 * What the strategies of <allot/space.h> would do with the same requests, in virtual memory and in
 * segments (models "space:..." of <allot/replay.h>). No setting of PyTorch gives them; they are not
 * ranked and never recommended, and stand in a fixed order. 0 unless with_strategies, or for
 * CANNOT_SAY.
 */
ALLOT_API uint32_t allot_advice_strategy_count(const allot_advice *advice);

/** Strategy `index`: `setting` is the model's string, `change` "", the rest as for a setting. */
ALLOT_API void allot_advice_get_strategy(const allot_advice *advice, uint32_t index,
                                         allot_advice_row *out);

/** A code line that holds memory at the moment of the largest need. */
typedef struct allot_advice_line {
    const char *text; /**< "file:line function". Borrowed. */
    uint64_t bytes;   /**< Live bytes it holds then. */
    uint64_t count;   /**< Blocks. */
} allot_advice_line;

/** Lines to attack, largest first, at the out-of-memory or else at the peak of live bytes. */
ALLOT_API uint32_t allot_advice_line_count(const allot_advice *advice);
ALLOT_API void allot_advice_get_line(const allot_advice *advice, uint32_t index,
                                     allot_advice_line *out);

/** Where the failing request, or the request of the peak, came from; "" if the file has no stacks.
 */
ALLOT_API const char *allot_advice_where(const allot_advice *advice);

/** The answer in a sentence, without the setting itself. Borrowed. */
ALLOT_API const char *allot_advice_headline(const allot_advice *advice);

/** Why this verdict: two or three sentences for people. Borrowed. */
ALLOT_API const char *allot_advice_reason(const allot_advice *advice);

/** Remarks: how far the recording goes, risks of the recommended setting, settings that have no
 * effect. One sentence or two each. Borrowed. */
ALLOT_API uint32_t allot_advice_note_count(const allot_advice *advice);
ALLOT_API const char *allot_advice_note(const allot_advice *advice, uint32_t index);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_ADVISE_H */
