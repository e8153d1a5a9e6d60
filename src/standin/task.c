/* SPDX-License-Identifier: MIT */
#include "standin/task.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/size_math.h"
#include "standin/bytes.h"
#include "standin/state.h"
#include "standin/use.h"

standin_task task_copy(void *to, const void *from, uint64_t size)
{
    return (standin_task){.kind = TASK_COPY,
                          .to = (uintptr_t)to,
                          .from = (uintptr_t)from,
                          .shape = {.width = size, .height = 1}};
}

standin_task task_fill(void *to, uint32_t value, uint32_t unit, uint64_t count)
{
    return (standin_task){.kind = TASK_FILL,
                          .to = (uintptr_t)to,
                          .shape = {.width = count * unit, .height = 1},
                          .value = value,
                          .unit = unit};
}

cuda_status task_stage(standin_task *task)
{
    const task_shape *const shape = &task->shape;
    uint64_t size = 0;
    char *const buffer = alloti_mul(shape->width, shape->height, &size) && size <= SIZE_MAX
                             ? malloc((size_t)size)
                             : NULL;
    if (buffer == NULL) {
        return size == 0 ? CUDA_OK : CUDA_OUT_OF_MEMORY;
    }
    for (uint64_t i = 0; i < shape->height; i++) {
        memcpy(buffer + i * shape->width,
               (const void *)(uintptr_t)(task->from + i * shape->from_pitch), (size_t)shape->width);
    }
    task->staged = buffer;
    task->from = (uintptr_t)buffer;
    task->shape.from_pitch = shape->width;
    return CUDA_OK;
}

void task_fini(standin_task *task)
{
    free(task->staged);
    task->staged = NULL;
}

static uint64_t span(uint64_t pitch, const task_shape *shape)
{
    return (shape->height - 1) * pitch + shape->width;
}

/** What a check of one row is about. */
typedef struct access {
    standin_stream *stream;
    uint64_t begin;
    uint64_t size;
    bool is_write;
} access;

/** Blocks of real device memory under a range: allocated, in order, in use from now on. */
static cuda_status check_blocks(standin *state, const access *row)
{
    for (uint64_t at = row->begin; at < row->begin + row->size;) {
        const uint32_t index = memory_index(state, at);
        const memory_block *const block = &state->memory.blocks[index];
        if (!use_is_born(state, index, row->stream)) {
            return rule_broken(
                state, NULL, CUDA_INVALID_VALUE,
                "stream %" PRIu64 " uses address 0x%" PRIx64
                " of an allocation that another stream makes, without waiting for that stream",
                row->stream->id, at);
        }
        at = block->address + block->size;
    }
    return CUDA_OK;
}

static cuda_status check_row(standin *state, const access *row)
{
    if (!address_is_inside(&state->space, row->begin)) {
        const host_range *const range = host_find(&state->host, row->begin);
        if (range != NULL && row->size > range->address + range->size - row->begin) {
            return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                               "%" PRIu64 " bytes from host address 0x%" PRIx64
                               " pass the end of its allocation of %" PRIu64 " bytes",
                               row->size, row->begin, range->size);
        }
        return CUDA_OK;
    }
    const cuda_status status =
        bytes_check(state, row->stream->device, NULL, row->begin, row->size, row->is_write);
    return status == CUDA_OK ? check_blocks(state, row) : status;
}

static cuda_status check_rows(standin *state, standin_stream *stream, const standin_task *task,
                              bool is_write)
{
    const task_shape *const shape = &task->shape;
    const uint64_t first = is_write ? task->to : task->from;
    const uint64_t pitch = is_write ? shape->to_pitch : shape->from_pitch;
    if (shape->height > 1 && pitch < shape->width) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                           "rows of %" PRIu64 " bytes overlap: their pitch is %" PRIu64,
                           shape->width, pitch);
    }
    cuda_status status = CUDA_OK;
    for (uint64_t i = 0; i < shape->height && status == CUDA_OK; i++) {
        const access row = {stream, first + i * pitch, shape->width, is_write};
        status = check_row(state, &row);
    }
    return status;
}

/** The areas of a copy may not overlap (cudaMemcpy). */
static bool overlaps(const standin_task *task)
{
    const task_shape *const shape = &task->shape;
    return task->to < task->from + span(shape->from_pitch, shape) &&
           task->from < task->to + span(shape->to_pitch, shape);
}

static void mark_rows(standin *state, const standin_stream *stream, const standin_task *task,
                      bool is_write)
{
    const task_shape *const shape = &task->shape;
    const uint64_t first = is_write ? task->to : task->from;
    const uint64_t pitch = is_write ? shape->to_pitch : shape->from_pitch;
    if (!address_is_inside(&state->space, first) || shape->width == 0 || shape->height == 0) {
        return;
    }
    for (uint64_t at = first, end = first + span(pitch, shape); at < end;) {
        const uint32_t index = memory_index(state, at);
        const memory_block *const block = &state->memory.blocks[index];
        use_mark(state, index, stream);
        at = block->address + block->size;
    }
}

void task_mark(standin *state, const standin_stream *stream, const standin_task *task)
{
    if (task->kind == TASK_COPY || task->kind == TASK_FILL) {
        mark_rows(state, stream, task, true);
    }
    if (task->kind == TASK_COPY) {
        mark_rows(state, stream, task, false);
    }
}

cuda_status task_check(standin *state, standin_stream *stream, const standin_task *task)
{
    if ((task->kind != TASK_COPY && task->kind != TASK_FILL) || task->shape.width == 0 ||
        task->shape.height == 0) {
        return CUDA_OK;
    }
    if (task->kind == TASK_COPY && overlaps(task)) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                           "source 0x%" PRIx64 " and target 0x%" PRIx64 " of a copy of %" PRIu64
                           " bytes overlap",
                           task->from, task->to, task->shape.width);
    }
    if (task->kind == TASK_FILL && task->to % task->unit != 0) {
        return rule_broken(state, NULL, CUDA_INVALID_VALUE,
                           "0x%" PRIx64 " is not aligned to the %u bytes of the value", task->to,
                           (unsigned)task->unit);
    }
    const cuda_status status = check_rows(state, stream, task, true);
    return status != CUDA_OK || task->kind == TASK_FILL ? status
                                                        : check_rows(state, stream, task, false);
}

static cuda_status view_rows(standin *state, uint32_t device, const rule_place *place,
                             const standin_task *task, bool is_write, void **out)
{
    const task_shape *const shape = &task->shape;
    const uint64_t first = is_write ? task->to : task->from;
    const uint64_t pitch = is_write ? shape->to_pitch : shape->from_pitch;
    const bool is_device = address_is_inside(&state->space, first);
    cuda_status status = CUDA_OK;
    for (uint64_t i = 0; i < shape->height && is_device && status == CUDA_OK; i++) {
        status =
            bytes_check_backing(state, device, place, first + i * pitch, shape->width, is_write);
    }
    *out = (void *)(uintptr_t)(is_device ? first + state->space.alias : first);
    return status;
}

cuda_status task_begin(standin *state, uint32_t device, const rule_place *place,
                       const standin_task *task, task_view *view)
{
    *view = (task_view){0};
    if (task->kind != TASK_COPY && task->kind != TASK_FILL) {
        return CUDA_OK;
    }
    cuda_status status = view_rows(state, device, place, task, true, &view->to);
    if (status == CUDA_OK && task->kind == TASK_COPY) {
        void *from = NULL;
        status = view_rows(state, device, place, task, false, &from);
        view->from = from;
    }
    return status;
}

static void fill(char *to, uint32_t value, uint32_t unit, uint64_t size)
{
    if (unit == 1) {
        memset(to, (int)(value & 0xff), (size_t)size);
        return;
    }
    /* Little-endian, as the devices are: the low bytes of the value come first. */
    for (uint64_t i = 0; i < size; i += unit) {
        memcpy(to + i, &value, unit);
    }
}

void task_run(const standin_task *task, const task_view *view)
{
    const task_shape *const shape = &task->shape;
    if (task->kind == TASK_CALL) {
        callback_run(&task->call);
        return;
    }
    for (uint64_t i = 0; i < shape->height && shape->width != 0; i++) {
        char *const to = (char *)view->to + i * shape->to_pitch;
        if (task->kind == TASK_COPY) {
            memcpy(to, (const char *)view->from + i * shape->from_pitch, (size_t)shape->width);
        } else {
            fill(to, task->value, task->unit, shape->width);
        }
    }
}

void callback_run(const stream_callback *callback)
{
    if (callback->run != NULL) {
        callback->run(callback->data);
    } else {
        callback->run_with_stream(callback->stream, CUDA_OK, callback->data);
    }
}
