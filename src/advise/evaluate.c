/* SPDX-License-Identifier: MIT */
/*
 * Replays of candidates, in parallel. A candidate is looked at in two depths: roughly, to compare
 * many (one replay within the limit, then a few halvings of the range between what is live at the
 * peak and the limit), and in full for those that are shown.
 *
 * Nothing says that a setting that runs within some limit runs within every larger one: under
 * pressure the allocator gives back more and then places otherwise. The smallest limit is therefore
 * the end of a bisection, and is only ever a limit at which a replay did run.
 */
#include <string.h>

#include "advise/search.h"
#include "core/size_math.h"

enum { ROUGH_HALVINGS = 4, RAISE_PARTS = 32 };

/** Replays report progress to this: a search that has ended wants no more of them. */
static bool goes_on(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage;
    (void)done;
    (void)total;
    return !atomic_load_explicit((const atomic_bool *)context, memory_order_relaxed);
}

/** One replay of one candidate; limit 0 for none. */
static allot_status replay(alloti_search *search, const alloti_candidate *candidate, uint64_t limit,
                           const atomic_bool *is_ended, alloti_outcome *out)
{
    const allot_replay_options options = {
        .struct_size = sizeof options,
        .model = candidate->model,
        .conf = candidate->model == NULL ? &candidate->conf : NULL,
        .limit = limit,
        .fraction = limit == 0 ? 0.0 : search->fraction,
        .progress = goes_on,
        .progress_context = (void *)(uintptr_t)is_ended,
    };
    allot_replay_result *result = NULL;
    const allot_status status = allot_replay_run(search->requests, &options, &result);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    atomic_fetch_add_explicit(&search->replay_count, 1, memory_order_relaxed);
    *out = (alloti_outcome){
        .is_known = true,
        .finishes = result->has_finished,
        .stop_event = result->oom_event,
        .peak_reserved = result->reserved_peak,
        .peak_allocated = result->allocated_peak,
        .driver_calls = result->driver_alloc_count + result->driver_free_count,
        .retries = result->retry_count,
        .cost_ns = result->cost_ns,
    };
    allot_replay_result_destroy(result);
    return ALLOT_STATUS_OK;
}

/** Round a limit up to a step; what cannot be rounded is no limit worth searching. */
static uint64_t step_up(uint64_t size)
{
    uint64_t rounded = 0;
    return alloti_align_up(size, ALLOTI_ADVISE_STEP, &rounded) ? rounded : size;
}

/** Limit of the device that allows `bytes`, given the share that may be used. */
static uint64_t limit_for(const alloti_search *search, uint64_t bytes)
{
    /* UINT64_MAX is no limit. */
    const uint64_t most = alloti_align_down(UINT64_MAX, ALLOTI_ADVISE_STEP);
    const uint64_t limit =
        search->fraction > 0.0 ? alloti_to_u64((double)bytes / search->fraction) : bytes;
    return limit < most ? limit : most;
}

/** Begin the search for the smallest limit from a run that finished. */
static void need_begin(const alloti_search *search, alloti_candidate *candidate,
                       const alloti_outcome *ran, uint64_t ran_limit)
{
    const uint64_t least = limit_for(search, search->live_peak);
    candidate->need_low = alloti_align_down(least == 0 ? 0 : least - 1, ALLOTI_ADVISE_STEP);
    candidate->need_sure = ran_limit;
    candidate->need_high = ran_limit;
    /* Without pressure nothing depends on the limit: the same run fits into its own peak. */
    const uint64_t own = step_up(limit_for(search, ran->peak_reserved));
    if (ran->retries == 0 && (ran_limit == 0 || own < ran_limit)) {
        candidate->need_high = own;
    }
    if (candidate->need_low >= candidate->need_high) {
        candidate->need_low = candidate->need_high - ALLOTI_ADVISE_STEP;
    }
}

/** Replay the middle of the range that is left. */
static allot_status need_halve(alloti_search *search, alloti_candidate *candidate,
                               const atomic_bool *is_ended)
{
    /* The upper end is no whole number of steps where it is a limit that was given. */
    const uint64_t width = candidate->need_high - candidate->need_low;
    const uint64_t half = alloti_align_down(width / 2, ALLOTI_ADVISE_STEP);
    const uint64_t middle = candidate->need_low + (half == 0 ? ALLOTI_ADVISE_STEP : half);
    alloti_outcome outcome = {.is_known = false};
    const allot_status status = replay(search, candidate, middle, is_ended, &outcome);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (!outcome.finishes) {
        candidate->need_low = middle;
        return ALLOT_STATUS_OK;
    }
    candidate->need_high = middle;
    candidate->need_sure = middle;
    candidate->tight = outcome;
    return ALLOT_STATUS_OK;
}

static bool need_is_open(const alloti_candidate *candidate)
{
    return candidate->need_high - candidate->need_low > ALLOTI_ADVISE_STEP;
}

/**
 * It did not run at `need_high` after all. Up to the limit at which it did, or, if it only ever ran
 * without a limit (the size of the device decides how much address range is reserved), further.
 */
static void need_raise(alloti_candidate *candidate)
{
    candidate->need_low = candidate->need_high;
    if (candidate->need_sure > candidate->need_high) {
        candidate->need_high = candidate->need_sure;
    } else {
        candidate->need_high =
            step_up(candidate->need_high + candidate->need_high / RAISE_PARTS + 1);
    }
}

/** Close the range, and see to it that its upper end is a limit at which a replay ran. */
static allot_status need_close(alloti_search *search, alloti_candidate *candidate,
                               const atomic_bool *is_ended)
{
    for (;;) {
        while (need_is_open(candidate)) {
            const allot_status status = need_halve(search, candidate, is_ended);
            if (status != ALLOT_STATUS_OK) {
                return status;
            }
        }
        if (candidate->tight.is_known && candidate->need_sure == candidate->need_high) {
            return ALLOT_STATUS_OK;
        }
        alloti_outcome outcome = {.is_known = false};
        const allot_status status =
            replay(search, candidate, candidate->need_high, is_ended, &outcome);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
        if (outcome.finishes) {
            candidate->need_sure = candidate->need_high;
            candidate->tight = outcome;
        } else {
            need_raise(candidate);
        }
    }
}

/** The replay within the limit, and roughly how small a limit it would bear. */
static allot_status evaluate_one(alloti_search *search, alloti_candidate *candidate,
                                 const atomic_bool *is_ended)
{
    allot_status status = replay(search, candidate, search->limit, is_ended, &candidate->run);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (search->limit == 0) {
        candidate->roomy = candidate->run;
        return ALLOT_STATUS_OK;
    }
    if (!candidate->run.finishes) {
        return ALLOT_STATUS_OK;
    }
    need_begin(search, candidate, &candidate->run, search->limit);
    for (int i = 0; i < ROUGH_HALVINGS && need_is_open(candidate); i++) {
        status = need_halve(search, candidate, is_ended);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    return ALLOT_STATUS_OK;
}

/** The replay without limit and the smallest limit. */
static allot_status finish_one(alloti_search *search, alloti_candidate *candidate,
                               const atomic_bool *is_ended)
{
    if (!candidate->roomy.is_known) {
        const allot_status status = replay(search, candidate, 0, is_ended, &candidate->roomy);
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    if (candidate->need_high == 0 && !candidate->roomy.finishes) {
        return ALLOT_STATUS_OK; /* A request that no device can serve: there is no such limit. */
    }
    if (candidate->need_high == 0) {
        need_begin(search, candidate, &candidate->roomy, 0);
        const uint64_t died = alloti_align_down(search->limit, ALLOTI_ADVISE_STEP);
        if (died > candidate->need_low && died < candidate->need_high) {
            candidate->need_low = died;
        }
    }
    return need_close(search, candidate, is_ended);
}

/** Candidates of one call: those from `first` on, or those that are chosen. */
typedef struct batch {
    alloti_search *search;
    alloti_candidate *first;
    const uint32_t *chosen;
} batch;

static allot_status evaluate_job(void *context, uint64_t job, const atomic_bool *is_ended)
{
    const batch *const some = context;
    return evaluate_one(some->search, &some->first[job], is_ended);
}

allot_status alloti_search_evaluate(alloti_search *search, uint32_t first)
{
    batch all = {.search = search, .first = search->candidates + first};
    return alloti_workers_run(&search->workers, search->candidate_count - first, evaluate_job,
                              &all);
}

static allot_status finish_job(void *context, uint64_t job, const atomic_bool *is_ended)
{
    const batch *const some = context;
    return finish_one(some->search, &some->first[some->chosen[job]], is_ended);
}

allot_status alloti_search_finish(alloti_search *search, const uint32_t *chosen, uint32_t count)
{
    batch some = {.search = search, .first = search->candidates, .chosen = chosen};
    return alloti_workers_run(&search->workers, count, finish_job, &some);
}

static allot_status measure_job(void *context, uint64_t job, const atomic_bool *is_ended)
{
    const batch *const some = context;
    const allot_status status = evaluate_one(some->search, &some->first[job], is_ended);
    return status == ALLOT_STATUS_OK ? finish_one(some->search, &some->first[job], is_ended)
                                     : status;
}

allot_status alloti_search_measure(alloti_search *search, alloti_candidate *candidates,
                                   uint32_t count)
{
    batch all = {.search = search, .first = candidates};
    return alloti_workers_run(&search->workers, count, measure_job, &all);
}
