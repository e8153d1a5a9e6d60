/* SPDX-License-Identifier: MIT */
/**
 * Which settings of PyTorch's allocator would save a run, and whether they do. The recording is
 * replayed under many settings (allot/advise.h); since that of a run that died ends there, the best
 * ones are then run for real, from the beginning to the end.
 */
#ifndef CLI_DRYRUN_ADVICE_H
#define CLI_DRYRUN_ADVICE_H

#include "dryrun_series.h"

enum { DRYRUN_TRIALS_MAX = 3 };

/** Settings that the replay found, and the run under them. */
typedef struct dryrun_trial {
    allot_advice_row row; /**< What the replay says. */
    dryrun_attempt *run;  /**< What the run says; NULL: it was not made. */
} dryrun_trial;

typedef struct dryrun_advice {
    bool is_made;
    char refusal[DRYRUN_TEXT_MAX]; /**< Why there is none; "" if there is. */
    allot_trace *trace;
    allot_advice *advice;
    allot_advice_summary summary;
    uint32_t trial_count;
    dryrun_trial trials[DRYRUN_TRIALS_MAX];
    const dryrun_trial *confirmed; /**< The first whose run fits; NULL: none. */
} dryrun_advice;

/**
 * Advise on a run whose snapshot is there, and confirm: the best settings are run until one fits.
 * CLI_OK, also where nothing can be advised; else a message was printed. End with
 * dryrun_advice_destroy() before the series ends.
 */
cli_exit dryrun_advise(dryrun_series *series, const dryrun_request *request,
                       const dryrun_attempt *attempt, dryrun_advice *out);

void dryrun_advice_destroy(dryrun_advice *advice);

#endif /* CLI_DRYRUN_ADVICE_H */
