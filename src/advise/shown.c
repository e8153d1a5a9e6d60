/* SPDX-License-Identifier: MIT */
#include "advise/shown.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"

enum { KIN_MAX = 3, FAMILIES = 5, CLOSE_PARTS = 100 };

void alloti_shown_fini(alloti_shown *shown)
{
    free(shown->items);
    *shown = (alloti_shown){.items = NULL};
}

static bool is_shown(const alloti_shown *shown, uint32_t index)
{
    for (uint32_t i = 0; i < shown->count; i++) {
        if (shown->items[i] == index) {
            return true;
        }
    }
    return false;
}

static void show(alloti_shown *shown, uint32_t index)
{
    if (!is_shown(shown, index)) {
        shown->items[shown->count++] = index;
    }
}

/** Whether two figures are the same to a reader: within one part in a hundred. */
static bool is_close(uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) <= (a > b ? a : b) / CLOSE_PARTS;
}

/**
 * Whether a candidate sets the same kinds of settings as a better one, or more, for the same:
 * memory as it is ranked, and what it takes within the limit where that is not under pressure.
 */
static bool adds_nothing(const alloti_search *search, const alloti_candidate *candidate,
                         const alloti_candidate *better)
{
    const alloti_outcome *const a = &candidate->run;
    const alloti_outcome *const b = &better->run;
    const bool is_known = candidate->tight.is_known && better->tight.is_known;
    const bool ends_alike =
        a->finishes == b->finishes && (a->finishes || a->stop_event == b->stop_event);
    const bool needs_alike = !is_known || is_close(candidate->need_high, better->need_high);
    const bool takes_alike = (is_known && alloti_search_is_by_need(search)) ||
                             is_close(a->peak_reserved, b->peak_reserved);
    return (better->families & ~candidate->families) == 0 && ends_alike && needs_alike &&
           takes_alike;
}

static bool same_outcome(const alloti_outcome *a, const alloti_outcome *b)
{
    return a->finishes == b->finishes && a->peak_reserved == b->peak_reserved &&
           a->driver_calls == b->driver_calls && a->retries == b->retries;
}

/**
 * Whether a row would tell nothing new beside some of higher rank, or is a fourth of its kind. What
 * may not be recommended stands for nothing else.
 */
static bool is_repetition(const alloti_search *search, const uint32_t *above, uint32_t count,
                          uint32_t index)
{
    const alloti_candidate *const candidate = &search->candidates[index];
    uint32_t kin = 0;
    for (uint32_t i = 0; i < count; i++) {
        const alloti_candidate *const other = &search->candidates[above[i]];
        if (!other->is_sound) {
            continue;
        }
        if (same_outcome(&candidate->run, &other->run) || adds_nothing(search, candidate, other)) {
            return true;
        }
        kin += candidate->families == other->families;
    }
    return kin >= KIN_MAX || same_outcome(&candidate->run, &search->candidates[0].run);
}

/** Show the first of a ranking that tell something new, until `max` are shown. */
static allot_status show_best(const alloti_search *search, uint32_t families, uint32_t max,
                              uint32_t *order, alloti_shown *shown)
{
    uint32_t count = 0;
    const allot_status status = alloti_search_rank(search, families, order, &count);
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count && shown->count < max; i++) {
        if (!is_repetition(search, shown->items, shown->count, order[i])) {
            show(shown, order[i]);
        }
    }
    return status;
}

/** The best of one family, unless it repeats another. */
static allot_status show_family(const alloti_search *search, uint32_t family, uint32_t *order,
                                alloti_shown *shown)
{
    uint32_t count = 0;
    const allot_status status = alloti_search_rank(search, family, order, &count);
    if (status == ALLOT_STATUS_OK && count > 0 &&
        !is_repetition(search, shown->items, shown->count, order[0])) {
        show(shown, order[0]);
    }
    return status;
}

allot_status alloti_shown_choose(const alloti_search *search, uint32_t max, alloti_shown *shown)
{
    uint32_t *const order = alloti_alloc_array(search->candidate_count, sizeof *order);
    shown->items = alloti_alloc_array(search->candidate_count, sizeof *shown->items);
    allot_status status = ALLOT_STATUS_OK;
    if (order == NULL || shown->items == NULL) {
        status = alloti_fail_memory(search->candidate_count * sizeof *order);
    } else {
        status = show_best(search, 0, max, order, shown);
        for (uint32_t bit = 0; status == ALLOT_STATUS_OK && bit < FAMILIES; bit++) {
            status = show_family(search, UINT32_C(1) << bit, order, shown);
        }
        for (uint32_t i = 1; i < search->candidate_count; i++) {
            if (search->candidates[i].is_wanted) {
                show(shown, i);
            }
        }
    }
    free(order);
    return status;
}

/** Whether the caller wants to see it, or it is better than the present and tells something new. */
static bool is_worth_a_row(const alloti_search *search, const uint32_t *above, uint32_t count,
                           uint32_t index)
{
    const alloti_candidate *const candidate = &search->candidates[index];
    return candidate->is_wanted || (alloti_search_is_better(search, candidate) &&
                                    !is_repetition(search, above, count, index));
}

allot_status alloti_shown_order(const alloti_search *search, alloti_shown *shown)
{
    uint32_t *const order = alloti_alloc_array(search->candidate_count, sizeof *order);
    if (order == NULL) {
        return alloti_fail_memory(search->candidate_count * sizeof *order);
    }
    uint32_t count = 0;
    const allot_status status = alloti_search_rank(search, 0, order, &count);
    uint32_t kept = 0;
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count; i++) {
        if (is_shown(shown, order[i]) && is_worth_a_row(search, order, kept, order[i])) {
            order[kept++] = order[i];
        }
    }
    if (status == ALLOT_STATUS_OK) {
        memcpy(shown->items, order, kept * sizeof *order);
        shown->count = kept;
    }
    free(order);
    return status;
}

uint32_t alloti_shown_first_gain(const alloti_search *search, const alloti_shown *shown)
{
    for (uint32_t i = 0; i < shown->count; i++) {
        const alloti_candidate *const c = &search->candidates[shown->items[i]];
        if (c->is_sound && alloti_search_is_gain(search, c)) {
            return i + 1;
        }
    }
    return ALLOT_NONE;
}

const alloti_candidate *alloti_shown_closest(const alloti_search *search, const alloti_shown *shown)
{
    const alloti_candidate *closest = NULL;
    for (uint32_t i = 0; i <= shown->count; i++) {
        const alloti_candidate *const c =
            &search->candidates[i == shown->count ? 0 : shown->items[i]];
        if (c->need_high != 0 && (closest == NULL || c->need_high < closest->need_high)) {
            closest = c;
        }
    }
    return closest;
}
