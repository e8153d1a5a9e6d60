/* SPDX-License-Identifier: MIT */
/* allot diff: what differs between two traces. */
#include <float.h>

#include "cli_number.h"
#include "cli_report.h"
#include "verbs.h"

static const char *tolerance;

static const struct poptOption OWN[] = {{"tolerance", 't', POPT_ARG_STRING, &tolerance, 0,
                                         "Percent that B's peak may be above A's (default: 1)",
                                         "PERCENT"},
                                        POPT_TABLEEND};

static const struct poptOption OPTIONS[] = {
    CLI_INCLUDE_OPTIONS(OWN, "Compare:"), CLI_INCLUDE_OPTIONS(CLI_REPORT_OPTIONS, "Report:"),
    CLI_INCLUDE_OPTIONS(CLI_HTML_OPTIONS, NULL), POPT_TABLEEND};

typedef struct pair {
    cli_subject a;
    cli_subject b;
    const char *name_b;
    double tolerance_percent;
    allot_diff diff;
} pair;

static allot_status page(const void *context, const allot_html_options *options,
                         const allot_sink *sink)
{
    const pair *const p = context;
    allot_html_options with_b = *options;
    with_b.name_b = p->name_b;
    return allot_html_diff(p->a.history, p->b.history, &p->diff, &with_b, sink);
}

static cli_exit write_report(const pair *p, const char *name)
{
    FILE *out = NULL;
    const cli_exit opened = cli_open_output(cli_report.output, &out);
    if (opened != CLI_OK) {
        return opened;
    }
    const allot_report_options options = cli_report_to(name, out);
    const allot_sink sink = allot_sink_stdio(out);
    const allot_status status = allot_report_diff(&p->diff, &options, &sink);
    return cli_end_output(status, cli_report.output, out);
}

static cli_exit compare(pair *p, const char *const *files)
{
    const allot_diff_options options = {
        .struct_size = sizeof options,
        .name_a = files[0],
        .name_b = files[1],
        .tolerance = p->tolerance_percent > 0 ? p->tolerance_percent / 100 : DBL_MIN,
        .lines = cli_lines_options()};
    const allot_status status = allot_diff_init(p->a.history, p->b.history, &options, &p->diff);
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    cli_exit code = write_report(p, files[0]);
    if (code == CLI_OK) {
        code = cli_write_page(files[0], page, p);
    }
    if (code == CLI_OK && p->diff.is_worse) {
        code = CLI_FOUND;
    }
    allot_diff_fini(&p->diff);
    return code;
}

static cli_exit run(const char *const *files, size_t count)
{
    if (count != 2) {
        return cli_usage("two files are needed: the one before and the one after");
    }
    pair p = {.name_b = files[1], .tolerance_percent = 1};
    cli_exit code = cli_read_percent("--tolerance", tolerance, &p.tolerance_percent);
    if (code == CLI_OK) {
        code = cli_open_subject(files[0], &p.a);
    }
    if (code == CLI_OK) {
        code = cli_open_subject(files[1], &p.b);
    }
    if (code == CLI_OK) {
        code = compare(&p, files);
    }
    cli_close_subject(&p.a);
    cli_close_subject(&p.b);
    return code;
}

const cli_verb cli_verb_diff = {
    .name = "diff",
    .arguments = "FILE FILE",
    .summary = "Compare two traces: what grew, by line of code",
    .found = "the second trace needs more memory than the first, or alone ran out",
    .options = OPTIONS,
    .run = run};
