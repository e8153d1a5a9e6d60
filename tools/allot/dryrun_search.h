/* SPDX-License-Identifier: MIT */
/** Questions that take several runs: --conf, --fit, --sweep, and advice that is tried out. */
#ifndef CLI_DRYRUN_SEARCH_H
#define CLI_DRYRUN_SEARCH_H

#include "dryrun_advice.h"
#include "dryrun_fit.h"
#include "dryrun_sweep.h"

enum { DRYRUN_CONFS_MAX = 16 };

typedef enum dryrun_question {
    DRYRUN_ASK_ONE,   /**< Does it fit? */
    DRYRUN_ASK_CONFS, /**< Under which of these settings? */
    DRYRUN_ASK_FIT,   /**< How much memory does it need, under each of these settings? */
    DRYRUN_ASK_SWEEP, /**< What is the largest value with which it fits? */
} dryrun_question;

/** What came of one of --conf; or of none, as in the environment. */
typedef struct dryrun_compared {
    const char *conf;    /**< NULL: as in the environment. Borrowed. */
    dryrun_attempt *run; /**< For DRYRUN_ASK_FIT the one that says most; NULL: not run. */
    dryrun_fit fit;      /**< For DRYRUN_ASK_FIT. */
} dryrun_compared;

typedef struct dryrun_answer {
    dryrun_question question;
    dryrun_series series;
    dryrun_attempt *run; /**< The run that stands for all: the only one, the first settings',
                                  at the smallest limit, with the largest value. NULL: none. */
    uint32_t compared_count;
    dryrun_compared compared[DRYRUN_CONFS_MAX];
    dryrun_compared *least; /**< With the smallest limit; NULL: none is known. */
    dryrun_sweep sweep;
    dryrun_advice advice;
    bool is_cut_short; /**< Not all of it was run. */
} dryrun_answer;

/** Options of the questions, as a popt table. */
extern const struct poptOption DRYRUN_SEARCH_OPTIONS[];

/** Read the options; the command is in the request. CLI_OK, else a message was printed. */
cli_exit dryrun_search_read(dryrun_request *request, dryrun_answer *out);

/** Make the runs. CLI_OK with answer->run, else a message was printed. */
cli_exit dryrun_search_run(const dryrun_request *request, dryrun_answer *answer);

/** Exit code of the answer. */
cli_exit dryrun_search_exit(const dryrun_answer *answer);

/** Whether more was reserved than --assert-peak allows, see the manual; then a message was printed.
 */
bool dryrun_search_is_above(const dryrun_answer *answer, uint64_t peak_max);

/** Remove all that the runs left. */
void dryrun_search_end(dryrun_answer *answer);

#endif /* CLI_DRYRUN_SEARCH_H */
