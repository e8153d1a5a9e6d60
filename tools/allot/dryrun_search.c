/* SPDX-License-Identifier: MIT */
#include "dryrun_search.h"

#include <string.h>

#include "dryrun_words.h"

static char **confs;
static int wants_fit;
static char **sweeps;
static int wants_advice;
static int wants_no_advice;

const struct poptOption DRYRUN_SEARCH_OPTIONS[] = {
    {"conf", '\0', POPT_ARG_ARGV, &confs, 0,
     "Settings of PyTorch's allocator, \"default\" for none; several are run and compared",
     "SETTINGS"},
    {"fit", '\0', POPT_ARG_NONE, &wants_fit, 0,
     "Search the least memory with which the whole run fits, and the smallest card", NULL},
    {"sweep", '\0', POPT_ARG_ARGV, &sweeps, 0,
     "Search the largest value that fits; {NAME} stands for it in the command", "NAME=FIRST..LAST"},
    {"advise", '\0', POPT_ARG_NONE, &wants_advice, 0,
     "Search better settings and run under them, even if it fits", NULL},
    {"no-advise", '\0', POPT_ARG_NONE, &wants_no_advice, 0,
     "Do not do so after an out-of-memory either", NULL},
    POPT_TABLEEND};

/* ---- options ---- */

static uint32_t count_of(char *const *list)
{
    uint32_t count = 0;
    while (list != NULL && list[count] != NULL) {
        count++;
    }
    return count;
}

static const char *conf_of(const char *text)
{
    return strcmp(text, "default") == 0 ? "" : text;
}

static cli_exit check_question(const dryrun_request *request, uint32_t conf_count)
{
    const uint32_t sweep_count = count_of(sweeps);
    if (sweep_count > 1) {
        return cli_usage("one --sweep at a time: with two values there is no single largest pair; "
                         "fix one of them in the command");
    }
    if (sweep_count == 1 && (wants_fit != 0 || conf_count > 1)) {
        return cli_usage("--sweep asks for a value: leave out --fit, and give one --conf at most");
    }
    if (wants_fit != 0 && request->limit != 0) {
        return cli_usage("--fit searches the limit: leave out --limit");
    }
    if (wants_advice != 0 &&
        (wants_no_advice != 0 || sweep_count != 0 || wants_fit != 0 || conf_count > 1)) {
        return cli_usage("--advise is about one run: leave out --no-advise, --sweep, --fit and "
                         "all but one --conf");
    }
    if (conf_count > DRYRUN_CONFS_MAX) {
        return cli_usage("--conf can be given %d times", DRYRUN_CONFS_MAX);
    }
    return CLI_OK;
}

cli_exit dryrun_search_read(dryrun_request *request, dryrun_answer *out)
{
    const uint32_t conf_count = count_of(confs);
    *out = (dryrun_answer){0};
    const cli_exit code = check_question(request, conf_count);
    if (code != CLI_OK) {
        return code;
    }
    for (uint32_t i = 0; i < conf_count; i++) {
        out->compared[i].conf = conf_of(confs[i]);
    }
    out->compared_count = conf_count == 0 ? 1 : conf_count;
    request->conf = out->compared[0].conf;
    if (count_of(sweeps) == 1) {
        out->question = DRYRUN_ASK_SWEEP;
        return dryrun_sweep_parse(sweeps[0], &out->sweep.range) &&
                       dryrun_sweep_is_used(&out->sweep.range, request->command)
                   ? CLI_OK
                   : CLI_USAGE;
    }
    out->question = wants_fit != 0   ? DRYRUN_ASK_FIT
                    : conf_count > 1 ? DRYRUN_ASK_CONFS
                                     : DRYRUN_ASK_ONE;
    return CLI_OK;
}

/* ---- the answers ---- */

static bool is_advice_wanted(const dryrun_attempt *attempt)
{
    return (wants_advice != 0 && !dryrun_attempt_is_useless(attempt)) ||
           (wants_no_advice == 0 && attempt->verdict == DRYRUN_OUT_OF_MEMORY);
}

static cli_exit run_one(const dryrun_request *request, dryrun_answer *answer)
{
    dryrun_attempt *attempt = NULL;
    const cli_exit code =
        dryrun_series_run(&answer->series, request, DRYRUN_PURPOSE_RUN, "", &attempt);
    if (code != CLI_OK) {
        return code;
    }
    answer->run = attempt;
    dryrun_attempt_keep(attempt, NULL);
    return is_advice_wanted(attempt)
               ? dryrun_advise(&answer->series, request, attempt, &answer->advice)
               : CLI_OK;
}

static cli_exit run_confs(const dryrun_request *request, dryrun_answer *answer)
{
    for (uint32_t i = 0; i < answer->compared_count; i++) {
        dryrun_compared *const compared = &answer->compared[i];
        dryrun_request changed = *request;
        dryrun_attempt *attempt = NULL;
        changed.conf = compared->conf;
        const char *const label = compared->conf[0] == '\0' ? "default" : compared->conf;
        const cli_exit code =
            dryrun_series_run(&answer->series, &changed, DRYRUN_PURPOSE_CONF, label, &attempt);
        if (code != CLI_OK) {
            return code;
        }
        compared->run = attempt;
        if (answer->run == NULL) {
            answer->run = attempt;
            dryrun_attempt_keep(attempt, NULL);
        }
    }
    return CLI_OK;
}

/** Whether a search gave less than all before it. */
static bool is_least(const dryrun_answer *answer, const dryrun_compared *compared)
{
    return compared->fit.is_finished &&
           (answer->least == NULL || compared->fit.limit_min < answer->least->fit.limit_min);
}

static cli_exit fit_each(const dryrun_request *request, dryrun_answer *answer)
{
    for (uint32_t i = 0; i < answer->compared_count; i++) {
        dryrun_compared *const compared = &answer->compared[i];
        dryrun_request changed = *request;
        changed.conf = compared->conf;
        const cli_exit code = dryrun_fit_run(&answer->series, &changed, &compared->fit);
        compared->run = compared->fit.least != NULL ? compared->fit.least : compared->fit.roomy;
        if (is_least(answer, compared)) {
            dryrun_attempt_keep(compared->run, answer->run);
            answer->least = compared;
            answer->run = compared->run;
        } else if (answer->run == NULL) {
            answer->run = compared->run;
        } else {
            dryrun_attempt_keep(NULL, compared->run);
        }
        if (code != CLI_OK) {
            return code;
        }
    }
    return CLI_OK;
}

static cli_exit run_fit(const dryrun_request *request, dryrun_answer *answer)
{
    const cli_exit code = fit_each(request, answer);
    if (code != CLI_OK || answer->least == NULL) {
        return code;
    }
    dryrun_request changed = *request;
    changed.conf = answer->least->conf;
    return dryrun_fit_card(&answer->series, &changed, &answer->least->fit);
}

static cli_exit run_sweep(const dryrun_request *request, dryrun_answer *answer)
{
    const cli_exit code = dryrun_sweep_run(&answer->series, request, &answer->sweep);
    const dryrun_sweep *const sweep = &answer->sweep;
    answer->run = sweep->failed != NULL    ? sweep->failed
                  : sweep->largest != NULL ? sweep->largest
                                           : sweep->beyond;
    dryrun_attempt_keep(answer->run, NULL);
    return code;
}

cli_exit dryrun_search_run(const dryrun_request *request, dryrun_answer *answer)
{
    cli_exit code = CLI_FAILED;
    switch (answer->question) {
    case DRYRUN_ASK_ONE:
        code = run_one(request, answer);
        break;
    case DRYRUN_ASK_CONFS:
        code = run_confs(request, answer);
        break;
    case DRYRUN_ASK_FIT:
        code = run_fit(request, answer);
        break;
    case DRYRUN_ASK_SWEEP:
        code = run_sweep(request, answer);
        break;
    }
    answer->is_cut_short = code != CLI_OK;
    /* What is known is worth saying. */
    return answer->run != NULL ? CLI_OK : code;
}

static cli_exit worse(cli_exit a, cli_exit b)
{
    return a > b ? a : b;
}

cli_exit dryrun_search_exit(const dryrun_answer *answer)
{
    cli_exit code = answer->is_cut_short ? CLI_FAILED : dryrun_exit(answer->run->verdict);
    for (uint32_t i = 0; i < answer->compared_count; i++) {
        const dryrun_compared *const compared = &answer->compared[i];
        if (compared->run != NULL) {
            code = worse(code, dryrun_exit(compared->run->verdict));
        }
        if (answer->question == DRYRUN_ASK_FIT && !compared->fit.is_finished) {
            code = worse(code, CLI_FOUND);
        }
    }
    return code;
}

/** Whether a peak is too large; then say so, and of which settings it is. */
static bool is_above(uint64_t peak, uint64_t peak_max, const char *conf)
{
    if (peak > peak_max) {
        fprintf(stderr, "allot: %s%sthe peak, %s, is above --assert-peak %s\n",
                conf == NULL ? "" : dryrun_conf_text(conf), conf == NULL ? "" : ": ",
                dryrun_size_text(peak), dryrun_size_text(peak_max));
    }
    return peak > peak_max;
}

bool dryrun_search_is_above(const dryrun_answer *answer, uint64_t peak_max)
{
    bool is_any_above = false;
    if (answer->question != DRYRUN_ASK_CONFS) {
        return is_above(answer->least != NULL ? answer->least->fit.limit_min
                                              : answer->run->result.reserved_peak,
                        peak_max, NULL);
    }
    for (uint32_t i = 0; i < answer->compared_count; i++) {
        const dryrun_compared *const compared = &answer->compared[i];
        if (compared->run != NULL &&
            is_above(compared->run->result.reserved_peak, peak_max, compared->conf)) {
            is_any_above = true;
        }
    }
    return is_any_above;
}

void dryrun_search_end(dryrun_answer *answer)
{
    dryrun_advice_destroy(&answer->advice);
    dryrun_series_end(&answer->series);
}
