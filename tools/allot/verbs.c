/* SPDX-License-Identifier: MIT */
#include "verbs.h"

const cli_verb *const CLI_VERBS[] = {
    &cli_verb_completion,
    &cli_verb_export,
    &cli_verb_replay,
    NULL,
};
