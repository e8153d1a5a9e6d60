/* SPDX-License-Identifier: MIT */
/* Requests of a heap model: each recorded block is one of the heap. */
#include "core/array.h"
#include "heap/place.h"
#include "replay/model_heap.h"

/* ---- slots ---- */

static allot_status slot_take(alloti_heap_model *self, uint32_t *out)
{
    if (self->block_spare != ALLOT_NONE) {
        *out = self->block_spare;
        self->block_spare = self->blocks[*out].next;
        return ALLOT_STATUS_OK;
    }
    const allot_status status =
        alloti_array_reserve(&self->blocks, &self->blocks_capacity, (uint64_t)self->block_count + 1,
                             sizeof *self->blocks);
    if (status == ALLOT_STATUS_OK) {
        *out = self->block_count++;
    }
    return status;
}

static void slot_give(alloti_heap_model *self, uint32_t slot)
{
    self->blocks[slot] = (alloti_heap_block){.next = self->block_spare};
    self->block_spare = slot;
}

static bool is_handed(const alloti_heap_model *self, uint64_t block, bool pending)
{
    return block < self->block_count && self->blocks[block].name != 0 &&
           self->blocks[block].is_pending == pending;
}

/* ---- requests ---- */

static allot_status ask(alloti_heap_model *self, const allot_request *request, uint64_t *name)
{
    allot_handle handle = {0};
    allot_devptr ptr = {0};
    if (self->is_movable != 0) {
        const allot_status status = allot_heap_alloc(self->heap, request, &handle);
        *name = handle.value;
        return status;
    }
    const allot_status status = allot_heap_alloc_pointer(self->heap, request, &ptr);
    *name = ptr.address;
    return status;
}

/** The failure of a request: fragmented if the bytes are there. */
static allot_status fail_oom(const alloti_heap_model *self, uint64_t size)
{
    alloti_model_survey survey;
    alloti_heap_model_survey(&self->model, &survey);
    const uint64_t room = self->memory - self->model.stats.reserved;
    const allot_status status = room >= size || survey.free_bytes >= size - room
                                    ? ALLOT_STATUS_FRAGMENTED
                                    : ALLOT_STATUS_DEVICE_MEMORY;
    return alloti_fail_prefix(status, "%s: ", self->model.ops->info.name);
}

/** Ask, and note what the heap did for it. */
static allot_status ask_once(alloti_heap_model *self, const allot_request *request, uint64_t *name)
{
    const alloti_model_stats before = self->model.stats;
    const allot_status status = ask(self, request, name);
    alloti_heap_note(self);
    const allot_status noted = alloti_heap_note_compaction(self, &before);
    return noted == ALLOT_STATUS_OK ? status : noted;
}

static allot_status serve(alloti_heap_model *self, const allot_request *request, uint32_t slot)
{
    const uint64_t allocated = self->model.stats.allocated;
    uint64_t name = 0;
    allot_status status = ask_once(self, request, &name);
    if (heap_is_no_room(status) && self->compacts >= ALLOTI_HEAP_COMPACT_FULL) {
        status = alloti_heap_compact_all(self);
        status = status == ALLOT_STATUS_OK ? ask_once(self, request, &name) : status;
    }
    if (heap_is_no_room(status)) {
        return fail_oom(self, request->size);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    self->blocks[slot] =
        (alloti_heap_block){.name = name, .size = self->model.stats.allocated - allocated};
    return alloti_heap_keep_small(self);
}

allot_status alloti_heap_model_alloc(alloti_model *model, uint64_t size, uint64_t stream,
                                     uint32_t pool, uint64_t *block)
{
    alloti_heap_model *const self = (alloti_heap_model *)model;
    if (size > self->memory) {
        return alloti_fail(ALLOT_STATUS_DEVICE_MEMORY, "%s: more than the device has",
                           model->ops->info.name);
    }
    allot_request request = {
        .struct_size = sizeof request, .size = size == 0 ? 1 : size, .tag = model->site};
    if (pool < self->pool_count) {
        request.pool = self->pools[pool];
    }
    uint32_t slot = ALLOT_NONE;
    allot_status status = alloti_heap_stream(self, stream, &request.stream);
    if (status == ALLOT_STATUS_OK) {
        status = slot_take(self, &slot);
    }
    if (status != ALLOT_STATUS_OK) {
        return status;
    }
    status = serve(self, &request, slot);
    if (self->blocks[slot].name == 0) {
        slot_give(self, slot);
    }
    if (status == ALLOT_STATUS_OK) {
        *block = slot;
    }
    return status;
}

/* ---- frees ---- */

static allot_status give_back(alloti_heap_model *self, uint32_t slot)
{
    const uint64_t name = self->blocks[slot].name;
    const allot_status status = self->is_movable != 0
                                    ? allot_heap_free(self->heap, (allot_handle){name})
                                    : allot_heap_free_pointer(self->heap, (allot_devptr){name});
    if (status == ALLOT_STATUS_OK) {
        slot_give(self, slot);
    }
    alloti_heap_note(self);
    return status;
}

/** Another stream uses it: it stays where it is until that is over. */
static allot_status keep(alloti_heap_model *self, uint32_t slot)
{
    alloti_heap_block *const block = &self->blocks[slot];
    allot_devptr ptr;
    const allot_status status = self->is_movable != 0
                                    ? allot_heap_pin(self->heap, (allot_handle){block->name}, &ptr)
                                    : ALLOT_STATUS_OK;
    if (status == ALLOT_STATUS_OK) {
        block->is_pending = true;
        self->pending_size += block->size;
        alloti_heap_note(self);
    }
    return status;
}

allot_status alloti_heap_model_free(alloti_model *model, uint64_t block, bool is_shared)
{
    alloti_heap_model *const self = (alloti_heap_model *)model;
    if (!is_handed(self, block, false)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s: block %llu is not allocated",
                           model->ops->info.name, (unsigned long long)block);
    }
    return is_shared ? keep(self, (uint32_t)block) : give_back(self, (uint32_t)block);
}

allot_status alloti_heap_model_complete(alloti_model *model, uint64_t block)
{
    alloti_heap_model *const self = (alloti_heap_model *)model;
    if (!is_handed(self, block, true)) {
        return alloti_fail(ALLOT_STATUS_INVALID, "%s: block %llu is not pending",
                           model->ops->info.name, (unsigned long long)block);
    }
    if (self->is_movable != 0) {
        const allot_status status =
            allot_heap_unpin(self->heap, (allot_handle){self->blocks[block].name});
        if (status != ALLOT_STATUS_OK) {
            return status;
        }
    }
    self->pending_size -= self->blocks[block].size;
    return give_back(self, (uint32_t)block);
}
