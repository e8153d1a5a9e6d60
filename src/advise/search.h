/* SPDX-License-Identifier: MIT */
/**
 * The search behind advice: candidates (settings), what replays said of each, and the order among
 * them. Candidates are made in stages (plan.c), replayed in parallel between stages (evaluate.c)
 * and ranked (rank.c). Strategies of allot's own are replayed likewise and kept apart
 * (strategies.c). What a stage makes depends only on results of earlier stages, never on the
 * order in which threads finished.
 */
#ifndef ALLOTI_ADVISE_SEARCH_H
#define ALLOTI_ADVISE_SEARCH_H

#include <allot/replay.h>

#include "advise/sizes.h"
#include "core/workers.h"

/** Smallest limits are searched in steps of this: the driver's granule. */
#define ALLOTI_ADVISE_STEP (UINT64_C(2) << 20)

/** What one replay said. Bytes unless said otherwise. */
typedef struct alloti_outcome {
    bool is_known; /**< The replay was made. */
    bool finishes;
    uint64_t stop_event; /**< First out-of-memory; valid unless `finishes`. */
    uint64_t peak_reserved;
    uint64_t peak_allocated;
    uint64_t driver_calls;
    uint64_t retries;
    uint64_t cost_ns;
} alloti_outcome;

/** Kinds of settings that the search turns; bits. */
typedef enum alloti_family {
    ALLOTI_FAMILY_EXPANDABLE = 1,
    ALLOTI_FAMILY_MAX_SPLIT = 2,
    ALLOTI_FAMILY_ROUNDUP = 4,
    ALLOTI_FAMILY_GC = 8,
    ALLOTI_FAMILY_NON_SPLIT = 16,
} alloti_family;

typedef struct alloti_candidate {
    allot_torch_conf conf;
    const char *model;    /**< Replayed instead of `conf`: one of `strategies`; else NULL. */
    char *text;           /**< Canonical settings string, or the model's; owned. */
    char *change;         /**< What differs from the present, in words; owned. */
    uint32_t families;    /**< alloti_family bits that are on. */
    uint32_t burden;      /**< Steps that it has to pay for, see rank.c. */
    bool is_wanted;       /**< Asked for by the caller: always shown in full. */
    bool is_sound;        /**< Nothing in it conflicts or does nothing: may be recommended. */
    alloti_outcome run;   /**< Within the limit. */
    alloti_outcome roomy; /**< Without a limit. */
    alloti_outcome tight; /**< At `need_high`, once that was replayed. */
    uint64_t need_low;    /**< It does not run at this limit, as far as is known. */
    uint64_t need_high;   /**< It runs at this limit; 0: not searched. */
    uint64_t need_sure;   /**< Smallest limit at which a replay did run. */
} alloti_candidate;

typedef struct alloti_search {
    const allot_requests *requests; /**< Borrowed. */
    allot_requests_info info;
    uint64_t limit;     /**< 0: none. */
    double fraction;    /**< 0: not set. */
    uint64_t live_peak; /**< No limit below this can do. */
    int64_t span_ns;    /**< Of the recording; 0 if unknown. */
    alloti_sizes sizes;
    alloti_workers workers;
    atomic_uint_fast64_t replay_count; /**< Relaxed: a sum. */
    alloti_candidate *candidates;      /**< [0] is the present setting. */
    uint64_t candidate_capacity;
    uint32_t candidate_count;
    alloti_candidate *strategies; /**< Not settings, never ranked. */
    uint32_t strategy_count;
} alloti_search;

void alloti_search_fini(alloti_search *search);

/* candidates.c */

/**
 * Add a candidate unless it is there already, conflicts in itself, or has settings without effect
 * that the present ones lack. `out` (may be NULL) receives its index, ALLOT_NONE if left out.
 * `is_wanted` candidates are never left out.
 */
ALLOT_NODISCARD allot_status alloti_search_add(alloti_search *search, const allot_torch_conf *conf,
                                               bool is_wanted, uint32_t *out);

/* evaluate.c */

/**
 * Replay every candidate from index `first` on within the limit, and find roughly how small a
 * limit each would bear.
 */
ALLOT_NODISCARD allot_status alloti_search_evaluate(alloti_search *search, uint32_t first);

/**
 * Fill in all of some candidates: a replay without limit and the smallest limit, replayed.
 *
 * @param[in] chosen  [count] indices.
 */
ALLOT_NODISCARD allot_status alloti_search_finish(alloti_search *search, const uint32_t *chosen,
                                                  uint32_t count);

/** Both at once for candidates that are in no search: [count]. */
ALLOT_NODISCARD allot_status alloti_search_measure(alloti_search *search,
                                                   alloti_candidate *candidates, uint32_t count);

/* strategies.c */

/** Make `strategies` and fill in all of them. */
ALLOT_NODISCARD allot_status alloti_search_strategies(alloti_search *search);

/* plan.c */

/** Make and evaluate all candidates but the first, which must have been evaluated. */
ALLOT_NODISCARD allot_status alloti_search_plan(alloti_search *search);

/* rank.c */

/**
 * Whether the present setting dies or is under pressure within the limit: smallest limits then
 * count, else peaks.
 */
bool alloti_search_is_by_need(const alloti_search *search);

/**
 * Order the candidates from the second on, best first.
 *
 * @param[in]  families  Only candidates that have one of these bits on; 0 for all.
 * @param[out] order     [candidate_count] indices; the first *count are set.
 */
ALLOT_NODISCARD allot_status alloti_search_rank(const alloti_search *search, uint32_t families,
                                                uint32_t *order, uint32_t *count);

/**
 * Bytes by which a candidate takes less than the present setting (negative: more): of the smallest
 * limit or of peak reserved, see alloti_search_is_by_need(). False if that is not known.
 */
bool alloti_search_saving(const alloti_search *search, const alloti_candidate *candidate,
                          int64_t *out);

/** What the limit leaves beside a candidate's smallest limit; 0 without a limit. */
uint64_t alloti_search_spare(const alloti_search *search, const alloti_candidate *candidate);

/** Whether a candidate runs with less to spare than two runs of one program may differ by. */
bool alloti_search_is_tight(const alloti_search *search, const alloti_candidate *candidate);

/** Whether the present setting runs within a known limit, without pressure and with room. */
bool alloti_search_fits(const alloti_search *search);

/** Whether a candidate has less of anything than the present setting: worth a row. */
bool alloti_search_is_better(const alloti_search *search, const alloti_candidate *candidate);

/** Whether a change to this candidate pays clearly, with no peak worse than at present. */
bool alloti_search_is_gain(const alloti_search *search, const alloti_candidate *candidate);

/** Whether what a candidate makes the driver do takes noticeably longer than at present. */
bool alloti_search_is_costly(const alloti_search *search, const alloti_candidate *candidate);

#endif /* ALLOTI_ADVISE_SEARCH_H */
