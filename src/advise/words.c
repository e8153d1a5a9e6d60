/* SPDX-License-Identifier: MIT */
#include "advise/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/size_text.h"

enum { CHANGE_MAX = 512 };

char *alloti_words_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *const text = size < 0 ? NULL : malloc((size_t)size + 1);
    if (text != NULL) {
        vsnprintf(text, (size_t)size + 1, format, again);
    }
    va_end(again);
    return text;
}

/** Text of a change that is put together piece by piece. */
typedef struct pieces {
    char text[CHANGE_MAX];
    size_t used;
} pieces;

static void piece_add(pieces *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void piece_add(pieces *p, const char *format, ...)
{
    if (p->used > 0 && p->used + 2 < sizeof p->text) {
        memcpy(p->text + p->used, ", ", 3);
        p->used += 2;
    }
    va_list args;
    va_start(args, format);
    const int size = vsnprintf(p->text + p->used, sizeof p->text - p->used, format, args);
    va_end(args);
    if (size > 0) {
        const size_t room = sizeof p->text - p->used - 1;
        p->used += (size_t)size < room ? (size_t)size : room;
    }
}

/** Value that all intervals share, or UINT32_MAX. */
static uint32_t common_divisions(const allot_torch_conf *conf)
{
    for (uint32_t i = 1; i < ALLOT_TORCH_INTERVALS; i++) {
        if (conf->roundup_power2_divisions[i] != conf->roundup_power2_divisions[0]) {
            return UINT32_MAX;
        }
    }
    return conf->roundup_power2_divisions[0];
}

static void say_roundup(pieces *p, const allot_torch_conf *conf)
{
    const uint32_t common = common_divisions(conf);
    if (common == UINT32_MAX) {
        piece_add(p, "roundup_power2_divisions by interval");
    } else if (common == 0) {
        piece_add(p, "roundup_power2_divisions off");
    } else {
        piece_add(p, "roundup_power2_divisions %u", common);
    }
}

char *alloti_words_change(const allot_torch_conf *present, const allot_torch_conf *other)
{
    pieces p = {.used = 0};
    if (present->expandable_segments != other->expandable_segments) {
        piece_add(&p, "expandable_segments %s", other->expandable_segments ? "on" : "off");
    }
    if (present->max_split_size != other->max_split_size) {
        if (other->max_split_size == ALLOT_TORCH_UNLIMITED) {
            piece_add(&p, "max_split_size_mb off");
        } else {
            piece_add(&p, "max_split_size_mb %llu",
                      (unsigned long long)(other->max_split_size >> 20));
        }
    }
    if (memcmp(present->roundup_power2_divisions, other->roundup_power2_divisions,
               sizeof present->roundup_power2_divisions) != 0) {
        say_roundup(&p, other);
    }
    const double before = present->garbage_collection_threshold;
    const double after = other->garbage_collection_threshold;
    if (before < after || before > after) {
        piece_add(&p, "garbage_collection_threshold %g", after);
    }
    if (present->max_non_split_rounding != other->max_non_split_rounding) {
        piece_add(&p, "max_non_split_rounding_mb %llu",
                  (unsigned long long)(other->max_non_split_rounding >> 20));
    }
    return strdup(p.text);
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

static char *reason_change(const alloti_topic *t)
{
    const alloti_candidate *const present = &t->search->candidates[0];
    const alloti_candidate *const best = t->recommended;
    if (!present->run.finishes) {
        char *const death = say_death(t);
        char *const all =
            death == NULL
                ? NULL
                : alloti_words_format(
                      "%s With %s every recorded request is served within %s (peak reserved %s, "
                      "%llu retries), and %s would be enough, where the present setting needs %s.",
                      death, best->text, alloti_size(t->search->limit).text,
                      alloti_size(best->run.peak_reserved).text,
                      (unsigned long long)best->run.retries, alloti_size(best->need_high).text,
                      alloti_size(present->need_high).text);
        free(death);
        return all;
    }
    if (present->run.retries > 0) {
        return alloti_words_format(
            "With %s the recorded requests run within %s with %llu retries instead of %llu (peak "
            "reserved %s instead of %s). The smallest limit at which they run falls from %s to %s.",
            best->text[0] == '\0' ? "the defaults" : best->text, alloti_size(t->search->limit).text,
            (unsigned long long)best->run.retries, (unsigned long long)present->run.retries,
            alloti_size(best->run.peak_reserved).text, alloti_size(present->run.peak_reserved).text,
            alloti_size(present->need_high).text, alloti_size(best->need_high).text);
    }
    char calls[CHANGE_MAX] = "";
    if (t->search->info.is_complete) {
        snprintf(calls, sizeof calls, ", and the driver is called %llu times instead of %llu",
                 (unsigned long long)best->run.driver_calls,
                 (unsigned long long)present->run.driver_calls);
    }
    return alloti_words_format(
        "With %s the recorded requests take %s from the driver at their peak instead of %s. "
        "The smallest limit at which they run falls from %s to %s%s.",
        best->text[0] == '\0' ? "the defaults" : best->text,
        alloti_size(best->run.peak_reserved).text, alloti_size(present->run.peak_reserved).text,
        alloti_size(present->need_high).text, alloti_size(best->need_high).text, calls);
}

static char *reason_nothing_helps(const alloti_topic *t)
{
    return alloti_words_format(
        "Nothing helps: you need %s%s%s, because that much is live at once, and the limit is %s%s. "
        "Settings only change how memory is placed; fewer or smaller live tensors are needed, "
        "beginning with the lines below.",
        alloti_size(t->need->live_peak).text, t->where[0] != '\0' ? " at " : "", t->where,
        alloti_size(t->search->limit).text, t->search->fraction > 0.0 ? " times the fraction" : "");
}

static char *reason_not_found(const alloti_topic *t)
{
    char *const death = say_death(t);
    char *all = NULL;
    if (death != NULL && t->closest != NULL && t->closest->need_high > 0) {
        all = alloti_words_format(
            "%s No setting that was tried serves the recorded requests within this limit; %s comes "
            "closest and needs %s (live at the peak: %s).",
            death, t->closest->text[0] == '\0' ? "the default" : t->closest->text,
            alloti_size(t->closest->need_high).text, alloti_size(t->need->live_peak).text);
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
    return alloti_words_format(
        "No setting that was tried takes clearly less than the present one (peak reserved %s for "
        "%s live). What the program itself holds is the way to less: see the lines below.",
        alloti_size(present->run.peak_reserved).text, alloti_size(t->need->live_peak).text);
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
