/* SPDX-License-Identifier: MIT */
/** Which candidates become rows, and what follows from their order. */
#ifndef ALLOTI_ADVISE_SHOWN_H
#define ALLOTI_ADVISE_SHOWN_H

#include "advise/search.h"

/** Indices of candidates, best first once ordered. Zero-initialise. */
typedef struct alloti_shown {
    uint32_t *items;
    uint32_t count;
} alloti_shown;

void alloti_shown_fini(alloti_shown *shown);

/** Choose about `max`: the best, the best of each family, and all that the caller asked for. */
ALLOT_NODISCARD allot_status alloti_shown_choose(const alloti_search *search, uint32_t max,
                                                 alloti_shown *shown);

/** Order them by all that is known by now; what has turned out no better than now is left out. */
ALLOT_NODISCARD allot_status alloti_shown_order(const alloti_search *search, alloti_shown *shown);

/** Row (1 is the first shown) of the first that may be recommended; ALLOT_NONE if none may. */
uint32_t alloti_shown_first_gain(const alloti_search *search, const alloti_shown *shown);

/** The one with the smallest limit at which it runs, the present one included; NULL if none. */
const alloti_candidate *alloti_shown_closest(const alloti_search *search,
                                             const alloti_shown *shown);

#endif /* ALLOTI_ADVISE_SHOWN_H */
