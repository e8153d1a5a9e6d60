/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Results as text for people or as JSON for programs. JSON documents name their schema and version
 * ("allot.inspect/1"); docs/json.md describes them. Sizes in JSON are exact bytes.
 */
#ifndef ALLOT_REPORT_H
#define ALLOT_REPORT_H

#include <allot/advise.h>
#include <allot/base.h>
#include <allot/compare.h>
#include <allot/explain.h>
#include <allot/history.h>
#include <allot/replay.h>
#include <allot/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum allot_report_format {
    ALLOT_REPORT_TEXT = 0,
    ALLOT_REPORT_JSON = 1,
} allot_report_format;

/** Options of every report. Zero-initialise, then set struct_size. */
typedef struct allot_report_options {
    size_t struct_size;
    allot_report_format format;
    bool use_color;
    uint32_t width;                   /**< Columns of the terminal; 0: 100. */
    uint32_t top;                     /**< Rows of a ranking; 0: 10 in text, all in JSON. */
    uint64_t device_total;            /**< Bytes of the device, for out-of-memory; 0: not known. */
    const char *name;                 /**< Of the file, for headings; NULL for none. */
    const allot_lines_options *lines; /**< How to fold stacks; NULL for the defaults. */
} allot_report_options;

/**
 * What a trace holds: devices, segments, blocks, measures now and at peak, streams, pools,
 * fragmentation, settings with warnings.
 *
 * @param[in] device  ALLOT_NONE for all devices.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_report_inspect(const allot_trace *trace,
                                                            uint32_t device,
                                                            const allot_report_options *options,
                                                            const allot_sink *sink);

/**
 * Who holds memory at an event, and at an oom event why it failed.
 *
 * @param[in]  event    As allot_history_find() gives it.
 * @param[out] verdict  The verdict at an oom event, else untouched; may be NULL.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_report_explain(const allot_history *history,
                                                            uint32_t event, allot_group_by by,
                                                            const allot_report_options *options,
                                                            const allot_sink *sink,
                                                            allot_oom_verdict *verdict);

/** What grows from step to step. */
ALLOT_API ALLOT_NODISCARD allot_status allot_report_leaks(const allot_history *history,
                                                          const allot_leaks *leaks,
                                                          const allot_lines *lines,
                                                          const allot_report_options *options,
                                                          const allot_sink *sink);

/** What differs between two traces. */
ALLOT_API ALLOT_NODISCARD allot_status allot_report_diff(const allot_diff *diff,
                                                         const allot_report_options *options,
                                                         const allot_sink *sink);

/** A table over ranks. */
ALLOT_API ALLOT_NODISCARD allot_status allot_report_ranks(const allot_ranks *ranks,
                                                          const allot_report_options *options,
                                                          const allot_sink *sink);

/**
 * Whether the exact model did what was recorded: "N of N placements equal", or the first
 * difference with the events around it.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_report_check(const allot_trace *trace,
                                                          const allot_requests *requests,
                                                          const allot_replay_check_result *result,
                                                          const allot_report_options *options,
                                                          const allot_sink *sink);

/**
 * What replays gave: one in detail, several as a table.
 *
 * @param[in] results  [count], of the same requests.
 */
ALLOT_API ALLOT_NODISCARD allot_status
allot_report_replays(const allot_requests *requests, const allot_replay_options *conditions,
                     const allot_replay_result *const *results, uint32_t count,
                     const allot_report_options *options, const allot_sink *sink);

/** Which settings to use, and why. `options->top` counts rows below the present setting's. */
ALLOT_API ALLOT_NODISCARD allot_status allot_report_advice(const allot_advice *advice,
                                                           const allot_report_options *options,
                                                           const allot_sink *sink);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_REPORT_H */
