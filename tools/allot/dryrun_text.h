/* SPDX-License-Identifier: MIT */
/** Printing a dry run for people. */
#ifndef CLI_DRYRUN_TEXT_H
#define CLI_DRYRUN_TEXT_H

#include "dryrun_judge.h"

void dryrun_print(const dryrun_request *request, const dryrun_result *result,
                  dryrun_verdict verdict);

#endif /* CLI_DRYRUN_TEXT_H */
