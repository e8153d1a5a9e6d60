/* SPDX-License-Identifier: MIT */
/**
 * allot compact: what compaction would gain. Of one state, rebuilt in a heap (compact_state.c), or
 * of a whole trace, which a heap serves without and with it (compact_simulate.c).
 *
 * Blocks of the file are taken as handles, which may move. Those of the program that was recorded
 * are pointers: the answer is what it would gain if it held its memory so.
 */
#ifndef CLI_COMPACTION_H
#define CLI_COMPACTION_H

#include <allot/compact.h>
#include <allot/replay.h>

#include "cli_report.h"

/** What the command line asks for, checked. */
typedef struct compact_request {
    const char *path;
    const char *strategy; /**< Of the heap. */
    bool is_virtual;      /**< Memory is mapped in granules, else in segments. */
    const char *when;     /**< When the heap compacts: compact= of the model. */
    double threshold;     /**< Of "auto" and "steps"; 0: the model's. */
    uint64_t step_ns;     /**< Of "steps": time of the copies of one; 0: the model's bytes. */
    uint64_t limit;       /**< 0: none. */
    const char *gpu;      /**< Whose rates hold. */
    uint64_t copy_rate;   /**< Bytes per second instead; 0: the GPU's. */
} compact_request;

/** Memory at a moment: segments one behind the other, and what is used of them. */
typedef struct compact_map {
    uint64_t size;      /**< Of all segments. */
    uint64_t *segments; /**< Where each begins. [segment_count] */
    uint32_t segment_count;
    allot_html_span *spans; /**< Used, by address; what touches is one. [span_count] */
    uint32_t span_count;
} compact_map;

/** Draw a heap; ALLOT_STATUS_HOST_MEMORY. Released with compact_map_fini(). */
ALLOT_NODISCARD allot_status compact_map_init(compact_map *map, allot_heap *heap);
void compact_map_fini(compact_map *map);

/** Share of [begin, end) that is used, both below map->size. O(spans). */
double compact_map_share(const compact_map *map, uint64_t begin, uint64_t end);

/** What a state would gain. */
typedef struct compact_state {
    uint32_t event;
    bool is_only; /**< There are no events: it is all that the file has. */
    uint64_t reserved;
    uint64_t active;
    uint32_t segment_count;
    uint64_t outside_count; /**< Blocks that lie in no known segment, and are left out. */
    uint64_t asked;         /**< What the request asked for, if this is an out-of-memory; else 0. */
    uint64_t device_free;   /**< What the device had left then. */
    allot_compact_forecast forecast;
    uint64_t copy_bytes_per_s;
    compact_map before;
    compact_map after;
} compact_state;

/** Rebuild the state after an event in a heap, and compact it. CLI_OK, else a message was printed.
 * Released with compact_state_fini(). */
cli_exit compact_state_init(compact_state *state, const compact_request *request,
                            const allot_history *history, uint32_t event);
void compact_state_fini(compact_state *state);

/** Ways to serve a trace. */
typedef enum compact_way {
    COMPACT_WITHOUT,
    COMPACT_TRIM, /**< Free memory goes back when COMPACT_WITH would compact, and nothing moves. */
    COMPACT_WITH,
    COMPACT_WAYS,
} compact_way;

typedef struct compact_simulation {
    allot_requests_info recorded;
    allot_replay_result *results[COMPACT_WAYS]; /**< COMPACT_TRIM may be NULL: it has no meaning. */
    uint64_t copy_ns;                           /**< Of all copies, by the rate asked for. */
    uint64_t copy_latency_ns;
    uint64_t copy_bytes_per_s;
    uint64_t event;      /**< Where compaction saves most beyond compact_baseline(); where it lets
                            requests      succeed, that of the largest compaction. */
    compact_map maps[2]; /**< Then: of compact_baseline(), and with compaction. */
} compact_simulation;

/**
 * Serve the requests of a trace in each way. CLI_OK, else a message was printed. Released with
 * compact_simulation_fini().
 *
 * @param[in] samples  Points of the timelines.
 */
cli_exit compact_simulation_init(compact_simulation *simulation, const compact_request *request,
                                 const allot_requests *requests);
void compact_simulation_fini(compact_simulation *simulation);

/** Means over the timeline: of the share of free bytes that is outside of the largest free range,
 * and of these bytes. */
double compact_mean_fragmentation(const allot_replay_result *result);
uint64_t compact_mean_stranded(const allot_replay_result *result);

/** What compaction is to be compared with: giving back alone, where that has a meaning. */
static inline compact_way compact_baseline_way(const compact_simulation *simulation)
{
    return simulation->results[COMPACT_TRIM] != NULL ? COMPACT_TRIM : COMPACT_WITHOUT;
}
static inline const allot_replay_result *compact_baseline(const compact_simulation *simulation)
{
    return simulation->results[compact_baseline_way(simulation)];
}

/** What compaction is compared with, in a sentence. */
static inline const char *compact_baseline_words(const compact_simulation *simulation)
{
    return compact_baseline_way(simulation) == COMPACT_TRIM ? "with giving back alone"
                                                            : "without it";
}

/** "without", "giving back", "compacting". */
const char *compact_way_name(compact_way way);

/** Figures that runs are compared by. X(text, kind, expression of `result`) */
#define COMPACT_FIGURE_LIST(X)                                                                     \
    X("peak reserved", COMPACT_SIZE, result->reserved_peak)                                        \
    X("peak in use", COMPACT_SIZE, result->active_peak)                                            \
    X("reserved at the end", COMPACT_SIZE, result->reserved_end)                                   \
    X("requests that fail", COMPACT_COUNT, result->oom_count)                                      \
    X("fragmentation, mean", COMPACT_PERCENT,                                                      \
      (uint64_t)(100 * compact_mean_fragmentation(result)))                                        \
    X("free in pieces, mean", COMPACT_SIZE, compact_mean_stranded(result))                         \
    X("driver calls", COMPACT_COUNT, result->driver_alloc_count + result->driver_free_count)       \
    X("driver time", COMPACT_TIME, result->cost_ns - result->copy_ns)                              \
    X("compactions", COMPACT_COUNT, result->compaction_count)                                      \
    X("bytes moved", COMPACT_SIZE, result->copy_bytes)

typedef enum compact_kind {
    COMPACT_SIZE,
    COMPACT_COUNT,
    COMPACT_PERCENT,
    COMPACT_TIME
} compact_kind;

enum { COMPACT_FIGURES = 10, COMPACT_FIGURE_MAX = 32 };

/** Name of a figure, 0 to COMPACT_FIGURES - 1, and its value as text, into the buffer. */
const char *compact_figure_name(unsigned figure);
const char *compact_figure_text(unsigned figure, const allot_replay_result *result,
                                char buffer[COMPACT_FIGURE_MAX]);

/** Whether the request that failed would have had room after compaction. */
static inline bool compact_would_fit(const compact_state *state)
{
    return state->forecast.largest_after >= state->asked ||
           state->forecast.releasable_after >= state->asked ||
           state->device_free >= state->asked - state->forecast.releasable_after;
}

/** Bytes that are free at a sample, and those of them outside of the largest range. */
static inline uint64_t compact_free(const allot_replay_sample *sample)
{
    return sample->reserved - sample->active;
}
static inline uint64_t compact_stranded(const allot_replay_sample *sample)
{
    const uint64_t size_free = compact_free(sample);
    return size_free > sample->free_largest ? size_free - sample->free_largest : 0;
}

/** Samples of compact_baseline() whose free memory is most in pieces, worst first, apart from one
 * another; returns how many. `out` has room for `max`. */
uint32_t compact_worst_samples(const compact_simulation *simulation, uint32_t max, uint32_t *out);

/** @name Words @{ */
enum { COMPACT_MOMENT_MAX = 64 };
/** "after event 12", into the buffer. */
const char *compact_moment_text(const compact_state *state, char *buffer, size_t size);
/** "1.50 ms", into the buffer. */
const char *compact_time_text(uint64_t ns, char *buffer, size_t size);
/** "+1.5 GiB", "-20.0 MiB", into the buffer. */
const char *compact_change_text(int64_t bytes, char *buffer, size_t size);
/** a - b, of sizes. */
int64_t compact_difference(uint64_t a, uint64_t b);
/** @} */

/** Both as text or JSON, where the report options say. */
cli_exit compact_report_state(const compact_request *request, const compact_state *state);
cli_exit compact_report_simulation(const compact_request *request,
                                   const compact_simulation *simulation);

/** The same as JSON, to a file. */
cli_exit compact_put_state(const compact_request *request, const compact_state *state, FILE *out);
cli_exit compact_put_simulation(const compact_request *request,
                                const compact_simulation *simulation, FILE *out);

/** And as pages, if one is asked for. */
cli_exit compact_page_state(const compact_request *request, const compact_state *state,
                            const allot_history *history);
cli_exit compact_page_simulation(const compact_request *request,
                                 const compact_simulation *simulation,
                                 const allot_history *history);

#endif /* CLI_COMPACTION_H */
