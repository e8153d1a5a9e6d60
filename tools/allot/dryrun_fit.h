/* SPDX-License-Identifier: MIT */
/** The least memory with which a program runs to its end: --fit. */
#ifndef CLI_DRYRUN_FIT_H
#define CLI_DRYRUN_FIT_H

#include "dryrun_series.h"

/** Steps of device memory, and of the search. */
enum { DRYRUN_GRANULE = 2 << 20 };

typedef struct dryrun_fit {
    dryrun_attempt *roomy;  /**< Within DRYRUN_ROOMY; NULL: not run. */
    dryrun_attempt *least;  /**< The smallest limit that fits; NULL: not found. */
    dryrun_attempt *below;  /**< A granule less, which does not fit; NULL: see is_live. */
    bool is_live;           /**< A granule less is less than what is requested at the peak. */
    uint64_t limit_min;     /**< Of `least`; may contain times that memory is given back. */
    uint64_t limit_calm;    /**< With which no memory has to be given back. */
    uint64_t limit_replay;  /**< What the replay of the roomy run said; 0: nothing. */
    uint32_t run_count;     /**< Runs of this search. */
    dryrun_attempt *card;   /**< The run on the smallest card that fits; NULL: none. */
    uint32_t cards_refuted; /**< Cards with enough memory on which the run did not fit. */
    bool is_finished;
} dryrun_fit;

/**
 * Whether the run with the least memory asked for something else than the one without a limit: the
 * program looks at the memory there is, or does not do the same each time. Then there may be less.
 */
bool dryrun_fit_is_unsteady(const dryrun_fit *fit);

/** What "no limit" means: more than any device has. */
#define DRYRUN_ROOMY (UINT64_C(512) << 30)

/** Search the limit. CLI_OK, else a message was printed; *out says what is known until then. */
cli_exit dryrun_fit_run(dryrun_series *series, const dryrun_request *request, dryrun_fit *out);

/** Run on the smallest cards of the list that have the memory, until one fits. */
cli_exit dryrun_fit_card(dryrun_series *series, const dryrun_request *request, dryrun_fit *fit);

#endif /* CLI_DRYRUN_FIT_H */
