/* SPDX-License-Identifier: MIT */
/** Options of a dry run that are checked before anything runs: a run may take long. */
#ifndef CLI_DRYRUN_CHECK_H
#define CLI_DRYRUN_CHECK_H

#include "cli.h"

/** Read --limit (NULL: *out stays); CLI_OK, else a message was printed. */
cli_exit dryrun_check_limit(const char *text, uint64_t *out);

/** Read --assert-peak likewise; where its unit looks decimal, what it was read as is said. */
cli_exit dryrun_check_peak(const char *text, uint64_t *out);

/** Rules of --booleans, ended by NULL; NULL: none. */
cli_exit dryrun_check_booleans(char *const *rules);

/** Whether a file could be written; NULL and "-" always. {rank} in a folder is not looked at. */
cli_exit dryrun_check_output(const char *path);

#endif /* CLI_DRYRUN_CHECK_H */
