/* SPDX-License-Identifier: MIT */
/** What the verbs that report have in common: options, device, output, colours, width. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <allot/html.h>

#include "cli.h"

/** Values of CLI_REPORT_OPTIONS. */
typedef struct cli_report_args {
    int wants_json;
    const char *device_text;
    const char *top_text;
    uint32_t device;     /**< Read from the text; ALLOT_NONE: not given. */
    uint32_t top;        /**< Read from the text; 0: not given. */
    const char *output;  /**< NULL: standard output. */
    const char *html;    /**< NULL: none. */
    char **own_prefixes; /**< popt's argv; NULL: none. */
} cli_report_args;

extern cli_report_args cli_report;

/** Read the numbers out of the texts: CLI_OK, else the message has been printed. */
cli_exit cli_report_read(void);

/** The options as a popt table, for POPT_ARG_INCLUDE_TABLE. */
extern const struct poptOption CLI_REPORT_OPTIONS[];
/** --html alone. */
extern const struct poptOption CLI_HTML_OPTIONS[];

/** How to fold stacks, from --own. Borrowed: valid until the program ends. */
const allot_lines_options *cli_lines_options(void);

/** Options of a report to `out`, for the file `name`. */
allot_report_options cli_report_to(const char *name, const FILE *out);

/** Device asked for, or the main one: CLI_OK, else the message has been printed. */
cli_exit cli_choose_device(const allot_trace *trace, const char *name, uint32_t *out);

/** A trace and the history of the device asked for. */
typedef struct cli_subject {
    allot_trace *trace;
    allot_history *history;
} cli_subject;

/** Read a file; CLI_OK, else the message has been printed. Closed by cli_close_subject(). */
cli_exit cli_open_subject(const char *path, cli_subject *out);
void cli_close_subject(cli_subject *subject);

/** Writes one page; `context` is the verb's. */
typedef allot_status (*cli_page_fn)(const void *context, const allot_html_options *options,
                                    const allot_sink *sink);

/** Write the page that --html asks for, if it does. `name` is the file's, for the title. */
cli_exit cli_write_page(const char *name, cli_page_fn write, const void *context);

#endif /* CLI_REPORT_H */
