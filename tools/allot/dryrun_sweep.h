/* SPDX-License-Identifier: MIT */
/** The largest value of an argument with which the program fits: --sweep batch=1..64. */
#ifndef CLI_DRYRUN_SWEEP_H
#define CLI_DRYRUN_SWEEP_H

#include "dryrun_series.h"

enum { DRYRUN_SWEEP_NAME_MAX = 64, DRYRUN_SWEEP_LIST_MAX = 256 };

/** The values: a range with a step, or a list. Ascending. */
typedef struct dryrun_sweep_range {
    char name[DRYRUN_SWEEP_NAME_MAX];
    uint64_t first;
    uint64_t step;
    uint64_t count;
    bool is_list;
    uint64_t list[DRYRUN_SWEEP_LIST_MAX];
} dryrun_sweep_range;

/** What came of it. The runs are the series'. */
typedef struct dryrun_sweep {
    dryrun_sweep_range range;
    dryrun_attempt *largest; /**< That fits; NULL: none does. */
    dryrun_attempt *calm;    /**< The largest run that fits without retries; NULL: none does. */
    dryrun_attempt *beyond;  /**< The value after it, which does not; NULL: there is none. */
    dryrun_attempt *failed;  /**< Ended the search for another reason; NULL: none did. */
    bool is_finished;        /**< The search came to its end. */
} dryrun_sweep;

/** Read "NAME=FIRST..LAST", "NAME=FIRST..LAST..STEP" or "NAME=A,B,C"; false after a message. */
bool dryrun_sweep_parse(const char *text, dryrun_sweep_range *out);

/** Whether "{NAME}" stands in the command; else a message was printed. */
bool dryrun_sweep_is_used(const dryrun_sweep_range *range, char *const *command);

/** Search. CLI_OK, else a message was printed; *out says what is known until then. */
cli_exit dryrun_sweep_run(dryrun_series *series, const dryrun_request *request, dryrun_sweep *out);

#endif /* CLI_DRYRUN_SWEEP_H */
