/* SPDX-License-Identifier: MIT */
/** What stands in the way of a dry run, and what to do: sentences that every form of output shows.
 */
#ifndef CLI_DRYRUN_HINT_H
#define CLI_DRYRUN_HINT_H

#include "dryrun_judge.h"

enum { DRYRUN_HINT_MAX = 12, DRYRUN_HINT_SIZE = 512 };

typedef struct dryrun_hints {
    uint32_t count;
    char text[DRYRUN_HINT_MAX][DRYRUN_HINT_SIZE];
} dryrun_hints;

void dryrun_find_hints(const dryrun_request *request, const dryrun_result *result,
                       dryrun_verdict verdict, dryrun_hints *out);

#endif /* CLI_DRYRUN_HINT_H */
