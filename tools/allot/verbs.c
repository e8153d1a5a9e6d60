/* SPDX-License-Identifier: MIT */
#include "verbs.h"

/* clang-format off: one a line */
const cli_verb *const CLI_VERBS[] = {
    &cli_verb_advise,  &cli_verb_bench,  &cli_verb_compact, &cli_verb_completion, &cli_verb_diff,
    &cli_verb_doctor,  &cli_verb_dryrun, &cli_verb_explain, &cli_verb_export,     &cli_verb_gpu,
    &cli_verb_inspect, &cli_verb_leaks,  &cli_verb_ranks,   &cli_verb_replay,     NULL,
};
/* clang-format on */
