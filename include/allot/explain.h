/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Who holds memory at a moment and why an allocation failed: stacks folded to the user's own line
 * of code, what memory is used for, sums by any of these, and the anatomy of an out-of-memory.
 */
#ifndef ALLOT_EXPLAIN_H
#define ALLOT_EXPLAIN_H

#include <allot/base.h>
#include <allot/history.h>
#include <allot/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Every stack of a trace folded to one line of code. */
typedef struct allot_lines allot_lines;

typedef enum allot_line_kind {
    ALLOT_LINE_USER,    /**< A line outside of libraries. */
    ALLOT_LINE_LIBRARY, /**< Only library frames: the innermost Python frame. */
    ALLOT_LINE_NATIVE,  /**< Only C++ frames: the innermost that is not of an unwinder. */
    ALLOT_LINE_EMPTY,   /**< A stack without frames: a thread of autograd, or C++ not recorded. */
    ALLOT_LINE_NONE,    /**< The file gives no stack. */
} allot_line_kind;

typedef struct allot_line {
    allot_line_kind kind;
    uint32_t filename; /**< String of the trace; ALLOT_NONE for EMPTY and NONE. */
    uint32_t name;     /**< Function: string; ALLOT_NONE likewise. */
    uint32_t line;     /**< 0 where it is not known. */
} allot_line;

/** Options of allot_lines_create(). Zero-initialise, then set struct_size. */
typedef struct allot_lines_options {
    size_t struct_size;
    /** Path prefixes of code that counts as the user's although it lies in a library folder. */
    const char *const *own_prefixes;
    size_t own_prefix_count;
} allot_lines_options;

/**
 * Fold all stacks: the innermost frame that is neither torch, an installed package, Python's own
 * library, generated code ("<frozen ...>", "<string>") nor C++. Windows paths are understood.
 *
 * The caller owns the result and releases it with allot_lines_destroy(); it borrows the trace.
 * O(frames + sum of stack lengths), once; asking is O(1). Thread-safe to read from.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_lines_create(const allot_trace *trace,
                                                          const allot_lines_options *options,
                                                          allot_lines **out);
ALLOT_API void allot_lines_destroy(allot_lines *lines);

/** Number of distinct lines; ids are below it. */
ALLOT_API uint32_t allot_lines_count(const allot_lines *lines);

/** Line of a stack (ALLOT_NONE allowed). */
ALLOT_API uint32_t allot_lines_of(const allot_lines *lines, uint32_t stack);

ALLOT_API const allot_line *allot_lines_get(const allot_lines *lines, uint32_t line);

/**
 * Text of a line: "train.py:88 (forward)", with as many folders as make the file's name unique in
 * the trace, or "(no stack recorded)". Borrowed from the lines.
 */
ALLOT_API const char *allot_lines_text(const allot_lines *lines, uint32_t line);

/** What each allocation is used for. */
typedef struct allot_categories allot_categories;

/**
 * Categories from the file if it has them, else inferred: memory that lives through several steps
 * and comes from moving a module is parameters; from an optimizer's file, optimizer state; memory
 * of a thread without Python frames that outlives the backward pass is gradients, else temporary;
 * memory of forward code that lives until the backward pass is activations; and so on.
 * docs/categories.md has the rules. Borrows the history. O(allocations + annotations).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_categories_create(const allot_history *history,
                                                               allot_categories **out);
ALLOT_API void allot_categories_destroy(allot_categories *categories);

/** Whether they are inferred; else they are the file's. */
ALLOT_API bool allot_categories_are_inferred(const allot_categories *categories);

/** Category of each allocation. [allocations]; borrowed. */
ALLOT_API const uint8_t *allot_categories_all(const allot_categories *categories);

/**
 * Where steps of training end: event of each boundary. [*count]; borrowed. From annotations of
 * optimizer steps or of the profiler, else from the rhythm of the allocations if each repetition
 * has a backward pass (else it may be that of layers), else none.
 */
ALLOT_API const uint32_t *allot_categories_steps(const allot_categories *categories,
                                                 uint32_t *count);

/** What to group by. X(name, value, spelling) */
#define ALLOT_GROUP_LIST(X)                                                                        \
    X(LINE, 0, "line")                                                                             \
    X(STACK, 1, "stack")                                                                           \
    X(CATEGORY, 2, "category")                                                                     \
    X(STREAM, 3, "stream")                                                                         \
    X(POOL, 4, "pool")

typedef enum allot_group_by {
#define ALLOT_GROUP_ENUM(name, value, spelling) ALLOT_GROUP_##name = (value),
    ALLOT_GROUP_LIST(ALLOT_GROUP_ENUM)
#undef ALLOT_GROUP_ENUM
} allot_group_by;

/** Spelling of a grouping; "unknown" for none. Thread-safe. */
ALLOT_API const char *allot_group_name(allot_group_by by);
/** Grouping by its spelling; ALLOT_STATUS_INVALID with the list of spellings. Thread-safe. */
ALLOT_API ALLOT_NODISCARD allot_status allot_group_parse(const char *name, allot_group_by *out);

/** Live allocations that share a line, a stack, ... */
typedef struct allot_group {
    uint32_t key;          /**< Line, stack, allot_category, stream or pool. */
    uint8_t category;      /**< That most of its bytes have. */
    double category_share; /**< Of its bytes that have this category, 0 to 1. */
    uint32_t count;        /**< Allocations. */
    uint32_t example;      /**< Its largest allocation. */
    uint64_t size;         /**< Bytes of blocks. */
    double share;          /**< Of all active bytes, 0 to 1. */
} allot_group;

typedef struct allot_groups {
    uint32_t count;
    allot_group *items; /**< By falling size. */
} allot_groups;

/**
 * Sum the live allocations of a moment.
 *
 * @param[in] lines       Needed for LINE; else may be NULL.
 * @param[in] categories  Needed for CATEGORY; NULL leaves allot_group.category UNKNOWN otherwise.
 * The caller releases the result with allot_groups_fini(). O(live log groups).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_groups_init(const allot_moment *moment,
                                                         allot_group_by by,
                                                         const allot_lines *lines,
                                                         const allot_categories *categories,
                                                         allot_groups *out);
ALLOT_API void allot_groups_fini(allot_groups *groups);

/** Why a request failed. X(name, value, spelling) */
#define ALLOT_OOM_LIST(X)                                                                          \
    X(FRAGMENTED, 0, "fragmented")                                                                 \
    X(EXHAUSTED, 1, "exhausted")                                                                   \
    X(SEPARATED, 2, "separated")                                                                   \
    X(OUTSIDE, 3, "outside")

/**
 * FRAGMENTED: enough is free in segments, in pieces. EXHAUSTED: all but little is in use.
 * SEPARATED: a range is large enough, but of another stream, private pool or size class.
 * OUTSIDE: most of the device is held by nobody in this trace: another process or library.
 */
typedef enum allot_oom_verdict {
#define ALLOT_OOM_ENUM(name, value, spelling) ALLOT_OOM_##name = (value),
    ALLOT_OOM_LIST(ALLOT_OOM_ENUM)
#undef ALLOT_OOM_ENUM
} allot_oom_verdict;

ALLOT_API const char *allot_oom_verdict_name(allot_oom_verdict verdict);

/**
 * A segment that would go back to the driver if its few live blocks were not there, or (only the
 * first pin, see allot_oom.pin_is_range) a range inside a segment that would be free.
 */
typedef struct allot_pin {
    uint32_t segment;     /**< Of the moment. */
    uint32_t block_first; /**< Blocks of the moment that make the range, free ones included. */
    uint32_t block_count;
    uint32_t live_count; /**< Blocks that are in the way. */
    uint64_t live_size;
    uint64_t free_size; /**< Free bytes of the range. */
    uint64_t size;      /**< The range without them: free_size + live_size. */
} allot_pin;

/** The live blocks of one line of code that pin segments. */
typedef struct allot_pin_line {
    uint32_t line;
    uint32_t block_count;
    uint64_t size;      /**< Bytes of these blocks. */
    uint64_t kept_size; /**< Free bytes of the segments or the range that they are in. */
} allot_pin_line;

typedef struct allot_oom {
    uint32_t event;
    uint64_t requested;   /**< As the allocator rounded it. */
    uint64_t device_free; /**< What the driver had left. */
    uint32_t stream;
    uint32_t pool;
    allot_moment_totals totals;
    uint64_t usable_free;    /**< Free in segments this request may use. */
    uint64_t usable_largest; /**< Largest range of these. */
    uint64_t other_stream_free;
    uint64_t other_pool_free;    /**< In private pools, or in the default one if asked from one. */
    uint64_t other_class_free;   /**< In segments for small requests, if this one is large. */
    uint64_t other_largest;      /**< Largest range that may not be used. */
    uint64_t compacted_largest;  /**< Largest range if live blocks could be packed. */
    uint64_t expandable_largest; /**< If free pages could be mapped anew in one range. */
    uint64_t pin_count;
    allot_pin *pins; /**< By falling free bytes per live byte. */
    uint64_t pin_line_count;
    allot_pin_line *pin_lines; /**< The lines behind the pins that matter, by kept_size. */
    uint32_t
        pin_needed; /**< The first pins whose removal makes room for the request; 0: none does. */
    bool pin_is_range;     /**< The first pin is a range inside a segment, not a whole one. */
    bool is_capped;        /**< The driver had enough: a limit of the process stood in the way. */
    uint64_t device_total; /**< Bytes of the device, 0 where nobody said. */
    uint64_t outside;      /**< Of these, held by others; 0 without device_total. */
    allot_oom_verdict verdict;
} allot_oom;

/**
 * Explain an oom event. The moment must be the state at that event.
 *
 * @return ALLOT_STATUS_INVALID if the moment's event is no oom; ALLOT_STATUS_HOST_MEMORY.
 * The caller releases the result with allot_oom_fini(). O(blocks log blocks).
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_oom_init(const allot_moment *moment,
                                                      const allot_lines *lines, allot_oom *out);
ALLOT_API void allot_oom_fini(allot_oom *oom);

/**
 * Tell how large the device is, which traces do not: what neither the allocator held nor the driver
 * had free is then known to be outside, and the verdict may become OUTSIDE.
 */
ALLOT_API void allot_oom_set_device_total(allot_oom *oom, uint64_t device_total);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_EXPLAIN_H */
