/* SPDX-License-Identifier: MIT */
/*
 * allot completion: writes the completion script of a shell. Everything in it comes from the table
 * of verbs and their popt tables, so it never differs from what the command accepts. What a value
 * may be is in cli_options.c.
 */
#include <string.h>

#include "cli_options.h"
#include "verbs.h"

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

/* Write words inside '...', divided by spaces. */
static void put_words(const char *words, const char *special)
{
    for (const char *at = words; *at != '\0'; at++) {
        const char letter[2] = {*at, '\0'};
        put_quoted(*at == '|' ? " " : letter, special);
    }
}

static void put_verbs(void)
{
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        printf("%s%s", i == 0 ? "" : " ", CLI_VERBS[i]->name);
    }
}

static void bash_name(void *context, const struct poptOption *option)
{
    (void)context;
    printf(" --%s", option->longName);
}

static void bash_value(void *context, const struct poptOption *option)
{
    (void)context;
    const cli_value value = cli_option_value(option);
    if (value == CLI_VALUE_NONE) {
        return;
    }
    printf("        --%s", option->longName);
    if (option->shortName != '\0') {
        printf(" | -%c", option->shortName);
    }
    if (value == CLI_VALUE_WORDS) {
        fputs(") words='", stdout);
        put_words(cli_option_words(option), "");
        fputs("' ;;\n", stdout);
    } else if (value == CLI_VALUE_FREE) {
        fputs(") compopt +o default 2>/dev/null ;;\n", stdout);
    } else {
        fputs(") ;;\n", stdout); /* no words: bash falls back to files */
    }
}

static void bash_verb(const cli_verb *verb)
{
    printf("    *:%s)\n        case $option in\n", verb->name);
    cli_each_option(verb, bash_value, NULL);
    fputs("        *)\n", stdout);
    if (verb->words != NULL) {
        fputs("            words='", stdout);
        put_words(verb->words, "");
        fputs("'\n", stdout);
    }
    fputs("            [[ $whole != -* ]] || words='", stdout);
    cli_each_option(verb, bash_name, NULL);
    fputs("' ;;\n        esac\n        ;;\n", stdout);
}

/*
 * `whole` is the word at the cursor. Bash takes '=' and ':' for ends of words and replaces what
 * follows the last of them only: `kept` is what stands before that.
 */
static void write_bash(void)
{
    fputs("# bash completion of allot, written by: allot completion bash\n"
          "_allot()\n"
          "{\n"
          "    local line=${COMP_LINE:0:COMP_POINT}\n"
          "    local whole=${line##*[[:space:]]}\n"
          "    local -a typed\n"
          "    read -ra typed <<<\"$line\"\n"
          "    local at=${#typed[@]} option= prefix= words= word\n"
          "    [[ -z $whole ]] || at=$((at - 1))\n"
          "    if [[ $whole == --*=* ]]; then\n"
          "        option=${whole%%=*}\n"
          "        prefix=$option=\n"
          "    elif [[ $at -gt 0 ]]; then\n"
          "        option=${typed[at - 1]}\n"
          "    fi\n"
          "    COMPREPLY=()\n"
          "    case $at:${typed[1]} in\n"
          "    1:*) words='",
          stdout);
    put_verbs();
    fputs(" help --help --version' ;;\n    *:help) words='", stdout);
    put_verbs();
    fputs("' ;;\n", stdout);
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        bash_verb(CLI_VERBS[i]);
    }
    fputs("    esac\n"
          "    local piece=${COMP_WORDS[COMP_CWORD]}\n"
          "    [[ $piece == *[!=:]* ]] || piece=\n"
          "    local kept=${whole%\"$piece\"}\n"
          "    for word in $words; do\n"
          "        word=$prefix$word\n"
          "        [[ $word == \"$whole\"* ]] || continue\n"
          "        COMPREPLY+=(\"${word#\"$kept\"}\")\n"
          "        [[ $word != *[:+] ]] || compopt -o nospace 2>/dev/null\n"
          "    done\n"
          "}\n"
          "complete -o default -F _allot allot\n",
          stdout);
}

static void zsh_words(const char *words)
{
    fputs(": _allot_words ", stdout);
    put_words(words, ":\\");
}

static void zsh_value(const struct poptOption *option)
{
    putchar(':');
    put_quoted(cli_option_placeholder(option), "[]:\\");
    switch (cli_option_value(option)) {
    case CLI_VALUE_WORDS:
        zsh_words(cli_option_words(option));
        break;
    case CLI_VALUE_FILE:
        fputs(":_files", stdout);
        break;
    case CLI_VALUE_FOLDER:
        fputs(":_files -/", stdout);
        break;
    default:
        fputs(": ", stdout);
        break;
    }
}

static void zsh_option(void *context, const struct poptOption *option)
{
    (void)context;
    const bool has_value = cli_option_value(option) != CLI_VALUE_NONE;
    const char *const equals = has_value ? "=" : "";
    fputs(" \\\n            ", stdout);
    if (option->shortName != '\0') {
        printf("'(-%c --%s)'{-%c,--%s%s}'[", option->shortName, option->longName, option->shortName,
               option->longName, equals);
    } else {
        printf("'--%s%s[", option->longName, equals);
    }
    put_quoted(option->descrip != NULL ? option->descrip : "", "[]:\\");
    putchar(']');
    if (has_value) {
        zsh_value(option);
    }
    putchar('\'');
}

static void zsh_verb(const cli_verb *verb)
{
    printf("    %s)\n        _arguments", verb->name);
    cli_each_option(verb, zsh_option, NULL);
    fputs(" \\\n            '*:file", stdout);
    if (verb->words != NULL) {
        zsh_words(verb->words);
    } else {
        fputs(":_files", stdout);
    }
    fputs("'\n        ;;\n", stdout);
}

static void write_zsh(void)
{
    fputs("#compdef allot\n"
          "# zsh completion of allot, written by: allot completion zsh\n"
          "# Words; those that end in : or + are continued.\n"
          "_allot_words()\n"
          "{\n"
          "    compadd -S '' -- ${(M)@:#*[:+]}\n"
          "    compadd -- ${@:#*[:+]}\n"
          "}\n"
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
    fputs("\n        'help:Show the options of a verb'\n    )\n"
          "    if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then\n"
          "        _describe verb verbs\n"
          "        return\n"
          "    fi\n"
          "    local verb=$words[2]\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $verb in\n",
          stdout);
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        zsh_verb(CLI_VERBS[i]);
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

static void fish_value(const struct poptOption *option)
{
    switch (cli_option_value(option)) {
    case CLI_VALUE_WORDS:
        fputs(" -x -a '", stdout);
        put_words(cli_option_words(option), "\\");
        putchar('\'');
        break;
    case CLI_VALUE_FILE:
        fputs(" -r -F", stdout);
        break;
    case CLI_VALUE_FOLDER:
        fputs(" -x -a '(__fish_complete_directories)'", stdout);
        break;
    case CLI_VALUE_FREE:
        fputs(" -x", stdout);
        break;
    default:
        break;
    }
}

static void fish_option(void *context, const struct poptOption *option)
{
    const cli_verb *const verb = context;
    printf("complete -c allot -n '__fish_seen_subcommand_from %s' -l %s", verb->name,
           option->longName);
    if (option->shortName != '\0') {
        printf(" -s %c", option->shortName);
    }
    fish_value(option);
    fputs(" -d '", stdout);
    put_quoted(option->descrip != NULL ? option->descrip : "", "\\");
    fputs("'\n", stdout);
}

static void fish_verb(const cli_verb *verb)
{
    printf("complete -c allot -n __fish_use_subcommand -f -a %s -d '", verb->name);
    put_quoted(verb->summary, "");
    fputs("'\n", stdout);
    cli_each_option(verb, fish_option, (void *)(uintptr_t)verb);
    if (verb->words != NULL) {
        printf("complete -c allot -n '__fish_seen_subcommand_from %s' -f -a '", verb->name);
        put_words(verb->words, "\\");
        fputs("'\n", stdout);
    }
}

static void write_fish(void)
{
    fputs("# fish completion of allot, written by: allot completion fish\n", stdout);
    for (size_t i = 0; CLI_VERBS[i] != NULL; i++) {
        fish_verb(CLI_VERBS[i]);
    }
    fputs("complete -c allot -n __fish_use_subcommand -f -a help -d 'Show the options of a verb'\n"
          "complete -c allot -n '__fish_seen_subcommand_from help' -f -a '",
          stdout);
    put_verbs();
    fputs("'\n", stdout);
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
    .words = "bash|zsh|fish",
    .summary = "Write the completion script of a shell",
    .options = OPTIONS,
    .run = run,
};
