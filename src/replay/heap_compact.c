/* SPDX-License-Identifier: MIT */
/* Compaction of a heap model beyond what its heap does by itself, and a list of all of it. */
#include <allot/compact.h>

#include "core/array.h"
#include "replay/model_heap.h"

/** Add what was copied since `before` to the list; `forecast` is NULL where the heap did it. */
static allot_status note(alloti_heap_model *self, const alloti_model_stats *before,
                         const allot_compact_forecast *forecast)
{
    alloti_model *const model = &self->model;
    const alloti_model_stats *const now = &model->stats;
    if (now->copy_count == before->copy_count) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status =
        alloti_array_reserve(&model->compactions, &model->compactions_capacity,
                             (uint64_t)model->compaction_count + 1, sizeof *model->compactions);
    if (status == ALLOT_STATUS_OK) {
        model->compactions[model->compaction_count++] = (allot_replay_compaction){
            .copy_count = now->copy_count - before->copy_count,
            .copy_bytes = now->copy_bytes - before->copy_bytes,
            .copy_ns = now->copy_ns - before->copy_ns,
            .reserved_before = before->reserved,
            .reserved_after = now->reserved,
            .largest_before = forecast == NULL ? 0 : forecast->largest_before,
            .largest_after = forecast == NULL ? 0 : forecast->largest_after};
    }
    return status;
}

allot_status alloti_heap_note_compaction(alloti_heap_model *self, const alloti_model_stats *before)
{
    return note(self, before, NULL);
}

/** Make the moves of a plan, and give back what has become free. */
static allot_status run_plan(alloti_heap_model *self, const allot_compact_plan *plan)
{
    const alloti_model_stats before = self->model.stats;
    allot_compact_forecast forecast;
    allot_compact_plan_get_forecast(plan, &forecast);
    allot_status status = allot_compact_plan_run(self->heap, plan, NULL, NULL);
    if (status == ALLOT_STATUS_OK) {
        status = allot_heap_trim(self->heap, 0, NULL);
    }
    alloti_heap_note(self);
    return status == ALLOT_STATUS_OK ? note(self, &before, &forecast) : status;
}

/** The same for the whole heap, if its benefit is at least so much. */
static allot_status pack(alloti_heap_model *self, int64_t benefit_min)
{
    allot_compact_plan *plan = NULL;
    allot_status status = allot_compact_plan_create(self->heap, NULL, &plan);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    allot_compact_forecast forecast;
    allot_compact_plan_get_forecast(plan, &forecast);
    if (forecast.benefit >= benefit_min) {
        status = run_plan(self, plan);
    }
    allot_compact_plan_destroy(plan);
    return status;
}

allot_status alloti_heap_compact_all(alloti_heap_model *self)
{
    return pack(self, INT64_MIN);
}

/** Whether so much is free, and so much more than after the last time, that a look pays. */
static bool is_due(const alloti_heap_model *self, uint64_t size_free)
{
    const double limit = self->threshold * (double)self->model.stats.reserved;
    return (double)size_free > limit && (double)size_free > (double)self->free_settled + limit / 2;
}

allot_status alloti_heap_compact_auto(alloti_heap_model *self)
{
    const alloti_model_stats *const stats = &self->model.stats;
    const uint64_t size_free = stats->reserved - stats->active;
    if (size_free < self->free_settled) {
        self->free_settled = size_free;
    }
    if (!is_due(self, size_free)) {
        return ALLOT_STATUS_OK;
    }
    const allot_status status = pack(self, 1);
    self->free_settled = stats->reserved - stats->active;
    return status;
}
