/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Comparing a trace with itself over time (leaks), with another trace (diff) and with the traces of
 * other ranks.
 */
#ifndef ALLOT_COMPARE_H
#define ALLOT_COMPARE_H

#include <allot/base.h>
#include <allot/explain.h>
#include <allot/history.h>
#include <allot/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where the steps that growth is measured over come from. X(name, value, spelling) */
#define ALLOT_STEPS_LIST(X)                                                                        \
    X(NONE, 0, "none")                                                                             \
    X(ANNOTATIONS, 1, "annotations")                                                               \
    X(RHYTHM, 2, "rhythm of the allocations")                                                      \
    X(GIVEN, 3, "given")

typedef enum allot_steps_source {
#define ALLOT_STEPS_ENUM(name, value, spelling) ALLOT_STEPS_##name = (value),
    ALLOT_STEPS_LIST(ALLOT_STEPS_ENUM)
#undef ALLOT_STEPS_ENUM
} allot_steps_source;

ALLOT_API const char *allot_steps_source_name(allot_steps_source source);

/** What one stack holds more of from step to step. */
typedef struct allot_leak {
    uint32_t stack; /**< allot_trace_stack(), or ALLOT_NONE. */
    uint32_t line;
    uint32_t count;         /**< Allocations that were never freed. */
    uint32_t grown_steps;   /**< Steps after which it held more than before. */
    uint64_t size;          /**< Bytes asked for during the trace and never freed. */
    uint64_t size_per_step; /**< Growth of the bytes asked for after the warm-up, per step. */
    uint32_t example;       /**< Its largest allocation that was never freed. */
    bool is_growing;        /**< It grew in nearly every step and hardly ever gave back. */
    bool is_leak;           /**< It is growing, and the steps are certain: no mere rhythm. */
} allot_leak;

typedef struct allot_leaks {
    allot_steps_source source;
    uint32_t step_count;   /**< Steps compared. */
    uint32_t warmup_count; /**< Steps before them, in which memory grows for good reason. */
    uint32_t *steps;       /**< Event at which each step ends. [step_count + warmup_count] */
    uint64_t *active;      /**< Active bytes at each. [step_count + warmup_count] */
    bool is_judged;        /**< There were steps enough to tell growth from chance. */
    uint32_t count;
    uint32_t growing_count; /**< Items with is_growing; they come first. */
    uint32_t leak_count;    /**< Items with is_leak: all that grow, or none after a rhythm. */
    allot_leak *items;      /**< By is_growing, then size_per_step, then size. */
} allot_leaks;

/** Options of allot_leaks_init(). Zero-initialise, then set struct_size. */
typedef struct allot_leaks_options {
    size_t struct_size;
    uint32_t step_count; /**< Cut the trace into so many equal steps; 0: find the steps. */
    uint64_t size_min;   /**< Ignore growth below so many bytes per step; 0: 1. */
} allot_leaks_options;

/** The caller releases the result with allot_leaks_fini(). O(allocations + steps log steps). */
ALLOT_API ALLOT_NODISCARD allot_status allot_leaks_init(const allot_history *history,
                                                        const allot_lines *lines,
                                                        const allot_leaks_options *options,
                                                        allot_leaks *out);
ALLOT_API void allot_leaks_fini(allot_leaks *leaks);

/** One line of code, category or setting in both traces. */
typedef struct allot_diff_row {
    const char *label; /**< Owned by the diff. */
    uint64_t size_a;
    uint64_t size_b;
    uint32_t count_a;
    uint32_t count_b;
} allot_diff_row;

typedef struct allot_diff_rows {
    uint32_t count;
    allot_diff_row *items; /**< By falling difference. */
} allot_diff_rows;

/** A setting that differs; NULL where a trace does not have it. */
typedef struct allot_diff_setting {
    const char *key;
    const char *value_a;
    const char *value_b;
} allot_diff_setting;

/** What is compared of one trace. */
typedef struct allot_diff_side {
    const char *name; /**< Borrowed. */
    allot_peak peak[ALLOT_MEASURE_COUNT];
    uint64_t end[ALLOT_MEASURE_COUNT];
    allot_moment_totals totals; /**< At the peak of allocated bytes. */
    uint32_t segment_count;     /**< At the end. */
    uint64_t event_count;
    uint64_t oom_count;
    bool
        is_unfinished; /**< Nothing was allocated after its last out-of-memory: it stopped there. */
} allot_diff_side;

typedef struct allot_diff {
    allot_diff_side a;
    allot_diff_side b;
    allot_diff_rows lines;      /**< At each side's peak. */
    allot_diff_rows categories; /**< At each side's peak. */
    allot_diff_rows segments;   /**< At the end, by size of segment. */
    uint32_t setting_count;
    allot_diff_setting *settings;
    /**
     * B's peak allocated or reserved is above A's by more than the tolerance, or B alone stopped at
     * an out-of-memory. Never if A alone did: the peaks of half a run say nothing.
     */
    bool is_worse;
    bool categories_inferred;
    void *text; /**< Owns the labels. */
} allot_diff;

/** Options of allot_diff_init(). Zero-initialise, then set struct_size. */
typedef struct allot_diff_options {
    size_t struct_size;
    const char *name_a;
    const char *name_b;
    double tolerance; /**< Share of A's peak that B may be above it; 0: 0.01. */
    const allot_lines_options *lines;
} allot_diff_options;

/** The caller releases the result with allot_diff_fini(). */
ALLOT_API ALLOT_NODISCARD allot_status allot_diff_init(const allot_history *a,
                                                       const allot_history *b,
                                                       const allot_diff_options *options,
                                                       allot_diff *out);
ALLOT_API void allot_diff_fini(allot_diff *diff);

/** One rank's figures. */
typedef struct allot_rank {
    const char *name; /**< Borrowed. */
    uint32_t device;  /**< Of its trace. */
    allot_peak peak[ALLOT_MEASURE_COUNT];
    uint64_t reserved_end;
    double fragmentation;   /**< External, at its peak of reserved bytes. */
    uint64_t free_at_peak;  /**< Reserved and not active, at its peak of reserved bytes. */
    uint64_t segment_count; /**< At the end. */
    uint64_t oom_count;
    bool is_allocated_outlier; /**< Its peak of allocated bytes stands out, see allot_ranks. */
    bool is_reserved_outlier;  /**< Its peak of reserved bytes does. */
    bool is_outlier;           /**< Either. */
} allot_rank;

/** Options and result of comparing ranks. */
typedef struct allot_ranks {
    uint32_t count;
    allot_rank *items;
    uint64_t median_peak;        /**< Of allocated bytes. */
    uint64_t deviation;          /**< Median absolute deviation of it. */
    uint64_t median_reserved;    /**< Of the peaks of reserved bytes. */
    uint64_t deviation_reserved; /**< Median absolute deviation of it. */
    uint32_t outlier_count; /**< Peaks more than 3.5 scaled deviations and 5 % off the median. */
} allot_ranks;

/** Compare. `histories` and `names` are [count]. The caller releases it with allot_ranks_fini(). */
ALLOT_API ALLOT_NODISCARD allot_status allot_ranks_init(const allot_history *const *histories,
                                                        const char *const *names, uint32_t count,
                                                        allot_ranks *out);
ALLOT_API void allot_ranks_fini(allot_ranks *ranks);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_COMPARE_H */
