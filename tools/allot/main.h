/* SPDX-License-Identifier: MIT */
#ifndef CLI_MAIN_H
#define CLI_MAIN_H

/** Name of the verb that runs, "" before it is known. */
const char *cli_current_verb(void);

#endif /* CLI_MAIN_H */
