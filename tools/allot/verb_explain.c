/* SPDX-License-Identifier: MIT */
/* allot explain: who holds memory at a moment, and why an allocation failed. */
#include "cli_number.h"
#include "cli_report.h"
#include "verbs.h"

static const char *at;
static const char *by;
static const char *limit;

static const struct poptOption OWN[] = {
    {"at", 'a', POPT_ARG_STRING, &at, 0,
     "peak, peak:reserved, oom, oom:2, start, end, an event's number or +1.5s (default: the last "
     "oom, else the peak)",
     "MOMENT"},
    {"by", 'b', POPT_ARG_STRING, &by, 0, "line, stack, category, stream or pool (default: line)",
     "GROUP"},
    {"limit", 'l', POPT_ARG_STRING, &limit, 0,
     "Size of the device, to see what others held at an oom", "SIZE"},
    POPT_TABLEEND};

static const struct poptOption OPTIONS[] = {
    CLI_INCLUDE_OPTIONS(OWN, "Explain:"), CLI_INCLUDE_OPTIONS(CLI_REPORT_OPTIONS, "Report:"),
    CLI_INCLUDE_OPTIONS(CLI_HTML_OPTIONS, NULL), POPT_TABLEEND};

/** What the command line asks for, read. */
typedef struct request {
    const allot_history *history;
    uint32_t event;
    allot_group_by by;
    uint64_t limit;
} request;

static allot_status page(const void *context, const allot_html_options *options,
                         const allot_sink *sink)
{
    const request *const r = context;
    allot_html_options with_limit = *options;
    with_limit.limit = r->limit;
    return allot_html_explain(r->history, r->event, &with_limit, sink);
}

/* The moment asked for; without one the last oom, else the peak. */
static allot_status find_event(request *r)
{
    allot_history_counts counts;
    allot_history_get_counts(r->history, &counts);
    const char *const otherwise = counts.oom != 0 ? "oom" : "peak";
    return allot_history_find(r->history, at != NULL ? at : otherwise, &r->event);
}

static cli_exit explain(request *r, const char *path)
{
    allot_status status = find_event(r);
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    FILE *out = NULL;
    const cli_exit opened = cli_open_output(cli_report.output, &out);
    if (opened != CLI_OK) {
        return opened;
    }
    allot_report_options options = cli_report_to(path, out);
    options.device_total = r->limit;
    const allot_sink sink = allot_sink_stdio(out);
    allot_oom_verdict verdict = ALLOT_OOM_EXHAUSTED;
    status = allot_report_explain(r->history, r->event, r->by, &options, &sink, &verdict);
    const cli_exit closed = cli_end_output(status, cli_report.output, out);
    const cli_exit paged = closed == CLI_OK ? cli_write_page(path, page, r) : closed;
    return paged == CLI_OK && verdict == ALLOT_OOM_FRAGMENTED ? CLI_FOUND : paged;
}

static cli_exit run(const char *const *files, size_t count)
{
    if (count != 1) {
        return cli_usage("one FILE is needed");
    }
    request r = {.by = ALLOT_GROUP_LINE};
    if (by != NULL && allot_group_parse(by, &r.by) != ALLOT_STATUS_OK) {
        return cli_usage("--by: %s", allot_error_detail());
    }
    cli_subject subject = {0};
    cli_exit code = cli_read_limit(limit, &r.limit);
    if (code == CLI_OK) {
        code = cli_open_subject(files[0], &subject);
    }
    if (code == CLI_OK) {
        r.history = subject.history;
        code = explain(&r, files[0]);
        cli_close_subject(&subject);
    }
    return code;
}

const cli_verb cli_verb_explain = {
    .name = "explain",
    .arguments = "FILE",
    .summary = "Show who holds memory at a moment, and why an allocation failed",
    .found = "the allocation failed by fragmentation: enough was free, in pieces",
    .options = OPTIONS,
    .run = run};
