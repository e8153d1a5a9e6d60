/* SPDX-License-Identifier: MIT */
/** What the options of a verb are and what their values may be, read from its popt tables. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli.h"

/** --help, which every verb has. Ends with POPT_TABLEEND; popt returns its `val`. */
extern const struct poptOption CLI_HELP_OPTIONS[];
enum { CLI_OPTION_HELP = 0x10000 };

typedef void (*cli_option_fn)(void *context, const struct poptOption *option);

/** Visit every long option of a verb, --help included, in the order of its tables. */
void cli_each_option(const cli_verb *verb, cli_option_fn visit, void *context);

typedef enum cli_value {
    CLI_VALUE_NONE,   /**< The option takes no value. */
    CLI_VALUE_FREE,   /**< Anything: a size, a number. */
    CLI_VALUE_WORDS,  /**< Some words, see cli_option_words(). */
    CLI_VALUE_FILE,   /**< A file. */
    CLI_VALUE_FOLDER, /**< A folder. */
} cli_value;

cli_value cli_option_value(const struct poptOption *option);

/** Placeholder of an option's value in --help. */
const char *cli_option_placeholder(const struct poptOption *option);

/**
 * Words of a value of kind CLI_VALUE_WORDS, divided by single spaces or '|'. A word that ends in
 * ':' or '+' has to be continued.
 */
const char *cli_option_words(const struct poptOption *option);

#endif /* CLI_OPTIONS_H */
