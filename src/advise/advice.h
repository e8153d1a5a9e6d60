/* SPDX-License-Identifier: MIT */
/** An advice as it is kept: the public rows and texts, all owned. */
#ifndef ALLOTI_ADVISE_ADVICE_H
#define ALLOTI_ADVISE_ADVICE_H

#include <allot/advise.h>

#include "advise/need.h"
#include "advise/search.h"

struct allot_advice {
    allot_advice_summary summary;
    allot_advice_row *rows; /**< [row_count]; setting and change are owned. */
    uint32_t row_count;
    allot_advice_row *strategies; /**< [strategy_count]; likewise. */
    uint32_t strategy_count;
    allot_advice_line *lines; /**< [line_count]; text is owned. */
    uint32_t line_count;
    char **notes; /**< [note_count] */
    uint32_t note_count;
    char *where;
    char *headline;
    char *reason;
};

/** Copy the present setting and some candidates into rows, and the strategies. */
ALLOT_NODISCARD allot_status alloti_advice_add_rows(allot_advice *advice,
                                                    const alloti_search *search,
                                                    const uint32_t *shown, uint32_t count);

/** Fill in the code lines at the moment that matters, and where its request came from. */
ALLOT_NODISCARD allot_status alloti_advice_add_lines(allot_advice *advice,
                                                     const allot_history *history,
                                                     const allot_lines *lines,
                                                     const alloti_need *need);

/** Fill in headline, reason and notes. `recommended` and `closest` may be NULL. */
ALLOT_NODISCARD allot_status alloti_advice_add_words(allot_advice *advice,
                                                     const alloti_search *search,
                                                     const alloti_need *need,
                                                     const alloti_candidate *recommended,
                                                     const alloti_candidate *closest);

/** Turn it into the answer that nothing can be said, with a reason (copied). */
ALLOT_NODISCARD allot_status alloti_advice_refuse(allot_advice *advice, const char *reason);

#endif /* ALLOTI_ADVISE_ADVICE_H */
