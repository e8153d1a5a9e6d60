/* SPDX-License-Identifier: MIT */
/*
 * Which settings are tried, in stages that build on each other:
 *
 *   alone     expandable segments; thresholds for max_split_size_mb taken from the sizes the
 *             program asks for; roundup divisions; garbage collection if a fraction makes it act
 *   together  the best thresholds with roundup, collection and other roundings of whole blocks
 *   closer    around the best: thresholds halfway to the next ones that were tried, roundup
 *             divisions changed in one interval of sizes at a time, also around the best with
 *             expandable segments, which under a tight limit need such a list; again while it
 *             helps
 *
 * Long recordings get fewer thresholds and rounds, so that the time stays within reason.
 */
#include <stdlib.h>
#include <string.h>

#include "advise/search.h"
#include "core/array.h"

enum {
    SPREAD_MAX = 12,               /* thresholds tried at first */
    BEST_SPLITS = 3,               /* thresholds that are combined */
    BEST_ROUNDUPS = 2,             /* roundups that are combined */
    ROUNDS_MAX = 3,                /* rounds of looking closer */
    INTERVALS = 4,                 /* size intervals whose roundup is changed */
    DIVISION_MAX = 64,             /* PyTorch takes no more */
    EVENTS_PER_ROUND = 200 * 1000, /* recordings above this lose a round for each multiple */
};

static const uint32_t DIVISIONS[] = {2, 4, 8, 16, 32};
static const double COLLECTS[] = {0.6, 0.7, 0.8, 0.9, 0.95};
static const uint64_t NON_SPLIT_MIB[] = {32, 64, 128};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/** The present settings without any that the search turns. */
static allot_torch_conf plain_conf(const alloti_search *search)
{
    allot_torch_conf conf = search->candidates[0].conf;
    conf.expandable_segments = false;
    conf.max_split_size = ALLOT_TORCH_UNLIMITED;
    conf.max_non_split_rounding = conf.large_segment_size;
    conf.garbage_collection_threshold = 0.0;
    memset(conf.roundup_power2_divisions, 0, sizeof conf.roundup_power2_divisions);
    return conf;
}

static void set_roundup(allot_torch_conf *conf, uint32_t divisions)
{
    for (uint32_t i = 0; i < ALLOT_TORCH_INTERVALS; i++) {
        conf->roundup_power2_divisions[i] = divisions;
    }
}

static uint32_t rounds_for(const alloti_search *search)
{
    const uint64_t lost = search->info.event_count / EVENTS_PER_ROUND;
    return lost >= ROUNDS_MAX ? 0 : ROUNDS_MAX - (uint32_t)lost;
}

/** Add `base` with each roundup division and, if it acts, each collection threshold. */
static allot_status add_variants(alloti_search *search, const allot_torch_conf *base)
{
    allot_status status = alloti_search_add(search, base, false, NULL);
    for (size_t i = 0; status == ALLOT_STATUS_OK && i < COUNT_OF(DIVISIONS); i++) {
        allot_torch_conf conf = *base;
        set_roundup(&conf, DIVISIONS[i]);
        status = alloti_search_add(search, &conf, false, NULL);
    }
    const bool acts = search->limit != 0 && search->fraction > 0.0;
    for (size_t i = 0; status == ALLOT_STATUS_OK && acts && i < COUNT_OF(COLLECTS); i++) {
        allot_torch_conf conf = *base;
        conf.garbage_collection_threshold = COLLECTS[i];
        status = alloti_search_add(search, &conf, false, NULL);
    }
    return status;
}

/** Add a threshold, if PyTorch takes it. */
static allot_status add_split(alloti_search *search, const allot_torch_conf *base, uint64_t mib)
{
    allot_torch_conf conf = *base;
    conf.expandable_segments = false;
    conf.max_split_size = mib << 20;
    return mib < ALLOTI_MAX_SPLIT_MIB_MIN ? ALLOT_STATUS_OK
                                          : alloti_search_add(search, &conf, false, NULL);
}

static allot_status stage_alone(alloti_search *search)
{
    const allot_torch_conf plain = plain_conf(search);
    allot_torch_conf expandable = plain;
    expandable.expandable_segments = true;
    allot_status status = add_variants(search, &expandable);
    if (status == ALLOT_STATUS_OK) {
        status = add_variants(search, &plain);
    }
    if (status == ALLOT_STATUS_OK) {
        /* What is set at present may be right but for this one. */
        expandable = search->candidates[0].conf;
        expandable.expandable_segments = true;
        expandable.max_split_size = ALLOT_TORCH_UNLIMITED;
        expandable.max_non_split_rounding = plain.max_non_split_rounding;
        status = alloti_search_add(search, &expandable, false, NULL);
    }
    uint32_t chosen[SPREAD_MAX];
    const uint32_t spread = rounds_for(search) > 0 ? SPREAD_MAX : SPREAD_MAX / 2;
    const uint32_t count = alloti_sizes_spread(&search->sizes, spread, chosen);
    if (status == ALLOT_STATUS_OK && search->sizes.large_count > 0) {
        status = add_split(search, &plain, ALLOTI_MAX_SPLIT_MIB_MIN);
    }
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        status = add_split(search, &plain, alloti_sizes_threshold_mib(&search->sizes, chosen[i]));
    }
    return status;
}

/** The first `max` of a family's ranking. */
static allot_status best_of(const alloti_search *search, uint32_t families, uint32_t max,
                            uint32_t *best, uint32_t *count)
{
    uint32_t *const order = alloti_alloc_array(search->candidate_count, sizeof *order);
    if (order == NULL) {
        return alloti_fail_memory(search->candidate_count * sizeof *order);
    }
    const allot_status status = alloti_search_rank(search, families, order, count);
    if (status == ALLOT_STATUS_OK) {
        *count = *count < max ? *count : max;
        memcpy(best, order, *count * sizeof *best);
    }
    free(order);
    return status;
}

/** One threshold with everything that goes with it. */
static allot_status combine(alloti_search *search, const allot_torch_conf *split,
                            const uint32_t *roundups, uint32_t roundup_count)
{
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < roundup_count; i++) {
        allot_torch_conf conf = *split;
        memcpy(conf.roundup_power2_divisions,
               search->candidates[roundups[i]].conf.roundup_power2_divisions,
               sizeof conf.roundup_power2_divisions);
        status = alloti_search_add(search, &conf, false, NULL);
    }
    for (size_t i = 0; status == ALLOT_STATUS_OK && i < COUNT_OF(NON_SPLIT_MIB); i++) {
        allot_torch_conf conf = *split;
        conf.max_non_split_rounding = NON_SPLIT_MIB[i] << 20;
        status = alloti_search_add(search, &conf, false, NULL);
    }
    const bool acts = search->limit != 0 && search->fraction > 0.0;
    if (status == ALLOT_STATUS_OK && acts) {
        allot_torch_conf conf = *split;
        conf.garbage_collection_threshold = COLLECTS[COUNT_OF(COLLECTS) / 2];
        status = alloti_search_add(search, &conf, false, NULL);
    }
    return status;
}

static allot_status stage_together(alloti_search *search)
{
    uint32_t splits[BEST_SPLITS];
    uint32_t roundups[BEST_ROUNDUPS];
    uint32_t split_count = 0;
    uint32_t roundup_count = 0;
    allot_status status =
        best_of(search, ALLOTI_FAMILY_MAX_SPLIT, BEST_SPLITS, splits, &split_count);
    if (status == ALLOT_STATUS_OK) {
        status = best_of(search, ALLOTI_FAMILY_ROUNDUP, BEST_ROUNDUPS, roundups, &roundup_count);
    }
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < split_count; i++) {
        const allot_torch_conf split = search->candidates[splits[i]].conf;
        status = combine(search, &split, roundups, roundup_count);
    }
    return status;
}

/** Next tried threshold below (or above) `mib`, as an index into the sizes. */
static uint32_t tried_neighbour(const alloti_search *search, uint32_t from, bool below)
{
    const alloti_sizes *const sizes = &search->sizes;
    uint32_t at = from;
    while (below ? at > 0 : at + 1 < sizes->large_count) {
        at = below ? at - 1 : at + 1;
        const uint64_t size = alloti_sizes_threshold_mib(sizes, at) << 20;
        for (uint32_t i = 0; i < search->candidate_count; i++) {
            if (search->candidates[i].conf.max_split_size == size) {
                return at;
            }
        }
    }
    return at;
}

/** Thresholds halfway between the best one and its neighbours. */
static allot_status closer_splits(alloti_search *search, const allot_torch_conf *best)
{
    const alloti_sizes *const sizes = &search->sizes;
    uint32_t at = 0;
    while (at + 1 < sizes->large_count &&
           alloti_sizes_threshold_mib(sizes, at) << 20 < best->max_split_size) {
        at++;
    }
    const uint32_t low = tried_neighbour(search, at, true);
    const uint32_t high = tried_neighbour(search, at, false);
    const uint32_t middles[] = {low + (at - low) / 2, at + (high - at + 1) / 2};
    allot_status status = ALLOT_STATUS_OK;
    for (size_t i = 0; status == ALLOT_STATUS_OK && i < COUNT_OF(middles); i++) {
        status = add_split(search, best, alloti_sizes_threshold_mib(sizes, middles[i]));
    }
    return status;
}

/** Change the roundup of one interval at a time: off, coarser, finer. */
static allot_status closer_roundups(alloti_search *search, const allot_torch_conf *best)
{
    uint32_t intervals[INTERVALS];
    const uint32_t count = alloti_sizes_intervals(&search->sizes, INTERVALS, intervals);
    allot_status status = ALLOT_STATUS_OK;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        const uint32_t now = best->roundup_power2_divisions[intervals[i]];
        const uint32_t values[] = {0, now > 2 ? now / 2 : 4,
                                   now > 1 && now < DIVISION_MAX ? now * 2 : 16};
        for (size_t k = 0; status == ALLOT_STATUS_OK && k < COUNT_OF(values); k++) {
            allot_torch_conf conf = *best;
            conf.roundup_power2_divisions[intervals[i]] = values[k];
            status = alloti_search_add(search, &conf, false, NULL);
        }
    }
    return status;
}

/** Change the roundup of the best of a family (0: of all). */
static allot_status closer_to_best(alloti_search *search, uint32_t families)
{
    uint32_t best = 0;
    uint32_t count = 0;
    const allot_status status = best_of(search, families, 1, &best, &count);
    if (status != ALLOT_STATUS_OK || count == 0) {
        return status;
    }
    const allot_torch_conf conf = search->candidates[best].conf;
    return closer_roundups(search, &conf);
}

static allot_status stage_closer(alloti_search *search)
{
    uint32_t split = 0;
    uint32_t split_count = 0;
    allot_status status = best_of(search, ALLOTI_FAMILY_MAX_SPLIT, 1, &split, &split_count);
    if (status == ALLOT_STATUS_OK && split_count > 0 && search->sizes.large_count > 0) {
        const allot_torch_conf conf = search->candidates[split].conf;
        status = closer_splits(search, &conf);
    }
    if (status == ALLOT_STATUS_OK) {
        status = closer_to_best(search, 0);
    }
    return status == ALLOT_STATUS_OK ? closer_to_best(search, ALLOTI_FAMILY_EXPANDABLE) : status;
}

/** Make candidates by one stage and replay them. */
static allot_status run_stage(alloti_search *search, allot_status (*stage)(alloti_search *))
{
    const uint32_t first = search->candidate_count;
    const allot_status status = stage(search);
    return status == ALLOT_STATUS_OK ? alloti_search_evaluate(search, first) : status;
}

allot_status alloti_search_plan(alloti_search *search)
{
    allot_status status = run_stage(search, stage_alone);
    if (status == ALLOT_STATUS_OK) {
        status = run_stage(search, stage_together);
    }
    const uint32_t rounds = rounds_for(search);
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < rounds; i++) {
        const uint32_t before = search->candidate_count;
        status = run_stage(search, stage_closer);
        if (search->candidate_count == before) {
            break;
        }
    }
    return status;
}
