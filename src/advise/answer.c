/* SPDX-License-Identifier: MIT */
/* The answer of an advice in sentences: what to do, and why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise/words.h"
#include "core/size_text.h"

enum {
    FIGURE_MAX = 96,
    PIECE_MAX = 384,
    CARD_MAX = ALLOT_TORCH_CONF_TEXT_MAX + 128,
    SMALL_PARTS = 10, /* a saving below one in this many is small */
};

/** What a program can do itself. */
#define WAYS "a smaller batch or shorter sequences, activation checkpointing, lower precision"

/** Room for some figures, for a piece of a sentence, and for one with a setting in it. */
typedef struct figure {
    char text[FIGURE_MAX];
} figure;
typedef struct piece {
    char text[PIECE_MAX];
} piece;
typedef struct ways {
    char text[CARD_MAX + PIECE_MAX];
} ways;

static const char *setting_text(const alloti_candidate *candidate)
{
    return candidate->text[0] == '\0' ? "the defaults" : candidate->text;
}

static const char *plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

/** "1016.0 MiB (9.0 %) of 11.00 GiB". */
static figure say_spare(const alloti_topic *t)
{
    figure out = {.text = ""};
    snprintf(out.text, sizeof out.text, "%s (%.1f %%) of %s", alloti_size(t->summary->spare).text,
             100.0 * (double)t->summary->spare / (double)t->search->limit,
             alloti_size(t->search->limit).text);
    return out;
}

/** Both figures, or one if they are the same to a reader: "10.79 GiB instead of 19.41 GiB". */
static figure say_instead(uint64_t now, uint64_t then)
{
    figure out = {.text = ""};
    const alloti_size_text before = alloti_size(now);
    const alloti_size_text after = alloti_size(then);
    if (strcmp(before.text, after.text) == 0) {
        snprintf(out.text, sizeof out.text, "%s as at present", after.text);
    } else {
        snprintf(out.text, sizeof out.text, "%s instead of %s", after.text, before.text);
    }
    return out;
}

/** The smallest limit before and after. */
static piece say_fall(const alloti_topic *t)
{
    piece out = {.text = ""};
    snprintf(out.text, sizeof out.text, "The smallest limit at which they run falls from %s to %s",
             alloti_size(t->search->candidates[0].need_high).text,
             alloti_size(t->recommended->need_high).text);
    return out;
}

/** The end of a reason where little is to spare; "" where there is room. */
static piece say_tight(const alloti_topic *t)
{
    piece out = {.text = ""};
    if (t->summary->is_tight) {
        snprintf(out.text, sizeof out.text,
                 " That leaves %s: too tight to rely on, since two runs of a program may differ by "
                 "more. For "
                 "more room: " WAYS ".",
                 say_spare(t).text);
    }
    return out;
}

/** What kind of trouble it was, as the end of a sentence. */
static const char *say_trouble(allot_oom_verdict verdict)
{
    switch (verdict) {
    case ALLOT_OOM_FRAGMENTED:
        return ": fragmentation";
    case ALLOT_OOM_SEPARATED:
        return ", kept apart by stream, pool or size";
    case ALLOT_OOM_EXHAUSTED:
    case ALLOT_OOM_OUTSIDE:
        break;
    }
    return "";
}

/** How the present setting's trouble is told: the first sentence where it dies. */
static char *say_death(const alloti_topic *t)
{
    const alloti_candidate *const present = &t->search->candidates[0];
    const alloti_need *const need = t->need;
    if (need->oom_count > 0 && present->run.stop_event == need->oom_event) {
        const uint64_t unused =
            need->oom_active < need->oom_reserved ? need->oom_reserved - need->oom_active : 0;
        return alloti_words_format(
            "The run died asking for %s%s%s with %s free on the device and %s of the %s it held "
            "unused%s.",
            alloti_size(need->oom_size).text, t->where[0] != '\0' ? " at " : "", t->where,
            alloti_size(need->oom_device_free).text, alloti_size(unused).text,
            alloti_size(need->oom_reserved).text, say_trouble(need->oom_verdict));
    }
    return alloti_words_format("Within %s the present setting runs out of memory at event %llu.",
                               alloti_size(t->search->limit).text,
                               (unsigned long long)present->run.stop_event);
}

/** A run that died and need not have. */
static char *reason_cure(const alloti_topic *t)
{
    const alloti_candidate *const best = t->recommended;
    char *const death = say_death(t);
    char *const all =
        death == NULL
            ? NULL
            : alloti_words_format(
                  "%s With %s every recorded request is served within %s (peak reserved %s, "
                  "%llu %s), and %s would be enough, where the present setting needs %s.%s",
                  death, setting_text(best), alloti_size(t->search->limit).text,
                  alloti_size(best->run.peak_reserved).text, (unsigned long long)best->run.retries,
                  plural(best->run.retries, "retry", "retries"), alloti_size(best->need_high).text,
                  alloti_size(t->search->candidates[0].need_high).text, say_tight(t).text);
    free(death);
    return all;
}

static char *reason_change(const alloti_topic *t)
{
    const alloti_candidate *const present = &t->search->candidates[0];
    const alloti_candidate *const best = t->recommended;
    const figure reserved = say_instead(present->run.peak_reserved, best->run.peak_reserved);
    if (!present->run.finishes) {
        return reason_cure(t);
    }
    if (present->run.retries > 0) {
        return alloti_words_format(
            "With %s the recorded requests run within %s with %llu %s instead of %llu (peak "
            "reserved %s). %s.%s",
            setting_text(best), alloti_size(t->search->limit).text,
            (unsigned long long)best->run.retries, plural(best->run.retries, "retry", "retries"),
            (unsigned long long)present->run.retries, reserved.text, say_fall(t).text,
            say_tight(t).text);
    }
    piece calls = {.text = ""};
    if (t->search->info.is_complete && best->run.driver_calls != present->run.driver_calls) {
        snprintf(calls.text, sizeof calls.text,
                 ", and the driver is called %llu times instead of %llu",
                 (unsigned long long)best->run.driver_calls,
                 (unsigned long long)present->run.driver_calls);
    }
    return alloti_words_format(
        "With %s the recorded requests take %s from the driver at their peak. %s%s.%s",
        setting_text(best), reserved.text, say_fall(t).text, calls.text, say_tight(t).text);
}

/** What a program can do where no setting helps, and the card that would do. */
static ways say_ways(const alloti_topic *t)
{
    ways out = {.text = ""};
    char card[CARD_MAX] = "";
    if (t->closest != NULL && t->closest->need_high > t->search->limit) {
        snprintf(card, sizeof card, ". A device that gives this process %s would do, with %s",
                 alloti_size(t->closest->need_high).text,
                 t->closest == &t->search->candidates[0] ? "the present setting"
                                                         : setting_text(t->closest));
    }
    snprintf(out.text, sizeof out.text, WAYS "%s", card);
    return out;
}

static char *reason_nothing_helps(const alloti_topic *t)
{
    return alloti_words_format(
        "%s are live at once%s%s%s, and settings only change where memory is placed. What makes "
        "live tensors fewer or smaller: %s.",
        alloti_size(t->need->live_peak).text, t->where[0] != '\0' ? " at " : "", t->where,
        t->search->fraction > 0.0 ? ", more than the fraction of the limit" : "", say_ways(t).text);
}

static char *reason_not_found(const alloti_topic *t)
{
    char *const death = say_death(t);
    char *all = NULL;
    if (death != NULL && t->closest != NULL && t->closest->need_high > 0) {
        all = alloti_words_format(
            "%s No setting that was tried serves the recorded requests within this limit; %s comes "
            "closest and needs %s (live at the peak: %s). What makes live tensors fewer or "
            "smaller: " WAYS ".",
            death, setting_text(t->closest), alloti_size(t->closest->need_high).text,
            alloti_size(t->need->live_peak).text);
    } else if (death != NULL) {
        all = alloti_words_format("%s No setting that was tried serves the recorded requests "
                                  "within this limit, though only %s are live at the peak.",
                                  death, alloti_size(t->need->live_peak).text);
    }
    free(death);
    return all;
}

static char *reason_keep(const alloti_topic *t)
{
    const alloti_candidate *const present = &t->search->candidates[0];
    if (alloti_search_fits(t->search)) {
        return alloti_words_format(
            "The recorded requests run from %s on, which leaves %s to spare (peak reserved within "
            "it %s, live %s). No setting that was tried takes so much less that a change would "
            "pay.",
            alloti_size(present->need_high).text, say_spare(t).text,
            alloti_size(present->run.peak_reserved).text, alloti_size(t->need->live_peak).text);
    }
    return alloti_words_format(
        "No setting that was tried takes clearly less than the present one (peak reserved %s for "
        "%s live).%s What the program itself holds is the way to less: see the lines below.",
        alloti_size(present->run.peak_reserved).text, alloti_size(t->need->live_peak).text,
        say_tight(t).text);
}

char *alloti_words_reason(const alloti_topic *topic)
{
    switch (topic->summary->verdict) {
    case ALLOT_ADVICE_VERDICT_CHANGE:
        return reason_change(topic);
    case ALLOT_ADVICE_VERDICT_NOTHING_HELPS:
        return reason_nothing_helps(topic);
    case ALLOT_ADVICE_VERDICT_NOT_FOUND:
        return reason_not_found(topic);
    case ALLOT_ADVICE_VERDICT_KEEP:
    case ALLOT_ADVICE_VERDICT_CANNOT_SAY:
        break;
    }
    return reason_keep(topic);
}

static char *headline_change(const alloti_topic *t)
{
    const alloti_candidate *const present = &t->search->candidates[0];
    const alloti_size_text limit = alloti_size(t->search->limit);
    if (t->summary->is_tight) {
        return alloti_words_format("It runs within %s, but too tight to rely on: %s to spare.",
                                   limit.text, alloti_size(t->summary->spare).text);
    }
    if (!present->run.finishes) {
        return alloti_words_format("Another setting lets it run within %s.", limit.text);
    }
    if (t->summary->is_by_need) {
        return alloti_words_format("Another setting needs %s instead of %s.",
                                   alloti_size(t->recommended->need_high).text,
                                   alloti_size(present->need_high).text);
    }
    const uint64_t now = present->run.peak_reserved;
    const uint64_t saved = now - t->recommended->run.peak_reserved;
    if (saved < now / SMALL_PARTS) {
        return alloti_words_format(
            "Settings can save at most %s of %s: the live tensors need %s.",
            alloti_size(now > t->need->live_peak ? now - t->need->live_peak : saved).text,
            alloti_size(now).text, alloti_size(t->need->live_peak).text);
    }
    return alloti_words_format("Another setting saves %s of %s reserved.", alloti_size(saved).text,
                               alloti_size(now).text);
}

static char *headline_keep(const alloti_topic *t)
{
    const alloti_size_text limit = alloti_size(t->search->limit);
    if (t->summary->is_tight) {
        return alloti_words_format("Keep the present setting; it runs within %s, but too tight to "
                                   "rely on: %s to spare.",
                                   limit.text, alloti_size(t->summary->spare).text);
    }
    if (alloti_search_fits(t->search)) {
        return alloti_words_format("Keep the present setting: it fits on %s.", limit.text);
    }
    if (t->search->limit != 0) {
        return alloti_words_format("Keep the present setting: it runs within %s, under pressure.",
                                   limit.text);
    }
    return alloti_words_format("Keep the present setting.");
}

char *alloti_words_headline(const alloti_topic *topic)
{
    const alloti_size_text limit = alloti_size(topic->search->limit);
    switch (topic->summary->verdict) {
    case ALLOT_ADVICE_VERDICT_CHANGE:
        return headline_change(topic);
    case ALLOT_ADVICE_VERDICT_NOTHING_HELPS:
        return alloti_words_format("No setting helps: it needs %s, and the limit is %s.",
                                   alloti_size(topic->need->live_peak).text, limit.text);
    case ALLOT_ADVICE_VERDICT_NOT_FOUND:
        return alloti_words_format("No setting was found that runs within %s.", limit.text);
    case ALLOT_ADVICE_VERDICT_KEEP:
    case ALLOT_ADVICE_VERDICT_CANNOT_SAY:
        break;
    }
    return headline_keep(topic);
}
