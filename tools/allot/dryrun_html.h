/* SPDX-License-Identifier: MIT */
/** A dry run as a page: --html. */
#ifndef CLI_DRYRUN_HTML_H
#define CLI_DRYRUN_HTML_H

#include "dryrun_search.h"

/** Write the page if the user asked for one. CLI_OK, else a message was printed. */
cli_exit dryrun_write_html(const dryrun_request *request, const dryrun_answer *answer);

#endif /* CLI_DRYRUN_HTML_H */
