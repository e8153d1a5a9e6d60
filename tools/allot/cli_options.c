/* SPDX-License-Identifier: MIT */
#include "cli_options.h"

#include <string.h>

const struct poptOption CLI_HELP_OPTIONS[] = {
    {"help", 'h', POPT_ARG_NONE, NULL, CLI_OPTION_HELP, "Show this text", NULL}, POPT_TABLEEND};

/** Placeholders whose values are a few words, or begin with them. */
static const struct {
    const char *placeholder;
    const char *words;
} WORDS[] = {
    {"DEVICE", "host simulated simulated,gpu: null opencl cuda cuda:"},
    {"FORMAT", "torch-pickle chrome allot csv folded"},
    {"GROUP", "line stack category stream pool"},
    {"MODEL", "torch torch: async bfc rmm:pool rmm:arena rmm:binning space:first-fit "
              "space:best-fit space:buddy space:tlsf space:tiered space:adaptive heap:first-fit "
              "heap:best-fit heap:buddy heap:tlsf heap:tiered heap:adaptive"},
    {"MOMENT", "peak peak:allocated peak:active peak:requested peak:reserved oom oom: start end "
               "event: us: +"},
    {"SETTINGS", "expandable_segments:True max_split_size_mb: roundup_power2_divisions: "
                 "garbage_collection_threshold:"},
    {"STRATEGY", "first-fit best-fit buddy tlsf tiered adaptive"},
    {"WHEN", "auto steps full forced"},
};

static bool is_end(const struct poptOption *option)
{
    return option->longName == NULL && option->shortName == '\0' && option->arg == NULL;
}

static void each_listed(const struct poptOption *table, cli_option_fn visit, void *context)
{
    for (const struct poptOption *option = table; !is_end(option); option++) {
        const unsigned kind = option->argInfo & POPT_ARG_MASK;
        if (kind == POPT_ARG_INCLUDE_TABLE) {
            each_listed(option->arg, visit, context);
        } else if (option->longName != NULL && (option->argInfo & POPT_ARGFLAG_DOC_HIDDEN) == 0) {
            visit(context, option);
        }
    }
}

void cli_each_option(const cli_verb *verb, cli_option_fn visit, void *context)
{
    each_listed(verb->options, visit, context);
    each_listed(CLI_HELP_OPTIONS, visit, context);
}

const char *cli_option_placeholder(const struct poptOption *option)
{
    return option->argDescrip != NULL ? option->argDescrip : "VALUE";
}

/** The ids of the built-in cards. */
static const char *gpu_words(void)
{
    static char words[4096];
    size_t length = 0;
    for (size_t i = 0; i < allot_gpu_count() && length < sizeof words; i++) {
        allot_gpu gpu;
        if (allot_gpu_at(i, &gpu) == ALLOT_STATUS_OK) {
            length += (size_t)snprintf(words + length, sizeof words - length, "%s%s",
                                       i == 0 ? "" : " ", gpu.id);
        }
    }
    return words;
}

const char *cli_option_words(const struct poptOption *option)
{
    const char *const placeholder = cli_option_placeholder(option);
    if (strcmp(placeholder, "GPU") == 0) {
        return gpu_words();
    }
    if (strchr(placeholder, '|') != NULL) {
        return placeholder;
    }
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (strcmp(WORDS[i].placeholder, placeholder) == 0) {
            return WORDS[i].words;
        }
    }
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

cli_value cli_option_value(const struct poptOption *option)
{
    const unsigned kind = option->argInfo & POPT_ARG_MASK;
    if (kind == POPT_ARG_NONE || kind == POPT_ARG_VAL) {
        return CLI_VALUE_NONE;
    }
    if (cli_option_words(option) != NULL) {
        return CLI_VALUE_WORDS;
    }
    const char *const placeholder = cli_option_placeholder(option);
    return ends_with(placeholder, "FILE")     ? CLI_VALUE_FILE
           : ends_with(placeholder, "FOLDER") ? CLI_VALUE_FOLDER
                                              : CLI_VALUE_FREE;
}
