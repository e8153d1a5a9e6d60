/* SPDX-License-Identifier: MIT */
/* The command: finds the verb, reads its options, runs it. */
#include "main.h"

#include <stdlib.h>
#include <string.h>

#include "cli_options.h"
#include "cli_report.h"
#include "cli_suggest.h"

static const char *current_verb = "";

const char *cli_current_verb(void)
{
    return current_verb;
}

static void print_usage(FILE *out)
{
    fputs("usage: allot VERB [OPTIONS] FILE...\n\nverbs:\n", out);
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        fprintf(out, "  %-12s %s\n", CLI_VERBS[i]->name, CLI_VERBS[i]->summary);
    }
    fputs("\nallot help VERB says more, man allot-VERB most, allot --version the version\n"
          "exit: 0 done, 1 something was found wrong, 2 usage, 3 input refused, 4 failed,\n"
          "      5 the input lacks what the verb needs\n",
          out);
}

static const cli_verb *find_verb(const char *name)
{
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        if (strcmp(CLI_VERBS[i]->name, name) == 0) {
            return CLI_VERBS[i];
        }
    }
    return NULL;
}

static void print_verb_help(poptContext context, const cli_verb *verb)
{
    printf("allot %s: %s\n\n", verb->name, verb->summary);
    poptPrintHelp(context, stdout, 0);
    if (verb->found != NULL) {
        printf("\nExit code 1: %s\n", verb->found);
    }
}

static void offer_option(void *context, const struct poptOption *option)
{
    cli_suggestion_offer(context, option->longName);
}

/* Say what is wrong with an option, and which one may have been meant. */
static cli_exit refuse_option(const cli_verb *verb, const char *option, int error)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(option, "="), option);
    cli_suggestion suggestion = cli_suggestion_begin(name + strspn(name, "-"));
    if (error == POPT_ERROR_BADOPT && strncmp(name, "--", 2) == 0) {
        cli_each_option(verb, offer_option, &suggestion);
    }
    if (suggestion.best != NULL) {
        return cli_usage("%s: %s; did you mean --%s?", option, poptStrerror(error),
                         suggestion.best);
    }
    return cli_usage("%s: %s", option, poptStrerror(error));
}

static cli_exit run_with_arguments(const cli_verb *verb, poptContext context)
{
    const char *const *const files = (const char *const *)poptGetArgs(context);
    size_t count = 0;
    while (files != NULL && files[count] != NULL) {
        count++;
    }
    cli_set_inputs(files, count);
    const cli_exit code = cli_report_read();
    return code == CLI_OK ? verb->run(files, count) : code;
}

static cli_exit run_verb(const cli_verb *verb, int argc, const char **argv)
{
    const struct poptOption table[] = {
        {NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)verb->options, 0, NULL, NULL},
        {NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)CLI_HELP_OPTIONS, 0, "Help:", NULL},
        POPT_TABLEEND};
    char name[64];
    snprintf(name, sizeof name, "allot %s", verb->name);
    argv[0] = name;
    current_verb = verb->name;
    poptContext context = poptGetContext(name, argc, argv, table, 0);
    char usage[128];
    snprintf(usage, sizeof usage, "[OPTIONS] %s", verb->arguments);
    poptSetOtherOptionHelp(context, usage);
    cli_exit code = CLI_OK;
    bool wants_help = false;
    int option = 0;
    while ((option = poptGetNextOpt(context)) > 0) {
        wants_help = wants_help || option == CLI_OPTION_HELP;
    }
    if (option < -1) {
        code = refuse_option(verb, poptBadOption(context, POPT_BADOPTION_NOALIAS), option);
    } else if (wants_help) {
        print_verb_help(context, verb);
    } else {
        code = run_with_arguments(verb, context);
    }
    poptFreeContext(context);
    return code;
}

static cli_exit refuse_verb(const char *typed)
{
    cli_suggestion suggestion = cli_suggestion_begin(typed);
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        cli_suggestion_offer(&suggestion, CLI_VERBS[i]->name);
    }
    fprintf(stderr, "allot: unknown verb \"%s\"", typed);
    if (suggestion.best != NULL) {
        fprintf(stderr, "; did you mean %s?", suggestion.best);
    }
    fputs("\ntry: allot --help\n", stderr);
    return CLI_USAGE;
}

/* allot help [VERB] */
static cli_exit help(int argc, char **argv)
{
    if (argc == 0) {
        print_usage(stdout);
        return CLI_OK;
    }
    const cli_verb *const verb = find_verb(argv[0]);
    if (verb == NULL) {
        return refuse_verb(argv[0]);
    }
    const char *arguments[] = {verb->name, "--help", NULL};
    return run_verb(verb, 2, arguments);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        return (int)help(argc - 2, argv + 2);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("allot %s\n", allot_version());
        return CLI_OK;
    }
    const cli_verb *const verb = find_verb(argv[1]);
    if (verb == NULL) {
        return (int)refuse_verb(argv[1]);
    }
    return (int)run_verb(verb, argc - 1, (const char **)(uintptr_t)(argv + 1));
}
