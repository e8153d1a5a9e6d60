/* SPDX-License-Identifier: MIT */
#include "advise/shown.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"

enum { ALIKE_MAX = 3, FAMILIES = 5 };

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

static bool same_outcome(const alloti_outcome *a, const alloti_outcome *b)
{
    return a->finishes == b->finishes && a->peak_reserved == b->peak_reserved &&
           a->driver_calls == b->driver_calls && a->retries == b->retries;
}

/** Whether a row would tell nothing new: the same as another did, or a fourth of its kind. */
static bool is_repetition(const alloti_search *search, const alloti_shown *shown, uint32_t index)
{
    const alloti_candidate *const candidate = &search->candidates[index];
    uint32_t alike = 0;
    for (uint32_t i = 0; i < shown->count; i++) {
        const alloti_candidate *const other = &search->candidates[shown->items[i]];
        if (same_outcome(&candidate->run, &other->run)) {
            return true;
        }
        alike += candidate->families == other->families;
    }
    return alike >= ALIKE_MAX || same_outcome(&candidate->run, &search->candidates[0].run);
}

/** Show the first of a ranking that tell something new, until `max` are shown. */
static allot_status show_best(const alloti_search *search, uint32_t families, uint32_t max,
                              uint32_t *order, alloti_shown *shown)
{
    uint32_t count = 0;
    const allot_status status = alloti_search_rank(search, families, order, &count);
    for (uint32_t i = 0; status == ALLOT_STATUS_OK && i < count && shown->count < max; i++) {
        if (!is_repetition(search, shown, order[i])) {
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
    if (status == ALLOT_STATUS_OK && count > 0 && !is_repetition(search, shown, order[0])) {
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
        if (is_shown(shown, order[i])) {
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
