/* SPDX-License-Identifier: MIT */
#include "cli_report.h"

#include "cli_number.h"

cli_report_args cli_report = {.device = ALLOT_NONE};

const struct poptOption CLI_REPORT_OPTIONS[] = {
    {"json", '\0', POPT_ARG_NONE, &cli_report.wants_json, 0, "Write JSON (docs/json.md)", NULL},
    {"device", 'd', POPT_ARG_STRING, &cli_report.device_text, 0,
     "Device by its number in the file (default: the busiest)", "N"},
    {"top", 'n', POPT_ARG_STRING, &cli_report.top_text, 0, "Rows of each ranking (default: 10)",
     "N"},
    {"own", '\0', POPT_ARG_ARGV, &cli_report.own_prefixes, 0,
     "Count code under this folder as yours, though it is installed; may be repeated", "FOLDER"},
    {"output", 'o', POPT_ARG_STRING, &cli_report.output, 0, "Write to a file", "FILE"},
    POPT_TABLEEND};

const struct poptOption CLI_HTML_OPTIONS[] = {{"html", '\0', POPT_ARG_STRING, &cli_report.html, 0,
                                               "Also write a self-contained page", "FILE"},
                                              POPT_TABLEEND};

cli_exit cli_report_read(void)
{
    const cli_exit code = cli_read_count("--device", cli_report.device_text, 0, &cli_report.device);
    return code == CLI_OK ? cli_read_count("--top", cli_report.top_text, 1, &cli_report.top) : code;
}

const allot_lines_options *cli_lines_options(void)
{
    static allot_lines_options options = {.struct_size = sizeof options};
    options.own_prefixes = (const char *const *)cli_report.own_prefixes;
    options.own_prefix_count = 0;
    while (cli_report.own_prefixes != NULL &&
           cli_report.own_prefixes[options.own_prefix_count] != NULL) {
        options.own_prefix_count++;
    }
    return &options;
}

allot_report_options cli_report_to(const char *name, const FILE *out)
{
    allot_report_options options =
        cli_report_options(cli_report.wants_json != 0, cli_report.top, name);
    if (out != stdout) {
        options.use_color = false;
        options.width = 0;
    }
    options.lines = cli_lines_options();
    return options;
}

/* Index of the device whose number in the file is asked for; memory of a GPU goes first. */
static uint32_t find_device(const allot_trace *trace, uint32_t number)
{
    uint32_t other = ALLOT_NONE;
    for (uint32_t d = 0; d < allot_trace_device_count(trace); d++) {
        const allot_trace_device *const device = allot_trace_get_device(trace, d);
        if (device->index == number && device->memory == ALLOT_MEMORY_DEVICE) {
            return d;
        }
        if (device->index == number && other == ALLOT_NONE) {
            other = d;
        }
    }
    return other;
}

cli_exit cli_choose_device(const allot_trace *trace, const char *name, uint32_t *out)
{
    const uint32_t device = cli_report.device == ALLOT_NONE ? allot_trace_main_device(trace)
                                                            : find_device(trace, cli_report.device);
    if (device == ALLOT_NONE && cli_report.device == ALLOT_NONE) {
        fprintf(stderr, "allot: %s: the file has no device in it\n", name);
        return CLI_REFUSED;
    }
    if (device == ALLOT_NONE) {
        fprintf(stderr, "allot: %s: no device %u; the file has", name, cli_report.device);
        for (uint32_t d = 0; d < allot_trace_device_count(trace); d++) {
            fprintf(stderr, " %u", allot_trace_get_device(trace, d)->index);
        }
        fputc('\n', stderr);
        return CLI_USAGE;
    }
    *out = device;
    return CLI_OK;
}

cli_exit cli_open_subject(const char *path, cli_subject *out)
{
    *out = (cli_subject){0};
    uint32_t device = 0;
    cli_exit code = cli_read_trace(path, &out->trace);
    if (code == CLI_OK) {
        code = cli_choose_device(out->trace, path, &device);
    }
    if (code == CLI_OK) {
        const allot_history_options options = {.struct_size = sizeof options,
                                               .progress = cli_progress};
        const allot_status status =
            allot_history_create(out->trace, device, &options, &out->history);
        cli_progress_end();
        code = status == ALLOT_STATUS_OK ? CLI_OK : cli_fail(status);
    }
    if (code != CLI_OK) {
        cli_close_subject(out);
    }
    return code;
}

void cli_close_subject(cli_subject *subject)
{
    allot_history_destroy(subject->history);
    allot_trace_destroy(subject->trace);
    *subject = (cli_subject){0};
}

cli_exit cli_write_page(const char *name, cli_page_fn write, const void *context)
{
    if (cli_report.html == NULL) {
        return CLI_OK;
    }
    FILE *out = NULL;
    const cli_exit opened = cli_open_output(cli_report.html, &out);
    if (opened != CLI_OK) {
        return opened;
    }
    const allot_html_options options = {.struct_size = sizeof options,
                                        .name = name,
                                        .lines = cli_lines_options(),
                                        .progress = cli_progress};
    const allot_sink sink = allot_sink_stdio(out);
    const allot_status status = write(context, &options, &sink);
    cli_progress_end();
    return cli_end_output(status, cli_report.html, out);
}
