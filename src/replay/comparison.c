/* SPDX-License-Identifier: MIT */
#include "replay/comparison.h"

#include <assert.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/size_math.h"

void alloti_comparison_init(alloti_comparison *self, const alloti_model_ops *ops,
                            const alloti_placement *placement, const alloti_model_params *params)
{
    uint64_t limit = params->limit;
    if (params->fraction > 0.0 && limit != UINT64_MAX) {
        limit = alloti_to_u64((double)limit * params->fraction);
    }
    self->model.ops = ops;
    self->placement = placement;
    self->upstream = (alloti_upstream){.limit = limit, .next = ALLOTI_UPSTREAM_START};
    self->handed_spare = ALLOT_NONE;
}

void alloti_comparison_fini(alloti_comparison *self)
{
    free(self->handed);
}

void alloti_comparison_note(alloti_comparison *self)
{
    const alloti_upstream *const up = &self->upstream;
    alloti_model_stats *const stats = &self->model.stats;
    stats->reserved = up->reserved;
    stats->bytes_taken = up->bytes_taken;
    if (self->page_size == 0) {
        stats->segment_alloc_count = up->take_count;
        stats->segment_free_count = up->give_count;
    } else {
        stats->range_count = up->take_count + up->give_count;
        stats->range_map_count = up->take_count;
        stats->page_map_count = up->bytes_taken / self->page_size;
        stats->page_unmap_count = up->bytes_given / self->page_size;
    }
    alloti_model_note_peaks(stats);
}

static allot_status slot_take(alloti_comparison *self, uint32_t *out)
{
    if (self->handed_spare != ALLOT_NONE) {
        *out = self->handed_spare;
        self->handed_spare = self->handed[*out].next;
        return ALLOT_STATUS_OK;
    }
    const allot_status status =
        alloti_array_reserve(&self->handed, &self->handed_capacity,
                             (uint64_t)self->handed_count + 1, sizeof *self->handed);
    if (status == ALLOT_STATUS_OK) {
        *out = self->handed_count++;
    }
    return status;
}

static void slot_give(alloti_comparison *self, uint32_t slot)
{
    self->handed[slot] = (alloti_handed){.next = self->handed_spare};
    self->handed_spare = slot;
}

/** The failure of a request: fragmented if the bytes are there. */
static allot_status fail_oom(const alloti_comparison *self, uint64_t size)
{
    alloti_model_survey survey = {0};
    self->placement->survey(self, &survey);
    const uint64_t room = self->upstream.limit - self->upstream.reserved;
    const allot_status status = room >= size || survey.free_bytes >= size - room
                                    ? ALLOT_STATUS_FRAGMENTED
                                    : ALLOT_STATUS_DEVICE_MEMORY;
    char asked[ALLOT_SIZE_TEXT_MAX];
    char held[ALLOT_SIZE_TEXT_MAX];
    char largest[ALLOT_SIZE_TEXT_MAX];
    return alloti_fail(status, "%s: asked %s, free %s of which the largest range is %s",
                       self->model.ops->info.name, allot_size_format(size, asked),
                       allot_size_format(survey.free_bytes, held),
                       allot_size_format(survey.free_largest, largest));
}

allot_status alloti_comparison_alloc(alloti_model *model, uint64_t size, uint64_t stream,
                                     uint32_t pool, uint64_t *block)
{
    (void)pool;
    alloti_comparison *const self = (alloti_comparison *)model;
    uint32_t slot = ALLOT_NONE;
    allot_status status = slot_take(self, &slot);
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    alloti_handed handed = {.requested = size, .stream = stream};
    status = self->placement->take(self, size == 0 ? 1 : size, stream, &handed.span);
    if (status != ALLOT_STATUS_OK) {
        slot_give(self, slot);
        alloti_comparison_note(self);
        return status == ALLOT_STATUS_DEVICE_MEMORY ? fail_oom(self, size) : status;
    }
    self->handed[slot] = handed;
    model->stats.allocated += handed.span.size;
    model->stats.active += handed.span.size;
    model->stats.requested += size;
    alloti_comparison_note(self);
    *block = slot;
    return ALLOT_STATUS_OK;
}

static bool is_handed(const alloti_comparison *self, uint64_t block, bool pending)
{
    return block < self->handed_count && self->handed[block].span.size > 0 &&
           self->handed[block].is_pending == pending;
}

/** A block that nobody uses any more goes back. */
static allot_status retire(alloti_comparison *self, uint32_t slot)
{
    const alloti_handed handed = self->handed[slot];
    slot_give(self, slot);
    self->model.stats.active -= handed.span.size;
    self->model.stats.requested -= handed.requested;
    const allot_status status = self->placement->give(self, handed.span, handed.stream);
    alloti_comparison_note(self);
    return status;
}

allot_status alloti_comparison_free(alloti_model *model, uint64_t block, bool is_shared)
{
    alloti_comparison *const self = (alloti_comparison *)model;
    if (!is_handed(self, block, false)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s: block %llu is not allocated",
                           model->ops->info.name, (unsigned long long)block);
    }
    model->stats.allocated -= self->handed[block].span.size;
    self->handed[block].is_pending = is_shared;
    return is_shared ? ALLOT_STATUS_OK : retire(self, (uint32_t)block);
}

allot_status alloti_comparison_complete(alloti_model *model, uint64_t block)
{
    alloti_comparison *const self = (alloti_comparison *)model;
    if (!is_handed(self, block, true)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s: block %llu is not pending",
                           model->ops->info.name, (unsigned long long)block);
    }
    return retire(self, (uint32_t)block);
}

void alloti_comparison_survey(const alloti_model *model, alloti_model_survey *out)
{
    const alloti_comparison *const self = (const alloti_comparison *)model;
    self->placement->survey(self, out);
}
