/* SPDX-License-Identifier: MIT */
/* Remarks beside the advice: what it rests on, how far it reaches, what a setting risks. */
#include <stdio.h>
#include <stdlib.h>

#include "advise/words.h"
#include "core/size_text.h"

typedef char *(*note_fn)(const alloti_topic *topic, bool *silent);

static char *nothing(bool *silent)
{
    *silent = true;
    return NULL;
}

static char *note_fidelity(const alloti_topic *t, bool *silent)
{
    const allot_advice_summary *const s = t->summary;
    if (!s->is_checked || s->placements_equal == s->placements) {
        return nothing(silent);
    }
    return alloti_words_format(
        "The model does not repeat this recording exactly (%llu of %llu placements equal before "
        "the first difference): take all figures as estimates.",
        (unsigned long long)s->placements_equal, (unsigned long long)s->placements);
}

static char *note_ring(const alloti_topic *t, bool *silent)
{
    const allot_requests_info *const info = &t->search->info;
    if (info->is_complete) {
        return nothing(silent);
    }
    return alloti_words_format(
        "The recording begins in the middle: %llu blocks were live before its first event. Under "
        "another setting they are requested first, in the order of their addresses, since their "
        "history is not known; only there do driver calls count them.",
        (unsigned long long)info->initial_count);
}

static char *note_oom(const alloti_topic *t, bool *silent)
{
    const alloti_need *const need = t->need;
    if (need->oom_count == 0) {
        return nothing(silent);
    }
    char room[ALLOT_SIZE_TEXT_MAX + 64] = "";
    if (t->summary->spare > 0) {
        snprintf(room, sizeof room, " Up to there %s of the limit are to spare.",
                 alloti_size(t->summary->spare).text);
    }
    return alloti_words_format(
        "The recording reaches to an out-of-memory at event %u of %llu; what the program would "
        "have asked for after it is not known, and the verdict is about the recorded part.%s",
        need->oom_event, (unsigned long long)need->event_count, room);
}

static char *note_limit(const alloti_topic *t, bool *silent)
{
    const alloti_size_text limit = alloti_size(t->search->limit);
    if (t->summary->limit_source == ALLOT_LIMIT_SOURCE_INFERRED) {
        return alloti_words_format(
            "The limit of %s is inferred: what was held at the out-of-memory and what the device "
            "had left. Other processes' memory is not in it.",
            limit.text);
    }
    if (t->summary->limit_source == ALLOT_LIMIT_SOURCE_HELD) {
        return alloti_words_format(
            "The limit of %s is the most that was ever held: the recording shows that more was "
            "refused or that memory was given back under pressure. The real limit may be higher; "
            "give it with --limit.",
            limit.text);
    }
    return nothing(silent);
}

static char *note_unexplained(const alloti_topic *t, bool *silent)
{
    if (t->need->oom_count == 0 || t->summary->limit_source != ALLOT_LIMIT_SOURCE_NONE) {
        return nothing(silent);
    }
    return alloti_words_format(
        "The recorded out-of-memory does not follow from the device's free memory (%s left): a "
        "memory fraction was set, or the limit changed. Give --limit and --fraction to judge it.",
        alloti_size(t->need->oom_device_free).text);
}

/** No search was made, since no setting can help. */
static bool exhausted(const alloti_topic *t)
{
    return t->summary->verdict == ALLOT_ADVICE_VERDICT_NOTHING_HELPS;
}

static char *note_bisection(const alloti_topic *t, bool *silent)
{
    if (exhausted(t)) {
        return nothing(silent);
    }
    return alloti_words_format(
        "Smallest limits are ends of a bisection in steps of %s, each replayed there. A setting "
        "that runs within a limit need not run within every larger one.",
        alloti_size(ALLOTI_ADVISE_STEP).text);
}

static bool turns_on(const alloti_topic *t, alloti_family family)
{
    return t->recommended != NULL && (t->recommended->families & family) != 0 &&
           (t->search->candidates[0].families & family) == 0;
}

static char *note_expandable(const alloti_topic *t, bool *silent)
{
    if (!turns_on(t, ALLOTI_FAMILY_EXPANDABLE)) {
        return nothing(silent);
    }
    return alloti_words_format(
        "Expandable segments need the driver's virtual memory calls: they do not go with pluggable "
        "allocators or pools with an allocator of their own, limit sharing of tensors between "
        "processes (CUDA IPC), and have failed on MIG slices.");
}

static char *note_max_split(const alloti_topic *t, bool *silent)
{
    if (!turns_on(t, ALLOTI_FAMILY_MAX_SPLIT)) {
        return nothing(silent);
    }
    return alloti_words_format(
        "With max_split_size_mb large cached blocks wait for requests of their own size, so the "
        "allocator fills whatever the device has (%s without a limit) and gives back under "
        "pressure; each such retry waits for the device.",
        alloti_size(t->recommended->roomy.peak_reserved).text);
}

static char *note_roundup(const alloti_topic *t, bool *silent)
{
    if (!turns_on(t, ALLOTI_FAMILY_ROUNDUP)) {
        return nothing(silent);
    }
    return alloti_words_format(
        "Rounding sizes up makes blocks fit each other better but larger: peak allocated becomes "
        "%s.",
        alloti_size(t->recommended->run.peak_allocated).text);
}

static char *note_collection(const alloti_topic *t, bool *silent)
{
    if (turns_on(t, ALLOTI_FAMILY_GC)) {
        return alloti_words_format("garbage_collection_threshold acts only together with "
                                   "set_per_process_memory_fraction().");
    }
    const bool is_on = (t->search->candidates[0].families & ALLOTI_FAMILY_GC) != 0;
    if (is_on || t->search->fraction > 0.0 || exhausted(t)) {
        return nothing(silent);
    }
    return alloti_words_format("garbage_collection_threshold was not tried: it acts only with a "
                               "memory fraction (give --limit and --fraction).");
}

static char *note_spelling(const alloti_topic *t, bool *silent)
{
    if (t->recommended == NULL) {
        return nothing(silent);
    }
    return alloti_words_format("Set the variable before the program starts. Newer PyTorch "
                               "releases also read PYTORCH_ALLOC_CONF; ROCm builds read "
                               "PYTORCH_HIP_ALLOC_CONF.");
}

static char *note_costly(const alloti_topic *t, bool *silent)
{
    const alloti_candidate *const best = t->recommended;
    if (best == NULL || !alloti_search_is_costly(t->search, best)) {
        return nothing(silent);
    }
    return alloti_words_format(
        "It costs time: about %.1f s more in driver calls than the present setting, by the cost "
        "model, over the recorded part.",
        ((double)best->run.cost_ns - (double)t->search->candidates[0].run.cost_ns) / 1e9);
}

static const note_fn NOTES[] = {
    note_fidelity,   note_oom,       note_limit,   note_unexplained, note_ring,     note_costly,
    note_expandable, note_max_split, note_roundup, note_collection,  note_spelling, note_bisection,
};
_Static_assert(sizeof NOTES / sizeof NOTES[0] == ALLOTI_NOTE_COUNT, "one place for each note");

char *alloti_words_note(const alloti_topic *topic, uint32_t index, bool *silent)
{
    *silent = false;
    return NOTES[index](topic, silent);
}
