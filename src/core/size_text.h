/* SPDX-License-Identifier: MIT */
/** Sizes and counts as text by value, for use within one expression: alloti_size(n).text. */
#ifndef ALLOTI_CORE_SIZE_TEXT_H
#define ALLOTI_CORE_SIZE_TEXT_H

#include <allot/base.h>

typedef struct alloti_size_text {
    char text[ALLOT_SIZE_TEXT_MAX];
} alloti_size_text;

enum { ALLOTI_COUNT_TEXT_MAX = 64 };

typedef struct alloti_count_text {
    char text[ALLOTI_COUNT_TEXT_MAX];
} alloti_count_text;

/** A size for people, as allot_size_format() writes it. */
alloti_size_text alloti_size(uint64_t bytes);

/** A difference with its sign: "+1.5 MiB", "-20 B", "0 B". */
alloti_size_text alloti_size_change(uint64_t from, uint64_t to);

/** A number of things: "1 block", "2 blocks". The noun takes an "s"; at most 40 bytes are kept. */
alloti_count_text alloti_count(uint64_t count, const char *noun);

#endif /* ALLOTI_CORE_SIZE_TEXT_H */
