/* SPDX-License-Identifier: MIT */
/* allot replay: check a recording against the exact model, or replay it under other conditions. */
#include <stdlib.h>

#include "cli_number.h"
#include "cli_report.h"
#include "verbs.h"

static struct {
    int check;
    char **models;
    char *limit;
    char *fraction;
    char *samples;
    int go_on;
    int json;
} opt;

static const struct poptOption OWN[] = {
    {"check", 'c', POPT_ARG_NONE, &opt.check, 0,
     "Compare every event with what the exact model does", NULL},
    {"model", 'm', POPT_ARG_ARGV, &opt.models, 0,
     "torch:SETTINGS, async, bfc, rmm:pool, rmm:arena, rmm:binning, space:STRATEGY or "
     "heap:STRATEGY; may be repeated",
     "MODEL"},
    {"limit", 'l', POPT_ARG_STRING, &opt.limit, 0, "Memory of the device (default: no limit)",
     "SIZE"},
    {"fraction", 'f', POPT_ARG_STRING, &opt.fraction, 0,
     "Share of it, as set_per_process_memory_fraction() sets", "F"},
    {"device", 'd', POPT_ARG_STRING, &cli_report.device_text, 0,
     "Device by its number in the file (default: the busiest)", "N"},
    {"samples", 's', POPT_ARG_STRING, &opt.samples, 0,
     "Points of the timeline in JSON (default: 0)", "N"},
    {"continue", '\0', POPT_ARG_NONE, &opt.go_on, 0,
     "Go on after a request that fails (default: the first ends the replay)", NULL},
    {"json", '\0', POPT_ARG_NONE, &opt.json, 0, "Write JSON (docs/json.md)", NULL},
    POPT_TABLEEND};

static const struct poptOption OPTIONS[] = {CLI_INCLUDE_OPTIONS(OWN, "Replay:"), POPT_TABLEEND};

/** What the command line says, checked. */
typedef struct conditions {
    uint64_t limit;
    double fraction;
    uint32_t sample_count;
    size_t model_count;
} conditions;

static cli_exit read_options(conditions *out)
{
    *out = (conditions){0};
    while (opt.models != NULL && opt.models[out->model_count] != NULL) {
        out->model_count++;
    }
    if (opt.check != 0 && out->model_count > 1) {
        return cli_usage("--check takes one --model");
    }
    if (opt.check != 0 && (opt.go_on != 0 || opt.samples != NULL)) {
        return cli_usage("--continue and --samples are for replays without --check");
    }
    cli_exit code = cli_read_count("--samples", opt.samples, 0, &out->sample_count);
    if (code == CLI_OK) {
        code = cli_read_limit(opt.limit, &out->limit);
    }
    return code == CLI_OK ? cli_read_fraction(opt.fraction, opt.limit, &out->fraction) : code;
}

static cli_exit check_requests(const allot_trace *trace, const allot_requests *requests,
                               const char *name, const conditions *given)
{
    const allot_replay_check_options options = {.struct_size = sizeof options,
                                                .model =
                                                    given->model_count > 0 ? opt.models[0] : NULL,
                                                .limit = given->limit,
                                                .fraction = given->fraction,
                                                .progress = cli_progress};
    allot_replay_check_result result;
    const allot_status status = allot_replay_check(requests, &options, &result);
    cli_progress_end();
    if (status == ALLOT_STATUS_INVALID) {
        return cli_usage("%s", allot_error_detail());
    }
    if (status != ALLOT_STATUS_OK && status != ALLOT_STATUS_MISMATCH) {
        return cli_fail(status);
    }
    const allot_report_options report = cli_report_options(opt.json != 0, 0, name);
    const allot_sink sink = allot_sink_stdio(stdout);
    const allot_status written = allot_report_check(trace, requests, &result, &report, &sink);
    const cli_exit code = cli_end_output(written, NULL, stdout);
    return code == CLI_OK && !result.is_equal ? CLI_FOUND : code;
}

static cli_exit run_models(const allot_requests *requests, const conditions *given,
                           allot_replay_options *options, allot_replay_result **results,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        options->model = given->model_count > 0 ? opt.models[i] : NULL;
        const allot_status status = allot_replay_run(requests, options, &results[i]);
        cli_progress_end();
        if (status == ALLOT_STATUS_INVALID || status == ALLOT_STATUS_UNSUPPORTED) {
            return cli_usage("%s", allot_error_detail());
        }
        if (status != ALLOT_STATUS_OK) {
            return cli_fail(status);
        }
    }
    return CLI_OK;
}

static cli_exit report_results(const allot_requests *requests, const char *name,
                               const allot_replay_options *options,
                               allot_replay_result *const *results, size_t count)
{
    const allot_report_options report = cli_report_options(opt.json != 0, 0, name);
    const allot_sink sink = allot_sink_stdio(stdout);
    const allot_status status =
        allot_report_replays(requests, options, (const allot_replay_result *const *)results,
                             (uint32_t)count, &report, &sink);
    return cli_end_output(status, NULL, stdout);
}

static cli_exit replay_requests(const allot_requests *requests, const char *name,
                                const conditions *given)
{
    allot_replay_options options = {.struct_size = sizeof options,
                                    .limit = given->limit,
                                    .fraction = given->fraction,
                                    .continue_after_oom = opt.go_on != 0,
                                    .sample_count = given->sample_count,
                                    .progress = cli_progress};
    const size_t count = given->model_count > 0 ? given->model_count : 1;
    allot_replay_result **const results = calloc(count, sizeof(allot_replay_result *));
    if (results == NULL) {
        return cli_fail(ALLOT_STATUS_HOST_MEMORY);
    }
    cli_exit code = run_models(requests, given, &options, results, count);
    if (code == CLI_OK) {
        code = report_results(requests, name, &options, results, count);
    }
    for (size_t i = 0; i < count; i++) {
        allot_replay_result_destroy(results[i]);
    }
    free(results);
    return code;
}

static cli_exit replay_trace(const allot_trace *trace, const char *name, const conditions *given)
{
    uint32_t device = ALLOT_NONE;
    const cli_exit chosen = cli_choose_device(trace, name, &device);
    if (chosen != CLI_OK) {
        return chosen;
    }
    allot_requests *requests = NULL;
    const allot_status status = allot_requests_create(trace, device, &requests, NULL);
    cli_progress_end();
    if (status == ALLOT_STATUS_UNSUPPORTED) {
        fprintf(stderr, "allot: %s: %s\n", name, allot_error_detail());
        return CLI_UNSUITED;
    }
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    const cli_exit code = opt.check != 0 ? check_requests(trace, requests, name, given)
                                         : replay_requests(requests, name, given);
    allot_requests_destroy(requests);
    return code;
}

static cli_exit run(const char *const *files, size_t count)
{
    conditions given;
    if (count != 1) {
        return cli_usage("want one FILE, got %zu", count);
    }
    const cli_exit usage = read_options(&given);
    if (usage != CLI_OK) {
        return usage;
    }
    allot_trace *trace = NULL;
    cli_exit code = cli_read_trace(files[0], &trace);
    if (code == CLI_OK) {
        code = replay_trace(trace, files[0], &given);
        allot_trace_destroy(trace);
    }
    return code;
}

const cli_verb cli_verb_replay = {
    .name = "replay",
    .arguments = "FILE",
    .summary = "Replay a trace: check the model, or try other settings",
    .found = "--check found a difference from the recording",
    .options = OPTIONS,
    .run = run,
};
