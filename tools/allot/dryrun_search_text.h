/* SPDX-License-Identifier: MIT */
/** Printing what several dry runs came to. */
#ifndef CLI_DRYRUN_SEARCH_TEXT_H
#define CLI_DRYRUN_SEARCH_TEXT_H

#include "dryrun_search.h"

void dryrun_print_answer(const dryrun_request *request, const dryrun_answer *answer);

#endif /* CLI_DRYRUN_SEARCH_TEXT_H */
