/* SPDX-License-Identifier: MIT */
/** Sentences of an advice. All results are allocated; NULL when host memory is out. */
#ifndef ALLOTI_ADVISE_WORDS_H
#define ALLOTI_ADVISE_WORDS_H

#include <allot/torchsim.h>

#include "advise/need.h"
#include "advise/search.h"

/** What differs: "expandable_segments on, max_split_size_mb off"; "" for equal settings. */
char *alloti_words_change(const allot_torch_conf *present, const allot_torch_conf *other);

/** Formatted like printf. */
char *alloti_words_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** What the sentences are about. */
typedef struct alloti_topic {
    const alloti_search *search;
    const alloti_need *need;
    const allot_advice_summary *summary;
    const alloti_candidate *recommended; /**< NULL if none. */
    const alloti_candidate *closest;     /**< Needs least of all that were tried; NULL if none. */
    const char *where;                   /**< "" if the file has no stacks. */
} alloti_topic;

/** The answer in a sentence, without the setting itself. */
char *alloti_words_headline(const alloti_topic *topic);

/** Why the verdict is what it is, in two or three sentences. */
char *alloti_words_reason(const alloti_topic *topic);

/** Number of remarks that alloti_words_note() knows; each may have nothing to say. */
#define ALLOTI_NOTE_COUNT 12

/** Remark `index`; *silent is set if it does not apply. */
char *alloti_words_note(const alloti_topic *topic, uint32_t index, bool *silent);

#endif /* ALLOTI_ADVISE_WORDS_H */
