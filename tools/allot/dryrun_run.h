/* SPDX-License-Identifier: MIT */
/** Running a program on the stand-in and reading what it left. */
#ifndef CLI_DRYRUN_RUN_H
#define CLI_DRYRUN_RUN_H

#include "dryrun.h"

/**
 * The folder of the stand-in, in out[size]: beside the command where it was built, below lib/ where
 * it was installed, or where ALLOT_STANDIN_DIR says. False if it is not there.
 */
bool dryrun_find_standin(char *out, size_t size);

/** Run the program and read its reports. CLI_OK, else a message was printed. */
cli_exit dryrun_run(const dryrun_request *request, dryrun_result *out);

/** Remove the folder with the reports. */
void dryrun_clean(const dryrun_result *result);

/**
 * Read the reports of process `pid` in a folder. Stacks that a signal left are shown on standard
 * error.
 */
void dryrun_read_process(const char *folder, long pid, dryrun_result *out);

#endif /* CLI_DRYRUN_RUN_H */
