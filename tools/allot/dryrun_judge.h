/* SPDX-License-Identifier: MIT */
/** What a dry run comes to. */
#ifndef CLI_DRYRUN_JUDGE_H
#define CLI_DRYRUN_JUDGE_H

#include "dryrun.h"

/** Whether CUDA was used by a program that is not Python: the stand-in alone saw its memory. */
bool dryrun_is_native(const dryrun_result *result);

dryrun_verdict dryrun_judge(const dryrun_request *request, const dryrun_result *result);

/** As in JSON: "out_of_memory". */
const char *dryrun_verdict_name(dryrun_verdict verdict);

/** Whether sizes may depend on what was read from the device, which a dry run does not know. */
bool dryrun_is_approximate(const dryrun_result *result);

/** CLI_OK for "fits"; CLI_FOUND for the memory's faults; CLI_FAILED where the program failed. */
cli_exit dryrun_exit(dryrun_verdict verdict);

/** The built-in card with least memory that holds `reserved` beside its context; false for none. */
bool dryrun_smallest_card(uint64_t reserved, allot_gpu *out);

#endif /* CLI_DRYRUN_JUDGE_H */
