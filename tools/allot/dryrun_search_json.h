/* SPDX-License-Identifier: MIT */
/** The part of the JSON document that is about several runs, described in docs/json.md. */
#ifndef CLI_DRYRUN_SEARCH_JSON_H
#define CLI_DRYRUN_SEARCH_JSON_H

#include <yajl/yajl_gen.h>

#include "dryrun_search.h"

/** Add its members to the object that is open. */
void dryrun_put_answer(yajl_gen json, const dryrun_answer *answer);

#endif /* CLI_DRYRUN_SEARCH_JSON_H */
