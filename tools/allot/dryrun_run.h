/* SPDX-License-Identifier: MIT */
/** Running a program on the stand-in and reading what it left. */
#ifndef CLI_DRYRUN_RUN_H
#define CLI_DRYRUN_RUN_H

#include "dryrun.h"

/** Run the program and read its reports. CLI_OK, else a message was printed. */
cli_exit dryrun_run(const dryrun_request *request, dryrun_result *out);

/** Remove the folder with the reports. */
void dryrun_clean(const dryrun_result *result);

/** Read the reports of process `pid` in result->folder into the rest of the result. */
void dryrun_read_reports(dryrun_result *result, long pid);

#endif /* CLI_DRYRUN_RUN_H */
