/* SPDX-License-Identifier: MIT */
/** Printing a dry run as JSON, described in docs/json.md. */
#ifndef CLI_DRYRUN_JSON_H
#define CLI_DRYRUN_JSON_H

#include "dryrun_judge.h"

void dryrun_print_json(const dryrun_request *request, const dryrun_result *result,
                       dryrun_verdict verdict);

#endif /* CLI_DRYRUN_JSON_H */
