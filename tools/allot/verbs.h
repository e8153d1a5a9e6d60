/* SPDX-License-Identifier: MIT */
/** Every verb, one file each. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "cli.h"

extern const cli_verb cli_verb_advise;
extern const cli_verb cli_verb_bench;
extern const cli_verb cli_verb_compact;
extern const cli_verb cli_verb_completion;
extern const cli_verb cli_verb_diff;
extern const cli_verb cli_verb_doctor;
extern const cli_verb cli_verb_dryrun;
extern const cli_verb cli_verb_explain;
extern const cli_verb cli_verb_export;
extern const cli_verb cli_verb_gpu;
extern const cli_verb cli_verb_inspect;
extern const cli_verb cli_verb_leaks;
extern const cli_verb cli_verb_ranks;
extern const cli_verb cli_verb_replay;

#endif /* CLI_VERBS_H */
