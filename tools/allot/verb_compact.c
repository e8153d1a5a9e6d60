/* SPDX-License-Identifier: MIT */
/* allot compact: what compaction would gain and cost, at a moment or over a whole trace. */
#include <string.h>

#include "cli_number.h"
#include "compaction.h"
#include "verbs.h"

static struct {
    int simulates;
    const char *at;
    const char *when;
    const char *threshold;
    const char *step;
    const char *limit;
    const char *strategy;
    const char *mode;
    const char *gpu;
    const char *copy_rate;
} opt;

static const struct poptOption OWN[] = {
    {"simulate", 's', POPT_ARG_NONE, &opt.simulates, 0,
     "Replay the whole trace through a heap, without and with compaction (default: look at one "
     "moment)",
     NULL},
    {"at", 'a', POPT_ARG_STRING, &opt.at, 0,
     "The moment: peak, peak:reserved, oom, end, an event's number or +1.5s (default: the last "
     "oom, else the end)",
     "MOMENT"},
    {"gpu", 'g', POPT_ARG_STRING, &opt.gpu, 0,
     "Card whose rates are counted with (default: a100-80)", "GPU"},
    {"copy-rate", '\0', POPT_ARG_STRING, &opt.copy_rate, 0,
     "Bytes copied per second instead, as 1.2TiB", "SIZE"},
    POPT_TABLEEND};

static const struct poptOption SIMULATION[] = {
    {"limit", 'l', POPT_ARG_STRING, &opt.limit, 0, "Memory of the device (default: no limit)",
     "SIZE"},
    {"when", 'w', POPT_ARG_STRING, &opt.when, 0,
     "forced: a request would fail, for as much as it needs; full: for the whole heap; auto: also "
     "when much is free and it pays; steps: so, a step at each request (default: auto)",
     "WHEN"},
    {"threshold", 't', POPT_ARG_STRING, &opt.threshold, 0,
     "auto, steps: percent that may be free (default: 25)", "P"},
    {"step", '\0', POPT_ARG_STRING, &opt.step, 0,
     "steps: time of the copies of one, as 1ms (default: 64 MiB)", "TIME"},
    {"strategy", '\0', POPT_ARG_STRING, &opt.strategy, 0,
     "How the heap places blocks (default: first-fit)", "STRATEGY"},
    {"mode", 'm', POPT_ARG_STRING, &opt.mode, 0,
     "What the heap takes from the device (default: segments)", "segments|virtual"},
    POPT_TABLEEND};

static const struct poptOption OPTIONS[] = {
    CLI_INCLUDE_OPTIONS(OWN, "Compaction:"), CLI_INCLUDE_OPTIONS(SIMULATION, "With --simulate:"),
    CLI_INCLUDE_OPTIONS(CLI_REPORT_OPTIONS, "Report:"), CLI_INCLUDE_OPTIONS(CLI_HTML_OPTIONS, NULL),
    POPT_TABLEEND};

/* ---- the command line ---- */

static cli_exit check_word(const char *option, const char *value, const char *words)
{
    const size_t length = strlen(value);
    for (const char *at = words; at != NULL; at = strchr(at, '|')) {
        at += *at == '|' ? 1 : 0;
        if (length != 0 && strcspn(at, "|") == length && memcmp(at, value, length) == 0) {
            return CLI_OK;
        }
    }
    return cli_usage("%s %s: want one of %s", option, value, words);
}

/** Options that have no meaning with others. */
static cli_exit check_use(const compact_request *request)
{
    const struct {
        const char *option;
        const char *value;
    } simulation[] = {{"--limit", opt.limit},         {"--when", opt.when},
                      {"--threshold", opt.threshold}, {"--step", opt.step},
                      {"--strategy", opt.strategy},   {"--mode", opt.mode}};
    for (size_t i = 0; i < sizeof simulation / sizeof simulation[0]; i++) {
        if (opt.simulates == 0 && simulation[i].value != NULL) {
            return cli_usage("%s is for --simulate", simulation[i].option);
        }
    }
    if (opt.simulates != 0 && opt.at != NULL) {
        return cli_usage("--at is for one moment, --simulate for the whole trace");
    }
    const bool is_auto = strcmp(request->when, "auto") == 0;
    const bool is_steps = strcmp(request->when, "steps") == 0;
    if (opt.threshold != NULL && !is_auto && !is_steps) {
        return cli_usage("--threshold is for --when auto and steps");
    }
    return opt.step != NULL && !is_steps ? cli_usage("--step is for --when steps") : CLI_OK;
}

/** The value of an option of a few words, the first of them if it is not given. */
static cli_exit read_word(const char *option, const char *value, const char *words,
                          const char **out)
{
    *out = value != NULL ? value : *out;
    return value != NULL ? check_word(option, value, words) : CLI_OK;
}

static cli_exit read_words(compact_request *out)
{
    const char *mode = "segments";
    out->when = "auto";
    out->strategy = "first-fit";
    cli_exit code = read_word("--when", opt.when, "auto|steps|full|forced", &out->when);
    if (code == CLI_OK) {
        code = read_word("--strategy", opt.strategy,
                         "first-fit|best-fit|buddy|tlsf|tiered|adaptive", &out->strategy);
    }
    if (code == CLI_OK) {
        code = read_word("--mode", opt.mode, "segments|virtual", &mode);
    }
    out->is_virtual = strcmp(mode, "virtual") == 0;
    return code;
}

static cli_exit read_numbers(compact_request *out)
{
    double percent = 0;
    cli_exit code = cli_read_limit(opt.limit, &out->limit);
    if (code == CLI_OK) {
        code = cli_read_size("--copy-rate", opt.copy_rate, &out->copy_rate);
    }
    if (code == CLI_OK) {
        code = cli_read_time("--step", opt.step, &out->step_ns);
    }
    if (code == CLI_OK) {
        code = cli_read_percent("--threshold", opt.threshold, &percent);
    }
    if (code == CLI_OK && opt.threshold != NULL && !(percent > 0 && percent <= 100)) {
        code = cli_usage("--threshold %s: want a percentage above 0, up to 100", opt.threshold);
    }
    out->threshold = percent / 100;
    return code;
}

static cli_exit read_gpu(compact_request *out)
{
    allot_gpu gpu;
    out->gpu = opt.gpu != NULL ? opt.gpu : "a100-80";
    return allot_gpu_find(out->gpu, &gpu) == ALLOT_STATUS_OK
               ? CLI_OK
               : cli_usage("--gpu: %s", allot_error_detail());
}

static cli_exit read_options(compact_request *out)
{
    cli_exit code = read_numbers(out);
    if (code == CLI_OK) {
        code = read_words(out);
    }
    if (code == CLI_OK) {
        code = read_gpu(out);
    }
    return code == CLI_OK ? check_use(out) : code;
}

/* ---- the work ---- */

static cli_exit estimate(const compact_request *request, const cli_subject *subject)
{
    allot_history_counts counts;
    uint32_t event = ALLOT_NONE;
    allot_history_get_counts(subject->history, &counts);
    const char *const otherwise = counts.oom != 0 ? "oom" : "end";
    const allot_status status =
        allot_history_find(subject->history, opt.at != NULL ? opt.at : otherwise, &event);
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    compact_state state;
    cli_exit code = compact_state_init(&state, request, subject->history, event);
    if (code == CLI_OK) {
        code = compact_report_state(request, &state);
    }
    if (code == CLI_OK) {
        code = compact_page_state(request, &state, subject->history);
    }
    compact_state_fini(&state);
    return code;
}

static cli_exit simulate_requests(const compact_request *request, const allot_requests *requests,
                                  const allot_history *history)
{
    compact_simulation simulation;
    cli_exit code = compact_simulation_init(&simulation, request, requests);
    if (code == CLI_OK) {
        code = compact_report_simulation(request, &simulation);
    }
    if (code == CLI_OK) {
        code = compact_page_simulation(request, &simulation, history);
    }
    compact_simulation_fini(&simulation);
    return code;
}

static cli_exit simulate(const compact_request *request, const cli_subject *subject)
{
    allot_requests *requests = NULL;
    allot_replay_unusable why = ALLOT_REPLAY_UNUSABLE_NONE;
    const allot_status status = allot_requests_create(
        subject->trace, allot_history_device(subject->history), &requests, &why);
    cli_progress_end();
    if (status == ALLOT_STATUS_UNSUPPORTED && why == ALLOT_REPLAY_UNUSABLE_NO_EVENTS) {
        fprintf(stderr, "allot: %s: no history to simulate, only its state:\n", request->path);
        return estimate(request, subject);
    }
    if (status == ALLOT_STATUS_UNSUPPORTED) {
        fprintf(stderr, "allot: %s: %s%s\n", request->path, allot_error_detail(),
                why == ALLOT_REPLAY_UNUSABLE_NO_ADDRESSES
                    ? ""
                    : "; without --simulate one moment is looked at, if segments are known");
        return CLI_UNSUITED;
    }
    if (status != ALLOT_STATUS_OK) {
        return cli_fail(status);
    }
    const cli_exit code = simulate_requests(request, requests, subject->history);
    allot_requests_destroy(requests);
    return code;
}

static cli_exit run(const char *const *files, size_t count)
{
    if (count != 1) {
        return cli_usage("one FILE is needed");
    }
    compact_request request = {.path = files[0]};
    cli_subject subject = {0};
    cli_exit code = read_options(&request);
    if (code == CLI_OK) {
        code = cli_open_subject(files[0], &subject);
    }
    if (code == CLI_OK) {
        code = opt.simulates != 0 ? simulate(&request, &subject) : estimate(&request, &subject);
        cli_close_subject(&subject);
    }
    return code;
}

const cli_verb cli_verb_compact = {.name = "compact",
                                   .arguments = "FILE",
                                   .summary =
                                       "Show what moving live blocks together would gain and cost",
                                   .options = OPTIONS,
                                   .run = run};
