/* SPDX-License-Identifier: MIT */
/* Several dry runs in words: the answer first, then why it holds, then a table of all runs. */
#include "dryrun_search_text.h"

#include <inttypes.h>
#include <string.h>

#include "dryrun_text.h"
#include "dryrun_words.h"

/* ---- the table ---- */

/** On one line, and not without end. */
static void put_reason(const char *text, char *buffer, size_t size)
{
    enum { SHOWN_MAX = 300 };
    snprintf(buffer, size, "%.*s%s", SHOWN_MAX, text, strlen(text) > SHOWN_MAX ? "..." : "");
    for (char *at = buffer; (at = strchr(at, '\n')) != NULL;) {
        *at = ' ';
    }
}

/** Where a run died, or what is not known of it: the remark; "" for none. */
static const char *end_text(const dryrun_attempt *attempt, char *buffer, size_t size)
{
    const dryrun_result *const result = &attempt->result;
    buffer[0] = '\0';
    if (result->oom_count != 0) {
        snprintf(buffer, size, "%s%s at %s, after %" PRIu64 " steps",
                 attempt->verdict == DRYRUN_OUT_OF_MEMORY ? "" : "caught: ",
                 dryrun_size_text(result->oom[0].size),
                 result->oom[0].line[0] == '\0' ? "an unknown line"
                                                : dryrun_short_line(result->oom[0].line),
                 result->oom[0].step);
    } else if (attempt->verdict == DRYRUN_FAILED) {
        put_reason(result->exception, buffer, size);
    } else if (attempt->verdict == DRYRUN_INCOMPLETE && result->unknown_count != 0) {
        snprintf(buffer, size, "sizes not known: %s", result->unknown[0].name);
    } else if (attempt->verdict == DRYRUN_INCOMPLETE && result->problem_count != 0) {
        put_reason(result->problems[0].name, buffer, size);
    }
    return buffer;
}

/** Ends the line. */
static void print_end(const char *before, const dryrun_attempt *attempt)
{
    const dryrun_result *const result = &attempt->result;
    char text[DRYRUN_TEXT_MAX + 128];
    if (end_text(attempt, text, sizeof text)[0] != '\0') {
        printf("%s%s", before, text);
    }
    if (attempt->has_conf && result->has_peaks && strcmp(result->conf, attempt->conf) != 0) {
        printf("  the program itself set %s", result->conf[0] == '\0' ? "none" : result->conf);
    }
    printf("\n");
}

static int label_width(const dryrun_attempt *const *runs, uint32_t count)
{
    size_t width = 0;
    for (uint32_t i = 0; i < count; i++) {
        const size_t length = strlen(runs[i]->label);
        width = length > width ? length : width;
    }
    return (int)width;
}

static void print_table(const dryrun_attempt *const *runs, uint32_t count)
{
    const int width = label_width(runs, count);
    printf("\n  %-*s  %-13s  %10s  %10s  %7s  remark\n", width, "", "verdict", "allocated",
           "reserved", "retries");
    for (uint32_t i = 0; i < count; i++) {
        const dryrun_result *const result = &runs[i]->result;
        printf("  %-*s  %-13s  %10s  %10s  %7" PRIu64, width, runs[i]->label,
               dryrun_verdict_text(runs[i]->verdict),
               result->has_peaks ? dryrun_size_text(result->allocated_peak) : "",
               result->has_peaks ? dryrun_size_text(result->reserved_peak) : "", result->retries);
        print_end("  ", runs[i]);
    }
}

typedef uint64_t (*order_fn)(const dryrun_attempt *run);

static uint64_t by_value(const dryrun_attempt *run)
{
    return run->value;
}

/** All runs of a purpose in rising order (NULL: as they were made). */
static uint32_t collect(const dryrun_series *series, dryrun_purpose purpose, order_fn order,
                        const dryrun_attempt **out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < series->count; i++) {
        const dryrun_attempt *const run = series->runs[i];
        if (run->purpose != purpose) {
            continue;
        }
        uint32_t at = count++;
        for (; order != NULL && at > 0 && order(out[at - 1]) > order(run); at--) {
            out[at] = out[at - 1];
        }
        out[at] = run;
    }
    return count;
}

static void print_runs(const dryrun_answer *answer, dryrun_purpose purpose, order_fn order)
{
    const dryrun_attempt *runs[DRYRUN_RUNS_MAX];
    const uint32_t count = collect(&answer->series, purpose, order, runs);
    if (count != 0) {
        print_table(runs, count);
    }
}

/* ---- one run and its advice ---- */

/** Every setting that the replay found was run, and none fits. */
static bool is_refuted_by_runs(const dryrun_advice *advice)
{
    bool is_refuted = advice->trial_count != 0 && advice->confirmed == NULL;
    for (uint32_t i = 0; i < advice->trial_count; i++) {
        is_refuted = is_refuted && advice->trials[i].run != NULL;
    }
    return is_refuted;
}

static void print_trial(const dryrun_trial *trial)
{
    const dryrun_attempt *const run = trial->run;
    printf("  %s\n", dryrun_conf_text(trial->row.setting));
    if (run == NULL) {
        printf("    not run\n");
        return;
    }
    if (dryrun_attempt_is_good(run)) {
        printf("    confirmed by a run: it fits; peak allocated %s, reserved %s, %" PRIu64
               " retries, headroom %s\n",
               dryrun_size_text(run->result.allocated_peak),
               dryrun_size_text(run->result.reserved_peak), run->result.retries,
               dryrun_size_text(run->result.device_total - run->result.device_peak));
        return;
    }
    printf("    refuted by a run: %s", dryrun_verdict_text(run->verdict));
    print_end(", ", run);
}

static void print_advice(const dryrun_advice *advice)
{
    if (!advice->is_made) {
        return;
    }
    const bool is_refuted = is_refuted_by_runs(advice);
    printf("\nadvice%s", is_refuted ? ": no setting was found" : "");
    if (advice->refusal[0] != '\0') {
        printf(": none; %s\n", advice->refusal);
        return;
    }
    printf(", from replaying the run up to %s under %" PRIu64 " settings\n",
           advice->summary.has_oom ? "its out-of-memory" : "its end",
           advice->summary.setting_count);
    printf("  %s%s\n",
           is_refuted ? "the replay looked promising, a run of the whole program refuted it: " : "",
           allot_advice_headline(advice->advice));
    for (uint32_t i = 0; i < advice->trial_count; i++) {
        if (advice->trials[i].run != NULL || i == 0) {
            print_trial(&advice->trials[i]);
        }
    }
    if (advice->confirmed != NULL) {
        printf("  use: PYTORCH_CUDA_ALLOC_CONF=\"%s\"\n", advice->confirmed->row.setting);
    }
}

/* ---- several ---- */

static void print_confs(const dryrun_request *request, const dryrun_answer *answer)
{
    char card[256];
    printf("SETTINGS COMPARED on %s\n", dryrun_card_text(request, card, sizeof card));
    print_runs(answer, DRYRUN_PURPOSE_CONF, NULL);
}

static void print_limit(const dryrun_fit *fit)
{
    const bool is_sure = fit->least->verdict == DRYRUN_FITS;
    printf("%s %s", is_sure ? "LEAST MEMORY:" : "AT LEAST", dryrun_exact_text(fit->limit_min));
    if (fit->limit_min >= UINT64_C(1) << 30) {
        printf(" (%s)", dryrun_size_text(fit->limit_min));
    }
    printf("%s\n", is_sure ? ", the whole run fits" : ": sizes are not known that come on top");
    if (dryrun_fit_is_unsteady(fit)) {
        printf(
            "  but it asked for %s at its peak, and for %s without a limit: it looks at the memory "
            "there is, or does not do the same each time; less may do\n",
            dryrun_size_text(fit->least->result.requested_peak),
            dryrun_size_text(fit->roomy->result.requested_peak));
    }
    printf("  %s less does not: %s\n", dryrun_exact_text(DRYRUN_GRANULE),
           fit->is_live ? "more is requested at the peak" : "a run with it is out of memory");
    if (fit->least->result.retries == 0) {
        printf("  no cached memory has to be given back on the way\n");
    } else {
        printf("  %s cached memory is given back on the way (retries); with %s never\n",
               dryrun_times_text(fit->least->result.retries), dryrun_exact_text(fit->limit_calm));
    }
}

/** What NCCL takes of a card; a limit leaves it out unless --workspace sets it. */
static uint64_t print_nccl(const dryrun_request *request, const dryrun_fit *fit)
{
    const bool is_part = request->workspaces.is_set[ALLOT_WORKSPACE_nccl];
    const dryrun_attempt *const run = is_part ? fit->least : fit->card;
    uint64_t on_top = 0;
    for (uint32_t i = 0; run != NULL && i < run->result.size_count; i++) {
        const dryrun_size *const size = &run->result.sizes[i];
        if (!size->is_taken || strcmp(size->workspace, "nccl") != 0) {
            continue;
        }
        printf("  NCCL             %s for each communicator (%s) %s (%s)\n",
               dryrun_size_text(size->largest), dryrun_times_text(size->calls),
               is_part ? "is part of it" : "comes on top",
               is_part ? "from --workspace" : size->source);
        on_top += is_part ? 0 : size->largest * size->calls;
    }
    return on_top;
}

/** What comes on top of a limit, and whether the card of --gpu holds it all. */
static void print_on_top(const dryrun_request *request, const dryrun_fit *fit)
{
    const allot_gpu *const gpu = &request->gpu;
    const dryrun_result *const result = &fit->least->result;
    const unsigned cuda_major = strncmp(result->cuda, "12", 2) == 0 ? 12 : 13;
    uint64_t on_top = request->workspaces.is_set[ALLOT_WORKSPACE_context]
                          ? request->workspaces.size[ALLOT_WORKSPACE_context]
                          : allot_gpu_context(gpu, cuda_major);
    printf("  CUDA context     %s on %s comes on top (%s)\n", dryrun_size_text(on_top), gpu->id,
           dryrun_context_source(request, result, NULL));
    on_top += print_nccl(request, fit);
    const bool is_held =
        on_top <= gpu->memory_total && fit->limit_min <= gpu->memory_total - on_top;
    printf("  %-15s  by the sum, its %s %s\n", gpu->id, dryrun_size_text(gpu->memory_total),
           is_held ? "are enough" : "are NOT enough");
}

static void print_fit_card(const dryrun_fit *fit)
{
    if (fit->card == NULL) {
        printf("  smallest card    none of the list%s\n",
               fit->cards_refuted == 0 ? "" : " on which a run fits");
        return;
    }
    const dryrun_result *const result = &fit->card->result;
    printf("  smallest card    %s (%s), by a run on it: headroom %s, %" PRIu64 " retries\n",
           fit->card->gpu, dryrun_size_text(fit->card->limit),
           dryrun_size_text(result->device_total - result->device_peak), result->retries);
}

/** The smallest limits side by side. */
static void print_limits(const dryrun_answer *answer)
{
    printf("\n  %10s  %10s  settings\n", "least", "no retries");
    for (uint32_t i = 0; i < answer->compared_count; i++) {
        const dryrun_compared *const compared = &answer->compared[i];
        const dryrun_fit *const fit = &compared->fit;
        printf("  %10s  %10s  %s\n",
               fit->is_finished ? dryrun_exact_text(fit->limit_min) : "unknown",
               fit->is_finished ? dryrun_exact_text(fit->limit_calm) : "",
               dryrun_conf_text(compared->conf));
    }
}

static void print_fit(const dryrun_request *request, const dryrun_answer *answer)
{
    if (answer->least == NULL) {
        dryrun_print(request, &answer->run->result, answer->run->verdict);
        printf("\nthe least memory is not known: the search ended with that run\n");
    } else {
        print_limit(&answer->least->fit);
        print_on_top(request, &answer->least->fit);
        print_fit_card(&answer->least->fit);
    }
    if (answer->compared_count > 1) {
        print_limits(answer);
    }
    print_runs(answer, DRYRUN_PURPOSE_FIT, NULL);
    print_runs(answer, DRYRUN_PURPOSE_CARD, NULL);
    printf("\n  %u runs\n", (unsigned)answer->series.count);
}

/** Giving memory back costs time: what fits without is told beside what fits. */
static void print_calm(const dryrun_sweep *sweep)
{
    if (sweep->largest->result.retries == 0) {
        return;
    }
    printf("  %s cached memory is given back on the way (retries); ",
           dryrun_times_text(sweep->largest->result.retries));
    if (sweep->calm == NULL) {
        printf("no value that was run does without\n");
    } else {
        printf("%s=%" PRIu64 " is the largest that was run without\n", sweep->range.name,
               sweep->calm->value);
    }
}

static const char *largest_title(const dryrun_sweep *sweep)
{
    if (sweep->largest->verdict == DRYRUN_FITS) {
        return sweep->is_finished ? "LARGEST THAT FITS:" : "FITS, AND MORE MAY:";
    }
    return sweep->is_finished ? "AT MOST:" : "MAY FIT, AND MORE MAY:";
}

static void print_largest(const dryrun_request *request, const dryrun_sweep *sweep)
{
    char card[256];
    const char *const name = sweep->range.name;
    (void)dryrun_card_text(request, card, sizeof card);
    if (sweep->largest == NULL) {
        printf("NO %s OF THE RANGE FITS on %s\n", name, card);
        return;
    }
    printf("%s %s=%" PRIu64 " on %s\n", largest_title(sweep), name, sweep->largest->value, card);
    if (sweep->largest->verdict != DRYRUN_FITS) {
        printf("  whether it fits is not known: sizes are not known that come on top\n");
    }
    print_calm(sweep);
    if (sweep->beyond != NULL) {
        printf("  %s=%" PRIu64 " does not; the memory is taken to rise with %s, values between the "
               "measured ones were not run\n",
               name, sweep->beyond->value, name);
    } else if (sweep->is_finished) {
        printf("  it is the last value of the range\n");
    }
}

static void print_sweep(const dryrun_request *request, const dryrun_answer *answer)
{
    const dryrun_sweep *const sweep = &answer->sweep;
    if (sweep->failed != NULL) {
        dryrun_print(request, &sweep->failed->result, sweep->failed->verdict);
        printf("\nthe search ended with that run, %s; known until then:\n", sweep->failed->label);
    }
    if (sweep->failed == NULL || sweep->largest != NULL) {
        print_largest(request, sweep);
    }
    print_runs(answer, DRYRUN_PURPOSE_SWEEP, by_value);
    printf("\n  %u runs\n", (unsigned)answer->series.count);
}

/** Less is left than what allot advise calls tight. */
static bool is_tight(const dryrun_attempt *run)
{
    const uint64_t total = run->result.device_total;
    const uint64_t spare = total - run->result.device_peak;
    return run->verdict == DRYRUN_FITS &&
           (run->result.retries != 0 || spare < total / 50 || spare < UINT64_C(256) << 20);
}

static void print_one(const dryrun_request *request, const dryrun_answer *answer)
{
    const dryrun_attempt *const run = answer->run;
    dryrun_print(request, &run->result, run->verdict);
    print_advice(&answer->advice);
    if (!answer->advice.is_made && run->result.has_peaks && is_tight(run)) {
        printf("\nit is tight: --advise searches better settings and tries them\n");
    }
}

void dryrun_print_answer(const dryrun_request *request, const dryrun_answer *answer)
{
    switch (answer->question) {
    case DRYRUN_ASK_ONE:
        print_one(request, answer);
        break;
    case DRYRUN_ASK_CONFS:
        print_confs(request, answer);
        break;
    case DRYRUN_ASK_FIT:
        print_fit(request, answer);
        break;
    case DRYRUN_ASK_SWEEP:
        print_sweep(request, answer);
        break;
    }
    if (answer->is_cut_short) {
        printf("\nnot finished: this is what was known when it ended\n");
    }
}
