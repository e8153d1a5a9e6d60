/* SPDX-License-Identifier: MIT */
/* allot advise: which settings of PyTorch's allocator to use, found by replaying the trace. */
#include "cli_number.h"
#include "cli_report.h"
#include "verbs.h"

enum { ROWS_USUAL = 10 };

static const char *limit;
static const char *fraction;
static char **tried;
static const char *threads;

static const struct poptOption OWN[] = {
    {"limit", 'l', POPT_ARG_STRING, &limit, 0,
     "Memory the device can give this process (default: inferred from an out-of-memory)", "SIZE"},
    {"fraction", 'f', POPT_ARG_STRING, &fraction, 0,
     "Share of the limit, as set_per_process_memory_fraction() sets it", "F"},
    {"try", 't', POPT_ARG_ARGV, &tried, 0,
     "Try this settings string too and show its row; may be repeated", "SETTINGS"},
    {"threads", 'j', POPT_ARG_STRING, &threads, 0, "Threads (default: one per processor)", "N"},
    POPT_TABLEEND};

static const struct poptOption OPTIONS[] = {
    CLI_INCLUDE_OPTIONS(OWN, "Advise:"), CLI_INCLUDE_OPTIONS(CLI_REPORT_OPTIONS, "Report:"),
    CLI_INCLUDE_OPTIONS(CLI_HTML_OPTIONS, NULL), POPT_TABLEEND};

/** What a page is made from. */
typedef struct result {
    const allot_history *history;
    const allot_advice *advice;
} result;

static allot_status page(const void *context, const allot_html_options *options,
                         const allot_sink *sink)
{
    const result *const r = context;
    allot_advice_summary summary = {0};
    allot_advice_get_summary(r->advice, &summary);
    allot_html_options with_limit = *options;
    with_limit.limit = summary.limit;
    return allot_html_advise(r->history, r->advice, &with_limit, sink);
}

static cli_exit report(const result *r, const char *path)
{
    FILE *out = NULL;
    const cli_exit opened = cli_open_output(cli_report.output, &out);
    if (opened != CLI_OK) {
        return opened;
    }
    const allot_report_options options = cli_report_to(path, out);
    const allot_sink sink = allot_sink_stdio(out);
    const allot_status status = allot_report_advice(r->advice, &options, &sink);
    const cli_exit closed = cli_end_output(status, cli_report.output, out);
    return closed == CLI_OK ? cli_write_page(path, page, r) : closed;
}

static cli_exit advise(const allot_history *history, const char *path,
                       const allot_advise_options *options)
{
    allot_advice *advice = NULL;
    const allot_status status =
        allot_advise(allot_history_trace(history), allot_history_device(history), options, &advice);
    cli_progress_end();
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    const result r = {.history = history, .advice = advice};
    allot_advice_summary summary = {0};
    allot_advice_get_summary(advice, &summary);
    const bool is_lost = summary.verdict == ALLOT_ADVICE_VERDICT_NOTHING_HELPS ||
                         summary.verdict == ALLOT_ADVICE_VERDICT_NOT_FOUND;
    const cli_exit code = report(&r, path);
    allot_advice_destroy(advice);
    return code == CLI_OK && is_lost ? CLI_FOUND : code;
}

static cli_exit check_settings(const char *setting)
{
    allot_torch_conf conf;
    return allot_torch_conf_parse(setting, &conf, NULL) == ALLOT_STATUS_OK
               ? CLI_OK
               : cli_usage("--try %s: %s", setting, allot_error_detail());
}

/** What the command line asks for, checked. */
static cli_exit read_options(allot_advise_options *out)
{
    cli_exit code = cli_read_limit(limit, &out->limit);
    if (code == CLI_OK) {
        code = cli_read_fraction(fraction, limit, &out->fraction);
    }
    if (code == CLI_OK) {
        code = cli_read_count("--threads", threads, 0, &out->thread_count);
    }
    /* A short table is cut from the usual one, so that it says the same. */
    out->row_max = cli_report.top > ROWS_USUAL ? cli_report.top : ROWS_USUAL;
    out->lines = cli_lines_options();
    out->settings = (const char *const *)tried;
    while (code == CLI_OK && tried != NULL && tried[out->setting_count] != NULL) {
        code = check_settings(tried[out->setting_count++]);
    }
    return code;
}

static cli_exit run(const char *const *files, size_t count)
{
    if (count != 1) {
        return cli_usage("one FILE is needed");
    }
    allot_advise_options options = {
        .struct_size = sizeof options, .progress = cli_progress, .with_strategies = true};
    cli_exit code = read_options(&options);
    cli_subject subject = {0};
    if (code == CLI_OK) {
        code = cli_open_subject(files[0], &subject);
    }
    if (code == CLI_OK) {
        code = advise(subject.history, files[0], &options);
        cli_close_subject(&subject);
    }
    return code;
}

const cli_verb cli_verb_advise = {
    .name = "advise",
    .arguments = "FILE",
    .summary = "Find the allocator settings that suit a trace, by replaying it",
    .found = "no setting runs within the limit",
    .options = OPTIONS,
    .run = run,
};
