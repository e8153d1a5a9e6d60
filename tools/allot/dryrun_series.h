/* SPDX-License-Identifier: MIT */
/**
 * Several dry runs of one program. The first prints as usual; of the others the output is kept in a
 * file, and shown where one fails for another reason than memory.
 */
#ifndef CLI_DRYRUN_SERIES_H
#define CLI_DRYRUN_SERIES_H

#include "dryrun_judge.h"

enum { DRYRUN_LABEL_MAX = 256, DRYRUN_RUNS_MAX = 128 };

/** Why a run was made. X(name, spelling in JSON) */
#define DRYRUN_PURPOSE_LIST(X)                                                                     \
    X(RUN, "run")         /* the one that was asked for */                                         \
    X(CONF, "conf")       /* settings to compare */                                                \
    X(FIT, "fit")         /* a limit of the search */                                              \
    X(CARD, "card")       /* the smallest card */                                                  \
    X(SWEEP, "sweep")     /* a value of the search */                                              \
    X(CONFIRM, "confirm") /* settings that were advised */

typedef enum dryrun_purpose {
#define DRYRUN_PURPOSE_ENUM(name, spelling) DRYRUN_PURPOSE_##name,
    DRYRUN_PURPOSE_LIST(DRYRUN_PURPOSE_ENUM)
#undef DRYRUN_PURPOSE_ENUM
} dryrun_purpose;

const char *dryrun_purpose_name(dryrun_purpose purpose);

/** One run. */
typedef struct dryrun_attempt {
    dryrun_purpose purpose;
    char label[DRYRUN_LABEL_MAX]; /**< What is different in it: "batch=17", settings, a limit. */
    uint64_t value;               /**< Of a sweep. */
    uint64_t limit;               /**< Memory of the device; with a card, its own. */
    char conf[DRYRUN_LABEL_MAX];  /**< Settings of --conf, "" for none. */
    bool has_conf;                /**< They were set; else the environment's held. */
    char gpu[ALLOT_GPU_NAME_MAX]; /**< Id of the card. */
    bool is_kept;                 /**< Its snapshot stays; else until the next run. */
    dryrun_verdict verdict;
    dryrun_result result;
} dryrun_attempt;

typedef struct dryrun_series {
    uint32_t count;
    dryrun_attempt *runs[DRYRUN_RUNS_MAX]; /**< In the order they were made. Owned. */
} dryrun_series;

/**
 * Run a program. CLI_OK with the run in *out, whatever its verdict, else a message was printed:
 * CLI_FAILED also after a signal and at DRYRUN_RUNS_MAX. The snapshot of the run before is removed
 * unless that one is kept.
 */
cli_exit dryrun_series_run(dryrun_series *series, const dryrun_request *request,
                           dryrun_purpose purpose, const char *label, dryrun_attempt **out);

/** Keep the snapshot of a run instead of that of `before`; either may be NULL. */
void dryrun_attempt_keep(dryrun_attempt *attempt, dryrun_attempt *before);

/** Remove all that is left of the runs. */
void dryrun_series_end(dryrun_series *series);

/**
 * Whether a run came to its end without an out-of-memory, caught or not, and its peaks are known:
 * it fits, or may fit.
 */
bool dryrun_attempt_is_good(const dryrun_attempt *attempt);

/** Whether a run says nothing about the memory it needs, so that a search has to stop. */
bool dryrun_attempt_is_useless(const dryrun_attempt *attempt);

#endif /* CLI_DRYRUN_SERIES_H */
