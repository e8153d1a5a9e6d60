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

/* ---- at once ---- */

static allot_status run_plan(alloti_heap_model *self, const allot_compact_plan *plan)
{
    const alloti_model_stats before = self->model.stats;
    allot_compact_forecast forecast;
    allot_compact_plan_get_forecast(plan, &forecast);
    const allot_status status = allot_compact_plan_run(self->heap, plan, NULL, NULL);
    alloti_heap_note(self);
    return status == ALLOT_STATUS_OK ? note(self, &before, &forecast) : status;
}

/** Compact the whole heap if the benefit is at least so much. */
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

/** Give back what is free. */
static allot_status trim(alloti_heap_model *self)
{
    const allot_status status = allot_heap_trim(self->heap, 0, NULL);
    alloti_heap_note(self);
    self->free_settled = self->model.stats.reserved - self->model.stats.active;
    return status;
}

allot_status alloti_heap_compact_all(alloti_heap_model *self)
{
    const allot_status status = pack(self, INT64_MIN);
    return status == ALLOT_STATUS_OK ? trim(self) : status;
}

/* ---- in steps ---- */

static allot_status make_step(alloti_heap_model *self)
{
    const alloti_model_stats before = self->model.stats;
    const allot_compactor_budget budget = {.struct_size = sizeof budget, .bytes = self->step};
    allot_compactor_step_report report = {0};
    allot_status status = allot_compactor_step(self->compactor, &budget, &report);
    alloti_heap_note(self);
    if (status == ALLOT_STATUS_OK) {
        status = note(self, &before, NULL);
    }
    self->is_stepping = report.tasks_left != 0;
    return status == ALLOT_STATUS_OK && !self->is_stepping ? trim(self) : status;
}

static allot_status begin_steps(alloti_heap_model *self)
{
    const allot_compactor_task_options task = {.struct_size = sizeof task,
                                               .goal = ALLOT_COMPACT_GOAL_FULL};
    allot_compact_forecast forecast;
    uint64_t id = 0;
    allot_status status = allot_compact_estimate(self->heap, NULL, &forecast);
    if (status == ALLOT_STATUS_OK && forecast.benefit > 0) {
        status = allot_compactor_add(self->compactor, &task, &id);
        return status == ALLOT_STATUS_OK ? make_step(self) : status;
    }
    return status == ALLOT_STATUS_OK ? trim(self) : status;
}

/* ---- when ---- */

/** Whether so much is free, and so much more than after the last time, that a look pays. */
static bool is_due(const alloti_heap_model *self, uint64_t size_free)
{
    const double limit = self->threshold * (double)self->model.stats.reserved;
    return (double)size_free > limit && (double)size_free > (double)self->free_settled + limit / 2;
}

static allot_status make_small(alloti_heap_model *self)
{
    if (self->compacts == ALLOTI_HEAP_COMPACT_STEPS) {
        return begin_steps(self);
    }
    const allot_status status =
        self->compacts == ALLOTI_HEAP_COMPACT_AUTO ? pack(self, 1) : ALLOT_STATUS_OK;
    return status == ALLOT_STATUS_OK ? trim(self) : status;
}

allot_status alloti_heap_keep_small(alloti_heap_model *self)
{
    const alloti_model_stats *const stats = &self->model.stats;
    const uint64_t size_free = stats->reserved - stats->active;
    if (self->compacts != ALLOTI_HEAP_COMPACT_TRIM && self->compacts < ALLOTI_HEAP_COMPACT_AUTO) {
        return ALLOT_STATUS_OK;
    }
    if (self->is_stepping) {
        return make_step(self);
    }
    if (size_free < self->free_settled) {
        self->free_settled = size_free;
    }
    return is_due(self, size_free) ? make_small(self) : ALLOT_STATUS_OK;
}
