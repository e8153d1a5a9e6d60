/* SPDX-License-Identifier: MIT */
/* allot advise: which settings of PyTorch's allocator to use, found by replaying the trace. */
#include <errno.h>
#include <stdlib.h>

#include "verbs.h"

static struct {
    char *limit;
    char *fraction;
    int top;
    int device;
    int threads;
    int json;
    char **settings;
    char *html;
} opt = {.device = -1};

static const struct poptOption OPTIONS[] = {
    {"limit", 'l', POPT_ARG_STRING, &opt.limit, 0,
     "Memory the device can give this process (else inferred from an out-of-memory)", "SIZE"},
    {"fraction", 'f', POPT_ARG_STRING, &opt.fraction, 0,
     "Share of it, as set_per_process_memory_fraction() sets", "F"},
    {"try", 't', POPT_ARG_ARGV, &opt.settings, 0,
     "Try this settings string too, with a row of its own; may be repeated", "SETTINGS"},
    {"top", 'n', POPT_ARG_INT, &opt.top, 0, "Rows of the table (10)", "N"},
    {"device", 'd', POPT_ARG_INT, &opt.device, 0,
     "Device of the trace, by position (the one with most events)", "N"},
    {"threads", 'j', POPT_ARG_INT, &opt.threads, 0, "Threads (one per processor)", "N"},
    {"json", '\0', POPT_ARG_NONE, &opt.json, 0, "Write JSON, schema allot.advise/1", NULL},
    {"html", '\0', POPT_ARG_STRING, &opt.html, 0,
     "Also write one self-contained page with timelines", "FILE"},
    POPT_TABLEEND};

/** What the command line says, checked. */
static cli_exit read_options(allot_advise_options *out)
{
    if (opt.limit != NULL) {
        const allot_status status = allot_size_parse(opt.limit, &out->limit);
        if (status != ALLOT_STATUS_OK || out->limit == 0) {
            return cli_usage("--limit %s: %s", opt.limit,
                             status == ALLOT_STATUS_OK ? "want a size above 0"
                                                       : allot_error_detail());
        }
    }
    if (opt.fraction != NULL) {
        char *end = NULL;
        errno = 0;
        out->fraction = strtod(opt.fraction, &end);
        if (errno != 0 || end == opt.fraction || *end != '\0' ||
            !(out->fraction > 0.0 && out->fraction <= 1.0)) {
            return cli_usage("--fraction %s: want a number above 0, up to 1", opt.fraction);
        }
        if (opt.limit == NULL) {
            return cli_usage("--fraction needs --limit: it is a share of it");
        }
    }
    if (opt.top < 0 || opt.threads < 0 || opt.device < -1) {
        return cli_usage("--top, --threads and --device want numbers that are not negative");
    }
    out->row_max = (uint32_t)opt.top;
    out->thread_count = (uint32_t)opt.threads;
    out->settings = (const char *const *)opt.settings;
    while (opt.settings != NULL && opt.settings[out->setting_count] != NULL) {
        out->setting_count++;
    }
    return CLI_OK;
}

static cli_exit write_html(const allot_trace *trace, uint32_t device, const allot_advice *advice,
                           const char *name)
{
    allot_history *history = NULL;
    allot_status status = allot_history_create(trace, device, NULL, &history);
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    FILE *file = NULL;
    cli_exit code = cli_open_output(opt.html, &file);
    if (code == CLI_OK) {
        allot_advice_summary summary = {0};
        allot_advice_get_summary(advice, &summary);
        const allot_html_options options = {.struct_size = sizeof options,
                                            .name = name,
                                            .limit = summary.limit,
                                            .progress = cli_progress};
        const allot_sink sink = allot_sink_stdio(file);
        status = allot_html_advise(history, advice, &options, &sink);
        code = cli_close_output(opt.html, file);
        code = status == ALLOT_STATUS_OK ? code : cli_fail(status);
    }
    allot_history_destroy(history);
    return code;
}

static cli_exit report(const allot_trace *trace, uint32_t device, const allot_advice *advice,
                       const char *name)
{
    const allot_report_options options = cli_report_options(opt.json != 0, opt.top, name);
    const allot_sink sink = allot_sink_stdio(stdout);
    const allot_status status = allot_report_advice(advice, &options, &sink);
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    const cli_exit code = cli_close_output(NULL, stdout);
    if (code != CLI_OK || opt.html == NULL) {
        return code;
    }
    return write_html(trace, device, advice, name);
}

static cli_exit advise_trace(const allot_trace *trace, const char *name,
                             const allot_advise_options *options)
{
    const uint32_t device = opt.device < 0 ? allot_trace_main_device(trace) : (uint32_t)opt.device;
    if (device == ALLOT_NONE) {
        fprintf(stderr, "allot: %s: the trace has no device\n", name);
        return CLI_REFUSED;
    }
    allot_advice *advice = NULL;
    const allot_status status = allot_advise(trace, device, options, &advice);
    cli_progress_end();
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    const cli_exit code = report(trace, device, advice, name);
    allot_advice_destroy(advice);
    return code;
}

static cli_exit run(const char *const *files, size_t count)
{
    allot_advise_options options = {.struct_size = sizeof options, .progress = cli_progress};
    if (count != 1) {
        return cli_usage("want one FILE, got %zu", count);
    }
    const cli_exit usage = read_options(&options);
    if (usage != CLI_OK) {
        return usage;
    }
    allot_trace *trace = NULL;
    cli_exit code = cli_read_trace(files[0], &trace);
    if (code == CLI_OK) {
        code = advise_trace(trace, files[0], &options);
        allot_trace_destroy(trace);
    }
    return code;
}

const cli_verb cli_verb_advise = {
    .name = "advise",
    .arguments = "FILE",
    .summary = "Find the allocator settings that suit a trace, by replaying it",
    .options = OPTIONS,
    .run = run,
};
