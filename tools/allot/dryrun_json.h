/* SPDX-License-Identifier: MIT */
/** Printing a dry run as JSON, described in docs/json.md. */
#ifndef CLI_DRYRUN_JSON_H
#define CLI_DRYRUN_JSON_H

#include "dryrun_search.h"

/** The run that stands for all, and what the others add. */
void dryrun_print_json(const dryrun_request *request, const dryrun_answer *answer);

#endif /* CLI_DRYRUN_JSON_H */
