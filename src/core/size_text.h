/* SPDX-License-Identifier: MIT */
/** Sizes as text by value, for use within one expression: alloti_size(n).text. */
#ifndef ALLOTI_CORE_SIZE_TEXT_H
#define ALLOTI_CORE_SIZE_TEXT_H

#include <allot/base.h>

typedef struct alloti_size_text {
    char text[ALLOT_SIZE_TEXT_MAX];
} alloti_size_text;

/** A size for people, as allot_size_format() writes it. */
alloti_size_text alloti_size(uint64_t bytes);

/** A difference with its sign: "+1.5 MiB", "-20 B", "0 B". */
alloti_size_text alloti_size_change(uint64_t from, uint64_t to);

#endif /* ALLOTI_CORE_SIZE_TEXT_H */
