/* SPDX-License-Identifier: MIT */
#include "dryrun_judge.h"

#include <string.h>

#include "dryrun_sizes.h"

bool dryrun_is_native(const dryrun_result *result)
{
    return !result->has_process && result->has_standin && !result->is_python;
}

static bool is_unrecorded(const dryrun_result *result)
{
    if (dryrun_is_native(result)) {
        return result->device_peak == 0;
    }
    return !result->has_process || !result->is_finished || !result->has_standin ||
           !result->has_peaks || result->problem_count != 0;
}

/** Something that memory depends on is not known, or known within bounds that the card does not
 * hold. */
static bool is_unsure(const dryrun_result *result)
{
    const uint64_t headroom = result->device_total - result->device_peak;
    return result->unknown_count != 0 || result->missing_count != 0 ||
           dryrun_sizes_spread(result) > headroom;
}

bool dryrun_is_caught(const dryrun_result *result)
{
    return result->oom_count != 0 && result->is_finished && !result->is_stopped &&
           result->exit_code == 0 && result->exception[0] == '\0';
}

dryrun_verdict dryrun_judge(const dryrun_request *request, const dryrun_result *result)
{
    (void)request;
    if ((result->oom_count != 0 && !dryrun_is_caught(result)) ||
        (dryrun_is_native(result) && result->refusals != 0)) {
        return DRYRUN_OUT_OF_MEMORY;
    }
    if (result->is_stopped) {
        return DRYRUN_INCOMPLETE;
    }
    if (result->exit_code != 0 || result->exception[0] != '\0') {
        return DRYRUN_FAILED;
    }
    return is_unrecorded(result) || is_unsure(result) || result->own_runtime_count != 0
               ? DRYRUN_INCOMPLETE
               : DRYRUN_FITS;
}

const char *dryrun_verdict_name(dryrun_verdict verdict)
{
    static const char *const names[] = {"fits", "out_of_memory", "failed", "incomplete"};
    return names[verdict];
}

bool dryrun_is_approximate(const dryrun_result *result)
{
    return result->boolean_line_count != 0 || result->size_line_count != 0 ||
           result->assumption_count != 0;
}

cli_exit dryrun_exit(dryrun_verdict verdict)
{
    switch (verdict) {
    case DRYRUN_FITS:
        return CLI_OK;
    case DRYRUN_OUT_OF_MEMORY:
    case DRYRUN_INCOMPLETE:
        return CLI_FOUND;
    case DRYRUN_FAILED:
        break;
    }
    return CLI_FAILED;
}

/** What a search for the smallest card goes by. */
typedef struct search {
    uint64_t reserved;
    dryrun_smallest *out;
} search;

static bool take_card(const allot_gpu *gpu, const search *from)
{
    dryrun_smallest *const out = from->out;
    if (from->reserved + gpu->memory_context > gpu->memory_total ||
        (out->is_found && gpu->memory_total >= out->gpu.memory_total)) {
        return false;
    }
    out->gpu = *gpu;
    out->is_found = true;
    out->is_listed = false;
    return true;
}

static cli_exit take_imported(void *context, const allot_gpu *gpu)
{
    const search *const from = context;
    (void)take_card(gpu, from);
    from->out->imported++;
    return CLI_OK;
}

bool dryrun_find_smallest(const dryrun_request *request, uint64_t reserved, dryrun_smallest *out)
{
    *out = (dryrun_smallest){0};
    search from = {.reserved = reserved, .out = out};
    allot_gpu gpu;
    for (size_t i = 0; i < allot_gpu_count(); i++) {
        if (allot_gpu_at(i, &gpu) == ALLOT_STATUS_OK && take_card(&gpu, &from)) {
            out->is_listed = true;
        }
    }
    (void)dryrun_each_imported(take_imported, &from);
    if (request->limit == 0) {
        (void)take_card(&request->gpu, &from); /* it may be a file of any folder */
    }
    out->is_used =
        out->is_found && request->limit == 0 && strcmp(out->gpu.id, request->gpu.id) == 0;
    return out->is_found;
}
