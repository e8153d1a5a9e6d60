/* SPDX-License-Identifier: MIT */
#include "dryrun_advice.h"

#include <string.h>

/** What PyTorch's allocator can have: not the context, nor what others took of the device. */
static uint64_t limit_of(const dryrun_result *result)
{
    const uint64_t taken = result->context + result->reserved_peak;
    const uint64_t besides =
        result->context + (result->device_peak > taken ? result->device_peak - taken : 0);
    return result->device_total > besides ? result->device_total - besides : 0;
}

/** The settings to confirm: the recommended one first, then others that finish. */
static void choose(dryrun_advice *advice)
{
    const uint32_t count = allot_advice_row_count(advice->advice);
    for (uint32_t i = 1; i < count && advice->trial_count < DRYRUN_TRIALS_MAX; i++) {
        dryrun_trial *const trial = &advice->trials[advice->trial_count];
        allot_advice_get_row(advice->advice, i, &trial->row);
        if (trial->row.finishes) {
            advice->trial_count++;
        }
    }
}

static cli_exit confirm(dryrun_series *series, const dryrun_request *request, dryrun_advice *advice)
{
    for (uint32_t i = 0; i < advice->trial_count && advice->confirmed == NULL; i++) {
        dryrun_trial *const trial = &advice->trials[i];
        dryrun_request changed = *request;
        dryrun_attempt *attempt = NULL;
        changed.conf = trial->row.setting;
        const cli_exit code = dryrun_series_run(series, &changed, DRYRUN_PURPOSE_CONFIRM,
                                                trial->row.setting, &attempt);
        if (code != CLI_OK) {
            return code;
        }
        trial->run = attempt;
        if (dryrun_attempt_is_good(attempt)) {
            advice->confirmed = trial;
        }
    }
    return CLI_OK;
}

static void refuse(dryrun_advice *out, const char *reason)
{
    snprintf(out->refusal, sizeof out->refusal, "%s", reason);
}

cli_exit dryrun_advise(dryrun_series *series, const dryrun_request *request,
                       const dryrun_attempt *attempt, dryrun_advice *out)
{
    const allot_advise_options options = {.struct_size = sizeof options,
                                          .limit = limit_of(&attempt->result),
                                          .row_max = DRYRUN_TRIALS_MAX,
                                          .progress = cli_progress};
    *out = (dryrun_advice){.is_made = true};
    if (attempt->result.snapshot[0] == '\0') {
        refuse(out, "the run left no recording");
        return CLI_OK;
    }
    allot_status status = allot_trace_read(attempt->result.snapshot, NULL, &out->trace);
    if (status == ALLOT_STATUS_OK) {
        status =
            allot_advise(out->trace, allot_trace_main_device(out->trace), &options, &out->advice);
    }
    cli_progress_end();
    if (status != ALLOT_STATUS_OK) {
        refuse(out, allot_error_detail());
        return CLI_OK;
    }
    allot_advice_get_summary(out->advice, &out->summary);
    if (out->summary.verdict == ALLOT_ADVICE_VERDICT_CHANGE) {
        choose(out);
    }
    return confirm(series, request, out);
}

void dryrun_advice_destroy(dryrun_advice *advice)
{
    allot_advice_destroy(advice->advice);
    allot_trace_destroy(advice->trace);
    *advice = (dryrun_advice){0};
}
