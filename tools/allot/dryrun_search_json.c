/* SPDX-License-Identifier: MIT */
#include "dryrun_search_json.h"

#include "dryrun_put.h"

static void put_number_or_null(yajl_gen json, const char *key, bool is_known, uint64_t value)
{
    if (is_known) {
        dryrun_put_number(json, key, value);
    } else {
        dryrun_put_null(json, key);
    }
}

static void put_text_or_null(yajl_gen json, const char *key, const char *text)
{
    if (text != NULL) {
        dryrun_put_text(json, key, text);
    } else {
        dryrun_put_null(json, key);
    }
}

/** Index of a run in runs[]. */
static void put_run_index(yajl_gen json, const char *key, const dryrun_series *series,
                          const dryrun_attempt *run)
{
    uint32_t index = 0;
    while (index < series->count && series->runs[index] != run) {
        index++;
    }
    put_number_or_null(json, key, index < series->count, index);
}

static void put_out_of_memory(yajl_gen json, const dryrun_result *result)
{
    if (result->oom_count == 0) {
        dryrun_put_null(json, "out_of_memory");
        return;
    }
    dryrun_put_key(json, "out_of_memory");
    yajl_gen_map_open(json);
    dryrun_put_number(json, "size", result->oom[0].size);
    dryrun_put_text(json, "line", result->oom[0].line);
    dryrun_put_number(json, "step", result->oom[0].step);
    yajl_gen_map_close(json);
}

static void put_run(yajl_gen json, const dryrun_attempt *run)
{
    const dryrun_result *const result = &run->result;
    yajl_gen_map_open(json);
    dryrun_put_text(json, "purpose", dryrun_purpose_name(run->purpose));
    dryrun_put_text(json, "gpu", run->gpu);
    dryrun_put_number(json, "memory", run->limit);
    put_text_or_null(json, "conf", run->has_conf ? run->conf : NULL);
    dryrun_put_text(json, "conf_found", result->conf);
    put_number_or_null(json, "value", run->purpose == DRYRUN_PURPOSE_SWEEP, run->value);
    dryrun_put_text(json, "verdict", dryrun_verdict_name(run->verdict));
    dryrun_put_number(json, "exit_code", (uint64_t)result->exit_code);
    put_number_or_null(json, "allocated_peak", result->has_peaks, result->allocated_peak);
    put_number_or_null(json, "reserved_peak", result->has_peaks, result->reserved_peak);
    put_number_or_null(json, "device_peak", result->has_standin, result->device_peak);
    dryrun_put_number(json, "retries", result->retries);
    dryrun_put_number(json, "steps", result->steps);
    put_out_of_memory(json, result);
    yajl_gen_map_close(json);
}

static void put_fit(yajl_gen json, const dryrun_series *series, const dryrun_compared *compared)
{
    const dryrun_fit *const fit = &compared->fit;
    yajl_gen_map_open(json);
    put_text_or_null(json, "conf", compared->conf);
    put_number_or_null(json, "limit_min", fit->is_finished, fit->limit_min);
    put_number_or_null(json, "limit_calm", fit->limit_calm != 0, fit->limit_calm);
    put_number_or_null(json, "limit_replay", fit->limit_replay != 0, fit->limit_replay);
    put_run_index(json, "run", series, fit->least);
    put_run_index(json, "run_below", series, fit->below);
    dryrun_put_bool(json, "is_unsteady", dryrun_fit_is_unsteady(fit));
    put_text_or_null(json, "card", fit->card == NULL ? NULL : fit->card->gpu);
    dryrun_put_number(json, "cards_refuted", fit->cards_refuted);
    yajl_gen_map_close(json);
}

static void put_sweep(yajl_gen json, const dryrun_sweep *sweep)
{
    dryrun_put_key(json, "sweep");
    yajl_gen_map_open(json);
    dryrun_put_text(json, "name", sweep->range.name);
    put_number_or_null(json, "largest", sweep->largest != NULL,
                       sweep->largest == NULL ? 0 : sweep->largest->value);
    put_number_or_null(json, "largest_calm", sweep->calm != NULL,
                       sweep->calm == NULL ? 0 : sweep->calm->value);
    put_number_or_null(json, "beyond", sweep->beyond != NULL,
                       sweep->beyond == NULL ? 0 : sweep->beyond->value);
    yajl_gen_map_close(json);
}

static void put_trial(yajl_gen json, const dryrun_series *series, const dryrun_trial *trial)
{
    yajl_gen_map_open(json);
    dryrun_put_text(json, "setting", trial->row.setting);
    dryrun_put_text(json, "change", trial->row.change);
    dryrun_put_number(json, "replay_reserved_peak", trial->row.peak_reserved);
    put_run_index(json, "run", series, trial->run);
    dryrun_put_key(json, "confirmed");
    if (trial->run == NULL) {
        yajl_gen_null(json);
    } else {
        yajl_gen_bool(json, dryrun_attempt_is_good(trial->run));
    }
    yajl_gen_map_close(json);
}

static void put_advice(yajl_gen json, const dryrun_series *series, const dryrun_advice *advice)
{
    const bool is_there = advice->advice != NULL;
    dryrun_put_key(json, "advice");
    yajl_gen_map_open(json);
    put_text_or_null(json, "refusal", is_there ? NULL : advice->refusal);
    put_text_or_null(json, "verdict",
                     is_there ? allot_advice_verdict_name(advice->summary.verdict) : NULL);
    put_text_or_null(json, "headline", is_there ? allot_advice_headline(advice->advice) : NULL);
    put_number_or_null(json, "setting_count", is_there, advice->summary.setting_count);
    dryrun_put_bool(json, "ends_at_oom", advice->summary.has_oom);
    dryrun_put_key(json, "trials");
    yajl_gen_array_open(json);
    for (uint32_t i = 0; i < advice->trial_count; i++) {
        put_trial(json, series, &advice->trials[i]);
    }
    yajl_gen_array_close(json);
    put_text_or_null(json, "confirmed",
                     advice->confirmed == NULL ? NULL : advice->confirmed->row.setting);
    yajl_gen_map_close(json);
}

void dryrun_put_answer(yajl_gen json, const dryrun_answer *answer)
{
    static const char *const questions[] = {"one", "confs", "fit", "sweep"};
    dryrun_put_text(json, "question", questions[answer->question]);
    dryrun_put_bool(json, "is_finished", !answer->is_cut_short);
    dryrun_put_key(json, "runs");
    yajl_gen_array_open(json);
    for (uint32_t i = 0; i < answer->series.count; i++) {
        put_run(json, answer->series.runs[i]);
    }
    yajl_gen_array_close(json);
    dryrun_put_key(json, "fits");
    yajl_gen_array_open(json);
    for (uint32_t i = 0; answer->question == DRYRUN_ASK_FIT && i < answer->compared_count; i++) {
        put_fit(json, &answer->series, &answer->compared[i]);
    }
    yajl_gen_array_close(json);
    if (answer->question == DRYRUN_ASK_SWEEP) {
        put_sweep(json, &answer->sweep);
    } else {
        dryrun_put_null(json, "sweep");
    }
    if (answer->advice.is_made) {
        put_advice(json, &answer->series, &answer->advice);
    } else {
        dryrun_put_null(json, "advice");
    }
}
