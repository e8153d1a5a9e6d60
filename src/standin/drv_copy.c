/* SPDX-License-Identifier: MIT */
/* CUDA driver: copies of rectangles. */
#include "standin/runtime.h"

/** Numbers of CUmemorytype. */
enum { TYPE_HOST = 1, TYPE_DEVICE = 2, TYPE_UNIFIED = 4 };

/** One end of CUDA_MEMCPY2D. */
typedef struct rectangle_end {
    size_t x; /**< Bytes into the row. */
    size_t y;
    int type;
    void *host;
    uint64_t device;
    void *array; /**< Arrays are not kept: refused. */
    size_t pitch;
} rectangle_end;

typedef struct rectangle {
    rectangle_end from;
    rectangle_end to;
    size_t width; /**< Bytes. */
    size_t height;
} rectangle;
_Static_assert(sizeof(rectangle) == 128, "layout of CUDA_MEMCPY2D");

/** Where the rectangle begins; false for an array or an end that does not fit its pitch. */
static bool place_of(const rectangle_end *end, size_t width, uint64_t *out)
{
    if ((end->type != TYPE_HOST && end->type != TYPE_DEVICE && end->type != TYPE_UNIFIED) ||
        (end->pitch != 0 && (end->x > end->pitch || width > end->pitch - end->x))) {
        return false;
    }
    const uint64_t base = end->type == TYPE_HOST ? (uintptr_t)end->host : end->device;
    *out = base + end->y * end->pitch + end->x;
    return true;
}

static int copy_rectangle(const rectangle *what, void *stream, bool is_blocking)
{
    standin_task task = {.kind = TASK_COPY};
    if (!place_of(&what->to, what->width, &task.to) ||
        !place_of(&what->from, what->width, &task.from)) {
        return CUDA_INVALID_VALUE;
    }
    task.shape = (task_shape){what->to.pitch, what->from.pitch, what->width, what->height};
    const copy_manner manner = {.kind = COPY_ANY, .is_blocking = is_blocking};
    return copy_on(task, stream, &manner);
}

CUDA_ENTRY(int, cuMemcpy2DAsync_v2)(const rectangle *what, void *stream)
{
    return copy_rectangle(what, stream, false);
}

CUDA_ENTRY(int, cuMemcpy2D_v2)(const rectangle *what)
{
    return copy_rectangle(what, NULL, true);
}

CUDA_ENTRY(int, cuMemcpy2DUnaligned_v2)(const rectangle *what)
{
    return copy_rectangle(what, NULL, true);
}
