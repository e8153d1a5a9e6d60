/* SPDX-License-Identifier: MIT */
/* allot leaks: what grows from step to step. */
#include "cli_number.h"
#include "cli_report.h"
#include "verbs.h"

static const char *steps;
static const char *size_min;

static const struct poptOption OWN[] = {
    {"steps", 's', POPT_ARG_STRING, &steps, 0,
     "Cut the trace into N equal steps (default: find the steps)", "N"},
    {"min", 'm', POPT_ARG_STRING, &size_min, 0, "Ignore growth below this per step", "SIZE"},
    POPT_TABLEEND};

static const struct poptOption OPTIONS[] = {CLI_INCLUDE_OPTIONS(OWN, "Leaks:"),
                                            CLI_INCLUDE_OPTIONS(CLI_REPORT_OPTIONS, "Report:"),
                                            POPT_TABLEEND};

static cli_exit write_report(const cli_subject *subject, const char *path, const allot_lines *lines,
                             const allot_leaks *leaks)
{
    FILE *out = NULL;
    const cli_exit opened = cli_open_output(cli_report.output, &out);
    if (opened != CLI_OK) {
        return opened;
    }
    const allot_report_options options = cli_report_to(path, out);
    const allot_sink sink = allot_sink_stdio(out);
    const allot_status status = allot_report_leaks(subject->history, leaks, lines, &options, &sink);
    const cli_exit closed = cli_end_output(status, cli_report.output, out);
    return closed == CLI_OK && leaks->leak_count != 0 ? CLI_FOUND : closed;
}

static cli_exit find_leaks(const cli_subject *subject, const char *path,
                           const allot_leaks_options *options)
{
    allot_lines *lines = NULL;
    allot_leaks leaks = {0};
    allot_status status = allot_lines_create(subject->trace, cli_lines_options(), &lines);
    if (status == ALLOT_STATUS_OK) {
        status = allot_leaks_init(subject->history, lines, options, &leaks);
    }
    const cli_exit code =
        status == ALLOT_STATUS_OK ? write_report(subject, path, lines, &leaks) : cli_fail(status);
    allot_leaks_fini(&leaks);
    allot_lines_destroy(lines);
    return code;
}

static cli_exit run(const char *const *files, size_t count)
{
    if (count != 1) {
        return cli_usage("one FILE is needed");
    }
    allot_leaks_options options = {.struct_size = sizeof options};
    cli_subject subject = {0};
    cli_exit code = cli_read_count("--steps", steps, 1, &options.step_count);
    if (code == CLI_OK) {
        code = cli_read_size("--min", size_min, &options.size_min);
    }
    if (code == CLI_OK) {
        code = cli_open_subject(files[0], &subject);
    }
    if (code == CLI_OK) {
        code = find_leaks(&subject, files[0], &options);
        cli_close_subject(&subject);
    }
    return code;
}

const cli_verb cli_verb_leaks = {.name = "leaks",
                                 .arguments = "FILE",
                                 .summary = "Find memory that grows from step to step",
                                 .found = "a leak",
                                 .options = OPTIONS,
                                 .run = run};
