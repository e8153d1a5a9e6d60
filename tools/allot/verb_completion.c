/* SPDX-License-Identifier: MIT */
/*
 * allot completion: writes the completion script of a shell. Everything in it comes from the table
 * of verbs and their popt tables, so it never differs from what the command accepts.
 *
 * What an option's value may be is read from its placeholder in --help: words joined by "|" are the
 * choices, a placeholder that ends in FILE is a file.
 */
#include <string.h>

#include "verbs.h"

/** Writes one option of a verb. */
typedef void (*option_fn)(const char *verb, const struct poptOption *option);

static const struct poptOption HELP = {"help", 'h', POPT_ARG_NONE, NULL, 0, "Show this text", NULL};

static bool is_end(const struct poptOption *option)
{
    return option->longName == NULL && option->shortName == '\0' && option->arg == NULL;
}

static void each_listed(const char *verb, const struct poptOption *table, option_fn visit)
{
    for (const struct poptOption *option = table; option != NULL && !is_end(option); option++) {
        const unsigned kind = option->argInfo & POPT_ARG_MASK;
        if (kind == POPT_ARG_INCLUDE_TABLE) {
            each_listed(verb, option->arg, visit);
        } else if (option->longName != NULL && (option->argInfo & POPT_ARGFLAG_DOC_HIDDEN) == 0) {
            visit(verb, option);
        }
    }
}

static void each_option(const cli_verb *verb, option_fn visit)
{
    each_listed(verb->name, verb->options, visit);
    visit(verb->name, &HELP);
}

static bool takes_value(const struct poptOption *option)
{
    const unsigned kind = option->argInfo & POPT_ARG_MASK;
    return kind != POPT_ARG_NONE && kind != POPT_ARG_VAL;
}

static const char *placeholder(const struct poptOption *option)
{
    return option->argDescrip != NULL ? option->argDescrip : "VALUE";
}

static bool is_choice(const struct poptOption *option)
{
    return takes_value(option) && strchr(placeholder(option), '|') != NULL;
}

static bool is_file(const struct poptOption *option)
{
    const char *const text = placeholder(option);
    const size_t length = strlen(text);
    return takes_value(option) && length >= 4 && strcmp(text + length - 4, "FILE") == 0;
}

/* Write a text with each '|' as a space: the choices of an option. */
static void put_choices(const struct poptOption *option)
{
    for (const char *at = placeholder(option); *at != '\0'; at++) {
        putchar(*at == '|' ? ' ' : *at);
    }
}

/* Write a text inside '...' of a shell, with a backslash before each of `special`. */
static void put_quoted(const char *text, const char *special)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr(special, *at) != NULL) {
            putchar('\\');
        }
        putchar(*at);
    }
}

static void bash_name(const char *verb, const struct poptOption *option)
{
    (void)verb;
    printf(" --%s", option->longName);
}

static void bash_value(const char *verb, const struct poptOption *option)
{
    (void)verb;
    if (is_choice(option)) {
        printf("        --%s) words='", option->longName);
        put_choices(option);
        fputs("' ;;\n", stdout);
    } else if (takes_value(option)) {
        /* No words: bash falls back to files, which is right for files and harmless otherwise. */
        printf("        --%s) return ;;\n", option->longName);
    }
}

static void write_bash(void)
{
    fputs("# bash completion of allot, written by: allot completion bash\n"
          "_allot()\n"
          "{\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local words=\n"
          "    COMPREPLY=()\n"
          "    if [ \"$current\" = = ]; then\n"
          "        current=\n"
          "    elif [ \"$previous\" = = ]; then\n"
          "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    case $COMP_CWORD:${COMP_WORDS[1]} in\n"
          "    1:*) words='",
          stdout);
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        printf("%s ", CLI_VERBS[i]->name);
    }
    fputs("help --help --version' ;;\n", stdout);
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        printf("    *:%s)\n        case $previous in\n", CLI_VERBS[i]->name);
        each_option(CLI_VERBS[i], bash_value);
        fputs("        *) [ \"${current:0:1}\" = - ] && words='", stdout);
        each_option(CLI_VERBS[i], bash_name);
        fputs("' ;;\n        esac\n        ;;\n", stdout);
    }
    fputs("    esac\n"
          "    [ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "}\n"
          "complete -o default -F _allot allot\n",
          stdout);
}

static void zsh_option(const char *verb, const struct poptOption *option)
{
    (void)verb;
    fputs(" \\\n            ", stdout);
    if (option->shortName != '\0') {
        printf("'(-%c --%s)'{-%c,--%s%s}'[", option->shortName, option->longName, option->shortName,
               option->longName, takes_value(option) ? "=" : "");
    } else {
        printf("'--%s%s[", option->longName, takes_value(option) ? "=" : "");
    }
    put_quoted(option->descrip != NULL ? option->descrip : "", "[]:\\");
    putchar(']');
    if (takes_value(option)) {
        putchar(':');
        put_quoted(is_choice(option) ? "value" : placeholder(option), "[]:\\");
        putchar(':');
        if (is_choice(option)) {
            putchar('(');
            put_choices(option);
            putchar(')');
        } else if (is_file(option)) {
            fputs("_files", stdout);
        } else {
            putchar(' ');
        }
    }
    putchar('\'');
}

static void write_zsh(void)
{
    fputs("#compdef allot\n"
          "# zsh completion of allot, written by: allot completion zsh\n"
          "_allot()\n"
          "{\n"
          "    local -a verbs\n"
          "    verbs=(",
          stdout);
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        printf("\n        '%s:", CLI_VERBS[i]->name);
        put_quoted(CLI_VERBS[i]->summary, ":\\");
        putchar('\'');
    }
    fputs("\n    )\n"
          "    if (( CURRENT == 2 )); then\n"
          "        _describe verb verbs\n"
          "        return\n"
          "    fi\n"
          "    local verb=$words[2]\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $verb in\n",
          stdout);
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        printf("    %s)\n        _arguments", CLI_VERBS[i]->name);
        each_option(CLI_VERBS[i], zsh_option);
        fputs(" \\\n            '*:file:_files'\n        ;;\n", stdout);
    }
    fputs("    esac\n"
          "}\n"
          "if [ \"$funcstack[1]\" = _allot ]; then\n"
          "    _allot \"$@\"\n"
          "else\n"
          "    compdef _allot allot\n"
          "fi\n",
          stdout);
}

static void fish_option(const char *verb, const struct poptOption *option)
{
    printf("complete -c allot -n '__fish_seen_subcommand_from %s' -l %s", verb, option->longName);
    if (option->shortName != '\0') {
        printf(" -s %c", option->shortName);
    }
    if (is_choice(option)) {
        fputs(" -x -a '", stdout);
        put_choices(option);
        putchar('\'');
    } else if (takes_value(option)) {
        fputs(is_file(option) ? " -r -F" : " -x", stdout);
    }
    fputs(" -d '", stdout);
    put_quoted(option->descrip != NULL ? option->descrip : "", "\\");
    fputs("'\n", stdout);
}

static void write_fish(void)
{
    fputs("# fish completion of allot, written by: allot completion fish\n", stdout);
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        printf("complete -c allot -n __fish_use_subcommand -f -a %s -d '", CLI_VERBS[i]->name);
        put_quoted(CLI_VERBS[i]->summary, "");
        fputs("'\n", stdout);
        each_option(CLI_VERBS[i], fish_option);
    }
}

static const struct shell {
    const char *name;
    void (*write)(void);
} SHELLS[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};

static cli_exit run(const char *const *files, size_t count)
{
    if (count != 1) {
        return cli_usage("one shell is wanted: bash, zsh or fish");
    }
    for (size_t i = 0; i < sizeof SHELLS / sizeof SHELLS[0]; i++) {
        if (strcmp(files[0], SHELLS[i].name) == 0) {
            SHELLS[i].write();
            return cli_close_output(NULL, stdout);
        }
    }
    return cli_usage("unknown shell \"%s\": bash, zsh or fish", files[0]);
}

static const struct poptOption OPTIONS[] = {POPT_TABLEEND};

const cli_verb cli_verb_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "Write the completion script of a shell",
    .options = OPTIONS,
    .run = run,
};
