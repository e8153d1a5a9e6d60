/* SPDX-License-Identifier: MIT */
/* Compaction of a heap model beyond what its heap does by itself, and a list of all of it. */
#include <allot/compact.h>

#include "core/array.h"
#include "replay/model_heap.h"

allot_status alloti_heap_note_compaction(alloti_heap_model *self, const alloti_model_stats *before)
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
        model->compactions[model->compaction_count++] =
            (allot_replay_compaction){.copy_count = now->copy_count - before->copy_count,
                                      .copy_bytes = now->copy_bytes - before->copy_bytes,
                                      .copy_ns = now->copy_ns - before->copy_ns,
                                      .reserved_before = before->reserved,
                                      .reserved_after = now->reserved};
    }
    return status;
}

allot_status alloti_heap_compact_all(alloti_heap_model *self)
{
    allot_compact_plan *plan = NULL;
    allot_status status = allot_compact_plan_create(self->heap, NULL, &plan);
    if (status == ALLOT_STATUS_OK) {
        status = allot_compact_plan_run(self->heap, plan, NULL, NULL);
    }
    allot_compact_plan_destroy(plan);
    return status == ALLOT_STATUS_OK ? allot_heap_trim(self->heap, 0, NULL) : status;
}
