/* SPDX-License-Identifier: MIT */
/* CUDA runtime and driver: several copies in one call. */
#include "standin/device.h"
#include "standin/runtime.h"

/** cudaMemcpyAttributes and CUmemcpyAttributes. */
typedef struct copy_attributes {
    int order; /**< 1: the source is read in stream order, 2: during the call, 3: any time. */
    cuda_location from_hint;
    cuda_location to_hint;
    unsigned flags;
} copy_attributes;

typedef struct copy_batch {
    void *const *to;
    const void *const *from;
    const size_t *sizes;
    size_t count;
    const copy_attributes *attributes;
    const size_t *firsts; /**< [attribute_count] first copy that each of the attributes is for. */
    size_t attribute_count;
} copy_batch;

static bool is_batch(const copy_batch *batch)
{
    if (batch->to == NULL || batch->from == NULL || batch->sizes == NULL || batch->count == 0 ||
        batch->attributes == NULL || batch->firsts == NULL || batch->attribute_count == 0 ||
        batch->attribute_count > batch->count || batch->firsts[0] != 0) {
        return false;
    }
    for (size_t i = 0; i < batch->attribute_count; i++) {
        if (batch->firsts[i] >= batch->count || batch->attributes[i].order < 1 ||
            batch->attributes[i].order > 3 || (i > 0 && batch->firsts[i] <= batch->firsts[i - 1])) {
            return false;
        }
    }
    return true;
}

static int order_of(const copy_batch *batch, size_t at)
{
    size_t i = batch->attribute_count - 1;
    while (batch->firsts[i] > at) {
        i--;
    }
    return batch->attributes[i].order;
}

/**
 * The copies are unordered among each other: they are put in one after the other, beginning at one
 * that the seed decides. The default stream is not allowed.
 */
static int copy_in_batch(const copy_batch *batch, size_t *failed, void *stream)
{
    enum { IN_STREAM_ORDER = 1, DEFAULT_STREAMS = 1 };
    if (!is_batch(batch) || (uintptr_t)stream <= DEFAULT_STREAMS) {
        return standin_result(CUDA_INVALID_VALUE);
    }
    standin *const state = standin_open();
    const size_t first = state->config.delay != 0 ? queue_draw(state) % batch->count : 0;
    standin_close(state);
    for (size_t i = 0; i < batch->count; i++) {
        const size_t at = (first + i) % batch->count;
        const copy_manner manner = {.kind = COPY_ANY,
                                    .is_read_late = order_of(batch, at) == IN_STREAM_ORDER};
        const int status =
            copy_on(task_copy(batch->to[at], batch->from[at], batch->sizes[at]), stream, &manner);
        if (status != CUDA_OK) {
            if (failed != NULL) {
                *failed = at;
            }
            return status;
        }
    }
    return CUDA_OK;
}

/* CUDA 12.8 and 12.9 tell which copy failed; 13 leaves that parameter out. */
CUDA_ENTRY(int, cuMemcpyBatchAsync)
(void *const *to, const void *const *from, const size_t *sizes, size_t count,
 const copy_attributes *attributes, const size_t *firsts, size_t attribute_count, size_t *failed,
 void *stream)
{
    const copy_batch batch = {to, from, sizes, count, attributes, firsts, attribute_count};
    return copy_in_batch(&batch, failed, stream);
}

CUDA_ENTRY(int, cuMemcpyBatchAsync_v2)
(void *const *to, const void *const *from, const size_t *sizes, size_t count,
 const copy_attributes *attributes, const size_t *firsts, size_t attribute_count, void *stream)
{
    const copy_batch batch = {to, from, sizes, count, attributes, firsts, attribute_count};
    return copy_in_batch(&batch, NULL, stream);
}

/* The runtime has one name for both; what comes after the number of attributes tells them apart. */
CUDA_ENTRY(int, cudaMemcpyBatchAsync)
(void *const *to, const void *const *from, const size_t *sizes, size_t count,
 const copy_attributes *attributes, const size_t *firsts, size_t attribute_count,
 void *failed_or_stream, void *stream)
{
    const copy_batch batch = {to, from, sizes, count, attributes, firsts, attribute_count};
    return device_cuda_major() == 12 ? copy_in_batch(&batch, failed_or_stream, stream)
                                     : copy_in_batch(&batch, NULL, failed_or_stream);
}
