/* SPDX-License-Identifier: MIT */
/* What a heap model holds: statistics after each request, free ranges for samples. */
#include <allot/space.h>

#include "core/size_math.h"
#include "heap/heap.h"
#include "replay/model_heap.h"

/* ---- after each request ---- */

static uint64_t done(const allot_device_counts *counts, allot_device_call call)
{
    return counts->calls[call] - counts->failures[call];
}

static uint64_t copies(const allot_device_counts *counts)
{
    return done(counts, ALLOT_DEVICE_CALL_COPY) + done(counts, ALLOT_DEVICE_CALL_COPY_BATCH) +
           done(counts, ALLOT_DEVICE_CALL_MOVE);
}

/** Time of copies on the device. */
static uint64_t copy_time(const allot_device_info *info, uint64_t count, uint64_t bytes)
{
    const double rate = (double)info->copy_bytes_per_s;
    return count * info->copy_latency_ns +
           (rate > 0 ? alloti_to_u64((double)bytes / rate * 1e9) : 0);
}

static void note_driver(alloti_heap_model *self)
{
    alloti_model_stats *const stats = &self->model.stats;
    allot_device_counts counts;
    allot_device_get_counts(self->device, &counts);
    stats->segment_alloc_count = done(&counts, ALLOT_DEVICE_CALL_ALLOC);
    stats->segment_free_count = done(&counts, ALLOT_DEVICE_CALL_FREE);
    stats->range_map_count = done(&counts, ALLOT_DEVICE_CALL_MAP);
    stats->range_count = stats->range_map_count + done(&counts, ALLOT_DEVICE_CALL_UNMAP);
    stats->page_map_count = done(&counts, ALLOT_DEVICE_CALL_MEMORY_CREATE);
    stats->page_unmap_count = done(&counts, ALLOT_DEVICE_CALL_MEMORY_RELEASE);
    stats->sync_count = done(&counts, ALLOT_DEVICE_CALL_STREAM_SYNCHRONIZE) +
                        done(&counts, ALLOT_DEVICE_CALL_EVENT_SYNCHRONIZE);
    stats->copy_count = copies(&counts);
    stats->copy_bytes = counts.size_copied;
    stats->copy_ns = copy_time(&self->info, stats->copy_count, stats->copy_bytes);
}

void alloti_heap_note(alloti_heap_model *self)
{
    alloti_model_stats *const stats = &self->model.stats;
    allot_heap_stats heap;
    /* Fails in the child of a fork() alone, where the requests before it have failed. */
    if (allot_heap_get_stats(self->heap, &heap) != ALLOT_STATUS_OK) {
        return;
    }
    stats->reserved = heap.reserved_bytes.current;
    stats->active = heap.active_bytes.current;
    stats->allocated = heap.allocated_bytes.current - self->pending_size;
    stats->requested = heap.requested_bytes.current;
    stats->bytes_taken = heap.reserved_bytes.allocated;
    stats->retry_count = heap.num_alloc_retries;
    stats->reserved_peak = heap.reserved_bytes.peak;
    alloti_model_note_peaks(stats);
    note_driver(self);
}

/* ---- free ranges ---- */

/** The largest part of a free range that memory lies under. */
static uint64_t largest_mapped(const heap_segment *segment, uint64_t granule,
                               const allot_range *range)
{
    const uint64_t end = range->offset + range->size;
    uint64_t largest = 0;
    uint64_t run = 0;
    for (uint64_t at = range->offset; at < end;) {
        const uint64_t next = alloti_align_down(at, granule) + granule;
        const uint64_t stop = next < end ? next : end;
        run = segment->granules[at / granule].memory.value == 0 ? 0 : run + (stop - at);
        largest = run > largest ? run : largest;
        at = stop;
    }
    return largest;
}

/** The largest free range of a segment. */
static uint64_t largest_of(const allot_heap *heap, const heap_segment *segment)
{
    if (!heap->is_virtual) {
        return allot_space_largest_free(segment->space);
    }
    uint64_t largest = 0;
    allot_range range;
    for (uint32_t at = ALLOT_NONE; allot_space_next(segment->space, &at, &range);) {
        const uint64_t here = range.is_free && range.size > largest
                                  ? largest_mapped(segment, heap->info.granule, &range)
                                  : 0;
        largest = here > largest ? here : largest;
    }
    return largest;
}

void alloti_heap_model_survey(const alloti_model *model, alloti_model_survey *out)
{
    const alloti_heap_model *const self = (const alloti_heap_model *)model;
    allot_heap *const heap = self->heap;
    *out = (alloti_model_survey){0};
    if (alloti_heap_enter(heap) != ALLOT_STATUS_OK) {
        return;
    }
    out->free_bytes = heap->held - heap->meters.active_bytes.current;
    for (uint32_t i = 0; i < heap->segment_count; i++) {
        if (heap->segments[i].address != 0) {
            const uint64_t here = largest_of(heap, &heap->segments[i]);
            out->free_largest = here > out->free_largest ? here : out->free_largest;
        }
    }
    (void)heap_leave(heap, ALLOT_STATUS_OK);
}
