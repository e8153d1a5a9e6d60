/* SPDX-License-Identifier: MIT */
/*
 * A run without a limit tells two bounds: with less than what is requested at its peak the program
 * cannot run; with what it took of the device it runs the same way again. Between them the answer
 * depends on fragmentation; the replay of the recording guesses it, and real runs decide.
 */
#include "dryrun_fit.h"

#include "dryrun_boundary.h"
#include "dryrun_words.h"

enum { CARDS_TRIED_MAX = 4 };

/* ---- the guess ---- */

/** Smallest limit in granules, above `low` and up to `high`, with which the replay finishes. */
static int64_t replay_need(const allot_requests *requests, int64_t low, int64_t high)
{
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        const allot_replay_options options = {.struct_size = sizeof options,
                                              .limit = (uint64_t)middle * DRYRUN_GRANULE};
        allot_replay_result *result = NULL;
        if (allot_replay_run(requests, &options, &result) != ALLOT_STATUS_OK) {
            return 0;
        }
        if (result->has_finished) {
            high = middle;
        } else {
            low = middle;
        }
        allot_replay_result_destroy(result);
    }
    return high;
}

/** The same for the snapshot of a run; 0 if it cannot be replayed. */
static int64_t replay_snapshot(const char *snapshot, int64_t low, int64_t high)
{
    allot_trace *trace = NULL;
    allot_requests *requests = NULL;
    int64_t need = 0;
    if (snapshot[0] != '\0' && allot_trace_read(snapshot, NULL, &trace) == ALLOT_STATUS_OK &&
        allot_requests_create(trace, ALLOT_NONE, &requests, NULL) == ALLOT_STATUS_OK) {
        need = replay_need(requests, low, high);
    }
    allot_requests_destroy(requests);
    allot_trace_destroy(trace);
    return need;
}

/* ---- the search ---- */

static int64_t granules(uint64_t size)
{
    return (int64_t)(size / DRYRUN_GRANULE + (size % DRYRUN_GRANULE != 0 ? 1 : 0));
}

static cli_exit try_limit(dryrun_series *series, const dryrun_request *request, uint64_t limit,
                          dryrun_attempt **out)
{
    dryrun_request limited = *request;
    char label[DRYRUN_LABEL_MAX];
    limited.limit = limit;
    snprintf(label, sizeof label, "%s%s%s",
             limit == DRYRUN_ROOMY ? "no limit" : dryrun_exact_text(limit),
             request->conf == NULL ? "" : ", ",
             request->conf == NULL ? "" : dryrun_conf_text(request->conf));
    return dryrun_series_run(series, &limited, DRYRUN_PURPOSE_FIT, label, out);
}

typedef struct fit_search {
    dryrun_series *series;
    const dryrun_request *request;
    dryrun_fit *out;
} fit_search;

/** Test a limit. CLI_OK with the answer in *is_good, unless the run says nothing: then is_over. */
static cli_exit test(fit_search *s, int64_t limit, bool *is_good, bool *is_over)
{
    dryrun_attempt *attempt = NULL;
    const cli_exit code =
        try_limit(s->series, s->request, (uint64_t)limit * DRYRUN_GRANULE, &attempt);
    if (code != CLI_OK) {
        return code;
    }
    s->out->run_count++;
    *is_over = dryrun_attempt_is_useless(attempt);
    *is_good = dryrun_attempt_is_good(attempt);
    if (*is_good) {
        dryrun_attempt_keep(attempt, s->out->least != NULL ? s->out->least : s->out->roomy);
        s->out->least = attempt;
    } else if (!*is_over) {
        s->out->below = attempt;
    }
    return CLI_OK;
}

static cli_exit search(fit_search *s, int64_t low, int64_t high)
{
    const dryrun_result *const roomy = &s->out->roomy->result;
    dryrun_boundary boundary = dryrun_boundary_init(high, low);
    /* What others than the allocator take of the device is not in the recording. */
    const int64_t besides = high - granules(roomy->reserved_peak);
    const int64_t replayed = replay_snapshot(roomy->snapshot, low - besides, high - besides);
    const int64_t guess = replayed + besides;
    s->out->limit_replay = replayed <= 0 ? 0 : (uint64_t)guess * DRYRUN_GRANULE;
    while (!dryrun_boundary_is_found(&boundary)) {
        const int64_t limit = dryrun_boundary_next(&boundary, replayed <= 0 ? NULL : &guess);
        bool is_good = false;
        bool is_over = false;
        const cli_exit code = test(s, limit, &is_good, &is_over);
        if (code != CLI_OK || is_over) {
            return code;
        }
        dryrun_boundary_put(&boundary, limit, is_good);
    }
    s->out->limit_min = (uint64_t)boundary.good * DRYRUN_GRANULE;
    s->out->is_live = boundary.bad == low;
    s->out->is_finished = true;
    return CLI_OK;
}

cli_exit dryrun_fit_run(dryrun_series *series, const dryrun_request *request, dryrun_fit *out)
{
    fit_search s = {.series = series, .request = request, .out = out};
    dryrun_attempt *roomy = NULL;
    *out = (dryrun_fit){0};
    cli_exit code = try_limit(series, request, DRYRUN_ROOMY, &roomy);
    if (code != CLI_OK) {
        return code;
    }
    out->run_count = 1;
    out->roomy = roomy;
    dryrun_attempt_keep(roomy, NULL);
    if (!dryrun_attempt_is_good(roomy)) {
        return CLI_OK;
    }
    const int64_t high = granules(roomy->result.device_peak);
    out->limit_calm = (uint64_t)high * DRYRUN_GRANULE;
    const int64_t live = granules(roomy->result.requested_peak);
    code = search(&s, live > 0 ? live - 1 : 0, high);
    if (code == CLI_OK && out->is_finished && out->least == NULL) {
        /* Nothing between the bounds: the upper one is the answer, still to be run. */
        bool is_good = false;
        bool is_over = false;
        code = test(&s, high, &is_good, &is_over);
        out->is_finished = is_good;
    }
    return code;
}

bool dryrun_fit_is_unsteady(const dryrun_fit *fit)
{
    return fit->least != NULL &&
           fit->least->result.requested_peak != fit->roomy->result.requested_peak;
}

/* ---- the card ---- */

/** Whether a card may have the memory; how large the context is depends on the CUDA of the run. */
static bool may_hold(const allot_gpu *gpu, uint64_t limit)
{
    const uint64_t context =
        gpu->memory_context < gpu->memory_context_12 ? gpu->memory_context : gpu->memory_context_12;
    return limit <= gpu->memory_total && context <= gpu->memory_total - limit;
}

cli_exit dryrun_fit_card(dryrun_series *series, const dryrun_request *request, dryrun_fit *fit)
{
    dryrun_request on_card = *request;
    uint32_t tried = 0;
    on_card.limit = 0;
    on_card.profile[0] = '\0';
    for (size_t i = 0; i < allot_gpu_count() && tried < CARDS_TRIED_MAX; i++) {
        dryrun_attempt *attempt = NULL;
        if (allot_gpu_at(i, &on_card.gpu) != ALLOT_STATUS_OK ||
            !may_hold(&on_card.gpu, fit->limit_min)) {
            continue;
        }
        const cli_exit code =
            dryrun_series_run(series, &on_card, DRYRUN_PURPOSE_CARD, on_card.gpu.id, &attempt);
        if (code != CLI_OK) {
            return code;
        }
        tried++;
        fit->run_count++;
        if (dryrun_attempt_is_good(attempt)) {
            fit->card = attempt;
            return CLI_OK;
        }
        fit->cards_refuted++;
    }
    return CLI_OK;
}
