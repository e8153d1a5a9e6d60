/* SPDX-License-Identifier: MIT */
/* allot inspect: what a trace holds. */
#include "cli_report.h"
#include "verbs.h"

static const struct poptOption OPTIONS[] = {CLI_INCLUDE_OPTIONS(CLI_REPORT_OPTIONS, "Report:"),
                                            CLI_INCLUDE_OPTIONS(CLI_HTML_OPTIONS, NULL),
                                            POPT_TABLEEND};

static allot_status page(const void *context, const allot_html_options *options,
                         const allot_sink *sink)
{
    return allot_html_inspect(context, options, sink);
}

static cli_exit write_page(const allot_trace *trace, const char *path)
{
    if (cli_report.html == NULL) {
        return CLI_OK;
    }
    uint32_t device = 0;
    cli_exit code = cli_choose_device(trace, path, &device);
    allot_history *history = NULL;
    if (code == CLI_OK) {
        const allot_status status = allot_history_create(trace, device, NULL, &history);
        code = status == ALLOT_STATUS_OK ? cli_write_page(path, page, history) : cli_fail(status);
    }
    allot_history_destroy(history);
    return code;
}

static cli_exit write_report(const allot_trace *trace, const char *path)
{
    uint32_t device = ALLOT_NONE;
    cli_exit code =
        cli_report.device == ALLOT_NONE ? CLI_OK : cli_choose_device(trace, path, &device);
    FILE *out = NULL;
    if (code == CLI_OK) {
        code = cli_open_output(cli_report.output, &out);
    }
    if (code != CLI_OK) {
        return code;
    }
    const allot_report_options options = cli_report_to(path, out);
    const allot_sink sink = allot_sink_stdio(out);
    const allot_status status = allot_report_inspect(trace, device, &options, &sink);
    return cli_end_output(status, cli_report.output, out);
}

static cli_exit run(const char *const *files, size_t count)
{
    if (count != 1) {
        return cli_usage("one FILE is needed");
    }
    allot_trace *trace = NULL;
    cli_exit code = cli_read_trace(files[0], &trace);
    if (code == CLI_OK) {
        code = write_report(trace, files[0]);
    }
    if (code == CLI_OK) {
        code = write_page(trace, files[0]);
    }
    allot_trace_destroy(trace);
    return code;
}

const cli_verb cli_verb_inspect = {.name = "inspect",
                                   .arguments = "FILE",
                                   .summary = "Show what a trace holds: segments, peaks, settings",
                                   .options = OPTIONS,
                                   .run = run};
