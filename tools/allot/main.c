/* SPDX-License-Identifier: MIT */
/* The command: finds the verb, reads its options, runs it. */
#include "main.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

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
    fputs("\nallot VERB --help says more; allot --version prints the version.\n"
          "exit: 0 done, 1 something was found wrong, 2 usage, 3 input refused, 4 failed\n",
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
}

enum { OPTION_HELP = 0x10000 };

static cli_exit run_verb(const cli_verb *verb, int argc, const char **argv)
{
    const struct poptOption table[] = {
        {NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)verb->options, 0, "Options:", NULL},
        {"help", 'h', POPT_ARG_NONE, NULL, OPTION_HELP, "Show this text", NULL},
        POPT_TABLEEND};
    char name[64];
    snprintf(name, sizeof name, "allot %s", verb->name);
    argv[0] = name;
    poptContext context = poptGetContext(name, argc, argv, table, 0);
    char usage[128];
    snprintf(usage, sizeof usage, "[OPTIONS] %s", verb->arguments);
    poptSetOtherOptionHelp(context, usage);
    cli_exit code = CLI_OK;
    bool wants_help = false;
    int option = 0;
    while ((option = poptGetNextOpt(context)) > 0) {
        wants_help = wants_help || option == OPTION_HELP;
    }
    if (option < -1) {
        code = cli_usage("%s: %s", poptBadOption(context, POPT_BADOPTION_NOALIAS),
                         poptStrerror(option));
    } else if (wants_help) {
        print_verb_help(context, verb);
    } else {
        const char *const *const files = (const char *const *)poptGetArgs(context);
        size_t count = 0;
        while (files != NULL && files[count] != NULL) {
            count++;
        }
        code = verb->run(files, count);
    }
    poptFreeContext(context);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("allot %s\n", allot_version());
        return CLI_OK;
    }
    const cli_verb *const verb = find_verb(argv[1]);
    if (verb == NULL) {
        fprintf(stderr, "allot: unknown verb \"%s\"\n\n", argv[1]);
        print_usage(stderr);
        return CLI_USAGE;
    }
    current_verb = verb->name;
    return (int)run_verb(verb, argc - 1, (const char **)(uintptr_t)(argv + 1));
}
