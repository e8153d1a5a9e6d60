/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Results as one self-contained HTML file: memory over time by code line, stack and category, the
 * address map over time, segments at any moment, and what `advise` or `diff` found. The file needs
 * no network, runs no code but its own (its Content-Security-Policy names it by hash) and treats
 * every name of the trace as text. docs/html.md describes the file.
 *
 * All functions: thread-safe, the arguments are only read. O(events log events). The page's size
 * depends on allot_html_options.block_max, not on the trace: about 8 bytes per block kept.
 * ALLOT_STATUS_OK; ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_CANCELLED; what the sink returned.
 */
#ifndef ALLOT_HTML_H
#define ALLOT_HTML_H

#include <allot/advise.h>
#include <allot/base.h>
#include <allot/compare.h>
#include <allot/explain.h>
#include <allot/history.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options of every page. Zero-initialise, then set struct_size. */
typedef struct allot_html_options {
    size_t struct_size;
    const char *name;   /**< Of the file, for the title; folders are left out. NULL for none. */
    const char *name_b; /**< Of the second file (diff); NULL for none. */
    uint64_t limit; /**< Bytes that the device can give, drawn as a line; 0: what was held and free
                       at the trace's last out-of-memory, or no line. */
    uint32_t block_max; /**< Blocks drawn one by one, the largest ones; smaller ones are shown as
                             sums. 0: 300,000. */
    const allot_lines_options *lines; /**< How to fold stacks; NULL for the defaults. */
    allot_progress_fn progress;       /**< NULL for none. */
    void *progress_context;
} allot_html_options;

/** What a device did and held. */
ALLOT_API ALLOT_NODISCARD allot_status allot_html_inspect(const allot_history *history,
                                                          const allot_html_options *options,
                                                          const allot_sink *sink);

/**
 * The same, opened at an event, with the reasons if that is an out-of-memory.
 *
 * @param[in] event  As allot_history_find() gives it.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_html_explain(const allot_history *history,
                                                          uint32_t event,
                                                          const allot_html_options *options,
                                                          const allot_sink *sink);

/**
 * The same with the advice: its table, and reserved bytes over time under the recorded setting and
 * the best others. The advice must be of the history's trace and device.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_html_advise(const allot_history *history,
                                                         const allot_advice *advice,
                                                         const allot_html_options *options,
                                                         const allot_sink *sink);

/** Two devices one above the other, with the tables of what differs. */
ALLOT_API ALLOT_NODISCARD allot_status allot_html_diff(const allot_history *a,
                                                       const allot_history *b,
                                                       const allot_diff *diff,
                                                       const allot_html_options *options,
                                                       const allot_sink *sink);

/** One row of a table: all three are shown as text; NULL is "". */
typedef struct allot_html_fact {
    const char *name;   /**< "headroom" */
    const char *value;  /**< "1.2 GiB" */
    const char *remark; /**< What there is to say about it. */
} allot_html_fact;

/** A table of a page that the caller tells. Without facts it is left out. */
typedef struct allot_html_facts {
    const char *title;
    const allot_html_fact *facts; /**< [count] */
    uint32_t count;
    bool is_first; /**< It stands above the chart; else below. */
} allot_html_facts;

/** A line over the events of the history: bytes from each event on. */
typedef struct allot_html_series {
    const char *name;
    const uint64_t *events; /**< [count] Ascending. */
    const uint64_t *bytes;  /**< [count] */
    uint32_t count;
} allot_html_series;

/** Bytes [begin, end). */
typedef struct allot_html_span {
    uint64_t begin;
    uint64_t end;
} allot_html_span;

/** A picture of memory: segments one behind the other, and what is used of them. */
typedef struct allot_html_map {
    const char *title;
    uint64_t size;                /**< Of all segments. */
    const uint64_t *segments;     /**< [segment_count] Where each begins; ascending. */
    const allot_html_span *spans; /**< [span_count] Used; ascending, apart from one another. */
    uint32_t segment_count;
    uint32_t span_count;
} allot_html_map;

/** What the caller has to tell beside a history: the verdict on a run, its figures. Borrowed. */
typedef struct allot_html_story {
    size_t struct_size;
    const char *verb;             /**< What made the page: "dryrun". */
    const char *level;            /**< "good", "warn", "bad" or "info". */
    const char *headline;         /**< The answer. */
    const char *const *sentences; /**< [sentence_count] What follows it. */
    uint32_t sentence_count;
    const allot_html_facts *tables; /**< [table_count] */
    uint32_t table_count;
    uint32_t series_count;
    const char *series_title;        /**< Of the chart of all series; NULL for none. */
    const allot_html_series *series; /**< [series_count] Not used without a history. */
    const allot_html_map *maps;      /**< [map_count] Pictures to one scale. */
    uint32_t map_count;
} allot_html_story;

/**
 * A page that the caller tells, with the chart and the tables of a history below it.
 *
 * @param[in] history  NULL: nothing was recorded; the page is the story alone.
 * @param[in] event    Where it opens, as allot_history_find() gives it; not used without a history.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_html_tell(const allot_history *history, uint32_t event,
                                                       const allot_html_story *story,
                                                       const allot_html_options *options,
                                                       const allot_sink *sink);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_HTML_H */
