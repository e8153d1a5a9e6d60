/* SPDX-License-Identifier: MIT */
/** What a dry run comes to. */
#ifndef CLI_DRYRUN_JUDGE_H
#define CLI_DRYRUN_JUDGE_H

#include "dryrun.h"

/** Whether CUDA was used by a program that is not Python: the stand-in alone saw its memory. */
bool dryrun_is_native(const dryrun_result *result);

dryrun_verdict dryrun_judge(const dryrun_request *request, const dryrun_result *result);

/** Whether it ran out of memory, caught that, and came to its end in order. */
bool dryrun_is_caught(const dryrun_result *result);

/** As in JSON: "out_of_memory". */
const char *dryrun_verdict_name(dryrun_verdict verdict);

/** Whether sizes may depend on what was read from the device, which a dry run does not know. */
bool dryrun_is_approximate(const dryrun_result *result);

/** CLI_OK for "fits"; CLI_FOUND for the memory's faults; CLI_FAILED where the program failed. */
cli_exit dryrun_exit(dryrun_verdict verdict);

/** The card with least memory that holds `reserved` beside its context. */
typedef struct dryrun_smallest {
    allot_gpu gpu;
    bool is_found;
    bool is_listed;  /**< It is a built-in one. */
    bool is_used;    /**< It is the card of the run. */
    size_t imported; /**< Profiles of the user's that were looked at beside the built-in ones. */
} dryrun_smallest;

/** Of the built-in cards, the imported ones, and the card of the run; whether there is one. */
bool dryrun_find_smallest(const dryrun_request *request, uint64_t reserved, dryrun_smallest *out);

#endif /* CLI_DRYRUN_JUDGE_H */
