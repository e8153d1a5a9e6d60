/* SPDX-License-Identifier: MIT */
/*
 * The order among candidates: gain first, cost as a gate.
 *
 *   1. what finishes the recorded part within the limit, before what does not;
 *   2. what leaves room within the limit, before what is too tight to rely on;
 *   3. what costs the driver no noticeable time more than the present setting, before what does;
 *   4. less memory, in steps of one part in a hundred, where every setting that differs from the
 *      present ones and every item of a list counts as one step, a new threshold as two, and
 *      leaving expandable segments as five: it has to pay for itself, and a setting fitted to this
 *      one recording is worth little;
 *   5. fewer of those, lower cost, and the text, so that the order is always the same.
 *
 * Memory is the smallest limit at which it runs if the present setting dies or is under pressure
 * within the limit (what matters is how much room is left), else peak reserved within the limit.
 *
 * A change is recommended only if it pays. Where the present setting dies, running is enough. Where
 * it runs, both figures have to fall: by a tenth if it fits with room or if expandable segments
 * would be left, else by one part in fifty.
 */
#include <stdlib.h>
#include <string.h>

#include "advise/search.h"
#include "core/array.h"
#include "core/compare.h"

enum { PARTS = 100, GAIN_PARTS = 50, CLEAR_PARTS = 10, COST_PARTS = 50, SPARE_PARTS = 50 };
static const uint64_t GAIN_MIN = UINT64_C(20) << 20;
static const uint64_t SPARE_MIN = UINT64_C(256) << 20;
static const uint64_t COST_MIN_NS = UINT64_C(100000000);

bool alloti_search_is_by_need(const alloti_search *search)
{
    const alloti_outcome *const present = &search->candidates[0].run;
    return !present->finishes || present->retries > 0;
}

/** Bytes by which candidates that finish are compared. */
static uint64_t memory_of(const alloti_search *search, const alloti_candidate *candidate)
{
    return alloti_search_is_by_need(search) ? candidate->need_high : candidate->run.peak_reserved;
}

bool alloti_search_is_costly(const alloti_search *search, const alloti_candidate *candidate)
{
    /* Blocks from before a recording are placed at no cost under the present setting only. */
    if (!search->info.is_complete) {
        return false;
    }
    /* A run that died early made few calls; the present setting's cost is then that without a
     * limit. */
    const alloti_candidate *const present = &search->candidates[0];
    const alloti_outcome *const now =
        present->run.finishes || !present->roomy.is_known ? &present->run : &present->roomy;
    const uint64_t share = search->span_ns > 0 ? (uint64_t)search->span_ns / COST_PARTS : 0;
    const uint64_t bearable = share > COST_MIN_NS ? share : COST_MIN_NS;
    return candidate->run.cost_ns > now->cost_ns &&
           candidate->run.cost_ns - now->cost_ns > bearable;
}

bool alloti_search_saving(const alloti_search *search, const alloti_candidate *candidate,
                          int64_t *out)
{
    const uint64_t now = memory_of(search, &search->candidates[0]);
    const uint64_t then = memory_of(search, candidate);
    const bool is_by_need = alloti_search_is_by_need(search);
    if (now == 0 || then == 0 || (!is_by_need && !candidate->run.finishes)) {
        return false;
    }
    *out = (int64_t)(now - then);
    return true;
}

uint64_t alloti_search_spare(const alloti_search *search, const alloti_candidate *candidate)
{
    const uint64_t need = candidate->need_high;
    return search->limit > need && need != 0 ? search->limit - need : 0;
}

bool alloti_search_is_tight(const alloti_search *search, const alloti_candidate *candidate)
{
    if (search->limit == 0 || !candidate->run.finishes) {
        return false;
    }
    const uint64_t share = search->limit / SPARE_PARTS;
    return alloti_search_spare(search, candidate) < (share > SPARE_MIN ? share : SPARE_MIN);
}

bool alloti_search_fits(const alloti_search *search)
{
    return search->limit != 0 && !alloti_search_is_by_need(search) &&
           !alloti_search_is_tight(search, &search->candidates[0]);
}

/** What qsort needs to know; rows are small, so a copy of the keys is sorted. */
typedef struct rank_key {
    uint32_t index;
    bool finishes;
    bool is_tight;
    bool is_costly;
    uint64_t steps; /* memory above the best, in parts of a hundred, and the burden */
    uint64_t stop_event;
    uint32_t burden;
    uint64_t cost_ns;
    const char *text;
} rank_key;

static int compare_keys(const void *left, const void *right)
{
    const rank_key *const a = left;
    const rank_key *const b = right;
    int order = (int)b->finishes - (int)a->finishes;
    order = order != 0 ? order : alloti_order(b->stop_event, a->stop_event);
    order = order != 0 ? order : (int)a->is_tight - (int)b->is_tight;
    order = order != 0 ? order : (int)a->is_costly - (int)b->is_costly;
    order = order != 0 ? order : alloti_order(a->steps, b->steps);
    order = order != 0 ? order : alloti_order(a->burden, b->burden);
    order = order != 0 ? order : alloti_order(a->cost_ns, b->cost_ns);
    return order != 0 ? order : strcmp(a->text, b->text);
}

/**
 * Bytes by which a candidate is ranked; 0 where they are not known: of those that die only what was
 * shown is searched.
 */
static uint64_t ranked_memory(const alloti_search *search, const alloti_candidate *candidate)
{
    if (candidate->run.finishes) {
        return memory_of(search, candidate);
    }
    return candidate->tight.is_known ? candidate->need_high : 0;
}

/** Least of those that finish, or of those that do not; 0 if none is known. */
static uint64_t least_memory(const alloti_search *search, bool finishes)
{
    uint64_t least = 0;
    for (uint32_t i = 1; i < search->candidate_count; i++) {
        const alloti_candidate *const c = &search->candidates[i];
        const uint64_t memory = ranked_memory(search, c);
        const bool counts = c->run.is_known && c->run.finishes == finishes && memory != 0;
        least = counts && (least == 0 || memory < least) ? memory : least;
    }
    return least;
}

/** Steps of memory above the least, and the burden. */
static uint64_t steps_of(const alloti_search *search, const alloti_candidate *candidate,
                         uint64_t least)
{
    const uint64_t memory = ranked_memory(search, candidate);
    const uint64_t part = least < PARTS ? 1 : least / PARTS;
    return (memory > least ? (memory - least) / part : 0) + candidate->burden;
}

allot_status alloti_search_rank(const alloti_search *search, uint32_t families, uint32_t *order,
                                uint32_t *count)
{
    rank_key *const keys = alloti_calloc_array(search->candidate_count, sizeof *keys);
    if (keys == NULL) {
        return alloti_fail_memory(search->candidate_count * sizeof *keys);
    }
    const uint64_t least[2] = {least_memory(search, false), least_memory(search, true)};
    uint32_t used = 0;
    for (uint32_t i = 1; i < search->candidate_count; i++) {
        const alloti_candidate *const c = &search->candidates[i];
        if (!c->run.is_known || (families != 0 && (c->families & families) == 0)) {
            continue;
        }
        const bool finishes = c->run.finishes;
        keys[used++] = (rank_key){
            .index = i,
            .finishes = finishes,
            .is_tight = alloti_search_is_tight(search, c),
            .is_costly = finishes && alloti_search_is_costly(search, c),
            .steps = steps_of(search, c, least[finishes]),
            .stop_event = finishes ? 0 : c->run.stop_event,
            .burden = c->burden,
            .cost_ns = c->run.cost_ns,
            .text = c->text,
        };
    }
    qsort(keys, used, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < used; i++) {
        order[i] = keys[i].index;
    }
    *count = used;
    free(keys);
    return ALLOT_STATUS_OK;
}

bool alloti_search_is_better(const alloti_search *search, const alloti_candidate *candidate)
{
    const alloti_candidate *const present = &search->candidates[0];
    const bool needs_less = candidate->need_high != 0 && present->need_high != 0 &&
                            candidate->need_high < present->need_high;
    const bool reserves_less =
        candidate->run.finishes && candidate->run.peak_reserved < present->run.peak_reserved;
    if (alloti_search_is_by_need(search) && present->run.finishes) {
        return needs_less;
    }
    return needs_less || reserves_less || (candidate->run.finishes && !present->run.finishes);
}

/** Whether going from `now` to `then` is at least one part in `parts` less, and noticeable. */
static bool falls_by(uint64_t now, uint64_t then, uint64_t parts)
{
    const uint64_t least = now / parts > GAIN_MIN ? now / parts : GAIN_MIN;
    return then < now && now - then >= least;
}

bool alloti_search_is_gain(const alloti_search *search, const alloti_candidate *candidate)
{
    const alloti_candidate *const present = &search->candidates[0];
    if (!candidate->run.finishes) {
        return false;
    }
    const bool needs_more = present->need_high != 0 && candidate->need_high > present->need_high;
    if (!present->run.finishes) {
        return !needs_more;
    }
    const bool leaves = present->conf.expandable_segments && !candidate->conf.expandable_segments;
    const uint64_t parts = leaves || alloti_search_fits(search) ? CLEAR_PARTS : GAIN_PARTS;
    const uint64_t now = present->run.peak_reserved;
    const uint64_t then = candidate->run.peak_reserved;
    return falls_by(present->need_high, candidate->need_high, parts) && then <= now &&
           (alloti_search_is_by_need(search) || falls_by(now, then, parts));
}
