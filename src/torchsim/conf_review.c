/* SPDX-License-Identifier: MIT */
/** What settings do to each other: those that do nothing and those that hinder. */
#include "torchsim/conf.h"

static void ignored(allot_torch_notes *notes, const char *text)
{
    alloti_conf_note(notes, ALLOT_TORCH_NOTE_IGNORED, ALLOT_NONE, "%s", text);
}

static void conflict(allot_torch_notes *notes, const char *text)
{
    alloti_conf_note(notes, ALLOT_TORCH_NOTE_CONFLICT, ALLOT_NONE, "%s", text);
}

static bool has_roundup(const allot_torch_conf *conf, uint32_t *ones)
{
    bool any = false;
    *ones = 0;
    for (uint32_t i = 0; i < ALLOT_TORCH_INTERVALS; i++) {
        any = any || conf->roundup_power2_divisions[i] > 0;
        *ones += conf->roundup_power2_divisions[i] == 1;
    }
    return any;
}

static void review_collection(const allot_torch_conf *conf, bool limited, bool known,
                              allot_torch_notes *notes)
{
    if (!(conf->garbage_collection_threshold > 0)) {
        return;
    }
    if (conf->expandable_segments) {
        ignored(notes, "garbage_collection_threshold frees whole cudaMalloc segments only; with "
                       "expandable_segments there are none");
    } else if (!limited && known) {
        ignored(notes, "garbage_collection_threshold does nothing without a memory fraction below "
                       "1 (torch.cuda.set_per_process_memory_fraction)");
    } else if (!limited) {
        ignored(notes, "garbage_collection_threshold works only after "
                       "torch.cuda.set_per_process_memory_fraction(); the file does not say "
                       "whether it was called");
    }
}

static void review_split(const allot_torch_conf *conf, allot_torch_notes *notes)
{
    const bool has_split = conf->max_split_size != ALLOT_TORCH_UNLIMITED;
    if (!has_split && conf->max_non_split_rounding != conf->large_segment_size) {
        ignored(notes, "max_non_split_rounding_mb does nothing without max_split_size_mb");
    }
    if (has_split && conf->expandable_segments) {
        conflict(notes, "max_split_size_mb keeps small requests out of large free stretches, which "
                        "is what expandable_segments is made of: pages are mapped that are not "
                        "needed");
    }
}

static void review_expandable(const allot_torch_conf *conf, allot_torch_notes *notes)
{
    if (!conf->expandable_segments &&
        (conf->expandable_reserve_share > 0 || conf->expandable_reserve_size > 0)) {
        ignored(notes, "expandable_segments_reserve does nothing without expandable_segments");
    }
}

static void review_async(const allot_torch_conf *conf, bool roundup, allot_torch_notes *notes)
{
    if (conf->backend == ALLOT_TORCH_BACKEND_ASYNC &&
        (conf->expandable_segments || roundup || conf->max_split_size != ALLOT_TORCH_UNLIMITED ||
         conf->garbage_collection_threshold > 0)) {
        ignored(notes, "backend:cudaMallocAsync ignores expandable_segments, max_split_size_mb, "
                       "roundup_power2_divisions and garbage_collection_threshold");
    }
}

void allot_torch_conf_review(const allot_torch_conf *conf, bool fraction_known, double fraction,
                             allot_torch_notes *notes)
{
    const bool limited =
        (fraction_known && fraction > 0 && fraction < 1) || conf->per_process_memory_fraction < 1;
    uint32_t ones = 0;
    const bool roundup = has_roundup(conf, &ones);
    review_async(conf, roundup, notes);
    review_collection(conf, limited, fraction_known, notes);
    review_split(conf, notes);
    review_expandable(conf, notes);
    if (ones == ALLOT_TORCH_INTERVALS) {
        ignored(notes, "roundup_power2_divisions:1 rounds nothing: it takes 2 or more");
    } else if (ones > 0) {
        ignored(notes, "1 in roundup_power2_divisions rounds nothing in its interval: it takes 2 "
                       "or more");
    }
    if (conf->throw_on_cudamalloc_oom && fraction_known && !limited) {
        ignored(notes, "throw_on_cudamalloc_oom does nothing without a memory fraction below 1");
    }
}
