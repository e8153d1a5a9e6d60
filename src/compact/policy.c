/* SPDX-License-Identifier: MIT */
/* When a heap is to be compacted without being asked: above a mark of fragmentation, if the
 * estimate says that it pays. Hysteresis: a task aims below the mark at which it began. */
#include "compact/compactor.h"
#include "compact/plan.h"
#include "core/options.h"

#define PAUSE_NS UINT64_C(1000000000)

static allot_status take_policy(const allot_compactor_policy *given, allot_compactor_policy *out)
{
    const allot_status status = alloti_options_take(given, sizeof *out, out);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    if (!(out->fragmentation_high >= 0 && out->fragmentation_high <= 1) ||
        !(out->fragmentation_low >= 0 && out->fragmentation_low <= out->fragmentation_high)) {
        return alloti_fail(ALLOT_STATUS_INVALID,
                           "fragmentation from %g to %g: 0 <= low <= high <= 1",
                           out->fragmentation_low, out->fragmentation_high);
    }
    if (!(out->weight >= 0)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "a weight of %g: 0 or more", out->weight);
    }
    out->fragmentation_low =
        out->fragmentation_low == 0 ? out->fragmentation_high / 2 : out->fragmentation_low;
    out->weight = out->weight == 0 ? 0.5 : out->weight;
    out->pause_ns = out->pause_ns == 0 ? PAUSE_NS : out->pause_ns;
    return ALLOT_STATUS_OK;
}

allot_status allot_compactor_set_policy(allot_compactor *compactor,
                                        const allot_compactor_policy *policy)
{
    allot_compactor_policy taken;
    allot_status status = take_policy(policy, &taken);
    if (status == ALLOT_STATUS_OK) {
        status = heap_check_fork(compactor->heap);
    }
    if (status == ALLOT_STATUS_OK) {
        pthread_mutex_lock(&compactor->mutex);
        compactor->policy = taken;
        compactor->policy_after = 0;
        pthread_mutex_unlock(&compactor->mutex);
    }
    return status;
}

/** Whether the task that was added last goes on. Called with `mutex` held. */
static bool has_task(const allot_compactor *compactor)
{
    const compactor_task *const task = alloti_compactor_find(compactor, compactor->policy_task);
    return task != NULL && !compactor_task_is_over(task);
}

/** Whether now is the time to look closely. Called with `mutex` held. */
static bool is_due(allot_compactor *compactor, double fragmentation, uint64_t now)
{
    const allot_compactor_policy *const policy = &compactor->policy;
    if (has_task(compactor)) {
        return false;
    }
    if (compactor->policy_task != 0) {
        const compactor_task *const task = alloti_compactor_find(compactor, compactor->policy_task);
        const bool is_reached =
            task != NULL && task->progress.state == ALLOT_COMPACTOR_STATE_REACHED;
        compactor->policy_task = 0;
        compactor->policy_after = is_reached ? 0 : now + policy->pause_ns;
    }
    return policy->fragmentation_high > 0 && fragmentation > policy->fragmentation_high &&
           now >= compactor->policy_after;
}

static uint64_t grown(uint64_t before, uint64_t after)
{
    return after > before ? after - before : 0;
}

static bool pays(const allot_compactor_policy *policy, const allot_compact_forecast *f)
{
    const uint64_t largest = grown(f->largest_before, f->largest_after);
    const uint64_t released = grown(f->releasable_before, f->releasable_after);
    return f->moves != 0 && f->benefit >= 0 &&
           (largest > released ? largest : released) >= policy->gain_min;
}

/** Look at the estimate, and add a task if it pays. */
static allot_status look_closely(allot_compactor *compactor, const allot_compactor_policy *policy,
                                 uint64_t *id)
{
    const allot_compact_plan_options options = {.struct_size = sizeof options,
                                                .weight = policy->weight};
    allot_compact_forecast forecast;
    allot_status status = allot_compact_estimate(compactor->heap, &options, &forecast);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    const allot_compactor_task_options task = {.struct_size = sizeof task,
                                               .goal = ALLOT_COMPACT_GOAL_FULL,
                                               .fragmentation_max = policy->fragmentation_low,
                                               .weight = policy->weight,
                                               .priority = policy->priority};
    pthread_mutex_lock(&compactor->mutex);
    const bool is_first = !has_task(compactor); /* Else another thread was faster. */
    if (is_first && pays(policy, &forecast)) {
        status = alloti_compactor_add(compactor, &task, id);
        if (status == ALLOT_STATUS_OK) {
            compactor->policy_task = *id;
            alloti_compactor_find(compactor, *id)->progress.time_left_ns = forecast.time_ns;
        }
    } else if (is_first) {
        compactor->policy_after = alloti_plan_now_ns() + policy->pause_ns;
    }
    pthread_mutex_unlock(&compactor->mutex);
    return status;
}

allot_status allot_compactor_poll(allot_compactor *compactor, uint64_t *id)
{
    uint64_t added = 0;
    allot_heap_stats stats;
    allot_status status = allot_heap_get_stats(compactor->heap, &stats);
    if (status == ALLOT_STATUS_OK) {
        pthread_mutex_lock(&compactor->mutex);
        const allot_compactor_policy policy = compactor->policy;
        const bool due = is_due(compactor, stats.fragmentation, alloti_plan_now_ns());
        pthread_mutex_unlock(&compactor->mutex);
        status = due ? look_closely(compactor, &policy, &added) : status;
    }
    if (status == ALLOT_STATUS_OK && id != NULL) {
        *id = added;
    }
    return status;
}
