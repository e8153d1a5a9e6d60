/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Compaction: moving live blocks of a heap so that its free memory lies together.
 *
 * Only blocks of handles move (allot_heap_alloc()), while they are not pinned and no stream but
 * their own uses them. Their bytes are copied on their stream, so work that was queued before and
 * after sees them; nobody waits.
 */
#ifndef ALLOT_COMPACT_H
#define ALLOT_COMPACT_H

#include <allot/heap.h>

#ifdef __cplusplus
extern "C" {
#endif

/** When a heap compacts on its own. Zero-initialise, then set struct_size. */
typedef struct allot_compact_options {
    size_t struct_size;
    /** Most bytes to move for one request, as a multiple of the request; 0: no bound. */
    double cost_max;
} allot_compact_options;

/**
 * Let a heap compact where a request would not fit otherwise: the rung COMPACT of its ladder. It
 * moves the fewest bytes that make one range of the request's own pool and stream large enough.
 *
 * @param[in] options  NULL for the defaults.
 * @return ALLOT_STATUS_OK; ALLOT_STATUS_INVALID for a negative cost; ALLOT_STATUS_FORKED.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_compact_attach(allot_heap *heap,
                                                            const allot_compact_options *options);

/**
 * Move the fewest bytes that make room for a request, without allocating it.
 *
 * @param[in]  request  As for allot_heap_alloc(); its size, alignment, pool and stream count.
 * @param[out] moved    Bytes moved; NULL allowed.
 * @return ALLOT_STATUS_OK: a range is free, or was already; ALLOT_STATUS_FRAGMENTED if no moves
 * make room; ALLOT_STATUS_INVALID; ALLOT_STATUS_HOST_MEMORY; ALLOT_STATUS_BACKEND, and what was
 *         moved by then stays where it is now.
 */
ALLOT_API ALLOT_NODISCARD allot_status allot_compact_make_room(allot_heap *heap,
                                                               const allot_request *request,
                                                               uint64_t *moved);

#ifdef __cplusplus
}
#endif

#endif /* ALLOT_COMPACT_H */
