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
