/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Memory traces: what an allocator did, and what it held when the trace was written.
 *
 * A trace has devices; a device has a list of events (columns of equal length) and the segments and
 * blocks it held at the end. Strings, frames, stacks, streams and pools are stored once and named
 * by 32-bit indices. A trace does not change after it was read: it is thread-safe to read from.
 *
 * What a file format cannot say is marked, not invented: see allot_trace_has().
 */
#ifndef ALLOT_TRACE_H
#define ALLOT_TRACE_H

#include <allot/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct allot_trace allot_trace;

/** Time of an event that has none. */
#define ALLOT_TIME_NONE INT64_MIN

/** File formats. X(name, value, command-line spelling, what it is) */
#define ALLOT_TRACE_FORMAT_LIST(X)                                                                 \
    X(AUTO, 0, "auto", "found out from the content")                                               \
    X(TORCH_PICKLE, 1, "torch-pickle", "PyTorch memory snapshot (pickle)")                         \
    X(TORCH_JSON, 2, "torch-json", "PyTorch memory snapshot as JSON")                              \
    X(CHROME, 3, "chrome", "Chrome trace: torch.profiler in, Perfetto out")                        \
    X(TIMELINE, 4, "timeline", "torch.profiler export_memory_timeline, raw JSON")                  \
    X(RMM_CSV, 5, "rmm-csv", "RAPIDS Memory Manager log")                                          \
    X(UMPIRE_JSON, 6, "umpire-json", "Umpire replay log, JSON lines")                              \
    X(UMPIRE_CSV, 7, "umpire-csv", "Umpire replay log, old CSV form")                              \
    X(VMA_JSON, 8, "vma-json", "Vulkan/D3D12 Memory Allocator statistics dump")                    \
    X(ALLOT, 9, "allot", "allot's own compact, lossless form")                                     \
    X(CSV, 10, "csv", "events as comma-separated values")                                          \
    X(FOLDED, 11, "folded", "folded stacks for flame graphs (output only)")

typedef enum allot_trace_format {
#define ALLOT_TRACE_FORMAT_ENUM(name, value, spelling, text) ALLOT_TRACE_FORMAT_##name = (value),
    ALLOT_TRACE_FORMAT_LIST(ALLOT_TRACE_FORMAT_ENUM)
#undef ALLOT_TRACE_FORMAT_ENUM
} allot_trace_format;

/** Spelling of a format, "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_trace_format_name(allot_trace_format format);

/** Format by its spelling; returns ALLOT_STATUS_INVALID with the list of spellings. Thread-safe. */
ALLOT_API ALLOT_NODISCARD allot_status allot_trace_format_parse(const char *name,
                                                                allot_trace_format *out);

/** Whether allot_trace_write() knows the format. Thread-safe. */
ALLOT_API bool allot_trace_format_is_writable(allot_trace_format format);

/** What an event says happened. X(name, value, PyTorch's spelling) */
#define ALLOT_EVENT_LIST(X)                                                                        \
    X(ALLOC, 0, "alloc")                                                                           \
    X(FREE_REQUESTED, 1, "free_requested")                                                         \
    X(FREE_COMPLETED, 2, "free_completed")                                                         \
    X(SEGMENT_ALLOC, 3, "segment_alloc")                                                           \
    X(SEGMENT_FREE, 4, "segment_free")                                                             \
    X(SEGMENT_MAP, 5, "segment_map")                                                               \
    X(SEGMENT_UNMAP, 6, "segment_unmap")                                                           \
    X(OOM, 7, "oom")                                                                               \
    X(SNAPSHOT, 8, "snapshot")                                                                     \
    X(USER_DEFINED, 9, "user_defined")                                                             \
    X(WORKSPACE_SNAPSHOT, 10, "workspace_snapshot")

typedef enum allot_event_kind {
#define ALLOT_EVENT_ENUM(name, value, spelling) ALLOT_EVENT_##name = (value),
    ALLOT_EVENT_LIST(ALLOT_EVENT_ENUM)
#undef ALLOT_EVENT_ENUM
} allot_event_kind;

#define ALLOT_EVENT_KIND_COUNT 11

/** PyTorch's spelling of an event, for example "segment_alloc"; "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_event_kind_name(allot_event_kind kind);

/** What memory is used for, where the file says so. X(name, value, spelling) */
#define ALLOT_CATEGORY_LIST(X)                                                                     \
    X(UNKNOWN, 0, "unknown")                                                                       \
    X(INPUT, 1, "input")                                                                           \
    X(TEMPORARY, 2, "temporary")                                                                   \
    X(ACTIVATION, 3, "activation")                                                                 \
    X(GRADIENT, 4, "gradient")                                                                     \
    X(AUTOGRAD_DETAIL, 5, "autograd_detail")                                                       \
    X(PARAMETER, 6, "parameter")                                                                   \
    X(OPTIMIZER_STATE, 7, "optimizer_state")

typedef enum allot_category {
#define ALLOT_CATEGORY_ENUM(name, value, spelling) ALLOT_CATEGORY_##name = (value),
    ALLOT_CATEGORY_LIST(ALLOT_CATEGORY_ENUM)
#undef ALLOT_CATEGORY_ENUM
} allot_category;

#define ALLOT_CATEGORY_COUNT 8

/** Spelling of a category, for example "optimizer_state"; "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_category_name(allot_category category);

typedef enum allot_block_state {
    ALLOT_BLOCK_INACTIVE = 0,     /**< Free for reuse. */
    ALLOT_BLOCK_ALLOCATED = 1,    /**< Handed out. */
    ALLOT_BLOCK_PENDING_FREE = 2, /**< Freed, waiting for a stream. */
} allot_block_state;

typedef enum allot_memory_kind {
    ALLOT_MEMORY_DEVICE = 0, /**< Memory of a GPU. */
    ALLOT_MEMORY_PINNED = 1, /**< Page-locked host memory that PyTorch's host allocator caches. */
    ALLOT_MEMORY_CPU = 2,    /**< Ordinary host memory. */
} allot_memory_kind;

/** Things a trace may be able to tell. */
typedef enum allot_trace_trait {
    ALLOT_TRACE_HAS_ADDRESSES,      /**< Events name the block they are about. */
    ALLOT_TRACE_HAS_SEGMENTS,       /**< The segments at the end are listed. */
    ALLOT_TRACE_HAS_SEGMENT_EVENTS, /**< At least one segment_alloc, free, map or unmap. */
    ALLOT_TRACE_HAS_TIMES,          /**< At least one event has a time. */
    ALLOT_TRACE_HAS_STACKS,         /**< At least one event, segment or block has a stack. */
    ALLOT_TRACE_HAS_CATEGORIES,     /**< Categories come from the file. */
    ALLOT_TRACE_HAS_REQUESTED,      /**< Sizes of events are the bytes asked for, not rounded. */
    ALLOT_TRACE_HAS_TOTALS,         /**< Events carry running totals (torch.profiler). */
} allot_trace_trait;

/** Whether the trace can tell this. Thread-safe. O(1). */
ALLOT_API bool allot_trace_has(const allot_trace *trace, allot_trace_trait trait);

/** Options of allot_trace_read(). Zero-initialise, then set struct_size. */
typedef struct allot_trace_read_options {
    size_t struct_size;
    allot_trace_format format;  /**< ALLOT_TRACE_FORMAT_AUTO: by content. */
    allot_progress_fn progress; /**< NULL for none. */
    void *progress_context;
} allot_trace_read_options;

/**
 * Read a trace file. Compression by gzip or zstd is recognised and undone.
 *
 * The file is untrusted: a pickle may hold plain data only. Host memory is bounded by the
 * uncompressed size: real traces take one to five times of it, the worst that a file can do is
 * about 65 times. The file is mapped where it can be, so nobody may shorten it while it is read.
 *
 * @param[in]  path     File to read, or a pipe; not NULL.
 * @param[in]  options  NULL for the defaults.
 * @param[out] out      The trace; untouched on failure.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_IO if the file cannot be read; ALLOT_STATUS_FORMAT if it is
 *         empty, truncated, corrupt, of no known kind or refused, with the byte or the line in the
 *         detail text; ALLOT_STATUS_VERSION for a newer version of allot's own format;
 *         ALLOT_STATUS_UNSUPPORTED if options ask for a format that is only written;
 *         ALLOT_STATUS_INVALID for options without a size; ALLOT_STATUS_HOST_MEMORY;
 *         ALLOT_STATUS_CANCELLED.
 *
 * The caller owns the result and releases it with allot_trace_destroy(). Thread-safe. O(file size).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_trace_read(const char *path,
                                                        const allot_trace_read_options *options,
                                                        allot_trace **out);

/**
 * The same from memory.
 *
 * @param[in] data  [size] Not kept; NULL is allowed where size is 0.
 * @param[in] name  Stands for the path in messages; not NULL.
 */
ALLOT_API ALLOT_NODISCARD allot_status
allot_trace_read_memory(const void *data, size_t size, const char *name,
                        const allot_trace_read_options *options, allot_trace **out);

/** Release a trace; NULL is allowed. */
ALLOT_API void allot_trace_destroy(allot_trace *trace);

/** Options of allot_trace_write(). Zero-initialise, then set struct_size. */
typedef struct allot_trace_write_options {
    size_t struct_size;
    allot_progress_fn progress; /**< NULL for none. */
    void *progress_context;
} allot_trace_write_options;

/**
 * Write a trace.
 *
 * @param[in] format  One of TORCH_PICKLE, CHROME, ALLOT, CSV, FOLDED, as
 *                    allot_trace_format_is_writable() tells.
 * @param[in] options NULL for the defaults.
 * @param[in] sink    Receives the bytes in order; not NULL.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_UNSUPPORTED for another format or for a trace that lacks
 *         what the format needs; ALLOT_STATUS_INVALID for options without a size;
 *         ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_CANCELLED; what the sink returned. After a failure
 *         the sink has received a part.
 *
 * Thread-safe. O(trace); CHROME and FOLDED also make the history of each device
 * (allot_history_create()).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_trace_write(const allot_trace *trace,
                                                         allot_trace_format format,
                                                         const allot_trace_write_options *options,
                                                         const allot_sink *sink);

/**
 * Format the trace was read from.
 *
 * This and all calls below are thread-safe, and O(1) unless they say otherwise; what they return is
 * borrowed: valid until allot_trace_destroy().
 */
ALLOT_API allot_trace_format allot_trace_get_format(const allot_trace *trace);

/** One device's part of a trace. */
typedef struct allot_trace_device {
    allot_memory_kind memory;
    uint32_t index;         /**< Number of the device among its kind, as in the file. */
    uint32_t segment_first; /**< Its segments are [segment_first, segment_first + segment_count). */
    uint32_t segment_count;
} allot_trace_device;

/** Devices in the trace, those with nothing in them included. */
ALLOT_API uint32_t allot_trace_device_count(const allot_trace *trace);

/** Description of device `device`, 0 to allot_trace_device_count() - 1. */
ALLOT_API const allot_trace_device *allot_trace_get_device(const allot_trace *trace,
                                                           uint32_t device);

/**
 * The device most questions are about: the one of memory kind DEVICE with the most events, else
 * with the most reserved memory, else the first; devices without events and segments come last.
 * ALLOT_NONE if there is no device.
 */
ALLOT_API uint32_t allot_trace_main_device(const allot_trace *trace);

/**
 * Events of one device, in the order in which they happened, as columns [count].
 * Borrowed: valid as long as the trace.
 */
typedef struct allot_events {
    uint64_t count;          /**< Below 2^32 - 1. */
    const uint8_t *kind;     /**< allot_event_kind. */
    const uint8_t *category; /**< allot_category; NULL if the file gives none. */
    const uint64_t *addr;    /**< Block or segment; free bytes of the device for OOM. */
    const uint64_t *size;    /**< Bytes; see ALLOT_TRACE_HAS_REQUESTED. */
    const int64_t
        *time_ns; /**< Nanoseconds since the epoch (or the trace's start), or ALLOT_TIME_NONE. */
    const uint32_t *stream; /**< allot_trace_stream(). */
    const uint32_t *pool;   /**< allot_trace_pool(), or ALLOT_NONE where the file is silent. */
    const uint32_t *stack;  /**< allot_trace_stack(), or ALLOT_NONE. */
    const uint32_t
        *context; /**< compile_context: string, or ALLOT_NONE; NULL if there is none at all. */
    const uint32_t
        *metadata; /**< user_metadata: string, or ALLOT_NONE; NULL if there is none at all. */
    const uint64_t *total_allocated; /**< Running totals after the event; NULL unless HAS_TOTALS. */
    const uint64_t *total_reserved;  /**< As above. */
} allot_events;

/** Events of device `device`, 0 to allot_trace_device_count() - 1. */
ALLOT_API void allot_trace_get_events(const allot_trace *trace, uint32_t device, allot_events *out);

/** A segment: what was taken from the driver in one piece (one mapped range in expandable mode). */
typedef struct allot_segment {
    uint64_t address;
    uint64_t total_size;
    uint64_t allocated_size; /**< Sum of allocated blocks. */
    uint64_t active_size;    /**< Allocated, or waiting for a stream. */
    uint64_t requested_size; /**< Sum over active blocks, before rounding. */
    uint32_t device;         /**< Index for allot_trace_get_device(). */
    uint32_t stream;         /**< allot_trace_stream(). */
    uint32_t pool;           /**< allot_trace_pool(), or ALLOT_NONE. */
    uint32_t stack;          /**< Stack that took it from the driver, or ALLOT_NONE. */
    uint32_t block_first;    /**< Its blocks are [block_first, block_first + block_count). */
    uint32_t block_count;
    bool is_large;      /**< Of the pool for requests over 1 MiB. */
    bool is_expandable; /**< Backed by pages that can be mapped and unmapped. */
} allot_segment;

/** A piece of a segment. */
typedef struct allot_block {
    uint64_t address;
    uint64_t size;
    uint64_t requested_size; /**< Before rounding; stale for inactive blocks. */
    uint32_t stack;          /**< Stack that allocated it, or ALLOT_NONE. */
    uint32_t context;        /**< compile_context: string, or ALLOT_NONE. */
    uint32_t metadata;       /**< user_metadata: string, or ALLOT_NONE. */
    uint8_t state;           /**< allot_block_state. */
    uint8_t category;        /**< allot_category. */
} allot_block;

/** All segments at the end of the trace, by device, then by address. [segment_count] */
ALLOT_API const allot_segment *allot_trace_segments(const allot_trace *trace, uint32_t *count);

/** All blocks, in the order of the segments. [block_count] */
ALLOT_API const allot_block *allot_trace_blocks(const allot_trace *trace, uint32_t *count);

/**
 * NUL-terminated string `id`, as the file spells it: not always UTF-8, and a NUL may be inside.
 *
 * @param[in]  id      0 to allot_trace_string_count() - 1; ALLOT_NONE gives "".
 * @param[out] length  Bytes without the last NUL; NULL allowed.
 */
ALLOT_API const char *allot_trace_string(const allot_trace *trace, uint32_t id, size_t *length);

/** Strings in the trace; ids are below it. */
ALLOT_API uint32_t allot_trace_string_count(const allot_trace *trace);

/** One level of a stack. */
typedef struct allot_frame {
    uint32_t name;     /**< Function: string. */
    uint32_t filename; /**< String. */
    uint32_t line;     /**< 0 where it is not known. */
    uint32_t fx;       /**< allot_trace_fx(), or ALLOT_NONE. */
} allot_frame;

/** What torch.fx tracing says of a frame: four strings, each ALLOT_NONE where absent. */
typedef struct allot_frame_fx {
    uint32_t node_op;
    uint32_t node_name;
    uint32_t node_target;
    uint32_t original_trace;
} allot_frame_fx;

/** Different frames in the trace; ids are below it. */
ALLOT_API uint32_t allot_trace_frame_count(const allot_trace *trace);

/** Frame `id`, 0 to allot_trace_frame_count() - 1. */
ALLOT_API const allot_frame *allot_trace_frame(const allot_trace *trace, uint32_t id);

/** What a frame's `fx` names; not ALLOT_NONE. */
ALLOT_API const allot_frame_fx *allot_trace_fx(const allot_trace *trace, uint32_t id);

/**
 * Frames of a stack, innermost first. [*count] frame indices; NULL if there are none. A stack may
 * be empty, which is not the same as ALLOT_NONE (the file gave no stack).
 *
 * @param[in] id  0 to allot_trace_stack_count() - 1; ALLOT_NONE gives none.
 */
ALLOT_API const uint32_t *allot_trace_stack(const allot_trace *trace, uint32_t id, uint32_t *count);

/** Different stacks in the trace; ids are below it. */
ALLOT_API uint32_t allot_trace_stack_count(const allot_trace *trace);

/** Raw value of stream `id`, 0 to allot_trace_stream_count() - 1; value 0 is the default stream. */
ALLOT_API uint64_t allot_trace_stream(const allot_trace *trace, uint32_t id);

/** Different streams in the trace; ids are below it. */
ALLOT_API uint32_t allot_trace_stream_count(const allot_trace *trace);

/** A private memory pool's identity; (0, 0) is the default pool. */
typedef struct allot_pool_id {
    uint64_t first;
    uint64_t second;
} allot_pool_id;

/** Identity of pool `id`, 0 to allot_trace_pool_count() - 1. */
ALLOT_API allot_pool_id allot_trace_pool(const allot_trace *trace, uint32_t id);

/** Different pools in the trace; ids are below it. */
ALLOT_API uint32_t allot_trace_pool_count(const allot_trace *trace);

/** A named range or mark in time. */
typedef struct allot_annotation {
    uint32_t name;   /**< String. */
    uint32_t device; /**< Index for allot_trace_get_device(), or ALLOT_NONE. */
    int64_t time_ns;
    bool is_start; /**< Begins a range; else ends it. */
} allot_annotation;

/** All annotations, in the order of the file. [*count] */
ALLOT_API const allot_annotation *allot_trace_annotations(const allot_trace *trace,
                                                          uint32_t *count);

typedef enum allot_setting_type {
    ALLOT_SETTING_BOOL,
    ALLOT_SETTING_INT,
    ALLOT_SETTING_FLOAT,
    ALLOT_SETTING_STRING,
    ALLOT_SETTING_NONE,
} allot_setting_type;

/**
 * One allocator setting as recorded. Settings inside a dict have the dict's key and a dot before
 * theirs: "roundup_power2_divisions.256".
 */
typedef struct allot_setting {
    uint32_t key; /**< String. */
    allot_setting_type type;
    int64_t integer; /**< BOOL (0, 1) and INT. */
    double number;   /**< FLOAT. */
    uint32_t string; /**< STRING. */
} allot_setting;

/** All recorded settings, in the order of the file. [*count]; 0 if the file has none. */
ALLOT_API const allot_setting *allot_trace_settings(const allot_trace *trace, uint32_t *count);

/** Setting by key, the first one if it repeats; NULL if it is not there. O(settings). */
ALLOT_API const allot_setting *allot_trace_find_setting(const allot_trace *trace, const char *key);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_TRACE_H */
