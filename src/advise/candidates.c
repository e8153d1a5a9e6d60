/* SPDX-License-Identifier: MIT */
/* Candidates: settings with their text, what they turn, and why some are never tried. */
#include <stdlib.h>
#include <string.h>

#include "advise/search.h"
#include "advise/words.h"
#include "core/array.h"

static bool has_roundup(const allot_torch_conf *conf)
{
    for (uint32_t i = 0; i < ALLOT_TORCH_INTERVALS; i++) {
        if (conf->roundup_power2_divisions[i] > 1) {
            return true;
        }
    }
    return false;
}

static uint32_t families_of(const allot_torch_conf *conf)
{
    uint32_t families = 0;
    families |= conf->expandable_segments ? ALLOTI_FAMILY_EXPANDABLE : 0;
    families |= conf->max_split_size != ALLOT_TORCH_UNLIMITED ? ALLOTI_FAMILY_MAX_SPLIT : 0;
    families |= has_roundup(conf) ? ALLOTI_FAMILY_ROUNDUP : 0;
    families |= conf->garbage_collection_threshold > 0.0 ? ALLOTI_FAMILY_GC : 0;
    families |=
        conf->max_non_split_rounding != conf->large_segment_size ? ALLOTI_FAMILY_NON_SPLIT : 0;
    return families;
}

/** Families in which two settings differ. */
static uint32_t families_turned(const allot_torch_conf *a, const allot_torch_conf *b)
{
    uint32_t turned = 0;
    turned += a->expandable_segments != b->expandable_segments;
    turned += a->max_split_size != b->max_split_size;
    turned += memcmp(a->roundup_power2_divisions, b->roundup_power2_divisions,
                     sizeof a->roundup_power2_divisions) != 0;
    turned += a->garbage_collection_threshold < b->garbage_collection_threshold ||
              a->garbage_collection_threshold > b->garbage_collection_threshold;
    turned += a->max_non_split_rounding != b->max_non_split_rounding;
    return turned;
}

/** Beside the step for each setting that differs. */
static uint32_t burden_beside(const allot_torch_conf *present, const allot_torch_conf *other)
{
    static const uint32_t LEAVING = 4, FITTED = 1;
    /* What expandable segments spare will come back in other runs. */
    const bool leaves = present->expandable_segments && !other->expandable_segments;
    /* A threshold is fitted to the sizes of one recording. */
    const bool is_fitted = other->max_split_size != ALLOT_TORCH_UNLIMITED &&
                           other->max_split_size != present->max_split_size;
    return (leaves ? LEAVING : 0U) + (is_fitted ? FITTED : 0U);
}

/** Pieces of a roundup list beyond the one that a single number is. */
static uint32_t roundup_pieces(const allot_torch_conf *conf)
{
    uint32_t changes = 0;
    for (uint32_t i = 1; i < ALLOT_TORCH_INTERVALS; i++) {
        changes += conf->roundup_power2_divisions[i] != conf->roundup_power2_divisions[i - 1];
    }
    return changes;
}

/** Settings in it that do nothing, or work against each other. */
static uint32_t idle_count(const alloti_search *search, const allot_torch_conf *conf)
{
    allot_torch_notes notes = {.count = 0};
    const bool is_known = search->limit != 0;
    allot_torch_conf_review(conf, is_known, search->fraction > 0.0 ? search->fraction : 1.0,
                            &notes);
    uint32_t count = 0;
    for (uint32_t i = 0; i < notes.count; i++) {
        count += notes.items[i].kind == ALLOT_TORCH_NOTE_IGNORED ||
                 notes.items[i].kind == ALLOT_TORCH_NOTE_CONFLICT;
    }
    return count;
}

/**
 * PyTorch takes max_split_size_mb with expandable segments, but what it then does with large
 * blocks is a known defect; nobody should be advised to combine them.
 */
static bool is_sound(const alloti_search *search, const allot_torch_conf *conf)
{
    if (search->candidate_count == 0) {
        return true;
    }
    if (conf->expandable_segments && conf->max_split_size != ALLOT_TORCH_UNLIMITED) {
        return false;
    }
    return idle_count(search, conf) <= idle_count(search, &search->candidates[0].conf);
}

static uint32_t find_text(const alloti_search *search, const char *text)
{
    for (uint32_t i = 0; i < search->candidate_count; i++) {
        if (strcmp(search->candidates[i].text, text) == 0) {
            return i;
        }
    }
    return ALLOT_NONE;
}

allot_status alloti_search_add(alloti_search *search, const allot_torch_conf *conf, bool is_wanted,
                               uint32_t *out)
{
    char text[ALLOT_TORCH_CONF_TEXT_MAX];
    allot_torch_conf_format(conf, text);
    uint32_t index = find_text(search, text);
    if (index != ALLOT_NONE || (!is_wanted && !is_sound(search, conf))) {
        if (index != ALLOT_NONE && is_wanted) {
            search->candidates[index].is_wanted = true;
        }
        if (out != NULL) {
            *out = index;
        }
        return ALLOT_STATUS_OK;
    }
    index = search->candidate_count;
    const allot_status status =
        alloti_array_reserve(&search->candidates, &search->candidate_capacity, (uint64_t)index + 1,
                             sizeof *search->candidates);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_candidate *const candidate = &search->candidates[index];
    const allot_torch_conf *const present = index == 0 ? conf : &search->candidates[0].conf;
    *candidate = (alloti_candidate){.conf = *conf,
                                    .text = strdup(text),
                                    .change = alloti_words_change(present, conf),
                                    .families = families_of(conf),
                                    .burden = families_turned(present, conf) +
                                              roundup_pieces(conf) + burden_beside(present, conf),
                                    .is_wanted = is_wanted,
                                    .is_sound = is_sound(search, conf)};
    search->candidate_count++;
    if (candidate->text == NULL || candidate->change == NULL) {
        return alloti_fail_memory(sizeof text);
    }
    if (out != NULL) {
        *out = index;
    }
    return ALLOT_STATUS_OK;
}

static void candidates_fini(alloti_candidate *candidates, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(candidates[i].text);
        free(candidates[i].change);
    }
    free(candidates);
}

void alloti_search_fini(alloti_search *search)
{
    candidates_fini(search->candidates, search->candidate_count);
    candidates_fini(search->strategies, search->strategy_count);
    alloti_sizes_fini(&search->sizes);
}
