/* SPDX-License-Identifier: MIT */
/**
 * @file
 * The recorded history of one device as a table: which allocation lived from which event to which,
 * which segments were held, how much memory was in use after each event, and the whole state at any
 * event.
 *
 * A trace lists events; people ask about allocations. An allocation here is one use of an address:
 * the n-th time that an address was handed out. What happened before the trace began (a ring buffer
 * keeps the last events only) is rebuilt from the frees of addresses nobody allocated and from the
 * blocks that are active at the end without having been allocated.
 *
 * "At event e" always means after event e; ALLOT_NONE means before the first event.
 */
#ifndef ALLOT_HISTORY_H
#define ALLOT_HISTORY_H

#include <allot/base.h>
#include <allot/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct allot_history allot_history;

/** Options of allot_history_create(). Zero-initialise, then set struct_size. */
typedef struct allot_history_options {
    size_t struct_size;
    allot_progress_fn progress; /**< NULL for none. */
    void *progress_context;
} allot_history_options;

/**
 * Build the history of one device.
 *
 * @param[in]  trace    Borrowed: must outlive the history.
 * @param[in]  device   0 to allot_trace_device_count() - 1.
 * @param[in]  options  NULL for the defaults.
 * @param[out] out      The history; untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for a device that is not there;
 *         ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_CANCELLED.
 * The caller owns the result and releases it with allot_history_destroy(). A history does not
 * change: it is thread-safe to read from. O(events log events).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_history_create(const allot_trace *trace,
                                                            uint32_t device,
                                                            const allot_history_options *options,
                                                            allot_history **out);

/** Release a history; NULL is allowed. */
ALLOT_API void allot_history_destroy(allot_history *history);

ALLOT_API const allot_trace *allot_history_trace(const allot_history *history);
ALLOT_API uint32_t allot_history_device(const allot_history *history);

/**
 * All allocations as columns [count]: first those from before the trace, then by alloc event.
 * Borrowed from the history.
 */
typedef struct allot_allocations {
    uint32_t count;
    uint32_t initial_count;      /**< The first ones have no alloc event. */
    const uint64_t *addr;        /**< 0 where the trace has no addresses. */
    const uint64_t *size;        /**< Bytes of the block: rounded, an unsplit rest included. */
    const uint64_t *requested;   /**< Bytes asked for. */
    const uint32_t *alloc_event; /**< ALLOT_NONE: before the trace. */
    const uint32_t *free_requested_event; /**< Its owner let go; ALLOT_NONE: not in the trace. */
    const uint32_t *free_completed_event; /**< Reusable again; ALLOT_NONE: live at the end. */
    const uint32_t *use;                  /**< n-th use of the address, from 0. */
    const uint32_t *stack;                /**< allot_trace_stack(), or ALLOT_NONE. */
    const uint32_t *stream;
    const uint32_t *pool;     /**< Recorded, or of its segment; ALLOT_NONE: nobody says. */
    const uint32_t *metadata; /**< user_metadata: string, or ALLOT_NONE. */
    const uint8_t *category;  /**< allot_category as in the file. */
} allot_allocations;

ALLOT_API void allot_history_get_allocations(const allot_history *history, allot_allocations *out);

/** Allocation that an event is about (alloc, free_requested, free_completed), else ALLOT_NONE. */
ALLOT_API uint32_t allot_history_allocation_of(const allot_history *history, uint32_t event);

/**
 * Memory held from the driver over time: one rectangle of addresses times events. In expandable
 * mode each mapped range is one; unmapping a part of it ends it and begins one for each rest.
 */
typedef struct allot_held {
    uint64_t address;
    uint64_t size;
    uint32_t begin_event; /**< ALLOT_NONE: before the trace. */
    uint32_t end_event;   /**< ALLOT_NONE: held at the end. */
    uint32_t stream;
    uint32_t pool;  /**< Recorded, or the device's only one; ALLOT_NONE: nobody says. */
    uint32_t stack; /**< That took it from the driver, or ALLOT_NONE. */
    bool is_large;  /**< Of the pool for requests over 1 MiB. */
    bool is_expandable;
    bool is_rest; /**< Goes on after a part was unmapped: nothing new came from the driver. */
} allot_held;

/** [*count], by begin_event, those from before the trace first. Borrowed from the history. */
ALLOT_API const allot_held *allot_history_held(const allot_history *history, uint32_t *count);

/** What can be measured after each event. X(name, value, spelling) */
#define ALLOT_MEASURE_LIST(X)                                                                      \
    X(ALLOCATED, 0, "allocated")                                                                   \
    X(ACTIVE, 1, "active")                                                                         \
    X(REQUESTED, 2, "requested")                                                                   \
    X(RESERVED, 3, "reserved")

typedef enum allot_measure {
#define ALLOT_MEASURE_ENUM(name, value, spelling) ALLOT_MEASURE_##name = (value),
    ALLOT_MEASURE_LIST(ALLOT_MEASURE_ENUM)
#undef ALLOT_MEASURE_ENUM
} allot_measure;

#define ALLOT_MEASURE_COUNT 4

/** Spelling of a measure; "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_measure_name(allot_measure measure);

/**
 * One measure after each event, [*count] where *count is the number of events. Borrowed.
 * `initial` (may be NULL) receives its value before the first event.
 */
ALLOT_API const uint64_t *allot_history_timeline(const allot_history *history,
                                                 allot_measure measure, uint64_t *initial,
                                                 uint64_t *count);

/** Value of a measure at an event (ALLOT_NONE: before the first). O(1). */
ALLOT_API uint64_t allot_history_value(const allot_history *history, allot_measure measure,
                                       uint32_t event);

/** Highest value of a measure, and the first event that reaches it. */
typedef struct allot_peak {
    uint64_t size;
    uint32_t event; /**< ALLOT_NONE: it was there before the first event. */
} allot_peak;

ALLOT_API allot_peak allot_history_peak(const allot_history *history, allot_measure measure);

/** Oddities of a trace that were dealt with; what each one means for the figures. */
typedef struct allot_history_counts {
    uint64_t initial_freed;   /**< Frees of blocks from before the trace (a ring's start). */
    uint64_t initial_live;    /**< Blocks active at the end that no event allocated. */
    uint64_t completed_only;  /**< free_completed without free_requested. */
    uint64_t realloc_of_live; /**< Allocations at an address still in use: a free was not logged. */
    uint64_t alloc_lost;      /**< Allocated, never freed, yet not active at the end. */
    uint64_t matched_by_size; /**< Frees matched by size, as the trace has no addresses. */
    uint64_t unmatched;       /**< Frees without address and without an allocation of that size. */
    uint64_t held_unmatched;  /**< segment_alloc or map over memory already held. */
    uint64_t oom;             /**< oom events. */
} allot_history_counts;

ALLOT_API void allot_history_get_counts(const allot_history *history, allot_history_counts *out);

/** Sums of one stream or one pool. */
typedef struct allot_share {
    uint32_t id;            /**< allot_trace_stream() or allot_trace_pool(); ALLOT_NONE: unknown. */
    uint64_t active_end;    /**< Bytes at the end. */
    uint64_t reserved_end;  /**< Bytes at the end. */
    allot_peak active_peak; /**< Its own peak. */
    allot_peak reserved_peak;
    uint64_t allocation_count;
} allot_share;

/** Sums by stream, by falling active_peak. [*count]; borrowed. */
ALLOT_API const allot_share *allot_history_streams(const allot_history *history, uint32_t *count);
/** Sums by private pool, by falling active_peak. [*count]; borrowed. */
ALLOT_API const allot_share *allot_history_pools(const allot_history *history, uint32_t *count);

/**
 * Event that a text names: "peak" (first event at the peak of allocated bytes), "peak:reserved" (or
 * another measure), "oom" (the last one), "oom:2" (the second), "end", "start" (before the first
 * event), "event:123" or "123", a time after the trace's first event "+1.5s" (or ms, us), or
 * microseconds since the epoch "us:1796045624017894".
 *
 * @return ALLOT_STATUS_INVALID for a text of no such form; ALLOT_STATUS_NOT_FOUND for an event that
 *         the trace does not have, with what it has. ALLOT_NONE in *out is "start".
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_history_find(const allot_history *history,
                                                          const char *text, uint32_t *out);

/** Events of one kind: the n-th (from 0), ALLOT_NONE if there are not so many. O(events). */
ALLOT_API uint32_t allot_history_nth_event(const allot_history *history, allot_event_kind kind,
                                           uint32_t n);

/** The whole state of the allocator at one event. */
typedef struct allot_moment allot_moment;

/** A piece of a segment at a moment: a live allocation or a free range. */
typedef struct allot_moment_block {
    uint64_t address;
    uint64_t size;
    uint32_t allocation; /**< Row of allot_allocations; ALLOT_NONE: free. */
    uint32_t segment;    /**< Index in allot_moment_segments(). */
    bool is_pending;     /**< Let go, but waiting for a stream. */
} allot_moment_block;

/** A segment at a moment; mapped ranges that touch are one. */
typedef struct allot_moment_segment {
    uint64_t address;
    uint64_t size;
    uint64_t active;
    uint64_t free_size;
    uint64_t free_largest;
    uint32_t block_first; /**< Its blocks are [block_first, block_first + block_count). */
    uint32_t block_count; /**< Free ranges included. */
    uint32_t live_count;  /**< Blocks that hold an allocation. */
    uint32_t stream;
    uint32_t pool;
    uint32_t stack;
    bool is_large;
    bool is_expandable;
} allot_moment_segment;

/** Sums of a moment. */
typedef struct allot_moment_totals {
    uint32_t event;
    uint64_t allocated;
    uint64_t active;
    uint64_t requested;
    uint64_t reserved;
    uint64_t free_size;           /**< Reserved and not active. */
    uint64_t free_largest;        /**< Largest single free range. */
    uint64_t inactive_split_size; /**< Free ranges in segments that hold something. */
    uint32_t inactive_split_count;
    uint32_t segment_count;
    uint32_t allocation_count;
    uint32_t outside_count; /**< Live allocations that lie in no known segment. */
    double fragmentation;   /**< External: 1 - free_largest / free_size; 0 if nothing is free. */
} allot_moment_totals;

/**
 * State at an event, rebuilt from the tables: also the state at an out-of-memory although the
 * snapshot was taken after the exception had unwound.
 *
 * @param[in] event  0 to the last event, or ALLOT_NONE for the state before the first.
 * @return ALLOT_STATUS_INVALID for an event that is not there; ALLOT_STATUS_HOST_MEMORY. The caller
 *         owns the result and releases it with allot_moment_destroy(); it borrows the history.
 *         O(allocations).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_history_at(const allot_history *history,
                                                        uint32_t event, allot_moment **out);

/** Release a moment; NULL is allowed. */
ALLOT_API void allot_moment_destroy(allot_moment *moment);

ALLOT_API const allot_history *allot_moment_history(const allot_moment *moment);
ALLOT_API void allot_moment_get_totals(const allot_moment *moment, allot_moment_totals *out);
/** By address. [*count]; borrowed. */
ALLOT_API const allot_moment_segment *allot_moment_segments(const allot_moment *moment,
                                                            uint32_t *count);
/** By segment, then address. [*count]; borrowed. */
ALLOT_API const allot_moment_block *allot_moment_blocks(const allot_moment *moment,
                                                        uint32_t *count);
/** Rows of all live allocations, by address, those outside of segments included. Borrowed. */
ALLOT_API const uint32_t *allot_moment_allocations(const allot_moment *moment, uint32_t *count);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_HISTORY_H */
