/* SPDX-License-Identifier: MIT */
/**
 * What the verbs share: the table of verbs, options, opening of traces and outputs, exit codes.
 *
 * A verb is one file that defines one cli_verb. Its popt table is the only place where its options
 * stand: --help and the shell completions are made from it. What a value may be is told by its
 * placeholder (argDescrip): FILE and FOLDER, words joined by "|", or a name that cli_options.c
 * knows.
 */
#ifndef CLI_H
#define CLI_H

#include <allot/allot.h>
#include <popt.h>
#include <stdio.h>

/** Exit codes of every verb. */
typedef enum cli_exit {
    CLI_OK = 0,       /**< Done. */
    CLI_FOUND = 1,    /**< Done, and something was found wrong (only the verbs that say so). */
    CLI_USAGE = 2,    /**< The command line is wrong. */
    CLI_REFUSED = 3,  /**< The input cannot be read or is malformed. */
    CLI_FAILED = 4,   /**< A device, a store or this machine failed. */
    CLI_UNSUITED = 5, /**< The input is sound but lacks what the verb needs. */
} cli_exit;

typedef struct cli_verb {
    const char *name;
    const char *arguments;            /**< For the usage line, for example "FILE...". */
    const char *words;                /**< Arguments that are no files, by '|'; NULL: all are. */
    const char *summary;              /**< What it does: one line, no full stop. */
    const char *found;                /**< What exit code 1 says; NULL: never given. */
    const struct poptOption *options; /**< Ends with POPT_TABLEEND. */
    /** `files` holds the `count` arguments that are not options. Options are already in place. */
    cli_exit (*run)(const char *const *files, size_t count);
} cli_verb;

/** An entry of a verb's table: another table under a heading, or under the one before it (NULL). */
#define CLI_INCLUDE_OPTIONS(table, title)                                                          \
    {                                                                                              \
        NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)(table), 0, title, NULL             \
    }

/** All verbs in the order of the manual, ended by NULL. */
extern const cli_verb *const CLI_VERBS[];

/** "allot: <detail>" on standard error; returns the exit code that fits the status. */
cli_exit cli_fail(allot_status status);

/** "allot VERB: <text>" and a hint to --help on standard error; returns CLI_USAGE. */
cli_exit cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Read a trace with progress on a terminal. CLI_OK, else the message has been printed. */
cli_exit cli_read_trace(const char *path, allot_trace **out);

/** The traces to be read: no output may be one of them. `files` [count] are borrowed. */
void cli_set_inputs(const char *const *files, size_t count);

/** Whether `path` names one of the inputs; then the usage message has been printed. */
bool cli_is_input(const char *path);

/** Standard output for NULL or "-", else the file, to be closed with cli_close_output(). */
cli_exit cli_open_output(const char *path, FILE **out);

/** Close and check an output; a write error is reported. */
cli_exit cli_close_output(const char *path, FILE *file);

/** The same after a call that wrote to it and returned `status`: CLI_FAILED if the output could not
 * be written, else the exit code that fits the status, with its message. */
cli_exit cli_end_output(allot_status status, const char *path, FILE *file);

/**
 * Options of a report on standard output: colours on a terminal unless NO_COLOR is set, the
 * terminal's width, `top` rows (0: the default). `name` is borrowed.
 */
allot_report_options cli_report_options(bool json, uint32_t top, const char *name);

/** Progress line on standard error once a call takes over a second on a terminal; context unused.
 */
bool cli_progress(void *context, const char *stage, uint64_t done, uint64_t total);

/** Remove the progress line. Called before anything else is printed. */
void cli_progress_end(void);

#endif /* CLI_H */
