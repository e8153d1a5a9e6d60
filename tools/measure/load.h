/* SPDX-License-Identifier: MIT */
/** Workloads played against a space and a heap; threads at a heap. */
#ifndef MEASURE_LOAD_H
#define MEASURE_LOAD_H

#include <allot/heap.h>
#include <allot/space.h>

#include "measure/workloads.h"

/** What of a workload is played. */
typedef struct load_part {
    const workload *w;
    uint64_t op_count; /**< Operations from its begin, at most w->count. */
    unsigned shift;    /**< Sizes are divided by 2^shift. */
} load_part;

/** Bytes that an operation asks for. */
static inline uint64_t load_size(const load_part *part, workload_op op)
{
    const uint64_t size = ((uint64_t)op.units * WORKLOAD_GRANULE) >> part->shift;
    return size == 0 ? 1 : size;
}

/**
 * Play against a space; returns how many requests were refused, UINT64_MAX if a release was.
 *
 * @param[out] ids  [slot_count]
 */
uint64_t load_space(allot_space *space, const load_part *part, uint32_t *ids);

/** The same, with the highest end of a range; slower. */
uint64_t load_space_top(allot_space *space, const load_part *part, uint32_t *ids, uint64_t *top);

/**
 * Play against a heap; what is live at the end stays.
 *
 * @param[out] handles  [slot_count] Zeroed before; those that are not 0 are live afterwards.
 * @param[out] refused  Requests that found no room.
 * @return ALLOT_STATUS_OK, or what else a call returned.
 */
ALLOT_NODISCARD allot_status load_heap(allot_heap *heap, allot_stream stream, const load_part *part,
                                       allot_handle *handles, uint64_t *refused);

/** Free what load_heap() left. */
ALLOT_NODISCARD allot_status load_heap_end(allot_heap *heap, const load_part *part,
                                           allot_handle *handles);

enum { LOAD_THREADS_MAX = 16 };

/**
 * Threads that allocate and free blocks of 1 to 64 KiB at one heap, for a time.
 *
 * @param[in]  streams  [thread_count] The stream of each; the same for all is allowed.
 * @param[out] per_s    Pairs of an allocation and a free in a second, of all together.
 */
ALLOT_NODISCARD allot_status load_threads(allot_heap *heap, const allot_stream *streams,
                                          uint32_t thread_count, uint64_t time_ms, double *per_s);

#endif /* MEASURE_LOAD_H */
