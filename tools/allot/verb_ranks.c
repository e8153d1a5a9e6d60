/* SPDX-License-Identifier: MIT */
/* allot ranks: the traces of several ranks side by side. */
#include <stdlib.h>

#include "cli_report.h"
#include "verbs.h"

static const struct poptOption OPTIONS[] = {CLI_INCLUDE_OPTIONS(CLI_REPORT_OPTIONS, "Report:"),
                                            POPT_TABLEEND};

static cli_exit write_report(const allot_ranks *ranks)
{
    FILE *out = NULL;
    const cli_exit opened = cli_open_output(cli_report.output, &out);
    if (opened != CLI_OK) {
        return opened;
    }
    const allot_report_options options = cli_report_to(NULL, out);
    const allot_sink sink = allot_sink_stdio(out);
    const allot_status status = allot_report_ranks(ranks, &options, &sink);
    const cli_exit closed = cli_end_output(status, cli_report.output, out);
    return closed == CLI_OK && ranks->outlier_count != 0 ? CLI_FOUND : closed;
}

/* Read all files; those read before a failure are in `subjects` for the caller to close. */
static cli_exit compare(const char *const *files, uint32_t count, cli_subject *subjects,
                        const allot_history **histories)
{
    for (uint32_t i = 0; i < count; i++) {
        const cli_exit code = cli_open_subject(files[i], &subjects[i]);
        if (code != CLI_OK) {
            return code;
        }
        histories[i] = subjects[i].history;
    }
    allot_ranks ranks;
    const allot_status status = allot_ranks_init(histories, files, count, &ranks);
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    const cli_exit code = write_report(&ranks);
    allot_ranks_fini(&ranks);
    return code;
}

static cli_exit run(const char *const *files, size_t count)
{
    if (count < 2 || count >= ALLOT_NONE) {
        return cli_usage("two or more files are needed, one for each rank");
    }
    cli_subject *const subjects = calloc(count, sizeof *subjects);
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): it is an array of pointers */
    const allot_history **const histories = calloc(count, sizeof *histories);
    cli_exit code = CLI_FAILED;
    if (subjects == NULL || histories == NULL) {
        fputs("allot: out of memory\n", stderr);
    } else {
        code = compare(files, (uint32_t)count, subjects, histories);
    }
    for (size_t i = 0; subjects != NULL && i < count; i++) {
        cli_close_subject(&subjects[i]);
    }
    free(subjects);
    free((void *)histories);
    return code;
}

const cli_verb cli_verb_ranks = {.name = "ranks",
                                 .arguments = "FILE...",
                                 .summary = "Compare the traces of several ranks",
                                 .found = "a rank stands out",
                                 .options = OPTIONS,
                                 .run = run};
