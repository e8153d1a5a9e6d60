/* SPDX-License-Identifier: MIT */
/** What a dry run comes to. */
#ifndef CLI_DRYRUN_JUDGE_H
#define CLI_DRYRUN_JUDGE_H

#include "dryrun.h"

/** One of four, never "fits" on partial knowledge. */
typedef enum dryrun_verdict {
    DRYRUN_FITS,
    DRYRUN_OUT_OF_MEMORY,
    DRYRUN_FAILED,     /**< For another reason. */
    DRYRUN_INCOMPLETE, /**< Something is not known that memory depends on. */
} dryrun_verdict;

dryrun_verdict dryrun_judge(const dryrun_request *request, const dryrun_result *result);

/** As in JSON: "out_of_memory". */
const char *dryrun_verdict_name(dryrun_verdict verdict);

/** CLI_OK for "fits"; CLI_FOUND for the memory's faults; CLI_FAILED where the program failed. */
cli_exit dryrun_exit(dryrun_verdict verdict);

/** The built-in card with least memory that holds `reserved` beside its context; false for none. */
bool dryrun_smallest_card(uint64_t reserved, allot_gpu *out);

#endif /* CLI_DRYRUN_JUDGE_H */
